/* SPDX-License-Identifier: MIT
 *
 * tensor_pickle: a stack machine for the part of pickle protocol 2 that tensors
 * are written in.  It runs nothing.  GLOBAL looks a name up in a list and
 * yields a number, REDUCE yields a node that says "this would be called with
 * that"; what the nodes mean is decided by who reads them.
 *
 * All memory is one struct of fixed size.  Containers are chains of cells:
 *
 *     value {PK_TUPLE, node 3} -> node {first 7, last 9, 3 items}
 *                                        cell 7 -> cell 8 -> cell 9
 *
 * so values are copied freely, and a list that holds itself is no danger: there
 * is no recursion anywhere.
 */
#include "probe/base/mem.h"
#include "probe/tensor_int.h"

enum { MAX_STACK = 512, MAX_MEMO = 512, MAX_NODES = 256, MAX_CELLS = 1024, MAX_NAME = 200 };
#define NO_CELL UINT32_MAX

struct cell {
    struct probe__pk_value value;
    uint32_t next;
};
struct node {
    uint32_t first, last, n;
};
struct probe__pickle {
    const char *p;
    size_t at, end;
    size_t op; /* where the current operation began */
    struct ms_err *err;
    uint32_t depth, nodes, cells;
    struct probe__pk_value stack[MAX_STACK], memo[MAX_MEMO];
    struct node node[MAX_NODES];
    struct cell cell[MAX_CELLS];
};

struct probe__pickle *probe__pickle_new(void)
{
    return ms_alloc(sizeof(struct probe__pickle));
}

/* ---- failures ------------------------------------------------------------- */

/* A checkpoint uses much that a tensor does not: say so, whatever it was that failed first. */
static enum ms_rc with_hint(struct probe__pickle *pk, enum ms_rc rc)
{
    if (pk->depth != 0 && (pk->stack[0].kind == PK_DICT || pk->stack[0].kind == PK_LIST))
        ms_err_hint(pk->err, "the file holds a %s: a checkpoint, not a tensor",
                    pk->stack[0].kind == PK_DICT ? "dictionary" : "list");
    return rc;
}

static enum ms_rc bad(struct probe__pickle *pk, const char *what)
{
    ms_fail_at(pk->err, MS_E_FORMAT, 0, (int64_t)pk->op, "%s in the pickle", what);
    return with_hint(pk, MS_E_FORMAT);
}

static enum ms_rc full(struct probe__pickle *pk, const char *what)
{
    ms_fail_at(pk->err, MS_E_LIMIT, 0, (int64_t)pk->op, "more %s than a tensor's pickle has", what);
    return with_hint(pk, MS_E_LIMIT);
}

static enum ms_rc refuse_op(struct probe__pickle *pk, unsigned char op)
{
    ms_fail_at(pk->err, MS_E_UNSUPPORTED, 0, (int64_t)pk->op,
               "pickle operation 0x%02x is not one a tensor is written with", op);
    return with_hint(pk, MS_E_UNSUPPORTED);
}

/* ---- input ---------------------------------------------------------------- */

/* The next n bytes, or NULL at the end. */
static const char *take(struct probe__pickle *pk, size_t n)
{
    if (n > pk->end - pk->at)
        return NULL;
    pk->at += n;
    return pk->p + pk->at - n;
}

/* Text up to a line's end, which is taken as well. */
static bool take_line(struct probe__pickle *pk, struct ms_str *line)
{
    const char *from = pk->p + pk->at;
    const size_t left = pk->end - pk->at, n = left < MAX_NAME ? left : MAX_NAME;
    const char *to = n != 0 ? memchr(from, '\n', n) : NULL;
    if (to == NULL)
        return false;
    *line = (struct ms_str){from, (uint32_t)(to - from)};
    pk->at += line->n + 1;
    return true;
}

/* ---- stack and containers ------------------------------------------------- */

static enum ms_rc push(struct probe__pickle *pk, struct probe__pk_value v)
{
    if (pk->depth == MAX_STACK)
        return full(pk, "open values");
    pk->stack[pk->depth++] = v;
    return MS_OK;
}

static enum ms_rc push_int(struct probe__pickle *pk, int64_t i)
{
    return push(pk, (struct probe__pk_value){.kind = PK_INT, .i = i});
}

/* The value k below the top, or NULL when the stack or what a mark began is not as deep. */
static struct probe__pk_value *peek(struct probe__pickle *pk, uint32_t k)
{
    if (k >= pk->depth)
        return NULL;
    for (uint32_t i = 0; i <= k; i++) {
        if (pk->stack[pk->depth - 1 - i].kind == PK_MARK)
            return NULL;
    }
    return &pk->stack[pk->depth - 1 - k];
}

/* Values above the last mark. */
static enum ms_rc above_mark(struct probe__pickle *pk, uint32_t *n)
{
    for (*n = 0; *n < pk->depth; (*n)++) {
        if (pk->stack[pk->depth - 1 - *n].kind == PK_MARK)
            return MS_OK;
    }
    return bad(pk, "a missing mark");
}

static enum ms_rc new_node(struct probe__pickle *pk, enum probe__pk_kind kind,
                           struct probe__pk_value *out)
{
    if (pk->nodes == MAX_NODES)
        return full(pk, "objects");
    pk->node[pk->nodes] = (struct node){NO_CELL, NO_CELL, 0};
    *out = (struct probe__pk_value){.kind = (uint8_t)kind, .node = pk->nodes++};
    return MS_OK;
}

static enum ms_rc append(struct probe__pickle *pk, struct probe__pk_value to,
                         struct probe__pk_value v)
{
    if (pk->cells == MAX_CELLS)
        return full(pk, "values");
    struct node *n = &pk->node[to.node];
    const uint32_t c = pk->cells++;
    pk->cell[c] = (struct cell){v, NO_CELL};
    if (n->n == 0)
        n->first = c;
    else
        pk->cell[n->last].next = c;
    n->last = c;
    n->n++;
    return MS_OK;
}

/* Move the top n values, the deepest first, to the end of a container. */
static enum ms_rc append_top(struct probe__pickle *pk, struct probe__pk_value to, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;)
        MS_TRY(append(pk, to, pk->stack[pk->depth - 1 - i]));
    pk->depth -= n;
    return MS_OK;
}

static enum ms_rc push_empty(struct probe__pickle *pk, enum probe__pk_kind kind)
{
    struct probe__pk_value v;
    MS_TRY(new_node(pk, kind, &v));
    return push(pk, v);
}

static enum ms_rc make_tuple(struct probe__pickle *pk, uint32_t n)
{
    struct probe__pk_value v;
    if (n != 0 && peek(pk, n - 1) == NULL)
        return bad(pk, "too few values");
    MS_TRY(new_node(pk, PK_TUPLE, &v));
    MS_TRY(append_top(pk, v, n));
    return push(pk, v);
}

static enum ms_rc make_tuple_from_mark(struct probe__pickle *pk)
{
    struct probe__pk_value v;
    uint32_t n;
    MS_TRY(above_mark(pk, &n));
    MS_TRY(new_node(pk, PK_TUPLE, &v));
    MS_TRY(append_top(pk, v, n));
    pk->depth--;
    return push(pk, v);
}

/* The top n values go into the container below them; `marked` says that a mark lies between. */
static enum ms_rc fill(struct probe__pickle *pk, enum probe__pk_kind kind, uint32_t n, bool marked)
{
    const uint32_t below = n + (marked ? 1 : 0);
    if (pk->depth <= below || pk->stack[pk->depth - 1 - below].kind != kind)
        return bad(pk, kind == PK_DICT ? "entries for no dictionary" : "items for no list");
    if (kind == PK_DICT && n % 2 != 0)
        return bad(pk, "a key without a value");
    MS_TRY(append_top(pk, pk->stack[pk->depth - 1 - below], n));
    pk->depth -= marked ? 1 : 0;
    return MS_OK;
}

static enum ms_rc fill_one(struct probe__pickle *pk, enum probe__pk_kind kind, uint32_t n)
{
    return peek(pk, n) != NULL ? fill(pk, kind, n, false) : bad(pk, "too few values");
}

static enum ms_rc fill_from_mark(struct probe__pickle *pk, enum probe__pk_kind kind)
{
    uint32_t n;
    MS_TRY(above_mark(pk, &n));
    return fill(pk, kind, n, true);
}

/* ---- memo ----------------------------------------------------------------- */

static enum ms_rc memo_put(struct probe__pickle *pk, uint32_t i)
{
    const struct probe__pk_value *top = peek(pk, 0);
    if (top == NULL)
        return bad(pk, "nothing to remember");
    if (i >= MAX_MEMO)
        return full(pk, "remembered values");
    pk->memo[i] = *top;
    return MS_OK;
}

static enum ms_rc memo_get(struct probe__pickle *pk, uint32_t i)
{
    /* Unused places hold a mark, which no value that was put there can be. */
    if (i >= MAX_MEMO || pk->memo[i].kind == PK_MARK)
        return bad(pk, "a value that was never remembered");
    return push(pk, pk->memo[i]);
}

/* ---- names and calls ------------------------------------------------------ */

static const struct {
    const char *module, *name;
    uint8_t global, dtype;
} globals[] = {
    {"torch._utils", "_rebuild_tensor_v2", PKG_TENSOR_V2, 0},
    {"torch._utils", "_rebuild_tensor_v3", PKG_TENSOR_V3, 0},
    {"torch._utils", "_rebuild_parameter", PKG_PARAMETER, 0},
    {"torch_npu.utils.storage", "_rebuild_npu_tensor", PKG_TENSOR_NPU, 0},
    {"collections", "OrderedDict", PKG_ORDERED_DICT, 0},
    {"torch.storage", "UntypedStorage", PKG_UNTYPED_STORAGE, 0},
    {"torch", "DoubleStorage", PKG_STORAGE, MS_DT_F64},
    {"torch", "FloatStorage", PKG_STORAGE, MS_DT_F32},
    {"torch", "HalfStorage", PKG_STORAGE, MS_DT_F16},
    {"torch", "BFloat16Storage", PKG_STORAGE, MS_DT_BF16},
    {"torch", "LongStorage", PKG_STORAGE, MS_DT_I64},
    {"torch", "IntStorage", PKG_STORAGE, MS_DT_I32},
    {"torch", "ShortStorage", PKG_STORAGE, MS_DT_I16},
    {"torch", "CharStorage", PKG_STORAGE, MS_DT_I8},
    {"torch", "ByteStorage", PKG_STORAGE, MS_DT_U8},
    {"torch", "BoolStorage", PKG_STORAGE, MS_DT_BOOL},
    {"torch", "ComplexDoubleStorage", PKG_STORAGE, MS_DT_C128},
    {"torch", "ComplexFloatStorage", PKG_STORAGE, MS_DT_C64},
};

static struct probe__pk_value look_up(struct ms_str module, struct ms_str name)
{
    struct probe__pk_value v = {.kind = PK_GLOBAL};
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++) {
        if (ms_str_is(module, globals[i].module) && ms_str_is(name, globals[i].name)) {
            v.global = globals[i].global;
            v.dtype = globals[i].dtype;
            return v;
        }
    }
    /* The name alone must be a type's: "torch" + "torch.half" would be one as well. */
    if (ms_str_is(module, "torch") && ms_str_find(name, '.') < 0) {
        v.dtype = (uint8_t)ms_dtype_parse(name);
        v.global = v.dtype != MS_DT_NONE ? PKG_DTYPE : PKG_NOT_ALLOWED;
    }
    return v;
}

static enum ms_rc op_global(struct probe__pickle *pk)
{
    struct ms_str module, name;
    if (!take_line(pk, &module) || !take_line(pk, &name))
        return bad(pk, "a name without end");
    const struct probe__pk_value v = look_up(module, name);
    if (v.global != PKG_NOT_ALLOWED)
        return push(pk, v);
    char m[PROBE__SHOWN], n[PROBE__SHOWN];
    ms_fail_at(pk->err, MS_E_UNSUPPORTED, 0, (int64_t)pk->op,
               "unsupported object %s.%s in the pickle (nothing was executed)",
               probe__shown(m, module), probe__shown(n, name));
    return with_hint(pk, MS_E_UNSUPPORTED);
}

static enum ms_rc op_reduce(struct probe__pickle *pk)
{
    const struct probe__pk_value *args = peek(pk, 0), *callee = peek(pk, 1);
    if (callee == NULL || callee->kind != PK_GLOBAL || args->kind != PK_TUPLE)
        return bad(pk, "a call of nothing callable");
    if (callee->global == PKG_ORDERED_DICT) {
        if (pk->node[args->node].n != 0)
            return bad(pk, "an OrderedDict with arguments");
        pk->depth -= 2;
        return push_empty(pk, PK_DICT);
    }
    struct probe__pk_value call;
    MS_TRY(new_node(pk, PK_CALL, &call));
    MS_TRY(append_top(pk, call, 2));
    return push(pk, call);
}

static enum ms_rc op_persid(struct probe__pickle *pk)
{
    struct probe__pk_value v;
    if (peek(pk, 0) == NULL)
        return bad(pk, "too few values");
    MS_TRY(new_node(pk, PK_PERSID, &v));
    MS_TRY(append_top(pk, v, 1));
    return push(pk, v);
}

/* ---- atoms ---------------------------------------------------------------- */

static enum ms_rc push_text(struct probe__pickle *pk, size_t n)
{
    const char *text = take(pk, n);
    if (text == NULL)
        return bad(pk, "a text that ends behind the end");
    const struct ms_str s = {text, (uint32_t)n};
    return push(pk, (struct probe__pk_value){.kind = PK_STR, .s = s});
}

/* Little-endian two's complement of any length; 64 bits are what a tensor needs. */
static enum ms_rc push_long(struct probe__pickle *pk, unsigned n)
{
    const char *p = take(pk, n);
    if (p == NULL)
        return bad(pk, "a number that ends behind the end");
    if (n > 8)
        return full(pk, "digits");
    uint64_t bits = n != 0 && (p[n - 1] & 0x80) != 0 ? UINT64_MAX : 0;
    memcpy(&bits, p, n);
    int64_t i;
    memcpy(&i, &bits, sizeof i);
    return push_int(pk, i);
}

/* ---- operations ----------------------------------------------------------- */

static enum ms_rc push_atom(struct probe__pickle *pk, unsigned char op)
{
    switch (op) {
    case '(':
        return push(pk, (struct probe__pk_value){.kind = PK_MARK});
    case 'N':
        return push(pk, (struct probe__pk_value){.kind = PK_NONE});
    case 0x88:
        return push(pk, (struct probe__pk_value){.kind = PK_BOOL, .i = 1});
    case 0x89:
        return push(pk, (struct probe__pk_value){.kind = PK_BOOL, .i = 0});
    case ')':
        return push_empty(pk, PK_TUPLE);
    case ']':
        return push_empty(pk, PK_LIST);
    default:
        return push_empty(pk, PK_DICT);
    }
}

/* Operations with an operand of 1, 2 or 4 bytes. */
static enum ms_rc run_with_operand(struct probe__pickle *pk, unsigned char op, size_t size)
{
    const char *p = take(pk, size);
    if (p == NULL)
        return bad(pk, "an operation cut short");
    uint32_t v = 0;
    memcpy(&v, p, size);
    switch (op) {
    case 0x80:
        return v == 2 ? MS_OK : bad(pk, "a protocol other than 2");
    case 'K':
    case 'M':
        return push_int(pk, v);
    case 'J':
        return push_int(pk, (int32_t)v);
    case 'q':
    case 'r':
        return memo_put(pk, v);
    case 'h':
    case 'j':
        return memo_get(pk, v);
    case 0x8a:
        return push_long(pk, v);
    default: /* X, U */
        return push_text(pk, v);
    }
}

static enum ms_rc run_op(struct probe__pickle *pk, unsigned char op)
{
    switch (op) {
    case '(':
    case 'N':
    case 0x88:
    case 0x89:
    case ')':
    case ']':
    case '}':
        return push_atom(pk, op);
    case 0x80:
    case 'K':
    case 'q':
    case 'h':
    case 'U':
    case 0x8a:
        return run_with_operand(pk, op, 1);
    case 'M':
        return run_with_operand(pk, op, 2);
    case 'J':
    case 'r':
    case 'j':
    case 'X':
        return run_with_operand(pk, op, 4);
    case 0x85:
    case 0x86:
    case 0x87:
        return make_tuple(pk, op - 0x84U);
    case 't':
        return make_tuple_from_mark(pk);
    case 's':
        return fill_one(pk, PK_DICT, 2);
    case 'a':
        return fill_one(pk, PK_LIST, 1);
    case 'u':
        return fill_from_mark(pk, PK_DICT);
    case 'e':
        return fill_from_mark(pk, PK_LIST);
    case 'c':
        return op_global(pk);
    case 'R':
        return op_reduce(pk);
    case 'Q':
        return op_persid(pk);
    default:
        return refuse_op(pk, op);
    }
}

enum ms_rc probe__pickle_run(struct probe__pickle *pk, const char *p, size_t n, size_t *at,
                             struct probe__pk_value *root, struct ms_err *err)
{
    pk->p = p;
    pk->at = *at;
    pk->end = n;
    pk->err = err;
    pk->depth = pk->nodes = pk->cells = 0;
    for (uint32_t i = 0; i < MAX_MEMO; i++)
        pk->memo[i].kind = PK_MARK;
    for (;;) {
        pk->op = pk->at;
        const char *op = take(pk, 1);
        if (op == NULL)
            return bad(pk, "no end");
        if (*op == '.')
            break;
        MS_TRY(run_op(pk, (unsigned char)*op));
    }
    if (pk->depth != 1 || pk->stack[0].kind == PK_MARK)
        return bad(pk, "more or less than one object");
    *root = pk->stack[0];
    *at = pk->at;
    return MS_OK;
}

/* ---- reading the result --------------------------------------------------- */

uint32_t probe__pk_len(const struct probe__pickle *pk, struct probe__pk_value v)
{
    switch (v.kind) {
    case PK_TUPLE:
    case PK_LIST:
    case PK_DICT:
    case PK_CALL:
    case PK_PERSID:
        return pk->node[v.node].n;
    default:
        return 0;
    }
}

struct probe__pk_value probe__pk_item(const struct probe__pickle *pk, struct probe__pk_value v,
                                      uint32_t i)
{
    if (i >= probe__pk_len(pk, v))
        return (struct probe__pk_value){.kind = PK_NONE};
    uint32_t c = pk->node[v.node].first;
    while (i-- > 0)
        c = pk->cell[c].next;
    return pk->cell[c].value;
}
