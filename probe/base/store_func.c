/* SPDX-License-Identifier: MIT
 *
 * store_func: arguments in, a value out; aggregates gather their values and work at the end.
 */
#include "probe/base/store_func.h"

#include "probe/base/mem.h"
#include "probe/base/store_int.h"
#include "probe/base/vec.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

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

/* A pointer to a function does not fit into the pointer to data that SQLite keeps for us. */
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

/* What became of adding the function. */
static enum ms_rc added(int code, const char *name, struct ms_err *err)
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
    return added(code, name, err);
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

/* The values, or NULL when there are none to work with. */
static struct values *gathered(sqlite3_context *c)
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
    struct values *all = gathered(c);
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
    struct values *all = gathered(c);
    if (all == NULL)
        return;
    if (all->x.n > 1)
        sqlite3_result_double(c, sqrt(squares_around_mean(all) / (double)(all->x.n - 1)));
    ms_vec_free(&all->x);
}

static void give_stddev_pop(sqlite3_context *c)
{
    struct values *all = gathered(c);
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
        MS_TRY(added(code, all[i].name, err));
    }
    return ms_store_add_function(s, "round_even", 2, round_even, err);
}
