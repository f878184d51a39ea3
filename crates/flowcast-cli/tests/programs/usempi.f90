! The same calls by mpif.h, the module mpi and the module mpi_f08; what each rank calls is written down in record.rs.
program usempi
  use mpi
  implicit none
  integer :: rank, ranks, ierr, i, left, right, grid, half
  integer :: requests(2), persistent(2), status(MPI_STATUS_SIZE)
  logical :: flag, periods(1)
  double precision :: a(64), b(64)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)
  do i = 1, 50
     call MPI_Irecv(a, 64, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, requests(1), ierr)
     call MPI_Isend(b, 64, MPI_DOUBLE_PRECISION, right, 4, MPI_COMM_WORLD, requests(2), ierr)
     call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  end do
  do i = 1, 20
     call MPI_Isend(b, 8, MPI_INTEGER, right, 5, MPI_COMM_WORLD, requests(1), ierr)
     call MPI_Recv(a, 8, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
     flag = .false.
     do while (.not. flag)
        call MPI_Test(requests(1), flag, status, ierr)
     end do
  end do
  call MPI_Recv_init(a, 4, MPI_REAL, left, 6, MPI_COMM_WORLD, persistent(1), ierr)
  call MPI_Send_init(b, 4, MPI_REAL, right, 6, MPI_COMM_WORLD, persistent(2), ierr)
  do i = 1, 10
     call MPI_Startall(2, persistent, ierr)
     call MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE, ierr)
  end do
  call MPI_Request_free(persistent(1), ierr)
  call MPI_Request_free(persistent(2), ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierr)
  call MPI_Allreduce(MPI_IN_PLACE, a, 3, MPI_DOUBLE_PRECISION, MPI_SUM, half, ierr)
  periods(1) = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, (/ ranks /), periods, .false., grid, ierr)
  call MPI_Sendrecv(b, 5, MPI_DOUBLE_PRECISION, right, 7, a, 5, MPI_DOUBLE_PRECISION, left, 7, grid, status, ierr)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, a, 1, MPI_INTEGER, grid, ierr)
  call MPI_Bcast(a, 16, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
  call MPI_Comm_free(grid, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  ! A call that fails makes nothing.
  call MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN, ierr)
  call MPI_Cart_create(half, 1, (/ 1000 /), periods, .false., grid, ierr)
  call MPI_Finalize(ierr)
end program
