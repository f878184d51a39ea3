/* Processes that come and go (bml_del_procs): spawns two children three times, exchanges checked messages, disconnects.
   Prints `bad=B messages=M`. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH = 6000, EACH = 100 };

static long bad;

static void exchange(MPI_Comm comm, int peers, int sign) {
    static unsigned char out[LENGTH], in[LENGTH];
    for (int round = 0; round < EACH; round++)
        for (int peer = 0; peer < peers; peer++) {
            memset(out, (round + sign) & 255, LENGTH);
            MPI_Sendrecv(out, LENGTH, MPI_BYTE, peer, 2, in, LENGTH, MPI_BYTE, peer, 2, comm, MPI_STATUS_IGNORE);
            for (int at = 0; at < LENGTH; at++) if (in[at] != ((round + 1 - sign) & 255)) { bad++; break; }
        }
}

int main(int argc, char **argv) {
    MPI_Comm parent, children;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (parent != MPI_COMM_NULL) {
        exchange(parent, 1, 1);
        MPI_Comm_disconnect(&parent);
    } else {
        for (int time = 0; time < 3; time++) {
            MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
            exchange(children, 2, 0);
            MPI_Comm_disconnect(&children);
        }
        printf("bad=%ld messages=%d\n", bad, 3 * 2 * EACH);
    }
    MPI_Finalize();
    return bad != 0;
}
