/* SPDX-License-Identifier: MIT
 *
 * big_dump: records go round a transformer layer, forward then backward.
 *
 * What matters to a reader is kept close to a real dump: a third of the bytes
 * are indentation, statistics are float32 values of many magnitudes written with
 * up to 17 digits, one tensor in eight holds integers, one value in eight is an
 * exact 0 or 1.
 */
#include "tests/gen/big_dump.h"

#include "probe/base/jwrite.h"

#include <math.h>
#include <stdlib.h>

struct gen {
    struct ms_jwrite w;
    uint64_t state;
};

static uint64_t draw(struct gen *g)
{
    g->state ^= g->state << 13;
    g->state ^= g->state >> 7;
    g->state ^= g->state << 17;
    return g->state * UINT64_C(0x2545F4914F6CDD1D) >> 16;
}

static double draw_stat(struct gen *g)
{
    if (draw(g) % 8 == 0)
        return (double)(draw(g) % 2);
    double fraction = 1.0 + (double)(draw(g) % (1 << 23)) / (1 << 23);
    double v = (double)(float)ldexp(fraction, (int)(draw(g) % 24) - 18);
    return draw(g) % 2 != 0 ? -v : v;
}

static void write_shape(struct gen *g)
{
    static const int dims[][3] = {{4096, 1, 8192}, {8192, 8192, 0}, {32, 4096, 128}, {8192, 0, 0}};
    const int *shape = dims[draw(g) % 4];
    ms_jwrite_key(&g->w, MS_STR("shape"));
    ms_jwrite_arr(&g->w);
    for (int i = 0; i < 3 && shape[i] != 0; i++)
        ms_jwrite_i64(&g->w, shape[i]);
    ms_jwrite_arr_end(&g->w);
}

static void write_tensor(struct gen *g)
{
    static const char *const stats[] = {"Max", "Min", "Mean", "Norm"};
    bool is_int = draw(g) % 8 == 0;
    ms_jwrite_obj(&g->w);
    ms_jwrite_kstr(&g->w, "type", "torch.Tensor");
    ms_jwrite_kstr(&g->w, "dtype", is_int ? "torch.int64" : "torch.bfloat16");
    write_shape(g);
    for (int i = 0; i < 4; i++) {
        if (is_int)
            ms_jwrite_ki64(&g->w, stats[i], (int64_t)(draw(g) % 50000));
        else
            ms_jwrite_kf64(&g->w, stats[i], draw_stat(g));
    }
    ms_jwrite_kbool(&g->w, "requires_grad", !is_int);
    ms_jwrite_obj_end(&g->w);
}

static void write_list(struct gen *g, const char *key, uint64_t count)
{
    ms_jwrite_key(&g->w, ms_str_of(key));
    ms_jwrite_arr(&g->w);
    while (count-- > 0)
        write_tensor(g);
    ms_jwrite_arr_end(&g->w);
}

static void write_record(struct gen *g, size_t i)
{
    static const char *const ops[] = {
        "Functional.linear",
        "Module.decoder.layers.%zu.self_attention.linear_qkv.ColumnParallelLinear",
        "Tensor.__add__",
        "Module.decoder.layers.%zu.mlp.linear_fc2.RowParallelLinear",
        "Torch.matmul",
        "Functional.layer_norm",
    };
    const char *op = ops[i / 2 % 6];
    const char *layer = strstr(op, "%zu");
    bool is_forward = i % 2 == 0;
    char name[160];
    if (layer != NULL)
        snprintf(name, sizeof name, "%.*s%zu%s.%s.%zu", (int)(layer - op), op, i / 12 % 80,
                 layer + 3, is_forward ? "forward" : "backward", i / 960);
    else
        snprintf(name, sizeof name, "%s.%zu.%s", op, i / 12, is_forward ? "forward" : "backward");
    ms_jwrite_key(&g->w, ms_str_of(name));
    ms_jwrite_obj(&g->w);
    write_list(g, is_forward ? "input_args" : "input", 1 + draw(g) % 3);
    if (is_forward) {
        ms_jwrite_key(&g->w, MS_STR("input_kwargs"));
        ms_jwrite_obj(&g->w);
        ms_jwrite_obj_end(&g->w);
    }
    write_list(g, "output", 1);
    ms_jwrite_obj_end(&g->w);
}

static enum ms_rc to_file(void *f, const char *p, size_t n, struct ms_err *err)
{
    return fwrite(p, 1, n, f) == n ? MS_OK : ms_fail_sys(err, "generated dump");
}

void big_dump_write(FILE *f, size_t records, unsigned seed)
{
    struct gen g = {.state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
    ms_jwrite_init(&g.w, 1, 1 << 20);
    g.w.drain = to_file;
    g.w.ctx = f;
    ms_jwrite_obj(&g.w);
    ms_jwrite_kstr(&g.w, "task", "statistics");
    ms_jwrite_kstr(&g.w, "level", "mix");
    ms_jwrite_kstr(&g.w, "framework", "pytorch");
    ms_jwrite_key(&g.w, MS_STR("dump_data_dir"));
    ms_jwrite_null(&g.w);
    ms_jwrite_key(&g.w, MS_STR("data"));
    ms_jwrite_obj(&g.w);
    for (size_t i = 0; i < records; i++)
        write_record(&g, i);
    ms_jwrite_obj_end(&g.w);
    ms_jwrite_obj_end(&g.w);
    ms_jwrite_finish(&g.w, NULL);
    ms_jwrite_free(&g.w);
}
