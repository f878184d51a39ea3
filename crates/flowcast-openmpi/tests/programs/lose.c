/* A rail is lost in the middle: as a PML with failover would, both ranks take the first network of the other out
   (bml_del_proc_btl) between two halves; payloads are checked. Rank 0 prints `bad=B messages=M`. */
#include "ompi_config.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/proc/proc.h"

enum { EACH = 500, WINDOW = 10 };

static long bad, sent;

static void half(int other, int rank) {
    static unsigned char out[WINDOW][8000], in[WINDOW][8000];
    for (int round = 0; round < EACH / WINDOW; round++) {
        MPI_Request requests[2 * WINDOW];
        for (int i = 0; i < WINDOW; i++) {
            memset(out[i], (rank + round + i) & 255, sizeof out[i]);
            MPI_Irecv(in[i], sizeof in[i], MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[i]);
        }
        for (int i = 0; i < WINDOW; i++) MPI_Isend(out[i], sizeof out[i], MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[WINDOW + i]);
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < WINDOW; i++)
            for (size_t at = 0; at < sizeof in[i]; at++) if (in[i][at] != ((other + round + i) & 255)) { bad++; break; }
        sent += WINDOW;
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    half(1 - rank, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    mca_bml_base_module_t *bml = dlsym(RTLD_DEFAULT, "mca_bml");
    opal_process_name_t name = ompi_proc_local_proc->super.proc_name;
    name.vpid = (uint32_t)(1 - rank);
    ompi_proc_t *process = (ompi_proc_t *)ompi_proc_for_name(name);
    mca_bml_base_endpoint_t *endpoint = process->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
    if (endpoint->btl_send.arr_size < 2) { puts("bad=1 one network only"); MPI_Abort(MPI_COMM_WORLD, 1); }
    bml->bml_del_proc_btl(process, endpoint->btl_send.bml_btls[0].btl);
    MPI_Barrier(MPI_COMM_WORLD);
    half(1 - rank, rank);
    long all[2], own[2] = {bad, sent};
    MPI_Reduce(own, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank) printf("bad=%ld messages=%ld\n", all[0], all[1]);
    MPI_Finalize();
    return bad != 0;
}
