/* SPDX-License-Identifier: MIT
 *
 * quant_recorded: what quantised checkpoints of the corpus hold, whole and damaged; what drawn weights lose
 * in every format; and how drawn weights that were quantised, with a mistake or without, are judged, as it
 * is on record.
 *
 *     build/tests/test_quant_recorded --update        records a change that is meant
 *     build/tests/test_quant_recorded --show          prints all answers
 */
#include "compare/quantise/quant_ckpt.h"
#include "compare/quantise/quant_compare.h"
#include "compare/quantise/quant_survey.h"
#include "tests/support/recorded.h"

#include <math.h>

enum { MOST = 1 << 12, ROWS = 12, COLS = 64, WEIGHTS = 3, WAYS = 7 };

static uint64_t state;
static char dir[64];

static void make_dir(void)
{
    (void)scratch_dir(dir);
}

static void remove_dir(void)
{
    scratch_remove(dir);
}

/* ---- checkpoints of the corpus -------------------------------------------------------- */

static void put_values(struct ms_buf *b, const struct quant_values *v)
{
    ms_buf_printf(b, " %u:", v->ndim);
    for (uint64_t i = 0; v->v != NULL && i < v->count; i += 1 + v->count / 64)
        ms_buf_printf(b, isnan(v->v[i]) ? " nan" : " %.6g", (double)v->v[i]);
}

/* An entry by itself, and as the codes of a weight in floats of each size that it could have. */
static void put_entry(struct ms_buf *b, const struct probe_ckpt *c,
                      const struct probe_ckpt_entry *e)
{
    struct probe_ckpt_entry golden = *e;
    const int64_t dot = ms_str_rfind(e->name, '.');
    ms_buf_printf(b, " %.*s", MS_STR_ARG(e->name));
    for (uint64_t factor = 0; factor <= 8; factor = factor != 0 ? 2 * factor : 1) {
        struct quant_values v;
        struct ms_err err = {0};
        if (factor != 0) {
            golden.name = ms_str_sub(e->name, 0, dot > 0 ? (uint32_t)dot : e->name.n);
            golden.ndim = 2;
            golden.shape[0] = e->ndim != 0 ? e->shape[0] : 1;
            golden.count = e->count * factor;
            golden.shape[1] = golden.shape[0] != 0 ? golden.count / golden.shape[0] : 0;
        }
        if (golden.count > MOST ||
            (factor != 0 && golden.shape[0] * golden.shape[1] != golden.count))
            continue;
        if (quant_ckpt_dequantise(c, &golden, &v, &err) == MS_OK)
            put_values(b, &v);
        else
            ms_buf_printf(b, " %s", err.msg);
        quant_values_free(&v);
    }
}

static void answer_checkpoint(struct ms_buf *b, const char *p, size_t n)
{
    struct probe_ckpt *c;
    struct ms_err err = {0};
    if (probe_ckpt_parse(&c, "f", p, n, &err) != MS_OK) {
        ms_buf_puts(b, err.msg);
        return;
    }
    for (size_t i = 0; i < probe_ckpt_count(c) && i < 16; i++) {
        const struct probe_ckpt_entry *e = probe_ckpt_entry(c, i);
        if (e->dtype != MS_DT_NONE && e->count <= MOST)
            put_entry(b, c, e);
    }
    probe_ckpt_close(c);
}

START_TEST(checkpoints_of_the_corpus_hold_what_is_on_record)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "quant_ckpt", answer_checkpoint);
    recorded_check(&b, "quant_ckpt");
}
END_TEST

/* ---- drawn weights ---------------------------------------------------------------------- */

struct weights {
    float v[WEIGHTS][ROWS * COLS];
};

/* Sums of drawn numbers; some rows and columns are larger, and a few elements much larger. */
static void draw_weights(struct weights *w, uint64_t seed)
{
    state = seed + 1;
    for (unsigned k = 0; k < WEIGHTS; k++) {
        for (unsigned i = 0; i < ROWS * COLS; i++) {
            int sum = 0;
            for (unsigned j = 0; j < 6; j++)
                sum += (int)recorded_below(&state, 2001) - 1000;
            w->v[k][i] = (float)sum / 4096;
            w->v[k][i] *= (float)(1 + (i / COLS) % 5) * (float)(1 + (i % COLS) / 16);
            if (k == 2 && recorded_below(&state, 200) == 0)
                w->v[k][i] *= 30;
        }
    }
}

/* Writes a file in the format of safetensors. */
static void write_weights(const char *name, const struct weights *w)
{
    char path[128];
    struct ms_buf head = {.max = 1 << 16}, whole = {.max = 1 << 20};
    for (unsigned k = 0; k < WEIGHTS; k++)
        ms_buf_printf(&head,
                      "%s\"layers.%u.fc.weight\":{\"dtype\":\"F32\",\"shape\":[%d,%d],"
                      "\"data_offsets\":[%zu,%zu]}",
                      k == 0 ? "{" : ",", k, ROWS, COLS, k * sizeof *w->v, (k + 1) * sizeof *w->v);
    ms_buf_putc(&head, '}');
    for (unsigned i = 0; i < 8; i++)
        ms_buf_putc(&whole, (char)((uint64_t)head.n >> 8 * i));
    ms_buf_str(&whole, ms_buf_slice(&head));
    ms_buf_put(&whole, (const char *)w->v, sizeof w->v);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    write_file(path, whole.p, whole.n);
    ms_buf_free(&head);
    ms_buf_free(&whole);
}

static void put_loss(struct ms_buf *b, const struct quant_loss *l)
{
    ms_buf_printf(b, " %llu %llu %llu %llu %llu %llu %.6g %.6g %.6g %.6g %.6g %.6g",
                  (unsigned long long)l->count, (unsigned long long)l->nonzero,
                  (unsigned long long)l->underflow, (unsigned long long)l->overflow,
                  (unsigned long long)l->clipped, (unsigned long long)l->groups, l->scale_min,
                  l->scale_max, l->unused, l->signal, l->noise, l->most);
}

static void put_survey(struct ms_buf *b, const char *path, const struct quant_plan *plan)
{
    struct quant_survey s;
    struct ms_err err = {0};
    char words[160];
    quant_scheme_text(&plan->weight, words, sizeof words);
    ms_buf_printf(b, "\n%s:", words);
    if (quant_survey_run(&s, path, plan, NULL, &err) != MS_OK) {
        ms_buf_puts(b, strstr(err.msg, "weights") != NULL ? "" : " refused");
        return;
    }
    for (size_t i = 0; i < s.rows.n; i++) {
        ms_buf_printf(b, " %.*s %.4g", MS_STR_ARG(s.rows.p[i].name),
                      quant_survey_sqnr(&s.rows.p[i]));
        put_loss(b, &s.rows.p[i].weight);
    }
    put_loss(b, &s.weights);
    ms_buf_printf(b, " %zu", s.left_out);
    quant_survey_free(&s);
}

/* The scheme of a format as it is, and with other sharings of scales. */
static struct quant_scheme varied(const struct quant_scheme *of, unsigned way)
{
    struct quant_scheme s = *of;
    s.power = (enum quant_power)(way % 4);
    if (way == 1 || way == 2) {
        s.axis = way == 1 ? 0 : 1;
    } else if (way == 3) {
        s.group = 16;
        s.by = QUANT_BY_GROUP;
    } else if (way == 4) {
        s.by = QUANT_BY_TENSOR;
    } else if (way == 5) {
        s.by = QUANT_BY_CHANNEL;
        s.axis = 0;
    } else if (way == 6) {
        s.by = QUANT_BY_GROUP;
        s.group = 0;
        s.axis = -1;
    }
    return s;
}

static void record_answer(struct ms_buf *b, const char *what, struct ms_buf *answer)
{
    if (recorded_shows)
        printf("== %s %s\n", what, ms_buf_z(answer));
    ms_buf_printf(b, "%s: %08x\n", what, ms_crc32(0, ms_buf_z(answer), answer->n));
    ms_buf_free(answer);
}

START_TEST(weights_lose_in_each_format_what_is_on_record)
{
    static struct weights w;
    char path[128];
    struct ms_buf b = {.max = 1 << 20};
    draw_weights(&w, 7);
    w.v[0][5] = NAN;
    w.v[0][COLS + 5] = INFINITY;
    write_weights("w.safetensors", &w);
    snprintf(path, sizeof path, "%s/w.safetensors", dir);
    for (unsigned f = 0; f < QUANT_FORMATS; f++) {
        struct ms_buf answer = {.max = 1 << 20};
        for (unsigned way = 0; way < WAYS; way++) {
            const struct quant_scheme s = varied(&quant_formats[f].scheme, way);
            const struct quant_plan plan = {
                .weight = s, .input = s, .weights = true, .axis_given = way == 1 || way == 2};
            put_survey(&answer, path, &plan);
        }
        record_answer(&b, quant_formats[f].name, &answer);
    }
    recorded_check(&b, "quant_survey");
}
END_TEST

/* ---- weights that were quantised, with a mistake or without -------------------------------- */

enum mistake { RIGHT, OTHER_AXIS, OTHER_BLOCK, STALE, CUT_OFF, TWICE, NO_ROUNDING, MISTAKES };

static void quantise(const struct quant_scheme *s, const float *x, float *out)
{
    const uint64_t shape[] = {ROWS, COLS};
    struct quant_shape folded;
    struct quant_loss loss = {0};
    struct ms_err err = {0};
    ck_ok(quant_shape_of(&folded, shape, 2, s->axis, &err), err);
    quant_tensor(s, &folded, x, out, &loss);
}

static void break_weights(const struct quant_scheme *of, enum mistake m, const struct weights *w,
                          struct weights *out)
{
    struct quant_scheme s = *of;
    s.axis = m == OTHER_AXIS ? 0 : s.axis;
    s.group = m == OTHER_BLOCK && s.group != 0 ? s.group / 2 : s.group;
    for (unsigned k = 0; k < WEIGHTS; k++) {
        float x[ROWS * COLS];
        for (unsigned i = 0; i < ROWS * COLS; i++)
            x[i] = m == STALE     ? w->v[k][i] * 0.75F
                   : m == CUT_OFF ? fminf(fmaxf(w->v[k][i], -2), 2)
                                  : w->v[k][i];
        quantise(&s, x, out->v[k]);
        for (unsigned i = 0; i < ROWS * COLS; i++) {
            if (m == STALE)
                out->v[k][i] /= 0.75F;
            if (m == TWICE)
                out->v[k][i] *= 0.03125F;
            if (m == NO_ROUNDING && i % 7 == 0)
                out->v[k][i] = x[i];
        }
    }
}

static void put_comparison(struct ms_buf *b)
{
    char target[128], golden[128];
    struct quant_comparison c;
    struct ms_err err = {0};
    snprintf(target, sizeof target, "%s/target.safetensors", dir);
    snprintf(golden, sizeof golden, "%s/golden.safetensors", dir);
    ck_ok(quant_compare(&c, target, golden, NULL, &err), err);
    ms_buf_printf(b, "\n%zu %zu %zu %zu", c.quantised, c.faults, c.unmatched[0], c.unmatched[1]);
    for (size_t i = 0; i < c.tensors.n; i++) {
        const struct quant_verdict *v = &c.tensors.p[i].v;
        ms_buf_printf(
            b, " %.*s %d %d %d %d %d %d %llu %d %.6g %.6g %.6g %.6g %.6g %.6g %.6g %.6g %s",
            MS_STR_ARG(c.tensors.p[i].name), (int)v->fault, v->is_quantised, v->equal,
            (int)v->number, v->matched, (int)v->layout.sharing, (unsigned long long)v->rows,
            v->powers, v->scale_min, v->scale_max, v->clipped, v->clipped_noise, v->underflow,
            v->used, v->signal, v->noise, v->text);
    }
    quant_comparison_free(&c);
}

START_TEST(weights_that_were_quantised_are_judged_as_on_record)
{
    static struct weights w, out;
    struct ms_buf b = {.max = 1 << 20};
    for (unsigned f = 0; f < QUANT_FORMATS; f++) {
        struct ms_buf answer = {.max = 1 << 20};
        draw_weights(&w, f);
        write_weights("golden.safetensors", &w);
        for (enum mistake m = RIGHT; m < MISTAKES; m++) {
            break_weights(&quant_formats[f].scheme, m, &w, &out);
            write_weights("target.safetensors", &out);
            put_comparison(&answer);
        }
        record_answer(&b, quant_formats[f].name, &answer);
    }
    recorded_check(&b, "quant_judge");
}
END_TEST

RECORDED_MAIN_AROUND(make_dir, remove_dir, "quant_recorded",
                     checkpoints_of_the_corpus_hold_what_is_on_record,
                     weights_lose_in_each_format_what_is_on_record,
                     weights_that_were_quantised_are_judged_as_on_record)
