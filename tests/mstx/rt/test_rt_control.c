/* SPDX-License-Identifier: MIT
 *
 * rt_control: a program that marks without end is asked for its counters, stopped, started, filtered
 * and copied while it runs.
 */
#include "mstx/read/control.h"
#include "tests/programs/run.h"

static enum ms_rc open_first(void *link, const char *path, struct ms_err *err)
{
    return mstx_link_open(link, path, err);
}

static struct mstx_control ask(struct mstx_link *l, int command, const char *text)
{
    struct mstx_control reply;
    struct ms_err err = {0};
    ck_ok(mstx_link_ask(l, (enum mstx_command)command, text, &reply, &err), err);
    return reply;
}

/* Records between two looks, of which marks make nearly all. */
static uint64_t records_of_a_moment(struct mstx_link *l)
{
    const uint64_t before = ask(l, MSTX_CMD_STATUS, NULL).records;
    usleep(20000);
    return ask(l, MSTX_CMD_STATUS, NULL).records - before;
}

/* On a loaded machine it may take a while until the program runs. */
static void ck_marks_go_on(struct mstx_link *l)
{
    uint64_t n = 0;
    for (int i = 0; i < 1000 && n <= 4; i++)
        n = records_of_a_moment(l);
    ck_assert_uint_gt(n, 4);
}

static void ck_counters(struct mstx_link *l, uint64_t told)
{
    const struct mstx_control c = ask(l, MSTX_CMD_STATUS, NULL);
    ck_assert_uint_ge(c.records, told);
    ck_assert_uint_le(c.records, told + (1 << 24));
    ck_assert_uint_ge(c.bytes, c.records * MSTX_REC_SIZE);
    ck_assert_uint_ge(c.strings, 100); /* names of the marks */
    ck_assert_uint_le(c.strings, 200);
    ck_assert(c.rings >= 1 && c.rings < 9 && c.segments >= 1);
    ck_assert_uint_ge(c.domains, 1);
    ck_assert_uint_eq(c.dropped + c.open_ranges, 0);
    ck_assert_uint_gt(c.faults, 0);
    ck_assert_ptr_nonnull(strstr(c.answer, rt_out));
}

/* A snapshot is a capture of its own, with a clock reading of its moment. */
static void ck_snapshot(struct mstx_link *l)
{
    struct cap c;
    char to[200];
    snprintf(to, sizeof to, "%s/snapshots/001", rt_out);
    ask(l, MSTX_CMD_SNAPSHOT, to);
    cap_load_one(&c, to);
    ck_assert_uint_gt(cap_count(&c, MSTX_REC_MARK, NULL, NULL), 0);
    for (size_t i = 0; i < c.n; i++) /* a reading takes less than a second */
        ck_assert(c.rec[i].r.type != MSTX_REC_CALIB || c.rec[i].r.name < 1000000000);
    cap_free(&c);
}

START_TEST(commands_are_obeyed_while_it_runs)
{
    char shm[64];
    struct ms_err err = {0};
    struct mstx_control reply;
    struct mstx_link *l = NULL;
    rt_setup();
    snprintf(shm, sizeof shm, "/mstx-test-%d", (int)getpid());
    int fd = shm_open(shm, O_RDWR | O_CREAT | O_EXCL, 0600);
    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    volatile uint64_t *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const pid_t pid = rt_spawn("tests/programs/app", "until-killed", shm, NULL);
    while (*seen < 1000)
        usleep(200);
    ck_ok(mstx_each_process(rt_out, -1, open_first, &l, &err), err);
    ck_assert_ptr_nonnull(l);
    ck_counters(l, *seen);
    ck_snapshot(l);
    ck_assert_uint_eq(ask(l, MSTX_CMD_STATUS, NULL).recording, 1);
    ck_assert_uint_eq(ask(l, MSTX_CMD_STOP, NULL).recording, 0);
    ck_assert_uint_le(records_of_a_moment(l), 4);
    ck_assert_uint_eq(ask(l, MSTX_CMD_START, NULL).recording, 1);
    ck_marks_go_on(l);
    ask(l, MSTX_CMD_EXCLUDE, "default");
    ck_assert_uint_le(records_of_a_moment(l), 4);
    ask(l, MSTX_CMD_EXCLUDE, "");
    ask(l, MSTX_CMD_INCLUDE, "another");
    ck_assert_uint_le(records_of_a_moment(l), 4);
    ask(l, MSTX_CMD_INCLUDE, "default");
    ck_marks_go_on(l);
    ask(l, MSTX_CMD_FLUSH, NULL);
    ck_assert_int_ne(mstx_link_ask(l, (enum mstx_command)99, NULL, &reply, &err), MS_OK);
    ck_says(err, "Function not implemented");
    kill(pid, SIGKILL);
    ck_assert_int_eq(rt_wait(pid), 128 + SIGKILL);
    mstx_link_close(l);
    close(fd);
    munmap((void *)(uintptr_t)seen, 4096);
    shm_unlink(shm);
    rt_done();
}
END_TEST

TEST_MAIN("rt_control", commands_are_obeyed_while_it_runs)
