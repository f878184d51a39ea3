/* Programs with several threads, of two ranks or more. The first argument says which; the others sleep or compute for so
   many microseconds. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;
static MPI_Request shared[100];

static double cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Computes for so many seconds of thread CPU time. */
static void compute(double seconds)
{
    for (double end = cpu() + seconds; cpu() < end;)
        ;
}

static void exchange(int tag, int count)
{
    char out[512] = {0}, in[512];
    for (int i = 0; i < count; i++)
        MPI_Sendrecv(out, sizeof out, MPI_CHAR, rank ^ 1, tag, in, sizeof in, MPI_CHAR, rank ^ 1, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

static void *communicate(void *tag)
{
    exchange(*(int *)tag, 2000);
    return NULL;
}

static void *compute_first(void *tag)
{
    compute(0.1);
    exchange(*(int *)tag, 1);
    return NULL;
}

/* Its requests are completed by the main thread. */
static void *begin(void *in)
{
    for (int i = 0; i < 50; i++) {
        MPI_Irecv((char *)in + i, 1, MPI_CHAR, rank ^ 1, i, MPI_COMM_WORLD, &shared[i]);
        MPI_Isend("x", 1, MPI_CHAR, rank ^ 1, i, MPI_COMM_WORLD, &shared[50 + i]);
    }
    return NULL;
}

static void start(int threads, void *(*work)(void *))
{
    pthread_t running[8];
    int tags[8];
    for (int i = 0; i < threads; i++) {
        tags[i] = i;
        pthread_create(&running[i], NULL, work, &tags[i]);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(running[i], NULL);
}

int main(int argc, char **argv)
{
    int provided;
    char in[50];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!strcmp(argv[1], "join")) {
        start(1, communicate);
    } else if (!strcmp(argv[1], "three")) {
        start(3, communicate);
    } else if (!strcmp(argv[1], "beside")) {
        /* The main thread computes while another one communicates, and both are done before the barrier. */
        pthread_t running;
        int tag = 0;
        pthread_create(&running, NULL, communicate, &tag);
        compute(0.1);
        pthread_join(running, NULL);
    } else if (!strcmp(argv[1], "both")) {
        start(2, compute_first);
    } else if (!strcmp(argv[1], "shared")) {
        pthread_t running;
        pthread_create(&running, NULL, begin, in);
        pthread_join(running, NULL);
        MPI_Waitall(100, shared, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
