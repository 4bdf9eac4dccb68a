/* SPDX-License-Identifier: MIT
 *
 * tl_plain: a small pickle machine, and JSON into the same values.
 */
#include "mstx/tl_plain.h"

#include "probe/base/jread.h"
#include "probe/base/mem.h"
#include "probe/base/vec.h"

#include <string.h>

enum { MEMO_MAX = 1 << 24, DEPTH_MAX = 64, MARK = MSTX_PLAIN_DICT + 1, NAME };

struct machine {
    const uint8_t *first, *at, *end;
    struct ms_arena *a;
    MS_VEC(struct mstx_plain *) stack, memo; /* a NULL of memo: nothing was kept there */
    const char *bad;
    bool no_memory;
};

static struct mstx_plain *new_value(struct ms_arena *a, int kind)
{
    struct mstx_plain *v = ms_arena_calloc(a, 1, sizeof *v);
    if (v != NULL)
        v->kind = (enum mstx_plain_kind)kind;
    return v;
}

static bool add_item(struct ms_arena *a, struct mstx_plain *to, struct mstx_plain *item)
{
    if (to->n == to->cap) {
        const size_t cap = to->cap != 0 ? 2 * to->cap : 4;
        struct mstx_plain **more = ms_arena_calloc(a, cap, sizeof(struct mstx_plain *));
        if (more == NULL)
            return false;
        if (to->n != 0)
            memcpy(more, to->item, to->n * sizeof(struct mstx_plain *));
        to->item = more;
        to->cap = cap;
    }
    to->item[to->n++] = item;
    return true;
}

/* ---- pickle: bytes and stack -------------------------------------------------------- */

static void fail(struct machine *m, const char *why)
{
    if (m->bad == NULL)
        m->bad = why;
}

static const uint8_t *take(struct machine *m, size_t n)
{
    static const uint8_t zeros[8];
    if ((size_t)(m->end - m->at) < n) {
        fail(m, "ends early");
        m->at = m->end;
        return n <= sizeof zeros ? zeros : NULL;
    }
    m->at += n;
    return m->at - n;
}

static uint64_t take_number(struct machine *m, unsigned bytes)
{
    const uint8_t *p = take(m, bytes);
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static void push(struct machine *m, struct mstx_plain *v)
{
    struct mstx_plain **slot = v != NULL ? ms_vec_push(&m->stack) : NULL;
    m->no_memory |= slot == NULL;
    if (slot != NULL)
        *slot = v;
}

static void push_new(struct machine *m, int kind, int64_t i, double f, struct ms_str s)
{
    struct mstx_plain *v = new_value(m->a, kind);
    if (v != NULL) {
        v->i = i;
        v->f = f;
        v->s = s;
    }
    push(m, v);
}

static struct mstx_plain *pop(struct machine *m)
{
    static struct mstx_plain none;
    if (m->stack.n == 0) {
        fail(m, "takes a value that is not there");
        return &none;
    }
    return m->stack.p[--m->stack.n];
}

/* Where the values behind the last mark begin; the mark is taken away by cut. */
static size_t behind_mark(struct machine *m)
{
    size_t i = m->stack.n;
    while (i > 0 && (int)m->stack.p[i - 1]->kind != MARK)
        i--;
    if (i == 0)
        fail(m, "has no mark where one is needed");
    return i;
}

static void push_text(struct machine *m, uint64_t n)
{
    if (n > UINT32_MAX) {
        fail(m, "has a text that is too long");
        return;
    }
    const uint8_t *p = take(m, (size_t)n);
    if (m->bad == NULL)
        push_new(m, MSTX_PLAIN_TEXT, 0, 0, (struct ms_str){(const char *)p, (uint32_t)n});
}

static void push_long(struct machine *m, uint64_t n)
{
    if (n > 8) { /* times and counts have less */
        if (n > (uint64_t)(m->end - m->at))
            fail(m, "ends early");
        else
            (void)take(m, (size_t)n);
        push_new(m, MSTX_PLAIN_NONE, 0, 0, MS_STR(""));
        return;
    }
    uint64_t v = take_number(m, (unsigned)n);
    if (n > 0 && n < 8 && v >> (8 * n - 1) != 0)
        v |= ~(uint64_t)0 << 8 * n;
    push_new(m, MSTX_PLAIN_INT, (int64_t)v, 0, MS_STR(""));
}

static void push_real(struct machine *m)
{
    const uint8_t *p = take(m, 8);
    uint64_t bits = 0;
    double f;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | p[i];
    memcpy(&f, &bits, sizeof f);
    push_new(m, MSTX_PLAIN_REAL, 0, f, MS_STR(""));
}

/* The last n values of the stack as a list. */
static void push_tuple(struct machine *m, size_t from)
{
    struct mstx_plain *v = new_value(m->a, MSTX_PLAIN_LIST);
    for (size_t i = from; v != NULL && i < m->stack.n; i++)
        m->no_memory |= !add_item(m->a, v, m->stack.p[i]);
    m->stack.n = from;
    push(m, v);
}

static void tuple_of(struct machine *m, size_t n)
{
    if (m->stack.n < n)
        fail(m, "takes a value that is not there");
    else
        push_tuple(m, m->stack.n - n);
}

/* Put what is behind the mark into the list or dict before it. */
static void extend(struct machine *m, enum mstx_plain_kind kind, size_t from, size_t top)
{
    if (from < 1 + top || m->stack.p[from - 1 - top]->kind != kind) {
        fail(m, "puts a value into what is neither list nor dict");
        return;
    }
    if (kind == MSTX_PLAIN_DICT && (m->stack.n - from) % 2 != 0) {
        fail(m, "has a key without a value");
        return;
    }
    struct mstx_plain *to = m->stack.p[from - 1 - top];
    for (size_t i = from; i < m->stack.n; i++)
        m->no_memory |= !add_item(m->a, to, m->stack.p[i]);
    m->stack.n = from - top;
}

static void keep(struct machine *m, uint64_t at)
{
    if (m->stack.n == 0 || at > MEMO_MAX || at > (uint64_t)(m->end - m->first)) {
        fail(m, "remembers a value that is not there");
        return;
    }
    while (m->memo.n <= at && !m->no_memory) {
        struct mstx_plain **slot = ms_vec_push(&m->memo);
        m->no_memory |= slot == NULL;
        if (slot != NULL)
            *slot = NULL;
    }
    if (!m->no_memory)
        m->memo.p[at] = m->stack.p[m->stack.n - 1];
}

static void recall(struct machine *m, uint64_t at)
{
    if (at >= m->memo.n || m->memo.p[at] == NULL)
        fail(m, "asks for a value that was not remembered");
    else
        push(m, m->memo.p[at]);
}

/* ---- pickle: names ------------------------------------------------------------------- */

static struct ms_str take_line(struct machine *m)
{
    const uint8_t *from = m->at;
    const uint8_t *nl = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (nl == NULL) {
        fail(m, "ends early");
        return MS_STR("");
    }
    m->at = nl + 1;
    return (struct ms_str){(const char *)from, (uint32_t)(nl - from)};
}

/* PyTorch's pickler gives lists their types by these; what they make is their first argument. */
static void push_name(struct machine *m, struct ms_str module, struct ms_str name)
{
    static const char *const known[] = {"restore_type_tag", "build_intlist", "build_doublelist",
                                        "build_boollist", "build_tensorlist"};
    bool is_known = ms_str_is(module, "collections") && ms_str_is(name, "OrderedDict");
    for (size_t i = 0; ms_str_is(module, "torch.jit._pickle") && i < 5; i++)
        is_known |= ms_str_is(name, known[i]);
    if (!is_known)
        fail(m, "names a function; nothing in it is executed");
    push_new(m, NAME, 0, 0, name);
}

static void call(struct machine *m)
{
    struct mstx_plain *args = pop(m), *name = pop(m);
    if ((int)name->kind != NAME || args->kind != MSTX_PLAIN_LIST)
        fail(m, "calls what is no function");
    else if (args->n != 0)
        push(m, args->item[0]);
    else
        push_new(m, MSTX_PLAIN_DICT, 0, 0, MS_STR(""));
}

/* ---- pickle: operations ---------------------------------------------------------------- */

static bool take_scalar(struct machine *m, uint8_t op)
{
    switch (op) {
    case 'N':
        push_new(m, MSTX_PLAIN_NONE, 0, 0, MS_STR(""));
        return true;
    case 0x88:
    case 0x89:
        push_new(m, MSTX_PLAIN_BOOL, op == 0x88, 0, MS_STR(""));
        return true;
    case 'J':
        push_new(m, MSTX_PLAIN_INT, (int32_t)take_number(m, 4), 0, MS_STR(""));
        return true;
    case 'K':
    case 'M':
        push_new(m, MSTX_PLAIN_INT, (int64_t)take_number(m, op == 'K' ? 1 : 2), 0, MS_STR(""));
        return true;
    case 0x8a:
        push_long(m, take_number(m, 1));
        return true;
    case 0x8b:
        push_long(m, take_number(m, 4));
        return true;
    case 'G':
        push_real(m);
        return true;
    case 'X':
    case 'T':
    case 'B':
        push_text(m, take_number(m, 4));
        return true;
    case 0x8c:
    case 'U':
    case 'C':
        push_text(m, take_number(m, 1));
        return true;
    case 0x8d:
        push_text(m, take_number(m, 8));
        return true;
    default:
        return false;
    }
}

static bool take_container(struct machine *m, uint8_t op)
{
    size_t from;
    switch (op) {
    case '(':
        push_new(m, MARK, 0, 0, MS_STR(""));
        return true;
    case ']':
    case ')':
        push_new(m, MSTX_PLAIN_LIST, 0, 0, MS_STR(""));
        return true;
    case '}':
        push_new(m, MSTX_PLAIN_DICT, 0, 0, MS_STR(""));
        return true;
    case 't':
    case 'l':
    case 'e':
    case 'u':
        from = behind_mark(m);
        if (m->bad == NULL && (op == 'e' || op == 'u')) {
            extend(m, op == 'e' ? MSTX_PLAIN_LIST : MSTX_PLAIN_DICT, from, 1);
        } else if (m->bad == NULL) {
            push_tuple(m, from);
            struct mstx_plain *made = pop(m);
            pop(m); /* the mark */
            push(m, made);
        }
        return true;
    case 'a':
    case 's':
        if (m->stack.n < 3u - (op == 'a'))
            fail(m, "takes a value that is not there");
        else
            extend(m, op == 'a' ? MSTX_PLAIN_LIST : MSTX_PLAIN_DICT,
                   m->stack.n - (op == 'a' ? 1 : 2), 0);
        return true;
    case 0x85:
    case 0x86:
    case 0x87:
        tuple_of(m, (size_t)op - 0x84);
        return true;
    default:
        return false;
    }
}

static bool take_other(struct machine *m, uint8_t op)
{
    switch (op) {
    case 0x80: /* protocol */
        (void)take(m, 1);
        return true;
    case 0x95: /* frame */
        (void)take(m, 8);
        return true;
    case 'q':
    case 'r':
        keep(m, take_number(m, op == 'q' ? 1 : 4));
        return true;
    case 0x94:
        keep(m, m->memo.n);
        return true;
    case 'h':
    case 'j':
        recall(m, take_number(m, op == 'h' ? 1 : 4));
        return true;
    case '0':
        pop(m);
        return true;
    case 'c': {
        const struct ms_str module = take_line(m);
        push_name(m, module, take_line(m));
        return true;
    }
    case 0x93: {
        struct mstx_plain *name = pop(m), *module = pop(m);
        push_name(m, module->s, name->s);
        return true;
    }
    case 'R':
        call(m);
        return true;
    default:
        return false;
    }
}

static enum ms_rc read_pickle(struct mstx_plain **out, struct ms_str bytes, struct ms_arena *a,
                              struct ms_err *err)
{
    const uint8_t *p = (const uint8_t *)bytes.p;
    struct machine m = {.first = p, .at = p, .end = p + bytes.n, .a = a};
    uint8_t op = 0;
    while (m.bad == NULL && !m.no_memory) {
        op = *take(&m, 1);
        if (m.bad != NULL || op == '.')
            break;
        if (!take_scalar(&m, op) && !take_container(&m, op) && !take_other(&m, op))
            fail(&m, "has an operation that this reader does not know");
    }
    *out = pop(&m);
    if ((int)(*out)->kind >= MARK)
        fail(&m, "holds no value");
    const int64_t at = m.at - p;
    ms_vec_free(&m.stack);
    ms_vec_free(&m.memo);
    if (m.no_memory)
        return ms_no_memory(err);
    return m.bad == NULL ? MS_OK : ms_fail_at(err, MS_E_FORMAT, 0, at, "the pickle %s", m.bad);
}

/* ---- JSON ------------------------------------------------------------------------------ */

struct json {
    struct ms_jread j;
    struct ms_arena *a;
    struct ms_buf scratch;
    bool no_memory;
};

static struct mstx_plain *json_text(struct json *r)
{
    struct mstx_plain *v = new_value(r->a, MSTX_PLAIN_TEXT);
    struct ms_str s;
    ms_buf_clear(&r->scratch);
    if (v == NULL || ms_jread_text(&r->j, &r->scratch, &s, NULL) != MS_OK)
        return NULL;
    v->s = r->j.escaped ? ms_arena_str(r->a, s) : s;
    return v->s.p != NULL || v->s.n == 0 ? v : NULL;
}

static struct mstx_plain *json_number(struct json *r)
{
    struct mstx_plain *v = new_value(r->a, MSTX_PLAIN_INT);
    if (v != NULL && !ms_jread_i64(&r->j, &v->i)) {
        v->kind = MSTX_PLAIN_REAL;
        if (!ms_jread_f64(&r->j, &v->f))
            v->kind = MSTX_PLAIN_NONE;
    }
    return v;
}

static struct mstx_plain *json_value(struct json *r, enum ms_jtok t, int depth);

static struct mstx_plain *json_items(struct json *r, enum ms_jtok t, int depth)
{
    const bool is_list = t == MS_J_ARR;
    const enum ms_jtok last = is_list ? MS_J_ARR_END : MS_J_OBJ_END;
    struct mstx_plain *v = new_value(r->a, is_list ? MSTX_PLAIN_LIST : MSTX_PLAIN_DICT);
    if (v == NULL || depth == DEPTH_MAX) { /* nothing that is read lies as deep */
        r->no_memory |= v == NULL;
        return ms_jread_skip(&r->j, t) != MS_J_ERR ? v : NULL;
    }
    while ((t = ms_jread_next(&r->j)) != last && t != MS_J_ERR && !r->no_memory) {
        struct mstx_plain *item = t == MS_J_KEY ? json_text(r) : json_value(r, t, depth + 1);
        r->no_memory |= item != NULL && !add_item(r->a, v, item);
        if (item == NULL)
            return NULL;
    }
    return t == last ? v : NULL;
}

static struct mstx_plain *json_value(struct json *r, enum ms_jtok t, int depth)
{
    struct mstx_plain *v;
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
        v = new_value(r->a, MSTX_PLAIN_BOOL);
        if (v != NULL)
            v->i = t == MS_J_TRUE;
        return v;
    case MS_J_NULL:
        return new_value(r->a, MSTX_PLAIN_NONE);
    default:
        return NULL;
    }
}

static enum ms_rc read_json(struct mstx_plain **out, struct ms_str bytes, struct ms_arena *a,
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

enum ms_rc mstx_plain_read(struct mstx_plain **out, struct ms_str bytes, struct ms_arena *a,
                           struct ms_err *err)
{
    return mstx_plain_is_pickle(bytes) ? read_pickle(out, bytes, a, err)
                                       : read_json(out, bytes, a, err);
}

const struct mstx_plain *mstx_plain_get(const struct mstx_plain *v, const char *key)
{
    for (size_t i = 0; v != NULL && v->kind == MSTX_PLAIN_DICT && i + 1 < v->n; i += 2) {
        if (v->item[i]->kind == MSTX_PLAIN_TEXT && ms_str_is(v->item[i]->s, key))
            return v->item[i + 1];
    }
    return NULL;
}

int64_t mstx_plain_int(const struct mstx_plain *v, int64_t other)
{
    return v != NULL && (v->kind == MSTX_PLAIN_INT || v->kind == MSTX_PLAIN_BOOL) ? v->i : other;
}

double mstx_plain_real(const struct mstx_plain *v, double other)
{
    if (v != NULL && v->kind == MSTX_PLAIN_INT)
        return (double)v->i;
    return v != NULL && v->kind == MSTX_PLAIN_REAL ? v->f : other;
}

struct ms_str mstx_plain_text(const struct mstx_plain *v)
{
    return v != NULL && v->kind == MSTX_PLAIN_TEXT ? v->s : MS_STR("");
}
