/* SPDX-License-Identifier: MIT
 *
 * tape: see tape.h.
 */
#include "tape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *must_alloc(size_t n)
{
    void *p = calloc(1, n != 0 ? n : 1);
    if (p == NULL) {
        fprintf(stderr, "train_mpi: out of memory\n");
        exit(1);
    }
    return p;
}

void tensor_make(struct tensor *t, int rows, int cols)
{
    t->rows = rows;
    t->cols = cols;
    t->v = must_alloc((size_t)rows * (size_t)cols * sizeof *t->v);
    t->g = must_alloc((size_t)rows * (size_t)cols * sizeof *t->g);
}

static size_t count(const struct tensor *t)
{
    return (size_t)t->rows * (size_t)t->cols;
}

/* A result of that shape: steps repeat, so the one of the step before is used again. */
static struct tensor *result(struct tape *t, int rows, int cols)
{
    struct tensor *r = &t->made[t->nmade++];
    if (r->v == NULL)
        tensor_make(r, rows, cols);
    memset(r->g, 0, count(r) * sizeof *r->g);
    return r;
}

static struct node *push(struct tape *t, enum op op, struct tensor *a, struct tensor *out)
{
    struct node *n = &t->node[t->n++];
    float *saved = n->saved; /* kept from the step before */
    *n = (struct node){.op = op, .a = a, .out = out, .saved = saved, .call = -1};
    return n;
}

void tape_reset(struct tape *t)
{
    t->n = 0;
    t->nmade = 0;
}

void tape_free(struct tape *t)
{
    for (size_t i = 0; i < sizeof t->made / sizeof *t->made; i++) {
        free(t->made[i].v);
        free(t->made[i].g);
    }
    for (size_t i = 0; i < sizeof t->node / sizeof *t->node; i++)
        free(t->node[i].saved);
}

/* ---- dumping ------------------------------------------------------------------------------ */

static const char *const names[] = {
    [OP_EMBED] = "embedding", [OP_ADD] = "add",
    [OP_LINEAR] = "linear",   [OP_NORM] = "layer_norm",
    [OP_GELU] = "gelu",       [OP_ATTEND] = "scaled_dot_product_attention",
    [OP_ROUND] = "half",      [OP_LOSS] = "cross_entropy"};

static const char *prefix_of(enum op op)
{
    return op == OP_ADD || op == OP_ROUND ? "Tensor" : "Functional";
}

/* What belongs to a batch has the shape (sequences, length, numbers). */
static struct probe_tensor_desc describe(const struct tape *t, const struct tensor *x, float *data,
                                         uint64_t shape[3])
{
    const bool is_batch = x >= t->made && x < t->made + t->nmade;
    struct probe_tensor_desc d = {.data = data, .dtype = "float32", .shape = shape};
    d.requires_grad = true;
    if (is_batch && x->rows % t->seq == 0) {
        shape[d.ndim++] = (uint64_t)(x->rows / t->seq);
        shape[d.ndim++] = (uint64_t)t->seq;
    } else if (x->rows != 1) {
        shape[d.ndim++] = (uint64_t)x->rows;
    }
    shape[d.ndim++] = (uint64_t)x->cols;
    return d;
}

typedef void put_fn(struct probe_call *, const struct probe_value *);

static void put(const struct tape *t, struct probe_call *c, put_fn *to, const struct tensor *x,
                float *data, const char *key)
{
    uint64_t shape[3];
    if (x == NULL)
        return;
    struct probe_tensor_desc d = describe(t, x, data, shape);
    to(c, &(struct probe_value){.kind = PROBE_TENSOR, .tensor = &d, .key = key});
}

/* Inputs are a matrix of tokens, targets a list of them. */
static void put_tokens(const struct tape *t, const struct node *n, struct probe_call *c)
{
    const bool is_list = n->op == OP_LOSS;
    const uint64_t rows = (uint64_t)(is_list ? n->a->rows : n->out->rows);
    const uint64_t length = (uint64_t)t->seq;
    const uint64_t shape[2] = {is_list ? rows : rows / length, length};
    const struct probe_tensor_desc d = {
        .data = n->tokens, .dtype = "int64", .shape = shape, .ndim = is_list ? 1 : 2};
    if (n->tokens != NULL)
        probe_call_input(c, &(struct probe_value){.kind = PROBE_TENSOR, .tensor = &d});
}

/* The shape over which layer norm takes its mean: the argument behind what it works on. */
static void put_normalised(const struct node *n, struct probe_call *c)
{
    if (n->op != OP_NORM)
        return;
    const struct probe_value width = {.kind = PROBE_INT, .i = n->a->cols};
    probe_call_input(c, &(struct probe_value){.kind = PROBE_LIST, .items = &width, .n = 1});
}

static void put_epsilon(const struct node *n, struct probe_call *c)
{
    if (n->op == OP_NORM)
        probe_call_input(c, &(struct probe_value){.kind = PROBE_FLOAT, .f = n->k});
}

static struct probe_call *dump_enter(struct tape *t, const struct node *n)
{
    struct probe_call *c = probe_op_enter(t->dump, prefix_of(n->op), names[n->op]);
    if (c == NULL)
        return NULL;
    if (n->a != NULL)
        put(t, c, probe_call_input, n->a, n->a->v, NULL);
    put_tokens(t, n, c);
    put_normalised(n, c);
    if (n->b != NULL)
        put(t, c, probe_call_input, n->b, n->b->v, NULL);
    if (n->w != NULL)
        put(t, c, probe_call_input, n->w, n->w->v, NULL);
    if (n->bias != NULL)
        put(t, c, probe_call_input, n->bias, n->bias->v, NULL);
    put_epsilon(n, c);
    return c;
}

static void dump_exit(struct tape *t, struct node *n, struct probe_call *c)
{
    if (c == NULL)
        return;
    n->call = probe_call_number(c);
    put(t, c, probe_call_output, n->out, n->out->v, NULL);
    probe_call_exit(c);
}

/* Gradients of a tensor add up over those who use it; a dump has what one of them adds. */
static float *gradient_before(const struct tape *t, const struct node *n)
{
    if (t->dump == NULL || n->call < 0 || n->a == NULL)
        return NULL;
    const size_t bytes = (size_t)n->a->rows * (size_t)n->a->cols * sizeof(float);
    float *before = malloc(bytes);
    return before != NULL ? memcpy(before, n->a->g, bytes) : NULL;
}

static float *added_gradient(const struct node *n, float *before)
{
    const size_t numbers = (size_t)n->a->rows * (size_t)n->a->cols;
    for (size_t i = 0; i < numbers; i++)
        before[i] = n->a->g[i] - before[i];
    return before;
}

static void dump_backward(struct tape *t, const struct node *n, float *before)
{
    if (t->dump == NULL || n->call < 0)
        return;
    struct probe_call *c =
        probe_op_enter_backward(t->dump, prefix_of(n->op), names[n->op], n->call);
    const struct tensor *in[] = {n->b, n->w, n->bias};
    if (c == NULL)
        return;
    put(t, c, probe_call_input, n->out, n->out->g, NULL);
    if (n->a != NULL)
        put(t, c, probe_call_output, n->a, before != NULL ? added_gradient(n, before) : n->a->g,
            NULL);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        if (in[i] != NULL)
            put(t, c, probe_call_output, in[i], in[i]->g, NULL);
    }
    probe_call_exit(c);
}

/* ---- operators ----------------------------------------------------------------------------- */

static void embed(struct node *n)
{
    for (int r = 0; r < n->out->rows; r++)
        memcpy(n->out->v + (size_t)r * (size_t)n->out->cols,
               n->w->v + (size_t)n->tokens[r] * (size_t)n->w->cols,
               (size_t)n->w->cols * sizeof(float));
}
static void embed_back(struct node *n)
{
    const int c = n->out->cols;
    for (int r = 0; r < n->out->rows; r++) {
        for (int i = 0; i < c; i++)
            n->w->g[n->tokens[r] * c + i] += n->out->g[r * c + i];
    }
}

static void linear(struct node *n)
{
    const int in = n->a->cols, out = n->out->cols;
    for (int r = 0; r < n->a->rows; r++) {
        const float *x = n->a->v + r * in;
        float *y = n->out->v + r * out;
        for (int o = 0; o < out; o++) {
            float sum = n->bias != NULL ? n->bias->v[o] : 0;
            for (int i = 0; i < in; i++)
                sum += x[i] * (n->how ? n->w->v[i * in + o] : n->w->v[o * in + i]);
            y[o] = sum;
        }
    }
}
static void linear_back(struct node *n)
{
    const int in = n->a->cols, out = n->out->cols;
    for (int r = 0; r < n->a->rows; r++) {
        const float *x = n->a->v + r * in, *gy = n->out->g + r * out;
        float *gx = n->a->g + r * in;
        for (int o = 0; o < out; o++) {
            if (n->bias != NULL)
                n->bias->g[o] += gy[o];
            for (int i = 0; i < in; i++) {
                const int at = n->how ? i * in + o : o * in + i;
                gx[i] += gy[o] * n->w->v[at];
                n->w->g[at] += gy[o] * x[i];
            }
        }
    }
}

/* saved: for each row its mean and one over its deviation. */
static void norm(struct node *n)
{
    const int c = n->a->cols;
    for (int r = 0; r < n->a->rows; r++) {
        const float *x = n->a->v + r * c;
        float mean = 0, var = 0;
        for (int i = 0; i < c; i++)
            mean += x[i] / (float)c;
        for (int i = 0; i < c; i++)
            var += (x[i] - mean) * (x[i] - mean) / (float)c;
        const float inv = 1 / sqrtf(var + n->k);
        n->saved[2 * r] = mean;
        n->saved[2 * r + 1] = inv;
        for (int i = 0; i < c; i++)
            n->out->v[r * c + i] = (x[i] - mean) * inv * n->w->v[i] + n->bias->v[i];
    }
}
static void norm_back(struct node *n)
{
    const int c = n->a->cols;
    for (int r = 0; r < n->a->rows; r++) {
        const float *x = n->a->v + r * c, *gy = n->out->g + r * c;
        const float mean = n->saved[2 * r], inv = n->saved[2 * r + 1];
        float sum = 0, dot = 0;
        for (int i = 0; i < c; i++) {
            const float h = (x[i] - mean) * inv;
            sum += gy[i] * n->w->v[i] / (float)c;
            dot += gy[i] * n->w->v[i] * h / (float)c;
            n->w->g[i] += gy[i] * h;
            n->bias->g[i] += gy[i];
        }
        for (int i = 0; i < c; i++)
            n->a->g[r * c + i] += inv * (gy[i] * n->w->v[i] - sum - (x[i] - mean) * inv * dot);
    }
}

/* Rows of a head: q at column 0, k at dim, v at 2 dim of the same row. */
struct head {
    int seq, dim, width, first_row, column;
};
static const float *row_of(const struct head *h, const float *p, int row, int part)
{
    return p + (h->first_row + row) * 3 * h->dim + part * h->dim + h->column;
}
static float *grad_of(const struct head *h, float *p, int row, int part)
{
    return p + (h->first_row + row) * 3 * h->dim + part * h->dim + h->column;
}

static void softmax(float *p, int n)
{
    float max = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        max = fmaxf(max, p[i]);
    for (int i = 0; i < n; i++)
        sum += p[i] = expf(p[i] - max);
    for (int i = 0; i < n; i++)
        p[i] /= sum;
}

/* p: the weights of one head, kept for the way back; what is masked has weight 0. */
static void attend_head(const struct node *n, const struct head *h, float *p)
{
    for (int i = 0; i < h->seq; i++) {
        const int seen = n->how ? i + 1 : h->seq;
        float *w = p + i * h->seq;
        memset(w, 0, (size_t)h->seq * sizeof *w);
        for (int j = 0; j < seen; j++) {
            for (int c = 0; c < h->width; c++)
                w[j] += row_of(h, n->a->v, i, 0)[c] * row_of(h, n->a->v, j, 1)[c];
            w[j] *= n->k;
        }
        softmax(w, seen);
        float *y = n->out->v + (h->first_row + i) * h->dim + h->column;
        memset(y, 0, (size_t)h->width * sizeof *y);
        for (int j = 0; j < seen; j++) {
            for (int c = 0; c < h->width; c++)
                y[c] += w[j] * row_of(h, n->a->v, j, 2)[c];
        }
    }
}
static void attend_head_back(const struct node *n, const struct head *h, const float *p)
{
    for (int i = 0; i < h->seq; i++) {
        const int seen = n->how ? i + 1 : h->seq;
        const float *w = p + i * h->seq;
        const float *gy = n->out->g + (h->first_row + i) * h->dim + h->column;
        float gw[256], dot = 0;
        for (int j = 0; j < seen; j++) {
            gw[j] = 0;
            for (int c = 0; c < h->width; c++) {
                gw[j] += gy[c] * row_of(h, n->a->v, j, 2)[c];
                grad_of(h, n->a->g, j, 2)[c] += gy[c] * w[j];
            }
            dot += gw[j] * w[j];
        }
        for (int j = 0; j < seen; j++) {
            const float gs = w[j] * (gw[j] - dot) * n->k;
            for (int c = 0; c < h->width; c++) {
                grad_of(h, n->a->g, i, 0)[c] += gs * row_of(h, n->a->v, j, 1)[c];
                grad_of(h, n->a->g, j, 1)[c] += gs * row_of(h, n->a->v, i, 0)[c];
            }
        }
    }
}
static void each_head(const struct tape *t, const struct node *n,
                      void (*fn)(const struct node *, const struct head *, float *))
{
    const int dim = n->out->cols, width = dim / t->heads, batch = n->out->rows / t->seq;
    for (int b = 0; b < batch; b++) {
        for (int k = 0; k < t->heads; k++) {
            const struct head h = {t->seq, dim, width, b * t->seq, k * width};
            fn(n, &h, n->saved + (b * t->heads + k) * t->seq * t->seq);
        }
    }
}
static void attend_back(const struct node *n, const struct head *h, float *p)
{
    attend_head_back(n, h, p);
}

static const float GELU_A = 0.7978845608F, GELU_B = 0.044715F;
static void gelu(struct node *n)
{
    for (size_t i = 0; i < count(n->a); i++) {
        const float x = n->a->v[i];
        n->out->v[i] = 0.5F * x * (1 + tanhf(GELU_A * (x + GELU_B * x * x * x)));
    }
}
static void gelu_back(struct node *n)
{
    for (size_t i = 0; i < count(n->a); i++) {
        const float x = n->a->v[i], h = tanhf(GELU_A * (x + GELU_B * x * x * x));
        const float slope = GELU_A * (1 + 3 * GELU_B * x * x) * (1 - h * h);
        n->a->g[i] += n->out->g[i] * (0.5F * (1 + h) + 0.5F * x * slope);
    }
}

/* To 11 bits of mantissa: what a cast to half precision leaves of numbers of usual size. */
static float to_half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0xFFF + (bits >> 13 & 1)) & ~(uint32_t)0x1FFF;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* saved: the probabilities. */
static void loss(struct node *n)
{
    const int c = n->a->cols;
    double sum = 0;
    for (int r = 0; r < n->a->rows; r++) {
        float *p = n->saved + r * c;
        memcpy(p, n->a->v + r * c, (size_t)c * sizeof *p);
        softmax(p, c);
        sum -= log((double)fmaxf(p[n->tokens[r]], 1e-30F));
    }
    n->out->v[0] = (float)(sum / n->a->rows);
}
static void loss_back(struct node *n)
{
    const int c = n->a->cols;
    const float scale = n->out->g[0] / (float)n->a->rows;
    for (int r = 0; r < n->a->rows; r++) {
        for (int i = 0; i < c; i++)
            n->a->g[r * c + i] += scale * (n->saved[r * c + i] - (i == n->tokens[r] ? 1 : 0));
    }
}

static void add(struct node *n)
{
    const size_t period = count(n->b); /* one sequence is added to each of the batch */
    for (size_t i = 0; i < count(n->a); i++)
        n->out->v[i] = n->a->v[i] + n->k * n->b->v[i % period];
}
static void add_back(struct node *n)
{
    const size_t period = count(n->b);
    for (size_t i = 0; i < count(n->a); i++) {
        n->a->g[i] += n->out->g[i];
        n->b->g[i % period] += n->k * n->out->g[i];
    }
}

static void compute(struct tape *t, struct node *n)
{
    switch (n->op) {
    case OP_EMBED:
        embed(n);
        break;
    case OP_ADD:
        add(n);
        break;
    case OP_LINEAR:
        linear(n);
        break;
    case OP_NORM:
        norm(n);
        break;
    case OP_ATTEND:
        each_head(t, n, attend_head);
        break;
    case OP_GELU:
        gelu(n);
        break;
    case OP_ROUND:
        for (size_t i = 0; i < count(n->a); i++)
            n->out->v[i] = to_half(n->a->v[i]);
        break;
    case OP_LOSS:
        loss(n);
        break;
    default:
        break;
    }
}

static struct tensor *run(struct tape *t, struct node *n, size_t saved)
{
    if (saved != 0 && n->saved == NULL)
        n->saved = must_alloc(saved * sizeof *n->saved);
    struct probe_call *c = dump_enter(t, n);
    compute(t, n);
    dump_exit(t, n, c);
    return n->out;
}

struct tensor *tape_embed(struct tape *t, struct tensor *table, const int64_t *tokens, int rows)
{
    struct node *n = push(t, OP_EMBED, NULL, result(t, rows, table->cols));
    n->w = table;
    n->tokens = tokens;
    return run(t, n, 0);
}
struct tensor *tape_add(struct tape *t, struct tensor *a, struct tensor *b, float k)
{
    struct node *n = push(t, OP_ADD, a, result(t, a->rows, a->cols));
    n->b = b;
    n->k = k;
    return run(t, n, 0);
}
struct tensor *tape_linear(struct tape *t, struct tensor *a, struct tensor *w, struct tensor *bias,
                           int how)
{
    struct node *n = push(t, OP_LINEAR, a, result(t, a->rows, w->rows));
    n->w = w;
    n->bias = bias;
    n->how = how;
    return run(t, n, 0);
}
struct tensor *tape_norm(struct tape *t, struct tensor *a, struct tensor *w, struct tensor *bias,
                         float eps)
{
    struct node *n = push(t, OP_NORM, a, result(t, a->rows, a->cols));
    n->w = w;
    n->bias = bias;
    n->k = eps;
    return run(t, n, 2 * (size_t)a->rows);
}
struct tensor *tape_attend(struct tape *t, struct tensor *qkv, float scale, int masked)
{
    struct node *n = push(t, OP_ATTEND, qkv, result(t, qkv->rows, qkv->cols / 3));
    n->k = scale;
    n->how = masked;
    return run(t, n, (size_t)(qkv->rows / t->seq * t->heads) * (size_t)(t->seq * t->seq));
}
struct tensor *tape_gelu(struct tape *t, struct tensor *a)
{
    return run(t, push(t, OP_GELU, a, result(t, a->rows, a->cols)), 0);
}
struct tensor *tape_round(struct tape *t, struct tensor *a)
{
    return run(t, push(t, OP_ROUND, a, result(t, a->rows, a->cols)), 0);
}
float tape_loss(struct tape *t, struct tensor *logits, const int64_t *targets)
{
    struct node *n = push(t, OP_LOSS, logits, result(t, 1, 1));
    n->tokens = targets;
    return run(t, n, count(logits))->v[0];
}

/* ---- modules -------------------------------------------------------------------------------- */

void tape_enter(struct tape *t, const char *path, const char *class_name, struct tensor *in)
{
    struct node *n = push(t, MODULE_ENTER, in, NULL);
    n->path = path;
    n->class_name = class_name;
    struct probe_call *c = probe_module_enter(t->dump, path, class_name);
    if (in != NULL)
        put(t, c, probe_call_input, in, in->v, NULL);
    n->call = probe_call_number(c);
    n->how = t->depth;
    t->module[t->depth++] = c;
}

/* The innermost module that is open. */
static struct node *opener(struct tape *t)
{
    int open = 1, i = t->n;
    while (open != 0) {
        i--;
        open += (t->node[i].op == MODULE_EXIT) - (t->node[i].op == MODULE_ENTER);
    }
    return &t->node[i];
}

void tape_exit(struct tape *t, struct tensor *out)
{
    struct node *from = opener(t);
    struct node *n = push(t, MODULE_EXIT, from->a, out);
    n->path = from->path;
    n->class_name = from->class_name;
    n->call = from->call;
    struct probe_call *c = t->module[--t->depth];
    put(t, c, probe_call_output, out, out->v, NULL);
    probe_call_exit(c);
}

/* Backward a module begins where its forward ended. */
static void module_back_enter(struct tape *t, const struct node *n)
{
    struct probe_call *c =
        n->call < 0 ? NULL : probe_module_enter_backward(t->dump, n->path, n->class_name, n->call);
    put(t, c, probe_call_input, n->out, n->out->g, NULL);
    t->module[t->depth++] = c;
}
static void module_back_exit(struct tape *t, const struct node *n)
{
    struct probe_call *c = t->module[--t->depth];
    if (n->a != NULL)
        put(t, c, probe_call_output, n->a, n->a->g, NULL);
    probe_call_exit(c);
}

/* ---- backward ------------------------------------------------------------------------------- */

static void back(struct tape *t, struct node *n)
{
    switch (n->op) {
    case OP_EMBED:
        embed_back(n);
        break;
    case OP_ADD:
        add_back(n);
        break;
    case OP_LINEAR:
        linear_back(n);
        break;
    case OP_NORM:
        norm_back(n);
        break;
    case OP_ATTEND:
        each_head(t, n, attend_back);
        break;
    case OP_GELU:
        gelu_back(n);
        break;
    case OP_ROUND:
        for (size_t i = 0; i < count(n->a); i++)
            n->a->g[i] += n->out->g[i];
        break;
    case OP_LOSS:
        n->out->g[0] = 1;
        loss_back(n);
        break;
    default:
        break;
    }
}

void tape_backward(struct tape *t)
{
    for (int i = t->n; i-- > 0;) {
        struct node *n = &t->node[i];
        if (n->op == MODULE_EXIT) {
            module_back_enter(t, n);
        } else if (n->op == MODULE_ENTER) {
            module_back_exit(t, n);
        } else {
            float *before = gradient_before(t, n);
            back(t, n);
            dump_backward(t, n, before);
            free(before);
        }
    }
}
