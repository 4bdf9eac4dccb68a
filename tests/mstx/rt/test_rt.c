/* SPDX-License-Identifier: MIT
 *
 * Tests of the recorder from outside: a program that speaks the injection protocol is run
 * with libmstx.so named in its environment, and its capture is read afterwards.
 */
#include "mstx/conclude/run_ready.h"
#include "tests/programs/run.h"

#include <sys/mount.h>

static int app(const char *a, const char *b, const char *c)
{
    return rt_wait(rt_spawn("tests/programs/app", a, b, c));
}

/* ---- attaching ---------------------------------------------------------------------------- */

START_TEST(a_header_finds_the_recorder_by_its_variable)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("once", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, "default", "one"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, "default", "two"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_preloaded_recorder_is_found_without_variable)
{
    struct cap c;
    char libs[2500];
    if (rt_before_preload() == NULL) {
        printf("skip preload: a sanitizer must be first in a process\n");
        return;
    }
    rt_setup();
    unsetenv("MSTX_INJECTION_PATH");
    snprintf(libs, sizeof libs, "%s%s", rt_before_preload(), rt_built("libmstx.so"));
    setenv("LD_PRELOAD", libs, 1);
    pid_t pid = rt_spawn("tests/programs/app", "once", NULL, NULL);
    unsetenv("LD_PRELOAD");
    ck_assert_int_eq(rt_wait(pid), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL), 2);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_wrong_path_or_none_records_nothing_and_harms_nothing)
{
    rt_setup();
    setenv("MSTX_INJECTION_PATH", "/nonexistent/libtool.so", 1);
    ck_assert_int_eq(app("marks", "100", NULL), 0);
    unsetenv("MSTX_INJECTION_PATH");
    ck_assert_int_eq(app("marks", "100", NULL), 0);
    ck_assert_int_ne(access(rt_out, F_OK), 0);
    rt_done();
}
END_TEST

START_TEST(the_old_layout_and_the_routers_are_understood)
{
    struct cap c[2];
    rt_setup();
    ck_assert_int_eq(rt_wait(rt_spawn("tests/programs/app_old", "ranges", NULL, NULL)), 0);
    ck_assert_int_eq(rt_wait(rt_spawn("tests/programs/app_router", "ranges", NULL, NULL)), 0);
    ck_assert_uint_eq(cap_load(c, 2, rt_out), 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(cap_count(&c[i], MSTX_REC_BEGIN, "loader", "inner"), 1);
        ck_assert_uint_eq(cap_count(&c[i], MSTX_REC_HEAP, NULL, NULL), 0);
        cap_free(&c[i]);
    }
    rt_done();
}
END_TEST

START_TEST(several_images_and_files_share_one_capture)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("images", rt_built("tests/programs/image.so"), NULL), 0);
    cap_load_one(&c, rt_out);
    static const char *const marks[] = {"from the library",     "from its second file",
                                        "from the program",     "after dlclose",
                                        "the tool told its id", "inside"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, marks[i]), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_END, "cxx", "scope"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(racing_first_calls_are_all_recorded)
{
    rt_setup();
    for (int round = 0; round < 10; round++) {
        struct cap c;
        scratch_remove(rt_out);
        ck_assert_int_eq(app("race", NULL, NULL), 0);
        cap_load_one(&c, rt_out);
        ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL), 8);
        cap_free(&c);
    }
    rt_done();
}
END_TEST

/* ---- what is recorded ------------------------------------------------------------------------ */

START_TEST(ranges_carry_id_domain_stream_and_the_ticks_of_their_start)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("ranges", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    const struct mstx_rec *b = &cap_find(&c, MSTX_REC_BEGIN, "inner")->r;
    const struct mstx_rec *e = &cap_find(&c, MSTX_REC_END, "inner")->r;
    ck_assert_uint_eq(b->id, e->id);
    ck_assert_uint_eq(e->arg, b->ticks);
    ck_assert_uint_ge(e->ticks, b->ticks);
    ck_assert_uint_eq(b->domain, e->domain);
    ck_assert_str_eq(cap_domain(&c, b->domain), "loader");
    ck_assert_uint_eq(b->arg, 0x1234);
    ck_assert(b->flags & MSTX_F_STREAM);
    ck_assert(!(e->flags & MSTX_F_OTHER_THREAD));
    ck_assert_uint_ne(cap_find(&c, MSTX_REC_MARK, "tick")->r.id, 0);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, NULL, "never ended"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_END, NULL, "never ended"), 0);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_range_may_end_on_another_thread)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("other-thread", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    const struct cap_rec *b = cap_find(&c, MSTX_REC_BEGIN, "handed over");
    const struct cap_rec *e = cap_find(&c, MSTX_REC_END, "handed over");
    ck_assert(e->r.flags & MSTX_F_OTHER_THREAD);
    ck_assert_uint_ne(b->tid, e->tid);
    ck_assert_uint_eq(e->r.arg, b->r.ticks);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_finished_capture_is_closed_dated_and_says_what_it_is_of)
{
    struct cap c;
    rt_setup();
    setenv("RANK", "3", 1);
    setenv("WORLD_SIZE", "8", 1);
    setenv("LOCAL_RANK", "1", 1);
    ck_assert_int_eq(app("marks", "100000", NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_ptr_nonnull(strstr(c.path, "/rank_3/"));
    ck_assert_int_eq(c.head.rank, 3);
    ck_assert_int_eq(c.head.world_size, 8);
    ck_assert_int_eq(c.head.local_rank, 1);
    ck_assert_uint_eq(c.open_files, 0);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL), 100000);
    ck_assert_uint_ge(cap_count(&c, MSTX_REC_CALIB, NULL, NULL), 2);
    ck_assert_uint_ge(c.files, 4);
    ck_assert_uint_eq(cap_says(&c, MSTX_INFO, "cmdline="), 1);
    ck_assert_uint_eq(cap_says(&c, MSTX_INFO, "rank_from=torchrun"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(calibration_dates_a_mark_to_the_wall_clock)
{
    struct cap c;
    rt_setup();
    time_t before = time(NULL);
    ck_assert_int_eq(app("paced", "50", NULL), 0);
    time_t after = time(NULL);
    cap_load_one(&c, rt_out);
    const struct mstx_rec *first = NULL, *last = NULL;
    for (size_t i = 0; i < c.n; i++) {
        if (c.rec[i].r.type != MSTX_REC_CALIB)
            continue;
        first = first != NULL ? first : &c.rec[i].r;
        last = &c.rec[i].r;
    }
    ck_assert_ptr_ne(first, last);
    double rate = (double)(last->arg - first->arg) / (double)(last->ticks - first->ticks);
    const struct mstx_rec *m = &cap_find(&c, MSTX_REC_MARK, "t0")->r;
    double s = ((double)first->arg + rate * ((double)m->ticks - (double)first->ticks)) / 1e9;
    ck_assert_double_ge(s, (double)before - 1);
    ck_assert_double_le(s, (double)after + 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(without_a_counter_the_clock_of_the_system_serves)
{
    struct cap c;
    rt_setup();
    setenv("MSTX_CLOCK", "monotonic", 1);
    ck_assert_int_eq(app("ranges", NULL, NULL), 0);
    unsetenv("MSTX_CLOCK");
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(c.head.clock, MSTX_CLOCK_MONOTONIC);
    ck_assert_uint_eq(c.head.tick_hz, 1000000000);
    for (size_t i = 0; i < c.n; i++) {
        if (c.rec[i].r.type == MSTX_REC_CALIB)
            ck_assert_uint_le(c.rec[i].r.id - c.rec[i].r.ticks + 1000000, 2000000);
    }
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(domains_are_filtered_at_start)
{
    struct cap c;
    rt_setup();
    setenv("MSTX_DOMAIN_EXCLUDE", "loader", 1);
    app("ranges", NULL, NULL); /* an excluded range has id 0, which the program notices */
    unsetenv("MSTX_DOMAIN_EXCLUDE");
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, NULL, "inner"), 0);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, NULL, "outer"), 1);
    cap_free(&c);
    scratch_remove(rt_out);
    setenv("MSTX_DOMAIN_INCLUDE", "other,loader", 1);
    app("ranges", NULL, NULL);
    unsetenv("MSTX_DOMAIN_INCLUDE");
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, NULL, "inner"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, NULL, "outer"), 0);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(memory_calls_are_recorded_and_garbage_handles_left_alone)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("memory", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_HEAP, "pool", NULL), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_HEAP, "ptaCaching", NULL), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_REGION, NULL, NULL), 6);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_REGION_END, NULL, NULL), 2);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_PERMIT, NULL, NULL), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_HEAP_END, NULL, NULL), 1);
    const struct cap_rec *r = c.rec;
    while (r->r.type != MSTX_REC_REGION)
        r++;
    struct mstx_rec_mem m;
    memcpy(&m, &r[1].r, sizeof m);
    ck_assert_uint_eq(m.type, MSTX_REC_MEMORY);
    ck_assert_uint_eq(m.address, 0x10000);
    ck_assert_uint_eq(m.size, 64);
    ck_assert_uint_eq(m.device, 3);
    ck_assert_uint_ne(r->r.arg, 0); /* its heap */
    cap_free(&c);
    rt_done();
}
END_TEST

/* ---- threads, signals, processes ------------------------------------------------------------- */

START_TEST(many_threads_lose_nothing)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("many", "8", "50000"), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "busy"), 400000);
    ck_assert_uint_eq(c.dropped, 0);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_storm_of_short_threads_shares_few_rings)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("storm", "1600", NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "storm"), 1600);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_END, NULL, "life"), 1600);
    ck_assert_uint_le(c.files, 64);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(marks_of_an_ending_thread_are_recorded_once_more)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("late", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "early"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "late"), 2);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(marks_in_signal_handlers_are_recorded_and_disturb_none)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("signal", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    size_t begun = cap_count(&c, MSTX_REC_BEGIN, NULL, "main");
    size_t ended = cap_count(&c, MSTX_REC_END, NULL, "main");
    size_t handler = cap_count(&c, MSTX_REC_MARK, NULL, "from handler");
    ck_assert_uint_eq(begun, ended);
    ck_assert_uint_ge(handler + c.dropped, 301); /* dropped: met a change of segment */
    for (size_t i = 0; i < c.n; i++) {
        const struct mstx_rec *r = &c.rec[i].r;
        if (r->type == MSTX_REC_END && r->ticks < r->arg)
            ck_abort_msg("a range ended before it began");
    }
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(handlers_may_come_with_new_texts_and_domains_at_any_time)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("handlers", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    size_t inside = cap_count(&c, MSTX_REC_MARK, NULL, "inside");
    ck_assert_uint_gt(inside, 0); /* those that meet the opening of the ring are dropped */
    ck_assert_uint_gt(cap_count(&c, MSTX_REC_MARK, "default", NULL), inside);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_forked_child_has_a_capture_of_its_own)
{
    struct cap c[2];
    rt_setup();
    ck_assert_int_eq(app("fork", NULL, NULL), 0);
    ck_assert_uint_eq(cap_load(c, 2, rt_out), 2);
    int parent = cap_count(&c[0], MSTX_REC_MARK, NULL, "before") == 1 ? 0 : 1;
    const struct cap *p = &c[parent], *k = &c[1 - parent];
    ck_assert_uint_eq(k->head.ppid, p->head.pid);
    ck_assert_uint_eq(cap_count(p, MSTX_REC_MARK, NULL, NULL), 2);
    ck_assert_uint_eq(cap_count(p, MSTX_REC_END, NULL, "parent range"), 1);
    ck_assert_uint_eq(cap_count(k, MSTX_REC_MARK, NULL, NULL), 2);
    ck_assert_uint_eq(cap_count(k, MSTX_REC_MARK, "made before", NULL), 1);
    ck_assert_uint_eq(cap_count(k, MSTX_REC_END, NULL, NULL), 0);
    cap_free(&c[0]);
    cap_free(&c[1]);
    rt_done();
}
END_TEST

START_TEST(exec_leaves_the_old_image_readable_and_starts_anew)
{
    struct cap c[2];
    rt_setup();
    ck_assert_int_eq(app("exec", NULL, NULL), 0);
    ck_assert_uint_eq(cap_load(c, 2, rt_out), 2);
    ck_assert_uint_eq(c[0].head.pid, c[1].head.pid); /* and yet two directories */
    size_t old = 0, fresh = 0;
    for (int i = 0; i < 2; i++) {
        old += cap_count(&c[i], MSTX_REC_MARK, NULL, "old image");
        fresh += cap_count(&c[i], MSTX_REC_MARK, NULL, "mark 1");
        cap_free(&c[i]);
    }
    ck_assert_uint_eq(old, 1);
    ck_assert_uint_eq(fresh, 1);
    rt_done();
}
END_TEST

START_TEST(the_exit_status_is_the_programs)
{
    rt_setup();
    ck_assert_int_eq(app("exit", "42", NULL), 42);
    rt_done();
}
END_TEST

/* ---- kill ------------------------------------------------------------------------------------- */

/* The reader of the product says the same. */
static void import_killed(uint64_t marks)
{
    struct mstx_import_result r;
    struct ms_err err = {0};
    char db[128];
    snprintf(db, sizeof db, "%s/run.db", rt_out);
    ck_ok(mstx_import(rt_out, db, &r, &err), err);
    ck_assert_uint_ge(r.records, marks);
    ck_assert_uint_eq(r.dropped, 0);
    ck_assert_uint_eq(r.problems, 0);
}

static void kill_once(unsigned seed, volatile uint64_t *seen, const char *shm)
{
    struct cap c;
    *seen = 0;
    pid_t pid = rt_spawn("tests/programs/app", "until-killed", shm, NULL);
    while (*seen == 0)
        usleep(200);
    usleep(seed * 7919 % 2999); /* up to three milliseconds, all over the segments' ends */
    kill(pid, SIGKILL);
    ck_assert_int_eq(rt_wait(pid), 128 + SIGKILL);
    uint64_t told = *seen, next = 1;
    cap_load_one(&c, rt_out);
    for (size_t i = 0; i < c.n; i++) {
        const struct mstx_rec *r = &c.rec[i].r;
        if (r->type != MSTX_REC_MARK)
            continue;
        const char *name = cap_text(&c, r->name);
        if (r->arg != next || name[0] != 'k' || strtoull(name + 1, NULL, 10) != (next - 1) % 100)
            ck_abort_msg("mark %llu is '%s' of %llu", (unsigned long long)next, name,
                         (unsigned long long)r->arg);
        next++;
    }
    ck_assert_uint_ge(next - 1, told); /* every mark that returned */
    ck_assert_uint_le(next - 1, told + 1);
    ck_assert_uint_ne(c.open_files, 0);
    if (seed % 8 == 0)
        import_killed(next - 1);
    cap_free(&c);
    scratch_remove(rt_out);
}

START_TEST(a_killed_process_loses_no_published_record)
{
    char shm[64];
    const char *kills = getenv("MSTX_KILLS");
    unsigned n = kills != NULL ? (unsigned)strtoul(kills, NULL, 10) : RT_SANITIZED ? 40 : 200;
    rt_setup();
    snprintf(shm, sizeof shm, "/mstx-test-%d", (int)getpid());
    int fd = shm_open(shm, O_RDWR | O_CREAT | O_EXCL, 0600);
    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    volatile uint64_t *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    setenv("MSTX_SEGMENT", "64k", 1);
    for (unsigned i = 1; i <= n; i++)
        kill_once(i, seen, shm);
    unsetenv("MSTX_SEGMENT");
    close(fd);
    munmap((void *)(uintptr_t)seen, 4096);
    shm_unlink(shm);
    rt_done();
}
END_TEST

/* ---- bad input, bad places ---------------------------------------------------------------------- */

START_TEST(bad_input_is_refused_or_recorded_and_told_once)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("bad", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, ""), 0);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "=1+1"), 0);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "good"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_END, NULL, "once"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_END, "gone", "ended elsewhere"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "in a destroyed domain"), 0);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, "gone", "revived"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "garbage handle"), 0);
    ck_assert_uint_eq(cap_find(&c, MSTX_REC_MARK, "stream")->r.arg, 0xdeadbeef1);
    size_t longest = 0;
    for (size_t i = 1; i <= c.ntexts; i++)
        longest = c.text[i]->len > longest ? c.text[i]->len : longest;
    ck_assert_uint_eq(longest, 100000);
    ck_assert_uint_eq(cap_says(&c, MSTX_NOTE, "refused"), 1);
    ck_assert_uint_eq(cap_says(&c, MSTX_NOTE, "not open"), 1);
    ck_assert_uint_eq(cap_says(&c, MSTX_NOTE, "was ended in domain 'kept'"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(stale_ids_stay_known_and_open_ranges_are_no_burden)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("stale", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, NULL, "left open"), 1000);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_deleted_capture_directory_stops_recording_alone)
{
    rt_setup();
    ck_assert_int_eq(app("deleted", rt_out, NULL), 0);
    rt_done();
}
END_TEST

START_TEST(a_program_that_closes_all_descriptors_is_recorded_on_and_its_files_left_alone)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("closes", rt_dir, NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL), 20001);
    ck_assert_uint_ge(c.ntexts, 20000);
    ck_assert_uint_eq(c.dropped, 0);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_program_without_standard_files_is_recorded_and_may_open_them)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("without-standard", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL), 20001);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(no_file_but_those_of_the_capture_stays_open)
{
    rt_setup();
    ck_assert_int_eq(app("count-files", rt_dir, NULL), 0);
    rt_done();
}
END_TEST

/* Another way to the same number: words behind the name, which has no ")" here. */
static uint64_t start_of(pid_t pid)
{
    char path[64], line[1024], *rest = line;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    ck_assert(f != NULL && fgets(line, sizeof line, f) != NULL);
    fclose(f);
    for (int field = 1; field < 22; field++)
        strsep(&rest, " ");
    return strtoull(rest, NULL, 10);
}

START_TEST(a_header_has_the_start_of_the_process_and_the_size_of_its_file)
{
    struct cap c;
    struct stat st;
    char path[1100];
    rt_setup();
    const pid_t pid = rt_spawn("tests/programs/app", "paced", "500", NULL);
    const uint64_t start = start_of(pid);
    ck_assert_uint_ne(start, 0);
    ck_assert_int_eq(rt_wait(pid), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(c.head.start_jiffies, start);
    snprintf(path, sizeof path, "%.1023s/" MSTX_STRINGS, c.path);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_le(c.head.head, c.head.capacity);
    ck_assert_uint_eq((c.head.capacity + MSTX_SEG_HEADER) & (c.head.capacity + MSTX_SEG_HEADER - 1),
                      0);
    cap_free(&c);
    rt_done();
}
END_TEST

/* Every digit, and a point anywhere. */
START_TEST(seconds_of_the_flight_recorder_are_read_to_the_digit)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } of[] = {{"9", 9000000000},
              {"0.9", 900000000},
              {"12.5", 12500000000},
              {"3.25", 3250000000},
              {"4678", 4678000000000},
              {"1.", 1000000000},
              {".5", 500000000},
              {"1.2.3", 0},
              {"1e3", 0},
              {"-1", 0},
              {"1 ", 0},
              {"/", 0},
              {":", 0}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct cap c;
        rt_setup();
        setenv("MSTX_FLIGHT", of[i].text, 1);
        ck_assert_int_eq(app("marks", "10", NULL), 0);
        unsetenv("MSTX_FLIGHT");
        cap_load_one(&c, rt_out);
        ck_assert_msg(c.head.flight_ns == of[i].ns, "%s: %llu", of[i].text,
                      (unsigned long long)c.head.flight_ns);
        cap_free(&c);
        rt_done();
    }
}
END_TEST

START_TEST(a_limit_on_file_sizes_does_not_end_the_program)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("limited", "300000", NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL) + c.dropped, 220000);
    ck_assert_uint_eq(cap_says(&c, MSTX_NOTE, "File too large"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_pipe_that_nobody_reads_does_not_end_the_program)
{
    struct cap c;
    rt_setup();
    setenv("MSTX_QUIET", "0", 1);
    ck_assert_int_eq(app("unheard", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "heard"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_place_that_cannot_be_written_records_nothing)
{
    rt_setup();
    snprintf(rt_out, sizeof rt_out, "/proc/nowhere/run");
    setenv("MSTX_OUT", rt_out, 1);
    ck_assert_int_eq(app("marks", "1000", NULL), 0);
    rt_done();
}
END_TEST

/* The oldest records stay, the newest are there too, and what is missing between is counted. */
START_TEST(a_full_disk_keeps_both_ends_and_counts_the_rest)
{
    struct cap c;
    rt_setup();
    if (mkdir(rt_out, 0755) != 0 || mount("tmpfs", rt_out, "tmpfs", 0, "size=3000k") != 0) {
        printf("skip full disk: cannot mount a tmpfs (%s)\n", strerror(errno));
        rt_done();
        return;
    }
    int status = app("numbered", "200000", NULL);
    cap_load_one(&c, rt_out);
    umount(rt_out);
    ck_assert_int_eq(status, 0);
    enum { MARKS = 200000 };
    static bool there[MARKS + 2];
    uint64_t told = 0, gaps = 0;
    for (size_t i = 0; i < c.n; i++) {
        const struct mstx_rec *r = &c.rec[i].r;
        told += r->type == MSTX_REC_DROP ? r->arg : 0;
        if (r->type != MSTX_REC_MARK)
            continue;
        if (r->arg > MARKS || there[r->arg])
            ck_abort_msg("mark %llu is none of ours, or twice", (unsigned long long)r->arg);
        there[r->arg] = true;
    }
    for (size_t i = 1; i < MARKS; i++)
        gaps += there[i] && !there[i + 1];
    ck_assert(there[1] && there[MARKS]); /* the oldest and the newest */
    ck_assert_uint_eq(gaps, 1);
    ck_assert_uint_gt(c.dropped, 0);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL) + c.dropped, 200000);
    ck_assert_uint_le(told, c.dropped);
    ck_assert_uint_eq(cap_says(&c, MSTX_NOTE, "No space"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(the_size_limit_drops_and_counts)
{
    struct cap c;
    rt_setup();
    setenv("MSTX_MAX_SIZE", "1m", 1);
    ck_assert_int_eq(app("marks", "200000", NULL), 0);
    unsetenv("MSTX_MAX_SIZE");
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL) + c.dropped, 200000);
    ck_assert_uint_eq(cap_says(&c, MSTX_NOTE, "limit of 1048576 bytes"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

/* Bytes on disk of the capture's files. */
static uint64_t bytes_below(const char *dir)
{
    char cmd[1200];
    unsigned long long n = 0;
    snprintf(cmd, sizeof cmd, "du -s --block-size=1 '%s'", dir);
    FILE *f = popen(cmd, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%llu", &n), 1);
    pclose(f);
    return n;
}

START_TEST(the_size_limit_counts_texts_too)
{
    enum { LIMIT = 1 << 20, DIRECTORIES = 64 << 10 };
    struct cap c;
    rt_setup();
    setenv("MSTX_MAX_SIZE", "1m", 1);
    ck_assert_int_eq(app("texts", "20000", NULL), 0);
    unsetenv("MSTX_MAX_SIZE");
    cap_load_one(&c, rt_out);
    ck_assert_uint_le(bytes_below(c.path), LIMIT + DIRECTORIES);
    ck_assert_uint_gt(c.ntexts, 1000); /* and it is used */
    ck_assert_uint_eq(cap_says(&c, MSTX_NOTE, "no room for new texts"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(the_drop_policy_never_waits_and_counts)
{
    struct cap c;
    rt_setup();
    setenv("MSTX_POLICY", "drop", 1);
    ck_assert_int_eq(app("marks", "300000", NULL), 0);
    unsetenv("MSTX_POLICY");
    cap_load_one(&c, rt_out);
    uint64_t told = 0;
    for (size_t i = 0; i < c.n; i++)
        told += c.rec[i].r.type == MSTX_REC_DROP ? c.rec[i].r.arg : 0;
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL) + c.dropped, 300000);
    ck_assert_uint_le(told, c.dropped);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(the_flight_recorder_holds_the_last_seconds)
{
    struct cap c;
    rt_setup();
    setenv("MSTX_FLIGHT", "0.5", 1);
    setenv("MSTX_SEGMENT", "32k", 1);
    ck_assert_int_eq(app("paced", "1500", "20"), 0);
    unsetenv("MSTX_FLIGHT");
    unsetenv("MSTX_SEGMENT");
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(c.head.flight_ns, 500000000);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "t0"), 0); /* the start gave way */
    const struct mstx_rec *a = NULL, *z = NULL;
    uint64_t newest = 0, oldest = UINT64_MAX, first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < c.n; i++) {
        const struct mstx_rec *r = &c.rec[i].r;
        if (r->type == MSTX_REC_CALIB) {
            a = a != NULL ? a : r;
            z = r;
        }
        if (r->type != MSTX_REC_MARK)
            continue;
        newest = r->ticks > newest ? r->ticks : newest;
        oldest = r->ticks < oldest ? r->ticks : oldest;
        first = r->arg < first ? r->arg : first;
        last = r->arg > last ? r->arg : last;
    }
    double per_ns = (double)(z->ticks - a->ticks) / (double)(z->id - a->id);
    double held = (double)(newest - oldest) / per_ns / 1e9;
    ck_assert_double_ge(held, 0.5); /* the whole window; a reader cuts what is older */
    ck_assert_uint_eq(last, 1500 * 20);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL), last - first + 1); /* no gap */
    ck_assert_uint_eq(c.dropped, 0);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(staged_segments_arrive_complete)
{
    struct cap c;
    char stage[96], left[1100];
    rt_setup();
    snprintf(stage, sizeof stage, "%s/stage", rt_dir);
    setenv("MSTX_STAGE", stage, 1);
    setenv("MSTX_SEGMENT", "64k", 1);
    ck_assert_int_eq(app("marks", "50000", NULL), 0);
    unsetenv("MSTX_STAGE");
    unsetenv("MSTX_SEGMENT");
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, NULL), 50000);
    ck_assert_uint_eq(c.open_files, 0);
    snprintf(left, sizeof left, "%s/staged", c.path);
    ck_assert_int_ne(access(left, F_OK), 0);
    cap_free(&c);
    rt_done();
}
END_TEST

/* A copy of the program that changes its user ignores what its caller says. */
START_TEST(a_set_uid_program_records_nothing)
{
    char copy[128], cmd[1400];
    rt_setup();
    snprintf(copy, sizeof copy, "%s/app", rt_dir);
    snprintf(cmd, sizeof cmd, "cp %s %s && chown nobody %s && chmod 4755 %s && chmod 755 %s",
             rt_built("tests/programs/app"), copy, copy, copy, rt_dir);
    struct stat st;
    if (RT_SANITIZED || geteuid() != 0 || system(cmd) != 0 || stat(copy, &st) != 0 ||
        st.st_uid == 0) {
        printf("skip set-uid: needs root and no sanitizer\n");
        rt_done();
        return;
    }
    snprintf(cmd, sizeof cmd, "cd %s && chmod 777 . && ./app marks 10", rt_dir);
    ck_assert_int_eq(system(cmd), 0);
    ck_assert_int_ne(access(rt_out, F_OK), 0);
    snprintf(rt_out, sizeof rt_out, "%s/mstx-capture", rt_dir);
    ck_assert_int_ne(access(rt_out, F_OK), 0);
    rt_done();
}
END_TEST

START_TEST(equal_pids_on_one_host_name_do_not_meet)
{
    struct cap c[2];
    char cmd[2600];
    rt_setup();
    snprintf(cmd, sizeof cmd, "unshare --pid --fork --mount-proc %s marks 5 >/dev/null 2>&1",
             rt_built("tests/programs/app"));
    if (system(cmd) != 0) {
        printf("skip equal pids: cannot unshare the pid namespace\n");
        rt_done();
        return;
    }
    ck_assert_int_eq(system(cmd), 0);
    ck_assert_uint_eq(cap_load(c, 2, rt_out), 2);
    ck_assert_uint_eq(c[0].head.pid, c[1].head.pid);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(cap_count(&c[i], MSTX_REC_MARK, NULL, NULL), 5);
        cap_free(&c[i]);
    }
    rt_done();
}
END_TEST

TEST_MAIN_WITHIN(
    120, "rt", a_header_finds_the_recorder_by_its_variable,
    a_preloaded_recorder_is_found_without_variable,
    a_wrong_path_or_none_records_nothing_and_harms_nothing,
    the_old_layout_and_the_routers_are_understood, several_images_and_files_share_one_capture,
    racing_first_calls_are_all_recorded, ranges_carry_id_domain_stream_and_the_ticks_of_their_start,
    a_range_may_end_on_another_thread, a_finished_capture_is_closed_dated_and_says_what_it_is_of,
    calibration_dates_a_mark_to_the_wall_clock, without_a_counter_the_clock_of_the_system_serves,
    domains_are_filtered_at_start, memory_calls_are_recorded_and_garbage_handles_left_alone,
    many_threads_lose_nothing, a_storm_of_short_threads_shares_few_rings,
    marks_of_an_ending_thread_are_recorded_once_more,
    marks_in_signal_handlers_are_recorded_and_disturb_none,
    handlers_may_come_with_new_texts_and_domains_at_any_time,
    a_forked_child_has_a_capture_of_its_own, exec_leaves_the_old_image_readable_and_starts_anew,
    the_exit_status_is_the_programs, a_killed_process_loses_no_published_record,
    bad_input_is_refused_or_recorded_and_told_once,
    stale_ids_stay_known_and_open_ranges_are_no_burden,
    a_deleted_capture_directory_stops_recording_alone,
    a_program_that_closes_all_descriptors_is_recorded_on_and_its_files_left_alone,
    a_program_without_standard_files_is_recorded_and_may_open_them,
    no_file_but_those_of_the_capture_stays_open,
    a_header_has_the_start_of_the_process_and_the_size_of_its_file,
    seconds_of_the_flight_recorder_are_read_to_the_digit,
    a_limit_on_file_sizes_does_not_end_the_program,
    a_pipe_that_nobody_reads_does_not_end_the_program,
    a_place_that_cannot_be_written_records_nothing, a_full_disk_keeps_both_ends_and_counts_the_rest,
    the_size_limit_drops_and_counts, the_size_limit_counts_texts_too,
    the_drop_policy_never_waits_and_counts, the_flight_recorder_holds_the_last_seconds,
    staged_segments_arrive_complete, a_set_uid_program_records_nothing,
    equal_pids_on_one_host_name_do_not_meet)
