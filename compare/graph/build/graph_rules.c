/* SPDX-License-Identifier: MIT
 *
 * graph_rules: the default rules and their English texts.
 */
#include "compare/graph/graph_rules.h"

static const struct graph_words words = {
    .tip = {[GRAPH_TIP_MAX] = "target maximum minus golden maximum",
            [GRAPH_TIP_MIN] = "target minimum minus golden minimum",
            [GRAPH_TIP_MEAN] = "target mean minus golden mean",
            [GRAPH_TIP_NORM] = "target L2 norm minus golden L2 norm",
            [GRAPH_TIP_MD5] = "digest of the data; equal digests mean equal data",
            [GRAPH_TIP_ONE_THOUSANDTH] =
                "share of elements that are off by less than 0.1 %; 1 is best",
            [GRAPH_TIP_FIVE_THOUSANDTHS] =
                "share of elements that are off by less than 0.5 %; 1 is best",
            [GRAPH_TIP_COSINE] =
                "cosine of the angle between both tensors; 1 is best, nan when one "
                "of them is all zeros",
            [GRAPH_TIP_MAX_ABS] = "largest absolute difference of two elements; 0 is best",
            [GRAPH_TIP_MAX_RELATIVE] =
                "largest relative difference of two elements; 0 is best, inf "
                "or Nan where the golden element is 0 or Nan"},
    .structure_tips = "{}",
    .colour = {[PROBE_MODE_SUMMARY] = {"no figure of the node is worth a look",
                                       "figures of the node differ"},
               [PROBE_MODE_TENSOR] = {"no figure of the node is worth a look",
                                      "figures of the node differ"},
               [PROBE_MODE_MD5] = {"all digests of the node are equal",
                                   "a digest of the node differs"}},
    .unmatched = "the other side has no such node",
    .lost_stack = "[\"The dump has no forward node that this backward node belongs to.\"]",
    .ranks = "Figures of tensor-parallel ranks ",
    .reduction = "The output is what the reduction makes of it, ",
    .before_stat = "",
    .before_item = " of ",
    .after_item = ": ",
};

const struct graph_rules graph_rules_ours = {
    .rows = &cmp_rules_ours,
    .words = &words,
    .attach_detached = true,
    .later_forward_stack = true,
    .keep_gradients = true,
    .golden_follows_target = true,
    .exempt_whole_operators = false,
    .align = true,
    .fuzzy_before_layers = false,
    .red_empty = false,
    .collections_by_members = true,
    .viewer_tables = true,
    .whole_modified_index = false,
    .isend_meets_recv = true,
    .link_batches = true,
    .ranks_by_position = true,
    .check_all_groups = true,
    .collections_keep_micro = true,
    .rank_joined_operators = true,
    .list_lost_children = false,
    .join_root_children = true,
    .keep_chunk_rest = true,
    .nan_is_extreme = true,
    .join_overflows = true,
    .step_of_directory = false,
};
