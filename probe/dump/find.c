/* SPDX-License-Identifier: MIT
 *
 * find: the directory layouts of dumps.
 *
 * A process that did not know its rank when it began to dump has a directory proc{PID} (pid{PID}
 * from aclgraph). Such directories get rank numbers behind the real ranks, in ascending order of
 * PID, and a note reports that.
 */
#include "probe/dump/find.h"

#include "probe/base/arena.h"
#include "probe/base/jread.h"
#include "probe/base/mem.h"

#include <limits.h>
#include <unistd.h>

enum dir_kind { DIR_OTHER, DIR_RANK, DIR_PROC, DIR_STEP };

/* Parses "wordDIGITS". A bare word counts as 0 where the official tool accepts that. */
static bool parse_numbered(struct ms_str name, struct ms_str word, bool bare_ok, int64_t *number)
{
    if (!ms_str_starts(name, word))
        return false;
    struct ms_str digits = ms_str_sub(name, word.n, name.n);
    *number = 0;
    return digits.n == 0 ? bare_ok : digits.p[0] != '-' && ms_str_i64(digits, number);
}

static enum dir_kind kind_of(struct ms_str name, int64_t *number)
{
    if (parse_numbered(name, MS_STR("rank"), true, number))
        return DIR_RANK;
    if (parse_numbered(name, MS_STR("step"), true, number))
        return DIR_STEP;
    if (parse_numbered(name, MS_STR("proc"), false, number) ||
        parse_numbered(name, MS_STR("pid"), false, number))
        return DIR_PROC;
    *number = -1;
    return DIR_OTHER;
}

static enum ms_rc join(struct probe_places *ps, const char *dir, struct ms_str name,
                       const char **path, struct ms_err *err)
{
    struct ms_buf b = {.max = PATH_MAX};
    size_t n = strlen(dir);
    ms_buf_puts(&b, dir);
    if (n != 0 && dir[n - 1] != '/')
        ms_buf_putc(&b, '/');
    ms_buf_str(&b, name);
    enum ms_rc rc = ms_buf_check(&b, err);
    *path = rc == MS_OK ? ms_arena_str(ps->arena, ms_buf_slice(&b)).p : NULL;
    ms_buf_free(&b);
    return rc == MS_OK && *path == NULL ? ms_no_memory(err) : rc;
}

static enum ms_rc add_note(struct probe_places *ps, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
static enum ms_rc add_note(struct probe_places *ps, struct ms_err *err, const char *fmt, ...)
{
    struct ms_buf b = {.max = 3 * PATH_MAX};
    va_list ap;
    va_start(ap, fmt);
    ms_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    struct ms_str s = b.bad == MS_OK ? ms_arena_str(ps->arena, ms_buf_slice(&b)) : MS_STR_NONE;
    ms_buf_free(&b);
    const char **slot = s.p != NULL ? ms_vec_push(&ps->notes) : NULL;
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = s.p;
    return MS_OK;
}

/* Tells whether a file has level debug. The level comes before the data, so little is read. */
static bool is_of_debug_level(const char *path)
{
    struct ms_file f;
    struct ms_jread r;
    bool debug = false, found = false;
    if (ms_file_map(&f, path, SIZE_MAX, NULL) != MS_OK)
        return false;
    ms_jread_init(&r, f.p, f.n, 0);
    if (ms_jread_next(&r) == MS_J_OBJ) {
        while (!found && ms_jread_next(&r) == MS_J_KEY) {
            found = ms_str_is(r.text, "level");
            enum ms_jtok tok = ms_jread_next(&r);
            debug = found && tok == MS_J_STR && ms_str_is(r.text, "debug");
            if (ms_jread_skip(&r, tok) == MS_J_ERR)
                break;
        }
    }
    ms_file_unmap(&f);
    return debug;
}

/* Finds dump.json or debug.json in dir; NULL when there is neither. When both exist, dump.json is
 * taken unless its level is debug, as it is then empty. */
static enum ms_rc json_in(struct probe_places *ps, const char *dir, const char **json,
                          struct ms_err *err)
{
    const char *dump, *debug;
    MS_TRY(join(ps, dir, MS_STR("dump.json"), &dump, err));
    MS_TRY(join(ps, dir, MS_STR("debug.json"), &debug, err));
    const bool has_dump = ms_path_kind(dump) == MS_KIND_FILE,
               has_debug = ms_path_kind(debug) == MS_KIND_FILE;
    *json = NULL;
    if (has_dump)
        *json = has_debug && is_of_debug_level(dump) ? debug : dump;
    else if (has_debug)
        *json = debug;
    return MS_OK;
}

static enum ms_rc add_place(struct probe_places *ps, struct probe_place place, struct ms_err *err)
{
    struct probe_place *slot = ms_vec_push(&ps->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = place;
    return MS_OK;
}

/* Adds the directory of a rank inside that of a step. */
static enum ms_rc add_rank(struct probe_places *ps, const char *dir, const char *part, int64_t step,
                           int64_t rank, struct ms_err *err)
{
    const char *json;
    MS_TRY(json_in(ps, dir, &json, err));
    if (json == NULL && access(dir, X_OK) != 0) /* opening it says why it cannot be read */
        MS_TRY(join(ps, dir, MS_STR("dump.json"), &json, err));
    if (json == NULL) {
        ps->empty++;
        return add_note(ps, err, "%s: no dump.json in it", dir);
    }
    return add_place(ps, (struct probe_place){dir, json, part, step, rank}, err);
}

/* Adds the names of one kind in natural order; *next_rank becomes one more than the last rank. */
static enum ms_rc add_ranks_of(struct probe_places *ps, const char *dir, const struct ms_dir *d,
                               enum dir_kind kind, const char *part, int64_t step,
                               int64_t *next_rank, struct ms_err *err)
{
    for (size_t i = 0; i < d->names.n; i++) {
        int64_t rank;
        if (kind_of(d->names.p[i], &rank) != kind)
            continue;
        const char *sub;
        MS_TRY(join(ps, dir, d->names.p[i], &sub, err));
        enum ms_kind what = ms_path_kind(sub);
        if (what == MS_KIND_NONE)
            MS_TRY(add_note(ps, err, "%s: a link that leads nowhere", sub));
        if (what != MS_KIND_DIR)
            continue;
        if (kind == DIR_PROC) {
            rank = *next_rank;
            MS_TRY(
                add_note(ps, err, "%s: rank not known, taken as rank %lld", sub, (long long)rank));
        }
        MS_TRY(add_rank(ps, sub, part, step, rank, err));
        if (rank >= *next_rank)
            *next_rank = rank + 1;
    }
    return MS_OK;
}

static enum ms_rc add_ranks(struct probe_places *ps, const char *dir, const struct ms_dir *d,
                            const char *part, int64_t step, struct ms_err *err)
{
    int64_t next_rank = 0;
    MS_TRY(add_ranks_of(ps, dir, d, DIR_RANK, part, step, &next_rank, err));
    return add_ranks_of(ps, dir, d, DIR_PROC, part, step, &next_rank, err);
}

static enum ms_rc add_step(struct probe_places *ps, const char *dir, const char *part, int64_t step,
                           struct ms_err *err)
{
    struct ms_dir d;
    MS_TRY(ms_dir_list(&d, dir, err));
    enum ms_rc rc = add_ranks(ps, dir, &d, part, step, err);
    ms_dir_free(&d);
    return rc;
}

static enum ms_rc add_root(struct probe_places *ps, const char *dir, const struct ms_dir *d,
                           const char *part, struct ms_err *err)
{
    for (size_t i = 0; i < d->names.n; i++) {
        int64_t step;
        if (kind_of(d->names.p[i], &step) != DIR_STEP)
            continue;
        const char *sub;
        MS_TRY(join(ps, dir, d->names.p[i], &sub, err));
        if (ms_path_kind(sub) == MS_KIND_DIR)
            MS_TRY(add_step(ps, sub, part, step, err));
    }
    return MS_OK;
}

/* Returns the number of a name of this kind, else -1. */
static int64_t number_in(struct ms_str name, enum dir_kind kind)
{
    int64_t number;
    return kind_of(name, &number) == kind ? number : -1;
}

/* Adds a file; step and rank come from the names of its parent directories. */
static enum ms_rc add_place_by_name(struct probe_places *ps, const char *dir, const char *json,
                                    struct ms_err *err)
{
    struct probe_place p = {dir, json, "", -1, -1};
    const char *above = ms_arena_str(ps->arena, ms_path_dir(dir)).p;
    if (above == NULL)
        return ms_no_memory(err);
    p.rank = number_in(ms_path_base(dir), DIR_RANK);
    p.step = number_in(ms_path_base(above), DIR_STEP);
    return add_place(ps, p, err);
}

static enum ms_rc find_in_split(struct probe_places *ps, const char *dir, struct ms_err *err)
{
    static const char *const parts[] = {"graph", "pynative"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct ms_dir d;
        const char *sub;
        MS_TRY(join(ps, dir, ms_str_of(parts[i]), &sub, err));
        if (ms_path_kind(sub) != MS_KIND_DIR)
            continue;
        MS_TRY(ms_dir_list(&d, sub, err));
        enum ms_rc rc = add_root(ps, sub, &d, parts[i], err);
        ms_dir_free(&d);
        MS_TRY(rc);
    }
    return MS_OK;
}

struct probe_find_foreign probe_find_foreign;

/* Converts and searches a dump in a framework's own layout. */
static enum ms_rc find_in_foreign(struct probe_places *ps, const char *dir, struct ms_err *err)
{
    struct ms_dir d;
    char *root;
    if (probe_find_foreign.is_one == NULL || !probe_find_foreign.is_one(dir))
        return MS_OK;
    MS_TRY(probe_find_foreign.convert(dir, &root, err));
    const char *kept = ms_arena_str(ps->arena, ms_str_of(root)).p;
    ms_free(root);
    if (kept == NULL)
        return ms_no_memory(err);
    MS_TRY(ms_dir_list(&d, kept, err));
    enum ms_rc rc = add_root(ps, kept, &d, "", err);
    ms_dir_free(&d);
    return rc;
}

static enum ms_rc find_in_dir(struct probe_places *ps, const char *dir, struct ms_err *err)
{
    struct ms_dir d;
    const char *json;
    MS_TRY(json_in(ps, dir, &json, err));
    if (json != NULL)
        return add_place_by_name(ps, dir, json, err);
    MS_TRY(ms_dir_list(&d, dir, err));
    /* dir may be a step directory, a root, a split root or a framework's own dump; the first that
     * has dumps is used. */
    enum ms_rc rc = add_ranks(ps, dir, &d, "", number_in(ms_path_base(dir), DIR_STEP), err);
    if (rc == MS_OK && ps->list.n == 0)
        rc = add_root(ps, dir, &d, "", err);
    if (rc == MS_OK && ps->list.n == 0)
        rc = find_in_split(ps, dir, err);
    if (rc == MS_OK && ps->list.n == 0)
        rc = find_in_foreign(ps, dir, err);
    ms_dir_free(&d);
    return rc;
}

static enum ms_rc find_file(struct probe_places *ps, const char *path, struct ms_err *err)
{
    const char *json = ms_arena_str(ps->arena, ms_str_of(path)).p;
    const char *dir = ms_arena_str(ps->arena, ms_path_dir(path)).p;
    if (json == NULL || dir == NULL)
        return ms_no_memory(err);
    return add_place_by_name(ps, dir, json, err);
}

static enum ms_rc find(struct probe_places *ps, const char *path, struct ms_err *err)
{
    const char *own = ms_arena_str(ps->arena, ms_str_of(path)).p;
    if (own == NULL)
        return ms_no_memory(err);
    /* Anything but a directory is opened as a file; opening it reports what is wrong. */
    if (ms_path_kind(path) != MS_KIND_DIR)
        return find_file(ps, path, err);
    MS_TRY(find_in_dir(ps, own, err));
    if (ps->list.n != 0)
        return MS_OK;
    ms_fail(err, MS_E_NOTFOUND, "%s: no dump in this directory", path);
    if (ps->notes.n != 0)
        ms_err_hint(err, "%s", ps->notes.p[0]);
    else
        ms_err_hint(err, "expected dump.json, or rank*/ or step*/ directories that lead to one");
    return MS_E_NOTFOUND;
}

enum ms_rc probe_find(struct probe_places *places, const char *path, struct ms_err *err)
{
    *places = (struct probe_places){.arena = ms_arena_new(SIZE_MAX)};
    enum ms_rc rc = places->arena != NULL ? find(places, path, err) : ms_no_memory(err);
    if (rc != MS_OK)
        probe_places_free(places);
    return rc;
}

void probe_places_free(struct probe_places *places)
{
    ms_vec_free(&places->list);
    ms_vec_free(&places->notes);
    ms_arena_free(places->arena);
    places->arena = NULL;
}
