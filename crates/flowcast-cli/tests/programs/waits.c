/* Barriers for two minutes, for whoever interrupts them. With an argument all memory is taken at first. */
#include <mpi.h>
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 1) {
    for (size_t bytes = 1 << 24; bytes >= 1024; bytes /= 2)
      while (malloc(bytes)) {}
    for (int i = 0; i < 60000; i++) {
      MPI_Sendrecv(NULL, 0, MPI_BYTE, 0, i, NULL, 0, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    write(1, "done\n", 5);
    // The library itself cannot end without memory.
    _exit(6);
  }
  write(1, "begun\n", 6);
  for (int i = 0; i < 12000; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(10000);
  }
  MPI_Finalize();
  return 0;
}
