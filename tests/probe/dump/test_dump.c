/* SPDX-License-Identifier: MIT */
#include "probe/dump/dump.h"

#include "probe/base/jwrite.h"
#include "probe/base/mem.h"
#include "probe/base/trace.h"
#include "tests/gen/big_dump.h"

#include "tests/support/check.h"

#include <math.h>

static struct ms_err err;
static struct probe_dump *dump;

/* Bytes held, but for the spans that each opening leaves in the trace. */
static size_t held(void)
{
    ms_trace_reset();
    return ms_mem_live();
}

static void tear_down(void)
{
    probe_dump_close(dump);
    dump = NULL;
}

static struct probe_dump *parse_flags(struct ms_str text, unsigned flags)
{
    tear_down();
    ms_err_clear(&err);
    ck_ok(probe_dump_parse(&dump, "d.json", text, flags, NULL, &err), err);
    return dump;
}

static struct probe_dump *parse(const char *text)
{
    return parse_flags(ms_str_of(text), 0);
}

/* The rows' names, one a line. */
static const char *row_names(struct ms_buf *out)
{
    struct ms_buf name = {.max = 1 << 20};
    out->max = 1 << 20;
    ms_buf_clear(out);
    for (size_t i = 0; i < dump->rows.n; i++) {
        probe_row_name(dump, &dump->rows.p[i], &name);
        ms_buf_str(out, ms_buf_slice(&name));
        ms_buf_putc(out, '\n');
    }
    ms_buf_free(&name);
    return ms_buf_z(out);
}

static void ck_rows(const char *want)
{
    struct ms_buf b = {0};
    ck_assert_str_eq(row_names(&b), want);
    ms_buf_free(&b);
}

static void ck_text(struct ms_str got, const char *want)
{
    ck_assert_msg(ms_str_is(got, want), "got '%.*s', expected '%s'", MS_STR_ARG(got), want);
}

#define T "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [2]}"
#define T_MD5                                                                                      \
    "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int8\", \"shape\": [], \"md5\": \"1\"}"
#define V "{\"type\": \"int\", \"value\": 1}"
#define FILE_AS(name)                                                                              \
    "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int8\", \"shape\": [1], \"data_name\": "      \
    "\"" name "\"}"
#define DATA(records)                                                                              \
    "{\"task\": \"statistics\", \"level\": \"mix\", \"framework\": \"pytorch\", "                  \
    "\"dump_data_dir\": null, \"data\": {" records "}}"

/* ---- flattening --------------------------------------------------------------- */

static const struct {
    const char *text, *rows;
} flat[] = {
    /* The example of the format's own checklist: the empty tensor of a list is a row too. */
    {DATA("\"Torch.cat.0.forward\": {\"input_args\": [[" T ", " T
          "]], \"input_kwargs\": {\"dim\": " V "}, \"output\": [" T "]}"),
     "Torch.cat.0.forward.input.0.0\nTorch.cat.0.forward.input.0.1\n"
     "Torch.cat.0.forward.input.dim\nTorch.cat.0.forward.output.0\n"},
    {DATA("\"F.x.0.backward\": {\"input\": [" T ", null], \"output\": [" T "]}"),
     "F.x.0.backward.input.0\nF.x.0.backward.input.1\nF.x.0.backward.output.0\n"},
    {DATA("\"Module.a.B.forward.0\": {\"input_args\": [], \"input_kwargs\": {}, \"output\": [[]], "
          "\"parameters\": {\"weight\": " T ", \"bias\": " T "}}"),
     "Module.a.B.forward.0.parameters.weight\nModule.a.B.forward.0.parameters.bias\n"},
    /* Sections in another order than the one rows have. */
    {DATA("\"Module.a.B.forward.0\": {\"parameters\": {\"w\": " T "}, \"output\": [" T
          "], \"input_kwargs\": {\"k\": " V "}, \"input_args\": [" T ", " T "]}"),
     "Module.a.B.forward.0.input.0\nModule.a.B.forward.0.input.1\nModule.a.B.forward.0.input.k\n"
     "Module.a.B.forward.0.output.0\nModule.a.B.forward.0.parameters.w\n"},
    /* Gradients, with and without the count, carry no list index. */
    {DATA("\"Module.a.B.parameters_grad.0\": {\"bias\": [" T "], \"weight\": [" T "]}"),
     "Module.a.B.parameters_grad.0.bias\nModule.a.B.parameters_grad.0.weight\n"},
    {DATA("\"Module.a.B.parameters_grad\": {\"weight\": [" T "]}"),
     "Module.a.B.parameters_grad.weight\n"},
    {DATA("\"Module.a.B.parameters_grad.1\": {\"w\": [null]}"), "Module.a.B.parameters_grad.1.w\n"},
    /* Values saved by hand have no sections, also when their keys are called so. */
    {DATA("\"var.0.debug\": {\"a\": [" T "], \"b\": " V ", \"output\": " V "}, \"g.1.debug\": " T
          ", \"n.0.debug\": null, \"e.0.debug\": {}"),
     "var.0.debug.a.0\nvar.0.debug.b\nvar.0.debug.output\ng.1.debug\nn.0.debug\n"},
    {"{\"level\": \"debug\", \"data\": {\"odd name\": {\"input_args\": [" T "]}}}",
     "odd name.input_args.0\n"},
    /* A data file's name takes the place of the row's. */
    {DATA("\"F.x.0.forward\": {\"input_args\": [" FILE_AS(
         "F.x.0.forward.input.0.pt") "], "
                                     "\"input_kwargs\": {\"k\": " FILE_AS(
                                         "F.x.0.forward.kwargs.k.npy") "}}"),
     "F.x.0.forward.input.0\nF.x.0.forward.kwargs.k\n"},
    {DATA("\"F.x.0.forward\": {\"output\": [" FILE_AS("no_dot") ", " FILE_AS(".pt") ", " FILE_AS(
         "\\u00e9.pt") ", " FILE_AS("") "]}"),
     "no_dot\n.pt\n\xc3\xa9\nF.x.0.forward.output.3\n"},
    /* Nested containers, keys with dots, escapes and nothing in them. */
    {DATA("\"F.x.0.forward\": {\"input_kwargs\": {\"a.b\": [{\"c\": [" V "]}], \"\": " V
          ", \"\\u00e9\\n\": " V "}}"),
     "F.x.0.forward.input.a.b.0.c.0\nF.x.0.forward.input.\nF.x.0.forward.input.\xc3\xa9\n\n"},
    {DATA("\"D.send.0.forward\": {\"input_args\": [{\"class_type\": \"torch.distributed.P2POp\", "
          "\"tensor\": " T ", \"peer\": 1}]}"),
     "D.send.0.forward.input.0\n"},
    /* Records without sections, or with none that is known. */
    {DATA("\"F.x.0.forward\": {}, \"F.x.1.forward\": {\"new_key\": [" T "], \"is_nan\": 1}"), ""},
    {DATA("\"F.x.0.forward\": {\"input_args\": null, \"output\": " T "}"),
     "F.x.0.forward.input\nF.x.0.forward.output\n"},
    {DATA(""), ""},
};

START_TEST(records_become_the_rows_of_the_format)
{
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++) {
        parse(flat[i].text);
        ck_rows(flat[i].rows);
    }
    tear_down();
}
END_TEST

START_TEST(rows_belong_to_their_record_and_lie_together)
{
    parse(DATA("\"A.x.0.forward\": {}, \"A.y.0.forward\": {\"output\": [" T "], \"input_args\": [" T
               ", null]}, \"A.z.0.backward\": {\"input\": [" T "]}"));
    ck_assert_uint_eq(dump->nodes.n, 3);
    static const uint32_t rows[] = {0, 3, 1};
    uint32_t at = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const struct probe_node *n = &dump->nodes.p[i];
        ck_assert_uint_eq(n->first_row, at);
        ck_assert_uint_eq(n->nrows, rows[i]);
        for (; at < n->first_row + n->nrows; at++)
            ck_assert_uint_eq(dump->rows.p[at].node, i);
        ck_assert_int_eq(dump->file.p[n->off], '"');
        ck_assert_uint_eq(probe_node_find(dump, probe_node_name(dump, i)), i);
    }
    ck_assert_int_eq(dump->nodes.p[2].dir, PROBE_BACKWARD);
    ck_assert_int_eq(dump->nodes.p[1].kind, PROBE_NODE_API);
    ck_assert_uint_eq(probe_node_find(dump, MS_STR("A.y")), MS_MAP_NONE);
    static const uint8_t sections[] = {PROBE_SEC_INPUT_ARGS, PROBE_SEC_INPUT_ARGS,
                                       PROBE_SEC_OUTPUT};
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(dump->rows.p[i].section, sections[i]);
    ck_text(probe_row_path(dump, &dump->rows.p[1]), "input.1");
    tear_down();
}
END_TEST

START_TEST(flags_of_a_record_are_told_from_their_absence)
{
    static const struct {
        const char *members;
        unsigned flags;
    } table[] = {
        {"", 0},
        {"\"is_recompute\": true", PROBE_NODE_RECOMPUTE_SAID | PROBE_NODE_RECOMPUTE},
        {"\"is_recompute\": false", PROBE_NODE_RECOMPUTE_SAID},
        {"\"is_nan\": 0", PROBE_NODE_NAN_SAID},
        {"\"is_nan\": 1", PROBE_NODE_NAN_SAID | PROBE_NODE_NAN},
        {"\"is_nan\": null", 0},
        {"\"is_nan\": \"1\"", 0},
    };
    char text[256];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        snprintf(text, sizeof text, "{\"data\": {\"F.x.0.forward\": {%s}}}", table[i].members);
        parse(text);
        ck_assert_uint_eq(dump->nodes.p[0].flags, table[i].flags);
    }
    tear_down();
}
END_TEST

START_TEST(a_row_tells_that_all_its_statistics_have_a_fraction)
{
    static const struct {
        const char *stats;
        bool real;
    } table[] = {
        {"\"Max\": 1.5, \"Min\": -0.5, \"Mean\": 1e3, \"Norm\": 0.0", true},
        {"\"Norm\": 0.5, \"Mean\": 1.5, \"Min\": 1.5, \"Max\": 2.5", true},
        {"\"Max\": 1.5, \"Min\": -0.5, \"Mean\": 1.5", false},
        {"\"Max\": 1.5, \"Min\": -5, \"Mean\": 1.5, \"Norm\": 0.5", false},
        {"\"Max\": 1.5, \"Min\": NaN, \"Mean\": 1.5, \"Norm\": 0.5", false},
        {"\"Max\": 1.5, \"Min\": -Infinity, \"Mean\": 1.5, \"Norm\": 0.5", false},
        {"\"Max\": 1.5, \"Min\": null, \"Mean\": 1.5, \"Norm\": 0.5", false},
        {"\"Max\": 1.5, \"Min\": \"0.5\", \"Mean\": 1.5, \"Norm\": 0.5", false},
        /* The last of two counts. */
        {"\"Max\": 1.5, \"Min\": 1, \"Mean\": 1.5, \"Norm\": 0.5, \"Min\": 0.5", true},
        {"\"Max\": 1.5, \"Min\": 0.5, \"Mean\": 1.5, \"Norm\": 0.5, \"Min\": 1", false},
    };
    char text[512];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        snprintf(text, sizeof text,
                 "{\"data\": {\"F.x.0.forward\": {\"output\": [{\"type\": \"torch.Tensor\", "
                 "\"dtype\": \"torch.int8\", \"shape\": [1], %s}]}}}",
                 table[i].stats);
        parse(text);
        ck_assert_msg(((dump->rows.p[0].flags & PROBE_LEAF_REAL_STATS) != 0) == table[i].real, "%s",
                      table[i].stats);
    }
    tear_down();
}
END_TEST

START_TEST(escaped_names_are_found_by_their_text)
{
    parse("{\"data\": {\"F.\\u4e2d\\ud83d\\ude00.0.forward\": {\"output\": [null]}, "
          "\"F.\\ud800.0.forward\": {}}}");
    ck_assert_uint_eq(probe_node_find(dump, MS_STR("F.\xe4\xb8\xad\xf0\x9f\x98\x80.0.forward")), 0);
    ck_rows("F.\xe4\xb8\xad\xf0\x9f\x98\x80.0.forward.output.0\n");
    /* A lone surrogate, which Python can write, has its three bytes. */
    ck_assert_uint_eq(probe_node_find(dump, MS_STR("F.\xed\xa0\x80.0.forward")), 1);
    tear_down();
}
END_TEST

/* ---- the head ------------------------------------------------------------------- */

START_TEST(the_head_is_read_and_unknown_keys_are_not)
{
    parse("{\"version\": {\"x\": [1]}, \"task\": \"tensor\", \"level\": \"L0\", \"framework\": "
          "\"mindspore\", \"dump_data_dir\": \"/d/\\u00e9\", \"data\": {}, \"after\": 1}");
    ck_text(dump->task, "tensor");
    ck_text(dump->level, "L0");
    ck_text(dump->data_dir, "/d/\xc3\xa9");
    ck_assert_int_eq(dump->framework, PROBE_FW_MINDSPORE);
    ck_assert_str_eq(dump->path, "d.json");
    parse("{\"dump_data_dir\": null, \"data\": {}}");
    ck_assert_ptr_null(dump->data_dir.p);
    ck_assert_uint_eq(dump->task.n + dump->level.n, 0);
    tear_down();
}
END_TEST

START_TEST(the_mode_follows_task_and_digests)
{
    static const struct {
        const char *task, *value;
        enum probe_mode mode;
        const char *text;
    } table[] = {
        {"statistics", T, PROBE_MODE_SUMMARY, "statistics"},
        {"statistics", "[" T ", [" T_MD5 "]]", PROBE_MODE_MD5, "md5"},
        {"tensor", T_MD5, PROBE_MODE_TENSOR, "tensor"},
        {"structure", T, PROBE_MODE_STRUCTURE, "structure"},
        {"nan_check", T, PROBE_MODE_SUMMARY, "statistics"},
        {"overflow_check", T_MD5, PROBE_MODE_MD5, "md5"},
        /* A dict of the user's with a key md5 is no digest. */
        {"statistics", "{\"md5\": " V "}", PROBE_MODE_SUMMARY, "statistics"},
    };
    char text[512];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        snprintf(text, sizeof text, "{\"task\": \"%s\", \"data\": {\"v.0.debug\": %s}}",
                 table[i].task, table[i].value);
        parse(text);
        ck_assert_msg(dump->mode == table[i].mode, "case %zu: mode %d", i, dump->mode);
        ck_assert_str_eq(probe_mode_text(dump->mode), table[i].text);
    }
    tear_down();
}
END_TEST

START_TEST(an_unnamed_framework_shows_in_the_tensors)
{
    static const struct {
        const char *head, *type;
        enum probe_framework want;
    } table[] = {
        {"", "torch.Tensor", PROBE_FW_PYTORCH},
        {"", "mindspore.Tensor", PROBE_FW_MINDSPORE},
        {"", "mindtorch.Tensor", PROBE_FW_MINDTORCH},
        {"", "numpy.ndarray", PROBE_FW_UNKNOWN},
        {"\"framework\": \"jax\", ", "torch.Tensor", PROBE_FW_PYTORCH},
        {"\"framework\": \"mindtorch\", ", "torch.Tensor", PROBE_FW_MINDTORCH},
    };
    static const char *const words[] = {"unknown", "pytorch", "mindspore", "mindtorch"};
    char text[512];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        snprintf(text, sizeof text,
                 "{%s\"data\": {\"F.x.0.forward\": {\"input_args\": [null, " V
                 ", {\"type\": \"%s\", "
                 "\"dtype\": \"float32\", \"shape\": []}]}}}",
                 table[i].head, table[i].type);
        parse(text);
        ck_assert_int_eq(dump->framework, table[i].want);
        ck_assert_str_eq(probe_framework_text(dump->framework), words[table[i].want]);
    }
    tear_down();
}
END_TEST

/* ---- what is refused ---------------------------------------------------------------- */

static const struct {
    const char *text;
    enum ms_rc rc;
    const char *says;
} refused[] = {
    {"", MS_E_FORMAT, "d.json: line 1, byte 0: empty file; the program that dumps wrote nothing"},
    {" \n", MS_E_FORMAT, "empty file"},
    {"[]", MS_E_FORMAT,
     "line 1, byte 0: expected an object with the key \"data\"; not a dump.json"},
    {"7", MS_E_FORMAT, "not a dump.json"},
    {"{}", MS_E_FORMAT, "line 1, byte 2: no key \"data\"; not a dump.json"},
    {"{\"a\": 1}", MS_E_FORMAT, "no key \"data\""},
    {"{\n\"data\": []}", MS_E_FORMAT, "line 2, byte 10: \"data\" is not an object"},
    {"{\"data\": {}, \"data\": {}}", MS_E_FORMAT, "byte 21: key \"data\" appears twice"},
    {"{\"data\": {}} x", MS_E_FORMAT, "byte 13: text after the end"},
    {"{\"data\": {\"a\":\n{\"output\": [], \"output\": []}}}", MS_E_FORMAT,
     "line 2, byte 40: key 'output' appears twice in one record"},
    {"{\"data\": {\n \"a\": {},\n \"a\\n\": {},\n \"a\": {}\n}}", MS_E_FORMAT,
     "d.json: line 4, byte 34: record 'a' appears twice; two runs may have written here"},
    {"{\"data\": {\"a\\n\": {}, \"a\\n\": {}}}", MS_E_FORMAT, "record 'a\\n' appears twice"},
    {"{\"data\": {\"a\": {\"output\": [1}}}}", MS_E_FORMAT, "expected ',' or ']'"},
    {"{\"data\": {\"a\xff\": {}}}", MS_E_FORMAT,
     "line 1, byte 12: invalid UTF-8 in a string; damaged, or written by another tool"},
    {"{\"data\": {\"a\": {\"output\": [{\"type\": \"\xc3\x28\"}]}}}", MS_E_FORMAT,
     "invalid UTF-8 in a string"},
    {"{\"data\": {\"a\": {\"output\": [{\"type\": \"\x01\"}]}}}", MS_E_FORMAT,
     "control character in a string"},
    {"{\"data\": {\"a\": {\"output\"", MS_E_FORMAT,
     "; --tolerant reads the records that are complete"},
    {"{\"data\": {\"a\": nul}}", MS_E_FORMAT, "byte 15: expected a value"},
    {"PK\3\4", MS_E_FORMAT, "byte 0: expected a value; damaged"},
    {"\xEF\xBB\xBF{\"data\": {}}", MS_E_FORMAT, "byte order mark stands before the JSON"},
    {"\xEF\xBB", MS_E_FORMAT, "byte 0: expected a value; damaged"},
};

START_TEST(what_is_no_dump_is_refused_with_its_place_and_a_remedy)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct probe_dump *d = (struct probe_dump *)&err;
        size_t live = held();
        ms_err_clear(&err);
        enum ms_rc rc = probe_dump_parse(&d, "d.json", ms_str_of(refused[i].text), 0, NULL, &err);
        ck_assert_msg(rc == refused[i].rc, "case %zu gives %d: %s", i, rc, err.msg);
        ck_assert_ptr_null(d);
        ck_says(err, refused[i].says);
        ck_assert_ptr_null(strchr(err.msg, '\n'));
        ck_assert_uint_eq(held(), live);
    }
}
END_TEST

START_TEST(nesting_is_limited_however_deep_it_goes)
{
    enum { DEEP = 1000000 };
    static const char head[] = "{\"data\": {\"F.x.0.forward\": {\"output\": ";
    char *text = malloc(sizeof head + DEEP);
    memcpy(text, head, sizeof head - 1);
    memset(text + sizeof head - 1, '[', DEEP);
    for (unsigned flags = 0; flags <= PROBE_OPEN_TOLERANT; flags++) {
        ms_err_clear(&err);
        struct ms_str s = {text, sizeof head - 1 + DEEP};
        ck_assert_int_eq(probe_dump_parse(&dump, "d.json", s, flags, NULL, &err), MS_E_LIMIT);
        ck_says(err, "d.json: line 1, byte 547: nested deeper than 512 levels");
    }
    free(text);
}
END_TEST

START_TEST(a_path_of_keys_is_limited_and_a_value_is_not)
{
    enum { BIG = 100000000 };
    struct ms_buf b = {.max = SIZE_MAX / 2};
    ms_buf_puts(&b,
                "{\"data\": {\"F.x.0.forward\": {\"output\": [{\"type\": \"str\", \"value\": \"");
    memset(ms_buf_room(&b, BIG), 'x', BIG);
    b.n += BIG;
    ms_buf_puts(&b, "\"}]}}}");
    ms_mem_peak_reset();
    size_t before = ms_mem_peak();
    parse_flags(ms_buf_slice(&b), 0);
    ck_assert_uint_lt(ms_mem_peak() - before, 1 << 16);
    struct probe_leaf leaf;
    probe_row_leaf(dump, dump->rows.p, &leaf);
    ck_assert_uint_eq(leaf.value_json.n, BIG + 2);
    tear_down();
    ms_buf_clear(&b);
    ms_buf_puts(&b, "{\"data\": {\"F.x.0.forward\":\n{\"input_kwargs\": {\"");
    memset(ms_buf_room(&b, BIG), 'x', BIG);
    b.n += BIG;
    ms_buf_puts(&b, "\": null}}}}");
    ms_err_clear(&err);
    ck_assert_int_ne(probe_dump_parse(&dump, "d.json", ms_buf_slice(&b), 0, NULL, &err), MS_OK);
    ck_says(err, "d.json: line 2, byte 45: keys that lead to a value are longer than");
    ms_buf_free(&b);
}
END_TEST

/* ---- duplicates ------------------------------------------------------------------------ */

START_TEST(tolerant_keeps_the_later_of_two_records)
{
    parse_flags(ms_str_of("{\"task\": \"statistics\", \"data\": {"
                          "\"a.x.0.forward\": {\"output\": [" T_MD5 ", " T_MD5 "]},"
                          "\"a.y.0.forward\": {\"output\": [" T "]},"
                          "\"a.x.0.forward\": {\"input_args\": [" T "]},"
                          "\"a.z.0.forward\": {\"output\": [null]},"
                          "\"a.x.0.forward\": {\"input_args\": [" T ", " T "]}}}"),
                PROBE_OPEN_TOLERANT);
    ck_assert_uint_eq(dump->nodes.n, 3);
    ck_rows("a.y.0.forward.output.0\na.z.0.forward.output.0\na.x.0.forward.input.0\n"
            "a.x.0.forward.input.1\n");
    ck_assert_uint_eq(dump->nodes.p[0].first_row, 2);
    ck_assert_uint_eq(dump->nodes.p[0].nrows, 2);
    ck_assert_uint_eq(dump->nodes.p[2].first_row, 1);
    /* What was replaced has no say in the mode. */
    ck_assert_int_eq(dump->mode, PROBE_MODE_SUMMARY);
    ck_assert_uint_eq(dump->problems.n, 2);
    ck_text(dump->problems.p[0], "record 'a.x.0.forward' appears twice, the later one counts");
    parse_flags(ms_str_of("{\"data\": {\"a\": {\"output\": [null]}, \"a\": {}, \"b\": {}}}"),
                PROBE_OPEN_TOLERANT);
    ck_assert_uint_eq(dump->rows.n, 0);
    ck_assert_uint_eq(dump->nodes.n, 2);
    tear_down();
}
END_TEST

/* ---- cut-off files ------------------------------------------------------------------------ */

/* About 3 kB as the official writer lays it out, with every kind of record and token. */
static struct ms_str small_dump(void)
{
    static const char text[] =
        "{\n \"task\": \"statistics\",\n \"level\": \"mix\",\n \"framework\": \"pytorch\",\n"
        " \"dump_data_dir\": null,\n \"data\": {\n  \"Torch.cat.0.forward\": {\n"
        "   \"input_args\": [\n    [\n     {\n      \"type\": \"torch.Tensor\",\n"
        "      \"dtype\": \"torch.float32\",\n      \"shape\": [\n       0\n      ],\n"
        "      \"Max\": null,\n      \"Min\": null,\n      \"Mean\": null,\n      \"Norm\": null,\n"
        "      \"requires_grad\": false\n     },\n     {\n      \"type\": \"torch.Tensor\",\n"
        "      \"dtype\": \"torch.float32\",\n      \"shape\": [\n       2,\n       3\n      ],\n"
        "      \"Max\": 1.5,\n      \"Min\": -Infinity,\n      \"Mean\": NaN,\n"
        "      \"Norm\": 5.960464477539063e-08,\n      \"requires_grad\": true\n     }\n    ]\n"
        "   ],\n   \"input_kwargs\": {\n    \"dim\": {\n     \"type\": \"int\",\n     \"value\": "
        "12\n"
        "    },\n    \"note\": {\n     \"type\": \"str\",\n     \"value\": \"\\u00e9 {\\\"}\\n\"\n "
        "   }\n"
        "   },\n   \"is_recompute\": false,\n   \"output\": [\n    null\n   ]\n  },\n"
        "  \"Module.layers.0.fc.Linear.forward.0\": {\n   \"input_args\": [],\n"
        "   \"input_kwargs\": {},\n   \"output\": [],\n   \"parameters\": {\n    \"weight\": {\n"
        "     \"type\": \"torch.Tensor\",\n     \"dtype\": \"torch.int64\",\n     \"shape\": [],\n"
        "     \"Max\": 9007199254740993,\n     \"requires_grad\": false,\n     \"md5\": "
        "\"dc7c4e94\"\n"
        "    }\n   }\n  },\n  \"Module.layers.0.fc.Linear.parameters_grad\": {\n   \"weight\": [\n"
        "    null\n   ]\n  },\n  \"loss.0.debug\": [\n   null,\n   {\n    \"type\": \"bool\",\n"
        "    \"value\": true\n   }\n  ],\n  \"k\\u00e9y.0.debug\": null,\n  "
        "\"Functional.x.0.backward\":"
        " {}\n }\n}";
    return MS_STR(text);
}

/* Where each of its records ends. */
static size_t record_ends(struct ms_str text, size_t ends[16])
{
    struct ms_jread r;
    size_t n = 0;
    ms_jread_init(&r, text.p, text.n, 0);
    enum ms_jtok tok;
    while ((tok = ms_jread_next(&r)) > MS_J_END) {
        if (tok == MS_J_KEY && r.depth == 2) {
            ms_jread_skip(&r, MS_J_KEY);
            ends[n++] = (size_t)(r.at - text.p);
        }
    }
    ck_assert_int_eq(tok, MS_J_END);
    return n;
}

/* Rows of the first `n` records of the whole dump equal those of the one that was cut. */
static void ck_same_start(const struct probe_dump *whole, const struct probe_dump *cut, size_t n)
{
    size_t rows = 0;
    ck_assert_uint_eq(cut->nodes.n, n);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert(ms_str_eq(probe_node_name(whole, i), probe_node_name(cut, i)));
        ck_assert_uint_eq(cut->nodes.p[i].nrows, whole->nodes.p[i].nrows);
        rows += cut->nodes.p[i].nrows;
    }
    ck_assert_uint_eq(cut->rows.n, rows);
    for (size_t i = 0; i < rows; i++) {
        ck_assert_uint_eq(cut->rows.p[i].off, whole->rows.p[i].off);
        ck_assert_uint_eq(cut->rows.p[i].len, whole->rows.p[i].len);
        ck_assert_uint_eq(cut->rows.p[i].kind, whole->rows.p[i].kind);
    }
}

START_TEST(every_truncation_reads_as_exactly_the_complete_records)
{
    struct ms_str text = small_dump();
    size_t ends[16];
    size_t records = record_ends(text, ends);
    struct probe_dump *whole;
    ck_assert_uint_eq(records, 6);
    ck_ok(probe_dump_parse(&whole, "w", text, 0, NULL, &err), err);
    ck_assert_uint_eq(whole->rows.n, 10);
    for (uint32_t n = 1; n < text.n; n++) {
        /* A copy of exactly that size, so that a sanitizer sees a byte too far. */
        char *copy = malloc(n + 1);
        memcpy(copy, text.p, n);
        size_t complete = 0;
        while (complete < records && ends[complete] <= n)
            complete++;
        parse_flags((struct ms_str){copy, n}, PROBE_OPEN_TOLERANT);
        ck_same_start(whole, dump, complete);
        ck_assert_uint_eq(dump->problems.n, 1);
        ck_assert(ms_str_starts(dump->problems.p[0], MS_STR("cut off; ")));
        tear_down();
        free(copy);
    }
    probe_dump_close(whole);
}
END_TEST

START_TEST(an_empty_text_is_refused_even_when_tolerant)
{
    ms_err_clear(&err);
    enum ms_rc rc = probe_dump_parse(&dump, "d.json", MS_STR(""), PROBE_OPEN_TOLERANT, NULL, &err);
    ck_assert_int_eq(rc, MS_E_FORMAT);
    ck_assert_ptr_null(dump);
    ck_assert_msg(strstr(err.msg, "d.json: line 1, byte 0: empty file") == err.msg, "%s", err.msg);
}
END_TEST

START_TEST(strict_refuses_every_truncation_with_line_and_byte)
{
    struct ms_str text = small_dump();
    for (uint32_t n = 0; n < text.n; n++) {
        unsigned line;
        unsigned byte;
        ms_err_clear(&err);
        enum ms_rc rc =
            probe_dump_parse(&dump, "d.json", (struct ms_str){text.p, n}, 0, NULL, &err);
        ck_assert_msg(rc == MS_E_FORMAT, "cut at %u gives %d", n, rc);
        ck_assert_msg(sscanf(err.msg, "d.json: line %u, byte %u: ", &line, &byte) == 2, "%s",
                      err.msg);
        ck_assert_uint_le(byte, n);
        ck_assert_msg(strstr(err.msg, "; --tolerant reads") != NULL || n == 0, "%s", err.msg);
    }
}
END_TEST

/* ---- large dumps ---------------------------------------------------------------------------- */

static char *generated(size_t records, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    big_dump_write(f, records, 7);
    ck_assert_int_eq(fclose(f), 0);
    return text;
}

static void ck_same_dump(const struct probe_dump *a, const struct probe_dump *b)
{
    ck_assert_uint_eq(a->nodes.n, b->nodes.n);
    ck_assert_uint_eq(a->rows.n, b->rows.n);
    ck_assert_int_eq(memcmp(a->nodes.p, b->nodes.p, a->nodes.n * sizeof *a->nodes.p), 0);
    ck_assert_uint_eq(a->paths.keys.n, b->paths.keys.n);
    for (uint32_t i = 0; i < a->nodes.n; i++)
        ck_assert(ms_str_eq(probe_node_name(a, i), probe_node_name(b, i)));
    for (uint32_t i = 0; i < a->paths.keys.n; i++)
        ck_assert(ms_str_eq(ms_map_key(&a->paths, i), ms_map_key(&b->paths, i)));
    for (size_t i = 0; i < a->rows.n; i++) {
        const struct probe_row *x = &a->rows.p[i];
        const struct probe_row *y = &b->rows.p[i];
        ck_assert(x->off == y->off && x->len == y->len && x->node == y->node &&
                  x->path == y->path && x->section == y->section && x->kind == y->kind &&
                  x->flags == y->flags);
    }
    ck_assert_int_eq(a->mode, b->mode);
    ck_assert_int_eq(a->framework, b->framework);
}

START_TEST(parts_read_by_threads_equal_one_read)
{
    size_t n;
    char *text = generated(9500, &n);
    struct ms_str s = {text, (uint32_t)n};
    ck_assert_uint_ge(n, 8 << 20);
    parse_flags(s, 0);
    ck_assert_uint_eq(dump->nodes.n, 9500);
    for (unsigned threads = 1; threads <= 8; threads++) {
        struct ms_pool *pool;
        struct probe_dump *by_parts;
        ck_ok(ms_pool_new(&pool, threads, &err), err);
        for (unsigned flags = 0; flags <= PROBE_OPEN_TOLERANT; flags++) {
            ck_ok(probe_dump_parse(&by_parts, "p", s, flags, pool, &err), err);
            ck_same_dump(dump, by_parts);
            probe_dump_close(by_parts);
        }
        ms_pool_free(pool);
    }
    tear_down();
    free(text);
}
END_TEST

/* Names with escapes live in an arena of the part, which is gone after joining. */
START_TEST(escaped_names_survive_joining)
{
    size_t n;
    char *text = generated(9500, &n);
    for (char *p = text; (p = strstr(p, "Functional.linear.")) != NULL; p++)
        memcpy(p, "\\u0046unct.linear.", 18);
    struct ms_str s = {text, (uint32_t)n};
    struct ms_pool *pool;
    struct probe_dump *by_parts;
    parse_flags(s, 0);
    ck_assert_uint_ne(probe_node_find(dump, MS_STR("Funct.linear.0.forward")), MS_MAP_NONE);
    ck_ok(ms_pool_new(&pool, 3, &err), err);
    ck_ok(probe_dump_parse(&by_parts, "p", s, 0, pool, &err), err);
    ck_same_dump(dump, by_parts);
    probe_dump_close(by_parts);
    ms_pool_free(pool);
    tear_down();
    free(text);
}
END_TEST

/* What is wrong somewhere in a large file reads the same with any number of threads. */
START_TEST(faults_are_the_same_with_any_number_of_threads)
{
    size_t n;
    char *text = generated(9500, &n);
    struct ms_pool *pool;
    ck_ok(ms_pool_new(&pool, 4, &err), err);
    for (int fault = 0; fault < 4; fault++) {
        char *copy = malloc(n);
        memcpy(copy, text, n);
        size_t len = n;
        char *at = copy + n / 4 * 3;
        char *name = strstr(copy + n / 2, "\n  \"") + 4;
        if (fault == 0)
            *at = '\x01';
        else if (fault == 1)
            len = (size_t)(at - copy);
        else if (fault == 2) /* a second record of the first one's name, later in the file */
            memcpy(strstr(name, "Torch.matmul."), "Torch.matmul.4.forward\": {}, \"", 30);
        else
            len = n - 1;
        struct ms_str s = {copy, (uint32_t)len};
        struct ms_err one = {0};
        struct ms_err parts = {0};
        enum ms_rc rc = probe_dump_parse(&dump, "d", s, 0, NULL, &one);
        ck_assert_int_ne(rc, MS_OK);
        ck_assert_int_eq(probe_dump_parse(&dump, "d", s, 0, pool, &parts), rc);
        ck_assert_str_eq(one.msg, parts.msg);
        struct probe_dump *by_parts = NULL;
        rc = probe_dump_parse(&dump, "d", s, PROBE_OPEN_TOLERANT, NULL, &one);
        ck_assert_int_eq(probe_dump_parse(&by_parts, "d", s, PROBE_OPEN_TOLERANT, pool, &parts),
                         rc);
        if (rc == MS_OK)
            ck_same_dump(dump, by_parts);
        probe_dump_close(by_parts);
        tear_down();
        free(copy);
    }
    ms_pool_free(pool);
    free(text);
}
END_TEST

START_TEST(memory_stays_below_half_of_the_file)
{
    size_t n;
    char *text = generated(23000, &n);
    struct ms_str s = {text, (uint32_t)n};
    struct ms_pool *pools[2] = {NULL, NULL};
    ck_assert_uint_ge(n, 20 << 20);
    ck_ok(ms_pool_new(&pools[1], 4, &err), err);
    for (int i = 0; i < 2; i++) {
        ms_mem_peak_reset();
        size_t before = held();
        ck_ok(probe_dump_parse(&dump, "d", s, 0, pools[i], &err), err);
        ck_assert_msg(ms_mem_peak() - before < n / 2, "%zu for %zu", ms_mem_peak() - before, n);
        tear_down();
        ck_assert_uint_eq(held(), before);
    }
    ms_pool_free(pools[1]);
    free(text);
}
END_TEST

/* ---- files and memory -------------------------------------------------------------------------- */

START_TEST(a_file_is_opened_and_its_path_stands_before_every_error)
{
    char dir[64], path[128], want[256];
    struct ms_str text = small_dump();
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/dump.json", dir);
    write_file(path, text.p, text.n);
    ck_ok(probe_dump_open(&dump, path, 0, NULL, &err), err);
    ck_assert_str_eq(dump->path, path);
    ck_assert_uint_eq(dump->nodes.n, 6);
    tear_down();
    write_file(path, text.p, text.n - 1);
    ck_assert_int_eq(probe_dump_open(&dump, path, 0, NULL, &err), MS_E_FORMAT);
    snprintf(want, sizeof want, "%s: line ", path);
    ck_says(err, want);
    write_file(path, "", 0);
    ms_err_clear(&err);
    ck_assert_int_eq(probe_dump_open(&dump, path, 0, NULL, &err), MS_E_FORMAT);
    ck_says(err, "line 1, byte 0: empty file");
    ms_err_clear(&err);
    ck_assert_int_eq(probe_dump_open(&dump, dir, 0, NULL, &err), MS_E_UNSUPPORTED);
    ck_says(err, "is a directory, expected a file");
    snprintf(path, sizeof path, "%s/none.json", dir);
    ms_err_clear(&err);
    ck_assert_int_eq(probe_dump_open(&dump, path, 0, NULL, &err), MS_E_NOTFOUND);
    ck_says(err, path);
    scratch_remove(dir);
}
END_TEST

static void fail_each_allocation(struct ms_str text, unsigned flags, struct ms_pool *pool)
{
    size_t live = held();
    for (uint64_t n = 1;; n++) {
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        enum ms_rc rc = probe_dump_parse(&dump, "d.json", text, flags, pool, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        if (rc == MS_OK) {
            tear_down();
            ck_assert_uint_eq(held(), live);
            /* A trace or a vector may do without what it was refused. */
            if (!failed)
                return;
            continue;
        }
        ck_assert_msg(failed && rc == MS_E_NOMEM, "allocation %d: %s", (int)n, err.msg);
        ck_says(err, "out of memory");
        ck_assert_ptr_null(dump);
        ck_assert_uint_eq(held(), live);
    }
}

START_TEST(every_failed_allocation_is_a_clean_error)
{
    fail_each_allocation(small_dump(), 0, NULL);
    fail_each_allocation((struct ms_str){small_dump().p, small_dump().n - 40}, PROBE_OPEN_TOLERANT,
                         NULL);
    fail_each_allocation(MS_STR("{\"data\": {\"a\": {\"output\": [null]}, \"a\": {}}}"),
                         PROBE_OPEN_TOLERANT, NULL);
}
END_TEST

START_TEST(every_failed_allocation_of_parts_is_a_clean_error)
{
    size_t n;
    char *text = generated(6000, &n);
    struct ms_pool *pool;
    ck_ok(ms_pool_new(&pool, 2, &err), err);
    size_t live = held();
    for (uint64_t at = 1; at < 400; at += 3) {
        ms_err_clear(&err);
        ms_mem_fail_at(at);
        struct ms_str s = {text, (uint32_t)n};
        enum ms_rc rc = probe_dump_parse(&dump, "d.json", s, 0, pool, &err);
        ms_mem_fail_at(0);
        ck_assert_int_eq(rc == MS_OK, dump != NULL);
        ck_assert(rc == MS_OK || rc == MS_E_NOMEM);
        tear_down();
        ck_assert_uint_eq(held(), live);
    }
    ms_pool_free(pool);
    free(text);
}
END_TEST

START_TEST(closing_nothing_is_fine)
{
    probe_dump_close(NULL);
}
END_TEST

TEST_MAIN("dump", records_become_the_rows_of_the_format,
          rows_belong_to_their_record_and_lie_together,
          flags_of_a_record_are_told_from_their_absence,
          a_row_tells_that_all_its_statistics_have_a_fraction,
          escaped_names_are_found_by_their_text, the_head_is_read_and_unknown_keys_are_not,
          the_mode_follows_task_and_digests, an_unnamed_framework_shows_in_the_tensors,
          what_is_no_dump_is_refused_with_its_place_and_a_remedy,
          nesting_is_limited_however_deep_it_goes, a_path_of_keys_is_limited_and_a_value_is_not,
          tolerant_keeps_the_later_of_two_records,
          every_truncation_reads_as_exactly_the_complete_records,
          an_empty_text_is_refused_even_when_tolerant,
          strict_refuses_every_truncation_with_line_and_byte, parts_read_by_threads_equal_one_read,
          escaped_names_survive_joining, faults_are_the_same_with_any_number_of_threads,
          memory_stays_below_half_of_the_file,
          a_file_is_opened_and_its_path_stands_before_every_error,
          every_failed_allocation_is_a_clean_error,
          every_failed_allocation_of_parts_is_a_clean_error, closing_nothing_is_fine)
