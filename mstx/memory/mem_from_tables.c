/* SPDX-License-Identifier: MIT
 *
 * mem_from_tables: tables of memory use that other tools write as CSV.
 *
 *     MindSpore  memory_block.csv     start_time_stamp, end_time_stamp, size, type, node_name, ..
 *     Ascend     operator_memory.csv  Name, Size(KB), Allocation Time(us), Release Time(us), ..
 *     Ascend     memory_record.csv    Component, Timestamp(us), Total Allocated(MB), ..
 *
 * Each row of the first two is one allocation with both its times. The time stamps of MindSpore
 * count the tasks of its tracker.
 */
#include "mstx/memory/mem_kinds.h"
#include "mstx/memory/mem_read.h"

#include "probe/base/csv.h"
#include "probe/base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const size_t FILE_MAX = (size_t)16 << 30;

/* ---- columns ------------------------------------------------------------------------------ */

enum column {
    COL_BEGIN,
    COL_END,
    COL_BYTES,
    COL_NAME,
    COL_TYPE,
    COL_TASK,
    COL_GRAPH,
    COL_STACK,
    COL_PERSISTENT,
    COL_DEVICE,
    COL_DURATION,
    COL_ALLOCATED,
    COL_RESERVED,
    COLUMNS
};

/* A form of table: what its columns are called, and what its numbers are multiplied with. */
struct form {
    const char *names[COLUMNS];
    double time_ns, bytes, total; /* of one unit of times, of sizes and of totals */
    bool is_totals;               /* rows are totals at a time, no allocations */
};

static const struct form mindspore = {.names = {[COL_BEGIN] = "start_time_stamp",
                                                [COL_END] = "end_time_stamp",
                                                [COL_BYTES] = "size",
                                                [COL_NAME] = "node_name",
                                                [COL_TYPE] = "type",
                                                [COL_TASK] = "task_name",
                                                [COL_GRAPH] = "graph_name",
                                                [COL_STACK] = "python_stack",
                                                [COL_PERSISTENT] = "is_persistent",
                                                [COL_DEVICE] = "pool_type"},
                                      .time_ns = 1,
                                      .bytes = 1};
static const struct form operators = {.names = {[COL_BEGIN] = "Allocation Time(us)",
                                                [COL_END] = "Release Time(us)",
                                                [COL_BYTES] = "Size(KB)",
                                                [COL_NAME] = "Name",
                                                [COL_DEVICE] = "Device Type",
                                                [COL_DURATION] = "Duration(us)",
                                                [COL_ALLOCATED] = "Allocation Total Allocated(MB)",
                                                [COL_RESERVED] = "Allocation Total Reserved(MB)"},
                                      .time_ns = 1e3,
                                      .bytes = 1024,
                                      .total = 1024.0 * 1024};
static const struct form records = {.names = {[COL_BEGIN] = "Timestamp(us)",
                                              [COL_NAME] = "Component",
                                              [COL_DEVICE] = "Device Type",
                                              [COL_ALLOCATED] = "Total Allocated(MB)",
                                              [COL_RESERVED] = "Total Reserved(MB)"},
                                    .time_ns = 1e3,
                                    .total = 1024.0 * 1024,
                                    .is_totals = true};

struct reader {
    struct mstx_mem_log *log;
    const struct form *form;
    int at[COLUMNS]; /* index in a row; -1: the table has no such column */
    struct ms_csv csv;
    mstx_mem_lists events;
    size_t rows, bad;
    int32_t rank;
};

static struct ms_str field(const struct reader *r, enum column c)
{
    const int at = r->at[c];
    struct ms_str s = at >= 0 && (size_t)at < r->csv.fields.n ? r->csv.fields.p[at] : MS_STR("");
    while (s.n != 0 && (s.p[s.n - 1] == '\t' || s.p[s.n - 1] == ' '))
        s.n--;
    return s;
}

/* Reads a time, which has more digits than a double holds: whole units exactly, their parts after. */
static bool read_time(const struct reader *r, enum column c, int64_t *ns)
{
    const struct ms_str s = field(r, c);
    const int64_t point = ms_str_find(s, '.');
    const struct ms_str whole = ms_str_sub(s, 0, point >= 0 ? (uint32_t)point : s.n);
    const int64_t unit = (int64_t)r->form->time_ns;
    double part = 0;
    int64_t v;
    if (!ms_str_i64(whole, &v) || v > INT64_MAX / 2 / unit || v < INT64_MIN / 2 / unit)
        return false;
    if (point >= 0 && !ms_num_parse_f64(s.p + point - 1, s.n - (size_t)point + 1, &part))
        return false;
    *ns = v * unit + (int64_t)(fmod(part, 1) * r->form->time_ns);
    return true;
}

static bool read_bytes(const struct reader *r, enum column c, double unit, int64_t *bytes)
{
    double v;
    const struct ms_str s = field(r, c);
    if (s.n == 0 || !ms_num_parse_f64(s.p, s.n, &v) ||
        !(fabs(v * unit) < (double)MSTX_MEM_BYTES_MAX))
        return false;
    *bytes = (int64_t)llround(v * unit);
    return true;
}

/* ---- who allocates ------------------------------------------------------------------------- */

/* The types of MindSpore's tracker. */
static uint8_t kind_of_type(struct ms_str type)
{
    static const struct {
        const char *text;
        uint8_t kind;
    } known[] = {{"Weight", MSTX_MEM_PARAMETER},       {"ConstantValue", MSTX_MEM_PARAMETER},
                 {"GeConst", MSTX_MEM_PARAMETER},      {"ContinuousMemory", MSTX_MEM_COMMUNICATION},
                 {"PyNativeInput", MSTX_MEM_INPUT},    {"WorkSpace", MSTX_MEM_TEMPORARY},
                 {"BatchMemory", MSTX_MEM_INPUT},      {"GraphOutput", MSTX_MEM_ACTIVATION},
                 {"Kernel", MSTX_MEM_ACTIVATION},      {"Somas", MSTX_MEM_ACTIVATION},
                 {"SomasOutput", MSTX_MEM_ACTIVATION}, {"PyNativeOutput", MSTX_MEM_ACTIVATION},
                 {"GeFixed", MSTX_MEM_ACTIVATION}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ms_str_is(type, known[i].text))
            return known[i].kind;
    }
    return MSTX_MEM_UNKNOWN;
}

/* An output of a kernel is what the kernel is for: names of MindSpore's nodes begin with Default,
 * Gradients or the like, and those of optimizers have their name. */
static uint8_t kind_of_node(struct ms_str node, uint8_t kind)
{
    static const char *const optimizers[] = {"Adam", "Momentum", "SGD",     "Lamb",
                                             "Lars", "moment1",  "moment2", "accum"};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        if (kind == MSTX_MEM_PARAMETER && ms_str_has(node, optimizers[i]))
            return MSTX_MEM_OPTIMIZER;
    }
    if (kind == MSTX_MEM_ACTIVATION && ms_str_starts(node, MS_STR("Gradients/")))
        return MSTX_MEM_GRADIENT;
    return kind;
}

/* Reads "File:a.py;Line:3;Function:f|File:..", the innermost first. */
static size_t read_stack(struct ms_str text, struct mstx_mem_frame *frame, size_t room)
{
    struct ms_str part;
    size_t n = 0;
    while (n < room && ms_str_split(&text, '|', &part)) {
        struct ms_str word;
        struct mstx_mem_frame f = {MS_STR(""), MS_STR(""), 0};
        while (ms_str_split(&part, ';', &word)) {
            if (ms_str_skip(&word, "File:"))
                f.file = word;
            else if (ms_str_skip(&word, "Function:"))
                f.function = word;
            else if (ms_str_skip(&word, "Line:"))
                ms_str_i64(word, &f.line);
        }
        if (f.function.n != 0 && !ms_str_is(f.function, "extract_stack"))
            frame[n++] = f;
    }
    return n;
}

static enum ms_rc site_of_row(struct reader *r, uint32_t *number, struct ms_err *err)
{
    enum { FRAMES_MAX = 256 };
    struct mstx_mem_frame frame[FRAMES_MAX];
    struct mstx_mem_site site;
    const size_t n = read_stack(field(r, COL_STACK), frame, FRAMES_MAX);
    MS_TRY(mstx__mem_site_of_stack(r->log, frame, n, false, &site, err));
    const struct ms_str node = field(r, COL_NAME);
    const int64_t slash = ms_str_rfind(node, '/');
    site.op = mstx__mem_text(r->log, node.n != 0 ? ms_str_sub(node, (uint32_t)(slash + 1), node.n)
                                                 : field(r, COL_TASK));
    site.module = mstx__mem_text(r->log, slash > 0 ? ms_str_sub(node, 0, (uint32_t)slash)
                                                   : field(r, COL_GRAPH));
    site.kind = kind_of_type(field(r, COL_TYPE));
    if (ms_str_is_folded(field(r, COL_PERSISTENT), "true") ||
        ms_str_is(field(r, COL_PERSISTENT), "1"))
        site.kind = site.kind == MSTX_MEM_UNKNOWN ? MSTX_MEM_PARAMETER : site.kind;
    site.kind = kind_of_node(node, site.kind);
    return mstx__mem_site(r->log, &site, number, err);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static enum ms_rc space_of_row(struct reader *r, bool by_component, size_t *index,
                               struct ms_err *err)
{
    struct mstx_mem_space *s;
    struct ms_buf name = {.max = 1 << 12};
    const struct ms_str device = field(r, COL_DEVICE), component = field(r, COL_NAME);
    ms_buf_str(&name, device.n != 0 ? ms_str_sub(device, 0, 1000) : MS_STR("device"));
    if (by_component && !ms_str_is(component, "PTA"))
        ms_buf_printf(&name, " (%.*s)", (int)(component.n < 1000 ? component.n : 1000),
                      component.p);
    enum ms_rc rc = ms_buf_check(&name, err);
    if (rc == MS_OK)
        rc = mstx__mem_space(r->log, r->rank, ms_buf_slice(&name), &s, err);
    ms_buf_free(&name);
    MS_TRY(rc);
    for (*index = 0; r->log->spaces.p[*index] != s;)
        ++*index;
    return mstx__mem_lists_grow(&r->events, r->log, err);
}

static enum ms_rc add_total(struct reader *r, size_t space, int64_t at_ns, struct ms_err *err)
{
    struct mstx_mem_total t = {at_ns, -1, -1};
    read_bytes(r, COL_ALLOCATED, r->form->total, &t.allocated);
    read_bytes(r, COL_RESERVED, r->form->total, &t.reserved);
    if (t.allocated < 0 && t.reserved < 0)
        return MS_OK;
    struct mstx_mem_total *slot = ms_vec_push(&r->log->spaces.p[space]->totals);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = t;
    return MS_OK;
}

/* Finds when a block is given back; false: it never is. */
static bool end_of_row(const struct reader *r, int64_t begin, int64_t *end)
{
    int64_t duration;
    if (read_time(r, COL_END, end))
        return *end >= begin && *end < INT64_MAX / 4;
    if (!read_time(r, COL_DURATION, &duration) || duration <= 0)
        return false;
    *end = begin + duration;
    return true;
}

static enum ms_rc add_row(struct reader *r, struct ms_err *err)
{
    struct mstx_mem_event e = {.address = r->rows++};
    int64_t begin, end;
    size_t space;
    const bool has_time = read_time(r, COL_BEGIN, &begin);
    if (!has_time || (!r->form->is_totals &&
                      (!read_bytes(r, COL_BYTES, r->form->bytes, &e.bytes) || e.bytes < 0))) {
        r->bad++;
        return MS_OK;
    }
    MS_TRY(space_of_row(r, r->form->is_totals, &space, err));
    MS_TRY(add_total(r, space, begin, err));
    if (r->form->is_totals || e.bytes == 0)
        return MS_OK;
    MS_TRY(site_of_row(r, &e.site, err));
    e.at_ns = begin;
    MS_TRY(mstx__mem_lists_add(&r->events, space, &e, err));
    if (!end_of_row(r, begin, &end))
        return MS_OK;
    e.at_ns = end;
    e.bytes = 0;
    return mstx__mem_lists_add(&r->events, space, &e, err);
}

static void find_columns(struct reader *r)
{
    for (int c = 0; c < COLUMNS; c++) {
        r->at[c] = -1;
        for (size_t i = 0; r->form->names[c] != NULL && i < r->csv.fields.n; i++) {
            if (ms_str_is(r->csv.fields.p[i], r->form->names[c]))
                r->at[c] = (int)i;
        }
    }
}

static enum ms_rc read_rows(struct reader *r, struct ms_err *err)
{
    bool more;
    MS_TRY(ms_csv_next(&r->csv, &more, err));
    if (more)
        find_columns(r);
    if (!more || r->at[COL_BEGIN] < 0)
        return ms_fail(err, MS_E_FORMAT, "has no column \"%s\"", r->form->names[COL_BEGIN]);
    for (;;) {
        MS_TRY(ms_csv_next(&r->csv, &more, err));
        if (!more)
            break;
        MS_TRY(add_row(r, err));
    }
    if (r->rows == r->bad && r->form == &mindspore)
        return ms_fail(err, MS_E_NOTFOUND,
                       "holds no block; MindSpore writes blocks of devices alone, none of the CPU: "
                       "use device_target Ascend, where MS_SIMULATION_LEVEL=1 needs no device");
    MS_TRY(mstx__mem_lists_replay(&r->events, r->log, err));
    return r->bad != 0
               ? mstx__mem_note(r->log, err, "%zu rows without time or size were left out", r->bad)
               : MS_OK;
}

static enum ms_rc read_table(struct mstx_mem_log *log, const char *path, int32_t rank,
                             const struct form *form, struct ms_err *err)
{
    struct ms_file file;
    struct reader r = {.log = log, .form = form, .rank = rank};
    MS_TRY(ms_file_map(&file, path, FILE_MAX, err));
    ms_csv_init(&r.csv, file.p, file.n);
    const enum ms_rc rc = read_rows(&r, err);
    if (rc != MS_OK)
        ms_err_wrap(err, "%s", path);
    mstx__mem_lists_free(&r.events);
    ms_csv_free(&r.csv);
    ms_file_unmap(&file);
    return rc;
}

enum ms_rc mstx__mem_from_mindspore(struct mstx_mem_log *log, const char *path, int32_t rank,
                                    struct ms_err *err)
{
    return read_table(log, path, rank, &mindspore, err);
}

enum ms_rc mstx__mem_from_operators(struct mstx_mem_log *log, const char *path, int32_t rank,
                                    struct ms_err *err)
{
    return read_table(log, path, rank, &operators, err);
}

enum ms_rc mstx__mem_from_records(struct mstx_mem_log *log, const char *path, int32_t rank,
                                  struct ms_err *err)
{
    return read_table(log, path, rank, &records, err);
}
