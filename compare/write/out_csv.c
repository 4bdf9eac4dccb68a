/* SPDX-License-Identifier: MIT
 *
 * out_csv: writes a comparison as csv.
 *
 * Several threads make the text of blocks of operators; the text is written to the file in
 * order. Thus only a few blocks are in memory at a time, and the file is the same for any
 * number of threads.
 */
#include "compare/write/out.h"

#include "compare/table/comparison.h"
#include "compare/write/sheet.h"
#include "compare/write/table.h"
#include "probe/base/trace.h"

enum { BLOCK_ROWS = 512, BLOCK_TEXT_MAX = 1 << 30, PART_ROWS = 1000000 };

struct block {
    size_t first, end; /* groups */
    struct ms_buf text;
    MS_VEC(size_t) row_ends; /* offsets in text */
    struct cmp_summary sum;
};

struct csv {
    const struct cmp *c;
    unsigned columns;
    struct block *blocks; /* two sets of `most`: one is filled while the other is written */
    size_t most;
    struct cmp_view *views; /* one for each thread */
};

/* ---- blocks ------------------------------------------------------------- */

static enum ms_rc put_group(const struct csv *csv, size_t group, struct cmp_view *v,
                            struct block *b, struct ms_err *err)
{
    struct cmp_cell cells[CMP_COLUMNS];
    MS_TRY(cmp_view_group(csv->c, group, v, err));
    cmp_summary_add(&b->sum, csv->c, group, v);
    for (size_t i = 0; i < v->rows.n; i++) {
        MS_TRY(cmp_table_cells(&csv->c->set, csv->c, v, i, cells, err));
        for (unsigned k = 0; k < csv->columns; k++) {
            if (k != 0)
                ms_buf_putc(&b->text, ',');
            cmp_csv_cell(&b->text, &cells[k]);
        }
        ms_buf_putc(&b->text, '\n');
        size_t *end = ms_vec_push(&b->row_ends);
        if (end == NULL)
            return ms_no_memory(err);
        *end = b->text.n;
    }
    return ms_buf_check(&b->text, err);
}

static enum ms_rc fill_block(const struct csv *csv, struct block *b, unsigned worker,
                             struct ms_err *err)
{
    struct cmp_view *v = &csv->views[worker];
    ms_buf_clear(&b->text);
    b->row_ends.n = 0;
    b->sum = (struct cmp_summary){0};
    MS_TRY(cmp_view_renew(v, err));
    for (size_t g = b->first; g < b->end; g++)
        MS_TRY(put_group(csv, g, v, b, err));
    return MS_OK;
}

/* Cuts the next blocks, at most as many as are processed at once. */
static size_t cut_blocks(const struct csv *csv, struct block *blocks, size_t *group)
{
    size_t groups = cmp_groups(csv->c), n = 0;
    for (; n < csv->most && *group < groups; n++) {
        struct block *b = &blocks[n];
        size_t rows = 0;
        b->first = *group;
        while (*group < groups && rows < BLOCK_ROWS)
            rows += cmp_group_rows(csv->c, (*group)++);
        b->end = *group;
    }
    return n;
}

/* ---- files ---------------------------------------------------------------- */

static void put_header(struct ms_out *out, const char *const *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (i != 0)
            ms_out_putc(out, ',');
        ms_out_puts(out, names[i]);
    }
    ms_out_putc(out, '\n');
}

/* Output files of at most a million rows each; the first of several is named _part_1. */
struct parts {
    const struct csv *csv;
    const char *const *names;
    const char *stem;
    struct cmp_files *files;
    struct ms_out *out;
    size_t number, rows;
    bool several;
};

static enum ms_rc next_part(struct parts *p, struct ms_err *err)
{
    if (p->out != NULL) {
        struct ms_out *done = p->out;
        p->out = NULL;
        MS_TRY(ms_out_commit(done, err));
    }
    struct ms_buf path = {.max = 1 << 16};
    ms_buf_puts(&path, p->stem);
    if (p->several)
        ms_buf_printf(&path, "_part_%zu", ++p->number);
    ms_buf_puts(&path, ".csv");
    p->rows = 0;
    enum ms_rc rc = cmp_files_add(p->files, ms_buf_slice(&path), err);
    if (rc == MS_OK)
        rc = ms_out_create(&p->out, ms_buf_z(&path), err);
    ms_buf_free(&path);
    if (rc == MS_OK)
        put_header(p->out, p->names, p->csv->columns);
    return rc;
}

static enum ms_rc put_block(struct parts *p, const struct block *b, struct ms_err *err)
{
    size_t done = 0, from = 0;
    while (done < b->row_ends.n) {
        if (p->rows == PART_ROWS)
            MS_TRY(next_part(p, err));
        size_t n = b->row_ends.n - done;
        if (n > PART_ROWS - p->rows)
            n = PART_ROWS - p->rows;
        size_t to = b->row_ends.p[done + n - 1];
        ms_out_write(p->out, b->text.p + from, to - from);
        p->rows += n;
        done += n;
        from = to;
    }
    return MS_OK;
}

/* One step of the pipeline: new blocks are filled while the previous ones are written. */
struct step {
    const struct csv *csv;
    struct parts *parts;
    struct block *fresh, *ready;
    size_t nfresh, nready;
};

static enum ms_rc step_item(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    const struct step *s = ctx;
    if (item > 0)
        return fill_block(s->csv, &s->fresh[item - 1], worker, err);
    for (size_t i = 0; i < s->nready; i++)
        MS_TRY(put_block(s->parts, &s->ready[i], err));
    return MS_OK;
}

static enum ms_rc write_blocks(const struct csv *csv, struct parts *p, struct ms_pool *pool,
                               struct cmp_summary *sum, struct ms_err *err)
{
    struct step s = {
        .csv = csv, .parts = p, .fresh = csv->blocks, .ready = csv->blocks + csv->most};
    size_t group = 0;
    MS_TRY(next_part(p, err));
    do {
        s.nfresh = cut_blocks(csv, s.fresh, &group);
        MS_TRY(ms_pool_run(pool, s.nfresh + 1, step_item, &s, err));
        for (size_t i = 0; i < s.nfresh; i++)
            cmp_summary_join(sum, &s.fresh[i].sum);
        cmp__report_written(csv->c, group);
        struct block *done = s.ready;
        s.ready = s.fresh;
        s.nready = s.nfresh;
        s.fresh = done;
    } while (s.nready != 0);
    struct ms_out *out = p->out;
    p->out = NULL;
    return ms_out_commit(out, err);
}

static void csv_free(struct csv *csv, unsigned threads)
{
    for (size_t i = 0; csv->blocks != NULL && i < 2 * csv->most; i++) {
        ms_buf_free(&csv->blocks[i].text);
        ms_vec_free(&csv->blocks[i].row_ends);
    }
    for (unsigned i = 0; csv->views != NULL && i < threads; i++)
        cmp_view_free(&csv->views[i]);
    ms_free(csv->blocks);
    ms_free(csv->views);
}

static enum ms_rc csv_init(struct csv *csv, unsigned threads, struct ms_err *err)
{
    csv->most = (size_t)threads * 4;
    csv->blocks = ms_calloc(2 * csv->most, sizeof *csv->blocks);
    csv->views = ms_calloc(threads, sizeof *csv->views);
    if (csv->blocks == NULL || csv->views == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < 2 * csv->most; i++)
        csv->blocks[i].text.max = BLOCK_TEXT_MAX;
    for (unsigned i = 0; i < threads; i++) {
        MS_TRY(cmp_view_init(&csv->views[i], err));
        csv->views[i].values = csv->c->values;
    }
    return MS_OK;
}

enum ms_rc cmp_write_csv(const struct cmp *c, const char *stem, struct ms_pool *pool,
                         struct cmp_summary *sum, struct cmp_files *files, struct ms_err *err)
{
    const char *names[CMP_COLUMNS];
    struct csv csv = {.c = c, .columns = cmp_table_columns(&c->set, cmp_has_stack(c), names)};
    struct parts p = {.csv = &csv,
                      .names = names,
                      .stem = stem,
                      .files = files,
                      .several = cmp_rows(c) > PART_ROWS};
    unsigned threads = ms_pool_threads(pool);
    struct ms_span span = ms_span_begin("write csv");
    enum ms_rc rc = csv_init(&csv, threads, err);
    if (rc == MS_OK)
        rc = write_blocks(&csv, &p, pool, sum, err);
    ms_out_abort(p.out);
    csv_free(&csv, threads);
    ms_span_end(&span);
    return rc;
}
