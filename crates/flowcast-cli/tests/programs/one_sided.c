/* One-sided communication under each kind of synchronisation; the first argument says which. Four ranks. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, right, left;
static double mine[4096], other[4096], result[16];
static MPI_Win window;

/* Ten rounds of a put, a get and an accumulate between fences. */
static void fence(void)
{
    MPI_Win_fence(0, window);
    for (int i = 0; i < 10; i++) {
        MPI_Put(other, 1000, MPI_DOUBLE, right, 0, 1000, MPI_DOUBLE, window);
        MPI_Get(other + 2000, 500, MPI_DOUBLE, left, 1000, 500, MPI_DOUBLE, window);
        MPI_Accumulate(other, 100, MPI_DOUBLE, right, 2000, 100, MPI_DOUBLE, MPI_SUM, window);
        MPI_Win_fence(0, window);
    }
}

/* A counter under exclusive locks, then reads under shared ones. */
static void locks(void)
{
    for (int i = 0; i < 5; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Get(result, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, window);
        MPI_Win_flush(0, window);
        result[0] += 1;
        MPI_Put(result, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(result, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, window);
    MPI_Win_unlock(0, window);
    if (result[0] != 5 * ranks)
        MPI_Abort(MPI_COMM_WORLD, 9);
}

/* Fetches, swaps and requests under a lock of all. */
static void atomics(void)
{
    double one = 1;
    long wanted = 0, swapped = 1, found;
    MPI_Request requests[3];
    MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&one, result, MPI_DOUBLE, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    MPI_Compare_and_swap(&swapped, &wanted, &found, MPI_LONG, right, 8, window);
    MPI_Get_accumulate(other, 10, MPI_DOUBLE, result, 10, MPI_DOUBLE, right, 100, 10, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_flush_all(window);
    MPI_Rput(other, 200, MPI_DOUBLE, right, 200, 200, MPI_DOUBLE, window, &requests[0]);
    MPI_Rget(other + 2000, 300, MPI_DOUBLE, left, 400, 300, MPI_DOUBLE, window, &requests[1]);
    MPI_Raccumulate(other, 50, MPI_DOUBLE, right, 700, 50, MPI_DOUBLE, MPI_SUM, window, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Put(other, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, 1, MPI_DOUBLE, window);
    MPI_Win_unlock_all(window);
}

/* Each rank writes to its right neighbour, which exposes its memory to it alone. */
static void pscw(void)
{
    MPI_Group all, origins, targets;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &left, &origins);
    MPI_Group_incl(all, 1, &right, &targets);
    for (int i = 0; i < 10; i++) {
        int done = i % 2;
        MPI_Win_post(origins, 0, window);
        MPI_Win_start(targets, 0, window);
        MPI_Put(other, 1000, MPI_DOUBLE, right, 0, 1000, MPI_DOUBLE, window);
        MPI_Win_complete(window);
        if (done)
            MPI_Win_wait(window);
        while (!done)
            MPI_Win_test(window, &done);
    }
    MPI_Group_free(&origins);
    MPI_Group_free(&targets);
    MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"fence", fence}, {"locks", locks}, {"atomics", atomics}, {"pscw", pscw}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    right = (rank + 1) % ranks;
    left = (rank + ranks - 1) % ranks;
    MPI_Win_create(mine, sizeof mine, sizeof mine[0], MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc > 1 && strcmp(argv[1], all[i].name) == 0)
            all[i].run();
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
