/* SPDX-License-Identifier: MIT
 *
 * par: a process alone, and plugins that are not what they should be.  Several
 * processes are the business of suite_mpi.sh.
 */
#include "tests/support/check.h"

#include "probe/base/par.h"

static struct ms_err err;

static void started_alone(void)
{
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMI_SIZE");
}

START_TEST(without_mpirun_there_is_one_process)
{
    struct ms_par *par;
    started_alone();
    ck_ok(ms_par_open(&par, &err), err);
    ck_assert_uint_eq(ms_par_rank(par), 0);
    ck_assert_uint_eq(ms_par_size(par), 1);
    ms_par_close(par);
    ck_assert_uint_eq(ms_par_size(NULL), 1);
}
END_TEST

START_TEST(variables_of_mpirun_are_known)
{
    ck_assert(ms_par_is_variable("OMPI_COMM_WORLD_SIZE=4"));
    ck_assert(ms_par_is_variable("PMI_SIZE=4"));
    ck_assert(!ms_par_is_variable("PMI_SIZES=4"));
    ck_assert(!ms_par_is_variable("HOME=/PMI_SIZE"));
    ck_assert(!ms_par_is_variable("PMI_SIZE"));
    ck_assert(!ms_par_is_variable(""));
}
END_TEST

START_TEST(a_process_alone_agrees_with_itself)
{
    struct ms_par *par;
    int shared = 42;
    bool all = false;
    started_alone();
    ck_ok(ms_par_open(&par, &err), err);
    ck_ok(ms_par_share(par, &shared, sizeof shared, &err), err);
    ck_assert_int_eq(shared, 42);
    ck_ok(ms_par_agree(par, true, &all, &err), err);
    ck_assert(all);
    ck_ok(ms_par_agree(par, false, &all, &err), err);
    ck_assert(!all);
    ms_par_close(par);
}
END_TEST

START_TEST(there_is_nobody_to_talk_to_alone)
{
    struct ms_par *par;
    struct ms_buf got = {.max = 16};
    unsigned who;
    started_alone();
    ck_ok(ms_par_open(&par, &err), err);
    ck_assert_int_eq(ms_par_send(par, 1, "x", 1, &err), MS_E_ARG);
    ms_err_clear(&err);
    ck_assert_int_eq(ms_par_recv(par, MS_PAR_ANY, &got, &who, &err), MS_E_ARG);
    ms_par_close(par);
}
END_TEST

START_TEST(mpirun_with_one_process_needs_no_plugin)
{
    struct ms_par *par;
    started_alone();
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    setenv("MSPROBE_PLUGINS", "/nonexistent", 1);
    ck_ok(ms_par_open(&par, &err), err);
    ck_assert_uint_eq(ms_par_size(par), 1);
    ms_par_close(par);
}
END_TEST

START_TEST(a_missing_plugin_is_named_with_the_remedy)
{
    struct ms_par *par;
    started_alone();
    ms_err_clear(&err);
    setenv("PMI_SIZE", "4", 1);
    setenv("MSPROBE_PLUGINS", "/nonexistent", 1);
    ck_assert_int_eq(ms_par_open(&par, &err), MS_E_NOTFOUND);
    ck_assert_ptr_null(par);
    ck_says(err, "4 processes");
    ck_says(err, "libmsprobe_mpi_mpich.so");
    ck_says(err, "without mpirun");
}
END_TEST

START_TEST(a_library_that_is_no_plugin_is_refused)
{
    char dir[64], path[128];
    struct ms_par *par;
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/libmsprobe_mpi_openmpi.so", dir);
    write_file(path, "not a library", 13);
    started_alone();
    ms_err_clear(&err);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("MSPROBE_PLUGINS", dir, 1);
    ck_assert_int_eq(ms_par_open(&par, &err), MS_E_NOTFOUND);
    ck_says(err, "cannot be used");
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("par", without_mpirun_there_is_one_process, variables_of_mpirun_are_known,
          a_process_alone_agrees_with_itself, there_is_nobody_to_talk_to_alone,
          mpirun_with_one_process_needs_no_plugin, a_missing_plugin_is_named_with_the_remedy,
          a_library_that_is_no_plugin_is_refused)
