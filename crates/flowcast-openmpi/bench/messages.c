/* The test of Lichei, section 5.8.1: rank 0 sends N messages, rank 1 receives them and sends N back.
   Prints `N,bytes,us,Mbit/s`: the median time of one way and N * bytes over it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 32, LARGEST = 65536, SAMPLES = 50000 };

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double both_ways(int rank, int count, int size, char *bytes) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < count; i++)
            if (rank == way) MPI_Send(bytes + (size_t)i * size, size, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
            else MPI_Recv(bytes + (size_t)i * size, size, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return MPI_Wtime() - start;
}

static void point(int rank, int count, int size, double seconds, char *bytes) {
    static double times[SAMPLES];
    int taken = 0, more = 1;
    both_ways(rank, count, size, bytes);
    for (double start = MPI_Wtime(); more;) {
        times[taken++] = both_ways(rank, count, size, bytes);
        double gone = MPI_Wtime() - start;
        more = taken < SAMPLES && gone < (taken < 3 ? 0.3 : seconds);
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank) return;
    qsort(times, (size_t)taken, sizeof *times, ascending);
    double way = times[taken / 2] / 2;
    printf("%d,%d,%.3f,%.3f\n", count, size, way * 1e6, 8e-6 * count * size / way);
    fflush(stdout);
}

int main(int argc, char **argv) {
    /* The eager limit of TCP is 65536 bytes with ob1's header: one size just below, one just above. */
    static const int counts[] = {1, 8, 16, 32}, sizes[] = {1, 1024, 4096, 16384, 32768, 65000, 65536};
    int rank;
    char *bytes = calloc(MOST, LARGEST);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
        for (int count = 0; count < 4; count++) point(rank, counts[count], sizes[size], sizes[size] == 1 ? 0.3 : 0.05, bytes);
    MPI_Finalize();
    return 0;
}
