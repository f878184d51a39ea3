/* Rank 0 sends windows of messages to rank 1 for a while. `stream SECONDS BYTES`; rank 0 prints `bad=B messages=M`. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16 };

int main(int argc, char **argv) {
    int rank, bytes = argc > 2 ? atoi(argv[2]) : 60000, goes_on = 1;
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    long messages = 0, bad = 0, all = 0;
    MPI_Request requests[WINDOW];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = malloc((size_t)bytes * WINDOW);
    double begin = MPI_Wtime();
    while (goes_on) {
        memset(data, rank == 0 ? (int)(messages % 251) : 255, (size_t)bytes * WINDOW);
        for (int slot = 0; slot < WINDOW; slot++) {
            char *own = data + (size_t)slot * (size_t)bytes;
            if (rank == 0) MPI_Isend(own, bytes, MPI_CHAR, 1, slot, MPI_COMM_WORLD, &requests[slot]);
            else MPI_Irecv(own, bytes, MPI_CHAR, 0, slot, MPI_COMM_WORLD, &requests[slot]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 1)
            for (size_t at = 0; at < (size_t)bytes * WINDOW; at += 997) bad += (unsigned char)data[at] != messages % 251;
        messages += WINDOW;
        goes_on = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Reduce(&bad, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("bad=%ld messages=%ld\n", all, messages);
    free(data);
    MPI_Finalize();
    return 0;
}
