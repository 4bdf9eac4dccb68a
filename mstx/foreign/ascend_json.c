/* SPDX-License-Identifier: MIT
 *
 * ascend_json: see the header.
 */
#include "mstx/foreign/ascend_json.h"

#include "probe/base/jread.h"

enum { AT_STEP = 1, AT_KIND, AT_OP, TEXT_MAX = 1 << 30 };

struct reading {
    struct ms_jread r;
    struct ms_buf key[AT_OP + 1]; /* of each level */
    mstx_ascend_op_fn fn;
    void *ctx;
};

static enum ms_rc read_op(struct reading *d, struct ms_err *err)
{
    struct mstx_ascend_op op = {ms_buf_slice(&d->key[AT_STEP]), ms_buf_slice(&d->key[AT_KIND]),
                                ms_buf_slice(&d->key[AT_OP]), MS_STR_NONE, MS_STR_NONE};
    const enum ms_jtok t = ms_jread_next(&d->r);
    const char *start = d->r.tok;
    if (t == MS_J_ERR || ms_jread_skip(&d->r, t) == MS_J_ERR)
        return ms_jread_fail(&d->r, err);
    if (t != MS_J_OBJ || ms_str_starts(op.op, MS_STR("Total")))
        return MS_OK;
    if (d->r.at - start > TEXT_MAX)
        return ms_jread_reject(&d->r, err, "an operation of more than 1 GiB");
    op.text = (struct ms_str){start, (uint32_t)(d->r.at - start)};
    op.group = ms_str_sub(op.op, (uint32_t)(ms_str_rfind(op.op, '@') + 1), op.op.n);
    return d->fn(d->ctx, &op, err);
}

/* Keeps the text of a key for the levels below.  A key whose value is not an object has no levels
 * below. */
static enum ms_rc read_key(struct reading *d, struct ms_err *err)
{
    const uint32_t level = d->r.depth;
    struct ms_buf *key = &d->key[level];
    struct ms_buf scratch = {.max = 1 << 20};
    struct ms_str text;
    ms_buf_clear(key);
    enum ms_rc rc = ms_jread_text(&d->r, &scratch, &text, err);
    if (rc == MS_OK) {
        ms_buf_str(key, text);
        rc = ms_buf_check(key, err);
    }
    ms_buf_free(&scratch);
    if (rc != MS_OK)
        return rc;
    if (level == AT_OP)
        return read_op(d, err);
    const enum ms_jtok t = ms_jread_next(&d->r);
    if (t != MS_J_OBJ && (t == MS_J_ERR || ms_jread_skip(&d->r, t) == MS_J_ERR))
        return ms_jread_fail(&d->r, err);
    return MS_OK;
}

static enum ms_rc read_all(struct reading *d, struct ms_err *err)
{
    enum ms_jtok t = ms_jread_next(&d->r);
    if (t != MS_J_OBJ && t != MS_J_ERR)
        return ms_jread_reject(&d->r, err, "expected an object of steps");
    while ((t = ms_jread_next(&d->r)) > MS_J_END) {
        if (t == MS_J_KEY)
            MS_TRY(read_key(d, err));
    }
    return t == MS_J_ERR ? ms_jread_fail(&d->r, err) : MS_OK;
}

enum ms_rc mstx__ascend_json_read(const char *p, size_t n, mstx_ascend_op_fn fn, void *ctx,
                                  struct ms_err *err)
{
    struct reading d = {.fn = fn, .ctx = ctx};
    for (int i = 0; i <= AT_OP; i++)
        d.key[i].max = 1 << 20;
    ms_jread_init(&d.r, p, n, 0);
    enum ms_rc rc = read_all(&d, err);
    for (int i = 0; i <= AT_OP; i++)
        ms_buf_free(&d.key[i]);
    return rc;
}
