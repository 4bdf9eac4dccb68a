/* SPDX-License-Identifier: MIT
 *
 * A file beside a database: what was appended is read back, what is not there is an error, and it leaves nothing.
 */
#include "mstx/rundb/side_file.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

static char dir[64], beside[100];
static struct mstx_side_file side;
static struct ms_err e;

static void open_side(void)
{
    scratch_dir(dir);
    snprintf(beside, sizeof beside, "%s/run.db", dir);
    e = (struct ms_err){0};
    ck_ok(mstx__side_open(&side, beside, &e), e);
}

static unsigned files_left(void)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *one; (one = readdir(d)) != NULL;)
        n += one->d_name[0] != '.';
    closedir(d);
    return n;
}

static void end(void)
{
    mstx__side_close(&side);
    ck_assert_uint_eq(files_left(), 0);
    mstx__side_close(&side); /* once more is fine */
    ms_err_clear(&e);
    scratch_remove(dir);
}

START_TEST(what_was_appended_is_read_back_from_any_place)
{
    enum { N = 20000 };
    static uint32_t written[N], got[N];
    open_side();
    for (uint32_t i = 0; i < N; i++)
        written[i] = i * 2654435761u;
    for (size_t at = 0, n = 1; at < N; at += n, n = n * 3 < N - at ? n * 3 : N - at)
        ck_ok(mstx__side_append(&side, written + at, n * sizeof *written, &e), e);
    ck_assert_uint_eq(side.length, sizeof written);
    ck_ok(mstx__side_read(&side, 0, got, sizeof got, &e), e);
    ck_assert_mem_eq(got, written, sizeof got);
    ck_ok(mstx__side_read(&side, (N - 1) * sizeof *got, got, sizeof *got, &e), e);
    ck_assert_uint_eq(got[0], written[N - 1]);
    end();
}
END_TEST

START_TEST(reading_behind_its_end_is_an_error)
{
    char got[4];
    open_side();
    ck_ok(mstx__side_append(&side, "abc", 3, &e), e);
    ck_assert_int_eq(mstx__side_read(&side, 0, got, 4, &e), MS_E_IO);
    ck_says(e, "a file beside it has ended");
    end();
}
END_TEST

START_TEST(a_disk_that_is_full_is_an_error_that_names_the_database)
{
    struct rlimit was, little = {.rlim_cur = 4096};
    static char block[10000];
    open_side();
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &was);
    little.rlim_max = was.rlim_max;
    setrlimit(RLIMIT_FSIZE, &little);
    enum ms_rc rc = mstx__side_append(&side, block, sizeof block, &e);
    setrlimit(RLIMIT_FSIZE, &was);
    ck_assert_int_ne(rc, MS_OK);
    ck_says(e, beside);
    ck_assert_uint_eq(side.length, 0);
    end();
}
END_TEST

START_TEST(a_path_below_a_file_is_an_error)
{
    struct mstx_side_file f;
    struct ms_err why = {0};
    ck_assert_int_ne(mstx__side_open(&f, "/dev/null/run.db", &why), MS_OK);
    mstx__side_close(&f);
    ms_err_clear(&why);
}
END_TEST

TEST_MAIN("side_file", what_was_appended_is_read_back_from_any_place,
          reading_behind_its_end_is_an_error,
          a_disk_that_is_full_is_an_error_that_names_the_database, a_path_below_a_file_is_an_error)
