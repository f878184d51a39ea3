/* What a reduction combines: `combined OPERATION COUNT...` prints for vectors of these many integers, or blocks of a
   reduce-scatter, and for each rank how many elements each call of the operation had. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };
static int calls, lengths[MOST];

static void sum(void *in, void *inout, int *length, MPI_Datatype *type) {
    if (calls < MOST) lengths[calls++] = *length;
    for (int i = 0; i < *length; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void reduce(const char *name, int count, int ranks, MPI_Op op) {
    int elements = count * ranks;
    int *from = calloc(elements, sizeof(int)), *to = calloc(elements, sizeof(int));
    if (!strcmp(name, "Allreduce")) MPI_Allreduce(from, to, count, MPI_INT, op, MPI_COMM_WORLD);
    if (!strcmp(name, "Reduce")) MPI_Reduce(from, to, count, MPI_INT, op, 0, MPI_COMM_WORLD);
    if (!strcmp(name, "Reduce_scatter_block"))
        MPI_Reduce_scatter_block(from, to, count, MPI_INT, op, MPI_COMM_WORLD);
    if (!strcmp(name, "Reduce_scatter")) {
        int *counts = calloc(ranks, sizeof(int));
        for (int rank = 0; rank < ranks; rank++) counts[rank] = count;
        MPI_Reduce_scatter(from, to, counts, MPI_INT, op, MPI_COMM_WORLD);
        free(counts);
    }
    free(from);
    free(to);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Op op;
    MPI_Op_create(sum, 1, &op);
    for (int argument = 2; argument < argc; argument++) {
        calls = 0;
        reduce(argv[1], atoi(argv[argument]), ranks, op);
        if (rank) {
            MPI_Send(lengths, calls, MPI_INT, 0, 0, MPI_COMM_WORLD);
            continue;
        }
        for (int other = 0; other < ranks; other++) {
            MPI_Status status;
            if (other) {
                MPI_Recv(lengths, MOST, MPI_INT, other, 0, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_INT, &calls);
            }
            printf("%s of %d on %d:", argv[1], atoi(argv[argument]), other);
            for (int call = 0; call < calls; call++) printf(" %d", lengths[call]);
            printf("\n");
        }
    }
    MPI_Op_free(&op);
    MPI_Finalize();
}
