/* SPDX-License-Identifier: MIT
 *
 * report_pack: converts a result to bytes and back, so that one process can print the result
 * of another. Numbers are copied as they are in memory, since both processes run the same
 * program; texts are preceded by their length.
 */
#include "compare/run/report.h"

/* ---- out -------------------------------------------------------------------- */

static void put_number(struct ms_buf *b, uint64_t v)
{
    ms_buf_put(b, &v, sizeof v);
}

static void put_text(struct ms_buf *b, const char *text)
{
    size_t n = text != NULL ? strlen(text) + 1 : 0;
    put_number(b, n);
    if (n != 0)
        ms_buf_put(b, text, n);
}

static void put_texts(struct ms_buf *b, char *const *list, size_t n)
{
    put_number(b, n);
    for (size_t i = 0; i < n; i++)
        put_text(b, list[i]);
}

static void put_told(struct ms_buf *b, const struct cmp_told *t)
{
    put_text(b, t->row);
    put_text(b, t->op);
    put_text(b, t->golden_op);
    put_text(b, t->text);
    ms_buf_put(b, &t->score, sizeof t->score);
}

void cmp_report_pack(const struct cmp_result *r, struct ms_buf *b)
{
    ms_buf_put(b, &r->err, sizeof r->err);
    ms_buf_put(b, &r->sum, sizeof r->sum);
    put_texts(b, r->files.list.p, r->files.list.n);
    put_told(b, &r->first);
    put_number(b, r->nworst);
    for (unsigned i = 0; i < r->nworst; i++)
        put_told(b, &r->worst[i]);
    put_texts(b, r->problems.p, r->problems.n);
    put_number(b, r->json_bytes);
    put_number(b, r->tensor_bytes);
    put_number(b, r->done);
    put_number(b, r->trail.segments);
    put_number(b, r->trail.steps.n);
    if (r->trail.steps.n != 0)
        ms_buf_put(b, r->trail.steps.p, r->trail.steps.n * sizeof *r->trail.steps.p);
}

/* ---- in ----------------------------------------------------------------------- */

struct taker {
    struct ms_str rest;
    struct ms_err *err;
    enum ms_rc rc;
};

static void take_bytes(struct taker *t, void *into, size_t n)
{
    if (t->rc == MS_OK && n > t->rest.n)
        t->rc = ms_fail(t->err, MS_E_FORMAT, "a result from another process is cut short");
    if (t->rc != MS_OK || n == 0)
        return;
    memcpy(into, t->rest.p, n);
    t->rest = ms_str_sub(t->rest, (uint32_t)n, t->rest.n);
}

static uint64_t take_number(struct taker *t)
{
    uint64_t v = 0;
    take_bytes(t, &v, sizeof v);
    return v;
}

static char *take_text(struct taker *t)
{
    uint64_t n = take_number(t);
    if (t->rc != MS_OK || n == 0)
        return NULL;
    char *text = n <= t->rest.n ? ms_alloc((size_t)n) : NULL;
    if (text == NULL && n <= t->rest.n)
        t->rc = ms_no_memory(t->err);
    take_bytes(t, text, (size_t)n);
    return text;
}

static void take_told(struct taker *t, struct cmp_told *told)
{
    told->row = take_text(t);
    told->op = take_text(t);
    told->golden_op = take_text(t);
    told->text = take_text(t);
    take_bytes(t, &told->score, sizeof told->score);
}

static void take_problems(struct taker *t, struct cmp_result *r)
{
    for (uint64_t n = take_number(t); n != 0 && t->rc == MS_OK; n--) {
        char **slot = ms_vec_push(&r->problems);
        if (slot == NULL)
            t->rc = ms_no_memory(t->err);
        else
            *slot = take_text(t);
    }
}

static void take_files(struct taker *t, struct cmp_result *r)
{
    for (uint64_t n = take_number(t); n != 0 && t->rc == MS_OK; n--) {
        char **slot = ms_vec_push(&r->files.list);
        if (slot == NULL)
            t->rc = ms_no_memory(t->err);
        else
            *slot = take_text(t);
    }
}

static void take_trail(struct taker *t, struct cmp_trail *trail)
{
    trail->segments = (uint32_t)take_number(t);
    uint64_t n = take_number(t);
    if (t->rc != MS_OK || n == 0)
        return;
    if (n > t->rest.n / sizeof *trail->steps.p)
        t->rc = ms_fail(t->err, MS_E_FORMAT, "a result from another process is cut short");
    else if (!ms_vec_reserve(&trail->steps, (size_t)n))
        t->rc = ms_no_memory(t->err);
    if (t->rc != MS_OK)
        return;
    take_bytes(t, trail->steps.p, (size_t)n * sizeof *trail->steps.p);
    trail->steps.n = (size_t)n;
}

enum ms_rc cmp_report_unpack(struct cmp_result *r, struct ms_str packed, struct ms_err *err)
{
    struct taker t = {.rest = packed, .err = err};
    take_bytes(&t, &r->err, sizeof r->err);
    take_bytes(&t, &r->sum, sizeof r->sum);
    take_files(&t, r);
    take_told(&t, &r->first);
    uint64_t nworst = take_number(&t);
    for (; r->nworst < nworst && r->nworst < CMP_WORST && t.rc == MS_OK; r->nworst++)
        take_told(&t, &r->worst[r->nworst]);
    take_problems(&t, r);
    r->json_bytes = take_number(&t);
    r->tensor_bytes = take_number(&t);
    r->done = take_number(&t) != 0;
    take_trail(&t, &r->trail);
    return t.rc;
}
