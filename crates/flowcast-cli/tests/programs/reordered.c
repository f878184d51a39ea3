/* Each process says its rank in the reordered communicator, its host, and its place in the grid of 2 x 4. With an argument it ends
 * without MPI_Finalize, in which MPICH 4.0.2 over UCX may hang. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int reorder_ranks(MPI_Comm *reordered);
int reorder_grid(const int periods[2], MPI_Comm *grid);

int main(int argc, char **argv)
{
    char host[MPI_MAX_PROCESSOR_NAME];
    int rank, cell, length, coords[2], periods[2] = {0, 1};
    MPI_Comm reordered, grid;
    MPI_Init(&argc, &argv);
    MPI_Get_processor_name(host, &length);
    reorder_ranks(&reordered);
    reorder_grid(periods, &grid);
    MPI_Comm_rank(reordered, &rank);
    MPI_Comm_rank(grid, &cell);
    MPI_Cart_coords(grid, cell, 2, coords);
    printf("%d %s %d,%d\n", rank, host, coords[0], coords[1]);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1)
        _exit(0);
    MPI_Finalize();
    return 0;
}
