/* Jacobi on a 2 x 2 grid of ranks: halos of rows and columns by non-blocking messages, computation between, a norm now and then. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1500, steps = argc > 2 ? atoi(argv[2]) : 200, rank, ranks, dims[2] = {0, 0}, periods[2] = {1, 1};
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, dims);
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    int up, down, left, right, m = n / 10;
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    double *halo = calloc(8 * n, sizeof *halo), *u = calloc(m * m, sizeof *u), *v = calloc(m * m, sizeof *v), norm = 0, sum;
    for (int s = 0; s < steps; s++) {
        MPI_Request r[8];
        MPI_Irecv(halo, n, MPI_DOUBLE, up, 0, grid, &r[0]);
        MPI_Irecv(halo + n, n, MPI_DOUBLE, down, 1, grid, &r[1]);
        MPI_Irecv(halo + 2 * n, n, MPI_DOUBLE, left, 2, grid, &r[2]);
        MPI_Irecv(halo + 3 * n, n, MPI_DOUBLE, right, 3, grid, &r[3]);
        MPI_Isend(halo + 4 * n, n, MPI_DOUBLE, down, 0, grid, &r[4]);
        MPI_Isend(halo + 5 * n, n, MPI_DOUBLE, up, 1, grid, &r[5]);
        MPI_Isend(halo + 6 * n, n, MPI_DOUBLE, right, 2, grid, &r[6]);
        MPI_Isend(halo + 7 * n, n, MPI_DOUBLE, left, 3, grid, &r[7]);
        for (int i = 1; i < m - 1; i++)
            for (int j = 1; j < m - 1; j++)
                v[i * m + j] = 0.25 * (u[(i - 1) * m + j] + u[(i + 1) * m + j] + u[i * m + j - 1] + u[i * m + j + 1]) + 1;
        MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
        double *t = u; u = v; v = t;
        if (s % 10 == 0) { norm = u[m + 1]; MPI_Allreduce(&norm, &sum, 1, MPI_DOUBLE, MPI_SUM, grid); }
    }
    if (rank == 0) printf("%g\n", norm);
    MPI_Finalize();
    return 0;
}
