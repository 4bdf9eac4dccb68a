/* SPDX-License-Identifier: MIT
 *
 * recompute_recorded: results, bounds of errors and gradients of each call of tests/data/recompute/calls.txt,
 * in float32, bfloat16 and float64, as they are on record. suite_judge compares such results with PyTorch's;
 * the record shows what changes without it.
 */
#include "compare/recompute/operator_call.h"
#include "tests/support/recorded.h"

#include <ctype.h>
#include <math.h>

enum { LIMIT = 1 << 26, ARGS = 16, LEAVES = 32 };

static uint64_t state;

struct call {
    struct tape tape;
    struct rec_call c;
    struct rec_value args[ARGS], named[ARGS];
    tape_id leaves[LEAVES];
    size_t nleaves;
};

/* ---- reading a line --------------------------------------------------------- */

/* Reads "2x3" to the first other character. */
static struct tape_shape read_shape(const char **p)
{
    struct tape_shape s = {0};
    while (isdigit((unsigned char)**p)) {
        s.dim[s.ndim++] = strtoul(*p, (char **)(uintptr_t)p, 10);
        *p += **p == 'x';
    }
    return s;
}

/* Quarters, so that some are equal. */
static double drawn(char kind, unsigned most)
{
    switch (kind) {
    case 'n':
        if (recorded_below(&state, 4) == 0)
            return NAN;
        return (double)recorded_below(&state, 3) - 1;
    case 'f':
        return ((double)recorded_below(&state, 17) - 8) / 4;
    case 'p':
        return ((double)recorded_below(&state, 7) + 1) / 8;
    case 's':
        return recorded_below(&state, 2) != 0 ? 1 : -1;
    default:
        return (double)recorded_below(&state, most);
    }
}

static void read_tensor(struct call *k, const char **p, struct rec_value *v)
{
    const char kind = *(*p)++;
    const struct tape_shape s = read_shape(p);
    unsigned most = 2;
    if (**p == ':')
        most = (unsigned)strtoul(*p + 1, (char **)(uintptr_t)p, 10);
    v->kind = REC_TENSOR;
    v->node = tape_leaf(&k->tape, &s);
    v->dtype = kind == 'i' ? MS_DT_I64 : kind == 'b' ? MS_DT_BOOL : MS_DT_F32;
    ck_assert_uint_ne(v->node, TAPE_NONE);
    for (size_t i = 0; i < tape_at(&k->tape, v->node)->n; i++)
        tape_at(&k->tape, v->node)->v[i] = drawn(kind, most);
    if (kind == 'f' || kind == 'p' || kind == 'n')
        k->leaves[k->nleaves++] = v->node;
}

static bool takes(const char **p, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*p, word, n) != 0 || isalnum((unsigned char)(*p)[n]))
        return false;
    *p += n;
    return true;
}

static void read_value(struct call *k, const char **p, struct rec_value *v);

static void read_items(struct call *k, const char **p, struct rec_value *v)
{
    v->kind = REC_LIST;
    v->items = ms_arena_calloc(k->tape.arena, ARGS, sizeof *v->items);
    for (++*p; **p != ']'; *p += **p == ',')
        read_value(k, p, &v->items[v->n++]);
    ++*p;
}

static void read_value(struct call *k, const char **p, struct rec_value *v)
{
    const struct ms_str name = v->name;
    *v = (struct rec_value){.name = name};
    if (takes(p, "none"))
        return;
    if (takes(p, "true") || takes(p, "false")) {
        v->kind = REC_BOOL;
        v->number = (*p)[-2] == 'u';
    } else if (takes(p, "inf")) {
        v->kind = REC_NUMBER;
        v->number = INFINITY;
    } else if (**p == '"') {
        v->kind = REC_TEXT;
        v->text = (struct ms_str){*p + 1, (uint32_t)strcspn(*p + 1, " \n")};
        *p = v->text.p + v->text.n;
    } else if (**p == '[') {
        read_items(k, p, v);
    } else if (isalpha((unsigned char)**p)) {
        read_tensor(k, p, v);
    } else {
        const char *from = *p;
        v->kind = REC_NUMBER;
        v->number = strtod(from, (char **)(uintptr_t)p);
        v->is_int = memchr(from, '.', (size_t)(*p - from)) == NULL;
    }
}

static void read_result(struct call *k, const char **p)
{
    k->c.result = **p == 'b' ? MS_DT_BOOL : **p == 'i' ? MS_DT_I64 : k->c.result;
    k->c.result_shape = read_shape(p);
    *p += strcspn(*p, "\n");
}

static void read_argument(struct call *k, const char **p)
{
    const size_t name = strspn(*p, "abcdefghijklmnopqrstuvwxyz_");
    struct rec_value *v;
    if (name != 0 && (*p)[name] == '=') {
        v = &k->named[k->c.nnamed++];
        v->name = (struct ms_str){*p, (uint32_t)name};
        *p += name + 1;
    } else {
        v = &k->args[k->c.nargs++];
        v->name = MS_STR_NONE;
    }
    read_value(k, p, v);
}

static void read_call(struct call *k, const char *line)
{
    const char *p = line;
    k->c.is_primitive = strncmp(p, "prim.", 5) == 0;
    k->c.is_mindspore = k->c.is_primitive || strncmp(p, "ms.", 3) == 0;
    p += k->c.is_primitive ? 5 : k->c.is_mindspore ? 3 : 0;
    k->c.op = (struct ms_str){p, (uint32_t)strcspn(p, " \n")};
    for (p += k->c.op.n; *p == ' ';) {
        p++;
        if (strncmp(p, "-> ", 3) == 0) {
            p += 3;
            read_result(k, &p);
        } else {
            read_argument(k, &p);
        }
    }
    ck_assert_msg(*p == '\n', "%.60s: not understood from '%.20s'", line, p);
}

/* ---- the answer --------------------------------------------------------------- */

/* Six digits: the last ones are those of the library of mathematics. */
static void put_node(struct ms_buf *b, const struct tape *t, const char *what, tape_id id)
{
    ms_buf_printf(b, " %s", what);
    if (id == TAPE_NONE) {
        ms_buf_puts(b, " none");
        return;
    }
    const struct tape_node *n = tape_at(t, id);
    for (unsigned d = 0; d < n->shape.ndim; d++)
        ms_buf_printf(b, "%c%u", d == 0 ? ' ' : 'x', (unsigned)n->shape.dim[d]);
    for (size_t i = 0; i < n->n; i++)
        ms_buf_printf(b, isnan(n->v[i]) ? " nan" : " %.6g", n->v[i] + 0.0);
    for (size_t i = 0; n->e != NULL && i < n->n; i++)
        ms_buf_printf(b, isnan(n->e[i]) ? "%snan" : "%s%.4g", i == 0 ? " +-" : " ", n->e[i]);
}

static void put_gradients(struct ms_buf *b, struct call *k)
{
    tape_id seed[REC_OUTPUTS], out[REC_OUTPUTS], gradient[LEAVES];
    size_t n = 0;
    for (size_t i = 0; i < k->c.nout; i++) {
        if (k->c.out[i] == TAPE_NONE)
            continue;
        const struct tape_shape s = tape_at(&k->tape, k->c.out[i])->shape;
        seed[n] = tape_leaf(&k->tape, &s);
        ck_assert_uint_ne(seed[n], TAPE_NONE);
        for (size_t j = 0; j < tape_at(&k->tape, seed[n])->n; j++)
            tape_at(&k->tape, seed[n])->v[j] = drawn('p', 0) + 0.125 * (double)(j % 3);
        out[n++] = k->c.out[i];
    }
    tape_gradients(&k->tape, out, seed, n, k->leaves, k->nleaves, gradient);
    for (size_t i = 0; i < k->nleaves; i++)
        put_node(b, &k->tape, "gradient", tape_failed(&k->tape) ? TAPE_NONE : gradient[i]);
}

static void put_call(struct ms_buf *b, const char *line, enum ms_dtype type)
{
    static struct call k;
    struct ms_err err = {0};
    state = 1;
    k = (struct call){.c = {.result = type}};
    ck_ok(tape_new(&k.tape, type, LIMIT, &err), err);
    k.c.tape = &k.tape;
    k.c.args = k.args;
    k.c.named = k.named;
    read_call(&k, line);
    if (rec_compute(&k.c, &err) == MS_OK) {
        for (size_t i = 0; i < k.c.nout; i++)
            put_node(b, &k.tape, "result", k.c.out[i]);
        put_gradients(b, &k);
    } else {
        ms_buf_printf(b, " %s", err.msg);
    }
    if (k.c.assumed != NULL)
        ms_buf_printf(b, " assumed %s", k.c.assumed);
    tape_free(&k.tape);
}

static void record_call(struct ms_buf *b, const char *line)
{
    static const enum ms_dtype types[] = {MS_DT_F32, MS_DT_BF16, MS_DT_F64};
    const int n = (int)strcspn(line, "\n");
    ms_buf_printf(b, "%.*s:", n, line);
    for (int i = 0; i < 3; i++) {
        struct ms_buf answer = {.max = 1 << 20};
        put_call(&answer, line, types[i]);
        if (recorded_shows)
            printf("%.*s [%d]:%s\n", n, line, i, ms_buf_z(&answer));
        ms_buf_printf(b, " %08x", ms_crc32(0, ms_buf_z(&answer), answer.n));
        ms_buf_free(&answer);
    }
    ms_buf_putc(b, '\n');
}

START_TEST(calls_give_what_is_on_record)
{
    struct ms_file f;
    struct ms_err err = {0};
    struct ms_buf b = {.max = 1 << 20}, text = {.max = 1 << 20};
    ck_ok(ms_file_map(&f, "tests/data/recompute/calls.txt", SIZE_MAX, &err), err);
    ms_buf_put(&text, f.p, f.n);
    for (const char *line = ms_buf_z(&text); *line != '\0'; line += strcspn(line, "\n") + 1) {
        if (*line != '#')
            record_call(&b, line);
    }
    ms_file_unmap(&f);
    ms_buf_free(&text);
    recorded_check(&b, "recompute");
}
END_TEST

RECORDED_MAIN("recompute_recorded", calls_give_what_is_on_record)
