/* What a program may do to its threads and processes beside MPI. `suffer fork` starts other programs, then payloads go
   around; `suffer exit` ends the process while a thread is inside MPI; `suffer cancel` ends a thread that sends, then the
   process, since MPI's locks stay as they are. Rank 0 prints `bad=B messages=M`. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 50, LENGTH = 100000 };

static int rank, size;

static long around(void) {
    static unsigned char bytes[LENGTH];
    long bad = 0;
    for (int i = 0; i < MESSAGES; i++) {
        int from = (rank + size - 1) % size;
        memset(bytes, (rank + i) & 255, LENGTH);
        MPI_Sendrecv_replace(bytes, LENGTH, MPI_BYTE, (rank + 1) % size, 0, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int at = 0; at < LENGTH; at++) if (bytes[at] != ((from + i) & 255)) { bad++; break; }
    }
    return bad;
}

static void *go_on(void *what) {
    static unsigned char bytes[LENGTH];
    if (!strcmp(what, "exit")) MPI_Recv(bytes, LENGTH, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_cancel(pthread_self());
    /* Its write to the socket is where the thread may end. */
    MPI_Send(bytes, LENGTH, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    pthread_testcancel();
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    pthread_t thread;
    char *what = argc > 1 ? argv[1] : "fork";
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long own = around(), bad;
    if (!strcmp(what, "fork")) {
        pid_t child = fork();
        if (!child) { execl("/bin/true", "true", (char *)NULL); _exit(1); }
        waitpid(child, NULL, 0);
        if (!fork()) _exit(0);
        wait(NULL);
        own += system("true");
    }
    own += around();
    MPI_Reduce(&own, &bad, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank) printf("bad=%ld messages=%d\n", bad, 2 * MESSAGES * size);
    fflush(stdout);
    if (strcmp(what, "fork")) {
        void *result = NULL;
        MPI_Barrier(MPI_COMM_WORLD);
        while (rank) pause();
        pthread_create(&thread, NULL, go_on, what);
        usleep(20000);
        if (!strcmp(what, "exit")) exit(7);
        pthread_join(thread, &result);
        _exit(result == PTHREAD_CANCELED ? 7 : 1);
    }
    MPI_Finalize();
    return 0;
}
