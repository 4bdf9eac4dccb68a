! SPDX-License-Identifier: MIT
!
! mpi_cost: mpi_cost.c from Fortran: CPU time of a send to nobody, an allreduce with oneself and a
! non-blocking send with its wait, in nanoseconds, the best of many rounds.
program mpi_cost
  use mpi
  implicit none
  integer, parameter :: calls = 2000, rounds = 60
  integer :: ierr, x, y, i, k, what, request
  double precision :: start, stop, least(3)
  call MPI_Init(ierr)
  x = 0
  least = 1d18
  do what = 1, 3
    do k = 1, rounds
      call cpu_time(start)
      do i = 1, calls
        select case (what)
        case (1)
          call MPI_Send(x, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierr)
        case (2)
          call MPI_Allreduce(x, y, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, ierr)
        case (3)
          call MPI_Isend(x, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, request, ierr)
          call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
        end select
      end do
      call cpu_time(stop)
      least(what) = min(least(what), (stop - start) * 1d9 / calls)
    end do
  end do
  print '(3(f0.1,1x))', least
  call MPI_Finalize(ierr)
end program
