/* SPDX-License-Identifier: MIT
 *
 * eval_callback: dumps from an inference engine that calls back for each
 * operator, as ggml and llama.cpp do:
 *
 *     params.cb_eval = dump_node;
 *     params.cb_eval_user_data = dumper;
 *
 * The engine asks before it computes a node ("do you want to see this one?") and
 * calls again when it has.  dump_node is all that such a program needs; the
 * engine below is a stand-in with the same kind of nodes, so that this builds
 * and runs alone:
 *
 *     eval_callback DIR             dump two tokens into DIR
 *     eval_callback config.json     dump what the file says
 */
#include <probe/dumper.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what the engine shows of a node ------------------------------------ */

enum { MAX_DIMS = 4, MAX_SRC = 2 };

/* Sizes and strides count from the innermost dimension; strides are in bytes. */
struct node {
    const char *op; /* "MUL_MAT" */
    char name[32];  /* "ffn_up-0": what it is, and of which layer */
    int64_t ne[MAX_DIMS];
    size_t nb[MAX_DIMS];
    const struct node *src[MAX_SRC];
    float *data;
};
typedef bool (*eval_callback)(const struct node *t, bool ask, void *user_data);

/* ---- the adapter ---------------------------------------------------------- */

/* A node as a tensor: dimensions turned round, those of size 1 at the outside left out. */
struct described {
    uint64_t shape[MAX_DIMS], stride[MAX_DIMS];
    struct probe_tensor_desc tensor;
};

static struct probe_value describe(const struct node *t, struct described *d)
{
    uint32_t ndim = MAX_DIMS;
    while (ndim > 1 && t->ne[ndim - 1] == 1)
        ndim--;
    for (uint32_t i = 0; i < ndim; i++) {
        d->shape[ndim - 1 - i] = (uint64_t)t->ne[i];
        d->stride[ndim - 1 - i] = t->nb[i] / sizeof *t->data;
    }
    /* An engine with other types names them here; blocks of quantised numbers have no dtype, and the
     * dumper leaves null in their place.  Memory of a device is copied to the host first. */
    d->tensor = (struct probe_tensor_desc){
        .data = t->data, .dtype = "float32", .shape = d->shape, .stride = d->stride, .ndim = ndim};
    return (struct probe_value){.kind = PROBE_TENSOR, .tensor = &d->tensor};
}

/* "MUL_MAT" as the "mul_mat" of a record's name */
static void put_lower(char *to, size_t size, const char *from)
{
    size_t n = 0;
    for (; from[n] != '\0' && n + 1 < size; n++)
        to[n] = (char)(from[n] >= 'A' && from[n] <= 'Z' ? from[n] + 32 : from[n]);
    to[n] = '\0';
}

static bool dump_node(const struct node *t, bool ask, void *user_data)
{
    struct probe_dumper *dumper = user_data;
    struct described d[MAX_SRC + 1];
    struct probe_value in[MAX_SRC + 1];
    char op[32];
    size_t nin = 0;
    if (ask)
        return probe_dumper_active(dumper);
    for (; nin < MAX_SRC && t->src[nin] != NULL; nin++)
        in[nin] = describe(t->src[nin], &d[nin]);
    in[nin] = (struct probe_value){.kind = PROBE_STR, .s = t->name, .key = "name"};
    const struct probe_value out = describe(t, &d[MAX_SRC]);
    put_lower(op, sizeof op, t->op);
    probe_op(dumper, "Functional", op, in, nin + 1, &out, 1);
    return true; /* go on computing */
}

/* ---- the engine: one gated layer ---------------------------------------- */

enum { WIDTH = 8, HIDDEN = 16 };

static float up_w[HIDDEN * WIDTH], gate_w[HIDDEN * WIDTH], down_w[WIDTH * HIDDEN];
static float token[WIDTH], up_y[HIDDEN], gate_y[HIDDEN], silu_y[HIDDEN], mul_y[HIDDEN],
    out_y[WIDTH];

static struct node leaf(const char *name, float *data, int64_t cols, int64_t rows)
{
    size_t row = (size_t)cols * sizeof *data;
    struct node t = {.op = "NONE", .ne = {cols, rows, 1, 1}, .data = data};
    memcpy(t.nb, (size_t[]){sizeof *data, row, row * (size_t)rows, row * (size_t)rows},
           sizeof t.nb);
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

static struct node result(const char *op, const char *name, float *data, int64_t cols,
                          const struct node *a, const struct node *b)
{
    struct node t = leaf(name, data, cols, 1);
    t.op = op;
    t.src[0] = a;
    t.src[1] = b;
    return t;
}

static void compute(struct node *t)
{
    const float *a = t->src[0]->data;
    const float *b = t->src[1] != NULL ? t->src[1]->data : NULL;
    const int64_t depth = t->src[0]->ne[0];
    for (int64_t i = 0; i < t->ne[0]; i++) {
        if (strcmp(t->op, "MUL_MAT") == 0) {
            t->data[i] = 0;
            for (int64_t k = 0; k < depth; k++)
                t->data[i] += a[i * depth + k] * b[k];
        } else if (strcmp(t->op, "SILU") == 0) {
            t->data[i] = a[i] / (1 + expf(-a[i]));
        } else {
            t->data[i] = a[i] * b[i];
        }
    }
}

static void evaluate(struct node *t, eval_callback callback, void *user_data)
{
    bool wanted = callback(t, true, user_data);
    compute(t);
    if (wanted)
        callback(t, false, user_data);
}

static void decode(eval_callback callback, void *user_data)
{
    const struct node x = leaf("inp_embd", token, WIDTH, 1);
    const struct node up = leaf("ffn_up.weight", up_w, WIDTH, HIDDEN);
    const struct node gate = leaf("ffn_gate.weight", gate_w, WIDTH, HIDDEN);
    const struct node down = leaf("ffn_down.weight", down_w, HIDDEN, WIDTH);
    struct node up_t = result("MUL_MAT", "ffn_up-0", up_y, HIDDEN, &up, &x);
    struct node gate_t = result("MUL_MAT", "ffn_gate-0", gate_y, HIDDEN, &gate, &x);
    struct node silu_t = result("SILU", "ffn_silu-0", silu_y, HIDDEN, &gate_t, NULL);
    struct node mul_t = result("MUL", "ffn_gate_par-0", mul_y, HIDDEN, &silu_t, &up_t);
    struct node out_t = result("MUL_MAT", "ffn_out-0", out_y, WIDTH, &down, &mul_t);
    struct node *const graph[] = {&up_t, &gate_t, &silu_t, &mul_t, &out_t};
    for (size_t i = 0; i < sizeof graph / sizeof *graph; i++)
        evaluate(graph[i], callback, user_data);
}

/* ---- the program ---------------------------------------------------------- */

static void fill(float *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525U + 1013904223U;
        p[i] = (float)(seed >> 8) / (1 << 23) - 1.0f;
    }
}

static enum ms_rc open_dumper(struct probe_dumper **dumper, const char *arg, struct ms_err *err)
{
    const char *dot = strrchr(arg, '.');
    if (dot != NULL && strcmp(dot, ".json") == 0)
        return probe_dumper_load(dumper, arg, err);
    /* Without a file: the level of operators, all of them, and tensors as files. */
    const struct probe_settings s = {.dump_path = arg,
                                     .task = PROBE_TASK_TENSOR,
                                     .level = PROBE_LEVEL_L1,
                                     .risk = PROBE_RISK_ALL};
    return probe_dumper_open(dumper, &s, err);
}

int main(int argc, char **argv)
{
    struct probe_dumper *dumper;
    struct ms_err err = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: eval_callback DIR | CONFIG.json\n");
        return 2;
    }
    fill(up_w, HIDDEN * WIDTH, 1);
    fill(gate_w, HIDDEN * WIDTH, 2);
    fill(down_w, WIDTH * HIDDEN, 3);
    /* A program that cannot dump still runs: the dumper is NULL then, and all calls take that. */
    if (open_dumper(&dumper, argv[1], &err) != MS_OK)
        fprintf(stderr, "eval_callback: no dump: %s\n", err.msg);
    for (unsigned i = 0; i < 2; i++) {
        fill(token, WIDTH, 100 + i);
        probe_dumper_start(dumper);
        decode(dump_node, dumper);
        probe_dumper_stop(dumper);
        probe_dumper_step(dumper);
    }
    if (probe_dumper_close(dumper, &err) != MS_OK)
        fprintf(stderr, "eval_callback: %s\n", err.msg);
    printf("first output %.6f\n", (double)out_y[0]);
    return err.rc != MS_OK;
}
