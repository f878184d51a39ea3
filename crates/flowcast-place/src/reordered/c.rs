//! Functions in C: `reorder_ranks`, and `reorder_grid` if the program has a Cartesian communicator.

use super::{NUMBERS_ON_A_LINE, ReorderSource, joined};

pub(super) fn write(source: &ReorderSource) -> String {
    let processes = source.new_ranks.len();
    let comment: String = source
        .comment
        .iter()
        .map(|line| format!(" * {line}\n"))
        .collect();
    let table: Vec<String> = source
        .new_ranks
        .chunks(NUMBERS_ON_A_LINE)
        .map(|ranks| format!("    {}", joined(ranks, ", ")))
        .collect();
    let ranks = format!(
        "/*
{comment} */
#include <mpi.h>
#include <stdio.h>

/* New rank of each process, indexed by its rank in MPI_COMM_WORLD. */
static const int new_rank[{processes}] = {{
{}
}};

int reorder_ranks(MPI_Comm *reordered)
{{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != {processes}) {{
        fprintf(stderr, \"reorder_ranks: found %d processes, expected {processes}\\n\", size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }}
    return MPI_Comm_split(MPI_COMM_WORLD, 0, new_rank[rank], reordered);
}}
",
        table.join(",\n")
    )
    .replace(" * \n", " *\n");
    let grid = source.dims.as_ref().map(|dims| grid(dims));
    ranks + &grid.unwrap_or_default()
}

fn grid(dims: &[u32]) -> String {
    let (count, cells, dims) = (dims.len(), joined(dims, " x "), joined(dims, ", "));
    format!(
        "
/* Cartesian communicator of the program, {cells}, periodic in the dimensions where periods is not 0. */
int reorder_grid(const int periods[{count}], MPI_Comm *grid)
{{
    static const int dims[{count}] = {{{dims}}};
    MPI_Comm reordered;
    int failed = reorder_ranks(&reordered);
    if (failed)
        return failed;
    failed = MPI_Cart_create(reordered, {count}, dims, periods, 0, grid);
    MPI_Comm_free(&reordered);
    return failed;
}}
"
    )
}
