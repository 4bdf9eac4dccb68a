/* SPDX-License-Identifier: MIT
 *
 * bisect: see the header.
 */
#include "compare/bisect/bisect.h"

#include "compare/bisect/bisect_record.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/dump/find.h"

#include <stdio.h>

enum folder { GOOD, AGAIN, BAD, GOOD_TENSORS, BAD_TENSORS, PROGRAM, FOLDERS };
static const char *const folder_names[FOLDERS] = {"good",         "good_again",  "bad",
                                                  "good_tensors", "bad_tensors", "bug"};

struct work {
    const struct bisect_how *how;
    struct bisected *out;
    char *folder[FOLDERS];
};

/* ---- recording -------------------------------------------------------------------------------- */

static enum ms_rc record(const struct work *w, enum folder to, const struct ms_str *names, size_t n,
                         struct ms_err *err)
{
    const bool is_bad = to == BAD || to == BAD_TENSORS;
    char line[128];
    const struct bisect_record r = {.command = is_bad ? w->how->bad : w->how->good,
                                    .dir = w->folder[to],
                                    .step = w->how->step,
                                    .names = names,
                                    .n = n};
    snprintf(line, sizeof line, "run %u of 5: %s, %s", (unsigned)to + 1, is_bad ? "bad" : "good",
             names != NULL ? "tensors of the suspects" : "statistics of all operators");
    w->how->say(line);
    enum ms_rc rc = bisect_record(&r, err);
    return rc == MS_OK ? MS_OK : ms_err_wrap(err, "%s", is_bad ? "--bad" : "--good");
}

/* ---- suspects ----------------------------------------------------------------------------------- */

/* Tells whether two dumps of statistics are the same text. Programs that start from other weights have no suspect,
 * and are no less noisy. */
static enum ms_rc are_same(const struct work *w, bool *same, struct ms_err *err)
{
    struct probe_places at[2] = {{0}, {0}};
    struct ms_file file[2] = {{0}, {0}};
    enum ms_rc rc = MS_OK;
    for (unsigned i = 0; i < 2 && rc == MS_OK; i++) {
        rc = probe_find(&at[i], w->folder[i == 0 ? GOOD : AGAIN], err);
        if (rc == MS_OK)
            rc = ms_file_map(&file[i], at[i].list.p[0].json, SIZE_MAX, err);
    }
    *same = rc == MS_OK && file[0].n == file[1].n && memcmp(file[0].p, file[1].p, file[0].n) == 0;
    for (unsigned i = 0; i < 2; i++) {
        if (file[i].p != NULL)
            ms_file_unmap(&file[i]);
        probe_places_free(&at[i]);
    }
    return rc;
}

/* Names the first operator that differs between two runs of the good program. */
static enum ms_rc measure_noise(struct work *w, struct ms_err *err)
{
    struct blame_picks picks = {0};
    struct ms_err why = {0};
    bool same = true;
    const enum ms_rc rc = blame_pick_suspect(&picks, w->folder[AGAIN], w->folder[GOOD], 1, &why);
    if (rc == MS_OK)
        snprintf(w->out->noisy, sizeof w->out->noisy, "%.*s", MS_STR_ARG(picks.list.p[0].target));
    blame_picks_free(&picks);
    if (rc != MS_OK && rc != MS_E_NOTFOUND && rc != MS_E_UNSUPPORTED)
        return ms_fail(err, rc, "%s", why.msg);
    if (rc != MS_OK)
        MS_TRY(are_same(w, &same, err));
    if (!same)
        snprintf(w->out->noisy, sizeof w->out->noisy, "%s", "their values");
    return MS_OK;
}

static enum ms_rc find_suspects(struct work *w, struct ms_err *err)
{
    struct bisected *out = w->out;
    for (uint32_t place = 1; place <= BISECT_SUSPECTS; place++) {
        struct ms_err why = {0};
        const enum ms_rc rc = blame_pick_suspect(&out->suspects[out->n], w->folder[BAD],
                                                 w->folder[GOOD], place, &why);
        out->n += rc == MS_OK;
        if (rc == MS_OK)
            continue;
        blame_picks_free(&out->suspects[out->n]);
        if (rc != MS_E_NOTFOUND && rc != MS_E_UNSUPPORTED)
            return ms_fail(err, rc, "%s", why.msg);
        if (place == 1) {
            out->end = rc == MS_E_NOTFOUND ? BISECT_EQUAL : BISECT_ALONE;
            snprintf(out->alone, sizeof out->alone, "%.500s", why.msg);
            return MS_OK;
        }
        if (rc == MS_E_NOTFOUND)
            break;
    }
    out->end = BISECT_JUDGED;
    return MS_OK;
}

/* ---- the verdict ---------------------------------------------------------------------------------- */

static enum ms_rc record_tensors(const struct work *w, struct ms_err *err)
{
    struct ms_str target[BISECT_SUSPECTS], golden[BISECT_SUSPECTS];
    const size_t n = w->out->n;
    for (size_t i = 0; i < n; i++) {
        target[i] = w->out->suspects[i].list.p[0].target;
        golden[i] = w->out->suspects[i].list.p[0].golden;
    }
    MS_TRY(record(w, GOOD_TENSORS, golden, n, err));
    return record(w, BAD_TENSORS, target, n, err);
}

static enum ms_rc judge(const struct work *w, struct ms_err *err)
{
    struct bisected *out = w->out;
    MS_TRY(blame_pick_name(&out->judged, w->folder[BAD_TENSORS], w->folder[GOOD_TENSORS],
                           out->suspects[0].list.p[0].target, err));
    out->blame = ms_calloc(1, sizeof *out->blame);
    if (out->blame == NULL)
        return ms_no_memory(err);
    return blame_judge_pick(&out->judged.list.p[0], out->blame, w->how->limit, err);
}

/* Writes the program of the side that errs; what has no program, as a module with unknown settings, is said. */
static enum ms_rc write_program(const struct work *w, struct ms_err *err)
{
    const struct blame_pick *p = &w->out->judged.list.p[0];
    const bool golden = w->out->blame->verdict == BLAME_GOLDEN;
    struct blame_opened opened = {0};
    struct blame_record of;
    struct ms_err why = {0};
    struct reproduced *made = ms_alloc(sizeof *made);
    if (made == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = blame_open(&opened, golden ? p->golden_json : p->target_json,
                               golden ? p->golden : p->target, &of, &why);
    if (rc == MS_OK)
        rc = reproduce_write(made, &of, w->folder[PROGRAM], true, w->how->limit, &why);
    blame_close(&opened);
    ms_free(made);
    w->out->has_program = rc == MS_OK;
    snprintf(w->out->why_not, sizeof w->out->why_not, "%s", rc == MS_OK ? "" : why.msg);
    return rc == MS_E_NOMEM || rc == MS_E_INTERRUPTED ? ms_fail(err, rc, "%s", why.msg) : MS_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static enum ms_rc find(struct work *w, struct ms_err *err)
{
    MS_TRY(record(w, GOOD, NULL, 0, err));
    MS_TRY(record(w, AGAIN, NULL, 0, err));
    MS_TRY(record(w, BAD, NULL, 0, err));
    MS_TRY(measure_noise(w, err));
    MS_TRY(find_suspects(w, err));
    if (w->out->end != BISECT_JUDGED)
        return MS_OK;
    MS_TRY(record_tensors(w, err));
    MS_TRY(judge(w, err));
    return write_program(w, err);
}

/* Old dumps would be taken for new ones. */
static enum ms_rc want_empty(const char *dir, struct ms_err *err)
{
    struct ms_dir names;
    MS_TRY(ms_mkdirs(dir, err));
    MS_TRY(ms_dir_list(&names, dir, err));
    const bool is_empty = names.names.n == 0;
    ms_dir_free(&names);
    return is_empty ? MS_OK : ms_fail(err, MS_E_ARG, "%s: is not empty; give a new directory", dir);
}

enum ms_rc bisect(const struct bisect_how *how, struct bisected *out, struct ms_err *err)
{
    struct work w = {.how = how, .out = out};
    *out = (struct bisected){.end = BISECT_EQUAL};
    enum ms_rc rc = want_empty(how->dir, err);
    for (size_t i = 0; i < FOLDERS && rc == MS_OK; i++) {
        w.folder[i] = ms_path_join(how->dir, folder_names[i]);
        rc = w.folder[i] != NULL ? MS_OK : ms_no_memory(err);
    }
    if (rc == MS_OK)
        rc = find(&w, err);
    for (size_t i = 0; i < FOLDERS; i++)
        ms_free(w.folder[i]);
    return rc;
}

void bisect_free(struct bisected *b)
{
    for (size_t i = 0; i < b->n; i++)
        blame_picks_free(&b->suspects[i]);
    blame_picks_free(&b->judged);
    ms_free(b->blame);
}
