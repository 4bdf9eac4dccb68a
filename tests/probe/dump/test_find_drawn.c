/* SPDX-License-Identifier: MIT
 *
 * find_drawn: drawn folders of dumps, with steps, ranks, processes without a rank, parts of a mode,
 * files, links and empty folders in them: the dumps that are found, the notes, the counts and the
 * errors are those on record.
 */
#include "probe/dump/census.h"
#include "probe/dump/find.h"
#include "tests/support/closes.h"
#include "tests/support/recorded.h"

#include <inttypes.h>

enum { FOLDERS = 250 };

static uint64_t state;
static char dir[64];
static struct ms_err err;

#define below(n) recorded_below(&state, (n))

static void put_dump(const char *folder)
{
    static const char *const text[] = {
        "{\"task\": \"statistics\", \"level\": \"debug\", \"data\": {}}",
        "{\"task\": \"statistics\", \"level\": \"L1\", \"data\": {\"Torch.mul.0.forward\": "
        "{\"input_args\": [], \"input_kwargs\": {}, \"output\": [{\"type\": \"torch.Tensor\", "
        "\"dtype\": \"torch.float32\", \"shape\": [2], \"Max\": NaN, \"Min\": 1.0, \"Mean\": 1.0, "
        "\"Norm\": 1.0}]}}}",
        "{\"level\": {\"a\": 1}, \"level\": \"debug\"", "[]",
        "{\"data\": {}, \"level\": \"debug\"}"};
    char path[400];
    for (int debug = 0; debug < 2; debug++) {
        const char *t = text[below(5)];
        snprintf(path, sizeof path, "%s/%s", folder, debug != 0 ? "debug.json" : "dump.json");
        if (below(debug != 0 ? 4 : 6) == 0)
            continue;
        if (debug == 0 || below(3) == 0)
            write_file(path, t, strlen(t));
    }
}

/* A name of one of these lists in a folder: a folder with more below it, a file, or a link. */
static void draw_inside(const char *folder, int depth)
{
    static const char *const names[][9] = {
        {"graph", "pynative", "step0", "step1", "step10", "step", "step-1", "rank0", "stepx"},
        {"step0", "step2", "rank1", "rank0", "rank", "rank10", "proc12", "other", "step1"},
        {"rank0", "rank1", "rank10", "rank", "rank-1", "rankx", "proc9", "proc123", "pid7"}};
    for (uint32_t i = below(5); i > 0; i--) {
        char path[300];
        snprintf(path, sizeof path, "%.200s/%s", folder, names[depth][below(9)]);
        const uint32_t what = below(12);
        if (what == 0) {
            (void)!symlink("nowhere", path);
        } else if (what == 1) {
            if (ms_path_kind(path) == MS_KIND_NONE)
                write_file(path, "", 0);
        } else if (ms_mkdirs(path, NULL) == MS_OK) {
            if (depth < 2)
                draw_inside(path, depth + 1);
            if (depth == 2 || below(5) == 0)
                put_dump(path);
        }
    }
}

static void put(struct ms_buf *b, const char *text)
{
    for (const char *at; (at = strstr(text, dir)) != NULL; text = at + strlen(dir))
        ms_buf_put(b, text, (size_t)(at - text));
    ms_buf_puts(b, text);
}

static void put_places(struct ms_buf *b, const char *path)
{
    struct probe_places places;
    struct ms_err e = {0};
    if (probe_find(&places, path, &e) != MS_OK) {
        ms_buf_printf(b, "%d ", e.rc);
        put(b, e.msg);
        return;
    }
    for (size_t i = 0; i < places.list.n; i++) {
        const struct probe_place *p = &places.list.p[i];
        ms_buf_printf(b, "\n%s %" PRId64 " %" PRId64 " ", p->part, p->step, p->rank);
        put(b, p->dir);
        put(b, p->json);
    }
    ms_buf_printf(b, "\n%zu empty", places.empty);
    for (size_t i = 0; i < places.notes.n; i++)
        put(b, places.notes.p[i]);
    probe_places_free(&places);
}

static void put_counts(struct ms_buf *b, const char *path)
{
    struct probe_stat s = {0};
    struct ms_err e = {0};
    const enum ms_rc rc = probe_stat_read(&s, path, below(2), NULL, &e);
    ms_buf_printf(b, "\n%d %zu failed %" PRIu64 " bytes", rc, s.failed, s.bytes);
    for (size_t i = 0; s.ranks != NULL && i < s.places.list.n; i++) {
        const struct probe_stat_rank *r = &s.ranks[i];
        ms_buf_printf(b, " %d ", r->dump != NULL);
        put(b, r->err.msg);
        if (r->dump != NULL)
            ms_buf_printf(b, " %" PRIu64 " %" PRIu64 " %u", r->census.tensors,
                          r->census.nan_tensors, r->census.first_nan);
    }
    probe_stat_free(&s);
}

START_TEST(drawn_folders)
{
    struct ms_buf all = {.max = 1 << 20};
    for (unsigned seed = 0; seed < FOLDERS; seed++) {
        struct ms_buf b = {.max = 1 << 20};
        char path[200];
        static const char *const from[] = {
            "", "/step0", "/rank0", "/step0/rank0", "/step0/rank0/dump.json", "/graph", "/none"};
        state = seed;
        scratch_dir(dir);
        draw_inside(dir, 0);
        if (below(9) == 0)
            put_dump(dir);
        for (int i = 0; i < 7; i++) {
            snprintf(path, sizeof path, "%s%s%s", dir, from[i], below(5) == 0 ? "/" : "");
            put_places(&b, path);
        }
        put_counts(&b, dir);
        if (recorded_shows)
            printf("== %u %s\n", seed, ms_buf_z(&b));
        ms_buf_printf(&all, "folder %u: %08x\n", seed, ms_crc32(0, b.p, b.n));
        ms_buf_free(&b);
        ck_ok(ms_tmp_remove(dir) ? MS_OK : MS_E_IO, err);
    }
    recorded_check(&all, "folders");
}
END_TEST

RECORDED_MAIN_AROUND(count_open_files, ck_all_closed, "find_drawn", drawn_folders)
