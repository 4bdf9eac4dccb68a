/* SPDX-License-Identifier: MIT
 *
 * Ranks of MPI that do what few ranks do: they fork, load libraries, lose threads, hear signals, become other
 * programs and end in their own ways.
 *
 *   odd_ranks WAY      see ways[] at the end; odd_ranks list prints their names
 */
#include <mpi.h>

#include "tests/programs/odd.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, size, sum;

static void add_up(void)
{
    int mine = rank + 1;
    mark_often(10);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void begin(void)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    add_up();
}

static int finish(int status)
{
    add_up();
    printf("rank %d of %d: %d\n", rank, size, sum);
    fflush(stdout);
    MPI_Finalize();
    mark_often(10);
    return status;
}

static int forks_between_calls(void)
{
    begin();
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            mark_often(100);
            i == 1 ? (void)raise(SIGKILL) : _exit(i + 2);
        }
        wait_for("child", pid);
        add_up();
    }
    return finish(0);
}

static void *add_and_leave(void *unused)
{
    mark_often(10);
    add_up();
    pthread_exit(unused);
}

static int threads_that_die_between_calls(void)
{
    int given;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 4 && given >= MPI_THREAD_SERIALIZED; i++) {
        pthread_t t;
        pthread_create(&t, NULL, add_and_leave, NULL);
        pthread_join(t, NULL);
    }
    return finish(0);
}

static int libraries_come_and_go_between_calls(void)
{
    begin();
    for (int i = 0; i < 4; i++) {
        void *lib = dlopen("libm.so.6", RTLD_NOW);
        double (*cosine)(double) = (double (*)(double))dlsym(lib, "cos");
        add_up();
        printf("%g\n", cosine(0));
        dlclose(lib);
    }
    return finish(0);
}

static volatile int heard;

static void hear(int sig)
{
    mark_often(1);
    heard += sig == SIGUSR1;
}

static int signals_while_it_waits(void)
{
    struct sigaction a = {.sa_handler = hear, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &a, NULL);
    begin();
    for (int i = 0; i < 5; i++) {
        if (rank == 0) {
            usleep(2000);
            raise(SIGUSR1);
        }
        add_up();
    }
    printf("heard %d\n", heard);
    return finish(0);
}

static int becomes_another_program(void)
{
    begin();
    finish(0);
    execl("/bin/sh", "sh", "-c", "echo another; exit 6", (char *)NULL);
    return 1;
}

static int ends_with_a_status(void)
{
    begin();
    return finish(9);
}

static int ends_by_abort_of_mpi(void)
{
    begin();
    if (rank == size - 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    add_up();
    return 0;
}

static int dies(int sig)
{
    begin();
    if (rank == size - 1)
        raise(sig);
    add_up();
    return 0;
}

static int is_killed(void)
{
    return dies(SIGKILL);
}

static int is_terminated(void)
{
    return dies(SIGTERM);
}

static int reads_nothing(void)
{
    return dies(SIGSEGV);
}

static int aborts(void)
{
    return dies(SIGABRT);
}

static const struct odd_way ways[] = {
    WAY(forks_between_calls),
    WAY(threads_that_die_between_calls),
    WAY(libraries_come_and_go_between_calls),
    WAY(signals_while_it_waits),
    WAY(becomes_another_program),
    WAY(ends_with_a_status),
    WAY(ends_by_abort_of_mpi),
    WAY(is_killed),
    WAY(is_terminated),
    WAY(reads_nothing),
    WAY(aborts),
};

int main(int argc, char **argv)
{
    return odd_main(ways, sizeof ways / sizeof *ways, argc, argv);
}
