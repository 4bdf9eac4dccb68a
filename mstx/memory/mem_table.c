/* SPDX-License-Identifier: MIT
 *
 * mem_table: the answers as one table: who owns the peak, by kind, module, operator and line; what every step
 * leaves behind; requests that failed.
 */
#include "mstx/memory/mem_report.h"

#include "probe/base/csv.h"

#include <inttypes.h>
#include <math.h>

struct place {
    const struct mstx_mem_report *r;
    const struct mstx_mem_answer *a;
    struct ms_buf *out;
};

/* Writes a row; share: of the peak, in per cent. */
static void put_row(const struct place *at, const char *by, struct ms_str name, uint64_t bytes,
                    const char *result)
{
    const uint64_t peak = at->a->peak.bytes;
    ms_csv_put(at->out, name, MS_CSV_OWN);
    ms_buf_printf(at->out, ",%s,%" PRIu64 ",%.1f%%,%s,", by, bytes,
                  peak != 0 ? 100.0 * (double)bytes / (double)peak : 0, result);
    if (at->a->space->rank >= 0)
        ms_buf_printf(at->out, "%" PRId32, at->a->space->rank);
    ms_buf_putc(at->out, ',');
    ms_csv_put(at->out, at->a->space->device, MS_CSV_OWN);
    ms_buf_putc(at->out, '\n');
}

static struct ms_str name_of(const struct place *at, uint32_t text)
{
    return text != 0 ? mstx__mem_text_of(at->r->log, text) : MS_STR("not known");
}

static struct ms_str name_of_site(const struct place *at, uint32_t number)
{
    const struct mstx_mem_site *site = &at->r->log->sites.p[number];
    return name_of(at, site->frame != 0 ? site->frame : site->op);
}

static void put_kinds(const struct place *at)
{
    for (int k = 0; k < MSTX_MEM_KIND_COUNT; k++) {
        if (at->a->peak.by_kind[k] != 0)
            put_row(at, "kind", ms_str_of(mstx__mem_kind_text((enum mstx_mem_kind)k)),
                    at->a->peak.by_kind[k], "");
    }
}

static void put_shares(const struct place *at, const char *by, const mstx_mem_shares *list)
{
    if (list->n == 1 && list->p[0].text == 0) /* nothing is known */
        return;
    for (size_t i = 0; i < list->n; i++)
        put_row(at, by, name_of(at, list->p[i].text), list->p[i].bytes, "");
}

static void put_leaks(const struct place *at)
{
    for (size_t i = 0; i < at->a->growth.leaks.n; i++) {
        const struct mstx_mem_leak *l = &at->a->growth.leaks.p[i];
        put_row(at, "left by each step", name_of_site(at, l->site),
                (uint64_t)llround(l->bytes_per_step), "warning");
    }
}

static void put_failures(const struct place *at)
{
    for (size_t i = 0; i < at->a->space->failures.n; i++) {
        const struct mstx_mem_failure *f = &at->a->space->failures.p[i];
        put_row(at, "request that failed", name_of_site(at, f->site), f->wanted, "error");
    }
}

enum ms_rc mstx__mem_report_table(const struct mstx_mem_report *r, struct ms_buf *out,
                                  struct ms_err *err)
{
    ms_buf_puts(out, "name,by,bytes,share of the peak,Result,rank,device\n");
    for (size_t i = 0; i < r->answers.n; i++) {
        const struct place at = {r, &r->answers.p[i], out};
        put_failures(&at);
        put_leaks(&at);
        put_kinds(&at);
        put_shares(&at, "module", &at.a->peak.modules);
        put_shares(&at, "operator", &at.a->peak.ops);
        put_shares(&at, "line", &at.a->peak.frames);
    }
    return ms_buf_check(out, err);
}
