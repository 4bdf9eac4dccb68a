/* SPDX-License-Identifier: MIT
 *
 * tables: a cache of comparison tables.
 *
 * A table takes a walk over the database and a sort, so the last few are cached: a table for each
 * step and rank requested, and an index for each of its filters and sort orders. All viewers share
 * both; a change of the graph empties the cache.
 */
#ifndef WEB_API_TABLES_H
#define WEB_API_TABLES_H

#include "viz/model/items.h"

struct web_tables;

struct web_tables *web_tables_new(void);
void web_tables_free(struct web_tables *t);
/* Empties the cache after a change of the graph. */
void web_tables_forget(struct web_tables *t);

/* Calls fn with the table of a step and rank. */
typedef enum ms_rc (*web_table_fn)(void *ctx, const struct viz_table *t, struct ms_err *err);
enum ms_rc web_tables_use(struct web_tables *t, struct graph_view *v, struct graph_spot at,
                          web_table_fn fn, void *ctx, struct ms_err *err) MS_MUST_USE;

struct web_table_asked {
    struct graph_spot at;
    struct ms_str terms; /* as typed */
    int sort;
    bool descending, failing;
};
/* Calls fn for rows [first, first + n) of a table; *total is its number of rows. */
enum ms_rc web_tables_fetch(struct web_tables *t, struct graph_view *v,
                            const struct web_table_asked *asked, size_t first, size_t n,
                            viz_table_fn fn, void *ctx, size_t *total,
                            struct ms_err *err) MS_MUST_USE;
/* Finds the nearest row with an error after row `from`, or before it; SIZE_MAX: none. */
enum ms_rc web_tables_error(struct web_tables *t, struct graph_view *v,
                            const struct web_table_asked *asked, size_t from, bool before,
                            size_t *at, size_t *total, struct ms_err *err) MS_MUST_USE;
/* Like fetch for the first n rows, without waiting for the whole table: *more tells that further
 * rows exist, and *total is then the number of rows read so far. */
enum ms_rc web_tables_begin(struct web_tables *t, struct graph_view *v,
                            const struct web_table_asked *asked, size_t n, viz_table_fn fn,
                            void *ctx, size_t *total, bool *more, struct ms_err *err) MS_MUST_USE;

#endif
