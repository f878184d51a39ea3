/* The same messages under each MPI library: point to point, immediate, collective. Rank 0 prints which functions it finds by a
   weak reference and by the dynamic linker, and that each rank got what was sent. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#pragma weak MPI_Send_c
#pragma weak MPI_Recv_c
#pragma weak MPI_Session_init
#pragma weak MPI_Isendrecv
#pragma weak mpi_send_
#pragma weak ompi_send_f
extern int MPI_Send_c(), MPI_Recv_c(), mpi_send_(), ompi_send_f();

static const char *names[] = {"MPI_Send", "MPI_Send_c", "MPI_Recv_c", "MPI_Bcast_c", "MPI_Isendrecv", "MPI_Bcast_init",
                              "MPI_Session_init", "mpi_send_", "mpi_send_f08_", "ompi_send_f", "MPI_Pready"};

static void print_functions(void) {
  printf("weak: %d%d%d%d\n", MPI_Send_c != NULL, MPI_Recv_c != NULL, mpi_send_ != NULL, ompi_send_f != NULL);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    printf("%s: %d%d\n", names[i], dlsym(RTLD_DEFAULT, names[i]) != NULL, dlsym(RTLD_NEXT, names[i]) != NULL);
}

int main(int argc, char **argv) {
  int rank, size, level, flag;
  double sums[3] = {1, 2, 3}, all[3];
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int *data = calloc(1000 * size, sizeof(int)), *more = calloc(1000 * size, sizeof(int));
  int next = (rank + 1) % size, last = (rank + size - 1) % size, wrong = 0;
  for (int step = 0; step < 10; step++) {
    data[0] = 100 * rank + step;
    MPI_Irecv(more, 1000, MPI_INT, MPI_ANY_SOURCE, step, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data, 1000, MPI_INT, next, step, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    wrong += statuses[0].MPI_SOURCE != last || more[0] != 100 * last + step;
    MPI_Sendrecv(data, 100, MPI_DOUBLE, next, 3, more, 100, MPI_DOUBLE, last, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == 0)
    for (int from = 1; from < size; from++) MPI_Recv(more, 1000, MPI_BYTE, from, 7, MPI_COMM_WORLD, &statuses[0]);
  else
    MPI_Send(data, 17, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
  do MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE); while (0);
  MPI_Bcast(data, 500, MPI_INT, size - 1, MPI_COMM_WORLD);
  MPI_Allreduce(sums, all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Alltoall(data, 8, MPI_INT, more, 8, MPI_INT, MPI_COMM_WORLD);
  MPI_Reduce(rank ? sums : MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  wrong += all[2] != 3.0 * size;
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Barrier(half);
  MPI_Comm_free(&half);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d ranks, %d wrong\n", size, wrong);
    print_functions();
  }
  MPI_Finalize();
  return argc > 1 ? atoi(argv[1]) : 0;
}
