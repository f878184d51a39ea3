/* Rank 0 sends a message every five milliseconds, each on another of many communicators, so that one that is held up holds up
   those behind it on its own communicator alone. `late SECONDS BYTES`; rank 0 prints how many took longer than half a second to
   arrive, and `bad=B messages=M`. Both ranks are on one machine and have one clock. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMUNICATORS = 600, PER_SECOND = 200 };

int main(int argc, char **argv) {
    int rank, count = (int)(PER_SECOND * (argc > 1 ? atof(argv[1]) : 1)), bytes = argc > 2 ? atoi(argv[2]) : 4000;
    MPI_Comm all[COMMUNICATORS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < COMMUNICATORS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &all[i]);
    char *data = malloc((size_t)bytes * (size_t)count);
    MPI_Request *requests = malloc(sizeof *requests * (size_t)count);
    int *done = malloc(sizeof *done * (size_t)count), begun = 0, ended = 0, found;
    long result[2] = {0, 0};                                     /* late, bad */
    memset(data, rank ? 0 : 7, (size_t)bytes * (size_t)count);
    for (; rank && begun < count; begun++)
        MPI_Irecv(data + (size_t)begun * bytes, bytes, MPI_CHAR, 0, 0, all[begun % COMMUNICATORS], &requests[begun]);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    while (ended < count) {
        double now = MPI_Wtime();
        if (!rank && begun < count && now - start > (double)begun / PER_SECOND) {
            char *own = data + (size_t)begun * bytes;
            memcpy(own, &now, sizeof now);
            MPI_Isend(own, bytes, MPI_CHAR, 1, 0, all[begun % COMMUNICATORS], &requests[begun]);
            begun++;
        }
        MPI_Testsome(begun, requests, &found, done, MPI_STATUSES_IGNORE);
        for (int i = 0; rank && i < found; i++) {
            double sent;
            memcpy(&sent, data + (size_t)done[i] * bytes, sizeof sent);
            result[0] += MPI_Wtime() - sent > 0.5;
            result[1] += data[(size_t)done[i] * bytes + (size_t)bytes - 1] != 7;
        }
        if (found > 0) ended += found;
        usleep(500);
    }
    MPI_Bcast(result, 2, MPI_LONG, 1, MPI_COMM_WORLD);
    if (!rank) printf("late=%ld of %d\nbad=%ld messages=%d\n", result[0], count, result[1], count);
    MPI_Finalize();
    return 0;
}
