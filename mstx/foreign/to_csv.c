/* SPDX-License-Identifier: MIT
 *
 * to_csv: writes the table msprof_tx.csv of Ascend's profiler.
 *
 * An event has a row for each of its device sides, with the times on the device, or one row of
 * device "host".  The device sides are collected first: they are few and have tracks of their own.
 *
 * Messages and domains are untrusted text: probe/base/csv.h quotes them and guards against
 * formulas.
 */
#include "mstx/foreign/to_csv.h"

#include "mstx/foreign/export.h"

#include "probe/base/csv.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ROWS_PER_FILE = 1000000 };

static const char header[] =
    "Device_id,pid,tid,category,event_type,payload_type,payload_value,Start_time(us),End_time(us),"
    "message_type,message,domain,Device Start_time(us),Device End_time(us)\n";

/* Device side of an event. Host event and device side have the same number within their process. */
struct side {
    uint32_t process, device;
    uint64_t number;
    int64_t start_ns, end_ns;
};

struct writer {
    struct mstx_tl *tl;
    const char *path;
    struct ms_out *out; /* NULL between files */
    uint64_t rows;
    unsigned files;
    const struct mstx_track *stream; /* the track whose device sides are collected */
    MS_VEC(struct side) side;
};

/* ---- device sides ----------------------------------------------------------- */

static int by_number(const void *pa, const void *pb)
{
    const struct side *a = pa, *b = pb;
    return MS_ORDER(a->process, b->process,
                    MS_ORDER(a->number, b->number, MS_ORDER(a->device, b->device, 0)));
}

static enum ms_rc keep_side(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct writer *w = ctx;
    struct side *s = ms_vec_push(&w->side);
    if (s == NULL)
        return ms_no_memory(err);
    *s = (struct side){.process = w->stream->process,
                       .device = w->stream->device,
                       .number = e->size,
                       .start_ns = e->start_ns,
                       .end_ns = e->start_ns + e->dur_ns};
    return MS_OK;
}

static enum ms_rc gather_sides(struct writer *w, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(w->tl); i++) {
        w->stream = mstx_tl_track(w->tl, i);
        if (w->stream->kind == MSTX_TRACK_STREAM)
            MS_TRY(mstx_tl_walk(w->tl, i, NULL, keep_side, w, err));
    }
    if (w->side.n != 0)
        qsort(w->side.p, w->side.n, sizeof *w->side.p, by_number);
    return MS_OK;
}

/* Returns the index of the first side of an event, which its other sides follow; w->side.n when
 * there is none. */
static size_t first_side(const struct writer *w, uint32_t process, uint64_t number)
{
    const struct side wanted = {.process = process, .number = number};
    size_t lo = 0, hi = number != 0 ? w->side.n : 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (by_number(&w->side.p[mid], &wanted) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool found = number != 0 && lo < w->side.n && w->side.p[lo].process == process &&
                 w->side.p[lo].number == number;
    return found ? lo : w->side.n;
}

/* ---- rows ------------------------------------------------------------------- */

/* Returns the path of a further file: "marks_1.csv" for "marks.csv". */
static char *number_path(const char *path, unsigned number)
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
    char *path = number_path(w->path, w->files++);
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_out_create(&w->out, path, err);
    ms_free(path);
    if (rc == MS_OK)
        ms_out_puts(w->out, header);
    return rc;
}

/* Writes a row. side is NULL for an event without a device side. */
static enum ms_rc write_line(struct writer *w, const struct mstx_track *t,
                             const struct mstx_event *e, const struct side *side,
                             struct ms_err *err)
{
    if (w->rows != 0 && w->rows % ROWS_PER_FILE == 0)
        MS_TRY(next_file(w, err));
    w->rows++;
    if (side != NULL)
        ms_out_printf(w->out, "%" PRIu32, side->device);
    else
        ms_out_puts(w->out, "host");
    ms_out_printf(w->out, ",%" PRIu32 ",%" PRIu32 ",N/A,%s,N/A,N/A,",
                  mstx_tl_process(w->tl, t->process)->pid, t->tid, mstx__event_type_text(e));
    mstx__put_us(w->out, e->start_ns);
    ms_out_putc(w->out, ',');
    mstx__put_us(w->out, e->start_ns + e->dur_ns);
    ms_out_puts(w->out, ",N/A,");
    ms_csv_write(w->out, mstx_tl_text(w->tl, e->name), MS_CSV_FOREIGN);
    ms_out_putc(w->out, ',');
    ms_csv_write(w->out, t->domain, MS_CSV_FOREIGN);
    if (side == NULL) {
        ms_out_puts(w->out, ",N/A,N/A\n");
        return MS_OK;
    }
    ms_out_putc(w->out, ',');
    mstx__put_us(w->out, side->start_ns);
    ms_out_putc(w->out, ',');
    mstx__put_us(w->out, side->end_ns);
    ms_out_putc(w->out, '\n');
    return MS_OK;
}

static enum ms_rc write_row(void *ctx, size_t track, const struct mstx_event *e, struct ms_err *err)
{
    struct writer *w = ctx;
    const struct mstx_track *t = mstx_tl_track(w->tl, track);
    size_t i = first_side(w, t->process, e->kind <= MSTX_EV_PUSHPOP ? e->size : 0);
    if (i == w->side.n)
        return write_line(w, t, e, NULL, err);
    for (; i < w->side.n && w->side.p[i].process == t->process && w->side.p[i].number == e->size;
         i++)
        MS_TRY(write_line(w, t, e, &w->side.p[i], err));
    return MS_OK;
}

enum ms_rc mstx_export_csv(struct mstx_tl *tl, const char *path, struct ms_err *err)
{
    struct writer w = {.tl = tl, .path = path};
    enum ms_rc rc = gather_sides(&w, err);
    if (rc == MS_OK)
        rc = next_file(&w, err);
    if (rc == MS_OK)
        rc = mstx__merge(tl, MSTX_ALL_RANKS, write_row, &w, err);
    if (rc == MS_OK)
        rc = mstx__tl_check(tl, err);
    ms_vec_free(&w.side);
    if (rc == MS_OK)
        return ms_out_commit(w.out, err);
    ms_out_abort(w.out);
    return rc;
}
