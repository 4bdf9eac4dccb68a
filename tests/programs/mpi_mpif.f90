! SPDX-License-Identifier: MIT
! The old binding of Fortran: calls that must be recorded like those of C.
program mpi_mpif
  implicit none
  include 'mpif.h'
  integer :: ierr, rank, size, numbers(2), requests(2), statuses(MPI_STATUS_SIZE, 2)
  double precision :: a(3), b(3), out(4), in(4)
  double precision, volatile :: shared(4)
  integer :: other, part, message, window, next, last, status(MPI_STATUS_SIZE)
  integer(kind=MPI_ADDRESS_KIND) :: size_of, at
  logical :: flag
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
  next = mod(rank + 1, size)
  last = mod(rank + size - 1, size)
  ! every rank to the next one and back, in all ways
  call MPI_Comm_idup(MPI_COMM_WORLD, other, requests(1), ierr)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
  call MPI_Comm_set_name(other, 'from Fortran ', ierr)
  call MPI_Isend(out, 4, MPI_DOUBLE_PRECISION, next, 2, other, requests(1), ierr)
  call MPI_Mprobe(MPI_ANY_SOURCE, 2, other, message, status, ierr)
  call MPI_Mrecv(in, 4, MPI_DOUBLE_PRECISION, message, status, ierr)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
  call MPI_Isend(out, 3, MPI_DOUBLE_PRECISION, next, 3, other, requests(1), ierr)
  flag = .false.
  do while (.not. flag)
    call MPI_Improbe(last, 3, other, flag, message, status, ierr)
  end do
  call MPI_Imrecv(in, 4, MPI_DOUBLE_PRECISION, message, requests(2), ierr)
  call MPI_Waitall(2, requests, statuses, ierr)
  call MPI_Isend(out, 2, MPI_DOUBLE_PRECISION, next, 4, other, requests(1), ierr)
  call MPI_Recv(in, 4, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 4, other, MPI_STATUS_IGNORE, ierr)
  call MPI_Request_get_status(requests(1), flag, MPI_STATUS_IGNORE, ierr)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
  call MPI_Sendrecv(out, 2, MPI_DOUBLE_PRECISION, next, 6, in, 4, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 6, &
    other, MPI_STATUS_IGNORE, ierr)
  call MPI_Sendrecv_replace(a, 3, MPI_DOUBLE_PRECISION, next, 7, last, 7, other, MPI_STATUS_IGNORE, ierr)
  if (a(3) /= last + 1) stop 4
  call MPI_Irecv(in, 4, MPI_DOUBLE_PRECISION, last, 99, other, requests(1), ierr)
  call MPI_Cancel(requests(1), ierr)
  call MPI_Wait(requests(1), status, ierr)
  call MPI_Recv_init(in, 4, MPI_DOUBLE_PRECISION, last, 5, other, requests(1), ierr)
  call MPI_Send_init(out, 4, MPI_DOUBLE_PRECISION, next, 5, other, requests(2), ierr)
  call MPI_Startall(2, requests, ierr)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  call MPI_Request_free(requests(1), ierr)
  call MPI_Request_free(requests(2), ierr)
  ! a window
  size_of = 8 * 4
  call MPI_Win_create(shared, size_of, 8, MPI_INFO_NULL, other, window, ierr)
  shared = 0
  at = 0
  call MPI_Win_fence(0, window, ierr)
  call MPI_Put(out, 4, MPI_DOUBLE_PRECISION, next, at, 4, MPI_DOUBLE_PRECISION, window, ierr)
  call MPI_Win_fence(0, window, ierr)
  if (shared(4) /= last) stop 4
  call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window, ierr)
  call MPI_Get(in, 4, MPI_DOUBLE_PRECISION, next, at, 4, MPI_DOUBLE_PRECISION, window, ierr)
  call MPI_Accumulate(out, 1, MPI_DOUBLE_PRECISION, next, at, 1, MPI_DOUBLE_PRECISION, MPI_SUM, window, ierr)
  call MPI_Fetch_and_op(out, b, MPI_DOUBLE_PRECISION, next, at, MPI_SUM, window, ierr)
  call MPI_Win_flush(next, window, ierr)
  call MPI_Win_unlock(next, window, ierr)
  call MPI_Win_free(window, ierr)
  ! trees of communicators
  call MPI_Comm_split(other, mod(rank, 2), 0, part, ierr)
  call MPI_Barrier(part, ierr)
  call MPI_Comm_free(part, ierr)
  call MPI_Comm_free(other, ierr)
  call MPI_Comm_get_parent(part, ierr)
  call MPI_Pcontrol(1)
  call MPI_Finalize(ierr)
end program
