/* SPDX-License-Identifier: MIT
 *
 * model: see model.h.
 */
#include "model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- faults ---------------------------------------------------------------------------------- */

static const struct {
    const char *name, *text;
} faults[FAULTS] = {
    [FAULT_NONE] = {"none", "nothing is wrong"},
    [FAULT_SCALE] = {"scale", "attention is not divided by the root of the width"},
    [FAULT_SIGN] = {"sign", "the MLP's output is subtracted from its input"},
    [FAULT_TRANSPOSED] = {"transposed", "the projection's weight is taken transposed"},
    [FAULT_RESIDUAL] = {"residual", "attention's input is not added to its output"},
    [FAULT_EPS] = {"eps", "layer norm has an epsilon of 0.01 instead of 0.00001"},
    [FAULT_MASK] = {"mask", "attention sees the tokens behind"},
    [FAULT_HALF] = {"half", "the MLP's output passes through half precision"},
    [FAULT_BIAS] = {"bias", "the MLP's first linear has no bias"},
};

const char *fault_name(enum fault f)
{
    return faults[f].name;
}
const char *fault_text(enum fault f)
{
    return faults[f].text;
}

bool model_set_fault(struct model *m, const char *name)
{
    int layer = -1;
    char what[32];
    if (sscanf(name, "layer%d.%31s", &layer, what) != 2 || layer < 0 || layer >= m->shape.layers)
        return false;
    for (int f = FAULT_NONE + 1; f < FAULTS; f++) {
        if (strcmp(what, faults[f].name) == 0) {
            m->fault = (enum fault)f;
            m->fault_layer = layer;
            return true;
        }
    }
    return false;
}

/* ---- parameters ------------------------------------------------------------------------------- */

static unsigned long long random_state;
static float uniform(void)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (float)(random_state >> 40) / (float)(1 << 23) - 1;
}

static void add_param(struct model *m, const char *name, int rows, int cols, float scale,
                      float constant)
{
    struct param *p = &m->param[m->nparams++];
    snprintf(p->name, sizeof p->name, "%s", name);
    tensor_make(&p->t, rows, cols);
    p->m = must_alloc((size_t)rows * (size_t)cols * sizeof *p->m);
    for (int i = 0; i < rows * cols; i++)
        p->t.v[i] = scale != 0 ? scale * uniform() : constant;
}

static void add_linear(struct model *m, const char *prefix, int out, int in)
{
    char name[96];
    snprintf(name, sizeof name, "%s.weight", prefix);
    add_param(m, name, out, in, 1 / sqrtf((float)in), 0);
    snprintf(name, sizeof name, "%s.bias", prefix);
    add_param(m, name, 1, out, 0.02F, 0);
}

static void add_norm(struct model *m, const char *prefix, int dim)
{
    char name[96];
    snprintf(name, sizeof name, "%s.weight", prefix);
    add_param(m, name, 1, dim, 0, 1);
    snprintf(name, sizeof name, "%s.bias", prefix);
    add_param(m, name, 1, dim, 0, 0);
}

void model_init(struct model *m, const struct shape *s, unsigned seed)
{
    static const char *const parts[] = {"norm1", "attn.qkv", "attn.proj",
                                        "norm2", "mlp.up",   "mlp.down"};
    memset(m, 0, sizeof *m);
    m->shape = *s;
    random_state = seed * 2654435761U + 1;
    add_param(m, "embed.weight", s->vocab, s->dim, 0.5F, 0);
    add_param(m, "position", s->seq, s->dim, 0.1F, 0);
    for (int l = 0; l < s->layers; l++) {
        char name[64];
        const int d = s->dim,
                  sizes[6][2] = {{0, d}, {3 * d, d}, {d, d}, {0, d}, {4 * d, d}, {d, 4 * d}};
        for (int i = 0; i < 6; i++) {
            snprintf(name, sizeof name, "layers.%d.%s", l, parts[i]);
            if (sizes[i][0] == 0)
                add_norm(m, name, sizes[i][1]);
            else
                add_linear(m, name, sizes[i][0], sizes[i][1]);
        }
        snprintf(m->path[l][0], sizeof m->path[l][0], "layers.%d", l);
        snprintf(m->path[l][1], sizeof m->path[l][1], "layers.%d.attn", l);
        snprintf(m->path[l][2], sizeof m->path[l][2], "layers.%d.mlp", l);
    }
    add_norm(m, "norm", s->dim);
    add_param(m, "head.weight", s->vocab, s->dim, 1 / sqrtf((float)s->dim), 0);
}

void model_free(struct model *m)
{
    for (int i = 0; i < m->nparams; i++) {
        free(m->param[i].t.v);
        free(m->param[i].t.g);
        free(m->param[i].m);
    }
}

/* Parameters of a layer stand together: 12 from this place on, weight before bias. */
static struct tensor *of_layer(struct model *m, int layer, int part, int is_bias)
{
    return &m->param[2 + 12 * layer + 2 * part + is_bias].t;
}

/* ---- forward ------------------------------------------------------------------------------------ */

static struct tensor *attention(struct model *m, struct tape *t, int l, struct tensor *x,
                                enum fault f)
{
    const float width = (float)m->shape.dim / (float)m->shape.heads;
    tape_enter(t, m->path[l][1], "Attention", x);
    struct tensor *qkv = tape_linear(t, x, of_layer(m, l, 1, 0), of_layer(m, l, 1, 1), 0);
    struct tensor *y =
        tape_attend(t, qkv, f == FAULT_SCALE ? 1 : 1 / sqrtf(width), f != FAULT_MASK);
    y = tape_linear(t, y, of_layer(m, l, 2, 0), of_layer(m, l, 2, 1), f == FAULT_TRANSPOSED);
    tape_exit(t, y);
    return y;
}

static struct tensor *mlp(struct model *m, struct tape *t, int l, struct tensor *x, enum fault f)
{
    tape_enter(t, m->path[l][2], "MLP", x);
    struct tensor *y =
        tape_linear(t, x, of_layer(m, l, 4, 0), f == FAULT_BIAS ? NULL : of_layer(m, l, 4, 1), 0);
    y = tape_gelu(t, y);
    y = tape_linear(t, y, of_layer(m, l, 5, 0), of_layer(m, l, 5, 1), 0);
    if (f == FAULT_HALF)
        y = tape_round(t, y);
    tape_exit(t, y);
    return y;
}

static struct tensor *layer(struct model *m, struct tape *t, int l, struct tensor *x)
{
    const enum fault f = l == m->fault_layer ? m->fault : FAULT_NONE;
    const float eps = f == FAULT_EPS ? 1e-2F : 1e-5F;
    tape_enter(t, m->path[l][0], "Layer", x);
    struct tensor *h = tape_norm(t, x, of_layer(m, l, 0, 0), of_layer(m, l, 0, 1), eps);
    h = attention(m, t, l, h, f);
    if (f != FAULT_RESIDUAL)
        h = tape_add(t, x, h, 1);
    struct tensor *y = tape_norm(t, h, of_layer(m, l, 3, 0), of_layer(m, l, 3, 1), eps);
    y = mlp(m, t, l, y, f);
    y = tape_add(t, h, y, f == FAULT_SIGN ? -1 : 1);
    tape_exit(t, y);
    return y;
}

float model_forward(struct model *m, struct tape *t, const int64_t *tokens, const int64_t *targets)
{
    const int rows = m->shape.batch * m->shape.seq;
    struct param *last = &m->param[m->nparams - 3];
    tape_reset(t);
    t->seq = m->shape.seq;
    t->heads = m->shape.heads;
    tape_enter(t, "model", "Decoder", NULL);
    struct tensor *x = tape_embed(t, &m->param[0].t, tokens, rows);
    x = tape_add(t, x, &m->param[1].t, 1);
    for (int l = 0; l < m->shape.layers; l++)
        x = layer(m, t, l, x);
    x = tape_norm(t, x, &last[0].t, &last[1].t, 1e-5F);
    x = tape_linear(t, x, &last[2].t, NULL, 0);
    tape_exit(t, x);
    return tape_loss(t, x, targets);
}

void model_zero_grad(struct model *m)
{
    for (int i = 0; i < m->nparams; i++) {
        struct tensor *p = &m->param[i].t;
        memset(p->g, 0, (size_t)p->rows * (size_t)p->cols * sizeof *p->g);
    }
}

void model_update(struct model *m, float rate)
{
    for (int i = 0; i < m->nparams; i++) {
        struct param *p = &m->param[i];
        for (int k = 0; k < p->t.rows * p->t.cols; k++) {
            p->m[k] = 0.9F * p->m[k] + p->t.g[k];
            p->t.v[k] -= rate * p->m[k];
        }
    }
}

/* ---- weights on disk ------------------------------------------------------------------------------- */

enum { NPY_HEAD = 128 };

static FILE *open_weight(const struct param *p, const char *folder, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.npy", folder, p->name);
    FILE *f = fopen(path, mode);
    if (f == NULL)
        fprintf(stderr, "train_mpi: %s: %s\n", path, strerror(errno));
    return f;
}

/* Version 1.0: magic, length of the text, text padded to 128 bytes in all. */
static void npy_head(const struct param *p, char head[NPY_HEAD])
{
    char text[NPY_HEAD - 9];
    int n = p->t.rows == 1
                ? snprintf(text, sizeof text,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }", p->t.cols)
                : snprintf(text, sizeof text,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }",
                           p->t.rows, p->t.cols);
    memset(head, ' ', NPY_HEAD);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(head + 10, text, (size_t)n);
    head[NPY_HEAD - 1] = '\n';
}

bool model_save(const struct model *m, const char *folder)
{
    char head[NPY_HEAD];
    bool ok = mkdir(folder, 0777) == 0 || errno == EEXIST;
    for (int i = 0; ok && i < m->nparams; i++) {
        const struct param *p = &m->param[i];
        const size_t n = (size_t)p->t.rows * (size_t)p->t.cols;
        FILE *f = open_weight(p, folder, "wb");
        npy_head(p, head);
        ok = f != NULL && fwrite(head, sizeof head, 1, f) == 1 &&
             fwrite(p->t.v, sizeof *p->t.v, n, f) == n;
        if (f != NULL)
            ok = fclose(f) == 0 && ok;
    }
    if (!ok)
        fprintf(stderr, "train_mpi: the weights could not be written to %s\n", folder);
    return ok;
}

/* Any header of version 1 whose data are of the right number: other writers pad otherwise. */
static bool load_weight(struct param *p, const char *folder)
{
    unsigned char head[10];
    char text[4096];
    const size_t n = (size_t)p->t.rows * (size_t)p->t.cols;
    FILE *f = open_weight(p, folder, "rb");
    if (f == NULL)
        return false;
    bool ok = fread(head, sizeof head, 1, f) == 1 && memcmp(head, "\x93NUMPY\x01", 7) == 0;
    const size_t len = ok ? head[8] + (size_t)head[9] * 256 : 0;
    ok = ok && len > 0 && len < sizeof text && fread(text, len, 1, f) == 1;
    text[len < sizeof text ? len : 0] = '\0';
    ok = ok && strstr(text, "'<f4'") != NULL && strstr(text, "'fortran_order': False") != NULL &&
         fread(p->t.v, sizeof *p->t.v, n, f) == n && fgetc(f) == EOF;
    fclose(f);
    if (!ok)
        fprintf(stderr, "train_mpi: %s/%s.npy: not %zu float32 numbers in C order\n", folder,
                p->name, n);
    return ok;
}

bool model_load(struct model *m, const char *folder)
{
    for (int i = 0; i < m->nparams; i++) {
        if (!load_weight(&m->param[i], folder))
            return false;
    }
    return true;
}
