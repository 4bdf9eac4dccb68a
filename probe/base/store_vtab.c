/* SPDX-License-Identifier: MIT
 *
 * store_vtab: SQLite's virtual tables behind a small table of functions, scalar functions, and
 * aggregates, which collect their values and compute at the end.
 *
 * The bounds that the planner chose are passed from xBestIndex to xFilter as text, two characters
 * for each: the column and the operation.
 */
#include "probe/base/store_vtab.h"

#include "probe/base/mem.h"
#include "probe/base/store_int.h"
#include "probe/base/vec.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { BOUNDS_MAX = 8 };

/* Registration of a table; freed with the connection. */
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

/* Returns the bound that an SQLite constraint becomes, or -1. "Greater" becomes GE, because SQLite
 * checks every row again. */
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

static int plan_scan(sqlite3_vtab *v, sqlite3_index_info *info)
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
    info->estimatedRows = (sqlite3_int64)(1e7 / (1 + 1000.0 * n)); /* SQLite's default is 25 */
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
        /* A bound that is not a whole number is checked by SQLite alone. */
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

/* Names the table in a statement. SQLite creates a virtual table at that point, which a read-only
 * handle could no longer do. */
static int name_first(struct ms_store *s, const char *table)
{
    char sql[128];
    sqlite3_stmt *st = NULL;
    snprintf(sql, sizeof sql, "SELECT 1 FROM \"%.80s\"", table);
    const int code = sqlite3_prepare_v2(ms_store__handle(s), sql, -1, &st, NULL);
    sqlite3_finalize(st);
    return code;
}

enum ms_rc ms_store_add_table(struct ms_store *s, const struct ms_table *t, void *ctx,
                              struct ms_err *err)
{
    /* Without xCreate the table is eponymous: it exists under its module's name. */
    static const sqlite3_module methods = {.xConnect = connect_table,
                                           .xBestIndex = plan_scan,
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
        code = name_first(s, t->name);
    if (code == SQLITE_OK)
        return MS_OK;
    return ms_fail(err, code == SQLITE_NOMEM ? MS_E_NOMEM : MS_E_INTERNAL, "table %s: %s", t->name,
                   sqlite3_errstr(code));
}

enum { ARGS_MAX = 4 };

/* ---- scalars --------------------------------------------------------------------- */

static struct ms_value value_of(sqlite3_value *v)
{
    struct ms_value out = {.type = MS_VALUE_NULL};
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER:
        out = (struct ms_value){.type = MS_VALUE_INT, .i = sqlite3_value_int64(v)};
        break;
    case SQLITE_FLOAT:
        out = (struct ms_value){.type = MS_VALUE_REAL, .f = sqlite3_value_double(v)};
        break;
    case SQLITE_TEXT:
        out.type = MS_VALUE_TEXT;
        out.s.p = (const char *)sqlite3_value_text(v);
        out.s.n = (uint32_t)sqlite3_value_bytes(v);
        break;
    default:
        break;
    }
    return out;
}

static void return_value(sqlite3_context *to, const struct ms_value *v)
{
    switch (v->type) {
    case MS_VALUE_INT:
        sqlite3_result_int64(to, v->i);
        break;
    case MS_VALUE_REAL:
        sqlite3_result_double(to, v->f);
        break;
    case MS_VALUE_TEXT:
        sqlite3_result_text64(to, v->s.p, v->s.n, SQLITE_TRANSIENT, SQLITE_UTF8);
        break;
    default:
        sqlite3_result_null(to);
    }
}

/* Wrapper for a function pointer: SQLite keeps a void * for us, which cannot hold a function
 * pointer. */
struct kept {
    ms_function fn;
};

static void call_function(sqlite3_context *c, int n, sqlite3_value **v)
{
    const struct kept *kept = sqlite3_user_data(c);
    struct ms_value arg[ARGS_MAX], out = {.type = MS_VALUE_NULL};
    char scratch[MS_FUNCTION_SCRATCH];
    for (int i = 0; i < n && i < ARGS_MAX; i++)
        arg[i] = value_of(v[i]);
    kept->fn(arg, scratch, &out);
    return_value(c, &out);
}

/* Returns the result of registering a function. */
static enum ms_rc check_added(int code, const char *name, struct ms_err *err)
{
    if (code == SQLITE_OK)
        return MS_OK;
    return ms_fail(err, code == SQLITE_NOMEM ? MS_E_NOMEM : MS_E_INTERNAL, "%s: %s", name,
                   sqlite3_errstr(code));
}

enum ms_rc ms_store_add_function(struct ms_store *s, const char *name, int args, ms_function fn,
                                 struct ms_err *err)
{
    struct kept *kept = ms_alloc(sizeof *kept);
    if (kept == NULL)
        return ms_no_memory(err);
    kept->fn = fn;
    const int code = args > ARGS_MAX
                         ? SQLITE_MISUSE
                         : sqlite3_create_function_v2(ms_store__handle(s), name, args,
                                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC, kept,
                                                      call_function, NULL, NULL, ms_free);
    return check_added(code, name, err);
}

static void round_even(const struct ms_value *arg, char scratch[MS_FUNCTION_SCRATCH],
                       struct ms_value *out)
{
    (void)scratch;
    if (arg[0].type != MS_VALUE_REAL || arg[1].type != MS_VALUE_INT) {
        *out = arg[0];
        return;
    }
    const double scale = pow(10, (double)arg[1].i);
    *out = (struct ms_value){.type = MS_VALUE_REAL, .f = nearbyint(arg[0].f * scale) / scale};
}

/* ---- aggregates -------------------------------------------------------------------- */

struct values {
    MS_VEC(double) x;
    double q;
    bool bad;
};

static void gather(sqlite3_context *c, int n, sqlite3_value **v)
{
    struct values *all = sqlite3_aggregate_context(c, sizeof *all);
    if (all == NULL || sqlite3_value_type(v[0]) == SQLITE_NULL)
        return;
    double *slot = ms_vec_push(&all->x);
    if (slot == NULL)
        all->bad = true;
    else
        *slot = sqlite3_value_double(v[0]);
    if (n > 1)
        all->q = sqlite3_value_double(v[1]);
}

/* Returns the collected values, or NULL when there are none. */
static struct values *gathered_values(sqlite3_context *c)
{
    struct values *all = sqlite3_aggregate_context(c, 0);
    if (all == NULL)
        return NULL;
    if (all->bad)
        sqlite3_result_error_nomem(c);
    if (!all->bad && all->x.n != 0)
        return all;
    ms_vec_free(&all->x);
    return NULL;
}

static int by_value(const void *pa, const void *pb)
{
    const double a = *(const double *)pa, b = *(const double *)pb;
    return a < b ? -1 : a > b;
}

static void give_quantile(sqlite3_context *c)
{
    struct values *all = gathered_values(c);
    if (all == NULL)
        return;
    qsort(all->x.p, all->x.n, sizeof *all->x.p, by_value);
    const double at = fmin(fmax(all->q, 0), 1) * (double)(all->x.n - 1);
    const size_t low = (size_t)at, high = low + 1 < all->x.n ? low + 1 : low;
    const double *x = all->x.p;
    sqlite3_result_double(c, x[low] + (at - (double)low) * (x[high] - x[low]));
    ms_vec_free(&all->x);
}

static double squares_around_mean(const struct values *all)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < all->x.n; i++)
        sum += all->x.p[i];
    const double mean = sum / (double)all->x.n;
    for (size_t i = 0; i < all->x.n; i++)
        squares += (all->x.p[i] - mean) * (all->x.p[i] - mean);
    return squares;
}

static void give_stddev(sqlite3_context *c)
{
    struct values *all = gathered_values(c);
    if (all == NULL)
        return;
    if (all->x.n > 1)
        sqlite3_result_double(c, sqrt(squares_around_mean(all) / (double)(all->x.n - 1)));
    ms_vec_free(&all->x);
}

static void give_stddev_pop(sqlite3_context *c)
{
    struct values *all = gathered_values(c);
    if (all == NULL)
        return;
    sqlite3_result_double(c, sqrt(squares_around_mean(all) / (double)all->x.n));
    ms_vec_free(&all->x);
}

enum ms_rc ms_store_add_statistics(struct ms_store *s, struct ms_err *err)
{
    static const struct {
        const char *name;
        int args;
        void (*finish)(sqlite3_context *c);
    } all[] = {{"quantile", 2, give_quantile},
               {"stddev", 1, give_stddev},
               {"stddev_pop", 1, give_stddev_pop}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int code = sqlite3_create_function_v2(ms_store__handle(s), all[i].name, all[i].args,
                                                    SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, NULL,
                                                    gather, all[i].finish, NULL);
        MS_TRY(check_added(code, all[i].name, err));
    }
    return ms_store_add_function(s, "round_even", 2, round_even, err);
}
