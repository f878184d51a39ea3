/* Collectives between neighbours on each kind of topology; the first argument says which. Four ranks. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static double out[4096], in[4096];

/* A row of ranks without the ends joined: the ranks at the border have one neighbour. */
static void row(void)
{
    int open = 0;
    MPI_Comm row;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &open, 0, &row);
    for (int i = 0; i < 10; i++)
        MPI_Neighbor_alltoall(out, 100, MPI_DOUBLE, in, 100, MPI_DOUBLE, row);
    MPI_Comm_free(&row);
}

/* A ring, with requests; each neighbour of a rank gets a part of another size. */
static void ring(void)
{
    int closed = 1, counts[2] = {10 + rank, 20 + rank}, places[2] = {0, 100};
    int got[2] = {20 + (rank + ranks - 1) % ranks, 10 + (rank + 1) % ranks};
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &closed, 0, &ring);
    for (int i = 0; i < 5; i++) {
        MPI_Request requests[2];
        MPI_Ineighbor_alltoallv(out, counts, places, MPI_DOUBLE, in, got, places, MPI_DOUBLE, ring, &requests[0]);
        MPI_Ineighbor_allgather(out, 4, MPI_DOUBLE, in + 1000, 4, MPI_DOUBLE, ring, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Comm_free(&ring);
}

/* Every rank tells rank 0, which answers nobody. */
static void star(void)
{
    int centre = 0, sources[4] = {1, 2, 3}, incoming = rank == 0 ? ranks - 1 : 0;
    MPI_Datatype types[4] = {MPI_DOUBLE, MPI_DOUBLE, MPI_DOUBLE, MPI_DOUBLE};
    int counts[4] = {50, 50, 50, 50};
    MPI_Aint places[4] = {0, 400, 800, 1200};
    MPI_Comm star;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, incoming, sources, MPI_UNWEIGHTED, rank != 0, &centre, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &star);
    for (int i = 0; i < 3; i++)
        MPI_Neighbor_alltoallw(out, counts, places, types, in, counts, places, types, star);
    MPI_Comm_free(&star);
}

/* Two pairs. */
static void pairs(void)
{
    int *index = calloc(ranks, sizeof *index), *edges = calloc(ranks, sizeof *edges);
    MPI_Comm pairs;
    for (int i = 0; i < ranks; i++) {
        index[i] = i + 1;
        edges[i] = i ^ 1;
    }
    MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, 0, &pairs);
    for (int i = 0; i < 4; i++)
        MPI_Neighbor_allgather(out, 8, MPI_DOUBLE, in, 8, MPI_DOUBLE, pairs);
    MPI_Comm_free(&pairs);
    free(index);
    free(edges);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"row", row}, {"ring", ring}, {"star", star}, {"pairs", pairs}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc > 1 && strcmp(argv[1], all[i].name) == 0)
            all[i].run();
    MPI_Finalize();
    return 0;
}
