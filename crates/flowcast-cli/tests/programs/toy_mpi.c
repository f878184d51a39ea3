/* An MPI library of one process that nobody knows (with -DLIBRARY), and a program that is linked with it and ends with 9. */
#ifdef LIBRARY
#include <string.h>
#define ALIAS(name) __attribute__((weak, alias("P" name)))
int PMPI_Init(int *argc, char ***argv) { return 0; }
int PMPI_Finalize(void) { return 0; }
int PMPI_Barrier(int comm) { return 0; }
int PMPI_Comm_rank(int comm, int *rank) { return *rank = 0; }
int PMPI_Get_library_version(char *text, int *length) { return strcpy(text, "Toy MPI 1.0"), *length = 11, 0; }
int MPI_Init(int *argc, char ***argv) ALIAS("MPI_Init");
int MPI_Finalize(void) ALIAS("MPI_Finalize");
int MPI_Barrier(int comm) ALIAS("MPI_Barrier");
int MPI_Comm_rank(int comm, int *rank) ALIAS("MPI_Comm_rank");
#else
#include <stdio.h>
int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Barrier(int);
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(1);
  MPI_Finalize();
  puts("done");
  return 9;
}
#endif
