/* SPDX-License-Identifier: MIT
 *
 * Leaves are read out of a dump of one record saved by hand, so what is a leaf
 * and what a container is decided as for a file.
 */
#include "probe/dump/dump.h"

#include "tests/support/check.h"

#include <math.h>

static struct ms_err err;
static struct probe_dump *dump;
static char text[8192];

/* The dump whose only record is this JSON. */
static struct probe_dump *dump_of(const char *json)
{
    int n = snprintf(text, sizeof text, "{\"data\": {\"v.0.debug\": %s}}", json);
    ck_assert_int_lt(n, sizeof text);
    ms_err_clear(&err);
    probe_dump_close(dump);
    ck_ok(probe_dump_parse(&dump, "test", ms_str_of(text), 0, NULL, &err), err);
    return dump;
}

/* The only leaf of it. */
static struct probe_leaf leaf_of(const char *json)
{
    struct probe_leaf leaf;
    dump_of(json);
    ck_assert_msg(dump->rows.n == 1, "%zu rows in %s", dump->rows.n, json);
    probe_row_leaf(dump, dump->rows.p, &leaf);
    return leaf;
}

static void tear_down(void)
{
    probe_dump_close(dump);
    dump = NULL;
}

static void ck_text(struct ms_str got, const char *want)
{
    ck_assert_msg(ms_str_is(got, want), "got '%.*s', expected '%s'", MS_STR_ARG(got), want);
}

START_TEST(a_tensor_has_all_that_the_format_says_of_one)
{
    struct probe_leaf l =
        leaf_of("{\"type\": \"torch.Tensor\", \"dtype\": \"torch.bfloat16\", \"shape\": [2, 3], "
                "\"Max\": 0.333984375, \"Min\": -7, \"Mean\": null, \"Norm\": true, "
                "\"requires_grad\": false, \"md5\": \"c3883bcc\", \"data_name\": \"a.0.pt\"}");
    ck_assert_int_eq(l.kind, PROBE_LEAF_TENSOR);
    ck_text(l.type, "torch.Tensor");
    ck_text(l.dtype_text, "torch.bfloat16");
    ck_assert_int_eq(l.dtype, MS_DT_BF16);
    ck_text(l.shape_json, "[2, 3]");
    ck_assert_int_eq(l.stat[PROBE_STAT_MAX].kind, PROBE_NUM_FLOAT);
    ck_assert(l.stat[PROBE_STAT_MAX].v == 0.333984375);
    ck_text(l.stat[PROBE_STAT_MAX].text, "0.333984375");
    ck_assert_int_eq(l.stat[PROBE_STAT_MIN].kind, PROBE_NUM_INT);
    ck_assert(l.stat[PROBE_STAT_MIN].v == -7);
    ck_assert_int_eq(l.stat[PROBE_STAT_MEAN].kind, PROBE_NUM_NULL);
    ck_text(l.stat[PROBE_STAT_MEAN].text, "null");
    ck_assert_int_eq(l.stat[PROBE_STAT_NORM].kind, PROBE_NUM_BOOL);
    ck_assert(l.stat[PROBE_STAT_NORM].v == 1);
    ck_assert_int_eq(l.requires_grad, 0);
    ck_text(l.md5, "c3883bcc");
    ck_text(l.data_name, "a.0.pt");
    ck_assert(!l.escaped && !l.unfinished);
    tear_down();
}
END_TEST

START_TEST(keys_that_are_not_there_are_told_from_null)
{
    struct probe_leaf l =
        leaf_of("{\"type\": \"mindspore.Tensor\", \"dtype\": \"Float32\", \"shape\": []}");
    ck_assert_int_eq(l.kind, PROBE_LEAF_TENSOR);
    ck_assert_int_eq(l.dtype, MS_DT_F32);
    for (int i = 0; i < PROBE_STATS; i++)
        ck_assert_int_eq(l.stat[i].kind, PROBE_NUM_ABSENT);
    ck_assert_int_eq(l.requires_grad, -1);
    ck_assert_uint_eq(l.md5.n + l.data_name.n + l.value_json.n, 0);
    tear_down();
}
END_TEST

static const struct {
    const char *json;
    enum probe_leaf_kind kind;
    const char *type, *value;
} kinds[] = {
    {"null", PROBE_LEAF_NULL, "", ""},
    {"{\"type\": \"int\", \"value\": 3}", PROBE_LEAF_VALUE, "int", "3"},
    {"{\"type\": \"int\", \"value\": -123456789012345678901234567890}", PROBE_LEAF_VALUE, "int",
     "-123456789012345678901234567890"},
    {"{\"type\": \"float\", \"value\": NaN}", PROBE_LEAF_VALUE, "float", "NaN"},
    {"{\"type\": \"float\", \"value\": -Infinity}", PROBE_LEAF_VALUE, "float", "-Infinity"},
    {"{\"type\": \"bool\", \"value\": false}", PROBE_LEAF_VALUE, "bool", "false"},
    {"{\"type\": \"str\", \"value\": \"a \\\"b\\\"\"}", PROBE_LEAF_VALUE, "str", "\"a \\\"b\\\"\""},
    {"{\"type\": \"slice\", \"value\": [0, 1, null]}", PROBE_LEAF_VALUE, "slice", "[0, 1, null]"},
    {"{\"type\": \"ellipsis\", \"value\": \"...\"}", PROBE_LEAF_VALUE, "ellipsis", "\"...\""},
    {"{\"type\": \"torch.Size\", \"value\": [2,3]}", PROBE_LEAF_VALUE, "torch.Size", "[2,3]"},
    {"{\"type\": \"torch.memory_format\", \"format\": \"channels_last\"}", PROBE_LEAF_VALUE,
     "torch.memory_format", "\"channels_last\""},
    {"{\"type\": \"torch.ProcessGroup\", \"group_ranks\": [0,1], \"group_id\": \"77849d8c\"}",
     PROBE_LEAF_GROUP, "torch.ProcessGroup", "[0,1]"},
    {"{\"type\": \"mindspore.ProcessGroup\", \"group_id\": \"7\", \"group_ranks\": []}",
     PROBE_LEAF_GROUP, "mindspore.ProcessGroup", "[]"},
    {"{\"type\": \"torch.distributed.ReduceOp\", \"value\": \"<RedOpType.SUM: 0>\"}",
     PROBE_LEAF_VALUE, "torch.distributed.ReduceOp", "\"<RedOpType.SUM: 0>\""},
    {"{\"type\": \"torch.device\", \"value\": \"npu:0\"}", PROBE_LEAF_VALUE, "torch.device",
     "\"npu:0\""},
    {"{\"type\": \"torch.dtype\", \"value\": \"torch.float16\"}", PROBE_LEAF_VALUE, "torch.dtype",
     "\"torch.float16\""},
    {"{\"type\": \"float32\", \"value\": 1.5}", PROBE_LEAF_VALUE, "float32", "1.5"},
    {"{\"class_type\": \"torch.distributed.P2POp\", \"tensor\": {\"type\": \"torch.Tensor\", "
     "\"dtype\": \"torch.int8\", \"shape\": []}, \"op\": \"isend\", \"peer\": 1, \"tag\": 0}",
     PROBE_LEAF_P2P, "torch.distributed.P2POp", ""},
    {"{\"tensor\": null, \"class_type\": \"mindspore.mint.distributed.P2POp\"}", PROBE_LEAF_P2P,
     "mindspore.mint.distributed.P2POp", ""},
    {"{\"type\": \"torch.distributed.tensor.DTensor\", \"dtype\": \"torch.float32\", \"shape\": "
     "[1], \"device_mesh\": [[0, 1]], \"placements\": [{\"Shard\": {\"dim\": 0}}]}",
     PROBE_LEAF_TENSOR, "torch.distributed.tensor.DTensor", ""},
    {"{\"type\": \"mindtorch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [1]}",
     PROBE_LEAF_TENSOR, "mindtorch.Tensor", ""},
    {"{\"type\": \"numpy.ndarray\", \"dtype\": \"float64\", \"shape\": [3]}", PROBE_LEAF_TENSOR,
     "numpy.ndarray", ""},
    {"{\"type\": \"numpy.ndarray\", \"dtype\": \"<U3\", \"shape\": [3], \"Max\": null}",
     PROBE_LEAF_TENSOR, "numpy.ndarray", ""},
    /* No reader knows these; they are rows all the same. */
    {"{\"type\": \"acme.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [1]}", PROBE_LEAF_OTHER,
     "acme.Tensor", ""},
    {"{\"type\": \"torch.Tensor\"}", PROBE_LEAF_OTHER, "torch.Tensor", ""},
    {"{\"type\": \"torch.Tensor\", \"dtype\": 5, \"shape\": [1]}", PROBE_LEAF_OTHER, "torch.Tensor",
     "" /* dtype is no text */},
    {"{\"type\": \"\"}", PROBE_LEAF_OTHER, "", ""},
    {"7", PROBE_LEAF_OTHER, "", ""},
    {"\"bare\"", PROBE_LEAF_OTHER, "", ""},
    {"true", PROBE_LEAF_OTHER, "", ""},
};

START_TEST(each_kind_of_leaf_is_known)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct probe_leaf l = leaf_of(kinds[i].json);
        ck_assert_msg(l.kind == kinds[i].kind, "kind %d of %s", l.kind, kinds[i].json);
        ck_text(l.json, kinds[i].json);
        ck_text(l.type, kinds[i].type);
        ck_text(l.value_json, kinds[i].value);
    }
    tear_down();
}
END_TEST

/* Python writes no key twice; what does is read as what it was taken for. */
START_TEST(of_a_key_that_appears_twice_the_one_that_fits_counts)
{
    struct probe_leaf l = leaf_of("{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int8\", "
                                  "\"shape\": [2], \"shape\": 5, \"dtype\": null, \"type\": 0.5}");
    ck_assert_int_eq(l.kind, PROBE_LEAF_TENSOR);
    ck_text(l.type, "torch.Tensor");
    ck_text(l.shape_json, "[2]");
    ck_assert_int_eq(l.dtype, MS_DT_I8);
    tear_down();
}
END_TEST

START_TEST(the_key_that_makes_a_leaf_may_stand_anywhere)
{
    static const char *const same[] = {
        "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int8\", \"shape\": [2], \"Max\": 1}",
        "{\"dtype\": \"torch.int8\", \"type\": \"torch.Tensor\", \"shape\": [2], \"Max\": 1}",
        "{\"Max\": 1, \"shape\": [2], \"dtype\": \"torch.int8\", \"type\": \"torch.Tensor\"}",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct probe_leaf l = leaf_of(same[i]);
        ck_assert_int_eq(l.kind, PROBE_LEAF_TENSOR);
        ck_assert_int_eq(l.dtype, MS_DT_I8);
        ck_assert_int_eq(l.stat[PROBE_STAT_MAX].kind, PROBE_NUM_INT);
        ck_text(l.shape_json, "[2]");
    }
    tear_down();
}
END_TEST

START_TEST(a_dict_of_the_users_may_have_a_key_type)
{
    static const char user[] = "{\"type\": {\"type\": \"int\", \"value\": 1}, \"x\": null, "
                               "\"dtype\": {\"type\": \"str\", \"value\": \"y\"}}";
    static const char *const paths[] = {"type", "x", "dtype"};
    dump_of(user);
    ck_assert_uint_eq(dump->rows.n, 3);
    for (size_t i = 0; i < 3; i++)
        ck_text(probe_row_path(dump, &dump->rows.p[i]), paths[i]);
    /* A type that is no text makes no leaf either. */
    dump_of("{\"type\": null, \"class_type\": [null]}");
    ck_assert_uint_eq(dump->rows.n, 2);
    ck_text(probe_row_path(dump, &dump->rows.p[1]), "class_type.0");
    tear_down();
}
END_TEST

START_TEST(rows_inside_what_turns_out_to_be_a_leaf_are_taken_back)
{
    struct probe_leaf l = leaf_of("{\"a\": [null, {\"b\": null}], \"value\": 1, \"type\": \"t\"}");
    ck_assert_int_eq(l.kind, PROBE_LEAF_VALUE);
    ck_text(l.value_json, "1");
    tear_down();
}
END_TEST

START_TEST(placeholders_mark_a_leaf_as_unfinished)
{
    static const char *const keys[] = {"tensor_stat_index", "md5_index", "is_nan_index"};
    char json[256];
    for (size_t i = 0; i < 3; i++) {
        snprintf(json, sizeof json,
                 "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int8\", \"shape\": [], \"%s\": "
                 "17}",
                 keys[i]);
        struct probe_leaf l = leaf_of(json);
        ck_assert(l.unfinished);
        ck_assert_int_eq(l.stat[PROBE_STAT_MAX].kind, PROBE_NUM_ABSENT);
    }
    ck_assert(!leaf_of("{\"type\": \"t\", \"md5_index\": \"no number\"}").unfinished);
    tear_down();
}
END_TEST

START_TEST(numbers_keep_the_difference_between_int_and_float)
{
    static const struct {
        const char *json;
        enum probe_num_kind kind;
        double v;
    } table[] = {
        {"7", PROBE_NUM_INT, 7},
        {"7.0", PROBE_NUM_FLOAT, 7},
        {"1e-05", PROBE_NUM_FLOAT, 1e-05},
        {"-0.0", PROBE_NUM_FLOAT, 0},
        {"-0", PROBE_NUM_INT, 0},
        {"18446744073709551616", PROBE_NUM_INT, 0x1p64},
        {"Infinity", PROBE_NUM_FLOAT, INFINITY},
        {"-Infinity", PROBE_NUM_FLOAT, -INFINITY},
        {"1e999", PROBE_NUM_FLOAT, INFINITY},
        {"true", PROBE_NUM_BOOL, 1},
        {"false", PROBE_NUM_BOOL, 0},
        {"null", PROBE_NUM_NULL, 0},
        {"\"7\"", PROBE_NUM_OTHER, 0},
        {"[7]", PROBE_NUM_OTHER, 0},
    };
    char json[128];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        snprintf(json, sizeof json, "{\"type\": \"t\", \"Norm\": %s}", table[i].json);
        struct probe_num n = leaf_of(json).stat[PROBE_STAT_NORM];
        ck_assert_msg(n.kind == table[i].kind && n.v == table[i].v, "%s is %d, %g", table[i].json,
                      n.kind, n.v);
        if (n.kind != PROBE_NUM_OTHER)
            ck_text(n.text, table[i].json);
    }
    struct probe_num nan = leaf_of("{\"type\": \"t\", \"Max\": NaN}").stat[PROBE_STAT_MAX];
    ck_assert(nan.kind == PROBE_NUM_FLOAT && isnan(nan.v));
    tear_down();
}
END_TEST

START_TEST(a_digest_of_xor_mode_may_be_a_number_or_null)
{
    ck_text(leaf_of("{\"type\": \"torch.Tensor\", \"md5\": 2.5}").md5, "2.5");
    ck_text(leaf_of("{\"type\": \"torch.Tensor\", \"md5\": \"0x00\"}").md5, "0x00");
    ck_assert_uint_eq(leaf_of("{\"type\": \"torch.Tensor\", \"md5\": null}").md5.n, 0);
    tear_down();
}
END_TEST

START_TEST(a_nested_digest_or_file_is_not_the_leafs_own)
{
    dump_of("{\"type\": \"torch.Tensor\", \"x\": {\"md5\": \"1\", \"data_name\": \"a\"}}");
    ck_assert_uint_eq(dump->rows.p[0].flags, 0);
    ck_assert_uint_eq(leaf_of("{\"type\": \"t\", \"data_name\": 3.0}").data_name.n, 0);
    dump_of("{\"data_name\": null, \"md5\": \"1\", \"type\": \"torch.Tensor\"}");
    ck_assert_uint_eq(dump->rows.p[0].flags, PROBE_LEAF_HAS_MD5);
    tear_down();
}
END_TEST

START_TEST(escapes_in_a_text_are_told)
{
    struct probe_leaf l = leaf_of("{\"type\": \"t\", \"data_name\": \"\\u00e9.pt\"}");
    ck_assert(l.escaped);
    ck_text(l.data_name, "\\u00e9.pt");
    ck_assert(!leaf_of("{\"type\": \"t\", \"value\": 1}").escaped);
    tear_down();
}
END_TEST

static const struct {
    const char *json;
    bool ok;
    unsigned ndim;
    uint64_t last;
} shapes[] = {
    {"[]", true, 0, 0},
    {"[0]", true, 1, 0},
    {"[2, 3, 4]", true, 3, 4},
    {"[\n          128,\n          64\n        ]", true, 2, 64},
    {"[ 2 , 3 ]", true, 2, 3},
    {"[123456789012345678]", true, 1, 123456789012345678},
    {"[ ]", true, 0, 0},
    {"[\n 9223372036854775807\n]", true, 1, INT64_MAX},
    {"[9223372036854775808]", false, 0, 0},
    {"[-1]", false, 0, 0},
    {"[1.0]", false, 0, 0},
    {"[\"1\"]", false, 0, 0},
    {"[[1]]", false, 0, 0},
    {"[1, null]", false, 0, 0},
    {"[1, 2, 3, 4]", true, 4, 4},
    {"[1, 2, 3, 4, 5]", false, 0, 0}, /* more than asked for */
};

START_TEST(a_shape_is_a_list_of_whole_numbers)
{
    char json[128];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        uint64_t dim[4] = {0};
        unsigned ndim;
        snprintf(json, sizeof json, "{\"type\": \"t\", \"shape\": %s}", shapes[i].json);
        struct probe_leaf l = leaf_of(json);
        ck_assert_msg(probe_leaf_shape(&l, dim, 4, &ndim) == shapes[i].ok, "%s", shapes[i].json);
        if (!shapes[i].ok)
            continue;
        ck_assert_uint_eq(ndim, shapes[i].ndim);
        ck_assert(ndim == 0 || dim[ndim - 1] == shapes[i].last);
    }
    struct probe_leaf none = leaf_of("{\"type\": \"t\"}");
    unsigned ndim;
    ck_assert(!probe_leaf_shape(&none, NULL, 0, &ndim));
    tear_down();
}
END_TEST

/* torch writes -inf into the places that a mask hides: the minimum alone is infinite then. */
static const struct {
    const char *max, *min, *mean;
    bool masked;
} masks[] = {
    {"3.5", "-Infinity", "-Infinity", true},
    {"3", "-Infinity", "-Infinity", true},
    {"3.5", "-Infinity", "null", true},
    {"3.5", "-Infinity", "2", true},
    {"3.5", "-4", "-1.5", false},
    {"3.5", "-4", "-Infinity", false},
    {"Infinity", "-Infinity", "NaN", false},
    {"NaN", "-Infinity", "-Infinity", false},
    {"3.5", "-Infinity", "NaN", false},
    {"3.5", "-Infinity", "Infinity", false},
    {"Infinity", "-Infinity", "-1.5", false},
    {"null", "-Infinity", "-Infinity", false},
    {"3.5", "null", "-Infinity", false},
    {"3.5", "\"-Infinity\"", "-Infinity", false},
};

START_TEST(a_mask_has_no_other_trouble)
{
    char json[256];
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        snprintf(json, sizeof json,
                 "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [2], "
                 "\"Max\": %s, \"Min\": %s, \"Mean\": %s}",
                 masks[i].max, masks[i].min, masks[i].mean);
        struct probe_leaf l = leaf_of(json);
        ck_assert_msg(probe_leaf_is_masked(&l) == masks[i].masked, "%s", json);
    }
    struct probe_leaf scalar = leaf_of("{\"type\": \"float\", \"value\": -Infinity}");
    ck_assert(!probe_leaf_is_masked(&scalar));
    tear_down();
}
END_TEST

TEST_MAIN("leaf", a_tensor_has_all_that_the_format_says_of_one,
          keys_that_are_not_there_are_told_from_null, each_kind_of_leaf_is_known,
          of_a_key_that_appears_twice_the_one_that_fits_counts,
          the_key_that_makes_a_leaf_may_stand_anywhere, a_dict_of_the_users_may_have_a_key_type,
          rows_inside_what_turns_out_to_be_a_leaf_are_taken_back,
          placeholders_mark_a_leaf_as_unfinished, numbers_keep_the_difference_between_int_and_float,
          a_digest_of_xor_mode_may_be_a_number_or_null,
          a_nested_digest_or_file_is_not_the_leafs_own, escapes_in_a_text_are_told,
          a_shape_is_a_list_of_whole_numbers, a_mask_has_no_other_trouble)
