/* Times of a collective operation: `rules OPERATION ITERATIONS BYTES...` prints `BYTES,NANOSECONDS` for each size of the buffer, the
   median over iterations of the slowest rank's time. The operations are bcast, allreduce, allgather and alltoall. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 2 };
static char *from, *to;

static int compare(const void *one, const void *other) {
    double x = *(const double *)one, y = *(const double *)other;
    return (x > y) - (x < y);
}

static void operate(const char *name, int bytes, int ranks) {
    int block = bytes / ranks;
    if (!strcmp(name, "bcast")) MPI_Bcast(from, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (!strcmp(name, "allreduce"))
        MPI_Allreduce(from, to, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (!strcmp(name, "allgather")) MPI_Allgather(from, block, MPI_CHAR, to, block, MPI_CHAR, MPI_COMM_WORLD);
    if (!strcmp(name, "alltoall")) MPI_Alltoall(from, block, MPI_CHAR, to, block, MPI_CHAR, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, iterations = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double *times = malloc(iterations * sizeof *times);
    for (int argument = 3; argument < argc; argument++) {
        int bytes = atoi(argv[argument]);
        from = calloc(bytes, 1);
        to = calloc(bytes, 1);
        for (int iteration = -WARM_UP; iteration < iterations; iteration++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double own = MPI_Wtime(), slowest;
            operate(argv[1], bytes, ranks);
            own = MPI_Wtime() - own;
            MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            if (iteration >= 0) times[iteration] = slowest;
        }
        if (!rank) {
            qsort(times, iterations, sizeof *times, compare);
            printf("%d,%.0f\n", bytes, times[iterations / 2] * 1e9);
        }
        free(from);
        free(to);
    }
    free(times);
    MPI_Finalize();
}
