/* SPDX-License-Identifier: MIT
 *
 * cmp_open: opens a pair of dumps and runs the stages on it in order.
 */
#include "compare/table/comparison.h"

#include "compare/measure/multiply.h"
#include "compare/pair/map_names.h"

#include "probe/base/assert.h"
#include "probe/base/trace.h"

/* ---- checks: can the dumps be compared? ------------------------------------ */

static enum ms_rc check_framework(const struct probe_dump *d, struct ms_err *err)
{
    if (d->framework_said.n == 0 ||
        ms_str_is(d->framework_said, probe_framework_text(d->framework)))
        return MS_OK;
    return ms_fail(err, MS_E_UNSUPPORTED,
                   "%s: dumps of '%.*s' cannot be compared; those of pytorch, mindspore and "
                   "mindtorch can",
                   d->path, MS_STR_ARG(d->framework_said));
}

static enum ms_rc check_frameworks(const struct cmp *c, struct ms_err *err)
{
    MS_TRY(check_framework(c->rows.t.dump, err));
    MS_TRY(check_framework(c->rows.b.dump, err));
    const char *t = probe_framework_text(c->rows.t.dump->framework);
    const char *b = probe_framework_text(c->rows.b.dump->framework);
    bool fine = (cmp__is_pytorch(&c->rows.t) && cmp__is_pytorch(&c->rows.b)) ||
                (!cmp__is_pytorch(&c->rows.t) && c->rows.b.dump->framework != PROBE_FW_MINDTORCH);
    if (!fine && c->set.conf.rules->one_framework) {
        ms_fail(err, MS_E_ARG, "%s: cannot compare %s with %s", c->rows.t.dump->path, t, b);
        ms_err_hint(err, "%sleave out --compat %s: the official tool refuses this pair",
                    cmp__is_pytorch(&c->rows.t) ? "swap target and golden path, or " : "",
                    c->set.conf.rules->name);
        return MS_E_ARG;
    }
    if (c->set.conf.api.on && cmp__is_pytorch(&c->rows.t))
        return ms_fail(err, MS_E_ARG,
                       "-am translates MindSpore names, but the target is a %s dump; leave it out",
                       t);
    return MS_OK;
}

static enum ms_rc check_modes(struct cmp *c, struct ms_err *err)
{
    enum probe_mode t = c->rows.t.dump->mode, b = c->rows.b.dump->mode;
    const char *path = c->rows.t.dump->path;
    if (t != b)
        return ms_fail(err, MS_E_ARG,
                       "%s holds %s and %s holds %s; both sides must be dumped alike", path,
                       probe_mode_text(t), c->rows.b.dump->path, probe_mode_text(b));
    if (t == PROBE_MODE_STRUCTURE)
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%s: a dump of task '%.*s' has no values; use graph_visualize", path,
                       MS_STR_ARG(c->rows.t.dump->task));
    c->set.mode = c->set.conf.summarise && t == PROBE_MODE_TENSOR ? PROBE_MODE_SUMMARY : t;
    return MS_OK;
}

/* ---- opening -------------------------------------------------------------- */

static enum ms_rc join_dir(char **out, struct ms_str dir, const char *name, struct ms_err *err)
{
    char *d = ms_str_dup(dir);
    *out = d != NULL ? ms_path_join(d, name) : NULL;
    ms_free(d);
    return *out != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc open_stacks(struct cmp *c, const char *target, struct ms_err *err)
{
    char *path = NULL;
    if (c->set.conf.stack != NULL)
        path = ms_str_dup(ms_str_of(c->set.conf.stack));
    else
        MS_TRY(join_dir(&path, ms_path_dir(target), "stack.json", err));
    if (path == NULL)
        return ms_no_memory(err);
    if (ms_path_kind(path) == MS_KIND_FILE) {
        c->rows.has_stack = true;
        unsigned flags =
            PROBE_STACK_TOLERANT | (c->set.conf.rules->official_stacks ? PROBE_STACK_OFFICIAL : 0);
        enum ms_rc rc = probe_stacks_open(&c->rows.stacks, path, flags, err);
        ms_free(path);
        return rc;
    }
    ms_free(path);
    return MS_OK;
}

static enum ms_rc open_sides(struct cmp *c, const char *target, const char *golden,
                             struct ms_pool *pool, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("read");
    MS_TRY(cmp__side_init(&c->rows.t, &c->set.conf, target, pool, err));
    MS_TRY(cmp__side_init(&c->rows.b, &c->set.conf, golden, pool, err));
    MS_TRY(open_stacks(c, target, err));
    MS_TRY(join_dir(&c->rows.t_dir, ms_path_dir(target), "dump_tensor_data", err));
    MS_TRY(join_dir(&c->rows.b_dir, ms_path_dir(golden), "dump_tensor_data", err));
    ms_span_end(&span);
    return MS_OK;
}

/* Tells whether each row is in at most one pair. Folded rows are in several. */
static enum ms_rc are_pairs_apart(const struct cmp *c, bool *apart, struct ms_err *err)
{
    size_t nt = c->rows.t.order.n, nb = c->rows.b.order.n;
    bool *taken = ms_calloc(nt + nb + 1, sizeof *taken);
    if (taken == NULL)
        return ms_no_memory(err);
    *apart = c->set.conf.consistent == CMP_CONSISTENT_NO;
    for (size_t i = 0; i < c->rows.pairs.n && *apart; i++) {
        const struct cmp__pair *p = &c->rows.pairs.p[i];
        bool *t = p->t != MS_MAP_NONE ? &taken[p->t] : NULL;
        bool *b = p->b != MS_MAP_NONE ? &taken[nt + p->b] : NULL;
        *apart = (t == NULL || !*t) && (b == NULL || !*b);
        if (t != NULL)
            *t = true;
        if (b != NULL)
            *b = true;
    }
    ms_free(taken);
    return MS_OK;
}

/* Allocates the values of both sides when each row is viewed only once. */
static enum ms_rc make_values(struct cmp *c, struct ms_err *err)
{
    bool apart = false;
    if (c->set.conf.explain)
        MS_TRY(are_pairs_apart(c, &apart, err));
    if (!apart)
        return MS_OK;
    c->values = ms_calloc(2, sizeof *c->values);
    if (c->values == NULL)
        return ms_no_memory(err);
    MS_TRY(read__values_init(&c->values[0], c->rows.b.dump, err));
    return read__values_init(&c->values[1], c->rows.t.dump, err);
}

static void free_values(struct read__values *values)
{
    for (unsigned s = 0; values != NULL && s < 2; s++)
        read__values_free(&values[s]);
    ms_free(values);
}

static enum ms_rc check_consistent(const struct cmp *c, struct ms_err *err)
{
    if (c->set.conf.consistent == CMP_CONSISTENT_NO)
        return MS_OK;
    if (!cmp__is_pytorch(&c->rows.t) || !cmp__is_pytorch(&c->rows.b))
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%s: --consistent_check knows training by PyTorch alone",
                       c->rows.t.dump->path);
    return MS_OK;
}

/* Reports damage in the dumps that did not prevent reading them. */
static enum ms_rc note_damage(struct cmp *c, struct ms_err *err)
{
    const struct probe_dump *const both[] = {c->rows.t.dump, c->rows.b.dump};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < both[k]->problems.n; i++)
            MS_TRY(cmp__problem(&c->rows.problems, err, "%s: %.*s", both[k]->path,
                                MS_STR_ARG(both[k]->problems.p[i])));
    }
    for (size_t k = 0; k < 2; k++) {
        if (both[k]->rows.n == 0)
            MS_TRY(cmp__problem(&c->rows.problems, err,
                                "%s: has nothing in it that could be compared", both[k]->path));
    }
    return MS_OK;
}

/* ---- noise ---------------------------------------------------------------- */

/* Compares the second run with the golden side. */
static enum ms_rc compare_second(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    struct cmp_conf conf = {.summarise = c->set.conf.summarise};
    struct cmp *second;
    enum ms_rc rc =
        cmp_open(&second, &conf, c->set.conf.noise_floor, c->rows.b.dump->path, pool, err);
    if (rc != MS_OK)
        return ms_err_wrap(err, "--noise_floor"), rc;
    if (second->set.mode != c->set.mode)
        rc = ms_fail(err, MS_E_ARG, "%s: the second run was not dumped like the golden side",
                     c->set.conf.noise_floor);
    if (rc == MS_OK)
        rc = cmp_measure(second, pool, err);
    if (rc == MS_OK)
        rc = cmp__noise_of_run(c, second, err);
    cmp_close(second);
    return rc;
}

static enum ms_rc find_noise(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    return cmp_is_calibration(c->set.conf.noise_floor)
               ? cmp__read_noise(&c->rows, &c->measured, err)
               : compare_second(c, pool, err);
}

/* ---- entry ---------------------------------------------------------------- */

static enum ms_rc fill(struct cmp *c, const char *target, const char *golden, struct ms_pool *pool,
                       struct ms_err *err)
{
    MS_TRY(open_sides(c, target, golden, pool, err));
    MS_TRY(check_frameworks(c, err));
    MS_TRY(check_modes(c, err));
    MS_TRY(check_consistent(c, err));
    c->set.is_debug = c->rows.t.is_debug;
    c->set.cross = cmp__is_pytorch(&c->rows.t) != cmp__is_pytorch(&c->rows.b);
    MS_TRY(note_damage(c, err));
    struct ms_span span = ms_span_begin("align");
    cmp__settle_sides(c);
    enum ms_rc rc = cmp__pair_rows(&c->rows, pool, err);
    c->set.aligned = c->rows.al != NULL;
    if (rc == MS_OK && c->set.conf.rules->judges_by_place &&
        c->set.conf.consistent != CMP_CONSISTENT_NO)
        rc = cmp__place_verdicts(c, err);
    if (rc == MS_OK)
        rc = cmp__settle_table(c, pool, err);
    ms_span_end(&span);
    if (rc == MS_OK && c->set.conf.data_mapping != NULL)
        rc = cmp__check_names(&c->rows, err);
    if (rc == MS_OK && c->set.conf.config != NULL && c->set.mode == PROBE_MODE_TENSOR)
        rc = cmp__factors_read(&c->measured.factors, &c->rows, err);
    if (rc == MS_OK)
        rc = make_values(c, err);
    if (rc == MS_OK && c->set.conf.noise_floor != NULL)
        rc = find_noise(c, pool, err);
    return rc;
}

enum ms_rc cmp_open(struct cmp **out, const struct cmp_conf *conf, const char *target,
                    const char *golden, struct ms_pool *pool, struct ms_err *err)
{
    *out = NULL;
    struct cmp *c = ms_calloc(1, sizeof *c);
    if (c == NULL)
        return ms_no_memory(err);
    c->set.conf = *conf;
    c->rows.set = &c->set;
    if (c->set.conf.rules == NULL)
        c->set.conf.rules = &cmp_rules_ours;
    enum ms_rc rc = fill(c, target, golden, pool, err);
    if (rc != MS_OK) {
        cmp_close(c);
        return rc;
    }
    *out = c;
    return MS_OK;
}

void cmp_close(struct cmp *c)
{
    if (c == NULL)
        return;
    cmp__rows_free(&c->rows);
    cmp__measured_free(&c->measured);
    free_values(c->values);
    ms_vec_free(&c->places);
    ms_free(c);
}

enum ms_rc cmp_measure(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    if (c->set.mode != PROBE_MODE_TENSOR)
        return MS_OK;
    struct ms_span span = ms_span_begin("measure");
    enum ms_rc rc = cmp__measure_tensors(&c->rows, &c->measured, pool, err);
    ms_span_end(&span);
    return rc;
}

enum ms_rc cmp_measure_part(struct cmp *c, struct ms_pool *pool, unsigned part, unsigned parts,
                            struct ms_buf *packed, struct ms_err *err)
{
    return cmp__measure_part(&c->rows, &c->measured, pool, part, parts, packed, err);
}

enum ms_rc cmp_measure_join(struct cmp *c, const struct ms_str *packed, unsigned parts,
                            struct ms_err *err)
{
    return cmp__measure_join(&c->rows, &c->measured, packed, parts, err);
}
