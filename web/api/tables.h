/* SPDX-License-Identifier: MIT
 *
 * tables: comparison tables kept between requests.
 *
 * Reading a table costs a walk over the database and sorting it costs time too, so
 * the last few are kept: a table for each step and rank that was asked for, and
 * beside it the index of each filter and sorting.  Both are shared by all viewers
 * and go away when the graph is changed.
 */
#ifndef WEB_API_TABLES_H
#define WEB_API_TABLES_H

#include "viz/model/item_table.h"

struct web_tables;

struct web_tables *web_tables_new(void);
void web_tables_free(struct web_tables *t);
/* The graph has changed. */
void web_tables_forget(struct web_tables *t);

struct web_table_asked {
    struct graph_spot at;
    struct ms_str terms; /* as typed */
    int sort;
    bool descending, failing;
};
/* Rows [first, first + n) of a table, one fn for each; *total is how many it has. */
enum ms_rc web_tables_fetch(struct web_tables *t, struct graph_view *v,
                            const struct web_table_asked *asked, size_t first, size_t n,
                            viz_table_fn fn, void *ctx, size_t *total,
                            struct ms_err *err) MS_MUST_USE;
/* The nearest row with an error after row `from`, or before it; SIZE_MAX: there is none. */
enum ms_rc web_tables_error(struct web_tables *t, struct graph_view *v,
                            const struct web_table_asked *asked, size_t from, bool before,
                            size_t *at, size_t *total, struct ms_err *err) MS_MUST_USE;
/* The same as fetch for the first n rows, before the table is read: *more says that there are more rows, and
 * *total then counts no further. */
enum ms_rc web_tables_begin(struct web_tables *t, struct graph_view *v,
                            const struct web_table_asked *asked, size_t n, viz_table_fn fn,
                            void *ctx, size_t *total, bool *more, struct ms_err *err) MS_MUST_USE;

#endif
