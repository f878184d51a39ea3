/* One message at a time from rank 0 to rank 1, each answered. `lone MESSAGES BYTES`; rank 0 prints `bad=B messages=M`. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, count = argc > 1 ? atoi(argv[1]) : 100, bytes = argc > 2 ? atoi(argv[2]) : 30000, bad = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned char *data = malloc((size_t)bytes);
    for (int i = 0; i < count; i++) {
        if (rank == 0) {
            for (int at = 0; at < bytes; at++) data[at] = (unsigned char)(i + at % 251);
            MPI_Send(data, bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD);
            MPI_Recv(&bad, 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            memset(data, 0, (size_t)bytes);
            MPI_Recv(data, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int at = 0; at < bytes; at++) bad += data[at] != (unsigned char)(i + at % 251);
            MPI_Send(&bad, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        }
    }
    if (rank == 0) printf("bad=%d messages=%d\n", bad, count);
    free(data);
    MPI_Finalize();
    return 0;
}
