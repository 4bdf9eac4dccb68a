! SPDX-License-Identifier: MIT
! The binding of Fortran 2008: the same calls as mpi_mpif.f90.
program mpi_f08_app
  use mpi_f08
  implicit none
  integer :: rank, size, numbers(2)
  type(MPI_Request) :: requests(2)
  type(MPI_Comm) :: other, part
  type(MPI_Message) :: message
  type(MPI_Win) :: window
  type(MPI_Status) :: status, statuses(2)
  integer(kind=MPI_ADDRESS_KIND) :: size_of, at
  integer :: next, last
  logical :: flag
  double precision :: a(3), b(3), out(4)
  double precision, asynchronous :: shared(4)
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
  next = mod(rank + 1, size)
  last = mod(rank + size - 1, size)
  ! every rank to the next one and back, in all ways
  call MPI_Comm_idup(MPI_COMM_WORLD, other, requests(1))
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call MPI_Comm_set_name(other, 'from Fortran ')
  call MPI_Isend(out, 4, MPI_DOUBLE_PRECISION, next, 2, other, requests(1))
  call MPI_Mprobe(MPI_ANY_SOURCE, 2, other, message, status)
  call MPI_Mrecv(in, 4, MPI_DOUBLE_PRECISION, message, status)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call MPI_Isend(out, 3, MPI_DOUBLE_PRECISION, next, 3, other, requests(1))
  flag = .false.
  do while (.not. flag)
    call MPI_Improbe(last, 3, other, flag, message, status)
  end do
  call MPI_Imrecv(in, 4, MPI_DOUBLE_PRECISION, message, requests(2))
  call MPI_Waitall(2, requests, statuses)
  call MPI_Isend(out, 2, MPI_DOUBLE_PRECISION, next, 4, other, requests(1))
  call MPI_Recv(in, 4, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 4, other, MPI_STATUS_IGNORE)
  call MPI_Request_get_status(requests(1), flag, MPI_STATUS_IGNORE)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call MPI_Sendrecv(out, 2, MPI_DOUBLE_PRECISION, next, 6, in, 4, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 6, &
    other, MPI_STATUS_IGNORE)
  call MPI_Sendrecv_replace(a, 3, MPI_DOUBLE_PRECISION, next, 7, last, 7, other, MPI_STATUS_IGNORE)
  if (a(3) /= last + 1) stop 4
  call MPI_Irecv(in, 4, MPI_DOUBLE_PRECISION, last, 99, other, requests(1))
  call MPI_Cancel(requests(1))
  call MPI_Wait(requests(1), status)
  call MPI_Recv_init(in, 4, MPI_DOUBLE_PRECISION, last, 5, other, requests(1))
  call MPI_Send_init(out, 4, MPI_DOUBLE_PRECISION, next, 5, other, requests(2))
  call MPI_Startall(2, requests)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))
  ! a window
  size_of = 8 * 4
  call MPI_Win_create(shared, size_of, 8, MPI_INFO_NULL, other, window)
  shared = 0
  at = 0
  call MPI_Win_fence(0, window)
  call MPI_Put(out, 4, MPI_DOUBLE_PRECISION, next, at, 4, MPI_DOUBLE_PRECISION, window)
  call MPI_Win_fence(0, window)
  if (shared(4) /= last) stop 4
  call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window)
  call MPI_Get(in, 4, MPI_DOUBLE_PRECISION, next, at, 4, MPI_DOUBLE_PRECISION, window)
  call MPI_Accumulate(out, 1, MPI_DOUBLE_PRECISION, next, at, 1, MPI_DOUBLE_PRECISION, MPI_SUM, window)
  call MPI_Fetch_and_op(out, b, MPI_DOUBLE_PRECISION, next, at, MPI_SUM, window)
  call MPI_Win_flush(next, window)
  call MPI_Win_unlock(next, window)
  call MPI_Win_free(window)
  ! trees of communicators
  call MPI_Comm_split(other, mod(rank, 2), 0, part)
  call MPI_Barrier(part)
  call MPI_Comm_free(part)
  call MPI_Comm_free(other)
  call MPI_Comm_get_parent(part)
  call MPI_Pcontrol(1)
  call MPI_Finalize()
end program
