/* SPDX-License-Identifier: MIT
 *
 * advisor: derives advice from the position of the first failing row within its
 * operator.
 */
#include "compare/official/advisor.h"

#include "compare/official/rules_official.h"
#include "compare/table/comparison.h"

enum { RENEW_GROUPS = 256 };

static bool is_random_order(struct ms_str name)
{
    static const char *const ops[] = {"conv2d",   "conv3d",     "matmul",
                                      "nll_loss", "layer_norm", "lstm"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (ms_str_has(name, ops[i]))
            return true;
    }
    return false;
}

static const char *advice_for(struct ms_str name)
{
    bool input = ms_str_has(name, ".input"), forward = ms_str_has(name, "forward");
    if (!input && is_random_order(name))
        return "The order of additions in this operator may change from run to run. Compare again "
               "with deterministic mode switched on.";
    if (forward && input)
        return "1. Check where the input comes from. 2. Check whether an operation in place has "
               "overwritten it. 3. Check whether its memory has been overwritten.";
    if (forward)
        return "The forward computation of this API is suspect.";
    if (input)
        return "Check whether the forward result has already been affected.";
    return "The backward computation of this API is suspect.";
}

/* Finds the first failing row, in v, and the number of rows before it. */
static enum ms_rc find(const struct cmp *c, struct cmp_view *v, const struct cmp_row **found,
                       size_t *line, struct ms_err *err)
{
    struct cmp_row_verdict verdict;
    *found = NULL;
    *line = 0;
    for (size_t g = 0; g < cmp_groups(c); g++) {
        if (g % RENEW_GROUPS == 0)
            MS_TRY(cmp_view_renew(v, err));
        MS_TRY(cmp_view_group(c, g, v, err));
        for (size_t i = 0; i < v->rows.n; i++, ++*line) {
            MS_TRY(cmp__judge_old(&c->set, v, &v->rows.p[i], &verdict, err));
            if (verdict.failed) {
                *found = &v->rows.p[i];
                return MS_OK;
            }
        }
    }
    return MS_OK;
}

enum ms_rc cmp_write_advisor(const struct cmp *c, const char *path, struct cmp_files *files,
                             struct ms_err *err)
{
    struct cmp_view v;
    struct ms_out *out = NULL;
    const struct cmp_row *row;
    size_t line;
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = find(c, &v, &row, &line, err);
    if (rc == MS_OK)
        rc = cmp_files_add(files, ms_str_of(path), err);
    if (rc == MS_OK)
        rc = ms_out_create(&out, path, err);
    if (rc == MS_OK) {
        if (row != NULL)
            ms_out_printf(out, "Line: %zu\nSuspect Nodes: %.*s\nExpert Advice: %s\n", line,
                          MS_STR_ARG(row->t.name), advice_for(row->t.name));
        else
            ms_out_puts(out, "Line: NA\nSuspect Nodes: NA\nExpert Advice: All data in comparison "
                             "result meets the accuracy requirements.\n");
        rc = ms_out_commit(out, err);
    }
    cmp_view_free(&v);
    return rc;
}
