/* Micro-benchmark regions: every collective at several sizes, and the patterns of messages from which links and buses
   are found. `regions [LARGEST [SEED]]` goes up to LARGEST bytes a rank, by factors of four; SEED shuffles their order.
   Each region is marked by MPI_Pcontrol as `OPERATION BYTES`; roots take turns. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_REGIONS 400

static int rank, ranks;
static char *in, *out;
static int *counts, *places;

static void quiet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void barrier(int bytes, int i)
{
    (void)bytes, (void)i;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(int bytes, int i)
{
    MPI_Bcast(out, bytes, MPI_BYTE, i % ranks, MPI_COMM_WORLD);
}

static void gather(int bytes, int i)
{
    MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, i % ranks, MPI_COMM_WORLD);
}

static void gatherv(int bytes, int i)
{
    MPI_Gatherv(out, bytes, MPI_BYTE, in, counts, places, MPI_BYTE, i % ranks, MPI_COMM_WORLD);
}

static void scatter(int bytes, int i)
{
    MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, i % ranks, MPI_COMM_WORLD);
}

static void scatterv(int bytes, int i)
{
    MPI_Scatterv(out, counts, places, MPI_BYTE, in, bytes, MPI_BYTE, i % ranks, MPI_COMM_WORLD);
}

static void allgather(int bytes, int i)
{
    (void)i;
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgatherv(int bytes, int i)
{
    (void)i;
    MPI_Allgatherv(out, bytes, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int bytes, int i)
{
    (void)i;
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoallv(int bytes, int i)
{
    (void)bytes, (void)i;
    MPI_Alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
}

static void reduce(int bytes, int i)
{
    MPI_Reduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, i % ranks, MPI_COMM_WORLD);
}

static void allreduce(int bytes, int i)
{
    (void)i;
    MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter(int bytes, int i)
{
    (void)i;
    for (int r = 0; r < ranks; r++)
        counts[r] = bytes / 8;
    MPI_Reduce_scatter(out, in, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter_block(int bytes, int i)
{
    (void)i;
    MPI_Reduce_scatter_block(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void scan(int bytes, int i)
{
    (void)i;
    MPI_Scan(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void send(int bytes, int to)
{
    MPI_Send(out, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD);
}

static void receive(int bytes, int from)
{
    MPI_Recv(in, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* There and back between the first two ranks. */
static void pingpong(int bytes, int i)
{
    (void)i;
    if (rank == 0) {
        send(bytes, 1);
        receive(bytes, 1);
    } else if (rank == 1) {
        receive(bytes, 0);
        send(bytes, 0);
    }
}

/* Both ways at once between the first two ranks. */
static void exchange(int bytes, int i)
{
    (void)i;
    if (rank < 2)
        MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - rank, 1, in, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

/* The first rank sends to all others at once, and goes on when all have answered. */
static void fan_out(int bytes, int i)
{
    (void)i;
    if (rank > 0) {
        receive(bytes, 0);
        send(0, 0);
        return;
    }
    MPI_Request requests[ranks];
    for (int r = 1; r < ranks; r++)
        MPI_Isend(out, bytes, MPI_BYTE, r, 1, MPI_COMM_WORLD, &requests[r - 1]);
    for (int r = 1; r < ranks; r++)
        receive(0, r);
    MPI_Waitall(ranks - 1, requests, MPI_STATUSES_IGNORE);
}

/* All others send to the first rank at once, and go on when it has answered. */
static void fan_in(int bytes, int i)
{
    (void)i;
    if (rank > 0) {
        send(bytes, 0);
        receive(0, 0);
        return;
    }
    for (int r = 1; r < ranks; r++)
        receive(bytes, r);
    for (int r = 1; r < ranks; r++)
        send(0, r);
}

/* Each rank of the lower half sends to its partner in the upper half, and goes on when that has answered. */
static void pairs(int bytes, int i)
{
    (void)i;
    int half = ranks / 2;
    if (rank < half) {
        send(bytes, rank + half);
        receive(0, rank + half);
    } else if (rank < 2 * half) {
        receive(bytes, rank - half);
        send(0, rank - half);
    }
}

static const struct {
    const char *name;
    void (*run)(int bytes, int i);
} operations[] = {
    {"Barrier", barrier},
    {"Bcast", bcast},
    {"Gather", gather},
    {"Gatherv", gatherv},
    {"Scatter", scatter},
    {"Scatterv", scatterv},
    {"Allgather", allgather},
    {"Allgatherv", allgatherv},
    {"Alltoall", alltoall},
    {"Alltoallv", alltoallv},
    {"Reduce", reduce},
    {"Allreduce", allreduce},
    {"Reduce_scatter", reduce_scatter},
    {"Reduce_scatter_block", reduce_scatter_block},
    {"Scan", scan},
    {"pingpong", pingpong},
    {"exchange", exchange},
    {"fan-out", fan_out},
    {"fan-in", fan_in},
    {"pairs", pairs},
};

#define OPERATIONS (int)(sizeof operations / sizeof *operations)

static void run_region(int operation, int bytes)
{
    char name[64];
    int repetitions = bytes <= 4096 ? 32 : bytes <= 65536 ? 8 : 4;
    snprintf(name, sizeof name, "%s %d", operations[operation].name, bytes);
    for (int r = 0; r < ranks; r++) {
        counts[r] = bytes;
        places[r] = r * bytes;
    }
    /* The first one connects. */
    operations[operation].run(bytes, 0);
    quiet();
    quiet();
    MPI_Pcontrol(1, name);
    for (int i = 0; i < repetitions; i++)
        operations[operation].run(bytes, i);
    MPI_Pcontrol(-1, name);
}

int main(int argc, char **argv)
{
    int regions[MOST_REGIONS][2], count = 0;
    int largest = argc > 1 ? atoi(argv[1]) : 262144;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    in = calloc(ranks, largest), out = calloc(ranks, largest);
    counts = calloc(ranks, sizeof *counts), places = calloc(ranks, sizeof *places);
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int bytes = operation ? 16 : 0; bytes <= largest && count < MOST_REGIONS; bytes *= 4) {
            regions[count][0] = operation;
            regions[count++][1] = bytes;
            if (bytes == 0)
                break;
        }
    /* All ranks shuffle alike. */
    srand(argc > 2 ? atoi(argv[2]) : 1);
    for (int i = count - 1; i > 0; i--) {
        int j = rand() % (i + 1), was[2];
        memcpy(was, regions[i], sizeof was);
        memcpy(regions[i], regions[j], sizeof was);
        memcpy(regions[j], was, sizeof was);
    }
    for (int i = 0; i < count; i++)
        run_region(regions[i][0], regions[i][1]);
    MPI_Finalize();
    return 0;
}
