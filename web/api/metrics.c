/* SPDX-License-Identifier: MIT
 *
 * metrics: writes counters as text.
 */
#include "web/api/metrics.h"

#include "viz/model/finding.h"

#include "probe/base/clock.h"

#include <inttypes.h>

void web_metrics_init(struct web_metrics *m)
{
    m->start_ns = ms_clock_ns();
}

void web_metrics_count(struct web_metrics *m, bool ok, int64_t took_ns, size_t bytes)
{
    atomic_fetch_add_explicit(ok ? &m->answered : &m->failed, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->busy_ns, (uint64_t)took_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->bytes, bytes, memory_order_relaxed);
}

void web_metrics_refused(struct web_metrics *m)
{
    atomic_fetch_add_explicit(&m->refused, 1, memory_order_relaxed);
}

static void put_head(struct ms_buf *b, const char *name, const char *type, const char *help)
{
    ms_buf_printf(b, "# HELP msprobe_%s %s\n# TYPE msprobe_%s %s\n", name, help, name, type);
}

static void put_server(struct web_metrics *m, struct ms_buf *b)
{
    put_head(b, "http_requests_total", "counter", "Questions of pages, by how they ended.");
    ms_buf_printf(b, "msprobe_http_requests_total{result=\"ok\"} %" PRIu64 "\n", m->answered);
    ms_buf_printf(b, "msprobe_http_requests_total{result=\"failed\"} %" PRIu64 "\n", m->failed);
    ms_buf_printf(b, "msprobe_http_requests_total{result=\"refused\"} %" PRIu64 "\n", m->refused);
    put_head(b, "http_reply_bytes_total", "counter", "Bytes of answers.");
    ms_buf_printf(b, "msprobe_http_reply_bytes_total %" PRIu64 "\n", m->bytes);
    put_head(b, "http_busy_seconds_total", "counter", "Time spent on answers.");
    ms_buf_printf(b, "msprobe_http_busy_seconds_total %.6f\n", (double)m->busy_ns / 1e9);
    put_head(b, "http_uptime_seconds", "gauge", "Time since the server started.");
    ms_buf_printf(b, "msprobe_http_uptime_seconds %.3f\n",
                  (double)(ms_clock_ns() - m->start_ns) / 1e9);
}

/* Writes a label with backslash, quote and newline escaped. */
static void put_label(struct ms_buf *b, struct ms_str s)
{
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\n')
            ms_buf_puts(b, "\\n");
        else if (s.p[i] == '\\' || s.p[i] == '"')
            ms_buf_printf(b, "\\%c", s.p[i]);
        else
            ms_buf_putc(b, s.p[i]);
    }
}

static void put_processes(struct mstx_tl *tl, struct ms_buf *b)
{
    put_head(b, "process_dropped_records_total", "counter",
             "Records that a process could not keep.");
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++) {
        const struct mstx_process *p = mstx_tl_process(tl, i);
        ms_buf_printf(b, "msprobe_process_dropped_records_total{rank=\"%" PRId32 "\",host=\"",
                      p->rank);
        put_label(b, p->host);
        ms_buf_printf(b, "\",pid=\"%" PRIu32 "\"} %" PRIu64 "\n", p->pid, p->dropped);
    }
}

static enum ms_rc put_findings(const struct viz_reader *r, struct ms_buf *b, struct ms_err *err)
{
    uint64_t n[VIZ_INFO + 1] = {0};
    struct viz_findings f;
    MS_TRY(viz_findings_read(&f, r, VIZ_ENGLISH, err));
    for (enum viz_severity s = VIZ_ERROR; s <= VIZ_INFO; s++)
        n[s] = f.unlisted[s];
    for (size_t i = 0; i < f.list.n; i++)
        n[f.list.p[i].severity] += !ms_str_is(f.list.p[i].kind, "unlisted");
    viz_findings_free(&f);
    put_head(b, "findings", "gauge", "What is wrong with the run, by severity.");
    for (enum viz_severity s = VIZ_ERROR; s <= VIZ_INFO; s++)
        ms_buf_printf(b, "msprobe_findings{severity=\"%s\"} %" PRIu64 "\n", viz_severity_name(s),
                      n[s]);
    return MS_OK;
}

enum ms_rc web_metrics_write(struct web_metrics *m, const struct viz_reader *r, struct ms_buf *out,
                             struct ms_err *err)
{
    put_server(m, out);
    if (r->tl != NULL)
        put_processes(r->tl, out);
    MS_TRY(put_findings(r, out, err));
    return ms_buf_check(out, err);
}
