/* MPI_THREAD_MULTIPLE: threads of two ranks and more exchange random messages, each pair of threads with a communicator
   of its own; payloads are checked. `threads MESSAGES-PER-THREAD`; rank 0 prints `bad=B messages=M`. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, WINDOW = 8, LARGEST = 100000 };

static int rank, size;
static long wanted, bad[THREADS], done[THREADS];
static MPI_Comm comms[THREADS];

static void *work(void *argument) {
    int thread = *(int *)argument;
    unsigned seed = (unsigned)thread + 1; /* equal on all ranks */
    unsigned char *out[WINDOW], *in[WINDOW];
    for (int i = 0; i < WINDOW; i++) { out[i] = malloc(LARGEST); in[i] = malloc(LARGEST); }
    while (done[thread] < wanted) {
        MPI_Request requests[2 * WINDOW];
        int lengths[WINDOW], to = (rank + 1) % size, from = (rank + size - 1) % size;
        for (int i = 0; i < WINDOW; i++) {
            lengths[i] = rand_r(&seed) % (rand_r(&seed) % 4 ? 3000 : LARGEST);
            memset(out[i], (rank * 37 + thread * 11 + (int)done[thread] + i) & 255, (size_t)lengths[i]);
            memset(in[i], 0xEE, LARGEST);
            MPI_Irecv(in[i], LARGEST, MPI_BYTE, from, 5, comms[thread], &requests[i]);
        }
        for (int i = 0; i < WINDOW; i++) MPI_Isend(out[i], lengths[i], MPI_BYTE, to, 5, comms[thread], &requests[WINDOW + i]);
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < WINDOW; i++)
            for (int at = 0; at < lengths[i]; at++)
                if (in[i][at] != ((from * 37 + thread * 11 + (int)done[thread] + i) & 255)) { bad[thread]++; break; }
        done[thread] += WINDOW;
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    wanted = argc > 1 ? atol(argv[1]) : 1000;
    if (provided < MPI_THREAD_MULTIPLE) { if (!rank) puts("bad=1 no MPI_THREAD_MULTIPLE"); MPI_Finalize(); return 1; }
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++) { numbers[i] = i; pthread_create(&threads[i], NULL, work, &numbers[i]); }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    long sums[2] = {0, 0}, all[2];
    for (int i = 0; i < THREADS; i++) { sums[0] += bad[i]; sums[1] += done[i]; }
    MPI_Reduce(sums, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank) printf("bad=%ld messages=%ld\n", all[0], all[1]);
    MPI_Finalize();
    return sums[0] != 0;
}
