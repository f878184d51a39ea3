/* Calls every collective operation of MPI, blocking, non-blocking, persistent, by neighbours and between two groups, with few and
   many elements, in place and with an operation that does not commute, and checks what comes out. */
#include <mpi.h>
#include <stdio.h>

enum { MOST_RANKS = 8, MOST = 20000 };
static int rank, ranks;
static int from[MOST * MOST_RANKS], to[MOST * MOST_RANKS];
static int counts[MOST_RANKS], starts[MOST_RANKS], bytes[MOST_RANKS];
static MPI_Aint long_bytes[MOST_RANKS];
static MPI_Datatype types[MOST_RANKS];

static void check(int found, int expected, const char *what, int count) {
    if (found == expected) return;
    printf("%s of %d on %d: found %d, expected %d\n", what, count, rank, found, expected);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The left one: associative, and another in another order. */
static void left(void *in, void *inout, int *length, MPI_Datatype *type) {
    for (int i = 0; i < *length; i++) ((int *)inout)[i] = ((int *)in)[i];
}

static void fill(int count) {
    for (int i = 0; i < count * ranks; i++) from[i] = rank + 1, to[i] = -1;
    for (int other = 0; other < ranks; other++) {
        counts[other] = count;
        starts[other] = other * count;
        bytes[other] = other * count * (int)sizeof(int);
        long_bytes[other] = bytes[other];
        types[other] = MPI_INT;
    }
}

typedef enum { BLOCKING, NON_BLOCKING, PERSISTENT, CALLS } Call;

#define DO(name, immediate, ...)                                                    \
    do {                                                                            \
        MPI_Request request = MPI_REQUEST_NULL;                                     \
        if (call == BLOCKING) MPI_##name(__VA_ARGS__);                              \
        if (call == NON_BLOCKING) MPI_##immediate(__VA_ARGS__, &request);           \
        if (call == PERSISTENT) {                                                   \
            MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request);                \
            MPI_Start(&request);                                                    \
        }                                                                           \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                      \
        if (call == PERSISTENT) MPI_Request_free(&request);                         \
    } while (0)

/* Each rank has its number plus one in all places before, and the checked block of each rank stands in its place. */
static void check_blocks(const char *what, int count) {
    for (int other = 0; other < ranks; other++)
        for (int i = 0; i < count; i++) check(to[starts[other] + i], other + 1, what, count);
}

static void move(Call call, int count, MPI_Comm comm) {
    int root = ranks - 1;
    fill(count);
    DO(Barrier, Ibarrier, comm);
    DO(Bcast, Ibcast, from, count, MPI_INT, root, comm);
    for (int i = 0; i < count; i++) check(from[i], root + 1, "bcast", count);
    fill(count);
    DO(Gather, Igather, from, count, MPI_INT, to, count, MPI_INT, root, comm);
    if (rank == root) check_blocks("gather", count);
    fill(count);
    DO(Gatherv, Igatherv, from, count, MPI_INT, to, counts, starts, MPI_INT, root, comm);
    if (rank == root) check_blocks("gatherv", count);
    DO(Scatter, Iscatter, from, count, MPI_INT, to, count, MPI_INT, root, comm);
    check(to[0], root + 1, "scatter", count);
    DO(Scatterv, Iscatterv, from, counts, starts, MPI_INT, to, count, MPI_INT, 0, comm);
    check(to[0], 1, "scatterv", count);
    DO(Allgather, Iallgather, from, count, MPI_INT, to, count, MPI_INT, comm);
    check_blocks("allgather", count);
    fill(count);
    DO(Allgatherv, Iallgatherv, from, count, MPI_INT, to, counts, starts, MPI_INT, comm);
    check_blocks("allgatherv", count);
    fill(count);
    DO(Alltoall, Ialltoall, from, count, MPI_INT, to, count, MPI_INT, comm);
    check_blocks("alltoall", count);
    fill(count);
    DO(Alltoallv, Ialltoallv, from, counts, starts, MPI_INT, to, counts, starts, MPI_INT, comm);
    check_blocks("alltoallv", count);
    fill(count);
    DO(Alltoallw, Ialltoallw, from, counts, bytes, types, to, counts, bytes, types, comm);
    check_blocks("alltoallw", count);
    for (int i = 0; i < count * ranks; i++) to[i] = rank + 1;
    DO(Alltoall, Ialltoall, MPI_IN_PLACE, 0, MPI_INT, to, count, MPI_INT, comm);
    check_blocks("alltoall in place", count);
    for (int i = 0; i < count * ranks; i++) to[i] = rank + 1;
    DO(Alltoallv, Ialltoallv, MPI_IN_PLACE, 0, 0, MPI_INT, to, counts, starts, MPI_INT, comm);
    check_blocks("alltoallv in place", count);
    for (int i = 0; i < count * ranks; i++) to[i] = rank + 1;
    DO(Alltoallw, Ialltoallw, MPI_IN_PLACE, 0, 0, 0, to, counts, bytes, types, comm);
    check_blocks("alltoallw in place", count);
}

/* With the sum, MPI's own or the program's, or with the left one. */
static void reduce(Call call, int count, MPI_Op op, int is_left, MPI_Comm comm) {
    int all = is_left ? 1 : ranks * (ranks + 1) / 2, before = is_left ? 1 : rank * (rank + 1) / 2;
    int last = count - 1;
    fill(count);
    DO(Reduce, Ireduce, from, to, count, MPI_INT, op, 0, comm);
    if (rank == 0) check(to[last], all, "reduce", count);
    DO(Allreduce, Iallreduce, from, to, count, MPI_INT, op, comm);
    check(to[last], all, "allreduce", count);
    DO(Reduce_scatter, Ireduce_scatter, from, to, counts, MPI_INT, op, comm);
    check(to[last], all, "reduce_scatter", count);
    fill(count);
    if (ranks > 1 && count > 1) counts[0]--, counts[1]++;
    DO(Reduce_scatter, Ireduce_scatter, from, to, counts, MPI_INT, op, comm);
    check(to[0], all, "irregular reduce_scatter", count);
    DO(Reduce_scatter_block, Ireduce_scatter_block, from, to, count, MPI_INT, op, comm);
    check(to[last], all, "reduce_scatter_block", count);
    DO(Scan, Iscan, from, to, count, MPI_INT, op, comm);
    check(to[last], is_left ? 1 : before + rank + 1, "scan", count);
    DO(Exscan, Iexscan, from, to, count, MPI_INT, op, comm);
    if (rank) check(to[last], before, "exscan", count);
}

/* On a ring: from the left and from the right. */
static void neighbours(Call call, int count, MPI_Comm ring) {
    int left = (rank + ranks - 1) % ranks + 1, right = (rank + 1) % ranks + 1;
    for (int way = 0; way < 5; way++) {
        fill(count);
        if (way == 0) DO(Neighbor_allgather, Ineighbor_allgather, from, count, MPI_INT, to, count, MPI_INT, ring);
        if (way == 1)
            DO(Neighbor_allgatherv, Ineighbor_allgatherv, from, count, MPI_INT, to, counts, starts, MPI_INT, ring);
        if (way == 2) DO(Neighbor_alltoall, Ineighbor_alltoall, from, count, MPI_INT, to, count, MPI_INT, ring);
        if (way == 3)
            DO(Neighbor_alltoallv, Ineighbor_alltoallv, from, counts, starts, MPI_INT, to, counts, starts, MPI_INT, ring);
        if (way == 4)
            DO(Neighbor_alltoallw, Ineighbor_alltoallw, from, counts, long_bytes, types, to, counts, long_bytes, types, ring);
        check(to[count - 1], left, "from the left", count);
        check(to[count], right, "from the right", count);
    }
}

/* Between the lower and the upper half: what comes from rank 0 of the one, and from all of the other. */
static void groups(Call call, int count, MPI_Comm comm) {
    int half = ranks / 2, is_lower = rank < half;
    int others = is_lower ? ranks - half : half, first = is_lower ? half : 0, sum = 0;
    for (int other = 0; other < others; other++) sum += first + other + 1;
    int root = !is_lower ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    fill(count);
    DO(Barrier, Ibarrier, comm);
    DO(Bcast, Ibcast, from, count, MPI_INT, root, comm);
    check(from[count - 1], is_lower ? rank + 1 : 1, "bcast between groups", count);
    fill(count);
    DO(Gather, Igather, from, count, MPI_INT, to, count, MPI_INT, root, comm);
    if (root == MPI_ROOT) check(to[count], half + 2, "gather between groups", count);
    DO(Gatherv, Igatherv, from, count, MPI_INT, to, counts, starts, MPI_INT, root, comm);
    if (root == MPI_ROOT) check(to[count], half + 2, "gatherv between groups", count);
    DO(Scatter, Iscatter, from, count, MPI_INT, to, count, MPI_INT, root, comm);
    if (!is_lower) check(to[0], 1, "scatter between groups", count);
    DO(Scatterv, Iscatterv, from, counts, starts, MPI_INT, to, count, MPI_INT, root, comm);
    if (!is_lower) check(to[0], 1, "scatterv between groups", count);
    DO(Allgather, Iallgather, from, count, MPI_INT, to, count, MPI_INT, comm);
    check(to[count], first + 2, "allgather between groups", count);
    DO(Allgatherv, Iallgatherv, from, count, MPI_INT, to, counts, starts, MPI_INT, comm);
    check(to[count], first + 2, "allgatherv between groups", count);
    DO(Alltoall, Ialltoall, from, count, MPI_INT, to, count, MPI_INT, comm);
    check(to[count], first + 2, "alltoall between groups", count);
    DO(Alltoallv, Ialltoallv, from, counts, starts, MPI_INT, to, counts, starts, MPI_INT, comm);
    check(to[count], first + 2, "alltoallv between groups", count);
    DO(Alltoallw, Ialltoallw, from, counts, bytes, types, to, counts, bytes, types, comm);
    check(to[count], first + 2, "alltoallw between groups", count);
    DO(Reduce, Ireduce, from, to, count, MPI_INT, MPI_SUM, root, comm);
    if (root == MPI_ROOT) check(to[0], sum, "reduce between groups", count);
    DO(Allreduce, Iallreduce, from, to, count, MPI_INT, MPI_SUM, comm);
    check(to[0], sum, "allreduce between groups", count);
    if (2 * half != ranks) return;
    DO(Reduce_scatter, Ireduce_scatter, from, to, counts, MPI_INT, MPI_SUM, comm);
    check(to[0], sum, "reduce_scatter between groups", count);
    DO(Reduce_scatter_block, Ireduce_scatter_block, from, to, count, MPI_INT, MPI_SUM, comm);
    check(to[0], sum, "reduce_scatter_block between groups", count);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int half = ranks / 2, is_round = 1;
    MPI_Comm group, between, ring;
    MPI_Comm_split(MPI_COMM_WORLD, rank < half, 0, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, rank < half ? half : 0, 0, &between);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &is_round, 0, &ring);
    MPI_Op keep_left;
    MPI_Op_create(left, 0, &keep_left);
    int sizes[] = {1, 600, MOST};
    for (Call call = 0; call < CALLS; call++)
        for (int size = 0; size < 3; size++) {
            move(call, sizes[size], MPI_COMM_WORLD);
            reduce(call, sizes[size], MPI_SUM, 0, MPI_COMM_WORLD);
            reduce(call, sizes[size], keep_left, 1, MPI_COMM_WORLD);
            neighbours(call, sizes[size], ring);
            groups(call, sizes[size], between);
        }
    MPI_Op_free(&keep_left);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&between);
    MPI_Comm_free(&group);
    if (rank == 0) printf("all is right\n");
    MPI_Finalize();
}
