! SPDX-License-Identifier: MIT
!
! wait_fortran: a Fortran program of which one rank, or none, makes the others wait, for a known reason.
!
!     wait_fortran PATTERN CAUSE RANK MS STEPS WORK_MS
!
! The arguments and what the program prints are those of wait_mpi.
program wait_fortran
    use mpi
    use iso_c_binding
    implicit none

    interface
        integer(c_int) function pause_us(us) bind(c, name='usleep')
            import c_int, c_int32_t
            integer(c_int32_t), value :: us
        end function
        integer(c_int) function sync_file(descriptor) bind(c, name='fsync')
            import c_int
            integer(c_int), value :: descriptor
        end function
    end interface

    integer, parameter :: n = 512
    character(len=1048576) :: bytes
    integer :: scratch
    character(len=16) :: pattern, cause
    integer :: culprit, steps, step, rank, ranks, next, last, error, requests(4)
    double precision :: extra_ms, work_ms, from, worked, sink, a(n), b(n), c(n), d(n)

    call read_arguments()
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    next = mod(rank + 1, ranks)
    last = mod(rank + ranks - 1, ranks)
    a = 1
    b = 1
    worked = 0
    sink = 0
    from = MPI_Wtime()
    bytes = ' '
    open (newunit=scratch, status='scratch', access='stream', form='unformatted')
    do step = 0, steps - 1
        select case (pattern)
        case ('fallreduce')
            call work()
            call MPI_Allreduce(a, c, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
        case ('fexchange')
            call work()
            call MPI_Sendrecv(a, n, MPI_DOUBLE_PRECISION, next, 1, c, n, MPI_DOUBLE_PRECISION, last, 1, &
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
            call MPI_Sendrecv(b, n, MPI_DOUBLE_PRECISION, last, 2, d, n, MPI_DOUBLE_PRECISION, next, 2, &
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        case ('fhalo')
            call MPI_Irecv(c, n, MPI_DOUBLE_PRECISION, last, 1, MPI_COMM_WORLD, requests(1), error)
            call MPI_Irecv(d, n, MPI_DOUBLE_PRECISION, next, 2, MPI_COMM_WORLD, requests(2), error)
            call work()
            call MPI_Isend(a, n, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, requests(3), error)
            call MPI_Isend(b, n, MPI_DOUBLE_PRECISION, last, 2, MPI_COMM_WORLD, requests(4), error)
            call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
        case ('fspread')
            call work()
            call MPI_Reduce(a, c, n, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
            call MPI_Bcast(c, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, error)
        end select
    end do
    call MPI_Barrier(MPI_COMM_WORLD, error)
    if (rank == 0) print '(a, f10.4)', 'seconds ', MPI_Wtime() - from
    print '(a, i0, f10.4)', 'work ', rank, worked
    if (sink < 0) print *, sink
    call MPI_Finalize(error)

contains

    subroutine read_arguments()
        character(len=32) :: text
        if (command_argument_count() /= 6) stop 'usage: wait_fortran PATTERN CAUSE RANK MS STEPS WORK_MS'
        call get_command_argument(1, pattern)
        call get_command_argument(2, cause)
        call get_command_argument(3, text)
        read (text, *) culprit
        call get_command_argument(4, text)
        read (text, *) extra_ms
        call get_command_argument(5, text)
        read (text, *) steps
        call get_command_argument(6, text)
        read (text, *) work_ms
    end subroutine

    subroutine compute(ms)
        double precision, intent(in) :: ms
        double precision :: now, until
        integer :: i
        call cpu_time(now)
        until = now + 1d-3 * ms
        do while (now < until)
            do i = 1, 300
                sink = sink + sqrt(dble(i))
            end do
            call cpu_time(now)
        end do
    end subroutine

    ! Writes to the disk and waits until the bytes are there, for about as long as asked.
    subroutine write_out(ms)
        double precision, intent(in) :: ms
        double precision :: until
        integer :: ignored
        until = MPI_Wtime() + 1d-3 * ms
        do while (MPI_Wtime() < until)
            write (scratch, pos=1) bytes
            flush (scratch)
            ignored = sync_file(int(fnum(scratch), c_int))
        end do
    end subroutine

    subroutine work()
        double precision :: since
        integer :: ignored
        since = MPI_Wtime()
        call compute(work_ms)
        if (rank == culprit) then
            select case (cause)
            case ('compute')
                call compute(extra_ms)
            case ('sleep')
                ignored = pause_us(int(1000 * extra_ms, c_int32_t))
            case ('write')
                call write_out(extra_ms)
            case ('bursts')
                if (mod(step, 8) == 5) call compute(8 * extra_ms)
            case ('late')
                if (step >= steps / 2) call compute(extra_ms)
            end select
        end if
        worked = worked + MPI_Wtime() - since
    end subroutine
end program
