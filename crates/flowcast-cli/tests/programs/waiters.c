/* Ranks 0 and 1 exchange messages; all other ranks wait for them in a barrier, where they poll. */
#include <mpi.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    int rank, rounds = atoi(arguments[1]), bytes = atoi(arguments[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *out = calloc(1, bytes), *in = calloc(1, bytes);
    for (int round = 0; rank < 2 && round < rounds; round++)
        MPI_Sendrecv(out, bytes, MPI_CHAR, 1 - rank, 0, in, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
