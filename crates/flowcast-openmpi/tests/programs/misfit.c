/* Rank 0 sends rank 1 forty bytes on the tag of pieces that are none, and waits for an answer that never comes. */
#include "ompi_config.h"

#include <mpi.h>
#include <string.h>

#include "ompi/mca/bml/bml.h"
#include "ompi/proc/proc.h"

enum { TAG_OF_PIECES = 0xF6 };

int main(int argc, char **argv) {
    int rank, none = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv_replace(&none, 1, MPI_INT, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!rank) {
        opal_process_name_t name = ompi_proc_local_proc->super.proc_name;
        name.vpid = 1;
        ompi_proc_t *process = (ompi_proc_t *)ompi_proc_for_name(name);
        mca_bml_base_endpoint_t *endpoint = process->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
        mca_bml_base_btl_t *rail = &endpoint->btl_send.bml_btls[0];
        uint32_t flags = MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
        mca_btl_base_descriptor_t *bytes = rail->btl->btl_alloc(rail->btl, rail->btl_endpoint, MCA_BTL_NO_ORDER, 40, flags);
        memset(bytes->des_segments->seg_addr.pval, 'x', 40);
        rail->btl->btl_send(rail->btl, rail->btl_endpoint, bytes, TAG_OF_PIECES);
    }
    MPI_Recv(&none, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
