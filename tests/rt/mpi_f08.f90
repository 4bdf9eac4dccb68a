! SPDX-License-Identifier: MIT
! The binding of Fortran 2008: the same calls as mpi_mpif.f90.
program mpi_f08_app
  use mpi_f08
  implicit none
  integer :: rank, size, numbers(2)
  type(MPI_Request) :: requests(2)
  double precision :: a(3), b(3), out(4)
  double precision, asynchronous :: in(4)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  a = rank + 1
  call MPI_Allreduce(a, b, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (b(3) /= size * (size + 1) / 2) stop 1
  numbers = rank
  call MPI_Bcast(numbers, 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
  if (numbers(2) /= 0) stop 2
  out = rank
  call MPI_Irecv(in, 4, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(out, 4, MPI_DOUBLE_PRECISION, mod(rank + 1, size), 1, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  if (in(4) /= mod(rank + size - 1, size)) stop 3
  call MPI_Finalize()
end program
