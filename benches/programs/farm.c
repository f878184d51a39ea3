/* A master hands tasks to whoever asks: results of 4 kB to 200 kB come back in any order; the table of 1 MB is broadcast first. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int tasks = argc > 1 ? atoi(argv[1]) : 150, rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *table = calloc(1000000, 1), *result = calloc(200000, 1);
    MPI_Bcast(table, 1000000, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        int given = 0, ended = 0, none = -1;
        while (ended < ranks - 1) {
            MPI_Status s;
            MPI_Recv(result, 200000, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &s);
            if (given < tasks) { MPI_Send(&given, 1, MPI_INT, s.MPI_SOURCE, 2, MPI_COMM_WORLD); given++; }
            else { MPI_Send(&none, 1, MPI_INT, s.MPI_SOURCE, 2, MPI_COMM_WORLD); ended++; }
        }
    } else {
        int task = 0, size = 1;
        while (1) {
            MPI_Send(result, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
            MPI_Recv(&task, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (task < 0) break;
            volatile double x = 1;
            for (int i = 0; i < 300000 * (1 + task % 3); i++) x = x * 0.999 + 0.1;
            size = 4000 + (task * 7919) % 196000;
        }
    }
    MPI_Finalize();
    return 0;
}
