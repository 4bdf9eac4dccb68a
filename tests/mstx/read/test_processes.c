/* SPDX-License-Identifier: MIT
 *
 * Processes of a run: which directories are processes, which of their segments are read and in which
 * order, what is said of those that are missing, and how a process ended.
 */
#include "mstx/read/control.h"
#include "mstx/read/processes.h"
#include "probe/base/mem.h"
#include "tests/support/check.h"
#include "tests/support/make_capture.h"

#include <sys/wait.h>
#include <unistd.h>

static struct ms_err err;
static char dir[64], run[80], told[4096];
static struct mstx_procs procs;
static size_t live;

static void hear(void *ctx, const char *file, struct ms_err *e)
{
    const size_t n = strlen(told);
    (void)ctx;
    snprintf(told + n, sizeof told - n, "%s: %s|", strrchr(file, '/') + 1, e->msg);
}
static const struct mstx_problems problems = {.fn = hear};

static void set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
    told[0] = '\0';
    live = ms_mem_live();
}

static void tear_down(void)
{
    mstx__procs_free(&procs);
    ck_assert_uint_eq(ms_mem_live(), live);
    scratch_remove(dir);
}

/* A path below the run; its directories are made. */
static const char *at(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", run, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    ck_ok(ms_mkdirs(path, &err), err);
    *slash = '/';
    return path;
}

/* A segment of a ring with so many records at RUN/name. */
static void put_ring(const char *name, uint32_t ring, uint64_t part, uint64_t records,
                     uint32_t state)
{
    struct maker m = {.pid = 77};
    struct mstx_rec rec = {.ticks = TICKS_0, .type = MSTX_REC_MARK};
    struct mstx_seg h;
    maker_head(&h, &m, MSTX_KIND_RING);
    h.ring = ring;
    h.part = part;
    h.head = h.capacity = records;
    h.state = state;
    FILE *f = fopen(at(name), "wb");
    ck_assert_ptr_nonnull(f);
    fwrite(&h, sizeof h, 1, f);
    for (uint64_t i = 0; i < records; i++)
        fwrite(&rec, sizeof rec, 1, f);
    ck_assert_int_eq(fclose(f), 0);
}

static void put_strings(const char *name, const char *text)
{
    struct maker m = {.pid = 77};
    struct mstx_seg h;
    maker_head(&h, &m, MSTX_KIND_STRINGS);
    h.head = h.capacity = 32;
    struct mstx_text e = {32, 1, MSTX_TEXT, 0, (uint32_t)strlen(text), 0};
    char padded[8] = "";
    snprintf(padded, sizeof padded, "%s", text);
    FILE *f = fopen(at(name), "wb");
    ck_assert_ptr_nonnull(f);
    fwrite(&h, sizeof h, 1, f);
    fwrite(&e, sizeof e, 1, f);
    fwrite(padded, 1, 8, f);
    ck_assert_int_eq(fclose(f), 0);
}

static void put_text(const char *name, const char *text)
{
    write_file(at(name), text, strlen(text));
}

static struct mstx_proc *open_only(void)
{
    mstx__procs_free(&procs);
    told[0] = '\0';
    ck_ok(mstx__procs_find(&procs, run, NULL, &err), err);
    ck_assert_uint_eq(procs.list.n, 1);
    ck_ok(mstx__proc_open(procs.list.p, &problems, &err), err);
    return procs.list.p;
}

/* Ring, part and records of each segment in the order in which they are read. */
static void expect_segments(const char *want)
{
    const struct mstx_proc *p = open_only();
    char have[256] = "";
    for (size_t i = 0; i < p->seg.n; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%u.%u:%u", i != 0 ? " " : "",
                 p->seg.p[i].head.ring, (unsigned)p->seg.p[i].head.part, (unsigned)p->seg.p[i].n);
    ck_assert_str_eq(have, want);
}

/* ---- which directories -------------------------------------------------------------- */

START_TEST(directories_with_segments_or_a_stage_are_processes)
{
    put_ring("rank_1/h.2.a/r0000.0001.seg", 0, 1, 1, 0);
    put_ring("rank_0/h.10.a/r0000.0001.seg", 0, 1, 1, 0);
    put_ring("rank_0/h.9.a/r0000.0001.seg", 0, 1, 1, 0);
    put_text("rank_0/h.11.a/staged", "/nowhere\n");
    put_text("rank_0/h.12.a/control", "");
    put_text("rank_0/h.13.a/r0000.0001.seg.tmp", "");
    put_ring("snapshots/001/rank_0/h.9.a/r0000.0001.seg", 0, 1, 1, 0);
    put_ring("a/b/c/d/r0000.0001.seg", 0, 1, 1, 0);   /* four levels below the run */
    put_ring("a/b/c/d/e/r0000.0001.seg", 0, 1, 1, 0); /* five */
    ck_ok(mstx__procs_find(&procs, run, NULL, &err), err);
    static const char *const want[] = {"/a/b/c/d", "/rank_0/h.9.a", "/rank_0/h.10.a",
                                       "/rank_0/h.11.a", "/rank_1/h.2.a"};
    ck_assert_uint_eq(procs.list.n, 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_str_eq(procs.list.p[i].dir + strlen(run), want[i]);
}
END_TEST

/* A link that leads up, behind which lies the run again, finds no process twice; one that leads aside, to
 * the folder of a rank on another disk, is followed. */
START_TEST(links_lead_to_no_process_twice)
{
    put_ring("rank0/0-0.seg", 0, 1, 1, 0);
    snprintf(told, sizeof told, "%s/aside", dir);
    ck_assert_int_eq(rename(at("rank0"), told), 0);
    ck_assert_int_eq(symlink("../aside", at("rank0")), 0);
    ck_assert_int_eq(symlink("rank0", at("again")), 0);
    ck_assert_int_eq(symlink("..", at("up")), 0);
    ck_assert_int_eq(symlink("/", at("zz")), 0);
    told[0] = '\0';
    ck_ok(mstx__procs_find(&procs, run, NULL, &err), err);
    ck_assert_uint_eq(procs.list.n, 1);
}
END_TEST

START_TEST(a_run_that_is_not_there_is_an_error)
{
    ck_assert_int_eq(mstx__procs_find(&procs, run, NULL, &err), MS_E_NOTFOUND);
    ck_assert_uint_eq(procs.list.n, 0);
    put_text("file", "");
    mstx__procs_free(&procs);
    ck_ok(mstx__procs_find(&procs, run, NULL, &err), err);
    ck_assert_uint_eq(procs.list.n, 0);
}
END_TEST

/* ---- which segments ------------------------------------------------------------------- */

START_TEST(segments_come_by_ring_and_part)
{
    put_ring("p/r0002.0001.seg", 2, 1, 3, 0);
    put_ring("p/r0001.0010.seg", 1, 10, 2, 0);
    put_ring("p/r0001.0009.seg", 1, 9, 1, 0);
    put_ring("p/r0000.0001.seg", 0, 1, 0, 0);
    put_ring("p/r0003.0001.seg", 3, 0, 5, 0); /* prepared, not in use */
    put_strings("p/strings.seg", "one");
    expect_segments("0.1:0 1.9:1 1.10:2 2.1:3");
    ck_assert(procs.list.p->has_strings);
    ck_assert_str_eq(told, "r0001.0009.seg: ring 1 has no part 1: a segment is missing|");
}
END_TEST

START_TEST(gaps_are_told_of_rings_that_reuse_no_file)
{
    put_ring("p/r0001.0001.seg", 1, 1, 1, 0);
    put_ring("p/r0001.0003.seg", 1, 3, 1, 0);
    put_ring("p/r0002.0001.seg", 2, 7, 1, MSTX_SEG_FLIGHT | MSTX_SEG_CLOSED);
    put_ring("p/r0003.0001.seg", 3, 7, 1, MSTX_SEG_SNAPSHOT);
    put_ring("p/r0004.0002.seg", 4, 2, 1, 0);
    expect_segments("1.1:1 1.3:1 2.7:1 3.7:1 4.2:1");
    ck_assert_str_eq(told, "r0001.0003.seg: ring 1 has no part 2: a segment is missing|"
                           "r0004.0002.seg: ring 4 has no part 1: a segment is missing|");
}
END_TEST

START_TEST(what_cannot_be_read_is_told_and_left_out)
{
    put_ring("p/r0001.0001.seg", 1, 1, 1, 0);
    put_text("p/r0002.0001.seg", "short");
    put_text("p/strings.seg", "short");
    expect_segments("1.1:1");
    ck_assert(!procs.list.p->has_strings);
    ck_assert_ptr_nonnull(strstr(told, "r0002.0001.seg: "));
    ck_assert_ptr_nonnull(strstr(told, "|strings.seg: "));
    ck_assert_ptr_nonnull(strstr(told, "5 bytes are too few for a header of 4096|"));
}
END_TEST

START_TEST(a_process_that_is_deleted_meanwhile_is_told)
{
    put_ring("p/r0001.0001.seg", 1, 1, 1, 0);
    ck_ok(mstx__procs_find(&procs, run, NULL, &err), err);
    ck_assert_int_eq(unlink(at("p/r0001.0001.seg")), 0);
    char folder[512];
    snprintf(folder, sizeof folder, "%s/p", run);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_ok(mstx__proc_open(procs.list.p, &problems, &err), err);
    ck_assert_uint_eq(procs.list.p->seg.n, 0);
    ck_assert_ptr_nonnull(strstr(told, "p: "));
    ck_assert_ptr_nonnull(strstr(told, "No such file or directory"));
}
END_TEST

/* ---- the stage ---------------------------------------------------------------------------- */

/* The text of the file that names the stage: RUN/folder between these two. */
static void put_stage_name(const char *before, const char *folder, const char *behind)
{
    char line[300];
    snprintf(line, sizeof line, "%s%s/%s%s", before, run, folder, behind);
    put_text("p/staged", line);
}

START_TEST(staged_segments_are_read_with_the_others)
{
    put_stage_name("", "stage", "\nmore");
    put_ring("p/r0001.0001.seg", 1, 1, 4, 0);
    put_ring("p/r0001.0002.seg", 1, 2, 5, 0);
    put_ring("p/r0001.0003.seg", 1, 3, 2, 0);
    put_ring("stage/r0001.0002.seg", 1, 2, 3, 0); /* being moved: the longer one counts */
    put_ring("stage/r0001.0003.seg", 1, 3, 7, 0);
    put_ring("stage/r0002.0001.seg", 2, 1, 1, 0);
    put_strings("p/strings.seg", "old");
    put_strings("stage/strings.seg", "new");
    mstx__procs_free(&procs);
    ck_ok(mstx__procs_find(&procs, run, NULL, &err), err);
    ck_assert_uint_eq(procs.list.n, 2);
    ck_ok(mstx__proc_open(&procs.list.p[0], &problems, &err), err);
    const struct mstx_proc *p = &procs.list.p[0];
    static const unsigned want[][3] = {{1, 1, 4}, {1, 2, 5}, {1, 3, 7}, {2, 1, 1}};
    ck_assert_uint_eq(p->seg.n, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert(p->seg.p[i].head.ring == want[i][0] && p->seg.p[i].head.part == want[i][1] &&
                  p->seg.p[i].n == want[i][2]);
    ck_assert(p->has_strings);
    ck_assert_ptr_nonnull(strstr(p->strings.path, "/stage/strings.seg"));
    ck_assert_str_eq(told, "");
}
END_TEST

START_TEST(a_stage_without_texts_has_those_of_the_process)
{
    put_stage_name("", "q/stage", "\n");
    put_ring("p/r0001.0001.seg", 1, 1, 1, 0);
    put_strings("p/strings.seg", "one");
    ck_ok(ms_mkdirs(at("q/stage/"), &err), err);
    expect_segments("1.1:1");
    ck_assert(procs.list.p->has_strings);
    ck_assert_str_eq(told, "");
}
END_TEST

START_TEST(a_stage_that_is_named_and_missing_is_told)
{
    put_ring("p/r0001.0001.seg", 1, 1, 1, 0);
    put_stage_name("", "gone", "\n");
    expect_segments("1.1:1");
    ck_assert_ptr_nonnull(strstr(told, "gone: "));
    ck_assert_ptr_nonnull(strstr(told, "No such file"));
    for (int i = 0; i < 3; i++) { /* its name is still being written */
        if (i == 0)
            put_text("p/staged", "");
        else
            put_stage_name(i == 1 ? "" : "\n", "gone", i == 1 ? "" : "\n");
        expect_segments("1.1:1");
        ck_assert_str_eq(told, "");
    }
}
END_TEST

START_TEST(a_name_of_a_stage_has_a_longest_length)
{
    static char line[5000];
    put_ring("p/r0001.0001.seg", 1, 1, 1, 0);
    memset(line, 'x', sizeof line - 1);
    put_text("p/staged", line);
    expect_segments("1.1:1");
    ck_assert_ptr_nonnull(strstr(told, "staged: "));
    line[4096] = '\0';
    put_text("p/staged", line);
    expect_segments("1.1:1");
    ck_assert_str_eq(told, "");
}
END_TEST

/* ---- how a process ended --------------------------------------------------------------------- */

static struct mstx_seg head_of(const char *name, uint32_t pid, uint64_t jiffies, int64_t start)
{
    struct maker m = {.pid = pid};
    struct mstx_seg h;
    maker_head(&h, &m, MSTX_KIND_RING);
    ck_assert_int_eq(gethostname(h.host, sizeof h.host - 1), 0);
    h.start_jiffies = jiffies;
    h.start_ns = start;
    FILE *f = fopen(at(name), "wb");
    ck_assert_ptr_nonnull(f);
    fwrite(&h, sizeof h, 1, f);
    ck_assert_int_eq(fclose(f), 0);
    return h;
}

static uint64_t own_start(void)
{
    char text[1024] = "";
    FILE *f = fopen("/proc/self/stat", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
    fclose(f);
    const char *p = strrchr(text, ')');
    for (int field = 2; field < 22; field++)
        p = strchr(p + 1, ' ');
    return strtoull(p, NULL, 10);
}

static const char *state_of(const struct mstx_seg *head, bool is_closed)
{
    mstx__procs_free(&procs);
    ck_ok(mstx__procs_find(&procs, run, NULL, &err), err);
    return mstx__process_state(&procs, 0, head, is_closed);
}

START_TEST(a_process_of_this_host_runs_or_was_killed)
{
    struct mstx_seg h = head_of("h.1.a/r0000.0001.seg", (uint32_t)getpid(), own_start(), 5);
    ck_assert_str_eq(state_of(&h, true), "finished");
    ck_assert_str_eq(state_of(&h, false), "running");
    h.pid_ns = 1;
    ck_assert_str_eq(state_of(&h, false), "not finished");
    struct stat ns;
    ck_assert_int_eq(stat("/proc/self/ns/pid", &ns), 0);
    h.pid_ns = ns.st_ino;
    ck_assert_str_eq(state_of(&h, false), "running");
    h.start_jiffies++;
    ck_assert_str_eq(state_of(&h, false), "killed");
    strcpy(h.host, "elsewhere");
    ck_assert_str_eq(state_of(&h, false), "not finished");
}
END_TEST

START_TEST(a_younger_capture_of_a_process_replaces_it)
{
    const struct mstx_seg h = head_of("h.1.a/r0000.0001.seg", 7, 100, 5);
    ck_assert_str_eq(state_of(&h, false), "killed");
    head_of("h.1.b/r0000.0001.seg", 7, 100, 5); /* not younger */
    ck_assert_str_eq(state_of(&h, false), "killed");
    head_of("h.1.b/r0000.0001.seg", 8, 100, 6); /* another pid */
    ck_assert_str_eq(state_of(&h, false), "killed");
    head_of("h.1.b/r0000.0001.seg", 7, 101, 6); /* another process with that pid */
    ck_assert_str_eq(state_of(&h, false), "killed");
    head_of("h.12.b/r0000.0001.seg", 7, 100, 6); /* the name of another process */
    ck_assert_str_eq(state_of(&h, false), "killed");
    head_of("h.1.b/r0000.0001.seg", 7, 100, 6);
    ck_assert_str_eq(state_of(&h, false), "replaced");
    ck_assert_str_eq(state_of(&h, true), "finished");
    struct mstx_seg other = h;
    other.boot_id[3]++;
    ck_assert_str_eq(state_of(&other, false), "killed");
    write_file(at("h.1.b/r0000.0001.seg"), "short", 5);
    ck_assert_str_eq(state_of(&h, false), "killed");
}
END_TEST

/* ---- processes that can be asked ------------------------------------------------------------- */

static char visited[256];

static enum ms_rc visit(void *arg, const char *path, struct ms_err *e)
{
    const char *stop = arg;
    snprintf(visited + strlen(visited), sizeof visited - strlen(visited), "%s|",
             path + strlen(run));
    return stop != NULL && strstr(path, stop) != NULL ? ms_fail(e, MS_E_IO, "stop") : MS_OK;
}

static const char *visit_all(int rank, char *stop, enum ms_rc want)
{
    visited[0] = '\0';
    ms_err_clear(&err);
    ck_assert_int_eq(mstx_each_process(run, rank, visit, stop, &err), want);
    return visited;
}

START_TEST(each_process_of_a_rank_is_visited)
{
    static char stop[] = "rank_1/";
    put_text("rank_0/h.2.a/control", "");
    put_text("rank_0/h.1.a/control", "");
    put_text("rank_0/file", "");
    put_text("rank_1/h.3.a/control", "");
    put_text("rank_10/h.4.a/control", "");
    put_text("rank_none/h.5.a/control", "");
    put_text("ranks/h.6.a/control", "");
    ck_assert_str_eq(visit_all(-1, NULL, MS_OK), "/rank_0/h.1.a|/rank_0/h.2.a|/rank_1/h.3.a|"
                                                 "/rank_10/h.4.a|/rank_none/h.5.a|");
    ck_assert_str_eq(visit_all(0, NULL, MS_OK), "/rank_0/h.1.a|/rank_0/h.2.a|");
    ck_assert_str_eq(visit_all(1, NULL, MS_OK), "/rank_1/h.3.a|");
    ck_assert_str_eq(visit_all(10, NULL, MS_OK), "/rank_10/h.4.a|");
    ck_assert_str_eq(visit_all(2, NULL, MS_OK), "");
    ck_assert_str_eq(visit_all(-1, stop, MS_E_IO), "/rank_0/h.1.a|/rank_0/h.2.a|/rank_1/h.3.a|");
    ck_assert_str_eq(err.msg, "stop");
}
END_TEST

START_TEST(a_process_is_known_by_its_start)
{
    const uint64_t start = own_start();
    ck_assert(mstx_process_runs((uint32_t)getpid(), start));
    ck_assert(!mstx_process_runs((uint32_t)getpid(), start + 1));
    ck_assert(!mstx_process_runs(4194304 + 5, start)); /* no pid is so large */
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    char name[64], text[512] = "";
    snprintf(name, sizeof name, "/proc/%d/stat", (int)child);
    FILE *f = fopen(name, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
    fclose(f);
    const char *p = strrchr(text, ')');
    for (int field = 2; field < 22; field++)
        p = strchr(p + 1, ' ');
    ck_assert(!mstx_process_runs((uint32_t)child, strtoull(p, NULL, 10))); /* a zombie */
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

START_TEST(a_process_is_alive_while_its_host_shows_it)
{
    char host[65] = "", folder[200];
    struct mstx_control page = {.endian = MSTX_SEG_ENDIAN,
                                .major = MSTX_SEG_MAJOR,
                                .kind = MSTX_KIND_CONTROL,
                                .pid = (uint32_t)getpid(),
                                .start_jiffies = own_start()};
    struct mstx_link *link;
    memcpy(page.magic, MSTX_SEG_MAGIC, sizeof page.magic);
    ck_assert_int_eq(gethostname(host, sizeof host - 1), 0);
    for (int ended = 0; ended < 2; ended++) {
        for (int elsewhere = 0; elsewhere < 3; elsewhere++) {
            page.start_jiffies += (uint64_t)(ended != 0 && elsewhere == 0);
            snprintf(folder, sizeof folder, "rank_0/%s%s.1.%d/control", host,
                     elsewhere == 1   ? "x"
                     : elsewhere == 2 ? "-2"
                                      : "",
                     ended);
            write_file(at(folder), &page, sizeof page);
            snprintf(folder, sizeof folder, "%s", at(folder));
            *strrchr(folder, '/') = '\0';
            ck_ok(mstx_link_open(&link, folder, &err), err);
            ck_assert_ptr_nonnull(link);
            ck_assert_int_eq(mstx_link_alive(link), ended == 0 || elsewhere != 0);
            mstx_link_close(link);
        }
    }
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "processes", directories_with_segments_or_a_stage_are_processes,
                 links_lead_to_no_process_twice, a_run_that_is_not_there_is_an_error,
                 segments_come_by_ring_and_part, gaps_are_told_of_rings_that_reuse_no_file,
                 what_cannot_be_read_is_told_and_left_out,
                 a_process_that_is_deleted_meanwhile_is_told,
                 staged_segments_are_read_with_the_others,
                 a_stage_without_texts_has_those_of_the_process,
                 a_stage_that_is_named_and_missing_is_told, a_name_of_a_stage_has_a_longest_length,
                 a_process_of_this_host_runs_or_was_killed,
                 a_younger_capture_of_a_process_replaces_it, each_process_of_a_rank_is_visited,
                 a_process_is_known_by_its_start, a_process_is_alive_while_its_host_shows_it)
