/* Random messages with their payload checked: Send, Isend, Ssend, Issend, Sendrecv, wildcards, collectives, and the order
   of messages with the same tag. `payload MESSAGES SEED [LARGEST [threads]]`; rank 0 prints `bad=B messages=M`. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16, HEADER = 16 };

static int rank, size, largest = 262144;
static long bad, sent;
static uint64_t shared_state;                 /* equal on all ranks: who sends what to whom */
static unsigned char *out[WINDOW], *in[WINDOW];

static uint64_t next(uint64_t *state) {       /* splitmix64 */
    uint64_t z = (*state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static int random_size(void) {
    switch (next(&shared_state) % 8) {
    case 0: return 0;
    case 1: case 2: case 3: return (int)(next(&shared_state) % 300);
    case 4: case 5: return (int)(next(&shared_state) % 5000);
    case 6: return (int)(next(&shared_state) % 66000) % (largest + 1);
    default: return (int)(next(&shared_state) % (uint64_t)(largest + 1));
    }
}

static void fill(unsigned char *bytes, int length, uint64_t key) {
    uint64_t state = key;
    int at = 0;
    for (; at + 8 <= length; at += 8) { uint64_t word = next(&state); memcpy(bytes + at, &word, 8); }
    if (at < length) { uint64_t word = next(&state); memcpy(bytes + at, &word, (size_t)(length - at)); }
}

static void check(const unsigned char *bytes, int length, uint64_t key, const char *what) {
    static unsigned char *expected;
    if (!expected) expected = malloc((size_t)largest + 8);
    fill(expected, length, key);
    if (memcmp(bytes, expected, (size_t)length)) {
        if (bad++ < 5) fprintf(stderr, "rank %d: wrong payload of %d bytes in %s\n", rank, length, what);
    }
}

static uint64_t key(int from, int to, long round, int slot) {
    return ((uint64_t)round << 24) ^ ((uint64_t)from << 16) ^ ((uint64_t)to << 8) ^ (uint64_t)slot;
}

static void expect(int condition, const char *what) {
    if (!condition && bad++ < 5) fprintf(stderr, "rank %d: %s\n", rank, what);
}

/* A ring at a random distance: WINDOW messages with one tag, so they have to come in order. */
static void window(long round) {
    int distance = 1 + (int)(next(&shared_state) % (uint64_t)(size - 1));
    int to = (rank + distance) % size, from = (rank - distance + size) % size;
    int any_source = next(&shared_state) % 3 == 0, any_tag = next(&shared_state) % 3 == 0, kind = (int)(next(&shared_state) % 6);
    int lengths[WINDOW];
    MPI_Request requests[2 * WINDOW];
    MPI_Status statuses[2 * WINDOW];
    for (int i = 0; i < WINDOW; i++) lengths[i] = random_size();
    for (int i = 0; i < WINDOW; i++)
        MPI_Irecv(in[i], largest, MPI_BYTE, any_source ? MPI_ANY_SOURCE : from, any_tag ? MPI_ANY_TAG : 7, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < WINDOW; i++) {
        fill(out[i], lengths[i], key(rank, to, round, i));
        switch (kind == 5 ? i % 4 : kind) {
        case 0: MPI_Isend(out[i], lengths[i], MPI_BYTE, to, 7, MPI_COMM_WORLD, &requests[WINDOW + i]); break;
        case 1: MPI_Issend(out[i], lengths[i], MPI_BYTE, to, 7, MPI_COMM_WORLD, &requests[WINDOW + i]); break;
        case 2: MPI_Send(out[i], lengths[i], MPI_BYTE, to, 7, MPI_COMM_WORLD); requests[WINDOW + i] = MPI_REQUEST_NULL; break;
        case 3: MPI_Ssend(out[i], lengths[i], MPI_BYTE, to, 7, MPI_COMM_WORLD); requests[WINDOW + i] = MPI_REQUEST_NULL; break;
        default: MPI_Ibsend(out[i], lengths[i], MPI_BYTE, to, 7, MPI_COMM_WORLD, &requests[WINDOW + i]);
        }
    }
    MPI_Waitall(2 * WINDOW, requests, statuses);
    for (int i = 0; i < WINDOW; i++) {
        int length;
        MPI_Get_count(&statuses[i], MPI_BYTE, &length);
        expect(length == lengths[i] && statuses[i].MPI_SOURCE == from && statuses[i].MPI_TAG == 7, "out of order");
        check(in[i], lengths[i], key(from, rank, round, i), "a window");
    }
    sent += WINDOW;
    MPI_Barrier(MPI_COMM_WORLD); /* wildcards of the next window must not take messages of this one */
}

static void exchange(long round) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size, length = random_size();
    MPI_Status status;
    fill(out[0], length, key(rank, to, round, 0));
    MPI_Sendrecv(out[0], length, MPI_BYTE, to, 3, in[0], largest, MPI_BYTE, from, 3, MPI_COMM_WORLD, &status);
    check(in[0], length, key(from, rank, round, 0), "Sendrecv");
    sent++;
}

/* Every rank to rank `root`, which takes them as they come: each source's own messages in order. */
static void gather_any(long round) {
    enum { EACH = 4 };
    int root = (int)(next(&shared_state) % (uint64_t)size), length = random_size() % 70000;
    if (rank != root) {
        for (int i = 0; i < EACH; i++) {
            fill(out[i], length, key(rank, root, round, i));
            MPI_Send(out[i], length, MPI_BYTE, root, 11, MPI_COMM_WORLD);
        }
        sent += EACH;
    } else {
        int *seen = calloc((size_t)size, sizeof *seen);
        for (int i = 0; i < EACH * (size - 1); i++) {
            MPI_Status status;
            MPI_Recv(in[0], largest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            check(in[0], length, key(status.MPI_SOURCE, root, round, seen[status.MPI_SOURCE]++), "wildcards");
        }
        free(seen);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void collectives(long round) {
    int root = (int)(next(&shared_state) % (uint64_t)size), length = random_size() % 40000;
    fill(out[0], length, rank == root ? key(root, root, round, 0) : 0);
    MPI_Bcast(out[0], length, MPI_BYTE, root, MPI_COMM_WORLD);
    check(out[0], length, key(root, root, round, 0), "Bcast");
    long sum = 0, own = rank + 1;
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    expect(sum == (long)size * (size + 1) / 2, "wrong Allreduce");
    int each = 1 + length / size / 4;
    for (int i = 0; i < size; i++) fill(out[1] + i * each, each, key(rank, i, round, 1));
    MPI_Alltoall(out[1], each, MPI_BYTE, in[1], each, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) check(in[1] + i * each, each, key(i, rank, round, 1), "Alltoall");
}

int main(int argc, char **argv) {
    long wanted = argc > 1 ? atol(argv[1]) : 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    shared_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (argc > 3) largest = atoi(argv[3]);
    size_t buffered = (size_t)WINDOW * ((size_t)largest + MPI_BSEND_OVERHEAD) * 2;
    MPI_Buffer_attach(malloc(buffered), (int)buffered);
    for (int i = 0; i < WINDOW; i++) { out[i] = malloc((size_t)largest + 8); in[i] = malloc((size_t)largest + 8); }
    for (long round = 0; sent * size < wanted && size > 1; round++) {
        window(round);
        if (round % 4 == 1) exchange(round);
        if (round % 8 == 3) gather_any(round);
        if (round % 8 == 7) collectives(round);
        MPI_Allreduce(MPI_IN_PLACE, &sent, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    }
    long total = 0, all = sent * size;
    MPI_Reduce(&bad, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("bad=%ld messages=%ld\n", total, all);
    MPI_Finalize();
    return total != 0;
}
