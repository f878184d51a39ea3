/* Redistributions as a spectral code does them: uneven all-to-all of large blocks, sums over rows, a pipeline of messages along the ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 120000, steps = argc > 2 ? atoi(argv[2]) : 12, rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int *to = calloc(4 * ranks, sizeof(int)), *at = to + ranks, *from = at + ranks, *where = from + ranks, a = 0, b = 0;
    for (int i = 0; i < ranks; i++) {
        to[i] = n * (1 + (rank + i) % 3) / 2; from[i] = n * (1 + (rank + i) % 3) / 2;
        at[i] = a; where[i] = b; a += to[i]; b += from[i];
    }
    char *out = calloc(a, 1), *in = calloc(b, 1);
    double *row = calloc(20000, sizeof(double)), *sum = calloc(20000, sizeof(double));
    for (int s = 0; s < steps; s++) {
        MPI_Alltoallv(out, to, at, MPI_CHAR, in, from, where, MPI_CHAR, MPI_COMM_WORLD);
        MPI_Allreduce(row, sum, 20000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int piece = 0; piece < 20; piece++) {
            if (rank > 0) MPI_Recv(row, 1000, MPI_DOUBLE, rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < 1000; i++) row[i] = row[i] * 0.5 + 1;
            if (rank < ranks - 1) MPI_Send(row, 1000, MPI_DOUBLE, rank + 1, 3, MPI_COMM_WORLD);
        }
        MPI_Bcast(row, 20000, MPI_DOUBLE, s % ranks, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
