/* SPDX-License-Identifier: MIT
 *
 * import_problems: problems with the files of a run, by captured process, as rows of the table
 * problems.
 */
#include "mstx/import/import_int.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <string.h>

void mstx__import_problem(struct mstx_import *im, const char *file, const char *text)
{
    ms_assert(im->at <= im->procs.list.n);
    struct mstx_import_problem *slot = ms_vec_push(&im->problem);
    struct ms_err err = {0};
    if (slot != NULL)
        *slot = (struct mstx_import_problem){im->at, ms_str_dup(ms_str_of(file)),
                                             ms_str_dup(ms_str_of(text))};
    if ((slot == NULL || slot->file == NULL || slot->text == NULL) && ms_no_memory(&err) != MS_OK)
        mstx__writer_fail(im->w, &err);
}

bool mstx__import_has_problem(const struct mstx_import *im, const char *file)
{
    for (size_t i = im->problem.n; i-- > 0;) {
        const struct mstx_import_problem *p = &im->problem.p[i];
        if (p->process == im->at && p->file != NULL && strcmp(p->file, file) == 0)
            return true;
    }
    return false;
}

/* Orders by process, then by the order in which the problems were found. */
static int by_process(const void *pa, const void *pb)
{
    const struct mstx_import_problem *a = pa, *b = pb;
    return MS_ORDER(a->process, b->process, 0);
}

void mstx__import_write_problems(struct mstx_import *im)
{
    ms_vec_sort(&im->problem, by_process);
    for (size_t i = 0; i < im->problem.n; i++)
        mstx__writer_problem(im->w, im->problem.p[i].file, im->problem.p[i].text);
}

void mstx__import_put_problems(const struct mstx_import *im, struct ms_buf *b)
{
    const uint64_t n = im->problem.n;
    ms_put_bytes(b, &n, sizeof n);
    for (size_t i = 0; i < im->problem.n; i++) {
        const struct mstx_import_problem *p = &im->problem.p[i];
        ms_put_bytes(b, &p->process, sizeof p->process);
        ms_put_text(b, ms_str_of(p->file));
        ms_put_text(b, ms_str_of(p->text));
    }
}

enum ms_rc mstx__import_take_problems(struct mstx_import *im, struct ms_taker *t,
                                      struct ms_err *err)
{
    uint64_t n;
    ms_take_bytes(t, &n, sizeof n);
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        struct mstx_import_problem *p = ms_vec_push(&im->problem);
        if (p == NULL)
            return ms_no_memory(err);
        ms_take_bytes(t, &p->process, sizeof p->process);
        p->file = ms_str_dup(ms_take_text(t));
        p->text = ms_str_dup(ms_take_text(t));
        if (p->file == NULL || p->text == NULL)
            return ms_no_memory(err);
    }
    return MS_OK;
}

void mstx__import_free_problems(struct mstx_import *im)
{
    for (size_t i = 0; i < im->problem.n; i++) {
        ms_free(im->problem.p[i].file);
        ms_free(im->problem.p[i].text);
    }
    ms_vec_free(&im->problem);
}
