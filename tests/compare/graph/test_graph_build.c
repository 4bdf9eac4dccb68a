/* SPDX-License-Identifier: MIT */
#include "tests/support/graph_files.h"

static struct ms_err err;
static char dir[64];
static size_t live_before;
static struct graph__tree g;

static void set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    live_before = ms_mem_live();
}

static void tear_down(void)
{
    ms_trace_reset();
    ck_assert_uint_eq(ms_mem_live(), live_before);
    scratch_remove(dir);
}

static void open_it(const char *construct, const char *dump, const char *stack, bool strict)
{
    put_rank(dir, ".", construct, dump, stack);
    ck_ok(graph__open(&g, dir, strict ? &graph_rules_official : &graph_rules_ours, NULL, &err),
          err);
}

static void expect_tree(const char *wanted)
{
    struct ms_buf out = {.max = 1 << 20};
    draw(&g, g.root, &out);
    ck_assert_str_eq(ms_buf_z(&out), wanted);
    ms_buf_free(&out);
}

static const struct graph__node *node(const char *name)
{
    uint32_t n = graph__find(&g, ms_str_of(name));
    ck_assert_msg(n != GRAPH_NO, "no node %s", name);
    return &g.nodes.p[n];
}

/* ---- shapes ---------------------------------------------------------------- */

static const struct {
    const char *what, *construct, *wanted, *wanted_strict; /* strict: NULL, the same */
} shapes[] = {
    {"a parent may stand behind its child",
     "{\"Torch.a.0.forward\":\"Module.m.M.forward.0\",\"Module.n.N.forward.0\":null,"
     "\"Module.m.M.forward.0\":null}",
     "Module.n.N.forward.0 Module.m.M.forward.0(Torch.a.0.forward)", NULL},
    {"a parent that is never a key hangs below the root",
     "{\"Torch.a.0.forward\":\"Module.m.M.forward.0\",\"Module.n.N.forward.0\":null}",
     "Module.n.N.forward.0 Module.m.M.forward.0(Torch.a.0.forward)", "Module.n.N.forward.0"},
    {"an empty parent of old files is none", "{\"Module.m.M.forward.0\":\"\"}",
     "Module.m.M.forward.0", NULL},
    {"a backward operator takes its place from its forward twin",
     "{\"Module.m.M.forward.0\":null,\"Torch.a.0.forward\":\"Module.m.M.forward.0\","
     "\"Module.m.M.backward.0\":null,\"Torch.a.0.backward\":null}",
     "Module.m.M.forward.0(Torch.a.0.forward) Module.m.M.backward.0(Torch.a.0.backward)", NULL},
    {"a backward module takes its place from its forward twin",
     "{\"Module.m.M.forward.0\":null,\"Module.m.k.K.forward.0\":\"Module.m.M.forward.0\","
     "\"Module.m.M.backward.0\":null,\"Module.m.k.K.backward.0\":null}",
     "Module.m.M.forward.0(Module.m.k.K.forward.0) Module.m.M.backward.0(Module.m.k.K.backward.0)",
     NULL},
    {"a backward module below the wrong one is put right",
     "{\"Module.a.b.B.forward.0\":null,\"Module.a.b.c.C.forward.0\":\"Module.a.b.B.forward.0\","
     "\"Module.x.y.Y.backward.0\":null,\"Module.a.b.B.backward.0\":null,"
     "\"Module.a.b.c.C.backward.0\":\"Module.x.y.Y.backward.0\"}",
     "Module.a.b.B.forward.0(Module.a.b.c.C.forward.0) Module.x.y.Y.backward.0"
     " Module.a.b.B.backward.0(Module.a.b.c.C.backward.0)",
     NULL},
    {"a backward module below the wrong one goes to the root with its twin",
     "{\"Module.a.b.B.forward.0\":null,\"Module.x.y.Y.backward.0\":null,"
     "\"Module.a.b.B.backward.0\":\"Module.x.y.Y.backward.0\"}",
     "Module.a.b.B.forward.0 Module.x.y.Y.backward.0 Module.a.b.B.backward.0", NULL},
    {"one operator between modules stays as it is",
     "{\"Torch.a.0.forward\":null,\"Module.m.M.forward.0\":null,\"Torch.b.0.forward\":null}",
     "Torch.a.0.forward Module.m.M.forward.0 Torch.b.0.forward", NULL},
    {"two operators in a row are collected",
     "{\"Torch.a.0.forward\":null,\"Torch.b.0.forward\":null,\"Module.m.M.forward.0\":null,"
     "\"Torch.c.0.forward\":null,\"Mint.d.0.forward\":null,\"Jit.e.0.forward\":null}",
     "Apis_Between_Modules.0(Torch.a.0.forward Torch.b.0.forward) Module.m.M.forward.0"
     " Apis_Between_Modules.1(Torch.c.0.forward Mint.d.0.forward Jit.e.0.forward)",
     NULL},
    {"the root may be named as a parent",
     "{\"Module.m.M.forward.0\":\"DefaultModel\",\"Torch.a.0.forward\":\"DefaultModel\"}",
     "Module.m.M.forward.0 Torch.a.0.forward", NULL},
};

START_TEST(construct_becomes_a_tree)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int strict = 0; strict < 2; strict++) {
            const char *wanted = strict && shapes[i].wanted_strict != NULL ? shapes[i].wanted_strict
                                                                           : shapes[i].wanted;
            set_up();
            open_it(shapes[i].construct, DUMP(""), NULL, strict != 0);
            struct ms_buf out = {.max = 1 << 20};
            draw(&g, g.root, &out);
            ck_assert_msg(strcmp(ms_buf_z(&out), wanted) == 0, "%s: %s", shapes[i].what,
                          ms_buf_z(&out));
            ms_buf_free(&out);
            graph__close(&g);
            tear_down();
        }
    }
}
END_TEST

START_TEST(a_repair_that_closes_a_cycle_is_opened_again)
{
    set_up();
    /* The twins of both would put each below the other. */
    open_it("{\"Module.a.A.forward.0\":\"Module.b.B.forward.0\",\"Module.b.B.forward.0\":null,"
            "\"Module.b.B.backward.0\":\"Module.a.A.backward.0\",\"Module.a.A.backward.0\":null}",
            DUMP(""), NULL, false);
    ck_assert_uint_eq(g.order.n, 5);
    ck_assert_uint_eq(g.order.p[4], g.root);
    graph__close(&g);
    tear_down();
}
END_TEST

START_TEST(without_a_construct_the_calls_are_listed)
{
    set_up();
    open_it("{}",
            DUMP("\"Torch.b.0.forward\":{\"input_args\":[],\"input_kwargs\":{},\"output\":[]},"
                 "\"Torch.a.0.forward\":{\"input_args\":[],\"input_kwargs\":{},\"output\":[]}"),
            NULL, false);
    const uint32_t b = graph__find(&g, MS_STR("Torch.b.0.forward")),
                   a = graph__find(&g, MS_STR("Torch.a.0.forward"));
    ck_assert_uint_ne(b, GRAPH_NO);
    ck_assert_uint_eq(g.nodes.p[b].next, a);
    ck_assert_uint_ne(g.nodes.p[b].parent, g.root); /* calls between modules are one collection */
    graph__close(&g);
    tear_down();
}
END_TEST

START_TEST(a_dump_without_a_record_is_refused_with_a_hint)
{
    set_up();
    put_rank(dir, ".", "{}", DUMP(""), NULL);
    ck_assert_int_eq(graph__open(&g, dir, &graph_rules_ours, NULL, &err), MS_E_ARG);
    ck_says(err, "the dump has no record");
    tear_down();
}
END_TEST

START_TEST(children_come_before_their_parent_in_the_order)
{
    static const char *const wanted[] = {"Torch.a.0.forward", "Module.k.K.forward.0",
                                         "Module.m.M.forward.0", "Torch.b.0.forward",
                                         "DefaultModel"};
    set_up();
    open_it("{\"Module.m.M.forward.0\":null,\"Module.k.K.forward.0\":\"Module.m.M.forward.0\","
            "\"Torch.a.0.forward\":\"Module.k.K.forward.0\",\"Torch.b.0.forward\":null}",
            DUMP(""), NULL, false);
    ck_assert_uint_eq(g.order.n, 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_msg(ms_str_is(graph__name(&g, g.order.p[i]), wanted[i]), "%.*s",
                      MS_STR_ARG(graph__name(&g, g.order.p[i])));
    graph__close(&g);
    tear_down();
}
END_TEST

/* ---- recomputation ----------------------------------------------------------- */

#define BLOCKS                                                                                     \
    "{\"Module.GPT.forward.0\":null,"                                                              \
    "\"Module.module.layers.0.Block.forward.0\":\"Module.GPT.forward.0\","                         \
    "\"Module.GPT.backward.0\":null,"                                                              \
    "\"Module.module.layers.0.Block.forward.1\":null,"                                             \
    "\"Module.module.layers.0.Block.backward.1\":null}"
#define RECOMPUTE_STACK(frames)                                                                    \
    "{\"0\":[[\"Module.module.layers.0.Block.forward.1\"],[" frames "]]}"

START_TEST(recomputed_modules_move_below_the_backward_of_their_parent)
{
    static const char *const stacks[] = {
        RECOMPUTE_STACK("\"File /x/torch/utils/checkpoint.py, line 9, in recompute_fn, \\n f()\""),
        RECOMPUTE_STACK("\"File /x/m.py, line 1, in backward, \\n f()\","
                        "\"File /x/torch/autograd/function.py, line 3, in apply, \\n g()\""),
        RECOMPUTE_STACK("\"File /x/megatron/r.py, line 1, in checkpoint_function_backward, \\n f\","
                        "\"File /x/y.py, line 3, in z, \\n g()\","
                        "\"File /x/torch/autograd/function.py, line 3, in apply, \\n g()\""),
    };
    for (size_t i = 0; i < 3; i++) {
        set_up();
        open_it(BLOCKS, DUMP(""), stacks[i], false);
        expect_tree("Module.GPT.forward.0(Module.module.layers.0.Block.forward.0)"
                    " Module.GPT.backward.0(Module.module.layers.0.Block.forward.1"
                    " Module.module.layers.0.Block.backward.1)");
        graph__close(&g);
        tear_down();
    }
}
END_TEST

START_TEST(a_stack_without_recomputation_moves_nothing)
{
    static const char *const stacks[] = {
        RECOMPUTE_STACK("\"File /x/m.py, line 1, in forward, \\n f()\""),
        RECOMPUTE_STACK("\"File /x/m.py, line 1, in backward, \\n f()\","
                        "\"File a, line 1, in b, \\n c\",\"File a, line 1, in b, \\n c\","
                        "\"File /x/torch/autograd/function.py, line 3, in apply, \\n g()\""),
    };
    for (size_t i = 0; i < 2; i++) {
        set_up();
        open_it(BLOCKS, DUMP(""), stacks[i], false);
        expect_tree("Module.GPT.forward.0(Module.module.layers.0.Block.forward.0)"
                    " Module.GPT.backward.0 Module.module.layers.0.Block.forward.1"
                    " Module.module.layers.0.Block.backward.1");
        graph__close(&g);
        tear_down();
    }
}
END_TEST

/* ---- gradients and micro steps -------------------------------------------------- */

#define GRADS(name) "\"" name "\":{\"weight\":[" FLAT("1.0") "]}"

START_TEST(parameter_gradients_hang_below_the_last_backward)
{
    set_up();
    open_it("{\"Module.a.A.forward.0\":null,\"Module.a.A.backward.0\":null,"
            "\"Module.a.A.backward.1\":null,\"Module.b.B.forward.0\":null}",
            DUMP(GRADS("Module.a.A.parameters_grad") "," GRADS(
                "Module.a.A.parameters_grad.3") "," GRADS("Module.b.B.parameters_grad.0")),
            NULL, false);
    expect_tree("Module.a.A.forward.0 Module.a.A.backward.0"
                " Module.a.A.backward.1(Module.a.A.parameters_grad Module.a.A.parameters_grad.3)"
                " Module.b.B.forward.0(Module.b.B.parameters_grad.0)");
    ck_assert_uint_eq(g.dropped, 0);
    graph__close(&g);
    open_it("{\"Module.b.B.forward.0\":null}", DUMP(GRADS("Module.b.B.parameters_grad.0")), NULL,
            true);
    expect_tree("Module.b.B.forward.0");
    ck_assert_uint_eq(g.dropped, 1);
    graph__close(&g);
    tear_down();
}
END_TEST

START_TEST(a_forward_behind_a_backward_begins_a_micro_step)
{
    set_up();
    open_it(
        "{\"Module.a.A.forward.0\":null,\"Torch.x.0.forward\":null,"
        "\"Module.a.A.backward.0\":null,\"optimizer\":null,\"Tensor.add_.0.forward\":\"optimizer\","
        "\"Module.a.A.forward.1\":null,\"Torch.y.0.forward\":\"Module.a.A.forward.1\"}",
        DUMP(""), NULL, false);
    ck_assert_uint_eq(g.micro_steps, 2);
    ck_assert_uint_eq(node("Torch.x.0.forward")->micro, 0);
    ck_assert_uint_eq(node("Tensor.add_.0.forward")->micro, 0);
    ck_assert_uint_eq(node("Torch.y.0.forward")->micro, 1);
    ck_assert_uint_eq(node("DefaultModel")->micro, 0);
    graph__close(&g);
    tear_down();
}
END_TEST

START_TEST(pipeline_runs_say_their_micro_steps)
{
    set_up();
    open_it("{\"Module.a.A.forward.0\":[null,2],\"Torch.x.0.forward\":[\"Module.a.A.forward.0\",1],"
            "\"Module.b.B.forward.0\":null,\"megatron_micro_step_number\":3}",
            DUMP(""), NULL, false);
    ck_assert_uint_eq(g.micro_steps, 4);
    ck_assert_uint_eq(node("Module.a.A.forward.0")->micro, 2);
    ck_assert_uint_eq(node("Torch.x.0.forward")->micro, 1);
    ck_assert_uint_eq(node("Module.b.B.forward.0")->micro, 0);
    graph__close(&g);
    tear_down();
}
END_TEST

/* ---- stacks, names ---------------------------------------------------------------- */

START_TEST(a_backward_node_has_the_stack_of_its_forward)
{
    static const char *const stacks[] = {
        "{\"0\":[[\"Module.a.A.forward.0\"],[\"File m\"]],\"1\":[[\"Torch.x.0.forward\"],[]]}",
        "{\"Module.a.A.forward.0\":[\"File m\"],\"Torch.x.0.forward\":[]}"};
    for (size_t i = 0; i < 2; i++) {
        set_up();
        open_it("{\"Module.a.A.forward.0\":null,\"Module.a.A.backward.0\":null,"
                "\"Torch.x.0.backward\":null,\"optimizer\":null,\"Module.c.C.forward.0\":null}",
                DUMP(""), stacks[i], false);
        uint32_t stack = node("Module.a.A.forward.0")->stack;
        ck_assert_uint_lt(stack, g.stacks.frames.n);
        ck_assert_uint_eq(node("Module.a.A.backward.0")->stack, stack);
        ck_assert_uint_eq(node("Torch.x.0.backward")->stack, GRAPH_STACK_NO_FORWARD);
        ck_assert_uint_eq(node("optimizer")->stack, GRAPH_STACK_EMPTY);
        ck_assert_uint_eq(node("Module.c.C.forward.0")->stack, GRAPH_STACK_EMPTY);
        graph__close(&g);
        tear_down();
    }
}
END_TEST

START_TEST(the_kind_shows_in_how_a_name_begins)
{
    static const struct {
        const char *name;
        enum graph__kind kind;
    } cases[] = {{"Module.a.A.forward.0", GRAPH_MODULE},
                 {"Cell.a", GRAPH_MODULE},
                 {"optimizer", GRAPH_MODULE},
                 {"clip_grad.0", GRAPH_MODULE},
                 {"Torch.a.0.forward", GRAPH_API},
                 {"MintFunctional.a", GRAPH_API},
                 {"MindSpeed.a.0.forward", GRAPH_API},
                 {"NPU.a", GRAPH_API},
                 {"Torch", GRAPH_MODULE},
                 {"Something", GRAPH_MODULE},
                 {"", GRAPH_MODULE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(graph__kind_of(ms_str_of(cases[i].name)) == cases[i].kind, "%s",
                      cases[i].name);
}
END_TEST

/* ---- out of memory -------------------------------------------------------------- */

START_TEST(no_memory_is_an_error_and_leaks_nothing)
{
    set_up();
    put_rank(
        dir, ".", BLOCKS, DUMP(GRADS("Module.GPT.parameters_grad")),
        RECOMPUTE_STACK("\"File /x/torch/utils/checkpoint.py, line 9, in recompute_fn, \\n f()\""));
    size_t live = ms_mem_live();
    for (uint64_t n = 1;; n++) {
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        enum ms_rc rc = graph__open(&g, dir, &graph_rules_ours, NULL, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        if (rc == MS_OK) { /* what failed was not needed: the record of a phase */
            expect_tree("Module.GPT.forward.0(Module.module.layers.0.Block.forward.0)"
                        " Module.GPT.backward.0(Module.module.layers.0.Block.forward.1"
                        " Module.module.layers.0.Block.backward.1 Module.GPT.parameters_grad)");
            graph__close(&g);
        }
        ms_trace_reset();
        ck_assert_uint_eq(ms_mem_live(), live);
        if (!failed)
            break;
    }
    tear_down();
}
END_TEST

TEST_MAIN("graph_build", construct_becomes_a_tree, a_repair_that_closes_a_cycle_is_opened_again,
          without_a_construct_the_calls_are_listed, a_dump_without_a_record_is_refused_with_a_hint,
          children_come_before_their_parent_in_the_order,
          recomputed_modules_move_below_the_backward_of_their_parent,
          a_stack_without_recomputation_moves_nothing,
          parameter_gradients_hang_below_the_last_backward,
          a_forward_behind_a_backward_begins_a_micro_step, pipeline_runs_say_their_micro_steps,
          a_backward_node_has_the_stack_of_its_forward, the_kind_shows_in_how_a_name_begins,
          no_memory_is_an_error_and_leaks_nothing)
