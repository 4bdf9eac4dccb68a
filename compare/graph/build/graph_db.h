/* SPDX-License-Identifier: MIT
 *
 * graph_db: writer of a .vis.db file.
 */
#ifndef COMPARE_GRAPH_BUILD_GRAPH_DB_H
#define COMPARE_GRAPH_BUILD_GRAPH_DB_H

#include "compare/graph/build/graph_id.h"
#include "compare/graph/build/node_items.h"
#include "compare/graph/graph.h"
#include "compare/graph/graph_rules.h"
#include "compare/source/source.h"

struct graph__db;
enum ms_rc graph__db_new(struct graph__db **db, const struct graph_conf *conf, const char *path,
                         struct ms_err *err);
/* Progress callback: share of the tree written so far, 0 to 1. */
typedef void (*graph__progress_fn)(void *ctx, double share);
/* Makes the items of a node; see graph__items_make. */
typedef enum ms_rc (*graph__items_fn)(struct graph__items *it, const struct graph__pair *p,
                                      const struct graph__tree *g, uint32_t node, uint8_t *state,
                                      struct ms_err *err);
/* Callbacks used while a tree is written. */
struct graph__db_calls {
    graph__items_fn make;
    struct graph__items *items; /* by worker of the pool */
    graph__progress_fn progress;
    void *ctx; /* of progress */
};
/* Writes one tree of the pair. */
enum ms_rc graph__db_put(struct graph__db *db, struct graph__pair *p, struct graph__place place,
                         struct ms_pool *pool, const struct graph__db_calls *calls,
                         struct ms_err *err);
/* Number of rows in tb_nodes so far. The rows of the next tree follow in its order. */
int64_t graph__db_rows(const struct graph__db *db);
/* Writes the links of a row of tb_nodes to other ranks. Has the type graph__link_fn; ctx is the
 * database. */
enum ms_rc graph__db_link(void *db, int64_t row, struct ms_str json, struct ms_err *err);
struct graph__config { /* the single row that describes all trees */
    bool dual;
    enum probe_mode mode;
    uint32_t micro_steps;
    struct ms_str ranks, steps; /* JSON lists */
};
enum ms_rc graph__db_config(struct graph__db *db, const struct graph__config *c,
                            struct ms_err *err);
/* Writes a row of x_meta; does nothing in a file without x_ tables. */
enum ms_rc graph__db_meta(struct graph__db *db, const char *key, const char *value,
                          struct ms_err *err);
/* Writes the n suspects of all trees, in their order. */
enum ms_rc graph__db_findings(struct graph__db *db, const struct cmp_suspect *list, size_t n,
                              struct ms_err *err);
/* Creates the indexes and moves the file to its final path; always frees db. */
enum ms_rc graph__db_commit(struct graph__db *db, struct ms_err *err);
void graph__db_free(struct graph__db *db);

/* Writes the differences from the official tool as a JSON list of sentences; `out` must be
 * empty. */
void graph__put_repairs(struct ms_buf *out, const struct graph_conf *c);

#endif
