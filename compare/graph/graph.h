/* SPDX-License-Identifier: MIT
 *
 * graph: the containment tree of a dump, or of two dumps side by side, as a database.
 *
 *     construct.json ─┐
 *     dump.json ──────┼─► tree ─► match ─► judge ─► *.vis.db ─► viewers (graph_view.h)
 *     stack.json ─────┘
 *
 * The schema is that of the official TensorBoard plugin, which can open the file; our
 * own tables begin with x_ and the plugin ignores them. Words are the official ones: the
 * target is "NPU", the golden side "Bench".
 */
#ifndef COMPARE_GRAPH_GRAPH_H
#define COMPARE_GRAPH_GRAPH_H

#include "compare/compare.h"
#include "probe/base/pool.h"
#include "probe/base/str.h"

#include <stdbool.h>

/* Result of comparing a node. */
enum graph_state {
    GRAPH_NONE, /* nothing was compared: no partner, or no items */
    GRAPH_PASS,
    GRAPH_WARNING,
    GRAPH_ERROR,
    GRAPH_STATES
};

/* How matched_distributed links the members of a batch of point-to-point operations: as a list, the
 * first member only, or none. */
enum graph_batch { GRAPH_BATCH_LIST, GRAPH_BATCH_FIRST, GRAPH_BATCH_NONE };

/* Called on every change of progress, from the thread that called graph_run. */
typedef void (*graph_progress_fn)(void *ctx, int percent);
/* Called with a message for the user: what was repaired, left out, or is missing. */
typedef void (*graph_note_fn)(void *ctx, const char *line);

/* How a run is divided into ranks. */
struct graph_param {
    uint32_t rank_size, tp, pp, vpp;
    const char *order; /* order of the parallelisms, "tp-cp-ep-dp-pp" */
};

struct graph_rules;

struct graph_conf {
    const char *target;
    const char *golden;              /* NULL or "": one graph */
    const char *out_dir;             /* created when missing */
    const struct graph_rules *rules; /* NULL: graph_rules_ours */
    bool fuzzy;
    bool overflow;
    /* used when neither fuzzy nor map_layers is set and the rules align */
    enum cmp_matching matching;
    bool map_layers;        /* match by the rules of layer_mapping */
    const char *layer_file; /* NULL: only the built-in rules */
    /* in MD5 mode, mark operators that allocate empty tensors as errors, as .vis files of earlier
     * versions were shown */
    bool md5_index;
    enum graph_batch batch;
    /* Find the nodes that introduce differences. Ignored for merged ranks and without x_ tables. */
    bool suspects;
    bool log_items; /* emit a note for every item whose tensors were compared */
    /* for the target and the golden side; NULL: ranks are not merged */
    const struct graph_param *merge;
    bool json;                  /* write merged ranks as dumps instead of a database */
    graph_progress_fn progress; /* may be NULL; note may be NULL too */
    graph_note_fn note;
    void *ctx;
};

struct graph_made {
    char path[4096];               /* of the database */
    uint64_t nodes[2];             /* target, golden */
    uint64_t states[GRAPH_STATES]; /* target nodes by state */
    uint64_t matched;
    uint32_t ranks, steps;
    uint32_t left_out; /* ranks that could not be read; each was a note */
    size_t suspects;
    char suspect[512]; /* text of suspect 1 */
};

/* Builds the trees of all ranks and steps, compares them when there is a golden side, and writes a
 * database into conf->out_dir. Converts a target that is a .vis file of an earlier version. */
enum ms_rc graph_run(const struct graph_conf *conf, struct ms_pool *pool, struct graph_made *made,
                     struct ms_err *err) MS_MUST_USE;

/* Converts a .vis file of an earlier version into a database NAME.vis.db in out_dir. */
enum ms_rc graph_convert(const char *vis, const char *out_dir, struct graph_made *made,
                         struct ms_err *err) MS_MUST_USE;

#endif
