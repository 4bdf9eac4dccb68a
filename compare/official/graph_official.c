/* SPDX-License-Identifier: MIT
 *
 * graph_official: the rules of the official tool for graphs, and its texts, which are
 * always Chinese.
 */
#include "compare/official/graph_official.h"

#include "compare/official/rules_official.h"

static const struct graph_words words = {
    .tip =
        {[GRAPH_TIP_MAX] = "NPU与标杆API统计信息比对，最大值的差值",
         [GRAPH_TIP_MIN] = "NPU与标杆API统计信息比对，最小值的差值",
         [GRAPH_TIP_MEAN] = "NPU与标杆API统计信息比对，平均值的差值",
         [GRAPH_TIP_NORM] = "NPU与标杆API统计信息比对，2范数（平方根）的差值",
         [GRAPH_TIP_MD5] = "数据MD5信息，用于比较两个数据信息是否完全一致",
         [GRAPH_TIP_ONE_THOUSANDTH] = "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之一"
                                      "的比例占总元素个数的比例，比例越接近1越好",
         [GRAPH_TIP_FIVE_THOUSANDTHS] = "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之"
                                        "五的比例占总元素个数的比例，比例越接近1越好",
         [GRAPH_TIP_COSINE] =
             "通过计算两个向量的余弦值来判断其相似度，数值越接近于1说明计算出的两个张量越相似，实际"
             "可接受阈值为大于0.99。在计算中可能会存在nan，主要由于可能会出现其中一个向量为0",
         [GRAPH_TIP_MAX_ABS] =
             "当最大绝对误差越接近0表示其计算的误差越小，实际可接受阈值为小于0.001",
         [GRAPH_TIP_MAX_RELATIVE] =
             "当最大相对误差越接近0表示其计算的误差越小。当dump数据中存在0或Nan时，比对结果中最大相"
             "对误差则出现inf或Nan的情况，属于正常现象"},
    .structure_tips = "{\"Cosine\": \"\", \"EucDist\": \"\", \"MaxAbsErr\": \"\","
                      " \"MaxRelativeErr\": \"\", \"One Thousandth Err Ratio\": \"\","
                      " \"Five Thousandths Err Ratio\": \"\"}",
    .colour =
        {
            [PROBE_MODE_SUMMARY] =
                {"此节点所有输入输出的统计量误差, 颜色越深代表调试侧与标杆侧的偏差越大",
                 "此节点所有输入输出的统计量误差, 颜色越深代表调试侧与标杆侧的偏差越大"},
            [PROBE_MODE_TENSOR] =
                {"此节点所有输入输出的 tensor 误差, 颜色越深代表调试侧与标杆侧的偏差越大",
                 "此节点所有输入输出的 tensor 误差, 颜色越深代表调试侧与标杆侧的偏差越大"},
            [PROBE_MODE_MD5] = {"与标杆相比, 此节点所有输入输出的md5值相同",
                                "与标杆相比, 此节点任意输入输出的md5值不同"},
        },
    .unmatched = "比对过程中节点未匹配上",
    .lost_stack = "[\"This backward node cannot find the forward node and cannot retrieve "
                  "stack information.\"]",
    .ranks = "This data is the merged data after tensor parallelism(TP), and the data is merged "
             "from rank ",
    .reduction = "The output of this data is merged from ",
    .before_stat = "The ",
    .before_item = " value merging method for ",
    .after_item = " is: ",
};

const struct graph_rules graph_rules_official = {
    .rows = &cmp_rules_strict,
    .words = &words,
    .attach_detached = false,
    .later_forward_stack = false,
    .keep_gradients = false,
    .golden_follows_target = false,
    .exempt_whole_operators = true,
    .align = false,
    .fuzzy_before_layers = true,
    .red_empty = true,
    .collections_by_members = false,
    .viewer_tables = false,
    .whole_modified_index = true,
    .isend_meets_recv = false,
    .link_batches = false,
    .ranks_by_position = false,
    .check_all_groups = false,
    .collections_keep_micro = false,
    .rank_joined_operators = false,
    .list_lost_children = true,
    .join_root_children = false,
    .keep_chunk_rest = false,
    .nan_is_extreme = false,
    .join_overflows = false,
    .step_of_directory = true,
};
