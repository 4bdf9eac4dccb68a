/* SPDX-License-Identifier: MIT
 *
 * store_vtab: SQLite's virtual tables behind a small table of functions.
 *
 * The bounds that the planner chose travel from xBestIndex to xFilter as text, two
 * characters for each: the column and the operation.
 */
#include "probe/base/store_vtab.h"

#include "probe/base/mem.h"
#include "probe/base/store_int.h"

#include <sqlite3.h>

enum { BOUNDS_MAX = 8 };

/* Registered once, freed with the connection. */
struct module {
    const struct ms_table *table;
    void *ctx;
};

struct vtab {
    sqlite3_vtab base;
    const struct module *module;
};

struct cursor {
    sqlite3_vtab_cursor base;
    const struct ms_table *table;
    void *own; /* the table's cursor */
    int64_t row;
};

static int fail_with(sqlite3_vtab *v, const struct ms_err *err)
{
    sqlite3_free(v->zErrMsg);
    v->zErrMsg = sqlite3_mprintf("%s", err->msg);
    return err->rc == MS_E_NOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **why)
{
    (void)argc;
    (void)argv;
    (void)why;
    const struct module *m = aux;
    struct ms_buf sql = {.max = 4096};
    ms_buf_printf(&sql, "CREATE TABLE x(%s)", m->table->columns);
    int code = sql.bad == MS_OK ? sqlite3_declare_vtab(db, ms_buf_z(&sql)) : SQLITE_NOMEM;
    ms_buf_free(&sql);
    struct vtab *v = code == SQLITE_OK ? ms_calloc(1, sizeof *v) : NULL;
    if (code == SQLITE_OK && v == NULL)
        code = SQLITE_NOMEM;
    if (v != NULL) {
        v->module = m;
        *out = &v->base;
    }
    return code;
}

static int disconnect_table(sqlite3_vtab *v)
{
    ms_free(v);
    return SQLITE_OK;
}

/* ---- planning --------------------------------------------------------- */

/* The operation that a bound of ours stands for, or -1. */
static int op_of(unsigned char op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return MS_BOUND_EQ;
    case SQLITE_INDEX_CONSTRAINT_GE:
    case SQLITE_INDEX_CONSTRAINT_GT:
        return MS_BOUND_GE;
    case SQLITE_INDEX_CONSTRAINT_LE:
    case SQLITE_INDEX_CONSTRAINT_LT:
        return MS_BOUND_LE;
    default:
        return -1;
    }
}

static bool is_useful(const struct ms_table *t, const struct sqlite3_index_constraint *c)
{
    return c->usable && c->iColumn >= 0 && c->iColumn < 32 && (t->usable >> c->iColumn & 1) != 0 &&
           op_of(c->op) >= 0;
}

static int plan(sqlite3_vtab *v, sqlite3_index_info *info)
{
    const struct ms_table *t = ((const struct vtab *)v)->module->table;
    char text[2 * BOUNDS_MAX + 1];
    int n = 0;
    for (int i = 0; i < info->nConstraint && n < BOUNDS_MAX; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (!is_useful(t, c))
            continue;
        text[2 * n] = (char)('A' + c->iColumn);
        text[2 * n + 1] = (char)('0' + op_of(c->op));
        info->aConstraintUsage[i].argvIndex = ++n;
    }
    text[2 * n] = '\0';
    info->idxStr = sqlite3_mprintf("%s", text);
    info->needToFreeIdxStr = 1;
    info->estimatedCost = 1e9 / (1 + 1000.0 * n);
    info->estimatedRows = (sqlite3_int64)(1e7 / (1 + 1000.0 * n)); /* else it takes 25 for all */
    return info->idxStr != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- scanning --------------------------------------------------------- */

static int open_cursor(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    const struct module *m = ((const struct vtab *)v)->module;
    struct ms_err err = {0};
    struct cursor *c = ms_calloc(1, sizeof *c);
    if (c == NULL)
        return SQLITE_NOMEM;
    c->table = m->table;
    if (m->table->open(m->ctx, &c->own, &err) != MS_OK) {
        ms_free(c);
        return fail_with(v, &err);
    }
    *out = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;
    c->table->close(c->own);
    ms_free(c);
    return SQLITE_OK;
}

static int start_scan(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                      sqlite3_value **argv)
{
    (void)number;
    struct cursor *c = (struct cursor *)base;
    struct ms_bound bound[BOUNDS_MAX];
    struct ms_err err = {0};
    int n = 0;
    for (int i = 0; i < argc && i < BOUNDS_MAX; i++) {
        /* A bound that is no whole number is left to SQLite's own check. */
        if (sqlite3_value_type(argv[i]) == SQLITE_INTEGER)
            bound[n++] =
                (struct ms_bound){text[2 * i] - 'A', (enum ms_bound_op)(text[2 * i + 1] - '0'),
                                  sqlite3_value_int64(argv[i])};
    }
    c->row = 0;
    enum ms_rc rc = c->table->start(c->own, bound, n, &err);
    return rc == MS_OK ? SQLITE_OK : fail_with(base->pVtab, &err);
}

static int next_row(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;
    struct ms_err err = {0};
    c->row++;
    return c->table->next(c->own, &err) == MS_OK ? SQLITE_OK : fail_with(base->pVtab, &err);
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    const struct cursor *c = (const struct cursor *)base;
    return c->table->at_end(c->own);
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *to, int column)
{
    const struct cursor *c = (const struct cursor *)base;
    struct ms_value v = {.type = MS_VALUE_NULL};
    struct ms_err err = {0};
    if (c->table->column(c->own, column, &v, &err) != MS_OK)
        return fail_with(base->pVtab, &err);
    if (v.type == MS_VALUE_INT)
        sqlite3_result_int64(to, v.i);
    else if (v.type == MS_VALUE_REAL)
        sqlite3_result_double(to, v.f);
    else if (v.type == MS_VALUE_TEXT)
        sqlite3_result_text64(to, v.s.p, v.s.n, SQLITE_TRANSIENT, SQLITE_UTF8);
    else
        sqlite3_result_null(to);
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    *row = ((const struct cursor *)base)->row;
    return SQLITE_OK;
}

enum ms_rc ms_store_add_table(struct ms_store *s, const struct ms_table *t, void *ctx,
                              struct ms_err *err)
{
    /* Without xCreate the table is there by its module's name alone. */
    static const sqlite3_module methods = {.xConnect = connect_table,
                                           .xBestIndex = plan,
                                           .xDisconnect = disconnect_table,
                                           .xOpen = open_cursor,
                                           .xClose = close_cursor,
                                           .xFilter = start_scan,
                                           .xNext = next_row,
                                           .xEof = is_at_end,
                                           .xColumn = give_column,
                                           .xRowid = give_rowid};
    struct module *m = ms_alloc(sizeof *m);
    if (m == NULL)
        return ms_no_memory(err);
    *m = (struct module){t, ctx};
    /* Frees m also when it fails. */
    int code = sqlite3_create_module_v2(ms_store__handle(s), t->name, &methods, m, ms_free);
    if (code == SQLITE_OK)
        return MS_OK;
    return ms_fail(err, code == SQLITE_NOMEM ? MS_E_NOMEM : MS_E_INTERNAL, "table %s: %s", t->name,
                   sqlite3_errstr(code));
}
