! SPDX-License-Identifier: MIT
! The old binding of Fortran: calls that must be recorded like those of C.
program mpi_mpif
  implicit none
  include 'mpif.h'
  integer :: ierr, rank, size, numbers(2), requests(2), statuses(MPI_STATUS_SIZE, 2)
  double precision :: a(3), b(3), out(4), in(4)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  a = rank + 1
  call MPI_Allreduce(a, b, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (b(3) /= size * (size + 1) / 2) stop 1
  numbers = rank
  call MPI_Bcast(numbers, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  if (numbers(2) /= 0) stop 2
  out = rank
  call MPI_Irecv(in, 4, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Isend(out, 4, MPI_DOUBLE_PRECISION, mod(rank + 1, size), 1, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Waitall(2, requests, statuses, ierr)
  if (in(4) /= mod(rank + size - 1, size)) stop 3
  call MPI_Finalize(ierr)
end program
