/* SPDX-License-Identifier: MIT
 *
 * graph: the containment tree of a dump, or of two side by side, as a database.
 *
 *     construct.json ─┐
 *     dump.json ──────┼─► tree ─► match ─► judge ─► *.vis.db ─► viewers (graph_view.h)
 *     stack.json ─────┘
 *
 * The database is that of the official TensorBoard plugin, which opens it; tables
 * of ours begin with x_ and do not disturb it.  Words are the official ones: the
 * target is "NPU", the golden side "Bench".
 */
#ifndef COMPARE_GRAPH_GRAPH_H
#define COMPARE_GRAPH_GRAPH_H

#include "compare/compare.h"
#include "probe/base/pool.h"
#include "probe/base/str.h"

#include <stdbool.h>

/* What a graph says about a node's figures. */
enum graph_state {
    GRAPH_NONE, /* nothing was compared: no partner, or no items */
    GRAPH_PASS,
    GRAPH_WARNING,
    GRAPH_ERROR,
    GRAPH_STATES
};

/* Where the members of a batch of point-to-point operations go in matched_distributed. */
enum graph_batch { GRAPH_BATCH_LIST, GRAPH_BATCH_FIRST, GRAPH_BATCH_NONE };

/* Called on every change of progress, from the thread that called graph_run. */
typedef void (*graph_progress_fn)(void *ctx, int percent);
/* Called with a line for people: what was repaired, left out, or is missing. */
typedef void (*graph_note_fn)(void *ctx, const char *line);

/* How a run was cut into ranks. */
struct graph_param {
    uint32_t rank_size, tp, pp, vpp;
    const char *order; /* of its parallelisms, "tp-cp-ep-dp-pp" */
};

struct graph_rules;

struct graph_conf {
    const char *target;
    const char *golden;              /* NULL or "": one graph */
    const char *out_dir;             /* made when missing */
    const struct graph_rules *rules; /* NULL: graph_rules_ours */
    bool fuzzy;
    bool overflow;
    enum cmp_matching matching; /* where neither fuzzy nor layers say how, and the rules align */
    bool map_layers;            /* match by the rules of layer_mapping */
    const char *layer_file;     /* NULL: its built-in part only */
    bool md5_index; /* digests: mark ops that make empty tensors red, as files of old were read */
    enum graph_batch batch;
    /* Name the nodes that introduce differences; not of merged ranks, nor without x_ tables. */
    bool suspects;
    bool log_items;                  /* a note for every item whose tensors were compared */
    const struct graph_param *merge; /* of the target and the golden side; NULL: ranks stay apart */
    bool json;                       /* write merged ranks as dumps, no database */
    graph_progress_fn progress;      /* may be NULL, as may note */
    graph_note_fn note;
    void *ctx;
};

struct graph_made {
    char path[4096];               /* of the database */
    uint64_t nodes[2];             /* target, golden */
    uint64_t states[GRAPH_STATES]; /* of the target's nodes */
    uint64_t matched;
    uint32_t ranks, steps;
    size_t suspects;
    char suspect[512]; /* what there is to say of the first */
};

/* Builds all ranks and steps, compares them where there is a golden side, and writes a database into
 * conf->out_dir.  A target that is a .vis file of an earlier version is converted. */
enum ms_rc graph_run(const struct graph_conf *conf, struct ms_pool *pool, struct graph_made *made,
                     struct ms_err *err) MS_MUST_USE;

/* Converts a .vis file of an earlier version into a database NAME.vis.db in out_dir. */
enum ms_rc graph_convert(const char *vis, const char *out_dir, struct graph_made *made,
                         struct ms_err *err) MS_MUST_USE;

#endif
