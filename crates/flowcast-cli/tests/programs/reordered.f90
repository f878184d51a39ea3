! Each process says its rank in the reordered communicator, its host, and its place in the grid of 2 x 4. With an argument it ends
! without MPI_Finalize, in which MPICH 4.0.2 over UCX may hang.
program reordered
  use mpi
  implicit none
  character(len=MPI_MAX_PROCESSOR_NAME) :: host
  integer :: ranks, grid, rank, cell, length, coords(2), ierror
  call MPI_Init(ierror)
  call MPI_Get_processor_name(host, length, ierror)
  call reorder_ranks(ranks, ierror)
  call reorder_grid((/ .false., .true. /), grid, ierror)
  call MPI_Comm_rank(ranks, rank, ierror)
  call MPI_Comm_rank(grid, cell, ierror)
  call MPI_Cart_coords(grid, cell, 2, coords, ierror)
  print '(I0, 1X, A, 1X, I0, A, I0)', rank, host(1:length), coords(1), ',', coords(2)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  if (command_argument_count() > 0) stop
  call MPI_Finalize(ierror)
end program reordered
