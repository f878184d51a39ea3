! The same calls by mpif.h, the module mpi and the module mpi_f08; what each rank calls is written down in record.rs.
program f08
  use mpi_f08
  implicit none
  integer :: rank, ranks, ierr, i, left, right
  type(MPI_Comm) :: grid, half
  type(MPI_Request) :: requests(2), persistent(2)
  type(MPI_Status) :: status
  logical :: flag, periods(1)
  double precision :: a(64), b(64)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)
  do i = 1, 50
     call MPI_Irecv(a, 64, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, requests(1))
     call MPI_Isend(b, 64, MPI_DOUBLE_PRECISION, right, 4, MPI_COMM_WORLD, requests(2))
     call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  end do
  do i = 1, 20
     call MPI_Isend(b, 8, MPI_INTEGER, right, 5, MPI_COMM_WORLD, requests(1))
     call MPI_Recv(a, 8, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
     flag = .false.
     do while (.not. flag)
        call MPI_Test(requests(1), flag, status)
     end do
  end do
  call MPI_Recv_init(a, 4, MPI_REAL, left, 6, MPI_COMM_WORLD, persistent(1))
  call MPI_Send_init(b, 4, MPI_REAL, right, 6, MPI_COMM_WORLD, persistent(2))
  do i = 1, 10
     call MPI_Startall(2, persistent)
     call MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE)
  end do
  call MPI_Request_free(persistent(1))
  call MPI_Request_free(persistent(2))
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half)
  call MPI_Allreduce(MPI_IN_PLACE, a, 3, MPI_DOUBLE_PRECISION, MPI_SUM, half)
  periods(1) = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, (/ ranks /), periods, .false., grid)
  call MPI_Sendrecv(b, 5, MPI_DOUBLE_PRECISION, right, 7, a, 5, MPI_DOUBLE_PRECISION, left, 7, grid, status)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, a, 1, MPI_INTEGER, grid)
  call MPI_Bcast(a, 16, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  call MPI_Comm_free(grid)
  call MPI_Barrier(MPI_COMM_WORLD)
  ! A call that fails makes nothing.
  call MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN, ierr)
  call MPI_Cart_create(half, 1, (/ 1000 /), periods, .false., grid, ierr)
  call MPI_Finalize()
end program
