/* How much of a transfer an MPI library hides behind computation: two ranks, non-blocking messages of several sizes.
 *
 * Each size is timed without computation (Irecv, Isend, Waitall), then with as much computation between Isend and Waitall as
 * that took, by both ranks, by the sender alone, or by the receiver alone, who else waits at once. Lines of standard output:
 * who computes, bytes, seconds without and with computation until both ranks are done; medians of the repetitions. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPETITIONS = 9, LARGEST = 4 << 20 };

static char outgoing[LARGEST], incoming[LARGEST];

static int ascending(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

/* A processor that computes for so long, and does not look at messages. */
static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end) {
    }
}

/* One exchange, or one message from rank 0 to rank 1. */
static double transfer(int rank, int size, int sends, int receives, double seconds)
{
    MPI_Request requests[2];
    int count = 0, peer = 1 - rank;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    if (receives)
        MPI_Irecv(incoming, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[count++]);
    if (sends)
        MPI_Isend(outgoing, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[count++]);
    if (seconds > 0)
        compute(seconds);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    return MPI_Wtime() - begin;
}

/* The median of each rank, and of these the longer. */
static double median_of_transfers(int rank, int size, int sends, int receives, double seconds)
{
    double times[REPETITIONS], longer;
    transfer(rank, size, sends, receives, seconds);
    for (int i = 0; i < REPETITIONS; i++)
        times[i] = transfer(rank, size, sends, receives, seconds);
    qsort(times, REPETITIONS, sizeof *times, ascending);
    MPI_Allreduce(&times[REPETITIONS / 2], &longer, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longer;
}

int main(int argc, char **argv)
{
    static const char *const who[] = {"both", "sender", "receiver"};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(outgoing, 1, sizeof outgoing);
    for (int mode = 0; mode < 3; mode++) {
        int sends = mode == 0 || rank == 0, receives = mode == 0 || rank == 1;
        int computes = mode == 0 || rank == mode - 1;
        for (int size = 1 << 10; size <= LARGEST; size *= 4) {
            double alone = median_of_transfers(rank, size, sends, receives, 0);
            double with = median_of_transfers(rank, size, sends, receives, computes ? alone : 0);
            if (rank == 0)
                printf("%s,%d,%.9f,%.9f\n", who[mode], size, alone, with);
        }
    }
    MPI_Finalize();
    return 0;
}
