/* SPDX-License-Identifier: MIT
 *
 * prometheus: aggregates of a run in the text format of Prometheus, for a textfile collector or a
 * push gateway.  Series are per rank or per communicator and operation, never per call.
 */
#include "mstx/conclude/run_report.h"

#include <inttypes.h>

static void put_head(struct ms_buf *b, const char *name, const char *type, const char *help)
{
    ms_buf_printf(b, "# HELP msprobe_%s %s\n# TYPE msprobe_%s %s\n", name, help, name, type);
}

/* Writes the value of a label: escapes backslash, quote and newline, and replaces invalid UTF-8, for
 * which Prometheus would reject the whole text. */
static void put_label(struct ms_buf *b, const char *text)
{
    const char *end = text + strlen(text);
    while (text < end) {
        const unsigned n = ms_utf8_len(text, (size_t)(end - text));
        if (*text == '\n')
            ms_buf_puts(b, "\\n");
        else if (*text == '\\' || *text == '"')
            ms_buf_printf(b, "\\%c", *text);
        else if (n == 0)
            ms_buf_puts(b, "\xEF\xBF\xBD");
        else
            ms_buf_put(b, text, n);
        text += n != 0 ? n : 1;
    }
}

static void put_findings(const struct mstx_report *r, struct ms_buf *b)
{
    put_head(b, "findings", "gauge", "What is wrong with the run, by kind and severity.");
    for (size_t i = 0; i < r->findings.n;) {
        const struct mstx_finding *f = &r->findings.p[i];
        size_t n = 0;
        for (; i < r->findings.n; i++, n++) { /* findings are sorted by severity and kind */
            const struct mstx_finding *g = &r->findings.p[i];
            if (g->severity != f->severity || strcmp(g->kind, f->kind) != 0)
                break;
        }
        ms_buf_printf(b, "msprobe_findings{kind=\"%s\",severity=\"%s\"} %zu\n", f->kind,
                      mstx_severity_text(f->severity), n);
    }
}

static void put_comm(const struct mstx_report *r, struct ms_buf *b, const char *name,
                     const char *help, double (*value)(const struct mstx_comm_row *row))
{
    put_head(b, name, "counter", help);
    for (size_t i = 0; i < r->comms.n; i++) {
        const struct mstx_comm_row *row = &r->comms.p[i];
        ms_buf_printf(b, "msprobe_%s{communicator=\"", name);
        put_label(b, row->group);
        ms_buf_puts(b, "\",op=\"");
        put_label(b, row->op);
        /* the id makes series unique, since names of communicators need not be */
        ms_buf_printf(b, "\",id=\"%" PRId64 "\"} %.9g\n", row->id, value(row));
    }
}

static double calls_of(const struct mstx_comm_row *r)
{
    return (double)r->calls;
}
static double bytes_of(const struct mstx_comm_row *r)
{
    return (double)r->bytes;
}
static double seconds_of(const struct mstx_comm_row *r)
{
    return (double)r->total_ns / 1e9;
}

static void put_ranks(const struct mstx_use *u, struct ms_buf *b)
{
    put_head(b, "rank_steps_total", "counter", "Steps of a rank.");
    for (size_t i = 0; i < u->rank.n; i++)
        ms_buf_printf(b, "msprobe_rank_steps_total{rank=\"%" PRId64 "\"} %" PRId64 "\n",
                      u->rank.p[i].rank, u->rank.p[i].steps);
    put_head(b, "rank_step_seconds", "gauge",
             "Mean time of a step of a rank, by what it was spent on.");
    for (size_t i = 0; i < u->rank.n; i++) {
        for (int k = 0; k < MSTX_USE_PARTS; k++)
            ms_buf_printf(b, "msprobe_rank_step_seconds{rank=\"%" PRId64 "\",part=\"%s\"} %.9g\n",
                          u->rank.p[i].rank, mstx_use_names[k], u->rank.p[i].ns[k] / 1e9);
    }
    if (u->peak > 0) {
        put_head(b, "rank_flops_utilization", "gauge",
                 "Share of the peak, of the model and in all.");
        for (size_t i = 0; i < u->rank.n; i++)
            ms_buf_printf(b,
                          "msprobe_rank_flops_utilization{rank=\"%" PRId64 "\",of=\"model\"} %.6g\n"
                          "msprobe_rank_flops_utilization{rank=\"%" PRId64
                          "\",of=\"machine\"} %.6g\n",
                          u->rank.p[i].rank, mstx_use_mfu(u, &u->rank.p[i]), u->rank.p[i].rank,
                          mstx_use_hfu(u, &u->rank.p[i]));
    }
    put_head(b, "rank_memory_bytes_max", "gauge",
             "The most that a memory counter of a rank showed.");
    for (size_t i = 0; i < u->memory.n; i++) {
        ms_buf_printf(b, "msprobe_rank_memory_bytes_max{rank=\"%" PRId64 "\",counter=\"",
                      u->memory.p[i].rank);
        put_label(b, u->memory.p[i].name);
        ms_buf_printf(b, "\"} %" PRId64 "\n", u->memory.p[i].most);
    }
}

void mstx_report_prometheus(const struct mstx_report *r, struct ms_buf *out)
{
    put_findings(r, out);
    put_head(out, "step_median_seconds", "gauge", "The median of all steps.");
    ms_buf_printf(out, "msprobe_step_median_seconds %.9g\n", (double)r->step_median_ns / 1e9);
    put_ranks(&r->use, out);
    put_comm(r, out, "comm_calls_total", "Communication calls of all ranks.", calls_of);
    put_comm(r, out, "comm_bytes_total", "Bytes that these calls were given.", bytes_of);
    put_comm(r, out, "comm_seconds_total", "Time in these calls.", seconds_of);
}
