/* Traffic of many nodes: `traffic alltoall BYTES REPEATS` or `traffic random MESSAGES SMALLEST LARGEST WORKLOADS SEED`, where all
   pairs have connected before; `traffic first ...`, as `random`, where they have not. Random messages have sizes with equal
   logarithms and two random ends; all are sent at once. Rank 0 prints a line for each repeat or workload, `number,seconds,bytes`:
   the time from the first rank's start until the last rank has all, and the most bytes that enter or leave a node. Payloads are
   checked at the end of each workload. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size, node, *node_of;

static uint64_t next(uint64_t *state) {       /* splitmix64 */
    uint64_t z = (*state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static void *room(size_t bytes) {
    void *place = malloc(bytes ? bytes : 1);
    if (!place) { fprintf(stderr, "no memory for %zu bytes\n", bytes); MPI_Abort(MPI_COMM_WORLD, 3); }
    return place;
}

static void find_nodes(void) {
    MPI_Comm here;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    node = rank;
    MPI_Bcast(&node, 1, MPI_INT, 0, here);
    node_of = room((size_t)size * sizeof *node_of);
    MPI_Allgather(&node, 1, MPI_INT, node_of, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Comm_free(&here);
}

/* Of the machine, the same for all ranks of a lab. MPI_Wtime is each rank's own. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* From when the first rank began until the last one ended, at rank 0. A rank that leaves the barrier late would find its messages
   half delivered. */
static double from_first_to_last(double start) {
    double own[2] = {now(), -start}, all[2];
    MPI_Reduce(own, all, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return all[0] + all[1];
}

/* All pairs connect over all rails. */
static void connect_all(void) {
    int bytes = 1 << 17;
    char *out = room((size_t)size * bytes), *in = room((size_t)size * bytes);
    memset(out, rank, (size_t)size * bytes);
    for (int repeat = 0; repeat < 2; repeat++) MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    free(out);
    free(in);
}

static void alltoall(int bytes, int repeats) {
    char *out = room((size_t)size * bytes), *in = room((size_t)size * bytes);
    memset(out, rank, (size_t)size * bytes);
    for (int repeat = 0; repeat < repeats; repeat++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
        double seconds = from_first_to_last(start);
        if (rank == 0) printf("%d,%.6f,%d\n", repeat, seconds, (size - 1) * bytes), fflush(stdout);
    }
    free(out);
    free(in);
}

struct message { int from, to, bytes; };

static int same(const unsigned char *bytes, int length, unsigned char value) {
    for (int i = 0; i < length; i++)
        if (bytes[i] != value) return 0;
    return 1;
}

static void random_traffic(int count, double smallest, double largest, int workload, uint64_t seed) {
    uint64_t state = seed * 1000003u + (uint64_t)workload;
    struct message *all = room((size_t)count * sizeof *all);
    unsigned char **buffers = room((size_t)count * sizeof *buffers);
    MPI_Request *requests = room((size_t)count * sizeof *requests);
    double *out = calloc((size_t)size, sizeof *out), *in = calloc((size_t)size, sizeof *in), most = 0;
    for (int i = 0; i < count; i++) {
        int from = (int)(next(&state) % (uint64_t)size), to;
        do to = (int)(next(&state) % (uint64_t)size); while (node_of[to] == node_of[from]);
        double part = (double)(next(&state) >> 11) / 9007199254740992.0;
        all[i] = (struct message){from, to, (int)(smallest * pow(largest / smallest, part))};
        out[node_of[from]] += all[i].bytes;
        in[node_of[to]] += all[i].bytes;
        buffers[i] = from == rank || to == rank ? room((size_t)all[i].bytes) : NULL;
        if (from == rank) memset(buffers[i], i & 255, (size_t)all[i].bytes);
        else if (to == rank) memset(buffers[i], ~i & 255, (size_t)all[i].bytes);
    }
    for (int i = 0; i < size; i++) most = fmax(most, fmax(out[i], in[i]));
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    int started = 0;
    for (int i = 0; i < count; i++)
        if (all[i].to == rank) MPI_Irecv(buffers[i], all[i].bytes, MPI_BYTE, all[i].from, i, MPI_COMM_WORLD, &requests[started++]);
    for (int i = 0; i < count; i++)
        if (all[i].from == rank) MPI_Isend(buffers[i], all[i].bytes, MPI_BYTE, all[i].to, i, MPI_COMM_WORLD, &requests[started++]);
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    double seconds = from_first_to_last(start);
    for (int i = 0; i < count; i++) {
        if (all[i].to == rank && !same(buffers[i], all[i].bytes, (unsigned char)i)) {
            fprintf(stderr, "rank %d: wrong payload from %d\n", rank, all[i].from);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        free(buffers[i]);
    }
    if (rank == 0) printf("%d,%.6f,%.0f\n", workload, seconds, most);
    fflush(stdout);
    free(all); free(buffers); free(requests); free(out); free(in);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    find_nodes();
    int first_contact = argc > 1 && !strcmp(argv[1], "first");
    if (!first_contact) connect_all();
    if (argc == 4 && !strcmp(argv[1], "alltoall")) alltoall(atoi(argv[2]), atoi(argv[3]));
    else if (argc == 7 && (first_contact || !strcmp(argv[1], "random")))
        for (int workload = 0; workload < atoi(argv[5]); workload++)
            random_traffic(atoi(argv[2]), atof(argv[3]), atof(argv[4]), workload, strtoull(argv[6], NULL, 10));
    else if (rank == 0) fprintf(stderr, "found other arguments, expected those at the top of traffic.c\n");
    MPI_Finalize();
    return 0;
}
