/* SPDX-License-Identifier: MIT
 *
 * Verdicts against a second statement of the rules: operators are drawn whose rows have every value that
 * a rule asks for, at each limit and beside it, and each note must be there when its rule, read from the
 * specification alone and on its own, says so.
 */
#include "compare/judge/judge.h"
#include "compare/measure/fold.h"
#include "tests/support/check.h"

#include <math.h>

enum { ROWS = 5, CASES = 60000 };

#define BIT(name) (1U << CMP_NOTE_##name)

/* ---- chance --------------------------------------------------------------------------------- */

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

static bool one_in(uint32_t n)
{
    return below(n) == 0;
}

#define PICK(list) ((list)[below(sizeof(list) / sizeof *(list))])

/* ---- what is drawn ---------------------------------------------------------------------------- */

/* A value of an argument, and which others Python takes for equal to it. */
static const struct argument {
    const char *dtype;
    struct cmp_value value;
    int equals;
} arguments[] = {
#define NUMBER(v, text)                                                                            \
    CMP_VALUE_NUMBER, false, false, v,                                                             \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define INTEGER(v, text)                                                                           \
    CMP_VALUE_NUMBER, true, false, v,                                                              \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define WORD(text)                                                                                 \
    CMP_VALUE_TEXT, false, false, NAN,                                                             \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
    {"<class 'float'>", {NUMBER(1, "1.0")}, 1},
    {"<class 'int'>", {INTEGER(1, "1")}, 1},
    {"<class 'bool'>", {WORD("True")}, 1},
    {"<class 'bool'>", {WORD("False")}, 0},
    {"<class 'float'>", {NUMBER(0, "0.0")}, 0},
    {"<class 'int'>", {INTEGER(9007199254740992.0, "9007199254740992")}, 2},
    {"<class 'int'>", {INTEGER(9007199254740992.0, "9007199254740993")}, 3},
    {"<class 'str'>", {WORD("mean")}, 4},
    {"<class 'str'>", {WORD("sum")}, 5},
    {"<class 'float'>", {CMP_VALUE_NAN, false, false, NAN, {"nan", 3}}, 6},
    {"class", {INTEGER(1, "1")}, 1},
    {"<class 'float'>", {CMP_VALUE_INF, false, false, INFINITY, {"inf", 3}}, 7},
    {"<class 'float'>", {CMP_VALUE_NINF, false, false, -INFINITY, {"-inf", 4}}, 8},
};
enum { ARGUMENTS = sizeof arguments / sizeof *arguments };

static const struct {
    const char *text;
    unsigned count;
} shapes[] = {{"[2, 3]", 6}, {"[3, 2]", 6}, {"[6]", 6}, {"[2, 4]", 8}, {"[]", 1}, {"[1]", 1}};

static const struct {
    const char *text;
    enum ms_dtype type;
} dtypes[] = {{"torch.float32", MS_DT_F32},
              {"Float32", MS_DT_F32},
              {"torch.float16", MS_DT_F16},
              {"of nobody", MS_DT_NONE}};

static const char *const names[] = {"Torch.a.0.forward.input.0", "Module.qkv.0.forward.input.0",
                                    "Module.gate_up.0.forward.output.0", "qkv", "gate_up"};
static const char *const grads[] = {"True", "False", "N/A", "None"};
static const char *const digests[] = {"0a", "0b", "0a;0b", "", "N/A", "Nan"};
static const char *const files[] = {"a.pt", "b.pt", "-1", "N/A"};
static const double norms[] = {0, 0.01, 0.0999, 0.1, 0.11, 0.5, 0.51, 1, 1.1, NAN};
static const double ratios[] = {0, 0.5, 0.59, 0.6, 0.61, 0.85, 0.9, 0.91, 1, NAN};
static const enum cmp_state states[] = {CMP_STATE_OK,      CMP_STATE_OK,         CMP_STATE_OK,
                                        CMP_STATE_NO_DATA, CMP_STATE_UNREADABLE, CMP_STATE_MASKS,
                                        CMP_STATE_EMPTY,   CMP_STATE_SHAPE,      CMP_STATE_SCALAR};

enum exemption { RULES, OUTPUTS_ONLY, NO_RULES };
static const struct {
    const char *name;
    enum exemption exemption;
} apis[] = {{"add", RULES},
            {"add", RULES},
            {"add", RULES},
            {"_rank", RULES},
            {"rank0", RULES},
            {"to_rank", RULES},
            {"empty_rank", RULES},
            {"emptied", RULES},
            {"empty", NO_RULES},
            {"empty_like", NO_RULES},
            {"numpy", NO_RULES},
            {"to", NO_RULES},
            {"__setitem__", NO_RULES},
            {"empty_with_format", NO_RULES},
            {"new_empty_strided", NO_RULES},
            {"new_empty", NO_RULES},
            {"empty_strided", NO_RULES},
            {"_reduce_scatter_base", OUTPUTS_ONLY},
            {"_all_gather_base", OUTPUTS_ONLY},
            {"all_to_all_single", OUTPUTS_ONLY},
            {"batch_isend_irecv", OUTPUTS_ONLY}};

/* An operator, and of each side of each row what the draw knows of it. */
static struct {
    struct cmp_rules rules;
    struct cmp_setup set;
    struct cmp_view view;
    struct cmp_row row[ROWS];
    struct side {
        int equals; /* of an argument; below 0: a tensor */
        unsigned count;
        bool is_special;
    } t[ROWS], b[ROWS];
    char op[80], first_input[80];
    enum exemption exemption;
} d;

static void draw_special(struct cmp_item *item, struct side *s)
{
    static const enum cmp_value_kind kinds[] = {CMP_VALUE_NAN, CMP_VALUE_INF, CMP_VALUE_NINF};
    item->stat[one_in(2) ? PROBE_STAT_MAX : PROBE_STAT_MIN].kind = PICK(kinds);
    s->is_special = true;
}

static void draw_item(struct cmp_item *item, struct side *s, bool is_argument)
{
    const uint32_t shape = is_argument && !one_in(8) ? 4 : below(6),
                   type = below(one_in(3) ? 4 : 1);
    const uint32_t argument = below(ARGUMENTS);
    *s = (struct side){.equals = is_argument ? arguments[argument].equals : -1,
                       .count = shapes[shape].count};
    *item = (struct cmp_item){.present = true,
                              .name = ms_str_of(PICK(names)),
                              .dtype = ms_str_of(dtypes[type].text),
                              .type = dtypes[type].type,
                              .shape = ms_str_of(shapes[one_in(3)     ? shape
                                                        : is_argument ? shape
                                                                      : 0]
                                                     .text),
                              .requires_grad = ms_str_of(PICK(grads)),
                              .md5 = ms_str_of(PICK(digests)),
                              .data_name = ms_str_of(PICK(files))};
    if (!ms_str_is(item->shape, shapes[shape].text))
        s->count = shapes[0].count;
    for (int k = 0; k < PROBE_STATS; k++)
        item->stat[k] = (struct cmp_value){.kind = CMP_VALUE_NUMBER, .v = 1, .text = MS_STR("1")};
    item->stat[PROBE_STAT_NORM].is_text = one_in(10);
    if (is_argument) {
        item->dtype = ms_str_of(arguments[argument].dtype);
        item->type = MS_DT_NONE;
        item->stat[PROBE_STAT_MAX] = arguments[argument].value;
        s->is_special = s->equals >= 6;
    } else if (one_in(8)) {
        draw_special(item, s);
    }
}

static void draw_row(int i)
{
    struct cmp_row *r = &d.row[i];
    const bool is_argument = one_in(3);
    *r = (struct cmp_row){.grad_same = one_in(2), .is_output = one_in(2)};
    draw_item(&r->t, &d.t[i], is_argument);
    draw_item(&r->b, &d.b[i], is_argument && !one_in(6));
    if (one_in(8))
        r->b.present = false;
    else if (one_in(8))
        r->t.present = false;
    for (int k = 0; k < PROBE_STATS; k++) {
        r->delta[k].rel_inf = k == PROBE_STAT_NORM ? one_in(10) : one_in(2);
        r->delta[k].rel_value = r->delta[k].rel_inf ? NAN : PICK(norms);
    }
    r->fig.state = PICK(states);
    for (int k = 0; k < CMP_METRICS; k++)
        r->fig.metric[k] = PICK(ratios);
}

static void draw_rules(void)
{
    struct cmp_rules *r = &d.rules;
    *r = (struct cmp_rules){.thousandth_limit = one_in(2) ? 0.6 : 0.1,
                            .compares_dtype_text = one_in(2),
                            .judges_gradients = one_in(2),
                            .none_differs = one_in(2),
                            .loses_reading = one_in(2),
                            .scalars_count = one_in(2),
                            .folded_digests_differ = one_in(2),
                            .digests_alone = one_in(2),
                            .has_unmatched = one_in(2),
                            .judges_inference_alone = one_in(2),
                            .missing_is_nan = one_in(2),
                            .rules_by_first_input = one_in(2)};
    d.set = (struct cmp_setup){
        .conf = {.rules = r, .consistent = one_in(3) ? CMP_CONSISTENT_FSDP : CMP_CONSISTENT_NO},
        .mode = (enum probe_mode)below(3),
        .merged = one_in(3),
        .is_graph = one_in(3),
        .aligned = one_in(2)};
}

static enum exemption draw_name(char name[80])
{
    static const char *const ends[] = {"", "", "_rank0", "_rank12"};
    const uint32_t api = below(sizeof apis / sizeof *apis);
    const char *end = PICK(ends);
    snprintf(name, 80, "Torch.%s%s.0.forward", apis[api].name, end);
    return *end == '\0' || d.set.merged ? apis[api].exemption : RULES;
}

static void draw(uint64_t seed)
{
    state = seed;
    draw_rules();
    d.exemption = draw_name(d.op);
    d.view.op = one_in(20) ? MS_STR("") : ms_str_of(d.op);
    if (d.view.op.n == 0)
        d.exemption = RULES;
    d.view.rows.p = d.row;
    d.view.rows.n = 1 + below(ROWS);
    for (int i = 0; i < (int)d.view.rows.n; i++)
        draw_row(i);
    if (!d.rules.rules_by_first_input)
        return;
    d.exemption = RULES;
    for (size_t i = 0; i < d.view.rows.n; i++) {
        struct cmp_row *r = &d.row[i];
        if (r->is_output || !r->t.present)
            continue;
        d.exemption = draw_name(d.first_input);
        r->t.name = ms_str_of(d.first_input);
        break;
    }
}

/* ---- the rules, one at a time -------------------------------------------------------------------- */

static bool holds(struct ms_str s, const char *part)
{
    return memmem(s.p, s.n, part, strlen(part)) != NULL;
}

static bool is_inference(void)
{
    return d.set.conf.consistent != CMP_CONSISTENT_NO;
}

/* Rows of training against inference have neither gradients nor the same axes. */
static bool leaves_attributes(void)
{
    return is_inference() && (!d.rules.judges_gradients || d.set.mode == PROBE_MODE_TENSOR);
}

static bool is_class(struct ms_str dtype)
{
    return holds(dtype, "class");
}

static uint32_t of_attributes(int i)
{
    const struct cmp_row *r = &d.row[i];
    const bool records_grad = r->t.requires_grad.p[0] != 'N' && r->b.requires_grad.p[0] != 'N';
    const bool same_dtype = ms_str_eq(r->t.dtype, r->b.dtype);
    const bool fused = holds(r->b.name, "qkv") || holds(r->b.name, "gate_up");
    const bool same_shape = ms_str_eq(r->t.shape, r->b.shape);
    const bool strict_shape = !d.set.aligned || d.set.mode == PROBE_MODE_TENSOR;
    uint32_t notes = 0;
    if (!leaves_attributes() && !r->grad_same && (records_grad || d.rules.none_differs))
        notes |= BIT(GRAD);
    if (!r->is_output && is_class(r->t.dtype) && is_class(r->b.dtype) &&
        ms_str_is(r->t.shape, "[]") && d.t[i].equals != d.b[i].equals)
        notes |= BIT(PARAM);
    if (!same_dtype && d.rules.compares_dtype_text && !fused)
        notes |= BIT(DTYPE);
    if (!same_dtype && !d.rules.compares_dtype_text &&
        (r->t.type == MS_DT_NONE || r->t.type != r->b.type))
        notes |= BIT(DTYPE);
    if (d.set.merged || same_shape)
        return notes;
    if (leaves_attributes() ? !cmp__consistent_shapes(&d.set, r)
                            : strict_shape || d.t[i].count != d.b[i].count)
        notes |= BIT(SHAPE);
    return notes;
}

static uint32_t of_reading(const struct cmp_row *r)
{
    if (d.set.mode != PROBE_MODE_TENSOR || d.rules.loses_reading)
        return 0;
    const bool t_none = ms_str_is(r->t.data_name, "-1"), b_none = ms_str_is(r->b.data_name, "-1");
    return r->fig.state == CMP_STATE_UNREADABLE                    ? BIT(NO_FILE)
           : r->fig.state == CMP_STATE_MASKS                       ? BIT(MASKS)
           : r->fig.state == CMP_STATE_NO_DATA && t_none != b_none ? BIT(NO_DATA)
                                                                   : 0;
}

static uint32_t of_digests(int i)
{
    const struct cmp_row *r = &d.row[i];
    const bool t_known = r->t.md5.n != 0 && r->t.md5.p[0] != 'N';
    const bool b_known = r->b.md5.n != 0 && r->b.md5.p[0] != 'N';
    const uint32_t more = d.rules.digests_alone ? 0 : of_attributes(i);
    if (is_inference() && (holds(r->t.md5, ";") || holds(r->b.md5, ";")))
        return more | BIT(CRC_PARTS);
    if (is_inference() && d.rules.folded_digests_differ && r->b.present)
        return more | BIT(CRC);
    if (ms_str_eq(r->t.md5, r->b.md5))
        return more;
    return more | (t_known && b_known ? BIT(CRC) : BIT(CRC_NONE));
}

/* A row that one side has alone. */
static uint32_t of_unmatched(int i)
{
    const uint32_t notes = d.row[i].t.present ? BIT(NO_BENCH) : BIT(NO_TARGET);
    const bool special =
        d.t[i].is_special && d.set.mode != PROBE_MODE_MD5 && d.exemption != NO_RULES;
    return notes | (special ? BIT(INF_NAN) : 0);
}

static uint32_t of_inference_alone(void)
{
    if (!is_inference() || !d.rules.judges_inference_alone)
        return 0;
    return d.set.mode == PROBE_MODE_SUMMARY ? BIT(GRAD) | BIT(SHAPE)
           : d.set.mode == PROBE_MODE_MD5   ? BIT(CRC)
                                            : 0;
}

static uint32_t of_row(int i)
{
    const struct cmp_row *r = &d.row[i];
    const bool is_pair = r->t.present && r->b.present;
    if (!is_pair && d.rules.has_unmatched)
        return of_unmatched(i);
    if (d.exemption == NO_RULES)
        return 0;
    if (!r->t.present)
        return of_inference_alone();
    if (d.exemption == OUTPUTS_ONLY && !r->is_output)
        return 0;
    if (!is_pair && d.set.is_graph && d.rules.missing_is_nan && d.set.mode != PROBE_MODE_MD5)
        return (r->t.requires_grad.p[0] != 'N' ? BIT(GRAD) : 0) | BIT(DTYPE) |
               (d.set.merged ? 0 : BIT(SHAPE));
    if (d.set.mode == PROBE_MODE_MD5)
        return of_digests(i);
    const uint32_t special = d.t[i].is_special && !d.b[i].is_special ? BIT(INF_NAN) : 0;
    return special | (is_pair ? of_reading(r) | of_attributes(i) : 0);
}

/* ---- rules of the whole operator -------------------------------------------------------------------- */

static int first_output(void)
{
    for (int i = 0; i < (int)d.view.rows.n; i++) {
        if (d.row[i].is_output)
            return i;
    }
    return -1;
}

/* The largest error of the inputs or of the outputs. */
static double worst_norm(bool of_outputs)
{
    double worst = 0;
    for (size_t i = 0; i < d.view.rows.n; i++) {
        const struct cmp_row *r = &d.row[i];
        const bool is_scalar = is_class(r->t.dtype) || r->t.stat[PROBE_STAT_NORM].is_text;
        if (r->is_output == of_outputs && (of_outputs || !is_scalar || d.rules.scalars_count))
            worst = fmax(worst, r->delta[PROBE_STAT_NORM].rel_value);
    }
    return worst;
}

static double least_metric(bool of_outputs, unsigned metric)
{
    double least = 1;
    for (size_t i = 0; i < d.view.rows.n; i++) {
        if (d.row[i].is_output == of_outputs && d.row[i].fig.state == CMP_STATE_OK)
            least = fmin(least, d.row[i].fig.metric[metric]);
    }
    return least;
}

static uint32_t of_norms(int i)
{
    const struct cmp_delta *x = &d.row[i].delta[PROBE_STAT_NORM];
    const double in = worst_norm(false), out = worst_norm(true);
    uint32_t notes = 0;
    if (in < 0.1 && d.row[i].is_output && (x->rel_inf || x->rel_value > 0.5))
        notes |= BIT(NORM_ERR);
    if (i == first_output() && (in == 0 ? out > 0.1 : out / in > 10))
        notes |= BIT(NORM_WARN);
    return notes;
}

static uint32_t of_tensors(int i)
{
    const double in = least_metric(false, CMP_COSINE), out = least_metric(true, CMP_COSINE);
    uint32_t notes = 0;
    if (i != first_output())
        return 0;
    if (least_metric(false, CMP_THOUSANDTH) > 0.9 &&
        least_metric(true, CMP_THOUSANDTH) < d.rules.thousandth_limit)
        notes |= BIT(THOUSANDTH);
    if (in > 0.9 && in - out > 0.1)
        notes |= BIT(COSINE_WARN);
    return notes;
}

static uint32_t notes_due(int i)
{
    uint32_t notes = of_row(i);
    if (d.exemption != RULES || d.view.op.n == 0)
        return notes;
    if (d.set.mode == PROBE_MODE_SUMMARY)
        notes |= of_norms(i);
    else if (d.set.mode == PROBE_MODE_TENSOR)
        notes |= of_tensors(i);
    return notes;
}

static enum cmp_level level_of(uint32_t notes)
{
    const uint32_t unmatched = BIT(NO_BENCH) | BIT(NO_TARGET);
    const uint32_t warnings = BIT(NORM_WARN) | BIT(COSINE_WARN) | BIT(CRC_NONE) | BIT(CRC_PARTS);
    return (notes & unmatched) != 0                 ? CMP_UNMATCHED
           : (notes & ~(unmatched | warnings)) != 0 ? CMP_ERROR
           : notes != 0                             ? CMP_WARNING
                                                    : CMP_PASS;
}

START_TEST(each_note_is_there_when_its_rule_says_so)
{
    uint32_t seen = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        uint32_t due[ROWS];
        draw(seed);
        for (int i = 0; i < (int)d.view.rows.n; i++)
            due[i] = notes_due(i);
        cmp__judge(&d.set, &d.view);
        for (int i = 0; i < (int)d.view.rows.n; i++) {
            ck_assert_msg(d.row[i].notes == due[i], "seed %d, row %d of %s: notes %x, due %x",
                          (int)seed, i, d.op, d.row[i].notes, due[i]);
            ck_assert_int_eq(d.row[i].level, level_of(due[i]));
            seen |= due[i];
        }
    }
    ck_assert_uint_eq(seen, (1U << CMP_NOTES) - 1); /* none is never drawn */
}
END_TEST

TEST_MAIN("judge_rules", each_note_is_there_when_its_rule_says_so)
