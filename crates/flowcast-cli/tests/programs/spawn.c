/* Starts three children, which sum numbers among themselves and send one to their parent. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Comm parent, children;
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        if (rank == 0) {
            MPI_Recv(&sum, 1, MPI_INT, 0, 7, children, MPI_STATUS_IGNORE);
            printf("the children's sum is %d\n", sum);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm_disconnect(&children);
    } else {
        MPI_Allreduce(&(int){rank + 1}, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0) MPI_Send(&sum, 1, MPI_INT, 0, 7, parent);
        MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return 0;
}
