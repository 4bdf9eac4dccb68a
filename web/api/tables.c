/* SPDX-License-Identifier: MIT
 *
 * tables: two short LRU lists under a lock.
 *
 * Entries are reference-counted, so an entry in use is never freed. The lock is not held while rows
 * are fetched, but while a table is read or sorted, so that two viewers do not duplicate that work.
 */
#include "web/api/tables.h"

#include "probe/base/mem.h"

#include <pthread.h>

enum { TABLES = 3, INDEXES = 6 };

struct table {
    struct viz_table table;
    unsigned users; /* reference count, including the list's */
};

struct index {
    struct table *of;
    struct web_table_asked asked;
    char *terms;
    viz_table_index index;
    unsigned users;
};

struct web_tables {
    pthread_mutex_t lock;
    struct table *table[TABLES]; /* most recently used first */
    struct index *index[INDEXES];
};

struct web_tables *web_tables_new(void)
{
    struct web_tables *t = ms_calloc(1, sizeof *t);
    if (t != NULL)
        pthread_mutex_init(&t->lock, NULL);
    return t;
}

static void drop_table(struct table *x)
{
    if (x == NULL || --x->users != 0)
        return;
    viz_table_free(&x->table);
    ms_free(x);
}

static void drop_index(struct index *x)
{
    if (x == NULL || --x->users != 0)
        return;
    drop_table(x->of);
    ms_vec_free(&x->index);
    ms_free(x->terms);
    ms_free(x);
}

static void forget(struct web_tables *t)
{
    for (size_t i = 0; i < INDEXES; i++) {
        drop_index(t->index[i]);
        t->index[i] = NULL;
    }
    for (size_t i = 0; i < TABLES; i++) {
        drop_table(t->table[i]);
        t->table[i] = NULL;
    }
}

void web_tables_forget(struct web_tables *t)
{
    pthread_mutex_lock(&t->lock);
    forget(t);
    pthread_mutex_unlock(&t->lock);
}

void web_tables_free(struct web_tables *t)
{
    if (t == NULL)
        return;
    forget(t);
    pthread_mutex_destroy(&t->lock);
    ms_free(t);
}

/* Moves entry i of a list to the front. */
static void to_front(void **list, size_t i)
{
    void *x = list[i];
    memmove(list + 1, list, i * sizeof *list);
    list[0] = x;
}

static enum ms_rc table_of(struct web_tables *t, struct graph_view *v, struct graph_spot at,
                           struct ms_err *err)
{
    for (size_t i = 0; i < TABLES; i++) {
        if (t->table[i] != NULL && graph_is_same_spot(t->table[i]->table.at, at)) {
            to_front((void **)t->table, i);
            return MS_OK;
        }
    }
    struct table *x = ms_calloc(1, sizeof *x);
    if (x == NULL)
        return ms_no_memory(err);
    x->users = 1;
    enum ms_rc rc = viz_table_read(&x->table, v, at, 0, err);
    if (rc != MS_OK) {
        ms_free(x);
        return rc;
    }
    drop_table(t->table[TABLES - 1]);
    t->table[TABLES - 1] = x;
    to_front((void **)t->table, TABLES - 1);
    return MS_OK;
}

static bool is_asked(const struct index *x, const struct web_table_asked *a)
{
    return x != NULL && graph_is_same_spot(x->asked.at, a->at) && x->asked.sort == a->sort &&
           x->asked.descending == a->descending && x->asked.failing == a->failing &&
           ms_str_is(a->terms, x->terms);
}

static enum ms_rc make_index(struct index *x, struct graph_view *v, struct ms_err *err)
{
    struct viz_terms *terms;
    x->terms = ms_str_dup(x->asked.terms);
    if (x->terms == NULL)
        return ms_no_memory(err);
    MS_TRY(viz_terms_new(&terms, x->asked.terms, err));
    x->asked.terms = MS_STR(""); /* borrowed until here */
    struct viz_table_view view = {terms, x->asked.sort, x->asked.descending, x->asked.failing};
    enum ms_rc rc = viz_terms_fit(terms, false, err);
    if (rc == MS_OK)
        rc = viz_table_select(&x->of->table, v, &view, &x->index, err);
    viz_terms_free(terms);
    return rc;
}

/* Makes the requested index the first of the list. */
static enum ms_rc index_of(struct web_tables *t, struct graph_view *v,
                           const struct web_table_asked *a, struct ms_err *err)
{
    for (size_t i = 0; i < INDEXES; i++) {
        if (is_asked(t->index[i], a)) {
            to_front((void **)t->index, i);
            return MS_OK;
        }
    }
    MS_TRY(table_of(t, v, a->at, err));
    struct index *x = ms_calloc(1, sizeof *x);
    if (x == NULL)
        return ms_no_memory(err);
    x->asked = *a;
    x->users = 1;
    x->of = t->table[0];
    x->of->users++;
    enum ms_rc rc = make_index(x, v, err);
    if (rc != MS_OK) {
        drop_index(x);
        return rc;
    }
    drop_index(t->index[INDEXES - 1]);
    t->index[INDEXES - 1] = x;
    to_front((void **)t->index, INDEXES - 1);
    return MS_OK;
}

/* Takes a reference, released by let_go; NULL on failure. */
static struct index *hold_index(struct web_tables *t, struct graph_view *v,
                                const struct web_table_asked *asked, enum ms_rc *rc,
                                struct ms_err *err)
{
    struct index *x = NULL;
    pthread_mutex_lock(&t->lock);
    *rc = index_of(t, v, asked, err);
    if (*rc == MS_OK) {
        x = t->index[0];
        x->users++;
    }
    pthread_mutex_unlock(&t->lock);
    return x;
}

static void let_go(struct web_tables *t, struct index *x)
{
    pthread_mutex_lock(&t->lock);
    drop_index(x);
    pthread_mutex_unlock(&t->lock);
}

enum ms_rc web_tables_use(struct web_tables *t, struct graph_view *v, struct graph_spot at,
                          web_table_fn fn, void *ctx, struct ms_err *err)
{
    struct table *x = NULL;
    pthread_mutex_lock(&t->lock);
    enum ms_rc rc = table_of(t, v, at, err);
    if (rc == MS_OK) {
        x = t->table[0];
        x->users++;
    }
    pthread_mutex_unlock(&t->lock);
    if (x == NULL)
        return rc;
    rc = fn(ctx, &x->table, err);
    pthread_mutex_lock(&t->lock);
    drop_table(x);
    pthread_mutex_unlock(&t->lock);
    return rc;
}

enum ms_rc web_tables_fetch(struct web_tables *t, struct graph_view *v,
                            const struct web_table_asked *asked, size_t first, size_t n,
                            viz_table_fn fn, void *ctx, size_t *total, struct ms_err *err)
{
    enum ms_rc rc;
    struct index *x = hold_index(t, v, asked, &rc, err);
    if (x == NULL)
        return rc;
    *total = x->index.n;
    rc = viz_table_fetch(&x->of->table, v, &x->index, first, n, fn, ctx, err);
    let_go(t, x);
    return rc;
}

enum ms_rc web_tables_error(struct web_tables *t, struct graph_view *v,
                            const struct web_table_asked *asked, size_t from, bool before,
                            size_t *at, size_t *total, struct ms_err *err)
{
    enum ms_rc rc;
    struct index *x = hold_index(t, v, asked, &rc, err);
    if (x == NULL)
        return rc;
    *total = x->index.n;
    *at = viz_table_error(&x->of->table, &x->index, from, before);
    let_go(t, x);
    return MS_OK;
}

/* ---- the first rows ----------------------------------------------------------------- */

static bool is_plain(const struct web_table_asked *a)
{
    return a->sort == VIZ_BY_ORDER && !a->descending && !a->failing && a->terms.n == 0;
}

static bool is_known(struct web_tables *t, struct graph_spot at)
{
    bool known = false;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < TABLES && !known; i++)
        known = t->table[i] != NULL && graph_is_same_spot(t->table[i]->table.at, at);
    pthread_mutex_unlock(&t->lock);
    return known;
}

static enum ms_rc count_up(viz_table_index *index, size_t n, struct ms_err *err)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t *slot = ms_vec_push(index);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = (uint32_t)i;
    }
    return MS_OK;
}

enum ms_rc web_tables_begin(struct web_tables *t, struct graph_view *v,
                            const struct web_table_asked *asked, size_t n, viz_table_fn fn,
                            void *ctx, size_t *total, bool *more, struct ms_err *err)
{
    struct viz_table some;
    viz_table_index index = {0};
    *more = false;
    if (!is_plain(asked) || is_known(t, asked->at))
        return web_tables_fetch(t, v, asked, 0, n, fn, ctx, total, err);
    MS_TRY(viz_table_read(&some, v, asked->at, n, err));
    *total = some.rows;
    *more = some.partial;
    enum ms_rc rc = count_up(&index, some.rows, err);
    if (rc == MS_OK)
        rc = viz_table_fetch(&some, v, &index, 0, n, fn, ctx, err);
    ms_vec_free(&index);
    viz_table_free(&some);
    return rc;
}
