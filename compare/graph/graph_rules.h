/* SPDX-License-Identifier: MIT
 *
 * graph_rules: what a graph does in cases about which ours and the official tool disagree.
 *
 * Each field is one decision, read where it is taken.  graph_rules_ours are the
 * values in use unless a caller says otherwise; the values that reproduce the
 * official tool, defects included, are in compare/official/graph_official.h.
 */
#ifndef COMPARE_GRAPH_GRAPH_RULES_H
#define COMPARE_GRAPH_GRAPH_RULES_H

#include "compare/compare.h"
#include "compare/read/rules.h"

/* Figures that tb_config explains. */
enum graph_tip {
    GRAPH_TIP_MAX,
    GRAPH_TIP_MIN,
    GRAPH_TIP_MEAN,
    GRAPH_TIP_NORM,
    GRAPH_TIP_MD5,
    GRAPH_TIP_ONE_THOUSANDTH,
    GRAPH_TIP_FIVE_THOUSANDTHS,
    GRAPH_TIP_COSINE,
    GRAPH_TIP_MAX_ABS,
    GRAPH_TIP_MAX_RELATIVE,
    GRAPH_TIPS
};

/* Sentences that a database carries for its readers. */
struct graph_words {
    const char *tip[GRAPH_TIPS];
    const char *structure_tips; /* JSON, of a comparison without figures */
    struct {
        const char *pass, *differs;
    } colour[PROBE_MODE_STRUCTURE]; /* by mode; a structure has no colours */
    const char *unmatched;          /* colour of nodes without a partner */
    const char *lost_stack; /* JSON list: the stack of a backward node without forward node */
    /* How figures of merged ranks came about: what stands before the ranks, before the reduction, and
     * around the names of statistic and item. */
    const char *ranks, *reduction, *before_stat, *before_item, *after_item;
};

struct graph_rules {
    const struct cmp_rules *rows; /* rules by which the table compare judges rows */
    const struct graph_words *words;

    /* The tree of a rank. */
    bool attach_detached;     /* a subtree without a way to the root hangs below the root */
    bool later_forward_stack; /* a backward node has the stack of a forward node behind it too */
    bool keep_gradients;      /* a gradient without a backward node hangs below the forward node */
    bool golden_follows_target;  /* golden nodes have the micro steps of their partners */
    bool exempt_whole_operators; /* an exemption from overflow checks is for all of an operator */

    /* Matching and judging two trees. */
    bool align;               /* nodes are aligned where names differ, and found where they moved */
    bool fuzzy_before_layers; /* fuzzy matching goes before a layer mapping */
    bool red_empty;           /* digests of operators that make empty memory are errors */
    bool collections_by_members; /* a collection is as bad as its worst member, of tensors too */

    /* The database. */
    bool viewer_tables;        /* x_ tables are written */
    bool whole_modified_index; /* index6 holds rows that were never modified */

    /* Links between ranks. */
    bool isend_meets_recv;  /* asynchronous and plain calls meet each other */
    bool link_batches;      /* members of a batch of point-to-point calls are linked */
    bool ranks_by_position; /* a rank counts as well when it was passed the other way */

    /* Merging ranks. */
    bool check_all_groups;       /* groups that the dumps state are used when every one fits */
    bool collections_keep_micro; /* a collection of all ranks has the micro step of the first */
    bool rank_joined_operators;  /* operators of a joined collection get their rank into the name */
    bool list_lost_children; /* sub_nodes names children that hang elsewhere under the same name */
    bool join_root_children; /* nodes below the root of later stages join it in any case */
    bool keep_chunk_rest;    /* what a chunk holds besides layers goes to chunk 0 */
    bool nan_is_extreme;     /* a NaN on any rank is the merged maximum and minimum */
    bool join_overflows;     /* a merged node overflows when it does on any rank */
    bool step_of_directory;  /* the step of merged ranks is that of the directory's name */
};

extern const struct graph_rules graph_rules_ours;

#endif
