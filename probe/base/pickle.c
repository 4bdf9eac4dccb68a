/* SPDX-License-Identifier: MIT
 *
 * pickle: a stack machine for the subset of Python's pickle that plain values and tensors use.
 *
 * The machine executes nothing. GLOBAL looks up a name in the caller's list and pushes its number;
 * REDUCE pushes a value that records the call. Values point at each other in the arena, so a list
 * may contain itself; that is harmless, because there is no recursion.
 */
#include "probe/base/pickle.h"

#include "probe/base/assert.h"
#include "probe/base/num.h"
#include "probe/base/vec.h"

#include <endian.h>
#include <string.h>

/* ---- plain values ------------------------------------------------------------------- */

static bool has_items(enum ms_plain_kind kind)
{
    return kind >= MS_PLAIN_TUPLE && kind <= MS_PLAIN_OUTSIDE;
}

struct ms_plain *ms_plain_new(struct ms_arena *a, enum ms_plain_kind kind)
{
    struct ms_plain *v = ms_arena_calloc(a, 1, sizeof *v);
    if (v != NULL)
        v->kind = kind;
    return v;
}

bool ms_plain_add(struct ms_arena *a, struct ms_plain *to, struct ms_plain *item)
{
    ms_assert(has_items(to->kind) && to->n <= to->cap);
    if (to->n == to->cap) {
        const uint32_t cap = to->cap != 0 ? 2 * to->cap : 4;
        struct ms_plain **more =
            cap > to->cap ? ms_arena_calloc(a, cap, sizeof(struct ms_plain *)) : NULL;
        if (more == NULL)
            return false;
        if (to->n != 0)
            memcpy(more, to->item, to->n * sizeof(struct ms_plain *));
        to->item = more;
        to->cap = cap;
    }
    to->item[to->n++] = item;
    return true;
}

uint32_t ms_plain_len(const struct ms_plain *v)
{
    return v != NULL && has_items(v->kind) ? v->n : 0;
}

const struct ms_plain *ms_plain_item(const struct ms_plain *v, uint32_t i)
{
    static const struct ms_plain none;
    return i < ms_plain_len(v) ? v->item[i] : &none;
}

const struct ms_plain *ms_plain_get(const struct ms_plain *v, const char *key)
{
    for (uint32_t i = 0; v != NULL && v->kind == MS_PLAIN_DICT && i + 1 < v->n; i += 2) {
        if (v->item[i]->kind == MS_PLAIN_TEXT && ms_str_is(v->item[i]->s, key))
            return v->item[i + 1];
    }
    return NULL;
}

int64_t ms_plain_int(const struct ms_plain *v, int64_t other)
{
    return v != NULL && (v->kind == MS_PLAIN_INT || v->kind == MS_PLAIN_BOOL) ? v->i : other;
}

double ms_plain_real(const struct ms_plain *v, double other)
{
    if (v != NULL && v->kind == MS_PLAIN_INT)
        return (double)v->i;
    return v != NULL && v->kind == MS_PLAIN_REAL ? v->f : other;
}

struct ms_str ms_plain_text(const struct ms_plain *v)
{
    return v != NULL && v->kind == MS_PLAIN_TEXT ? v->s : MS_STR("");
}

/* ---- reading ------------------------------------------------------------------------ */

enum { MAX_NAME = 200 };

struct machine {
    const char *p;
    size_t begin, at, end;
    size_t op; /* where the current operation began */
    const struct ms_pickle_rules *rules;
    struct ms_arena *a;
    struct ms_err *err;
    uint32_t objects, items;               /* containers and their items so far */
    MS_VEC(struct ms_plain *) stack, memo; /* NULL in memo: an unused entry */
};

/* ---- failures ------------------------------------------------------------- */

static enum ms_rc report_bad(struct machine *m, const char *what)
{
    return ms_fail_at(m->err, MS_E_FORMAT, 0, (int64_t)m->op, "%s in the pickle", what);
}

static enum ms_rc report_full(struct machine *m, const char *what)
{
    return ms_fail_at(m->err, MS_E_LIMIT, 0, (int64_t)m->op, "more %s than %s's pickle has", what,
                      m->rules->of);
}

/* ---- input ---------------------------------------------------------------- */

/* Returns the next n bytes, or NULL at the end. */
static const char *next_bytes(struct machine *m, uint64_t n)
{
    if (n > m->end - m->at)
        return NULL;
    m->at += (size_t)n;
    return m->p + m->at - n;
}

/* Reads the text up to the end of the line and moves behind that. */
static bool next_line(struct machine *m, struct ms_str *line)
{
    const char *from = m->p + m->at;
    const size_t left = m->end - m->at, n = left < MAX_NAME ? left : MAX_NAME;
    const char *to = n != 0 ? memchr(from, '\n', n) : NULL;
    if (to == NULL)
        return false;
    *line = (struct ms_str){from, (uint32_t)(to - from)};
    m->at += line->n + 1;
    return true;
}

/* ---- stack and containers ------------------------------------------------- */

static enum ms_rc push(struct machine *m, struct ms_plain *v)
{
    if (m->stack.n >= m->rules->open)
        return report_full(m, "open values");
    struct ms_plain **slot = ms_vec_push(&m->stack);
    if (slot == NULL)
        return ms_no_memory(m->err);
    *slot = v;
    return MS_OK;
}

static enum ms_rc push_atom(struct machine *m, struct ms_plain atom)
{
    struct ms_plain *v = ms_plain_new(m->a, atom.kind);
    if (v == NULL)
        return ms_arena_fail(m->a, m->err);
    *v = atom;
    return push(m, v);
}

static enum ms_rc push_int(struct machine *m, int64_t i)
{
    return push_atom(m, (struct ms_plain){.kind = MS_PLAIN_INT, .i = i});
}

/* Returns the value k places below the top; NULL when the stack has fewer values above its last
 * mark. */
static struct ms_plain *peek_stack(const struct machine *m, size_t k)
{
    if (k >= m->stack.n)
        return NULL;
    for (size_t i = 0; i <= k; i++) {
        if (m->stack.p[m->stack.n - 1 - i]->kind == MS_PLAIN_MARK)
            return NULL;
    }
    return m->stack.p[m->stack.n - 1 - k];
}

/* Counts the values above the last mark. */
static enum ms_rc count_above_mark(struct machine *m, size_t *n)
{
    for (*n = 0; *n < m->stack.n; (*n)++) {
        if (m->stack.p[m->stack.n - 1 - *n]->kind == MS_PLAIN_MARK)
            return MS_OK;
    }
    return report_bad(m, "a missing mark");
}

static enum ms_rc new_container(struct machine *m, enum ms_plain_kind kind, struct ms_plain **out)
{
    if (m->objects == m->rules->objects)
        return report_full(m, "objects");
    m->objects++;
    *out = ms_plain_new(m->a, kind);
    return *out != NULL ? MS_OK : ms_arena_fail(m->a, m->err);
}

/* Moves the top n values, the deepest first, to the end of a container. */
static enum ms_rc move_top(struct machine *m, struct ms_plain *to, size_t n)
{
    ms_assert(n <= m->stack.n);
    if (n > m->rules->items - m->items)
        return report_full(m, "values");
    m->items += (uint32_t)n;
    for (size_t i = n; i-- > 0;) {
        if (!ms_plain_add(m->a, to, m->stack.p[m->stack.n - 1 - i]))
            return ms_arena_fail(m->a, m->err);
    }
    m->stack.n -= n;
    return MS_OK;
}

/* Replaces the top n values, and the mark below them if `marked`, by a container of these
 * values. */
static enum ms_rc push_container(struct machine *m, enum ms_plain_kind kind, size_t n, bool marked)
{
    struct ms_plain *v;
    MS_TRY(new_container(m, kind, &v));
    MS_TRY(move_top(m, v, n));
    m->stack.n -= marked ? 1 : 0;
    return push(m, v);
}

static enum ms_rc make_container(struct machine *m, enum ms_plain_kind kind, size_t n)
{
    if (n != 0 && peek_stack(m, n - 1) == NULL)
        return report_bad(m, "too few values");
    return push_container(m, kind, n, false);
}

static enum ms_rc make_from_mark(struct machine *m, enum ms_plain_kind kind)
{
    size_t n;
    MS_TRY(count_above_mark(m, &n));
    return push_container(m, kind, n, true);
}

/* Finds the container to fill: *to itself, or the last one of a kind in an object. */
static enum ms_rc container_of(struct machine *m, struct ms_plain **to, enum ms_plain_kind kind)
{
    struct ms_plain *object = *to;
    if (object->kind == kind)
        return MS_OK;
    if (!m->rules->keeps_objects || object->kind != MS_PLAIN_CALL)
        return report_bad(m, kind == MS_PLAIN_DICT ? "entries for no dictionary"
                                                   : "items for no list");
    *to = object->item[object->n - 1];
    if (object->n > 2 && (*to)->kind == kind)
        return MS_OK;
    MS_TRY(new_container(m, kind, to));
    return ms_plain_add(m->a, object, *to) ? MS_OK : ms_arena_fail(m->a, m->err);
}

/* Moves the top n values into the container below them; `marked` tells that a mark is between. */
static enum ms_rc fill(struct machine *m, enum ms_plain_kind kind, size_t n, bool marked)
{
    const size_t below = n + (marked ? 1 : 0);
    if (m->stack.n <= below)
        return report_bad(m, kind == MS_PLAIN_DICT ? "entries for no dictionary"
                                                   : "items for no list");
    struct ms_plain *to = m->stack.p[m->stack.n - 1 - below];
    MS_TRY(container_of(m, &to, kind));
    if (kind == MS_PLAIN_DICT && n % 2 != 0)
        return report_bad(m, "a key without a value");
    MS_TRY(move_top(m, to, n));
    m->stack.n -= marked ? 1 : 0;
    return MS_OK;
}

static enum ms_rc fill_one(struct machine *m, enum ms_plain_kind kind, size_t n)
{
    return peek_stack(m, n) != NULL ? fill(m, kind, n, false) : report_bad(m, "too few values");
}

static enum ms_rc fill_from_mark(struct machine *m, enum ms_plain_kind kind)
{
    size_t n;
    MS_TRY(count_above_mark(m, &n));
    return fill(m, kind, n, true);
}

static enum ms_rc drop_top(struct machine *m)
{
    if (m->stack.n == 0)
        return report_bad(m, "too few values");
    m->stack.n--;
    return MS_OK;
}

/* ---- memo ----------------------------------------------------------------- */

static enum ms_rc remember(struct machine *m, size_t i)
{
    if (peek_stack(m, 0) == NULL)
        return report_bad(m, "nothing to remember");
    /* Python numbers memo entries consecutively, so an index can be no larger than the bytes
     * read. */
    if (i >= m->rules->remembered || i > m->end - m->begin)
        return report_full(m, "remembered values");
    while (m->memo.n <= i) {
        struct ms_plain **slot = ms_vec_push(&m->memo);
        if (slot == NULL)
            return ms_no_memory(m->err);
        *slot = NULL;
    }
    m->memo.p[i] = peek_stack(m, 0);
    return MS_OK;
}

static enum ms_rc recall_memo(struct machine *m, size_t i)
{
    if (i >= m->memo.n || m->memo.p[i] == NULL)
        return report_bad(m, "a value that was never remembered");
    return push(m, m->memo.p[i]);
}

/* ---- names and calls ------------------------------------------------------ */

static enum ms_rc push_class(struct machine *m, struct ms_str module, struct ms_str name)
{
    const struct ms_str whole = {ms_arena_text(m->a, (size_t)module.n + name.n + 1),
                                 module.n + name.n + 1};
    if (whole.p == NULL)
        return ms_arena_fail(m->a, m->err);
    char *to = (char *)(uintptr_t)whole.p;
    if (module.n != 0)
        memcpy(to, module.p, module.n);
    to[module.n] = '.';
    if (name.n != 0)
        memcpy(to + module.n + 1, name.p, name.n);
    return push_atom(m, (struct ms_plain){.kind = MS_PLAIN_CLASS, .s = whole});
}

static enum ms_rc push_name(struct machine *m, struct ms_str module, struct ms_str name)
{
    const uint32_t number = m->rules->name_number(module, name);
    if (number != MS_PICKLE_REFUSED)
        return push_atom(m, (struct ms_plain){.kind = MS_PLAIN_NAME, .i = number});
    if (m->rules->keeps_objects)
        return push_class(m, module, name);
    char shown[2][MS_STR_SHOWN];
    return ms_fail_at(m->err, MS_E_UNSUPPORTED, 0, (int64_t)m->op,
                      "unsupported object %s.%s in the pickle (nothing was executed)",
                      ms_str_shown(shown[0], module), ms_str_shown(shown[1], name));
}

static enum ms_rc name_of_lines(struct machine *m)
{
    struct ms_str module, name;
    if (!next_line(m, &module) || !next_line(m, &name))
        return report_bad(m, "a name without end");
    return push_name(m, module, name);
}

static enum ms_rc name_of_stack(struct machine *m)
{
    const struct ms_plain *name = peek_stack(m, 0), *module = peek_stack(m, 1);
    if (module == NULL || module->kind != MS_PLAIN_TEXT || name->kind != MS_PLAIN_TEXT)
        return report_bad(m, "a name that is no text");
    m->stack.n -= 2;
    return push_name(m, module->s, name->s);
}

static enum ms_rc call_global(struct machine *m)
{
    const struct ms_plain *args = peek_stack(m, 0), *callee = peek_stack(m, 1);
    if (m->rules->keeps_objects && callee != NULL && callee->kind != MS_PLAIN_NAME)
        return push_container(m, MS_PLAIN_CALL, 2, false);
    if (callee == NULL || callee->kind != MS_PLAIN_NAME || args->kind != MS_PLAIN_TUPLE)
        return report_bad(m, "a call of nothing callable");
    if (callee->i >= MS_PICKLE_OWN)
        return push_container(m, MS_PLAIN_CALL, 2, false);
    m->stack.n -= 2;
    if (callee->i == MS_PICKLE_NEW_DICT)
        return args->n == 0 ? push_container(m, MS_PLAIN_DICT, 0, false)
                            : report_bad(m, "an OrderedDict with arguments");
    return args->n != 0 ? push(m, args->item[0]) : report_bad(m, "a call without arguments");
}

/* Makes an object of a class, an argument tuple and, `keyed`, a dictionary of arguments. */
static enum ms_rc make_object(struct machine *m, bool keyed)
{
    if (peek_stack(m, keyed ? 2 : 1) == NULL)
        return report_bad(m, "an object of nothing");
    return push_container(m, MS_PLAIN_CALL, keyed ? 3 : 2, false);
}

/* Gives the object below the top its state. The state of a list or a dictionary is left out: it is
 * no item of it. */
static enum ms_rc give_state(struct machine *m)
{
    struct ms_plain *state = peek_stack(m, 0), *object = peek_stack(m, 1);
    if (object == NULL)
        return report_bad(m, "a state of nothing");
    m->stack.n--;
    if (object->kind != MS_PLAIN_CALL)
        return MS_OK;
    if (m->items == m->rules->items)
        return report_full(m, "values");
    m->items++;
    return ms_plain_add(m->a, object, state) ? MS_OK : ms_arena_fail(m->a, m->err);
}

static enum ms_rc drop_to_mark(struct machine *m)
{
    size_t n;
    MS_TRY(count_above_mark(m, &n));
    m->stack.n -= n + 1;
    return MS_OK;
}

static enum ms_rc push_again(struct machine *m)
{
    struct ms_plain *top = peek_stack(m, 0);
    return top != NULL ? push(m, top) : report_bad(m, "too few values");
}

/* ---- atoms ---------------------------------------------------------------- */

static enum ms_rc push_text(struct machine *m, uint64_t n)
{
    const char *text = n <= UINT32_MAX ? next_bytes(m, n) : NULL;
    if (text == NULL)
        return report_bad(m, "a text that ends behind the end");
    const struct ms_str s = {text, (uint32_t)n};
    return push_atom(m, (struct ms_plain){.kind = MS_PLAIN_TEXT, .s = s});
}

/* Reads a little-endian two's complement integer of n bytes. */
static enum ms_rc push_long(struct machine *m, uint64_t n)
{
    const char *p = next_bytes(m, n);
    if (p == NULL)
        return report_bad(m, "a number that ends behind the end");
    if (n > m->rules->digits)
        return report_full(m, "digits");
    if (n > sizeof(uint64_t))
        return push_atom(m, (struct ms_plain){.kind = MS_PLAIN_NONE});
    uint64_t bits = n != 0 && (p[n - 1] & 0x80) != 0 ? UINT64_MAX : 0;
    memcpy(&bits, p, (size_t)n);
    return push_int(m, (int64_t)bits);
}

/* ---- operations ----------------------------------------------------------- */

/* Returns the size of the number that follows an operation; 0 when none follows. */
static unsigned operand_bytes(unsigned char op)
{
    switch (op) {
    case 0x80: /* PROTO */
    case 'K':
    case 'q':
    case 'h':
    case 'U':
    case 'C':
    case 0x8a:
    case 0x8c:
        return 1;
    case 'M':
        return 2;
    case 'J':
    case 'r':
    case 'j':
    case 'X':
    case 'T':
    case 'B':
    case 0x8b:
        return 4;
    case 'G':
    case 0x8d:
    case 0x8e:
    case 0x95: /* FRAME */
    case 0x96:
        return 8;
    default:
        return 0;
    }
}

static enum ms_rc push_real(struct machine *m, uint64_t big_endian)
{
    struct ms_plain v = {.kind = MS_PLAIN_REAL};
    const uint64_t bits = __builtin_bswap64(big_endian);
    memcpy(&v.f, &bits, sizeof v.f);
    return push_atom(m, v);
}

static enum ms_rc do_with_operand(struct machine *m, unsigned char op, unsigned bytes)
{
    const char *p = next_bytes(m, bytes);
    uint64_t v = 0;
    if (p == NULL)
        return report_bad(m, "an operation cut short");
    memcpy(&v, p, bytes);
    switch (op) {
    case 0x80:
        if (v >= 2 && v <= m->rules->protocol)
            return MS_OK;
        return report_bad(m, m->rules->protocol == 2 ? "a protocol other than 2"
                                                     : "an unknown protocol");
    case 0x95:
        return MS_OK; /* the bytes of a frame are read in place */
    case 'K':
    case 'M':
        return push_int(m, (int64_t)v);
    case 'J':
        return push_int(m, (int32_t)v);
    case 'G':
        return push_real(m, v);
    case 'q':
    case 'r':
        return remember(m, v);
    case 'h':
    case 'j':
        return recall_memo(m, v);
    case 0x8a:
    case 0x8b:
        return push_long(m, v);
    default: /* X U T B C and their short and long forms */
        return push_text(m, v);
    }
}

static enum ms_rc do_without_operand(struct machine *m, unsigned char op)
{
    switch (op) {
    case '(':
        return push_atom(m, (struct ms_plain){.kind = MS_PLAIN_MARK});
    case 'N':
        return push_atom(m, (struct ms_plain){.kind = MS_PLAIN_NONE});
    case 0x88:
    case 0x89:
        return push_atom(m, (struct ms_plain){.kind = MS_PLAIN_BOOL, .i = op == 0x88});
    case ')':
        return make_container(m, MS_PLAIN_TUPLE, 0);
    case ']':
        return make_container(m, MS_PLAIN_LIST, 0);
    case '}':
        return make_container(m, MS_PLAIN_DICT, 0);
    case 0x85:
    case 0x86:
    case 0x87:
        return make_container(m, MS_PLAIN_TUPLE, op - 0x84U);
    case 't':
        return make_from_mark(m, MS_PLAIN_TUPLE);
    case 'l':
        return make_from_mark(m, MS_PLAIN_LIST);
    case 's':
        return fill_one(m, MS_PLAIN_DICT, 2);
    case 'a':
        return fill_one(m, MS_PLAIN_LIST, 1);
    case 'u':
        return fill_from_mark(m, MS_PLAIN_DICT);
    case 'e':
        return fill_from_mark(m, MS_PLAIN_LIST);
    case 'c':
        return name_of_lines(m);
    case 0x93:
        return name_of_stack(m);
    case 'R':
        return call_global(m);
    case 'Q':
        return make_container(m, MS_PLAIN_OUTSIDE, 1);
    case 0x94:
        return remember(m, m->memo.n);
    case 0x8f: /* a set is kept as a list */
        return make_container(m, MS_PLAIN_LIST, 0);
    case 0x90:
        return fill_from_mark(m, MS_PLAIN_LIST);
    case 0x91:
        return make_from_mark(m, MS_PLAIN_LIST);
    case 0x81:
        return make_object(m, false);
    case 0x92:
        return make_object(m, true);
    case 'b':
        return give_state(m);
    case '1':
        return drop_to_mark(m);
    case '2':
        return push_again(m);
    default: /* '0' */
        ms_assert(op == '0');
        return drop_top(m);
    }
}

static enum ms_rc do_operation(struct machine *m, unsigned char op)
{
    const struct ms_str allowed = m->rules->ops;
    if (memchr(allowed.p, op, allowed.n) == NULL)
        return ms_fail_at(m->err, MS_E_UNSUPPORTED, 0, (int64_t)m->op,
                          "pickle operation 0x%02x is not one %s is written with", op,
                          m->rules->of);
    const unsigned bytes = operand_bytes(op);
    return bytes != 0 ? do_with_operand(m, op, bytes) : do_without_operand(m, op);
}

static enum ms_rc read_operations(struct machine *m)
{
    for (;;) {
        m->op = m->at;
        const char *op = next_bytes(m, 1);
        if (op == NULL)
            return report_bad(m, "no end");
        if (*op == '.')
            break;
        MS_TRY(do_operation(m, (unsigned char)*op));
    }
    return m->stack.n == 1 && peek_stack(m, 0) != NULL
               ? MS_OK
               : report_bad(m, "more or less than one object");
}

enum ms_rc ms_pickle_read(struct ms_plain **root, const char *p, size_t n, size_t *at,
                          const struct ms_pickle_rules *rules, struct ms_arena *a,
                          struct ms_err *err)
{
    struct machine m = {
        .p = p, .begin = *at, .at = *at, .end = n, .rules = rules, .a = a, .err = err};
    ms_assert(*at <= n);
    const enum ms_rc rc = read_operations(&m);
    *root = m.stack.n != 0 ? m.stack.p[0] : NULL;
    *at = m.at;
    ms_vec_free(&m.stack);
    ms_vec_free(&m.memo);
    return rc;
}

/* ---- writing ------------------------------------------------------------------------ */

void ms_pickle_begin(struct ms_out *o)
{
    ms_out_write(o, "\x80\x02", 2);
}

void ms_pickle_end(struct ms_out *o)
{
    ms_out_putc(o, '.');
}

void ms_pickle_dict(struct ms_out *o)
{
    ms_out_write(o, "}(", 2);
}

void ms_pickle_dict_end(struct ms_out *o)
{
    ms_out_putc(o, 'u');
}

void ms_pickle_list(struct ms_out *o)
{
    ms_out_write(o, "](", 2);
}

void ms_pickle_list_end(struct ms_out *o)
{
    ms_out_putc(o, 'e');
}

void ms_pickle_tuple(struct ms_out *o)
{
    ms_out_putc(o, '(');
}

void ms_pickle_tuple_end(struct ms_out *o)
{
    ms_out_putc(o, 't');
}

void ms_pickle_str(struct ms_out *o, struct ms_str s)
{
    const uint32_t n = htole32(s.n);
    ms_out_putc(o, 'X');
    ms_out_write(o, &n, sizeof n);
    for (uint32_t i = 0; i < s.n;) {
        const unsigned letter = ms_utf8_len(s.p + i, s.n - i);
        if (letter != 0)
            ms_out_write(o, s.p + i, letter);
        else
            ms_out_putc(o, '?');
        i += letter != 0 ? letter : 1;
    }
}

void ms_pickle_i64(struct ms_out *o, int64_t v)
{
    const uint32_t low = htole32((uint32_t)v);
    const uint64_t all = htole64((uint64_t)v);
    if (v == (int32_t)v) {
        ms_out_putc(o, 'J');
        ms_out_write(o, &low, sizeof low);
    } else {
        ms_out_write(o, "\x8a\x08", 2); /* a long of 8 bytes */
        ms_out_write(o, &all, sizeof all);
    }
}

void ms_pickle_f64(struct ms_out *o, double v)
{
    const uint64_t bits = htobe64(ms_bits_of_f64(v));
    ms_out_putc(o, 'G');
    ms_out_write(o, &bits, sizeof bits);
}

void ms_pickle_bool(struct ms_out *o, bool v)
{
    ms_out_putc(o, v ? '\x88' : '\x89');
}

void ms_pickle_none(struct ms_out *o)
{
    ms_out_putc(o, 'N');
}
