/* SPDX-License-Identifier: MIT
 *
 * resume: states side by side, and which of the differences came first.
 */
#include "compare/checkpoint/resume.h"

#include "probe/base/mapsafe.h"
#include "probe/base/num.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Values that differ by less are what other kernels or another order of sums make of equal runs: float32
 * rounds by 6e-8, and a few hundred steps of a small network widen that to 1e-5. */
static const double noise = 1e-4;
/* A half-precision state is rounded by 4e-3 (bfloat16) at each step. */
static const double noise_of_half = 0.02;

struct checking {
    struct resume_result *r;
    struct ms_err *err;
    double beta2; /* decay of second moments; 0: unknown */
    double ahead; /* steps of the second behind the first */
};

const char *resume_role_text(enum probe_ckpt_role role)
{
    static const char *const words[] = {
        [PROBE_CKPT_OTHER] = "state",
        [PROBE_CKPT_WEIGHT] = "weights",
        [PROBE_CKPT_EMA] = "EMA",
        [PROBE_CKPT_OPTIMIZER] = "optimizer",
        [PROBE_CKPT_SCHEDULER] = "scheduler",
        [PROBE_CKPT_SCALER] = "loss scaler",
        [PROBE_CKPT_RANDOM] = "random state",
        [PROBE_CKPT_DATA] = "data order",
    };
    return words[role];
}

const char *resume_kind_text(enum resume_kind kind)
{
    static const char *const words[] = {"missing", "shape",  "dtype",  "swapped", "restarted",
                                        "counter", "random", "zeroed", "value"};
    return words[kind];
}

/* ---- findings --------------------------------------------------------------------------------- */

static struct resume_finding *add_finding(struct checking *k, enum resume_kind kind,
                                          const struct probe_ckpt_entry *e)
{
    struct resume_finding *f = ms_vec_push(&k->r->findings);
    if (f != NULL)
        *f = (struct resume_finding){.kind = kind, .role = e->role, .name = e->name};
    return f;
}

static enum ms_rc tell(struct checking *k, enum resume_kind kind, const struct probe_ckpt_entry *e,
                       const char *why)
{
    struct resume_finding *f = add_finding(k, kind, e);
    if (f == NULL)
        return ms_no_memory(k->err);
    snprintf(f->text, sizeof f->text, "%s %.*s %s", resume_role_text(e->role),
             e->name.n < 120 ? (int)e->name.n : 120, e->name.p, why);
    return MS_OK;
}

static bool is_learning_rate(struct ms_str name)
{
    return ms_str_ends(name, MS_STR(".lr")) || ms_str_has(name, "_last_lr");
}

/* Place of a finding in the chain of causes. States that are missing or of another form come first, then
 * counters and settings; learning rates follow from the scheduler's. Of values, moments that differ by a
 * fifth of their norm were lost, unless weights are other ones altogether; else they follow from the
 * weights. Set on one half of the runs of resume_runs.py. */
static int rank_of(const struct resume_finding *f, const double most[2])
{
    const bool lost = most[0] > 0.2 && most[1] < 0.7;
    enum { FORM = 4, LEARNING_RATE, RANDOM, ZEROED, LOST, WEIGHTS, MOMENTS, REST };
    if (f->kind < RESUME_RESTARTED)
        return (int)f->kind;
    if (f->kind == RESUME_RESTARTED || f->kind == RESUME_COUNTER)
        return is_learning_rate(f->name) ? LEARNING_RATE : FORM;
    if (f->kind == RESUME_RANDOM)
        return RANDOM;
    if (f->kind == RESUME_ZEROED)
        return ZEROED;
    if (f->role == PROBE_CKPT_OPTIMIZER)
        return lost ? LOST : MOMENTS;
    return f->role == PROBE_CKPT_WEIGHT ? WEIGHTS : REST;
}

static int compare_findings(const void *a, const void *b)
{
    const struct resume_finding *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    if (x->relative != y->relative)
        return x->relative > y->relative ? -1 : 1;
    return ms_str_cmp_natural(x->name, y->name);
}

/* Orders findings by cause. */
static void sort_findings(struct resume_result *r)
{
    double most[2] = {0, 0}; /* of the optimizer, of weights */
    for (size_t i = 0; i < r->findings.n; i++) {
        const struct resume_finding *f = &r->findings.p[i];
        if (f->role == PROBE_CKPT_OPTIMIZER || f->role == PROBE_CKPT_WEIGHT)
            most[f->role == PROBE_CKPT_WEIGHT] =
                fmax(most[f->role == PROBE_CKPT_WEIGHT], f->relative);
    }
    for (size_t i = 0; i < r->findings.n; i++)
        r->findings.p[i].rank = rank_of(&r->findings.p[i], most);
    if (r->findings.n != 0)
        qsort(r->findings.p, r->findings.n, sizeof *r->findings.p, compare_findings);
}

/* ---- what is compared ------------------------------------------------------------------------- */

/* Words of settings that differ between any two runs. */
static const char *const volatile_words[] = {
    "time",    "date", "path", "_dir",    "save",   "load",   "host",    "_pid", "port",
    "verbose", "uuid", "log",  "version", "called", "resume", "elapsed", NULL};

static bool is_volatile(const struct probe_ckpt_entry *e)
{
    const int64_t dot = ms_str_rfind(e->name, '.');
    const struct ms_str last = ms_str_sub(e->name, (uint32_t)(dot + 1), e->name.n);
    for (const char *const *w = volatile_words; *w != NULL; w++) {
        if (ms_str_has_folded(last, ms_str_of(*w)) && !ms_str_has_folded(last, MS_STR("sampler")))
            return true;
    }
    return false;
}

/* States that make the run go on as before. */
static bool is_state(const struct probe_ckpt_entry *e)
{
    return e->role != PROBE_CKPT_OTHER && !(e->dtype == MS_DT_NONE && is_volatile(e));
}

static double number_of_plain(const struct ms_plain *v)
{
    if (v->kind == MS_PLAIN_REAL)
        return v->f;
    return v->kind == MS_PLAIN_INT || v->kind == MS_PLAIN_BOOL ? (double)v->i : (double)NAN;
}

/* Returns a number that a state is: a plain one, or a tensor of one element beside weights; else NaN. */
static double number_of(const struct probe_ckpt *c, const struct probe_ckpt_entry *e)
{
    char scratch[16];
    double v;
    if (e->dtype == MS_DT_NONE)
        return number_of_plain(e->value);
    if (e->count != 1 || e->role == PROBE_CKPT_WEIGHT || e->role == PROBE_CKPT_EMA)
        return (double)NAN;
    ms_dtype_to_f64(e->dtype, probe_ckpt_elements(c, e, 0, 1, scratch), 1, &v);
    return v;
}

static bool ends_with_word(struct ms_str name, const char *word)
{
    const struct ms_str w = ms_str_of(word);
    return ms_str_ends(name, w) &&
           (name.n == w.n || name.p[name.n - w.n - 1] == '.' || name.p[name.n - w.n - 1] == '_');
}

/* Counters that advance by one a step. */
static bool counts_steps(struct ms_str name)
{
    static const char *const words[] = {
        "step",       "steps",     "iteration",           "iter", "last_epoch",
        "step_count", "num_steps", "num_batches_tracked", NULL};
    for (const char *const *w = words; *w != NULL; w++) {
        if (ends_with_word(name, *w))
            return true;
    }
    return false;
}

/* Finds the counter of steps: a top-level one of the usual names, else that of the optimizer. */
static bool find_steps(const struct probe_ckpt *c, double *steps)
{
    static const char *const names[] = {"iteration", "global_step", "global_steps",
                                        "step",      "steps",       "iter"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        const struct probe_ckpt_entry *e = probe_ckpt_find(c, ms_str_of(names[n]));
        if (e != NULL && !isnan(*steps = number_of(c, e)))
            return true;
    }
    for (size_t i = 0; i < probe_ckpt_count(c); i++) {
        const struct probe_ckpt_entry *e = probe_ckpt_entry(c, i);
        if (e->role != PROBE_CKPT_WEIGHT && counts_steps(e->name) &&
            !isnan(*steps = number_of(c, e)))
            return true;
    }
    return false;
}

/* Finds Adam's decay of second moments: the second of "betas". */
static double find_beta2(const struct probe_ckpt *c)
{
    for (size_t i = 0; i < probe_ckpt_count(c); i++) {
        const struct probe_ckpt_entry *e = probe_ckpt_entry(c, i);
        if (e->dtype == MS_DT_NONE && ms_str_ends(e->name, MS_STR("betas")) &&
            ms_plain_len(e->value) == 2)
            return number_of_plain(ms_plain_item(e->value, 1));
    }
    return 0;
}

/* ---- plain values ------------------------------------------------------------------------------ */

enum { EQUAL_DEPTH = 40 };

static bool same_value(const struct ms_plain *x, const struct ms_plain *y, int depth)
{
    const double a = number_of_plain(x), b = number_of_plain(y);
    if (!isnan(a) && !isnan(b))
        return a == b || fabs(a - b) <= 1e-12 * fabs(a);
    if (x->kind != y->kind || depth == 0)
        return x->kind == y->kind;
    if (x->kind == MS_PLAIN_TEXT || x->kind == MS_PLAIN_CLASS)
        return ms_str_eq(x->s, y->s);
    if (x->kind < MS_PLAIN_TUPLE || x->kind > MS_PLAIN_OUTSIDE)
        return true;
    bool same = x->n == y->n;
    for (uint32_t i = 0; same && i < x->n; i++)
        same = same_value(x->item[i], y->item[i], depth - 1);
    return same;
}

static void put_number(char *to, size_t n, double v)
{
    char digits[MS_NUM_MAX];
    const unsigned len = ms_num_f64(digits, v);
    const bool whole = len > 2 && memcmp(digits + len - 2, ".0", 2) == 0;
    snprintf(to, n, "%.*s", (int)(whole ? len - 2 : len), digits);
}

/* Counters of all samples so far, which advance by as many a step; a position in an epoch does not. */
static bool counts_samples(struct ms_str name)
{
    return ms_str_has(name, "consumed") || ms_str_has(name, "total_samples") ||
           ms_str_has(name, "samples_seen");
}

/* Compares two numbers of one state. In a later checkpoint, counters have to be as far ahead. */
static enum ms_rc check_number(struct checking *k, const struct probe_ckpt_entry *e, double a,
                               double b)
{
    char why[200], x[MS_NUM_MAX + 1], y[MS_NUM_MAX + 1], z[MS_NUM_MAX + 1];
    double want = a;
    const bool steps = counts_steps(e->name), samples = counts_samples(e->name);
    if (k->r->later && !steps && (!samples || k->r->steps[0] <= 0))
        return MS_OK; /* a learning rate may have changed since */
    if (k->r->later)
        want = a + k->ahead * (steps ? 1 : a / k->r->steps[0]);
    if (b == want || fabs(b - want) <= 1e-9 * fabs(want))
        return MS_OK;
    put_number(x, sizeof x, want);
    put_number(y, sizeof y, b);
    put_number(z, sizeof z, fabs(b - want));
    const bool restarted = !is_learning_rate(e->name) && b < a &&
                           (b == 0 || (k->r->later && b <= k->ahead) || b <= want / 2);
    snprintf(why, sizeof why,
             restarted ? "began anew: %s where %s is due" : "is %s where %s is due, off by %s", y,
             x, z);
    return tell(k, restarted ? RESUME_RESTARTED : RESUME_COUNTER, e, why);
}

static enum ms_rc check_value(struct checking *k, const struct probe_ckpt_entry *x,
                              const struct probe_ckpt_entry *y)
{
    char why[160];
    struct ms_buf a = {.max = 4096}, b = {.max = 4096};
    if (k->r->later || same_value(x->value, y->value, EQUAL_DEPTH))
        return MS_OK; /* lists and texts of a later checkpoint may be anything */
    if (x->role == PROBE_CKPT_RANDOM)
        return tell(k, RESUME_RANDOM, x, "is another one: the random generator was not restored");
    probe_ckpt_value_text(x->value, &a, 40);
    probe_ckpt_value_text(y->value, &b, 40);
    snprintf(why, sizeof why, "is %.50s where %.50s is due", ms_buf_z(&b), ms_buf_z(&a));
    ms_buf_free(&a);
    ms_buf_free(&b);
    return tell(k, RESUME_COUNTER, x, why);
}

/* ---- tensors -------------------------------------------------------------------------------------- */

static double noise_of(const struct probe_ckpt_entry *e)
{
    return ms_dtype_size(e->dtype) < 4 ? noise_of_half : noise;
}

/* Tells whether every element of y has the low bits zero that a cast to a narrower type leaves, and x not. */
static const char *cast_of(struct checking *k, const struct probe_ckpt_entry *x,
                           const struct probe_ckpt_entry *y)
{
    enum { FEW = 4096 };
    static const enum ms_dtype narrow[] = {MS_DT_BF16, MS_DT_F16};
    float a[FEW], b[FEW];
    const uint64_t n = x->count < FEW ? x->count : FEW;
    if (x->dtype != MS_DT_F32 || y->dtype != MS_DT_F32)
        return NULL;
    memcpy(a, probe_ckpt_elements(k->r->c[0], x, 0, n, a), (size_t)n * sizeof *a);
    memcpy(b, probe_ckpt_elements(k->r->c[1], y, 0, n, b), (size_t)n * sizeof *b);
    for (int t = 0; t < 2; t++) {
        uint64_t kept = 0, lost = 0;
        for (uint64_t i = 0; i < n; i++) {
            kept += (float)ms_dtype_round(narrow[t], (double)a[i]) != a[i];
            lost += (float)ms_dtype_round(narrow[t], (double)b[i]) == b[i];
        }
        if (lost == n && kept > n / 2)
            return ms_dtype_torch(narrow[t]);
    }
    return NULL;
}

/* Finds a state of the same role and shape whose values the resumed run has in place of x's. */
static enum ms_rc find_swapped(struct checking *k, const struct probe_ckpt_entry *y, double l2,
                               const struct probe_ckpt_entry *x,
                               const struct probe_ckpt_entry **found)
{
    enum { MOST = 64 }; /* tensors that are looked at */
    int looked = 0;
    *found = NULL;
    for (size_t i = 0; i < probe_ckpt_count(k->r->c[0]) && looked < MOST; i++) {
        const struct probe_ckpt_entry *o = probe_ckpt_entry(k->r->c[0], i);
        struct ckpt_figures f;
        if (o == x || o->role != x->role || o->dtype != y->dtype || !ckpt_same_shape(o, y))
            continue;
        looked++;
        MS_TRY(ckpt_measure(k->r->c[0], o, k->r->c[1], y, &f, k->err));
        if (f.l2 < l2 / 4 && f.norm[0] > 0) {
            *found = o;
            return MS_OK;
        }
    }
    return MS_OK;
}

static enum ms_rc tell_values(struct checking *k, const struct probe_ckpt_entry *x,
                              const struct probe_ckpt_entry *y, const struct ckpt_figures *f,
                              double relative)
{
    const struct probe_ckpt_entry *other;
    struct resume_finding *found;
    char why[200];
    MS_TRY(find_swapped(k, y, f->l2, x, &other));
    if (other != NULL) {
        snprintf(why, sizeof why, "has the values of %.*s",
                 other->name.n < 120 ? (int)other->name.n : 120, other->name.p);
        MS_TRY(tell(k, RESUME_SWAPPED, x, why));
        k->r->findings.p[k->r->findings.n - 1].other = other->name;
        return MS_OK;
    }
    const char *cast = k->r->later ? NULL : cast_of(k, x, y);
    if (cast != NULL) {
        snprintf(why, sizeof why, "went through %s", cast);
        return tell(k, RESUME_DTYPE, x, why);
    }
    const bool zeroed = x->role == PROBE_CKPT_OPTIMIZER && f->norm[1] == 0 && f->norm[0] > 0;
    snprintf(why, sizeof why, zeroed ? "began at zero again" : "differs by %.3g of its norm",
             relative);
    MS_TRY(tell(k, zeroed ? RESUME_ZEROED : RESUME_VALUE, x, why));
    found = &k->r->findings.p[k->r->findings.n - 1];
    found->relative = zeroed ? 0 : relative;
    return MS_OK;
}

static bool is_second_moment(struct ms_str name)
{
    return ms_str_has(name, "exp_avg_sq") || ms_str_has(name, "moment2") ||
           ms_str_has(name, "adam_v");
}

/* Second moments decay by beta2 a step and grow by squares, so none is below what decay alone leaves. */
static enum ms_rc check_decay(struct checking *k, const struct probe_ckpt_entry *x,
                              const struct probe_ckpt_entry *y)
{
    enum { FEW = 2048 };
    double a[FEW], b[FEW];
    char scratch[FEW * 16];
    uint64_t below = 0, positive = 0;
    const double left = pow(k->beta2, k->ahead) * 0.99;
    if (!(k->beta2 > 0 && k->beta2 < 1) || !is_second_moment(x->name) || left < 1e-3)
        return MS_OK;
    for (uint64_t at = 0; at < x->count; at += FEW) {
        const uint64_t n = x->count - at < FEW ? x->count - at : FEW;
        ms_dtype_to_f64(x->dtype, probe_ckpt_elements(k->r->c[0], x, at, n, scratch), n, a);
        ms_dtype_to_f64(y->dtype, probe_ckpt_elements(k->r->c[1], y, at, n, scratch), n, b);
        for (uint64_t i = 0; i < n; i++) {
            positive += a[i] > 0;
            below += a[i] > 0 && b[i] < a[i] * left;
        }
    }
    if (positive == 0 || below <= positive / 20)
        return MS_OK;
    char why[160];
    snprintf(why, sizeof why,
             "began at zero again: %llu of %llu elements are below what %g steps of decay leave",
             (unsigned long long)below, (unsigned long long)positive, k->ahead);
    return tell(k, RESUME_ZEROED, x, why);
}

/* In a later checkpoint a weight has moved, but is nearer to itself than to another one. */
static enum ms_rc check_later(struct checking *k, const struct probe_ckpt_entry *x,
                              const struct probe_ckpt_entry *y)
{
    struct ckpt_figures f;
    if (x->role == PROBE_CKPT_OPTIMIZER)
        return check_decay(k, x, y);
    if ((x->role != PROBE_CKPT_WEIGHT && x->role != PROBE_CKPT_EMA) || x->count < 8)
        return MS_OK;
    MS_TRY(ckpt_measure(k->r->c[0], x, k->r->c[1], y, &f, k->err));
    const double norm = fmax(f.norm[0], f.norm[1]);
    const struct probe_ckpt_entry *other = NULL;
    if (norm > 0 && f.l2 > 0.5 * norm)
        MS_TRY(find_swapped(k, y, f.l2, x, &other));
    return other != NULL ? tell_values(k, x, y, &f, f.l2 / norm) : MS_OK;
}

static enum ms_rc check_tensor(struct checking *k, const struct probe_ckpt_entry *x,
                               const struct probe_ckpt_entry *y)
{
    struct ckpt_figures f;
    char why[160];
    k->r->tensors++;
    if (!ckpt_same_shape(x, y))
        return tell(k, RESUME_SHAPE, x, "has another shape");
    if (x->dtype != y->dtype) {
        snprintf(why, sizeof why, "is %s where %s is due", ms_dtype_torch(y->dtype),
                 ms_dtype_torch(x->dtype));
        return tell(k, RESUME_DTYPE, x, why);
    }
    if (k->r->later)
        return check_later(k, x, y);
    MS_TRY(ckpt_measure(k->r->c[0], x, k->r->c[1], y, &f, k->err));
    if (f.equal)
        return MS_OK;
    if (x->role == PROBE_CKPT_RANDOM)
        return tell(k, RESUME_RANDOM, x, "is another one: the random generator was not restored");
    const double norm = fmax(f.norm[0], f.norm[1]);
    const double relative = isnan(f.l2) ? HUGE_VAL : norm > 0 ? f.l2 / norm : 0;
    return relative > noise_of(x) ? tell_values(k, x, y, &f, relative) : MS_OK;
}

/* ---- the walk --------------------------------------------------------------------------------------- */

static enum ms_rc check_entry(struct checking *k, const struct probe_ckpt_entry *x)
{
    const struct probe_ckpt_entry *y = probe_ckpt_find(k->r->c[1], x->name);
    if (y == NULL)
        return tell(k, RESUME_MISSING, x, "is missing");
    const double a = number_of(k->r->c[0], x), b = number_of(k->r->c[1], y);
    k->r->values += x->dtype == MS_DT_NONE;
    if (!isnan(a) && !isnan(b))
        return check_number(k, x, a, b);
    if ((x->dtype == MS_DT_NONE) != (y->dtype == MS_DT_NONE))
        return tell(k, RESUME_SHAPE, x, "is no longer of the same kind");
    return x->dtype == MS_DT_NONE ? check_value(k, x, y) : check_tensor(k, x, y);
}

static enum ms_rc check_all(struct checking *k)
{
    enum ms_rc rc = MS_OK;
    ms_mapsafe_begin();
    for (size_t i = 0; rc == MS_OK && i < probe_ckpt_count(k->r->c[0]); i++) {
        const struct probe_ckpt_entry *x = probe_ckpt_entry(k->r->c[0], i);
        if (is_state(x))
            rc = check_entry(k, x);
    }
    if (ms_mapsafe_end() && rc == MS_OK)
        rc = ms_fail(k->err, MS_E_IO, "a file of the checkpoint became shorter while it was read");
    for (size_t i = 0; i < probe_ckpt_count(k->r->c[1]); i++) {
        const struct probe_ckpt_entry *y = probe_ckpt_entry(k->r->c[1], i);
        k->r->extra += is_state(y) && probe_ckpt_find(k->r->c[0], y->name) == NULL;
    }
    return rc;
}

/* Tells whether a weight differs. A checkpoint some steps later has moved. */
static enum ms_rc has_moved(struct checking *k, bool *moved)
{
    bool any = false;
    *moved = false;
    for (size_t i = 0; !*moved && i < probe_ckpt_count(k->r->c[0]); i++) {
        const struct probe_ckpt_entry *x = probe_ckpt_entry(k->r->c[0], i);
        const struct probe_ckpt_entry *y = probe_ckpt_find(k->r->c[1], x->name);
        struct ckpt_figures f;
        if (x->role != PROBE_CKPT_WEIGHT || y == NULL || y->dtype != x->dtype ||
            !ckpt_same_shape(x, y))
            continue;
        MS_TRY(ckpt_measure(k->r->c[0], x, k->r->c[1], y, &f, k->err));
        *moved = !f.equal;
        any = true;
    }
    *moved = *moved || !any;
    return MS_OK;
}

enum ms_rc resume_check(struct resume_result *r, const char *a, const char *b, struct ms_err *err)
{
    struct checking k = {.r = r, .err = err};
    *r = (struct resume_result){0};
    enum ms_rc rc = probe_ckpt_open(&r->c[0], a, err);
    if (rc == MS_OK)
        rc = probe_ckpt_open(&r->c[1], b, err);
    if (rc == MS_OK) {
        r->has_steps = find_steps(r->c[0], &r->steps[0]) && find_steps(r->c[1], &r->steps[1]);
        r->later = r->has_steps && r->steps[1] > r->steps[0];
        if (r->later)
            rc = has_moved(&k, &r->later); /* else the counter alone is ahead */
        k.ahead = r->later ? r->steps[1] - r->steps[0] : 0;
        k.beta2 = find_beta2(r->c[0]);
        if (rc == MS_OK)
            rc = check_all(&k);
    }
    if (rc == MS_OK)
        sort_findings(r);
    if (rc != MS_OK)
        resume_free(r);
    return rc;
}

void resume_free(struct resume_result *r)
{
    ms_vec_free(&r->findings);
    probe_ckpt_close(r->c[0]);
    probe_ckpt_close(r->c[1]);
    *r = (struct resume_result){0};
}
