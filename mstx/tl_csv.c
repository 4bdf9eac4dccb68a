/* SPDX-License-Identifier: MIT
 *
 * tl_csv: the table msprof_tx.csv of Ascend's profiler.
 *
 * Messages are quoted where CSV needs it.  One that a spreadsheet would take for a
 * formula gets an apostrophe in front, as spreadsheets themselves do it.
 */
#include "mstx/tl_export.h"

#include "probe/base/mem.h"

#include <inttypes.h>

enum { ROWS_PER_FILE = 1000000 };

static const char header[] =
    "Device_id,pid,tid,category,event_type,payload_type,payload_value,Start_time(us),End_time(us),"
    "message_type,message,domain,Device Start_time(us),Device End_time(us)\n";

struct writer {
    struct mstx_tl *tl;
    const char *path;
    struct ms_out *out; /* NULL between files */
    uint64_t rows;
    unsigned files;
};

/* "marks.csv" becomes "marks_1.csv". */
static char *numbered(const char *path, unsigned number)
{
    struct ms_buf b = {.max = 1 << 16};
    struct ms_str all = ms_str_of(path), ending = MS_STR(".csv");
    uint32_t stem = ms_str_ends(all, ending) ? all.n - ending.n : all.n;
    ms_buf_str(&b, ms_str_sub(all, 0, stem));
    if (number != 0)
        ms_buf_printf(&b, "_%u", number);
    ms_buf_str(&b, ms_str_sub(all, stem, all.n));
    ms_buf_z(&b);
    return b.bad == MS_OK ? b.p : NULL;
}

static enum ms_rc next_file(struct writer *w, struct ms_err *err)
{
    if (w->out != NULL) {
        struct ms_out *full = w->out;
        w->out = NULL;
        MS_TRY(ms_out_commit(full, err));
    }
    char *path = numbered(w->path, w->files++);
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_out_create(&w->out, path, err);
    ms_free(path);
    if (rc == MS_OK)
        ms_out_puts(w->out, header);
    return rc;
}

static bool needs_quotes(struct ms_str s)
{
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.p[i] == ',' || s.p[i] == '"' || s.p[i] == '\n' || s.p[i] == '\r')
            return true;
    }
    return false;
}

static void put_field(struct ms_out *o, struct ms_str s)
{
    bool quotes = needs_quotes(s);
    if (quotes)
        ms_out_putc(o, '"');
    if (s.n != 0 && memchr("=+-@\t\r", s.p[0], 6) != NULL)
        ms_out_putc(o, '\'');
    for (struct ms_str rest = s, part; ms_str_split(&rest, '"', &part);) {
        ms_out_str(o, part);
        if (rest.p != NULL)
            ms_out_puts(o, "\"\"");
    }
    if (quotes)
        ms_out_putc(o, '"');
}

static enum ms_rc put_row(void *ctx, size_t track, const struct mstx_event *e, struct ms_err *err)
{
    struct writer *w = ctx;
    const struct mstx_track *t = mstx_tl_track(w->tl, track);
    if (w->rows != 0 && w->rows % ROWS_PER_FILE == 0)
        MS_TRY(next_file(w, err));
    w->rows++;
    ms_out_printf(w->out, "host,%" PRIu32 ",%" PRIu32 ",N/A,%s,N/A,N/A,",
                  mstx_tl_process(w->tl, t->process)->pid, t->tid, mstx__event_type_text(e));
    mstx__put_us(w->out, e->start_ns);
    ms_out_putc(w->out, ',');
    mstx__put_us(w->out, e->start_ns + e->dur_ns);
    ms_out_puts(w->out, ",N/A,");
    put_field(w->out, mstx_tl_text(w->tl, e->name));
    ms_out_putc(w->out, ',');
    put_field(w->out, t->domain);
    ms_out_puts(w->out, ",N/A,N/A\n");
    return MS_OK;
}

enum ms_rc mstx_export_csv(struct mstx_tl *tl, const char *path, struct ms_err *err)
{
    struct writer w = {.tl = tl, .path = path};
    enum ms_rc rc = next_file(&w, err);
    if (rc == MS_OK)
        rc = mstx__merge(tl, MSTX_ALL_RANKS, put_row, &w, err);
    if (rc == MS_OK)
        rc = mstx__tl_check(tl, err);
    if (rc == MS_OK)
        return ms_out_commit(w.out, err);
    ms_out_abort(w.out);
    return rc;
}
