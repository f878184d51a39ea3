/* Two ranks exchange 800 KiB by MPI_Sendrecv; all ranks compute for some microseconds between a barrier and the exchange.
   Prints the time of each exchange. `exchange MICROSECONDS COUNT`: ranks 1 and 3 of four, or both of two. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 819200 };
static char sent[SIZE], received[SIZE];

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int other = ranks == 2 ? 1 - rank : rank % 2 ? 4 - rank : -1;
    for (int count = atoi(argv[2]); count > 0; count--) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime(), start;
        while ((start = MPI_Wtime()) - begin < 1e-6 * atof(argv[1]));
        if (other >= 0)
            MPI_Sendrecv(sent, SIZE, MPI_BYTE, other, 0, received, SIZE, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (other > rank)
            printf("%.2f s\n", MPI_Wtime() - start);
    }
    MPI_Finalize();
}
