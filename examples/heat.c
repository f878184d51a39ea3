/* Heat along a rod: each rank owns a piece, and exchanges its two end cells with its neighbours in each step.

   mpicc -O2 -o heat heat.c && mpirun -np 4 ./heat 200 4000
   arguments: steps, cells of each rank */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int steps = argc > 1 ? atoi(argv[1]) : 200, cells = argc > 2 ? atoi(argv[2]) : 4000;
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;

    double *now = calloc(cells + 2, sizeof *now), *next = calloc(cells + 2, sizeof *next);
    if (rank == 0) now[0] = next[0] = 1.0; /* the hot end of the rod */

    double change = 0.0;
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(&now[1], 1, MPI_DOUBLE, left, 0, &now[cells + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(&now[cells], 1, MPI_DOUBLE, right, 1, &now[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (rank == 0) now[0] = 1.0;
        double mine = 0.0;
        for (int i = 1; i <= cells; i++) {
            next[i] = 0.25 * now[i - 1] + 0.5 * now[i] + 0.25 * now[i + 1];
            mine += next[i] > now[i] ? next[i] - now[i] : now[i] - next[i];
        }
        double *old = now;
        now = next;
        next = old;
        if (step % 10 == 9) MPI_Allreduce(&mine, &change, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%d steps on %d ranks, last change %g\n", steps, ranks, change);
    free(now);
    free(next);
    MPI_Finalize();
    return 0;
}
