/* SPDX-License-Identifier: MIT
 *
 * graph_words: explanations stored in the database: figures, colours of states, and
 * differences from the official tool.
 */
#include "compare/graph/build/graph_words.h"

#include "compare/graph/build/json_text.h"
#include "probe/base/assert.h"

static const struct {
    enum probe_mode mode;
    const char *key;
} figures[GRAPH_TIPS] = {
    [GRAPH_TIP_MAX] = {PROBE_MODE_SUMMARY, "Max diff"},
    [GRAPH_TIP_MIN] = {PROBE_MODE_SUMMARY, "Min diff"},
    [GRAPH_TIP_MEAN] = {PROBE_MODE_SUMMARY, "Mean diff"},
    [GRAPH_TIP_NORM] = {PROBE_MODE_SUMMARY, "L2norm diff"},
    [GRAPH_TIP_MD5] = {PROBE_MODE_MD5, "md5"},
    [GRAPH_TIP_ONE_THOUSANDTH] = {PROBE_MODE_TENSOR, "One Thousandth Err Ratio"},
    [GRAPH_TIP_FIVE_THOUSANDTHS] = {PROBE_MODE_TENSOR, "Five Thousandths Err Ratio"},
    [GRAPH_TIP_COSINE] = {PROBE_MODE_TENSOR, "Cosine"},
    [GRAPH_TIP_MAX_ABS] = {PROBE_MODE_TENSOR, "MaxAbsErr"},
    [GRAPH_TIP_MAX_RELATIVE] = {PROBE_MODE_TENSOR, "MaxRelativeErr"},
};

void graph__put_tips(struct ms_buf *out, enum probe_mode mode, const struct graph_words *words)
{
    const char *between = "{";
    if (mode == PROBE_MODE_STRUCTURE) {
        ms_buf_puts(out, words->structure_tips);
        return;
    }
    for (size_t i = 0; i < GRAPH_TIPS; i++) {
        if (figures[i].mode != mode)
            continue;
        ms_buf_puts(out, between);
        graph__put_json(out, ms_str_of(figures[i].key));
        ms_buf_puts(out, ": ");
        graph__put_json(out, ms_str_of(words->tip[i]));
        between = ", ";
    }
    ms_buf_putc(out, '}');
}

static void put_band(struct ms_buf *out, const char *colour, const char *range, const char *why,
                     const char *level)
{
    ms_buf_printf(out, "\"%s\": {\"value\": [%s], \"description\": ", colour, range);
    graph__put_json(out, ms_str_of(why));
    ms_buf_printf(out, ", \"accuracy_level\": \"%s\"}", level);
}

void graph__put_colours(struct ms_buf *out, enum probe_mode mode, const struct graph_words *words)
{
    ms_buf_putc(out, '{');
    if (mode != PROBE_MODE_STRUCTURE) { /* a structure has no verdicts */
        put_band(out, "#FFFCF3", "0, 0.3", words->colour[mode].pass, "pass");
        ms_buf_puts(out, ", ");
        put_band(out, "#FFDC7F", "0.3, 0.6", words->colour[mode].differs, "warning");
        ms_buf_puts(out, ", ");
        put_band(out, "#FF704D", "0.6, 1", words->colour[mode].differs, "error");
        ms_buf_puts(out, ", ");
    }
    put_band(out, "#C7C7C7", "", words->unmatched, "unmatched node");
    ms_buf_putc(out, '}');
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
    ms_assert(out->n == 0);
    for (size_t i = 0; i < sizeof repairs / sizeof *repairs; i++) {
        if (!repairs[i].on)
            continue;
        ms_buf_puts(out, out->n == 0 ? "[" : ", ");
        graph__put_json(out, ms_str_of(repairs[i].what));
    }
    ms_buf_putc(out, ']');
}
