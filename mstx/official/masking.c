/* SPDX-License-Identifier: MIT
 *
 * recipe_mask: how much communication of each kind of group kernels hide within a step.
 *
 *     communication  ████████    ███       merged, at whole length when it reaches out of the step
 *     kernels           ███   ███
 *     uncovered      ███   ██    ███
 */
#include "mstx/recipe.h"

#include "probe/base/mem.h"

#include <stdio.h>

static const char default_kinds[] = "dp,edp;edp;dp;ep;pp;mp;tp";

static const struct mstx_pull pulls[] = {
    {.into = "MaskSteps",
     .columns = "rank INTEGER, id, start INTEGER, end INTEGER",
     .needs = "STEP_TIME",
     .sql = "SELECT ?3, id, startNs, endNs FROM STEP_TIME"},
    {.into = "MaskComm",
     .columns = "rank INTEGER, start INTEGER, end INTEGER, kind",
     .needs = "COMMUNICATION_OP META_DATA",
     .sql =
         "SELECT ?3, o.startNs, o.endNs, d.kind FROM COMMUNICATION_OP o"
         " LEFT JOIN STRING_IDS g ON g.id = o.groupName"
         " JOIN (SELECT j.key AS name, json_extract(j.value, '$.group_name') AS kind"
         " FROM META_DATA m, json_each(CASE WHEN json_valid(m.value) THEN m.value ELSE '{}' END) j"
         " WHERE m.name = 'parallel_group_info' AND j.type = 'object') d ON d.name = g.value"
         " WHERE o.startNs >= ?1 AND o.endNs <= ?2"},
    {.into = "MaskKernels",
     .columns = "rank INTEGER, start INTEGER, end INTEGER",
     .needs = "COMPUTE_TASK_INFO TASK",
     .sql = "SELECT ?3, t.startNs, t.endNs FROM COMPUTE_TASK_INFO c"
            " JOIN TASK t ON t.globalTaskId = c.globalTaskId"
            " WHERE t.startNs >= ?1 AND t.endNs <= ?2"},
};

struct span {
    int64_t start, end;
};
typedef MS_VEC(struct span) spans;

struct masking {
    struct ms_store *s;
    struct ms_stmt *steps, *add;
    spans comm, kernels;        /* of the rank, by start */
    spans comm_now, kernel_now; /* of the step, merged */
};

static enum ms_rc read_spans(struct ms_store *s, const char *sql, int64_t rank, spans *to,
                             struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    to->n = 0;
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    if (ms_stmt_params(st) == 1)
        ms_stmt_i64(st, 1, rank);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        struct span *slot = ms_vec_push(to);
        if (slot == NULL)
            rc = ms_no_memory(err);
        else
            *slot = (struct span){ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1)};
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

/* Those that reach into the step, in one piece where they touch. */
static bool merge_within(const spans *all, struct span step, spans *to)
{
    to->n = 0;
    for (size_t i = 0; i < all->n && all->p[i].start < step.end; i++) {
        const struct span s = all->p[i];
        struct span *last = to->n != 0 ? &to->p[to->n - 1] : NULL;
        if (s.end <= step.start)
            continue;
        if (last != NULL && s.start <= last->end) {
            last->end = s.end > last->end ? s.end : last->end;
            continue;
        }
        struct span *slot = ms_vec_push(to);
        if (slot == NULL)
            return false;
        *slot = s;
    }
    return true;
}

static int64_t length_of(const spans *all)
{
    int64_t sum = 0;
    for (size_t i = 0; i < all->n; i++)
        sum += all->p[i].end - all->p[i].start;
    return sum;
}

static int64_t common_length(const spans *a, const spans *b)
{
    int64_t sum = 0;
    for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
        const int64_t start = a->p[i].start > b->p[k].start ? a->p[i].start : b->p[k].start;
        const int64_t end = a->p[i].end < b->p[k].end ? a->p[i].end : b->p[k].end;
        sum += end > start ? end - start : 0;
        if (a->p[i].end < b->p[k].end)
            i++;
        else
            k++;
    }
    return sum;
}

/* As Python rounds to five places: exactly, ties to even. */
static double round5(double v)
{
    char text[64];
    double out = v;
    snprintf(text, sizeof text, "%.5f", v);
    sscanf(text, "%lf", &out);
    return out;
}

static enum ms_rc add_step(struct masking *m, const char *kinds, struct ms_err *err)
{
    const struct span step = {ms_stmt_get_i64(m->steps, 1), ms_stmt_get_i64(m->steps, 2)};
    if (step.end <= step.start)
        return MS_OK;
    if (!merge_within(&m->comm, step, &m->comm_now) ||
        !merge_within(&m->kernels, step, &m->kernel_now))
        return ms_no_memory(err);
    const double length = (double)(step.end - step.start);
    const int64_t comm = length_of(&m->comm_now);
    const int64_t uncovered = comm - common_length(&m->comm_now, &m->kernel_now);
    ms_stmt_i64(m->add, 1, ms_stmt_get_i64(m->steps, 0));
    ms_stmt_str(m->add, 2, ms_str_of(kinds));
    ms_stmt_i64(m->add, 3, step.start);
    ms_stmt_i64(m->add, 4, step.end);
    ms_stmt_i64(m->add, 5, comm);
    ms_stmt_f64(m->add, 6, (double)comm / length);
    ms_stmt_i64(m->add, 7, uncovered);
    ms_stmt_f64(m->add, 8, round5((double)uncovered / length));
    return ms_stmt_run(m->add, err);
}

static enum ms_rc add_steps(struct masking *m, int64_t rank, const char *kinds, struct ms_err *err)
{
    bool more;
    ms_stmt_i64(m->steps, 1, rank);
    enum ms_rc rc = ms_stmt_step(m->steps, &more, err);
    while (rc == MS_OK && more) {
        rc = add_step(m, kinds, err);
        if (rc == MS_OK)
            rc = ms_stmt_step(m->steps, &more, err);
    }
    return rc;
}

/* "dp,edp" becomes the condition and, joined by plus, the name of the row. */
static enum ms_rc look_at_kinds(struct masking *m, int64_t rank, struct ms_str kinds,
                                struct ms_err *err)
{
    struct ms_buf sql = {.max = 1 << 16}, name = {.max = 1 << 12};
    struct ms_str rest = kinds, kind;
    ms_buf_puts(&sql, "SELECT start, end FROM MaskComm WHERE rank = ?1 AND kind IN (''");
    while (ms_str_split(&rest, ',', &kind)) {
        ms_buf_puts(&sql, ", '");
        for (uint32_t i = 0; i < kind.n; i++) {
            if (kind.p[i] == '\'')
                ms_buf_putc(&sql, '\'');
            ms_buf_putc(&sql, kind.p[i]);
        }
        ms_buf_putc(&sql, '\'');
        if (name.n != 0)
            ms_buf_putc(&name, '+');
        ms_buf_str(&name, kind);
    }
    ms_buf_puts(&sql, ") ORDER BY start");
    enum ms_rc rc = ms_buf_check(&sql, err);
    if (rc == MS_OK)
        rc = ms_buf_check(&name, err);
    if (rc == MS_OK)
        rc = read_spans(m->s, ms_buf_z(&sql), rank, &m->comm, err);
    if (rc == MS_OK && m->comm.n != 0)
        rc = add_steps(m, rank, ms_buf_z(&name), err);
    ms_buf_free(&sql);
    ms_buf_free(&name);
    return rc;
}

static enum ms_rc mask_rank(struct masking *m, int64_t rank, const char *kinds, struct ms_err *err)
{
    struct ms_str rest = ms_str_of(kinds), part;
    enum ms_rc rc =
        read_spans(m->s, "SELECT start, end FROM MaskKernels WHERE rank = ?1 ORDER BY start", rank,
                   &m->kernels, err);
    while (rc == MS_OK && m->kernels.n != 0 && ms_str_split(&rest, ';', &part))
        rc = look_at_kinds(m, rank, part, err);
    return rc;
}

static const char table[] =
    "DROP TABLE IF EXISTS ComputationalOperatorMaskingLinearity;"
    "CREATE TABLE ComputationalOperatorMaskingLinearity(stepId INTEGER, parallelType TEXT,"
    " stepStartTime INTEGER, stepEndTime INTEGER, totalCommunicationOperatorTime INTEGER,"
    " timeRatioOfStepCommunicationOperator REAL, totalTimeWithoutCommunicationBlackout INTEGER,"
    " ratioOfUnmaskedCommunication REAL);"
    "CREATE INDEX temp.MaskCommBy ON MaskComm(rank, kind);"
    "CREATE INDEX temp.MaskKernelsBy ON MaskKernels(rank, start);"
    "CREATE INDEX temp.MaskStepsBy ON MaskSteps(rank);";

static enum ms_rc mask_all(struct masking *m, const struct mstx_recipe_run *r, struct ms_err *err)
{
    const char *kinds = r->parallel != NULL ? r->parallel : default_kinds;
    char steps[160];
    snprintf(steps, sizeof steps,
             "SELECT id, start, end FROM MaskSteps WHERE rank = ? AND %lld IN (-1, id)"
             " ORDER BY rowid",
             (long long)r->step);
    MS_TRY(ms_store_prepare(r->s, &m->steps, steps, err));
    MS_TRY(ms_store_prepare(r->s, &m->add,
                            "INSERT INTO ComputationalOperatorMaskingLinearity"
                            " VALUES(?,?,?,?,?,?,?,?)",
                            err));
    for (size_t i = 0; i < r->ranks.n; i++)
        MS_TRY(mask_rank(m, r->ranks.p[i].rank, kinds, err));
    return MS_OK;
}

enum ms_rc mstx__recipe_masking(struct mstx_recipe_run *r, struct ms_err *err)
{
    struct masking m = {.s = r->s};
    for (size_t i = 0; i < sizeof pulls / sizeof *pulls; i++)
        MS_TRY(mstx__recipe_pull(r, &pulls[i], err));
    MS_TRY(ms_store_exec(r->s, table, err));
    enum ms_rc rc = mask_all(&m, r, err);
    ms_stmt_free(m.steps);
    ms_stmt_free(m.add);
    ms_vec_free(&m.comm);
    ms_vec_free(&m.kernels);
    ms_vec_free(&m.comm_now);
    ms_vec_free(&m.kernel_now);
    if (rc != MS_OK)
        return rc;
    return ms_store_exec(r->s, "DROP TABLE MaskSteps; DROP TABLE MaskComm; DROP TABLE MaskKernels",
                         err);
}
