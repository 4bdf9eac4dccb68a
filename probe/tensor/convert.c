/* SPDX-License-Identifier: MIT
 *
 * convert: walks a directory in natural order and converts every tensor file found, so that
 * messages and results are the same in every run.
 */
#include "probe/tensor/convert.h"

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"

#include <sys/stat.h>

enum { MAX_DEPTH = 64 };

struct run {
    const struct probe_convert *how;
    struct probe_converted *out;
    struct stat to; /* the output directory; skipped when it is inside an input */
    bool made;
};

/* ---- one file ------------------------------------------------------------- */

static enum ms_rc open_whole(struct probe_tensor *t, const char *from, struct ms_err *err)
{
    MS_TRY(probe_tensor_open(t, from, SIZE_MAX, err));
    const enum ms_rc rc = probe_tensor_verify(t, err);
    if (rc != MS_OK) {
        ms_err_wrap(err, "%s", from);
        probe_tensor_close(t);
    }
    return rc;
}

/* Makes the output directory, when the first tensor is written. */
static enum ms_rc make_output(struct run *r, struct ms_err *err)
{
    if (r->made)
        return MS_OK;
    MS_TRY(ms_mkdirs(r->how->to, err));
    if (stat(r->how->to, &r->to) != 0)
        return ms_fail_sys(err, "%s", r->how->to);
    r->made = true;
    return MS_OK;
}

static void count(const struct run *r, enum ms_rc rc, const struct ms_err *why)
{
    const struct probe_convert *how = r->how;
    if (rc == MS_OK)
        r->out->written++;
    else
        r->out->failed++;
    if (rc != MS_OK && how->on_failure != NULL)
        how->on_failure(how->ctx, why);
    if (how->on_progress != NULL)
        how->on_progress(how->ctx, r->out->written + r->out->failed);
}

/* Replaces the extension: "name.pt" becomes "name.npy". */
static struct ms_str new_name(struct ms_arena *a, struct ms_str name, enum probe_file_kind as)
{
    const char *ext = as == PROBE_FILE_NPY ? ".npy" : ".pt";
    const int64_t dot = ms_str_rfind(name, '.');
    const uint32_t stem = dot > 0 ? (uint32_t)dot : name.n, ext_n = (uint32_t)strlen(ext);
    char *p = ms_arena_text(a, stem + ext_n + 1);
    if (p == NULL)
        return MS_STR_NONE;
    memcpy(p, name.p, stem);
    memcpy(p + stem, ext, ext_n + 1);
    return (struct ms_str){p, stem + ext_n};
}

/* ---- a directory ---------------------------------------------------------- */

/* Tells whether a file is a tensor file by its name, because a dump holds other files as well. A
 * .bin may be anything, so its content is checked. */
static bool is_candidate(const char *path, struct ms_str name)
{
    if (ms_str_ends(name, MS_STR(".pt")) || ms_str_ends(name, MS_STR(".npy")))
        return true;
    struct ms_file f;
    if (!ms_str_ends(name, MS_STR(".bin")) || ms_file_map(&f, path, SIZE_MAX, NULL) != MS_OK)
        return false;
    const bool atb = probe_tensor_sniff(f.p, f.n) == PROBE_FILE_ATB;
    ms_file_unmap(&f);
    return atb;
}

struct place {
    const char *from, *to; /* directories */
    struct ms_arena *arena;
    struct ms_map written; /* names already written in `to` */
    unsigned depth;
};

static enum ms_rc write_entry(const struct run *r, struct place *at, const struct probe_tensor *t,
                              const char *from, struct ms_str name, struct ms_err *err)
{
    bool added;
    const struct ms_str to_name = new_name(at->arena, name, r->how->as);
    if (to_name.p == NULL || ms_map_put(&at->written, to_name, &added) == MS_MAP_NONE)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", from, ms_rc_text(MS_E_NOMEM));
    if (!added)
        return ms_fail(err, MS_E_ARG, "%s: %s was already written from another file here", from,
                       to_name.p);
    char *to = ms_path_join(at->to, to_name.p);
    if (to == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", from, ms_rc_text(MS_E_NOMEM));
    const enum ms_rc rc = probe_tensor_write(t, to, r->how->as, err);
    ms_free(to);
    return rc;
}

/* Converts one directory entry. A tensor that cannot be converted is counted; only a failure to
 * make the output directory is an error. */
static enum ms_rc convert_entry(struct run *r, struct place *at, const char *from,
                                struct ms_str name, struct ms_err *err)
{
    struct probe_tensor t;
    struct ms_err why = {0};
    enum ms_rc rc = open_whole(&t, from, &why);
    if (rc == MS_OK) {
        const enum ms_rc made = make_output(r, err);
        if (made == MS_OK)
            rc = write_entry(r, at, &t, from, name, &why);
        probe_tensor_close(&t);
        MS_TRY(made);
    }
    count(r, rc, &why);
    return MS_OK;
}

static enum ms_rc walk(struct run *r, const char *from, const char *to, unsigned depth,
                       struct ms_err *err);

static enum ms_rc walk_below(struct run *r, const struct place *at, const char *from,
                             const char *name, const struct stat *st, struct ms_err *err)
{
    if (st->st_dev == r->to.st_dev && st->st_ino == r->to.st_ino)
        return MS_OK;
    char *to = ms_path_join(at->to, name);
    if (to == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", from, ms_rc_text(MS_E_NOMEM));
    const enum ms_rc rc = walk(r, from, to, at->depth + 1, err);
    ms_free(to);
    return rc;
}

static enum ms_rc visit(struct run *r, struct place *at, struct ms_str name, struct ms_err *err)
{
    struct stat st;
    char *path = ms_path_join(at->from, name.p);
    if (path == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", at->from, ms_rc_text(MS_E_NOMEM));
    enum ms_rc rc = MS_OK;
    /* A link to a directory is not followed: it may lead back up. */
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        rc = walk_below(r, at, path, name.p, &st, err);
    } else if (is_candidate(path, name)) {
        rc = convert_entry(r, at, path, name, err);
    }
    ms_free(path);
    return rc;
}

static enum ms_rc walk(struct run *r, const char *from, const char *to, unsigned depth,
                       struct ms_err *err)
{
    if (depth > MAX_DEPTH)
        return ms_fail(err, MS_E_LIMIT, "%s: deeper than %d directories", from, MAX_DEPTH);
    struct ms_dir dir;
    MS_TRY(ms_dir_list(&dir, from, err));
    struct place at = {.from = from, .to = to, .arena = dir.arena, .depth = depth};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < dir.names.n && rc == MS_OK; i++)
        rc = visit(r, &at, dir.names.p[i], err);
    ms_map_free(&at.written);
    ms_dir_free(&dir);
    return rc;
}

/* ---- all ------------------------------------------------------------------ */

static enum ms_rc convert_single(struct run *r, struct ms_err *err)
{
    const struct probe_convert *how = r->how;
    struct ms_arena *arena = ms_arena_new(64 << 10);
    if (arena == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", how->from, ms_rc_text(MS_E_NOMEM));
    struct place at = {.to = how->to, .arena = arena};
    const enum ms_rc rc = convert_entry(r, &at, how->from, ms_path_base(how->from), err);
    ms_map_free(&at.written);
    ms_arena_free(arena);
    return rc;
}

enum ms_rc probe_convert(const struct probe_convert *how, struct probe_converted *out,
                         struct ms_err *err)
{
    struct run r = {.how = how, .out = out};
    *out = (struct probe_converted){0};
    const enum ms_kind kind = ms_path_kind(how->from);
    if (kind == MS_KIND_NONE)
        return ms_fail_kind(how->from, err);
    (void)stat(how->to, &r.to); /* on failure there is no output directory yet */
    if (kind != MS_KIND_DIR)
        return convert_single(&r, err);
    MS_TRY(walk(&r, how->from, how->to, 0, err));
    if (out->written + out->failed == 0)
        return ms_fail(err, MS_E_NOTFOUND, "%s: no tensor files (.pt, .npy, ATB .bin) in it",
                       how->from);
    return MS_OK;
}
