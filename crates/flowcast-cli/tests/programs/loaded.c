/* A program that is not linked with MPI. It prints which functions of MPI it finds; with the name of a library it loads that for
   itself, runs seven barriers by it (the library's handle of all processes is the second argument), and ends with 5. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#pragma weak MPI_Init
extern int MPI_Init();

int main(int argc, char **argv) {
  printf("%d%d%d\n", MPI_Init != NULL, dlsym(RTLD_DEFAULT, "MPI_Init") != NULL, dlsym(RTLD_NEXT, "MPI_Send_c") != NULL);
  fflush(stdout);
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library) {
    int (*init)(void *, void *) = dlsym(library, "MPI_Init");
    int (*barrier)(void *) = dlsym(library, "MPI_Barrier");
    int (*finalize)(void) = dlsym(library, "MPI_Finalize");
    void *world = dlsym(library, "ompi_mpi_comm_world");
    init(NULL, NULL);
    for (int i = 0; i < 7; i++) barrier(world ? world : (void *)0x44000000);
    finalize();
  }
  return 5;
}
