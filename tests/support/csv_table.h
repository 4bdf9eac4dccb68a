/* SPDX-License-Identifier: MIT
 *
 * csv_table: the cells of a csv file or of a workbook.
 */
#ifndef TESTS_SUPPORT_CSV_TABLE_H
#define TESTS_SUPPORT_CSV_TABLE_H

#include "compare/write/xlsx_read.h"
#include "tests/support/check.h"

enum { TABLE_COLUMNS = 48 };

struct table_line {
    char *cell[TABLE_COLUMNS];
    unsigned n;
    uint32_t sheet;
};

struct table_text {
    struct table_line *line;
    size_t n;
};

static inline struct table_line *table_push(struct table_text *t)
{
    t->line = realloc(t->line, (t->n + 1) * sizeof *t->line);
    ck_assert_ptr_nonnull(t->line);
    t->line[t->n] = (struct table_line){.n = 0};
    return &t->line[t->n++];
}

static inline void table_push_cell(struct table_line *l, const char *text, size_t n)
{
    ck_assert_uint_lt(l->n, TABLE_COLUMNS);
    l->cell[l->n++] = strndup(text, n);
}

static inline void table_free(struct table_text *t)
{
    for (size_t i = 0; i < t->n; i++) {
        for (unsigned k = 0; k < t->line[i].n; k++)
            free(t->line[i].cell[k]);
    }
    free(t->line);
    *t = (struct table_text){0};
}

/* Reads a cell in quotes; p is behind the first one. */
static inline const char *table_quoted(struct table_line *l, const char *p)
{
    char *text = malloc(strlen(p) + 1);
    size_t n = 0;
    while (*p != '"' || p[1] == '"') {
        ck_assert_msg(*p != 0, "a cell without its last quote");
        p += *p == '"';
        text[n++] = *p++;
    }
    table_push_cell(l, text, n);
    free(text);
    return p + 1;
}

static inline struct table_text table_of_csv(const char *path)
{
    struct table_text t = {0};
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    char *text = NULL;
    size_t room = 0;
    ck_assert(getdelim(&text, &room, 0, f) >= 0);
    fclose(f);
    for (const char *p = text; *p != 0;) {
        struct table_line *l = table_push(&t);
        for (bool more = true; more; p++) {
            const size_t n = strcspn(p, ",\n");
            if (*p != '"')
                table_push_cell(l, p, n);
            p = *p == '"' ? table_quoted(l, p + 1) : p + n;
            ck_assert(*p == ',' || *p == '\n');
            more = *p == ',';
        }
    }
    free(text);
    return t;
}

static inline enum ms_rc table_take_row(void *ctx, const struct cmp_xlsx_row *row,
                                        struct ms_err *err)
{
    struct table_line *l = table_push(ctx);
    (void)err;
    l->sheet = row->sheet;
    for (size_t i = 0; i < row->n; i++)
        table_push_cell(l, row->cells[i].text.p != NULL ? row->cells[i].text.p : "",
                        row->cells[i].text.n);
    return MS_OK;
}

static inline struct table_text table_of_xlsx(const char *path)
{
    struct table_text t = {0};
    struct ms_err err = {0};
    ck_ok(cmp_xlsx_read(path, table_take_row, &t, &err), err);
    return t;
}

#endif
