/* SPDX-License-Identifier: MIT
 *
 * two_dumps: how a C program writes a dump.
 *
 *     two_dumps DIR
 *
 * runs one step of a small classifier (linear, relu, linear, softmax) twice and
 * writes DIR/clean and DIR/faulty.  The faulty run divides the logits by a
 * temperature of zero, which makes NaN in the softmax:
 *
 *     msprobe stat DIR/clean
 *     msprobe stat DIR/faulty
 */
#include <probe/probe.h>

#include <math.h>
#include <stdio.h>

enum { BATCH = 8, IN = 16, HIDDEN = 32, OUT = 10 };

struct matrix {
    float *p;
    uint64_t shape[2];
};

static float x[BATCH * IN], w1[HIDDEN * IN], b1[HIDDEN], h[BATCH * HIDDEN], a[BATCH * HIDDEN];
static float w2[OUT * HIDDEN], b2[OUT], y[BATCH * OUT], s[BATCH * OUT];

/* ---- the model ---------------------------------------------------------- */

/* The same numbers on every machine and in both runs. */
static void fill(float *p, size_t n, unsigned seed, float scale)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525U + 1013904223U;
        p[i] = scale * ((float)(seed >> 8) / (1 << 23) - 1.0f);
    }
}

/* y = x wT + b */
static void linear(const float *in, const float *w, const float *b, float *out, size_t n_in,
                   size_t n_out)
{
    for (size_t r = 0; r < BATCH; r++) {
        for (size_t o = 0; o < n_out; o++) {
            float sum = b[o];
            for (size_t i = 0; i < n_in; i++)
                sum += in[r * n_in + i] * w[o * n_in + i];
            out[r * n_out + o] = sum;
        }
    }
}

static void relu(const float *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] > 0 ? in[i] : 0;
}

static void softmax(const float *in, float *out, float temperature)
{
    for (size_t r = 0; r < BATCH; r++) {
        float max = -INFINITY;
        float sum = 0;
        for (size_t o = 0; o < OUT; o++)
            max = fmaxf(max, in[r * OUT + o] / temperature);
        for (size_t o = 0; o < OUT; o++)
            sum += out[r * OUT + o] = expf(in[r * OUT + o] / temperature - max);
        for (size_t o = 0; o < OUT; o++)
            out[r * OUT + o] /= sum;
    }
}

/* ---- the dump ------------------------------------------------------------- */

static void put(struct probe_writer *w, const char *key, const float *p, uint64_t rows,
                uint64_t cols)
{
    uint64_t shape[2] = {rows, cols};
    /* One row is a vector: drop its first dimension. */
    unsigned skip = rows == 1;
    struct probe_tensor_desc t = {
        .data = p, .dtype = "float32", .shape = shape + skip, .ndim = 2 - skip};
    probe_put_tensor(w, key, &t);
}

static void dump_linear(struct probe_writer *w, const char *name, struct matrix in,
                        struct matrix weight, const float *bias, struct matrix out)
{
    probe_record_begin(w, name);
    probe_section(w, PROBE_SEC_INPUT_ARGS);
    put(w, NULL, in.p, in.shape[0], in.shape[1]);
    put(w, NULL, weight.p, weight.shape[0], weight.shape[1]);
    put(w, NULL, bias, 1, weight.shape[0]);
    probe_section(w, PROBE_SEC_INPUT_KWARGS);
    probe_section(w, PROBE_SEC_OUTPUT);
    put(w, NULL, out.p, out.shape[0], out.shape[1]);
    probe_record_end(w);
}

static void dump_map(struct probe_writer *w, const char *name, struct matrix in, struct matrix out)
{
    probe_record_begin(w, name);
    probe_section(w, PROBE_SEC_INPUT_ARGS);
    put(w, NULL, in.p, in.shape[0], in.shape[1]);
    probe_section(w, PROBE_SEC_INPUT_KWARGS);
    probe_section(w, PROBE_SEC_OUTPUT);
    put(w, NULL, out.p, out.shape[0], out.shape[1]);
    probe_record_end(w);
}

static void dump_place(struct probe_writer *w, const char *node, const char *module, int line)
{
    char frame[128];
    const char *const frames[] = {frame};
    snprintf(frame, sizeof frame, "File two_dumps.c, line %d, in step, \n %s", line, node);
    probe_parent(w, node, module);
    probe_stack(w, node, frames, 1);
}

static void step(struct probe_writer *w, float temperature)
{
    const struct matrix mx = {x, {BATCH, IN}}, mw1 = {w1, {HIDDEN, IN}}, mh = {h, {BATCH, HIDDEN}};
    const struct matrix ma = {a, {BATCH, HIDDEN}}, mw2 = {w2, {OUT, HIDDEN}};
    const struct matrix my = {y, {BATCH, OUT}}, ms = {s, {BATCH, OUT}};
    const char *head = "Module.head.Head.forward.0";

    linear(x, w1, b1, h, IN, HIDDEN);
    dump_linear(w, "Functional.linear.0.forward", mx, mw1, b1, mh);
    dump_place(w, "Functional.linear.0.forward", "Module.body.Body.forward.0", __LINE__ - 2);
    relu(h, a, BATCH * HIDDEN);
    dump_map(w, "Functional.relu.0.forward", mh, ma);
    dump_place(w, "Functional.relu.0.forward", "Module.body.Body.forward.0", __LINE__ - 2);
    dump_map(w, "Module.body.Body.forward.0", mx, ma);
    dump_place(w, "Module.body.Body.forward.0", NULL, __LINE__);
    linear(a, w2, b2, y, HIDDEN, OUT);
    dump_linear(w, "Functional.linear.1.forward", ma, mw2, b2, my);
    dump_place(w, "Functional.linear.1.forward", head, __LINE__ - 2);
    softmax(y, s, temperature);
    dump_map(w, "Functional.softmax.0.forward", my, ms);
    dump_place(w, "Functional.softmax.0.forward", head, __LINE__ - 2);
    dump_map(w, head, ma, ms);
    dump_place(w, head, NULL, __LINE__);
}

static int run(const char *dir, const char *name, float temperature)
{
    struct ms_err err = {0};
    struct probe_writer *w;
    char path[512];
    snprintf(path, sizeof path, "%s/%s/step0/rank0", dir, name);
    struct probe_conf conf = {.dir = path, .task = PROBE_TASK_TENSOR};
    if (probe_writer_open(&w, &conf, &err) == MS_OK) {
        step(w, temperature);
        probe_writer_close(w, &err);
    }
    if (err.rc != MS_OK)
        fprintf(stderr, "two_dumps: %s\n", err.msg);
    else
        printf("wrote %s\n", path);
    return err.rc != MS_OK;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: two_dumps DIR\n");
        return 2;
    }
    fill(x, BATCH * IN, 1, 1);
    fill(w1, HIDDEN * IN, 2, 0.25f);
    fill(b1, HIDDEN, 3, 0.1f);
    fill(w2, OUT * HIDDEN, 4, 0.18f);
    fill(b2, OUT, 5, 0.1f);
    int failed = run(argv[1], "clean", 1);
    return failed | run(argv[1], "faulty", 0);
}
