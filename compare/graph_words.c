/* SPDX-License-Identifier: MIT
 *
 * graph_words: explanations that the database carries for its readers: of figures,
 * and of the colours of states.  The official ones, which strict mode must
 * reproduce, are Chinese whatever the language of the user is; ours are English.
 */
#include "compare/graph_int.h"

struct words {
    enum probe_mode mode;
    const char *key, *ours, *official;
};

static const struct words tips[] = {
    {PROBE_MODE_SUMMARY, "Max diff", "target maximum minus golden maximum",
     "NPU与标杆API统计信息比对，最大值的差值"},
    {PROBE_MODE_SUMMARY, "Min diff", "target minimum minus golden minimum",
     "NPU与标杆API统计信息比对，最小值的差值"},
    {PROBE_MODE_SUMMARY, "Mean diff", "target mean minus golden mean",
     "NPU与标杆API统计信息比对，平均值的差值"},
    {PROBE_MODE_SUMMARY, "L2norm diff", "target L2 norm minus golden L2 norm",
     "NPU与标杆API统计信息比对，2范数（平方根）的差值"},
    {PROBE_MODE_MD5, "md5", "digest of the data; equal digests mean equal data",
     "数据MD5信息，用于比较两个数据信息是否完全一致"},
    {PROBE_MODE_TENSOR, "One Thousandth Err Ratio",
     "share of elements that are off by less than 0.1 %; 1 is best",
     "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之一的比例占总元素个数的比"
     "例，比例越接近1越好"},
    {PROBE_MODE_TENSOR, "Five Thousandths Err Ratio",
     "share of elements that are off by less than 0.5 %; 1 is best",
     "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之五的比例占总元素个数的比"
     "例，比例越接近1越好"},
    {PROBE_MODE_TENSOR, "Cosine",
     "cosine of the angle between both tensors; 1 is best, nan when one of them is all ze"
     "ros",
     "通过计算两个向量的余弦值来判断其相似度，数值越接近于1说明计算出的两个张量越相似，实"
     "际可接受阈值为大于0.99。在计算中可能会存在nan，主要由于可能会出现其中一个向量为0"},
    {PROBE_MODE_TENSOR, "MaxAbsErr", "largest absolute difference of two elements; 0 is best",
     "当最大绝对误差越接近0表示其计算的误差越小，实际可接受阈值为小于0.001"},
    {PROBE_MODE_TENSOR, "MaxRelativeErr",
     "largest relative difference of two elements; 0 is best, inf or Nan where the golden"
     " element is 0 or Nan",
     "当最大相对误差越接近0表示其计算的误差越小。当dump数据中存在0或Nan时，比对结果中最大"
     "相对误差则出现inf或Nan的情况，属于正常现象"},
};

static const struct words pass[] = {
    {PROBE_MODE_SUMMARY, "pass", "no figure of the node is worth a look",
     "此节点所有输入输出的统计量误差, 颜色越深代表调试侧与标杆侧的偏差越大"},
    {PROBE_MODE_TENSOR, "pass", "no figure of the node is worth a look",
     "此节点所有输入输出的 tensor 误差, 颜色越深代表调试侧与标杆侧的偏差越大"},
    {PROBE_MODE_MD5, "pass", "all digests of the node are equal",
     "与标杆相比, 此节点所有输入输出的md5值相同"},
};
static const struct words differs[] = {
    {PROBE_MODE_SUMMARY, "", "figures of the node differ",
     "此节点所有输入输出的统计量误差, 颜色越深代表调试侧与标杆侧的偏差越大"},
    {PROBE_MODE_TENSOR, "", "figures of the node differ",
     "此节点所有输入输出的 tensor 误差, 颜色越深代表调试侧与标杆侧的偏差越大"},
    {PROBE_MODE_MD5, "", "a digest of the node differs",
     "与标杆相比, 此节点任意输入输出的md5值不同"},
};
static const struct words unmatched = {PROBE_MODE_SUMMARY, "", "the other side has no such node",
                                       "比对过程中节点未匹配上"};

static struct ms_str text_of(const struct words *w, bool strict)
{
    return ms_str_of(strict ? w->official : w->ours);
}

void graph__put_tips(struct ms_buf *out, enum probe_mode mode, bool strict)
{
    const char *between = "";
    if (mode == PROBE_MODE_STRUCTURE && strict) { /* there is nothing to explain */
        ms_buf_puts(out, "{\"Cosine\": \"\", \"EucDist\": \"\", \"MaxAbsErr\": \"\","
                         " \"MaxRelativeErr\": \"\", \"One Thousandth Err Ratio\": \"\","
                         " \"Five Thousandths Err Ratio\": \"\"}");
        return;
    }
    ms_buf_putc(out, '{');
    for (size_t i = 0; i < sizeof tips / sizeof *tips; i++) {
        if (tips[i].mode != mode)
            continue;
        ms_buf_puts(out, between);
        graph__put_json(out, ms_str_of(tips[i].key));
        ms_buf_puts(out, ": ");
        graph__put_json(out, text_of(&tips[i], strict));
        between = ", ";
    }
    ms_buf_putc(out, '}');
}

static void put_band(struct ms_buf *out, const char *colour, const char *range, struct ms_str why,
                     const char *level)
{
    ms_buf_printf(out, "\"%s\": {\"value\": [%s], \"description\": ", colour, range);
    graph__put_json(out, why);
    ms_buf_printf(out, ", \"accuracy_level\": \"%s\"}", level);
}

void graph__put_colours(struct ms_buf *out, enum probe_mode mode, bool strict)
{
    unsigned i = 0;
    while (i + 1 < sizeof pass / sizeof *pass && pass[i].mode != mode)
        i++;
    ms_buf_putc(out, '{');
    if (mode != PROBE_MODE_STRUCTURE) { /* which has nothing to judge */
        put_band(out, "#FFFCF3", "0, 0.3", text_of(&pass[i], strict), "pass");
        ms_buf_puts(out, ", ");
        put_band(out, "#FFDC7F", "0.3, 0.6", text_of(&differs[i], strict), "warning");
        ms_buf_puts(out, ", ");
        put_band(out, "#FF704D", "0.6, 1", text_of(&differs[i], strict), "error");
        ms_buf_puts(out, ", ");
    }
    put_band(out, "#C7C7C7", "", text_of(&unmatched, strict), "unmatched node");
    ms_buf_putc(out, '}');
}

/* ---- merged ranks ------------------------------------------------------------- */

/* The stack of a backward node whose forward node is nowhere. */
struct ms_str graph__lost_stack(bool strict)
{
    return strict
               ? MS_STR("[\"This backward node cannot find the forward node and cannot retrieve "
                        "stack information.\"]")
               : MS_STR("[\"The dump has no forward node that this backward node belongs to.\"]");
}

/* How a merged figure came about: what stands before the numbers. */
void graph__put_merge_word(struct ms_buf *out, unsigned word, struct ms_str item, bool strict)
{
    if (word == GRAPH_WORD_RANKS) {
        ms_buf_puts(out, strict ? "This data is the merged data after tensor parallelism(TP), and "
                                  "the data is merged from rank "
                                : "Figures of tensor-parallel ranks ");
        return;
    }
    if (word == GRAPH_WORD_OUTPUT) {
        ms_buf_puts(out, strict ? "The output of this data is merged from "
                                : "The output is what the reduction makes of it, ");
        return;
    }
    if (strict)
        ms_buf_printf(out, "The %s value merging method for %.*s is: ", probe_stat_names[word],
                      MS_STR_ARG(item));
    else
        ms_buf_printf(out, "%s of %.*s: ", probe_stat_names[word], MS_STR_ARG(item));
}

void graph__put_repairs(struct ms_buf *out, const struct graph_conf *c)
{
    const struct repair {
        const char *what;
        bool on;
    } repairs[] = {
        {"digests of operators that make empty memory are no errors", !c->md5_index},
        {"what hangs below no root is attached to the root", true},
        {"a collection is as bad as its worst member in tensor comparisons too", true},
        {"members of a batch of point-to-point calls are linked", c->batch != GRAPH_BATCH_NONE},
        {"isend meets recv, and ranks count however they were passed", true},
        {"a dtype is what it means in its framework, not how it is spelt", true},
        {"who does not say requires_grad does not disagree", true},
        {"a gradient without a backward node hangs below the forward node", true},
        {"a backward node has the stack of a forward node that comes later", true},
        {"what lies at another place is matched and said to have moved",
         c->matching != CMP_MATCH_EXACT},
    };
    for (size_t i = 0; i < sizeof repairs / sizeof *repairs; i++) {
        if (!repairs[i].on)
            continue;
        ms_buf_puts(out, out->n == 0 ? "[" : ", ");
        graph__put_json(out, ms_str_of(repairs[i].what));
    }
    ms_buf_putc(out, ']');
}
