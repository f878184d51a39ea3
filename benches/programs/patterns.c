/* Patterns whose time depends on which ranks share a node: patterns ring|rows STEPS BYTES. ring: to the next rank and from the one
 * before; rows: all-to-all among the ranks that are equal modulo a quarter of all. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    int rank, ranks, steps, bytes;
    MPI_Comm row;
    MPI_Init(&argc, &argv);
    if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
    steps = atoi(argv[2]), bytes = atoi(argv[3]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank % (ranks / 4), rank, &row);
    char *out = calloc(bytes, 4), *in = calloc(bytes, 4);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (int s = 0; s < steps; s++) {
        if (!strcmp(argv[1], "ring"))
            MPI_Sendrecv(out, bytes, MPI_CHAR, next, 0, in, bytes, MPI_CHAR, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, row);
    }
    MPI_Finalize();
    return 0;
}
