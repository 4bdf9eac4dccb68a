/* SPDX-License-Identifier: MIT
 *
 * breakdown_text: the breakdown of device time as tables and as JSON.
 */
#include "mstx/conclude/breakdown.h"

#include "probe/base/human.h"

#include <inttypes.h>

static const char *const idle_names[MSTX_IDLES] = {"host_wait_us", "kernel_wait_us", "other_us"};

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

/* ---- text ------------------------------------------------------------------------------ */

static size_t rows(size_t n, size_t most)
{
    return most != 0 && n > most ? most : n;
}

static void put_time(struct ms_buf *out, int64_t ns)
{
    char time[MS_HUMAN_MAX];
    ms_buf_printf(out, " %11s", ms_human_time(time, ns));
}

static void text_use(const mstx_breakdown *b, size_t most, struct ms_buf *out)
{
    ms_buf_printf(out, "\n  %4s %11s %11s %11s %13s %11s %11s %8s\n", "rank", "window", "busy",
                  "computing", "communication", "memory", "idle", "overlap");
    for (size_t i = 0; i < rows(b->n, most); i++) {
        const struct mstx_rank_breakdown *r = &b->p[i];
        ms_buf_printf(out, "  %4" PRId32, r->rank);
        put_time(out, r->window_ns);
        put_time(out, r->busy_ns);
        put_time(out, r->work_ns[MSTX_WORK_COMPUTE]);
        ms_buf_puts(out, "  ");
        put_time(out, r->work_ns[MSTX_WORK_COMM]);
        put_time(out, r->work_ns[MSTX_WORK_MEMORY]);
        put_time(out, r->window_ns - r->busy_ns);
        ms_buf_printf(out, " %6.1f %%\n", share(r->overlap_ns, r->work_ns[MSTX_WORK_COMM]));
    }
    ms_human_more(out, b->n - rows(b->n, most), "");
}

static void text_idle(const mstx_breakdown *b, size_t most, struct ms_buf *out)
{
    size_t n = 0, shown = 0;
    ms_buf_printf(out, "\n  %4s %6s %6s %11s %11s %11s   why the stream was idle\n", "rank",
                  "device", "stream", "host", "next kernel", "other");
    for (size_t i = 0; i < b->n; i++) {
        for (size_t k = 0; k < b->p[i].idle.n; k++, n++) {
            const struct mstx_stream_idle *s = &b->p[i].idle.p[k];
            if (most != 0 && shown == most)
                continue;
            shown++;
            ms_buf_printf(out, "  %4" PRId32 " %6" PRIu32 " %6" PRIu32, b->p[i].rank, s->device,
                          s->stream);
            for (int j = 0; j < MSTX_IDLES; j++)
                put_time(out, s->ns[j]);
            ms_buf_putc(out, '\n');
        }
    }
    ms_human_more(out, n - shown, "");
}

static void text_launches(const mstx_breakdown *b, size_t most, struct ms_buf *out)
{
    ms_buf_printf(out, "\n  %4s %9s %12s %12s %13s %11s %11s\n", "rank", "launches", "longer than",
                  "calls over", "begun over", "delay", "delay");
    ms_buf_printf(out, "  %4s %9s %12s %12s %13s %11s %11s\n", "", "", "the kernel", "50 us",
                  "100 us later", "median", "most");
    for (size_t i = 0; i < rows(b->n, most); i++) {
        const struct mstx_launches *l = &b->p[i].launches;
        ms_buf_printf(out, "  %4" PRId32 " %9" PRIu64 " %12" PRIu64 " %12" PRIu64 " %13" PRIu64,
                      b->p[i].rank, l->pairs, l->brief, l->slow, l->late);
        put_time(out, l->median_delay_ns);
        put_time(out, l->most_delay_ns);
        ms_buf_putc(out, '\n');
    }
    ms_human_more(out, b->n - rows(b->n, most), "");
}

/* Writes the kernels of the rank whose device is busy longest. */
static void text_kernels(struct mstx_tl *tl, const mstx_breakdown *b, size_t most,
                         struct ms_buf *out)
{
    const struct mstx_rank_breakdown *r = &b->p[0];
    for (size_t i = 1; i < b->n; i++)
        r = b->p[i].busy_ns > r->busy_ns ? &b->p[i] : r;
    ms_buf_printf(out, "\n  %-48s %-13s %9s %11s %11s %11s   kernels of rank %" PRId32 "\n",
                  "kernel", "type", "count", "total", "mean", "max", r->rank);
    for (size_t i = 0; i < rows(r->kernel.n, most); i++) {
        const struct mstx_kernel_sum *k = &r->kernel.p[i];
        const struct ms_str name = mstx_tl_text(tl, k->name);
        ms_buf_puts(out, "  ");
        ms_human_cell(out, name, 48);
        ms_buf_printf(out, " %-13s %9" PRIu64, mstx__work_text(k->work), k->count);
        put_time(out, k->total_ns);
        put_time(out, k->total_ns / (int64_t)k->count);
        put_time(out, k->most_ns);
        ms_buf_putc(out, '\n');
    }
    ms_human_more(out, r->kernel.n - rows(r->kernel.n, most), " kernels");
}

void mstx_breakdown_text(struct mstx_tl *tl, const mstx_breakdown *b, size_t most,
                         struct ms_buf *out)
{
    if (b->n == 0) {
        ms_buf_puts(out, "\nno kernels: a breakdown needs a trace in which a profiler recorded a "
                         "device\n");
        return;
    }
    text_use(b, most, out);
    text_idle(b, most, out);
    text_launches(b, most, out);
    text_kernels(tl, b, most, out);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void key_us(struct ms_jwrite *w, const char *key, int64_t ns)
{
    ms_jwrite_kf64(w, key, (double)ns / 1000);
}

static void begin_list(struct ms_jwrite *w, const char *key)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
}

static void json_use(const struct mstx_rank_breakdown *r, struct ms_jwrite *w)
{
    const int64_t comm = r->work_ns[MSTX_WORK_COMM];
    key_us(w, "window_us", r->window_ns);
    key_us(w, "busy_us", r->busy_ns);
    key_us(w, "compute_us", r->work_ns[MSTX_WORK_COMPUTE]);
    key_us(w, "communication_us", comm);
    key_us(w, "memory_us", r->work_ns[MSTX_WORK_MEMORY]);
    key_us(w, "non_compute_us", r->busy_ns - r->work_ns[MSTX_WORK_COMPUTE]);
    key_us(w, "idle_us", r->window_ns - r->busy_ns);
    key_us(w, "overlap_us", r->overlap_ns);
    ms_jwrite_kf64(w, "overlap_percent", share(r->overlap_ns, comm));
    key_us(w, "exposed_communication_us", comm - r->overlap_ns);
}

static void json_idle(const struct mstx_rank_breakdown *r, struct ms_jwrite *w)
{
    begin_list(w, "idle");
    for (size_t i = 0; i < r->idle.n; i++) {
        const struct mstx_stream_idle *s = &r->idle.p[i];
        ms_jwrite_obj(w);
        ms_jwrite_ki64(w, "device", s->device);
        ms_jwrite_ki64(w, "stream", s->stream);
        for (int k = 0; k < MSTX_IDLES; k++)
            key_us(w, idle_names[k], s->ns[k]);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
}

static void json_launches(const struct mstx_launches *l, struct ms_jwrite *w)
{
    ms_jwrite_key(w, MS_STR("launches"));
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "pairs", (int64_t)l->pairs);
    ms_jwrite_ki64(w, "longer_than_kernel", (int64_t)l->brief);
    ms_jwrite_ki64(w, "calls_over_50_us", (int64_t)l->slow);
    ms_jwrite_ki64(w, "delays_over_100_us", (int64_t)l->late);
    ms_jwrite_ki64(w, "negative_delays", (int64_t)l->at_once);
    key_us(w, "delay_median_us", l->median_delay_ns);
    key_us(w, "delay_max_us", l->most_delay_ns);
    ms_jwrite_obj_end(w);
}

static void json_kernel(struct mstx_tl *tl, const struct mstx_kernel_sum *k, struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    ms_jwrite_ktext(w, "name", mstx_tl_text(tl, k->name));
    ms_jwrite_kstr(w, "type", mstx__work_text(k->work));
    ms_jwrite_ki64(w, "count", (int64_t)k->count);
    key_us(w, "sum_us", k->total_ns);
    key_us(w, "min_us", k->least_ns);
    key_us(w, "max_us", k->most_ns);
    ms_jwrite_kf64(w, "mean_us", (double)k->total_ns / 1000 / (double)k->count);
    ms_jwrite_obj_end(w);
}

void mstx_breakdown_json(struct mstx_tl *tl, const mstx_breakdown *b, struct ms_jwrite *w)
{
    ms_jwrite_arr(w);
    for (size_t i = 0; i < b->n; i++) {
        const struct mstx_rank_breakdown *r = &b->p[i];
        ms_jwrite_obj(w);
        ms_jwrite_ki64(w, "rank", r->rank);
        json_use(r, w);
        json_idle(r, w);
        json_launches(&r->launches, w);
        begin_list(w, "kernels");
        for (size_t k = 0; k < r->kernel.n; k++)
            json_kernel(tl, &r->kernel.p[k], w);
        ms_jwrite_arr_end(w);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
}
