/* SPDX-License-Identifier: MIT
 *
 * rules_official: the rules of msprobe 1 and 26 for tables and graphs.
 */
#include "compare/official/rules_official.h"
#include "compare/measure/measure_stat.h"
#include "compare/read/item.h"
#include "compare/read/pytext.h"
#include "compare/read/setup.h"

#include <math.h>

/* ---- colours -------------------------------------------------------------- */

/* A row is coloured for its own figures, and an output row also for its comparison with each input
 * or parameter of its operator. A reason is repeated for every input to which it applies, as the
 * official tool does. */

/* The colour of a row and the reasons for it. */
struct mark {
    enum cmp_colour colour;
    struct ms_buf *reasons;
};

/* Adds a reason. Red replaces yellow and its reasons. */
static void put_mark(struct mark *m, enum cmp_colour colour, const char *reason)
{
    if (colour < m->colour)
        return;
    if (m->reasons != NULL && colour > m->colour)
        ms_buf_clear(m->reasons);
    if (m->reasons != NULL && m->reasons->n != 0)
        ms_buf_putc(m->reasons, '\n');
    if (m->reasons != NULL)
        ms_buf_puts(m->reasons, reason);
    m->colour = colour;
}

static double max_of(const struct cmp_item *item)
{
    return cmp__value_number(&item->stat[PROBE_STAT_MAX]);
}

/* Returns the difference of the maxima, or in tensor mode the largest difference of elements; NaN
 * when that is not a number. */
static double max_diff(const struct cmp_setup *set, const struct cmp_row *row)
{
    if (set->mode != PROBE_MODE_TENSOR)
        return fabs(max_of(&row->t) - max_of(&row->b));
    bool known = row->fig.state == CMP_STATE_OK || row->fig.state == CMP_STATE_SCALAR;
    return known ? row->fig.metric[CMP_MAX_ABS] : NAN;
}

static bool is_number(const struct cmp_value *x)
{
    return !x->is_text && !isnan(cmp__value_number(x));
}

static bool is_numeric(const struct cmp_setup *set, const struct cmp_row *row)
{
    return is_number(&row->t.stat[PROBE_STAT_MAX]) && is_number(&row->b.stat[PROBE_STAT_MAX]) &&
           !isnan(max_diff(set, row));
}

/* ---- a row by itself -------------------------------------------------------- */

static void judge_alone(const struct cmp_setup *set, const struct cmp_row *row, struct mark *m)
{
    if (cmp_value_is_special(&row->t.stat[PROBE_STAT_MAX]) ||
        cmp_value_is_special(&row->t.stat[PROBE_STAT_MIN]))
        put_mark(m, CMP_RED, "maximum or minimum is nan, -inf, or inf");
    else if (max_diff(set, row) > 1e10)
        put_mark(m, CMP_RED, "maximum absolute error exceeds 1e+10");
}

/* ---- an output against an input ------------------------------------------------ */

static void judge_magnitude(double in, double out, struct mark *m)
{
    if (in > 1 && out > 1 && out >= in && log10(out) - log10(in) >= 1)
        put_mark(
            m, CMP_YELLOW,
            "maximum absolute error of both input/parameters and output exceed 1, with the output "
            "larger by an order of magnitude");
}

/* Returns a figure of a tensor; NaN when the official tool writes a text instead, as for the cosine
 * of one element. */
static double figure_of(const struct cmp_row *row, unsigned which)
{
    double x = row->fig.state == CMP_STATE_OK ? row->fig.metric[which] : NAN;
    return x != HUGE_VAL ? x : NAN;
}

static void judge_tensors(const struct cmp_row *in, const struct cmp_row *out, struct mark *m)
{
    double ratio_in = figure_of(in, CMP_THOUSANDTH), ratio_out = figure_of(out, CMP_THOUSANDTH);
    if (ratio_in > 0.9 && ratio_out < 0.6)
        put_mark(
            m, CMP_RED,
            "The input/parameter's one thousandth err ratio exceeds 0.9, while the output's is "
            "below 0.6");
    else if (ratio_in - ratio_out > 0.1)
        put_mark(m, CMP_YELLOW,
                 "The output's one thousandth err ratio decreases by more than 0.1 compared to the "
                 "input/parameter's");
    if (figure_of(in, CMP_COSINE) - figure_of(out, CMP_COSINE) > 0.1)
        put_mark(
            m, CMP_YELLOW,
            "The output's cosine decreases by more than 0.1 compared to the input/parameter's");
}

static double relative_of(const struct cmp_row *row)
{
    double n = max_of(&row->t), b = max_of(&row->b);
    return b != 0 ? fabs((n - b) / b) : NAN;
}

static void judge_statistics(const struct cmp_row *in, const struct cmp_row *out, struct mark *m)
{
    double rel_in = relative_of(in), rel_out = relative_of(out);
    if (rel_out > 0.5)
        put_mark(m, CMP_RED, "maximum relative error exceeds 0.5");
    else if (rel_out > 0.1 && rel_in < 0.01)
        put_mark(
            m, CMP_YELLOW,
            "The output's maximum relative error exceeds 0.1, while the input/parameter's is below "
            "0.01");
}

static void judge_pair(const struct cmp_setup *set, const struct cmp_row *in,
                       const struct cmp_row *out, struct mark *m)
{
    judge_magnitude(max_diff(set, in), max_diff(set, out), m);
    if (set->mode == PROBE_MODE_TENSOR)
        judge_tensors(in, out, m);
    else
        judge_statistics(in, out, m);
}

/* Tells whether a row is an output. The first row of an operator always counts as an input. */
static bool is_output(const struct cmp_view *v, const struct cmp_row *row)
{
    return row->is_output && row != v->rows.p;
}

static void judge_output(const struct cmp_setup *set, const struct cmp_view *v,
                         const struct cmp_row *row, struct mark *m)
{
    if (!is_output(v, row) || !is_numeric(set, row))
        return;
    for (size_t i = 0; i < v->rows.n; i++) {
        const struct cmp_row *in = &v->rows.p[i];
        if (!is_output(v, in) && is_numeric(set, in))
            judge_pair(set, in, row, m);
    }
}

enum cmp_colour cmp__highlight(const struct cmp_setup *set, const struct cmp_view *v,
                               const struct cmp_row *row, struct ms_buf *reasons)
{
    struct mark m = {.reasons = reasons};
    if (set->mode == PROBE_MODE_MD5 || set->is_debug)
        return CMP_PLAIN;
    judge_alone(set, row, &m);
    judge_output(set, v, row, &m);
    if (!row->grad_same)
        put_mark(&m, CMP_YELLOW, "requires_grad is inconsistent");
    return m.colour;
}

static const char *reached_limit(const struct cmp_row *row)
{
    const double *m = row->fig.metric;
    if (row->fig.state == CMP_STATE_OK && m[CMP_COSINE] == HUGE_VAL) /* the cosine is not defined */
        return "None";
    switch (row->fig.state) {
    case CMP_STATE_SHAPE:
        return "Unmatched";
    case CMP_STATE_MASKS:
        return "No";
    case CMP_STATE_OK:
        break;
    default:
        return "None";
    }
    if ((m[CMP_COSINE] < 0.99 && m[CMP_MAX_ABS] > 0.001) || m[CMP_COSINE] < 0.9 ||
        m[CMP_MAX_ABS] > 1)
        return "No";
    return "Yes";
}

/* Tells whether a statistic differs by more than half of the larger value. */
static bool needs_check(const struct cmp_row *row)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        double n = cmp__value_number(&row->t.stat[i]), b = cmp__value_number(&row->b.stat[i]);
        if (fabs(n - b) / (fabs(n > b ? n : b) + 1e-10) > 0.5)
            return true;
    }
    return false;
}

static const char *result_of(const struct cmp_setup *set, const struct cmp_row *row)
{
    if (set->mode == PROBE_MODE_TENSOR)
        return reached_limit(row);
    if (!row->b.present)
        return "N/A";
    if (set->mode == PROBE_MODE_MD5)
        return ms_str_eq(row->t.md5, row->b.md5) ? "pass" : "Different";
    return needs_check(row) ? "Warning" : "";
}

/* Returns the type of the saved file: numpy has no bfloat16, so these tensors are saved as
 * float32. */
static struct ms_str type_in_numpy(struct ms_str dtype)
{
    return ms_str_ends(dtype, MS_STR("bfloat16")) || ms_str_is(dtype, "BFloat16")
               ? MS_STR("torch.float32")
               : dtype;
}

/* Writes which data file is missing. */
static void tell_missing(struct ms_buf *out, const struct cmp_row *row)
{
    if (ms_str_is(row->t.data_name, "-1"))
        ms_buf_puts(out, "NPU does not have data file.");
    else if (!row->b.present)
        ms_buf_puts(out, "Bench api/module unmatched.");
    else
        ms_buf_puts(out, "Bench does not have data file.");
}

static void tell_unreadable(struct ms_buf *out, const struct cmp_row *row)
{
    ms_buf_puts(out, "Dump file: [");
    cmp__py_repr_text(out, row->t.data_name);
    ms_buf_puts(out, ", ");
    cmp__py_repr_text(out, row->b.data_name);
    ms_buf_puts(out, "] not found or read failed.");
}

/* Writes why figures of two tensor files are missing or limited. */
static void tell_figures(struct ms_buf *out, const struct cmp_row *row)
{
    switch (row->fig.state) {
    case CMP_STATE_SCALAR:
        ms_buf_puts(out, "This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', 'One "
                         "Thousandth Err Ratio' and 'Five Thousandths Err Ratio'. ");
        return;
    case CMP_STATE_EMPTY:
        ms_buf_puts(out, "This is empty data, can not compare.");
        return;
    case CMP_STATE_SHAPE:
        ms_buf_puts(out, "Shape of NPU and bench tensor do not match. Skipped.");
        return;
    case CMP_STATE_MASKS:
        ms_buf_puts(out, "The position of inf or nan in NPU and bench Tensor do not match.");
        return;
    case CMP_STATE_UNREADABLE:
        tell_unreadable(out, row);
        return;
    case CMP_STATE_OK:
        if (!ms_str_eq(type_in_numpy(row->t.dtype), type_in_numpy(row->b.dtype)))
            ms_buf_puts(out, "Dtype of NPU and bench tensor do not match.");
        return;
    default:
        tell_missing(out, row);
    }
}

/* Returns why the cosine is undefined, or "". The best scale is NaN only when the golden side is
 * zero. */
static const char *told_by_cosine(const struct cmp_row *row)
{
    if (row->fig.state != CMP_STATE_OK)
        return "";
    if (row->fig.metric[CMP_COSINE] == HUGE_VAL)
        return "This is a 1-d tensor of length 1.";
    if (!isnan(row->fig.metric[CMP_COSINE]))
        return "";
    return isnan(row->fig.ext.scale)
               ? "Cannot compare by Cosine Similarity, All the data is Zero in Bench dump data."
               : "Cannot compare by Cosine Similarity, All the data is Zero in npu dump data.";
}

static void tell_no_error(struct ms_buf *out, const struct cmp_row *row)
{
    static const char why[] = ", the data contains nan/inf/-inf in dump data.";
    if (row->fig.state != CMP_STATE_OK && row->fig.state != CMP_STATE_SCALAR)
        return;
    if (isnan(row->fig.metric[CMP_MAX_ABS]))
        ms_buf_printf(out, "Cannot compare by MaxAbsError%s", why);
    if (isnan(row->fig.metric[CMP_MAX_REL]))
        ms_buf_printf(out, "Cannot compare by MaxRelativeError%s", why);
}

/* Appends the reasons for the row's colour to the message, on separate lines. */
static enum ms_rc add_reasons(const struct cmp_setup *set, struct cmp_view *v,
                              const struct cmp_row *row, struct cmp_row_verdict *out,
                              struct ms_err *err)
{
    struct ms_buf reasons = {.max = 1 << 24};
    out->colour = cmp__highlight(set, v, row, &reasons);
    if (reasons.n != 0 && v->scratch.n != 0)
        ms_buf_putc(&v->scratch, '\n');
    ms_buf_str(&v->scratch, ms_buf_slice(&reasons));
    ms_buf_free(&reasons);
    return cmp__keep(v, &out->message, err);
}

/* Writes the message of a row. In tensor mode an inconsistent requires_grad replaces the note that
 * the partner is missing. */
static void append_reasons(const struct cmp_setup *set, const struct cmp_row *row,
                           const char *result, struct ms_buf *out)
{
    bool tensor = set->mode == PROBE_MODE_TENSOR;
    if (!row->b.present && (row->grad_same || !tensor))
        ms_buf_puts(out, "No bench data matched.");
    if (set->mode == PROBE_MODE_SUMMARY && strcmp(result, "Warning") == 0)
        ms_buf_puts(out, "Need double check api accuracy. ");
    if (!row->grad_same)
        ms_buf_puts(out, "Requires_grad inconsistent. ");
    if (tensor) {
        tell_figures(out, row);
        ms_buf_puts(out, told_by_cosine(row));
        tell_no_error(out, row);
    }
}

enum ms_rc cmp__judge_old(const struct cmp_setup *set, struct cmp_view *v,
                          const struct cmp_row *row, struct cmp_row_verdict *out,
                          struct ms_err *err)
{
    const char *result = result_of(set, row);
    *out = (struct cmp_row_verdict){.result = ms_str_of(result)};
    out->failed = strcmp(result, "No") == 0 || strcmp(result, "Different") == 0 ||
                  strcmp(result, "Warning") == 0;
    append_reasons(set, row, result, &v->scratch);
    return set->conf.highlight ? add_reasons(set, v, row, out, err)
                               : cmp__keep(v, &out->message, err);
}

/* ---- rules ------------------------------------------------------------------ */

static const struct cmp_rules rules_old = {
    .name = "old",
    .thousandth_limit = 0.1,
    .tensor_title = "Accuracy Reached or Not",
    .measure_stats = cmp__measure_stats_old,
    .judge_row = cmp__judge_old,
    .colour_row = cmp__highlight,
    .lists_all_records = true,
    .official_stacks = true,
    .one_framework = true,
    .official_ranks = true,
    .one_mapping = true,
    .layers_of_mindspore = true,
    .official_layers = true,
    .renumbers_golden_alone = true,
    .maps_cells_once = true,
    .drops_unmapped = true,
    .shape_in_key = true,
    .fuzzy_stops = true,
    .parts_dtypes = true,
    .forgets_operators = true,
    .refuses_orders = true,
    .folds_text = true,
    .folds_named_files = true,
    .fused_shapes_agree = true,
    .loses_digests = true,
    .joined_as_float = true,
    .pandas_numbers = true,
    .golden_zero_by_double = true,
    .numpy_scalars = true,
    .keeps_axes = true,
    .own_formats = true,
    .ignores_signs = true,
    .whole_outputs = true,
    .skips_bad_matrices = true,
    .tabs_infinities = true,
    .output_by_name = true,
    .compares_dtype_text = true,
    .judges_gradients = true,
    .none_differs = true,
    .loses_reading = true,
    .scalars_count = true,
    .folded_digests_differ = true,
    .digests_alone = true,
    .judges_inference_alone = true,
    .missing_is_nan = true,
    .rules_by_first_input = true,
    .stack_of_record = true,
    .text_numbers = true,
    .no_digest_message = true,
    .official_diff = true,
    .diff_asks_inputs = true,
};

static const struct cmp_rules cmp_rules_strict = {
    .name = "strict",
    .thousandth_limit = 0.1,
    .tensor_title = "Result",
    .lists_named_directions = true,
    .counts_calls = true,
    .official_stacks = true,
    .one_framework = true,
    .official_ranks = true,
    .one_mapping = true,
    .layers_of_mindspore = true,
    .official_layers = true,
    .renumbers_golden_alone = true,
    .drops_unmapped = true,
    .fuzzy_stops = true,
    .parts_dtypes = true,
    .forgets_operators = true,
    .refuses_orders = true,
    .folds_text = true,
    .folds_named_files = true,
    .fused_shapes_agree = true,
    .loses_digests = true,
    .joined_as_float = true,
    .column_types = true,
    .pandas_numbers = true,
    .single_scalars = true,
    .numpy_scalars = true,
    .own_formats = true,
    .ignores_signs = true,
    .skips_bad_matrices = true,
    .tabs_infinities = true,
    .output_by_name = true,
    .compares_dtype_text = true,
    .judges_gradients = true,
    .none_differs = true,
    .loses_reading = true,
    .scalars_count = true,
    .folded_digests_differ = true,
    .digests_alone = true,
    .judges_inference_alone = true,
    .missing_is_nan = true,
    .rules_by_first_input = true,
    .judges_by_place = true,
    .stack_of_record = true,
    .skips_empty = true,
    .official_diff = true,
};

const struct cmp_rules *cmp_rules_of(enum cmp_compat compat)
{
    return compat == CMP_STRICT ? &cmp_rules_strict
           : compat == CMP_OLD  ? &rules_old
                                : &cmp_rules_ours;
}

/* ---- rules of graphs -------------------------------------------------------- */

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
