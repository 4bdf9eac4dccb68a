/* SPDX-License-Identifier: MIT
 *
 * fuzz recompute: bytes as a call of any operator with any arguments, computed and differentiated.
 * The call is refused, or every result has as many elements as its shape says.
 */
#include "compare/recompute/operator_call.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *p;
    size_t n;
};

enum { LIMIT = 1 << 25, ARGS = 9, LEAVES = 32 };

static unsigned next(struct bytes *b)
{
    if (b->n == 0)
        return 0;
    b->n--;
    return *b->p++;
}

static double number(struct bytes *b)
{
    static const double odd[] = {0,    1,    -1,    2,    0.5,       -100,       1e300,     -1e300,
                                 1e-9, 1e18, -1e18, 1e10, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, 3};
    const unsigned byte = next(b);
    return byte & 1 ? odd[byte >> 4] : (double)(int8_t)byte / 2;
}

static struct tape_shape shape_of(struct bytes *b)
{
    struct tape_shape s = {.ndim = next(b) % 5};
    for (unsigned i = 0; i < s.ndim; i++)
        s.dim[i] = next(b) % 5;
    return s;
}

struct leaves {
    tape_id list[LEAVES];
    size_t n;
};

static void tensor(struct bytes *b, struct tape *t, struct rec_value *v, struct leaves *l)
{
    const struct tape_shape s = shape_of(b);
    v->node = tape_leaf(t, &s);
    v->dtype = next(b) & 1 ? MS_DT_F32 : MS_DT_I64;
    if (v->node == TAPE_NONE)
        return;
    v->kind = REC_TENSOR;
    for (size_t i = 0; i < tape_at(t, v->node)->n; i++)
        tape_at(t, v->node)->v[i] = number(b);
    if (l->n < LEAVES)
        l->list[l->n++] = v->node;
}

static void value(struct bytes *b, struct tape *t, struct rec_value *v, struct leaves *l,
                  unsigned depth)
{
    static const char *const words[] = {"mean", "sum", "none",      "same",
                                        "tanh", "BSH", "ij,jk->ik", ""};
    *v = (struct rec_value){.kind = REC_NONE};
    switch (next(b) % (depth < 2 ? 7 : 5)) {
    case 0:
        break;
    case 1:
    case 2:
        tensor(b, t, v, l);
        break;
    case 3:
        v->kind = next(b) & 1 ? REC_NUMBER : REC_BOOL;
        v->number = number(b);
        break;
    case 4:
        v->kind = REC_TEXT;
        v->text = ms_str_of(words[next(b) % 8]);
        break;
    default:
        v->n = next(b) % 5;
        v->items = ms_arena_calloc(t->arena, v->n + 1, sizeof *v->items);
        v->kind = v->items != NULL ? REC_LIST : REC_NONE;
        for (size_t i = 0; v->items != NULL && i < v->n; i++)
            value(b, t, &v->items[i], l, depth + 1);
    }
}

static void check(const struct rec_call *c)
{
    for (size_t i = 0; i < c->nout; i++)
        if (c->out[i] != TAPE_NONE) {
            const struct tape_node *n = tape_at(c->tape, c->out[i]);
            if (n->n != tape_shape_count(&n->shape) || (n->n != 0 && n->v == NULL))
                abort();
        }
}

static void differentiate(struct rec_call *c, const struct leaves *l)
{
    tape_id out[LEAVES];
    if (c->nout == 0 || c->out[0] == TAPE_NONE)
        return;
    const struct tape_shape s = tape_at(c->tape, c->out[0])->shape;
    const tape_id seed = tape_leaf(c->tape, &s);
    if (seed == TAPE_NONE)
        return;
    for (size_t i = 0; i < tape_at(c->tape, seed)->n; i++)
        tape_at(c->tape, seed)->v[i] = 1;
    tape_gradients(c->tape, &c->out[0], &seed, 1, l->list, l->n, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"dim",    "axis",    "keepdim", "reduction",
                                        "weight", "padding", "stride",  "normalized_shape"};
    struct bytes b = {data, size};
    struct tape t;
    struct leaves l = {.n = 0};
    struct rec_value args[ARGS], named[2];
    size_t n = 0;
    while (rec_operator_name(n) != NULL)
        n++;
    if (tape_new(&t, MS_DT_F32, LIMIT, NULL) != MS_OK)
        return 0;
    const size_t op = (next(&b) << 8 | next(&b)) % n;
    struct rec_call c = {.tape = &t,
                         .op = ms_str_of(rec_operator_name(op)),
                         .args = args,
                         .named = named,
                         .nargs = next(&b) % (ARGS + 1),
                         .nnamed = next(&b) % 3,
                         .is_mindspore = next(&b) & 1,
                         .result = MS_DT_F32};
    c.is_primitive = c.is_mindspore;
    c.result_shape = shape_of(&b);
    for (size_t i = 0; i < c.nargs; i++)
        value(&b, &t, &args[i], &l, 0);
    for (size_t i = 0; i < c.nnamed; i++) {
        const unsigned name = next(&b) % 8;
        value(&b, &t, &named[i], &l, 0);
        named[i].name = ms_str_of(names[name]);
    }
    if (rec_compute(&c, NULL) == MS_OK) {
        check(&c);
        differentiate(&c, &l);
    }
    tape_free(&t);
    return 0;
}
