/* SPDX-License-Identifier: MIT */
#include "probe/dump/name.h"

#include "tests/support/check.h"

struct name_case {
    const char *name;
    enum probe_node_kind kind;
    enum probe_dir dir;
    const char *prefix, *path;
    int64_t call;
};

static void check_names(const struct name_case *c, size_t n)
{
    for (; n-- > 0; c++) {
        struct probe_name got = probe_name_parse(ms_str_of(c->name));
        ck_assert_msg(got.kind == c->kind, "'%s' is %s", c->name, probe_node_kind_text(got.kind));
        ck_assert_msg(got.dir == c->dir, "'%s' has direction %d", c->name, got.dir);
        ck_assert_msg(got.call == c->call, "'%s' has call %lld", c->name, (long long)got.call);
        ck_assert_msg(ms_str_is(got.prefix, c->prefix), "'%s' has prefix '%.*s'", c->name,
                      MS_STR_ARG(got.prefix));
        ck_assert_msg(ms_str_is(got.path, c->path), "'%s' has path '%.*s'", c->name,
                      MS_STR_ARG(got.path));
    }
}
#define CHECK_NAMES(table) check_names(table, sizeof(table) / sizeof *(table))

#define API    PROBE_NODE_API
#define MODULE PROBE_NODE_MODULE
#define PGRAD  PROBE_NODE_PGRAD
#define DEBUG  PROBE_NODE_DEBUG
#define OTHER  PROBE_NODE_OTHER
#define FW     PROBE_FORWARD
#define BW     PROBE_BACKWARD
#define NODIR  PROBE_DIR_NONE

START_TEST(an_operator_has_its_call_before_the_direction)
{
    static const struct name_case table[] = {
        {"Functional.linear.0.forward", API, FW, "Functional", "linear", 0},
        {"Tensor.__add__.12.backward", API, BW, "Tensor", "__add__", 12},
        {"Distributed.all_reduce.3.forward", API, FW, "Distributed", "all_reduce", 3},
        {"Torch.cat.0.forward", API, FW, "Torch", "cat", 0},
        {"Primitive.matmul.MatMul.0.forward", API, FW, "Primitive", "matmul.MatMul", 0},
        {"Jit.step_fn.0.forward", API, FW, "Jit", "step_fn", 0},
        {"Aten.add.Tensor.7.forward", API, FW, "Aten", "add.Tensor", 7},
        {"_C_ascend.ops.rope.2.forward", API, FW, "_C_ascend", "ops.rope", 2},
        {"Functional.linear.9223372036854775807.forward", API, FW, "Functional", "linear",
         INT64_MAX},
    };
    CHECK_NAMES(table);
}
END_TEST

START_TEST(a_module_has_its_call_behind_the_direction)
{
    static const struct name_case table[] = {
        {"Module.layers.0.fc.Linear.forward.0", MODULE, FW, "Module", "layers.0.fc.Linear", 0},
        {"Module.0.layers.1.B.backward.2", MODULE, BW, "Module", "0.layers.1.B", 2},
        {"Cell.net.Dense.forward.10", MODULE, FW, "Cell", "net.Dense", 10},
        {"Module.a.forward.B.forward.1", MODULE, FW, "Module", "a.forward.B", 1},
        /* Read from the right, so what looks like the other kind in the middle is only a path. */
        {"Module.x.1.forward.0", MODULE, FW, "Module", "x.1", 0},
        {"Module.x.0.forward", API, FW, "Module", "x", 0},
    };
    CHECK_NAMES(table);
}
END_TEST

START_TEST(gradients_of_parameters_may_carry_a_count)
{
    static const struct name_case table[] = {
        {"Module.layers.0.fc.Linear.parameters_grad.0", PGRAD, BW, "Module", "layers.0.fc.Linear",
         0},
        {"Module.layers.0.fc.Linear.parameters_grad", PGRAD, BW, "Module", "layers.0.fc.Linear",
         -1},
        {"Cell.net.Dense.parameters_grad.3", PGRAD, BW, "Cell", "net.Dense", 3},
    };
    CHECK_NAMES(table);
}
END_TEST

START_TEST(a_value_saved_by_hand_has_a_name_and_a_count)
{
    static const struct name_case table[] = {
        {"var.0.debug", DEBUG, NODIR, "", "var", 0},
        {"var_grad.2.debug", DEBUG, NODIR, "", "var_grad", 2},
        {"my.dotted name.1.debug", DEBUG, NODIR, "", "my.dotted name", 1},
    };
    CHECK_NAMES(table);
}
END_TEST

START_TEST(what_follows_no_rule_is_other_and_keeps_its_text)
{
    static const struct name_case table[] = {
        {"", OTHER, NODIR, "", "", -1},
        {".", OTHER, NODIR, "", "", -1},
        {"...", OTHER, NODIR, "", "..", -1},
        {"forward", OTHER, NODIR, "forward", "", -1},
        {"0.forward", OTHER, NODIR, "0", "forward", -1},
        {".0.forward", OTHER, NODIR, "", "0.forward", -1},
        {"forward.0", OTHER, NODIR, "forward", "0", -1},
        {"parameters_grad", OTHER, NODIR, "parameters_grad", "", -1},
        {"parameters_grad.0", OTHER, NODIR, "parameters_grad", "0", -1},
        {"Functional.linear.forward", OTHER, NODIR, "Functional", "linear.forward", -1},
        {"Functional.linear.-0.forward", OTHER, NODIR, "Functional", "linear.-0.forward", -1},
        {"Functional.linear.+1.forward", OTHER, NODIR, "Functional", "linear.+1.forward", -1},
        {"Functional.linear. 1.forward", OTHER, NODIR, "Functional", "linear. 1.forward", -1},
        {"Functional.linear.9223372036854775808.forward", OTHER, NODIR, "Functional",
         "linear.9223372036854775808.forward", -1},
        {"Functional.linear.0.Forward", OTHER, NODIR, "Functional", "linear.0.Forward", -1},
        {"Module.fc.Linear.forward.", OTHER, NODIR, "Module", "fc.Linear.forward.", -1},
        {"Module.fc.Linear.forward.x", OTHER, NODIR, "Module", "fc.Linear.forward.x", -1},
        {"var.debug", OTHER, NODIR, "var", "debug", -1},
        {"optimizer", OTHER, NODIR, "optimizer", "", -1},
        {"clip_grad", OTHER, NODIR, "clip_grad", "", -1},
    };
    CHECK_NAMES(table);
}
END_TEST

START_TEST(an_absent_name_is_other)
{
    struct probe_name got = probe_name_parse(MS_STR_NONE);
    ck_assert_int_eq(got.kind, PROBE_NODE_OTHER);
    ck_assert_uint_eq(got.prefix.n + got.path.n, 0);
}
END_TEST

START_TEST(every_kind_has_its_word)
{
    ck_assert_str_eq(probe_node_kind_text(OTHER), "other");
    ck_assert_str_eq(probe_node_kind_text(API), "api");
    ck_assert_str_eq(probe_node_kind_text(MODULE), "module");
    ck_assert_str_eq(probe_node_kind_text(PGRAD), "parameters_grad");
    ck_assert_str_eq(probe_node_kind_text(DEBUG), "debug");
}
END_TEST

START_TEST(parts_are_what_stands_between_dots)
{
    struct ms_str s = MS_STR("a.bc.d.0"), call;
    ck_assert_uint_eq(probe_name_parts(s), 4);
    ck_assert(ms_str_is(probe_name_cut(s, 0), "a.bc.d.0"));
    ck_assert(ms_str_is(probe_name_cut(s, 2), "a.bc"));
    ck_assert(ms_str_is(probe_name_cut(s, 4), ""));
    ck_assert(ms_str_is(probe_name_head(s, 2), "a.bc"));
    ck_assert(ms_str_is(probe_name_head(s, 4), "a.bc.d.0"));
    ck_assert(ms_str_is(probe_name_head(s, 9), "a.bc.d.0"));
    ck_assert(ms_str_is(probe_name_part(s, 1), "bc"));
    ck_assert(ms_str_is(probe_name_part(s, 9), ""));
    ck_assert(ms_str_is(probe_name_part_back(s, 1), "d"));
    ck_assert(ms_str_is(probe_name_part_back(s, 3), "a"));
    ck_assert(ms_str_is(probe_name_part_back(s, 4), ""));
    ck_assert(ms_str_is(probe_name_last(s), "0"));
    ck_assert(ms_str_is(probe_name_last(MS_STR("plain")), "plain"));
    ck_assert(probe_name_find_call(s, &call) && ms_str_is(call, "0"));
    ck_assert(probe_name_find_call(MS_STR("f.3.forward"), &call) && ms_str_is(call, "3"));
    ck_assert(probe_name_find_call(MS_STR(".7"), &call) && ms_str_is(call, "7"));
    ck_assert(probe_name_find_call(MS_STR(".7.forward"), &call) && ms_str_is(call, "7"));
    ck_assert(!probe_name_find_call(MS_STR("3"), &call));
    ck_assert(!probe_name_find_call(MS_STR("3.forward"), &call));
    ck_assert(!probe_name_find_call(MS_STR("f.3.x.forward"), &call));
}
END_TEST

START_TEST(a_name_becomes_that_of_another_direction)
{
    static const struct {
        const char *name, *forward;
    } names[] = {{"Functional.linear.2.backward", "Functional.linear.2.forward"},
                 {"Module.backward.A.backward.0", "Module.backward.A.forward.0"},
                 {"Module.a.A.forward.0", NULL},
                 {"a.backward.x.y", NULL},
                 {"backward", "forward"}};
    struct ms_buf b = {.max = 100};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ms_buf_clear(&b);
        bool turned = probe_name_put_forward(&b, ms_str_of(names[i].name));
        ck_assert_int_eq(turned, names[i].forward != NULL);
        ck_assert_str_eq(ms_buf_z(&b), turned ? names[i].forward : "");
    }
    ms_buf_clear(&b);
    probe_name_put_call(&b, MS_STR("Module.a.A.forward.7"), MS_STR("backward"));
    ck_assert_str_eq(ms_buf_z(&b), "Module.a.A.backward.7");
    ms_buf_free(&b);
    ck_assert(probe_name_is_call_of(MS_STR("x.forward.0"), MS_STR("forward")));
    ck_assert(!probe_name_is_call_of(MS_STR("x.forward.a"), MS_STR("forward")));
    ck_assert(!probe_name_is_call_of(MS_STR("xforward.0"), MS_STR("forward")));
    ck_assert(!probe_name_is_call_of(MS_STR("forward.0"), MS_STR("forward")));
}
END_TEST

TEST_MAIN("name", parts_are_what_stands_between_dots, a_name_becomes_that_of_another_direction,
          an_operator_has_its_call_before_the_direction, a_module_has_its_call_behind_the_direction,
          gradients_of_parameters_may_carry_a_count, a_value_saved_by_hand_has_a_name_and_a_count,
          what_follows_no_rule_is_other_and_keeps_its_text, an_absent_name_is_other,
          every_kind_has_its_word)
