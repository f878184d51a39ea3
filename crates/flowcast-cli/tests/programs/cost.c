/* What recording costs: the same call with recording on and off, by turns. Prints ns per call. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 60, CALLS = 20000 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static double probes(void)
{
    int flag;
    double begin = MPI_Wtime();
    for (int call = 0; call < CALLS; call++)
        MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    return (MPI_Wtime() - begin) / CALLS * 1e9;
}

/* Two recorded calls at a time. */
static double messages(void)
{
    char out[8] = "message", in[8];
    double begin = MPI_Wtime();
    for (int call = 0; call < CALLS / 2; call++) {
        MPI_Request request;
        MPI_Irecv(in, 8, MPI_CHAR, 0, 3, MPI_COMM_SELF, &request);
        MPI_Send(out, 8, MPI_CHAR, 0, 3, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return (MPI_Wtime() - begin) / (CALLS / 2 * 3) * 1e9;
}

static void report(const char *name, double (*work)(void))
{
    double on[ROUNDS], off[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Pcontrol(1);
        on[round] = work();
        MPI_Pcontrol(0);
        off[round] = work();
    }
    MPI_Pcontrol(1);
    double with = median(on), without = median(off);
    printf("%s %.1f %.1f %.1f\n", name, without, with, with - without);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    probes();
    messages();
    report("iprobe", probes);
    report("message", messages);
    MPI_Finalize();
    return 0;
}
