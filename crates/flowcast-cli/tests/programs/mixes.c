/* The call mixes of well-known programs, and every other thing that a recorder has to understand; the first argument
   says which. Four ranks or more. What each rank calls is written down in record.rs. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, ranks;
static double a[4096], b[4096];

static void work(int loops)
{
    volatile double sum = 0;
    for (int i = 0; i < loops * 100; i++)
        sum += i;
}

/* Irecv, Send, Wait with a partner; a reduction at the end. */
static void cg(void)
{
    int partner = rank ^ 1;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 100; i++) {
        MPI_Request request;
        work(5);
        MPI_Irecv(a, 700, MPI_DOUBLE, partner, 1, MPI_COMM_WORLD, &request);
        MPI_Send(b, 700, MPI_DOUBLE, partner, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Reduce(a, b, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
}

/* A wavefront of small messages along the ranks, half of them received from any source. */
static void lu(void)
{
    for (int i = 0; i < 200; i++) {
        if (rank > 0)
            MPI_Recv(a, 5, MPI_DOUBLE, i % 2 ? MPI_ANY_SOURCE : rank - 1, i % 2 ? MPI_ANY_TAG : 10, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        work(2);
        if (rank < ranks - 1)
            MPI_Send(a, 5, MPI_DOUBLE, rank + 1, 10, MPI_COMM_WORLD);
    }
    MPI_Allreduce(a, b, 5, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Integer sort: all to all in two sizes. */
static void is(void)
{
    int *counts = calloc(ranks, sizeof *counts), *places = calloc(ranks, sizeof *places);
    int *in = calloc(ranks * 8, sizeof *in), *out = calloc(ranks * 8, sizeof *out);
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    for (int i = 0; i < ranks; i++) {
        counts[i] = 1 + (i + rank) % 4;
        places[i] = 8 * i;
    }
    for (int i = 0; i < 10; i++) {
        MPI_Allreduce(in, out, 8, MPI_INT, MPI_SUM, dup);
        MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, dup);
        MPI_Alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, dup);
    }
    MPI_Comm_free(&dup);
    free(counts);
    free(places);
    free(in);
    free(out);
}

/* Transposes within rows and columns. */
static void ft(void)
{
    MPI_Comm row, column;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &column);
    for (int i = 0; i < 6; i++) {
        MPI_Alltoall(a, 64, MPI_DOUBLE, b, 64, MPI_DOUBLE, row);
        MPI_Bcast(a, 16, MPI_DOUBLE, 0, column);
    }
    MPI_Reduce(a, b, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* Hydrodynamics: messages to all others at once, then the time step. */
static void lulesh(void)
{
    MPI_Request requests[128];
    for (int i = 0; i < 20; i++) {
        int n = 0;
        for (int other = 0; other < ranks; other++)
            if (other != rank)
                MPI_Irecv(a + 64 * other, 64, MPI_DOUBLE, other, 1024, MPI_COMM_WORLD, &requests[n++]);
        for (int other = 0; other < ranks; other++)
            if (other != rank)
                MPI_Isend(b + 64 * other, 64, MPI_DOUBLE, other, 1024, MPI_COMM_WORLD, &requests[n++]);
        for (int k = 0; k < ranks - 1; k++)
            MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
        MPI_Waitall(ranks - 1, requests + ranks - 1, MPI_STATUSES_IGNORE);
        MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    }
}

/* Molecular dynamics: exchanges both ways whose size the receiver asks for. */
static void comd(void)
{
    for (int i = 0; i < 50; i++) {
        MPI_Status status;
        int count;
        MPI_Sendrecv(a, 100 + rank, MPI_BYTE, (rank + 1) % ranks, 5, b, 4096, MPI_BYTE, (rank + ranks - 1) % ranks, 5,
                     MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        if (count != 100 + (rank + ranks - 1) % ranks)
            MPI_Abort(MPI_COMM_WORLD, 9);
    }
}

/* Finite elements: receives from any source, then sends, then one wait for each. */
static void minife(void)
{
    for (int i = 0; i < 30; i++) {
        MPI_Request requests[2];
        MPI_Status status;
        int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
        MPI_Irecv(a, 32, MPI_DOUBLE, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(a + 32, 32, MPI_DOUBLE, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &requests[1]);
        MPI_Send(b, 32, MPI_DOUBLE, left, 99, MPI_COMM_WORLD);
        MPI_Send(b, 32, MPI_DOUBLE, right, 99, MPI_COMM_WORLD);
        MPI_Wait(&requests[1], &status);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* Multigrid set-up: what comes is found by asking. */
static void amg(void)
{
    int *counts = calloc(ranks, sizeof *counts), *places = calloc(ranks, sizeof *places);
    for (int i = 0; i < ranks; i++) {
        counts[i] = 3;
        places[i] = 3 * i;
    }
    for (int i = 0; i < 10; i++) {
        MPI_Request requests[2];
        int flag = 0, done = 0;
        MPI_Isend(b, 10 + i, MPI_INT, (rank + 1) % ranks, 4, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(b, 3, MPI_INT, (rank + 1) % ranks, 5, MPI_COMM_WORLD, &requests[1]);
        MPI_Status status;
        while (!flag)
            MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &flag, &status);
        MPI_Recv(a, 100, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Recv(a, 100, MPI_INT, status.MPI_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        while (!done)
            MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        MPI_Allgatherv(a, 3, MPI_INT, b, counts, places, MPI_INT, MPI_COMM_WORLD);
    }
    free(counts);
    free(places);
}

/* Cartesian communicators with a border, and a part of them. */
static void cart(void)
{
    int dims[2] = {2, ranks / 2}, periods[2] = {0, 0}, remain[2] = {0, 1}, up, down;
    MPI_Comm grid, row;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
    MPI_Cart_sub(grid, remain, &row);
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    for (int i = 0; i < 10; i++) {
        MPI_Request requests[4];
        MPI_Irecv(a, 8, MPI_DOUBLE, up, 1, grid, &requests[0]);
        MPI_Irecv(a + 8, 8, MPI_DOUBLE, down, 2, grid, &requests[1]);
        MPI_Isend(b, 8, MPI_DOUBLE, down, 1, grid, &requests[2]);
        MPI_Isend(b, 8, MPI_DOUBLE, up, 2, grid, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_SUM, row);
    }
    MPI_Comm_free(&row);
    MPI_Comm_free(&grid);
}

static int queried(void *state, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int freed(void *state)
{
    return MPI_SUCCESS;
}

static int cancelled(void *state, int complete)
{
    return MPI_SUCCESS;
}

/* What no replay has a model of: a request of the program's own, and a message in parts. */
static void unmodelled(void)
{
    MPI_Request own;
    MPI_Grequest_start(queried, freed, cancelled, NULL, &own);
    MPI_Grequest_complete(own);
    MPI_Wait(&own, MPI_STATUS_IGNORE);
#if MPI_VERSION >= 4
    MPI_Request parts[2];
    MPI_Psend_init(a, 2, 100, MPI_DOUBLE, (rank + 1) % ranks, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &parts[0]);
    MPI_Precv_init(b, 2, 100, MPI_DOUBLE, (rank + ranks - 1) % ranks, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &parts[1]);
    MPI_Startall(2, parts);
    MPI_Pready(1, parts[0]);
    MPI_Pready(0, parts[0]);
    MPI_Waitall(2, parts, MPI_STATUSES_IGNORE);
    MPI_Request_free(&parts[0]);
    MPI_Request_free(&parts[1]);
#endif
}

/* Questions about a ring of neighbours, and collectives between them. */
static void neighbours(void)
{
    int periods = 1, place, again;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periods, 0, &ring);
    MPI_Cart_coords(ring, rank, 1, &place);
    MPI_Cart_rank(ring, &place, &again);
    a[0] = a[1] = place;
    for (int i = 0; i < 2; i++)
        MPI_Neighbor_allgather(a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, ring);
#if MPI_VERSION >= 4
    MPI_Neighbor_allgather_c(a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, ring);
#else
    MPI_Neighbor_allgather(a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, ring);
#endif
    if (again != rank || b[0] != (place + ranks - 1) % ranks || b[3] != (place + 1) % ranks)
        MPI_Abort(MPI_COMM_WORLD, 9);
    MPI_Comm_free(&ring);
}

/* Requests that are started again and again, one of them from any source. */
static void persistent(void)
{
    MPI_Request requests[2];
    MPI_Recv_init(a, 16, MPI_DOUBLE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Ssend_init(b, 16, MPI_DOUBLE, (rank + 1) % ranks, 3, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 25; i++) {
        int index;
        MPI_Startall(2, requests);
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        MPI_Wait(&requests[1 - index], MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Immediate collectives that are waited for in another order, with buffers in place. */
static void immediate(void)
{
    for (int i = 0; i < 10; i++) {
        MPI_Request requests[3];
        int outcount, indices[3], left = 3;
        MPI_Iallreduce(MPI_IN_PLACE, a, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
        MPI_Ibcast(b, 100, MPI_DOUBLE, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
        MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
        left--;
        while (left > 0) {
            MPI_Waitsome(3, requests, &outcount, indices, MPI_STATUSES_IGNORE);
            left -= outcount;
        }
    }
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : a, a, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* Messages that are taken out of the queue before they are received, and a receive that is cancelled. */
static void matched(void)
{
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    for (int i = 0; i < 10; i++) {
        MPI_Isend(b, 5, MPI_INT, (rank + 1) % ranks, i, MPI_COMM_WORLD, &request);
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(a, 5, MPI_INT, &message, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Irecv(a, 5, MPI_INT, rank, 77, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Two groups with a communicator between them, and their union. */
static void groups(void)
{
    MPI_Comm half, between, both;
    int half_rank;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_rank(half, &half_rank);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 8, &between);
    if (rank % 2)
        MPI_Recv(a, 7, MPI_INT, half_rank, 2, between, MPI_STATUS_IGNORE);
    else
        MPI_Send(b, 7, MPI_INT, half_rank, 2, between);
    MPI_Intercomm_merge(between, rank % 2, &both);
    MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, both);
}

/* One-sided operations and a shared file. */
static void windows(void)
{
    MPI_Win window;
    MPI_File file;
    char name[] = "mixes.data";
    MPI_Win_create(a, sizeof a, sizeof a[0], MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(b, 10, MPI_DOUBLE, (rank + 1) % ranks, 0, 10, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, rank * 800, b, 100, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Regions, and a part that is not recorded. */
static void regions(void)
{
    MPI_Pcontrol(1, "solve");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(-1, "solve");
    MPI_Pcontrol(0);
    MPI_Barrier(MPI_COMM_WORLD);
    work(1000);
    MPI_Pcontrol(1);
    MPI_Pcontrol(2);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(-2);
}

static void *exchange(void *thread)
{
    int tag = *(int *)thread;
    static double in[4][64], out[64];
    for (int i = 0; i < 200; i++)
        if (rank % 2) {
            MPI_Recv(in[tag], 64, MPI_DOUBLE, rank - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, 64, MPI_DOUBLE, rank - 1, tag, MPI_COMM_WORLD);
        } else {
            MPI_Send(out, 64, MPI_DOUBLE, rank + 1, tag, MPI_COMM_WORLD);
            MPI_Recv(in[tag], 64, MPI_DOUBLE, rank + 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    return NULL;
}

/* Four threads, each with messages of its own. */
static void threads(void)
{
    pthread_t running[4];
    int tags[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        pthread_create(&running[i], NULL, exchange, &tags[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(running[i], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The last rank is killed in the middle, and then the others. */
static void killed(void)
{
    for (int i = 0; i < 3000; i++) {
        cg();
        if (i == 20 && rank == ranks - 1)
            raise(SIGKILL);
    }
}

/* No file of this process may grow any more; the program writes none. */
static void limited(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    for (int i = 0; i < 50; i++)
        cg();
}

/* Closes what somebody else has opened, and has a file of its own under the same number. */
static void closes(void)
{
    for (int number = 3; number < 4096; number++) {
        char name[64], path[4096] = {0};
        snprintf(name, sizeof name, "/proc/self/fd/%d", number);
        if (readlink(name, path, sizeof path - 1) < 0 || !strstr(path, "/rank-"))
            continue;
        snprintf(name, sizeof name, "own-%d", rank);
        dup2(open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), number);
    }
    for (int i = 0; i < 50; i++)
        cg();
}

/* Long and regular. */
static void loop(void)
{
    for (int i = 0; i < 100; i++)
        cg();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"cg", cg},           {"lu", lu},           {"is", is},           {"ft", ft},
               {"lulesh", lulesh},   {"comd", comd},       {"minife", minife},   {"amg", amg},
               {"cart", cart},       {"persistent", persistent}, {"immediate", immediate}, {"matched", matched},
               {"groups", groups},   {"windows", windows}, {"regions", regions}, {"threads", threads},
               {"neighbours", neighbours}, {"unmodelled", unmodelled}, {"killed", killed},   {"loop", loop},
               {"limited", limited}, {"closes", closes}};
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc > 1 && strcmp(argv[1], all[i].name) == 0)
            all[i].run();
    MPI_Finalize();
    return 0;
}
