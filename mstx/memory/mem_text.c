/* SPDX-License-Identifier: MIT
 *
 * mem_text: the answers in sentences and tables.
 */
#include "mstx/memory/mem_report.h"

#include "probe/base/human.h"

#include <inttypes.h>
#include <string.h>

enum { ROWS_SHOWN = 10, NAME_WIDTH = 64 };

static const char *bytes_text(char buf[MS_HUMAN_MAX], uint64_t n)
{
    return ms_human_bytes(buf, n);
}

static double share_of(uint64_t part, uint64_t all)
{
    return all != 0 ? 100.0 * (double)part / (double)all : 0;
}

/* Writes "rank 3, cuda:0" or "cuda:0". */
static void put_space(struct ms_buf *out, const struct mstx_mem_space *s)
{
    if (s->rank >= 0)
        ms_buf_printf(out, "rank %d, ", (int)s->rank);
    ms_buf_str(out, s->device);
}

static struct ms_str text_of(const struct mstx_mem_report *r, uint32_t text)
{
    return text != 0 ? mstx__mem_text_of(r->log, text) : MS_STR("not known");
}

/* Returns the first share whose text is known, NULL when there is none. */
static const struct mstx_mem_share *first_known(const struct mstx_mem_share *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i].text != 0)
            return &p[i];
    }
    return NULL;
}

/* ---- sentences --------------------------------------------------------------------------- */

static void put_kinds(struct ms_buf *out, const struct mstx_mem_peak *p)
{
    enum { NAMED = 3 };
    bool done[MSTX_MEM_KIND_COUNT] = {false};
    for (int named = 0; named < NAMED; named++) {
        int best = -1;
        for (int k = 0; k < MSTX_MEM_KIND_COUNT; k++) {
            if (!done[k] && p->by_kind[k] != 0 && (best < 0 || p->by_kind[k] > p->by_kind[best]))
                best = k;
        }
        if (best < 0 || share_of(p->by_kind[best], p->bytes) < 1)
            return;
        done[best] = true;
        ms_buf_printf(out, "%s%.0f %% %s", named == 0 ? ": " : ", ",
                      share_of(p->by_kind[best], p->bytes),
                      mstx__mem_kind_text((enum mstx_mem_kind)best));
    }
}

static void put_peak(struct ms_buf *out, const struct mstx_mem_report *r,
                     const struct mstx_mem_answer *a)
{
    char n[MS_HUMAN_MAX];
    const struct mstx_mem_peak *p = &a->peak;
    ms_buf_printf(out, "peak: %s on ", bytes_text(n, p->bytes));
    put_space(out, a->space);
    if (p->step >= 0)
        ms_buf_printf(out, ", in step %" PRId64, p->step);
    put_kinds(out, p);
    const struct mstx_mem_share *f = first_known(p->frames.p, p->frames.n);
    if (f == NULL)
        f = first_known(p->ops.p, p->ops.n);
    if (f != NULL)
        ms_buf_printf(out, "; most of one place: %s by %.*s", bytes_text(n, f->bytes),
                      MS_STR_ARG(text_of(r, f->text)));
    ms_buf_putc(out, '\n');
}

static void put_site(struct ms_buf *out, const struct mstx_mem_report *r, uint32_t number)
{
    const struct mstx_mem_site *site = &r->log->sites.p[number];
    ms_buf_str(out, text_of(r, site->frame != 0 ? site->frame : site->op));
    if (site->frame != 0 && site->op != 0)
        ms_buf_printf(out, " (%.*s)", MS_STR_ARG(text_of(r, site->op)));
}

static void put_growth(struct ms_buf *out, const struct mstx_mem_report *r,
                       const struct mstx_mem_answer *a)
{
    char n[MS_HUMAN_MAX];
    const struct mstx_mem_growth *g = &a->growth;
    if (g->steps == 0) {
        ms_buf_printf(out, "growth: not decided, %zu %s too few (8 steps are needed)\n",
                      a->space->steps.n, a->space->steps.n == 1 ? "step is" : "steps are");
    } else if (g->leaks.n == 0) {
        ms_buf_printf(out, "growth: none in %u steps\n", g->steps);
    } else {
        const struct mstx_mem_leak *l = &g->leaks.p[0];
        ms_buf_printf(out, "growth: %s a step", bytes_text(n, (uint64_t)g->bytes_per_step));
        ms_buf_printf(out, ", %s of it left by ", bytes_text(n, (uint64_t)l->bytes_per_step));
        put_site(out, r, l->site);
        ms_buf_printf(out, " in %u of %u steps\n", l->steps, g->steps);
    }
}

static void put_fragments(struct ms_buf *out, const struct mstx_mem_answer *a)
{
    char n[3][MS_HUMAN_MAX];
    const struct mstx_mem_peak *p = &a->peak;
    if (p->reserved_most == 0)
        return;
    const uint64_t unused = p->reserved_then > p->bytes ? p->reserved_then - p->bytes : 0;
    ms_buf_printf(out, "fragmentation: %s of %s reserved at the peak hold no block (%.0f %%)",
                  bytes_text(n[0], unused), bytes_text(n[1], p->reserved_then),
                  share_of(unused, p->reserved_then));
    if (a->space->has_holes)
        ms_buf_printf(out, "; at the end %" PRIu64 " free parts, the largest %s", a->space->holes,
                      bytes_text(n[2], a->space->largest_hole));
    if (mstx__mem_advice(a) == MSTX_MEM_FRAGMENTED)
        ms_buf_puts(out, "; expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF joins free parts");
    ms_buf_putc(out, '\n');
}

static void put_failure(struct ms_buf *out, const struct mstx_mem_report *r,
                        const struct mstx_mem_answer *a)
{
    char n[MS_HUMAN_MAX];
    const struct mstx_mem_space *s = a->space;
    if (s->failures.n == 0)
        return;
    const struct mstx_mem_failure *f = &s->failures.p[s->failures.n - 1];
    ms_buf_printf(out, "out of memory: the last request wanted %s", bytes_text(n, f->wanted));
    if (f->site != 0) {
        ms_buf_puts(out, " at ");
        put_site(out, r, f->site);
    }
    if (f->device_free >= 0)
        ms_buf_printf(out, "; the device had %s", bytes_text(n, (uint64_t)f->device_free));
    if (s->has_holes) {
        ms_buf_printf(out, ", the allocator %s in %" PRIu64 " free parts",
                      bytes_text(n, s->free_bytes), s->holes);
        ms_buf_printf(out, ", the largest %s", bytes_text(n, s->largest_hole));
    }
    if (mstx__mem_advice(a) == MSTX_MEM_WOULD_FIT)
        ms_buf_puts(out, "; together they would hold it: expandable_segments:True in "
                         "PYTORCH_CUDA_ALLOC_CONF may help");
    ms_buf_putc(out, '\n');
}

static void put_ranks(struct ms_buf *out, const struct mstx_mem_report *r)
{
    char n[2][MS_HUMAN_MAX];
    if (!r->has_ranks)
        return;
    ms_buf_printf(out, "ranks: the peak of rank %d is %s, that of rank %d %s: ", (int)r->most_rank,
                  bytes_text(n[0], r->most), (int)r->least_rank, bytes_text(n[1], r->least));
    ms_buf_puts(out, mstx__mem_ranks_differ(r) ? "out of balance\n" : "in balance\n");
}

/* ---- tables -------------------------------------------------------------------------------- */

static void put_row(struct ms_buf *out, struct ms_str name, uint64_t bytes, uint64_t all)
{
    char n[MS_HUMAN_MAX];
    ms_buf_puts(out, "  ");
    ms_human_cell(out, name, NAME_WIDTH);
    ms_buf_printf(out, " %10s  %5.1f %%\n", bytes_text(n, bytes), share_of(bytes, all));
}

static void put_kind_table(struct ms_buf *out, const struct mstx_mem_peak *p)
{
    ms_buf_puts(out, "\nat the peak, by kind\n");
    for (int k = 0; k < MSTX_MEM_KIND_COUNT; k++) {
        if (p->by_kind[k] != 0)
            put_row(out, ms_str_of(mstx__mem_kind_text((enum mstx_mem_kind)k)), p->by_kind[k],
                    p->bytes);
    }
}

static void put_shares(struct ms_buf *out, const struct mstx_mem_report *r, const char *what,
                       const mstx_mem_shares *shares, uint64_t all, size_t most)
{
    const size_t shown = most == 0 || shares->n < most ? shares->n : most;
    if (first_known(shares->p, shares->n) == NULL)
        return;
    ms_buf_printf(out, "\nat the peak, by %s\n", what);
    for (size_t i = 0; i < shown; i++)
        put_row(out,
                shares->p[i].text != 0 ? text_of(r, shares->p[i].text) : ms_str_of("(none known)"),
                shares->p[i].bytes, all);
    ms_human_more(out, shares->n - shown, "");
}

static void put_leaks(struct ms_buf *out, const struct mstx_mem_report *r,
                      const struct mstx_mem_growth *g, size_t most)
{
    char n[MS_HUMAN_MAX];
    const size_t shown = most == 0 || g->leaks.n < most ? g->leaks.n : most;
    if (g->leaks.n == 0)
        return;
    ms_buf_puts(out, "\nleft behind by every step\n");
    for (size_t i = 0; i < shown; i++) {
        ms_buf_printf(out, "  %10s a step  ",
                      bytes_text(n, (uint64_t)g->leaks.p[i].bytes_per_step));
        put_site(out, r, g->leaks.p[i].site);
        ms_buf_putc(out, '\n');
    }
    ms_human_more(out, g->leaks.n - shown, "");
}

static void put_spaces(struct ms_buf *out, const struct mstx_mem_report *r, size_t most)
{
    char n[2][MS_HUMAN_MAX];
    const size_t shown = most == 0 || r->answers.n < most ? r->answers.n : most;
    if (r->answers.n < 2)
        return;
    ms_buf_puts(out, "\npeaks of all devices\n");
    for (size_t i = 0; i < shown; i++) {
        const struct mstx_mem_answer *a = &r->answers.p[i];
        ms_buf_puts(out, "  ");
        put_space(out, a->space);
        ms_buf_printf(out, "  %s", bytes_text(n[0], a->peak.bytes));
        if (a->peak.reserved_most != 0)
            ms_buf_printf(out, " of %s reserved", bytes_text(n[1], a->peak.reserved_most));
        ms_buf_putc(out, '\n');
    }
    ms_human_more(out, r->answers.n - shown, " devices");
}

void mstx__mem_report_text(const struct mstx_mem_report *r, size_t most, struct ms_buf *out)
{
    if (r->answers.n == 0) {
        ms_buf_printf(out, "%s: no memory events\n", r->path);
        return;
    }
    const struct mstx_mem_answer *a = &r->answers.p[0];
    put_peak(out, r, a);
    for (size_t i = 0; i < r->answers.n; i++)
        put_failure(out, r, &r->answers.p[i]);
    put_growth(out, r, a);
    put_fragments(out, a);
    put_ranks(out, r);
    put_spaces(out, r, most);
    put_kind_table(out, &a->peak);
    put_shares(out, r, "module", &a->peak.modules, a->peak.bytes, most);
    put_shares(out, r, "operator", &a->peak.ops, a->peak.bytes, most);
    put_shares(out, r, "line of the program", &a->peak.frames, a->peak.bytes, most);
    put_leaks(out, r, &a->growth, most);
    for (size_t i = 0; i < r->log->notes.n; i++)
        ms_buf_printf(out, "%s%.*s\n", i == 0 ? "\n" : "", MS_STR_ARG(r->log->notes.p[i]));
}
