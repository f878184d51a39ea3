/* Each rank says where it runs: rank, host, processors that it may use. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    char host[MPI_MAX_PROCESSOR_NAME], line[256], cpus[256] = "";
    int rank, length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_processor_name(host, &length);
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        sscanf(line, "Cpus_allowed_list: %255s", cpus);
    printf("%d %s %s\n", rank, host, cpus);
    MPI_Finalize();
    return 0;
}
