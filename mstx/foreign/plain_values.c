/* SPDX-License-Identifier: MIT
 *
 * plain_values: the names that a Flight Recorder dump may hold, and JSON into the same values as a
 * pickle.
 */
#include "mstx/foreign/plain_values.h"

#include "probe/base/jread.h"
#include "probe/base/pickle.h"

enum { DEPTH_MAX = 64 };

/* ---- pickle ---------------------------------------------------------------------------- */

/* Recognizes the functions by which PyTorch's pickler gives lists their types; they return their
 * first argument. */
static uint32_t name_number(struct ms_str module, struct ms_str name)
{
    static const char *const lists[] = {"restore_type_tag", "build_intlist", "build_doublelist",
                                        "build_boollist", "build_tensorlist"};
    if (ms_str_is(module, "collections") && ms_str_is(name, "OrderedDict"))
        return MS_PICKLE_NEW_DICT;
    for (size_t i = 0; ms_str_is(module, "torch.jit._pickle") && i < 5; i++) {
        if (ms_str_is(name, lists[i]))
            return MS_PICKLE_FIRST;
    }
    return MS_PICKLE_REFUSED;
}

/* Times and counts have at most 64 bits; a dump may hold longer numbers, which are not used. */
static const struct ms_pickle_rules rules = {.of = "a Flight Recorder dump",
                                             .ops = {MS_PICKLE_OPS, sizeof MS_PICKLE_OPS - 1},
                                             .protocol = 5,
                                             .name_number = name_number,
                                             .open = UINT32_MAX,
                                             .remembered = 1 << 24,
                                             .objects = UINT32_MAX,
                                             .items = UINT32_MAX,
                                             .digits = UINT32_MAX};

/* ---- JSON ------------------------------------------------------------------------------ */

struct json {
    struct ms_jread j;
    struct ms_arena *a;
    struct ms_buf scratch;
    bool no_memory;
};

static struct ms_plain *json_text(struct json *r)
{
    struct ms_plain *v = ms_plain_new(r->a, MS_PLAIN_TEXT);
    struct ms_str s;
    ms_buf_clear(&r->scratch);
    if (v == NULL || ms_jread_text(&r->j, &r->scratch, &s, NULL) != MS_OK)
        return NULL;
    v->s = r->j.escaped ? ms_arena_str(r->a, s) : s;
    return v->s.p != NULL || v->s.n == 0 ? v : NULL;
}

static struct ms_plain *json_number(struct json *r)
{
    struct ms_plain *v = ms_plain_new(r->a, MS_PLAIN_INT);
    if (v != NULL && !ms_jread_i64(&r->j, &v->i)) {
        v->kind = MS_PLAIN_REAL;
        if (!ms_jread_f64(&r->j, &v->f))
            v->kind = MS_PLAIN_NONE;
    }
    return v;
}

static struct ms_plain *json_value(struct json *r, enum ms_jtok t, int depth);

static struct ms_plain *json_items(struct json *r, enum ms_jtok t, int depth)
{
    const bool is_list = t == MS_J_ARR;
    const enum ms_jtok last = is_list ? MS_J_ARR_END : MS_J_OBJ_END;
    struct ms_plain *v = ms_plain_new(r->a, is_list ? MS_PLAIN_LIST : MS_PLAIN_DICT);
    if (v == NULL || depth == DEPTH_MAX) { /* no value that is used is nested as deep */
        r->no_memory |= v == NULL;
        return ms_jread_skip(&r->j, t) != MS_J_ERR ? v : NULL;
    }
    while ((t = ms_jread_next(&r->j)) != last && t != MS_J_ERR && !r->no_memory) {
        struct ms_plain *item = t == MS_J_KEY ? json_text(r) : json_value(r, t, depth + 1);
        r->no_memory |= item != NULL && !ms_plain_add(r->a, v, item);
        if (item == NULL)
            return NULL;
    }
    return t == last ? v : NULL;
}

static struct ms_plain *json_value(struct json *r, enum ms_jtok t, int depth)
{
    struct ms_plain *v;
    switch (t) {
    case MS_J_OBJ:
    case MS_J_ARR:
        return json_items(r, t, depth);
    case MS_J_STR:
        return json_text(r);
    case MS_J_NUM:
        return json_number(r);
    case MS_J_TRUE:
    case MS_J_FALSE:
        v = ms_plain_new(r->a, MS_PLAIN_BOOL);
        if (v != NULL)
            v->i = t == MS_J_TRUE;
        return v;
    case MS_J_NULL:
        return ms_plain_new(r->a, MS_PLAIN_NONE);
    default:
        return NULL;
    }
}

static enum ms_rc read_json(struct ms_plain **out, struct ms_str bytes, struct ms_arena *a,
                            struct ms_err *err)
{
    struct json r = {.a = a, .scratch = {.max = (size_t)bytes.n + 1}};
    ms_jread_init(&r.j, bytes.p, bytes.n, 0);
    *out = json_value(&r, ms_jread_next(&r.j), 0);
    const bool is_whole = *out != NULL && ms_jread_next(&r.j) == MS_J_END;
    ms_buf_free(&r.scratch);
    if (is_whole)
        return MS_OK;
    return r.j.bad_why != NULL ? ms_jread_fail(&r.j, err) : ms_no_memory(err);
}

/* ---- both ------------------------------------------------------------------------------ */

bool mstx_plain_is_pickle(struct ms_str bytes)
{
    return bytes.n > 2 && (uint8_t)bytes.p[0] == 0x80 && bytes.p[1] >= 2 && bytes.p[1] <= 5;
}

enum ms_rc mstx_plain_read(struct ms_plain **out, struct ms_str bytes, struct ms_arena *a,
                           struct ms_err *err)
{
    size_t at = 0;
    return mstx_plain_is_pickle(bytes) ? ms_pickle_read(out, bytes.p, bytes.n, &at, &rules, a, err)
                                       : read_json(out, bytes, a, err);
}
