/* SPDX-License-Identifier: MIT
 *
 * graph_rules: decisions in which our graph differs from that of the official tool.
 *
 * Each field is one decision. graph_rules_ours holds the default values; the values that
 * reproduce the official tool, defects included, are in
 * compare/official/rules_official.h.
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

/* Explanations stored in a database for the viewers. */
struct graph_words {
    const char *tip[GRAPH_TIPS];
    const char *structure_tips; /* JSON; used when only structures are compared */
    struct {
        const char *pass, *differs;
    } colour[PROBE_MODE_STRUCTURE]; /* by mode; a structure has no colours */
    const char *unmatched;          /* colour of nodes without a partner */
    const char *lost_stack; /* JSON list: stack shown for a backward node without a forward node */
    /* Parts of the text that explains merged figures: the prefixes of the ranks and of the
     * reduction, and the text around the names of statistic and item. */
    const char *ranks, *reduction, *before_stat, *before_item, *after_item;
};

struct graph_rules {
    const struct cmp_rules *rows; /* rules for rows, shared with `compare` tables */
    const struct graph_words *words;

    /* The tree of a rank. */
    bool attach_detached; /* attach subtrees that are not connected to the root below it */
    /* a backward node also takes the stack of a forward node that comes later */
    bool later_forward_stack;
    bool keep_gradients; /* a gradient without a backward node is attached to the forward node */
    bool golden_follows_target;  /* golden nodes take the micro steps of their partners */
    bool exempt_whole_operators; /* an exemption from overflow checks covers the whole operator */

    /* Matching and judging two trees. */
    bool align;               /* align nodes whose names differ, and find nodes that moved */
    bool fuzzy_before_layers; /* fuzzy matching takes precedence over a layer mapping */
    bool red_empty;           /* in MD5 mode, operators that allocate empty memory are errors */
    /* a collection takes the worst state of its members, also in tensor mode */
    bool collections_by_members;

    /* The database. */
    bool viewer_tables;        /* write the x_ tables */
    bool whole_modified_index; /* index6 also holds rows that were never modified */

    /* Links between ranks. */
    bool isend_meets_recv;  /* an asynchronous call can match a plain one (isend with recv) */
    bool link_batches;      /* link the members of a batch of point-to-point calls */
    bool ranks_by_position; /* accept the peer rank as positional or keyword argument */

    /* Merging ranks. */
    bool check_all_groups; /* use the groups found in the dumps only if every group fits */
    /* a collection of all ranks takes the micro step of the first rank's collection */
    bool collections_keep_micro;
    bool rank_joined_operators; /* add the rank to the names of operators in a joined collection */
    /* sub_nodes lists children that are attached elsewhere under the same name */
    bool list_lost_children;
    bool join_root_children; /* always join nodes below the root of later stages */
    bool keep_chunk_rest;    /* nodes of a chunk that are not layers move to chunk 0 */
    bool nan_is_extreme;     /* a NaN on any rank becomes the merged maximum and minimum */
    bool join_overflows;     /* a merged node overflows if it does on any rank */
    bool step_of_directory;  /* take the step of merged ranks from the name of the directory */
};

extern const struct graph_rules graph_rules_ours;

#endif
