/* SPDX-License-Identifier: MIT
 *
 * events: reads monitor csv files and writes TensorBoard's records.
 *
 * A record is its length (8 bytes), a masked CRC-32C of those, the message, and a masked CRC-32C of it. Messages are
 * protocol buffers: Event {1: wall time, double; 2: step; 3: file version, text; 5: Summary}, Summary {1: Value},
 * Value {1: tag; 2: simple value, float}.
 */
#include "probe/trend/events.h"

#include "probe/base/arena.h"
#include "probe/base/csv.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/trend/trend_int.h"

#include <stdlib.h>
#include <time.h>

#define CSV_MAX ((size_t)1 << 32)

static const char *const op_names[] = {"norm", "min", "max", "zeros", "nans", "id", "mean"};
enum { OPS = sizeof op_names / sizeof *op_names };

/* ---- records ----------------------------------------------------------- */

static uint32_t crc32c(const char *p, size_t n)
{
    static uint32_t table[256];
    if (table[1] == 0) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; bit++)
                c = c >> 1 ^ (0x82f63b78U & -(c & 1));
            table[i] = c;
        }
    }
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < n; i++)
        c = c >> 8 ^ table[(c ^ (uint8_t)p[i]) & 0xff];
    return ~c;
}

static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

static void put_fixed(struct ms_buf *b, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        ms_buf_putc(b, (char)(v >> 8 * i));
}

static void put_varint(struct ms_buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        ms_buf_putc(b, (char)(v | 0x80));
    ms_buf_putc(b, (char)v);
}

static void put_bytes(struct ms_buf *b, unsigned field, struct ms_str text)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, text.n);
    ms_buf_str(b, text);
}

static void put_record(struct ms_out *out, const struct ms_buf *event)
{
    char text[24];
    struct ms_buf frame = {.p = text, .cap = sizeof text, .max = sizeof text};
    put_fixed(&frame, event->n, 8);
    put_fixed(&frame, masked(crc32c(text, 8)), 4);
    ms_out_write(out, text, 12);
    ms_out_write(out, event->p, event->n);
    frame.n = 0;
    put_fixed(&frame, masked(crc32c(event->p, event->n)), 4);
    ms_out_write(out, text, 4);
}

static void begin_event(struct ms_buf *event, double time)
{
    uint64_t bits;
    memcpy(&bits, &time, sizeof bits);
    ms_buf_clear(event);
    put_varint(event, 1 << 3 | 1);
    put_fixed(event, bits, 8);
}

/* ---- curves ------------------------------------------------------------ */

struct point {
    uint32_t tag; /* index of its curve */
    int64_t step;
    float value;
};

/* One rank's curves of one metric. */
struct curves {
    struct ms_map tags;
    struct ms_arena *arena;
    MS_VEC(struct point) points;
    struct ms_buf scratch;
};

static enum ms_rc add_point(struct curves *c, struct ms_str tag, int64_t step, double value,
                            struct ms_err *err)
{
    const uint32_t at = ms_map_put_copy(&c->tags, tag, c->arena, NULL);
    struct point *p = at != MS_MAP_NONE ? ms_vec_push(&c->points) : NULL;
    if (p == NULL)
        return ms_no_memory(err);
    *p = (struct point){at, step, (float)value};
    return MS_OK;
}

struct columns {
    int stage, name, step, micro, op[OPS];
};

static int column_of(const struct ms_csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->fields.n; i++) {
        if (ms_str_is(csv->fields.p[i], name))
            return (int)i;
    }
    return -1;
}

static struct ms_str field(const struct ms_csv *csv, int column)
{
    return column >= 0 && (size_t)column < csv->fields.n ? csv->fields.p[column] : MS_STR("");
}

static enum ms_rc read_row(struct curves *c, const struct ms_csv *csv, const struct columns *at,
                           struct ms_err *err)
{
    double value, step;
    if (!ms_csv_number(field(csv, at->step), &step) || !(step >= 0 && step < 1e15))
        return ms_fail_at(err, MS_E_FORMAT, csv->line, csv->at - csv->start,
                          "expected the number of a step");
    ms_buf_clear(&c->scratch);
    ms_buf_printf(&c->scratch, "vp%.*s:%.*s", MS_STR_ARG(field(csv, at->stage)),
                  MS_STR_ARG(field(csv, at->name)));
    if (at->micro >= 0)
        ms_buf_printf(&c->scratch, ":micro%.*s", MS_STR_ARG(field(csv, at->micro)));
    const size_t base = c->scratch.n;
    for (unsigned i = 0; i < OPS; i++) {
        if (at->op[i] < 0 || !ms_csv_number(field(csv, at->op[i]), &value))
            continue;
        c->scratch.n = base;
        ms_buf_printf(&c->scratch, "/%s", op_names[i]);
        MS_TRY(ms_buf_check(&c->scratch, err));
        MS_TRY(add_point(c, ms_buf_slice(&c->scratch), (int64_t)step, value, err));
    }
    return MS_OK;
}

static enum ms_rc read_rows(struct curves *c, struct ms_csv *csv, struct ms_err *err)
{
    bool more;
    MS_TRY(ms_csv_next(csv, &more, err));
    struct columns at = {.stage = column_of(csv, "vpp_stage"),
                         .name = column_of(csv, "name"),
                         .step = column_of(csv, "step"),
                         .micro = column_of(csv, "micro_step")};
    for (unsigned i = 0; i < OPS; i++)
        at.op[i] = column_of(csv, op_names[i]);
    if (at.stage < 0 || at.name < 0 || at.step < 0)
        return ms_fail_at(err, MS_E_FORMAT, 1, 0, "expected the columns vpp_stage, name and step");
    for (;;) {
        MS_TRY(ms_csv_next(csv, &more, err));
        if (!more)
            return MS_OK;
        MS_TRY(read_row(c, csv, &at, err));
    }
}

static enum ms_rc read_file(struct curves *c, const char *path, struct ms_err *err)
{
    struct ms_file file;
    struct ms_csv csv;
    MS_TRY(ms_file_map(&file, path, CSV_MAX, err));
    ms_csv_init(&csv, file.p, file.n);
    enum ms_rc rc = read_rows(c, &csv, err);
    ms_csv_free(&csv);
    ms_file_unmap(&file);
    if (rc != MS_OK)
        ms_err_wrap(err, "%s", path);
    return rc;
}

/* ---- one event file ---------------------------------------------------- */

static int by_step(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->tag > y->tag) - (x->tag < y->tag);
}

static void put_point(struct ms_out *out, struct ms_buf event[3], double time,
                      const struct curves *c, const struct point *p)
{
    struct ms_buf *value = &event[1], *summary = &event[2];
    uint32_t bits;
    memcpy(&bits, &p->value, sizeof bits);
    ms_buf_clear(value);
    put_bytes(value, 1, ms_map_key(&c->tags, p->tag));
    put_varint(value, 2 << 3 | 5);
    put_fixed(value, bits, 4);
    ms_buf_clear(summary);
    put_bytes(summary, 1, ms_buf_slice(value));
    begin_event(&event[0], time);
    put_varint(&event[0], 2 << 3 | 0);
    put_varint(&event[0], (uint64_t)p->step);
    put_bytes(&event[0], 5, ms_buf_slice(summary));
    put_record(out, &event[0]);
}

static enum ms_rc write_events(struct curves *c, const char *folder, struct ms_err *err)
{
    struct ms_buf path = {.max = 1 << 16},
                  event[3] = {{.max = 1 << 24}, {.max = 1 << 24}, {.max = 1 << 24}};
    struct ms_out *out = NULL;
    const time_t now = time(NULL);
    ms_buf_printf(&path, "%s/events.out.tfevents.%lld.msprobe", folder, (long long)now);
    enum ms_rc rc = ms_buf_check(&path, err);
    if (rc == MS_OK)
        rc = ms_out_create(&out, ms_buf_z(&path), err);
    if (rc == MS_OK) {
        begin_event(&event[0], (double)now);
        put_bytes(&event[0], 3, MS_STR("brain.Event:2"));
        put_record(out, &event[0]);
        qsort(c->points.p, c->points.n, sizeof *c->points.p, by_step);
        for (size_t i = 0; i < c->points.n; i++)
            put_point(out, event, (double)now, c, &c->points.p[i]);
        rc = ms_buf_check(&event[0], err);
    }
    if (rc == MS_OK)
        rc = ms_out_commit(out, err);
    else
        ms_out_abort(out);
    for (int i = 0; i < 3; i++)
        ms_buf_free(&event[i]);
    ms_buf_free(&path);
    return rc;
}

/* ---- folders ----------------------------------------------------------- */

struct conversion {
    struct probe_events_made *made;
    const char *out;
    void (*on_note)(void *ctx, const struct ms_err *why);
    void *ctx;
};

static enum ms_rc read_metric(struct conversion *v, struct curves *c, const char *dir,
                              const struct ms_dir *d, unsigned metric, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    unsigned found;
    for (size_t i = 0; i < d->names.n && rc == MS_OK; i++) {
        struct ms_err bad = {0};
        if (!probe__is_metric_file(d->names.p[i], &found) || found != metric)
            continue;
        char *path = ms_path_join(dir, d->names.p[i].p);
        enum ms_rc read = path != NULL ? read_file(c, path, &bad) : ms_no_memory(&bad);
        ms_free(path);
        v->made->read += read == MS_OK;
        v->made->failed += read != MS_OK;
        if (read == MS_E_NOMEM)
            rc = ms_no_memory(err);
        else if (read != MS_OK && v->on_note != NULL)
            v->on_note(v->ctx, &bad);
    }
    return rc;
}

static enum ms_rc convert_metric(struct conversion *v, const char *dir, const struct ms_dir *d,
                                 int64_t rank, unsigned metric, struct ms_err *err)
{
    struct curves c = {.arena = ms_arena_new(SIZE_MAX), .scratch.max = 1 << 20};
    struct ms_buf folder = {.max = 1 << 16};
    enum ms_rc rc = c.arena != NULL ? read_metric(v, &c, dir, d, metric, err) : ms_no_memory(err);
    ms_buf_printf(&folder, "%s/rank%lld/%s", v->out, (long long)rank, probe__metric_name(metric));
    if (rc == MS_OK)
        rc = ms_buf_check(&folder, err);
    if (rc == MS_OK && c.points.n != 0) {
        v->made->values += c.points.n;
        v->made->files++;
        rc = write_events(&c, ms_buf_z(&folder), err);
    }
    ms_buf_free(&folder);
    ms_buf_free(&c.scratch);
    ms_vec_free(&c.points);
    ms_map_free(&c.tags);
    ms_arena_free(c.arena);
    return rc;
}

static enum ms_rc convert_rank(struct conversion *v, const char *dir, int64_t rank,
                               struct ms_err *err)
{
    struct ms_dir d;
    enum ms_rc rc = MS_OK;
    MS_TRY(ms_dir_list(&d, dir, err));
    for (unsigned metric = 0; metric < PROBE__METRICS && rc == MS_OK; metric++)
        rc = convert_metric(v, dir, &d, rank, metric, err);
    ms_dir_free(&d);
    return rc;
}

static enum ms_rc convert_all(struct conversion *v, const char *dir, const struct ms_dir *d,
                              struct ms_err *err)
{
    for (size_t i = 0; i < d->names.n; i++) {
        int64_t rank;
        enum ms_rc rc = MS_OK;
        if (!probe__is_rank_dir(d->names.p[i], &rank))
            continue;
        char *path = ms_path_join(dir, d->names.p[i].p);
        if (path == NULL)
            return ms_no_memory(err);
        if (ms_path_kind(path) == MS_KIND_DIR)
            rc = convert_rank(v, path, rank, err);
        ms_free(path);
        MS_TRY(rc);
    }
    return MS_OK;
}

enum ms_rc probe_events_convert(struct probe_events_made *made, const char *dir, const char *out,
                                void (*on_note)(void *ctx, const struct ms_err *why), void *ctx,
                                struct ms_err *err)
{
    struct ms_dir d;
    struct conversion v = {made, out, on_note, ctx};
    *made = (struct probe_events_made){0};
    MS_TRY(ms_want_dir(dir, err));
    MS_TRY(ms_dir_list(&d, dir, err));
    enum ms_rc rc = convert_all(&v, dir, &d, err);
    ms_dir_free(&d);
    if (rc == MS_OK && made->files == 0)
        return ms_fail(err, MS_E_NOTFOUND,
                       "%s: no monitor output in it; expected TIME-rankN-ID/METRIC_A-B.csv", dir);
    return rc;
}
