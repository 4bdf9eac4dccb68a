/* SPDX-License-Identifier: MIT
 *
 * ranks: pairs the dumps below two directories.
 *
 * When each side holds a single step, step numbers are ignored: step 0 of one run can be
 * compared with step 1 of another.
 */
#include "compare/pair/ranks.h"

#include "probe/base/arena.h"

enum { TEXT_MAX = 1 << 24 };

static const char *format_text(struct cmp_ranks *r, const char *fmt, ...) MS_PRINTF(2, 3);
static const char *format_text(struct cmp_ranks *r, const char *fmt, ...)
{
    struct ms_buf b = {.max = 1 << 16};
    va_list ap;
    va_start(ap, fmt);
    ms_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    struct ms_str s = b.bad == MS_OK ? ms_arena_str(r->arena, ms_buf_slice(&b)) : MS_STR_NONE;
    ms_buf_free(&b);
    return s.p;
}

static bool is_single_step(const struct probe_places *p)
{
    for (size_t i = 1; i < p->list.n; i++) {
        if (p->list.p[i].step != p->list.p[0].step)
            return false;
    }
    return true;
}

/* ---- couples -------------------------------------------------------------- */

/* Returns "step0" when there are several steps, "graph/step0" when the dump has parts. */
static const char *folder_of(struct cmp_ranks *r, const struct probe_place *p, bool steps)
{
    if ((steps || p->part[0] != 0) && p->step >= 0)
        return format_text(r, "%s%sstep%lld", p->part, p->part[0] != 0 ? "/" : "",
                           (long long)p->step);
    return p->part;
}

static enum ms_rc add(struct cmp_ranks *r, const struct probe_place *t, const struct probe_place *b,
                      bool files, bool steps, struct ms_err *err)
{
    struct cmp_couple *slot = ms_vec_push(&r->list);
    if (slot == NULL)
        return ms_no_memory(err);
    struct ms_str base = ms_path_base(t->dir);
    *slot = (struct cmp_couple){.t = t, .b = b, .suffix = "", .folder = ""};
    if (!files) {
        slot->suffix = format_text(r, "_%.*s", MS_STR_ARG(base));
        slot->folder = folder_of(r, t, steps);
    }
    return slot->suffix != NULL && slot->folder != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc note_problem(struct cmp_ranks *r, const char *line, struct ms_err *err)
{
    const char **slot = line != NULL ? ms_vec_push(&r->notes) : NULL;
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = line;
    return MS_OK;
}

static bool go_together(const struct probe_place *t, const struct probe_place *b, bool steps)
{
    return strcmp(t->part, b->part) == 0 && t->rank == b->rank && (!steps || t->step == b->step);
}

static const struct probe_place *find(const struct probe_places *in, const struct probe_place *for_,
                                      bool steps)
{
    for (size_t i = 0; i < in->list.n; i++) {
        if (go_together(&in->list.p[i], for_, steps))
            return &in->list.p[i];
    }
    return NULL;
}

static enum ms_rc pair_by_number(struct cmp_ranks *r, bool files, struct ms_err *err)
{
    bool steps = !is_single_step(&r->t) || !is_single_step(&r->b);
    for (size_t i = 0; i < r->t.list.n; i++) {
        const struct probe_place *t = &r->t.list.p[i], *b = find(&r->b, t, steps);
        if (b != NULL)
            MS_TRY(add(r, t, b, files, steps, err));
        else
            MS_TRY(note_problem(
                r, format_text(r, "%s has no counterpart on the golden side", t->json), err));
    }
    for (size_t i = 0; i < r->b.list.n; i++) {
        if (find(&r->t, &r->b.list.p[i], steps) == NULL)
            MS_TRY(note_problem(
                r, format_text(r, "%s has no counterpart on the target side", r->b.list.p[i].json),
                err));
    }
    return MS_OK;
}

/* Pairs dumps in order. When a directory without a dump makes positions unreliable, dumps are
 * paired by their numbers. */
static enum ms_rc pair_by_position(struct cmp_ranks *r, bool files, struct ms_err *err)
{
    bool steps = !is_single_step(&r->t);
    if (r->t.list.n + r->t.empty != r->b.list.n + r->b.empty)
        return ms_fail(err, MS_E_ARG, "%zu dumps on the target side and %zu on the golden side",
                       r->t.list.n, r->b.list.n);
    if (r->t.empty + r->b.empty != 0)
        return pair_by_number(r, files, err);
    for (size_t i = 0; i < r->t.list.n; i++)
        MS_TRY(add(r, &r->t.list.p[i], &r->b.list.p[i], files, steps, err));
    return MS_OK;
}

static enum ms_rc copy_notes(struct cmp_ranks *r, struct ms_err *err)
{
    for (size_t i = 0; i < r->t.notes.n; i++)
        MS_TRY(note_problem(r, r->t.notes.p[i], err));
    for (size_t i = 0; i < r->b.notes.n; i++)
        MS_TRY(note_problem(r, r->b.notes.p[i], err));
    return MS_OK;
}

static enum ms_rc pair_ranks(struct cmp_ranks *r, const char *target, const char *golden,
                             bool by_position, struct ms_err *err)
{
    bool t_file = ms_path_kind(target) == MS_KIND_FILE;
    bool b_file = ms_path_kind(golden) == MS_KIND_FILE;
    MS_TRY(probe_find(&r->t, target, err));
    MS_TRY(probe_find(&r->b, golden, err));
    if (t_file != b_file && (r->t.list.n != 1 || r->b.list.n != 1))
        return ms_fail(err, MS_E_ARG, "%s is a file and %s a directory; give two of a kind",
                       t_file ? target : golden, t_file ? golden : target);
    MS_TRY(copy_notes(r, err));
    bool single = r->t.list.n == 1 && r->b.list.n == 1;
    bool files = t_file || b_file;
    MS_TRY(by_position || single ? pair_by_position(r, files, err) : pair_by_number(r, files, err));
    if (r->list.n != 0)
        return MS_OK;
    ms_fail(err, MS_E_NOTFOUND, "%s and %s have no rank and step in common", target, golden);
    ms_err_hint(err, "give the directories of one rank or one step, which may have any numbers");
    return MS_E_NOTFOUND;
}

enum ms_rc cmp_ranks_pair(struct cmp_ranks *r, const char *target, const char *golden,
                          bool by_position, struct ms_err *err)
{
    *r = (struct cmp_ranks){.arena = ms_arena_new(TEXT_MAX)};
    enum ms_rc rc =
        r->arena != NULL ? pair_ranks(r, target, golden, by_position, err) : ms_no_memory(err);
    if (rc != MS_OK)
        cmp_ranks_free(r);
    return rc;
}

void cmp_ranks_free(struct cmp_ranks *r)
{
    if (r->t.arena != NULL)
        probe_places_free(&r->t);
    if (r->b.arena != NULL)
        probe_places_free(&r->b);
    ms_vec_free(&r->list);
    ms_vec_free(&r->notes);
    ms_arena_free(r->arena);
    *r = (struct cmp_ranks){0};
}
