//! Functions in Fortran. The table has a `data` statement for each of its lines, because the standard limits the number of
//! continuation lines of a statement.

use std::fmt::Write as _;

use super::{NUMBERS_ON_A_LINE, ReorderSource, joined};

pub(super) fn write(source: &ReorderSource) -> String {
    let processes = source.new_ranks.len();
    let mut text: String = source
        .comment
        .iter()
        .map(|line| format!("! {line}\n"))
        .collect();
    text = text.replace("! \n", "!\n");
    let _ = write!(
        text,
        "subroutine reorder_ranks(reordered, ierror)
  use mpi
  implicit none
  integer, intent(out) :: reordered, ierror
  integer :: rank, processes
  ! New rank of each process, indexed by its rank in MPI_COMM_WORLD.
  integer, save :: new_rank(0:{})
",
        processes.saturating_sub(1)
    );
    for (line, ranks) in source.new_ranks.chunks(NUMBERS_ON_A_LINE).enumerate() {
        let first = line * NUMBERS_ON_A_LINE;
        let last = first + ranks.len() - 1;
        // A line may have 132 characters, which is enough for 16 ranks with up to seven digits.
        let _ = writeln!(
            text,
            "  data new_rank({first}:{last}) / &\n    {}/",
            joined(ranks, ",")
        );
    }
    let _ = write!(
        text,
        "
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, processes, ierror)
  if (processes /= {processes}) then
    print *, 'reorder_ranks: found', processes, 'processes, expected {processes}'
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end if
  call MPI_Comm_split(MPI_COMM_WORLD, 0, new_rank(rank), reordered, ierror)
end subroutine reorder_ranks
"
    );
    if let Some(dims) = &source.dims {
        text += &grid(dims);
    }
    text
}

fn grid(dims: &[u32]) -> String {
    let (count, cells, dims) = (dims.len(), joined(dims, " x "), joined(dims, ", "));
    format!(
        "
! Cartesian communicator of the program, {cells}, periodic in the dimensions where periods is true.
subroutine reorder_grid(periods, grid, ierror)
  use mpi
  implicit none
  logical, intent(in) :: periods({count})
  integer, intent(out) :: grid, ierror
  integer :: reordered, freed
  call reorder_ranks(reordered, ierror)
  call MPI_Cart_create(reordered, {count}, (/ {dims} /), periods, .false., grid, ierror)
  call MPI_Comm_free(reordered, freed)
end subroutine reorder_grid
"
    )
}
