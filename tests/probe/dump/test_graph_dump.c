/* SPDX-License-Identifier: MIT
 *
 * A dump of a compiled graph is made as MindSpore 2.10 makes it: two cells of one class, of which the
 * compiler names all that has no parameter after the first, their gradients, and an optimizer.
 */
#include "probe/dump/dump.h"
#include "probe/dump/find.h"
#include "probe/dump/graph_dump.h"
#include "probe/dump/kernel_name.h"
#include "probe/dump/tree.h"
#include "probe/tensor/tensor.h"

#include "probe/base/mem.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static struct ms_err err;
static char dir[64];

static void write_text(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    ck_ok(ms_mkdirs(path, &err), err);
    *slash = '/';
    write_file(path, text, strlen(text));
}

static unsigned graph; /* whose kernels' tensors are written */

/* A kernel's tensor: n numbers from `first` on, written at a time. */
static void tensor_at(unsigned time, const char *kernel, const char *side, int slot, float first,
                      unsigned rows, unsigned columns)
{
    char path[512];
    float v[64];
    uint64_t shape[] = {rows, columns};
    for (unsigned i = 0; i < rows * columns; i++)
        v[i] = first + (float)i;
    snprintf(path, sizeof path, "%s/rank_0/Net/%u/4/%s.0.0.%u.%s.%d.DefaultFormat.Float32.npy", dir,
             graph, kernel, time, side, slot);
    ck_ok(probe_npy_write(path, MS_DT_F32, shape, 2, v, &err), err);
}

static void tensor(const char *kernel, const char *side, int slot, float first, unsigned rows,
                   unsigned columns)
{
    tensor_at(17956, kernel, side, slot, first, rows, columns);
}

#define NODE(n, call, attrs, types, full)                                                          \
    "  %" #n "(x) = " call " {instance name: op} cnode_primal_attrs: {" attrs "}\n      : " types  \
    "\n      # Fullname with scope: (" full ")\n"

static void make_dump(void)
{
    scratch_dir(dir);
    write_text("rank_0/execution_order/ms_execution_order_graph_0.csv",
               "NodeExecutionOrder-FullNameWithScope\n"
               "Default/network-WithLossCell/_backbone-Net/a-Part/fc-Dense/MatMul-op0\n"
               "Default/network-WithLossCell/_backbone-Net/a-Part/Tanh-op0\n"
               "Default/network-WithLossCell/_backbone-Net/b-Part/fc-Dense/MatMul-op1\n"
               "Default/network-WithLossCell/_backbone-Net/a-Part/Reshape-op0\n"
               "Gradients/Default/network-WithLossCell/_backbone-Net/a-Part/fc-Dense/Grad_MatMul/"
               "MatMul-op2\n"
               "Default/optimizer-SGD/SGD-op0\n");
    write_text(
        "rank_0/graphs/ms_output_trace_code_graph_0.ir",
        "subgraph @kernel_graph0() {\n"
        "  %0(w) = Load(%para6_a.fc.weight, UMonad[U])\n" NODE(
            1, "PrimFunc_MatMul(%para1_inputs0, %0)", "unique_id: \"7\"",
            "(<Tensor[Float32], (2, 2)>, <Tensor[Float32], (2, 2)>) -> (<Tensor[Float32], (2, 2)>)",
            "Default/network-WithLossCell/_backbone-Net/a-Part/fc-Dense/MatMul-op0")
            NODE(2, "PrimFunc_Tanh(%1)", "unique_id: \"8\"",
                 "(<Tensor[Float32], (2, 2)>) -> (<Tensor[Float32], (2, 2)>)",
                 "Default/network-WithLossCell/_backbone-Net/a-Part/Tanh-op0")
                NODE(3, "PrimFunc_MatMul(%2, %para7_b.fc.weight)", "unique_id: \"9\"",
                     "(<Tensor[Float32], (2, 2)>, <Tensor[Float32], (2, 2)>) -> (<Tensor[Float32], "
                     "(2, 2)>)",
                     "Default/network-WithLossCell/_backbone-Net/b-Part/fc-Dense/MatMul-op1")
                    NODE(4, "PrimFunc_Reshape(%3, (I64(4)))", "unique_id: \"10\"",
                         "(<Tensor[Float32], (2, 2)>, <Tuple[Int64*1], NoShape>) -> "
                         "(<Tensor[Float32], (4)>)",
                         "Default/network-WithLossCell/_backbone-Net/a-Part/Reshape-op0")
                        NODE(5, "PrimFunc_MatMul(%4, %2)",
                             "forward_node_name: \"MatMul_9\", forward_unique_id: \"9\"",
                             "(<Tensor[Float32], (2, 2)>, <Tensor[Float32], (2, 2)>) -> "
                             "(<Tensor[Float32], (2, 2)>)",
                             "Gradients/Default/network-WithLossCell/_backbone-Net/a-Part/fc-Dense/"
                             "Grad_MatMul/MatMul-op2")
                            NODE(6, "SGD(%para7_b.fc.weight, %5)", "",
                                 "(<Tensor[Float32], (2, 2)>, <Tensor[Float32], (2, 2)>) -> "
                                 "(<Tensor[Float32], (2, 2)>)",
                                 "Default/optimizer-SGD/SGD-op0"));
#define SCOPE "Default_network-WithLossCell__backbone-Net_"
    tensor("MatMul." SCOPE "a-Part_fc-Dense_MatMul-op0", "input", 0, 1, 2, 2);
    tensor("MatMul." SCOPE "a-Part_fc-Dense_MatMul-op0", "input", 1, 10, 2, 2);
    tensor("MatMul." SCOPE "a-Part_fc-Dense_MatMul-op0", "output", 0, 20, 2, 2);
    tensor("Tanh." SCOPE "a-Part_Tanh-op0", "input", 0, 20, 2, 2);
    tensor("Tanh." SCOPE "a-Part_Tanh-op0", "output", 0, 30, 2, 2);
    tensor("MatMul." SCOPE "b-Part_fc-Dense_MatMul-op1", "input", 0, 30, 2, 2);
    tensor("MatMul." SCOPE "b-Part_fc-Dense_MatMul-op1", "input", 1, 40, 2, 2);
    tensor("MatMul." SCOPE "b-Part_fc-Dense_MatMul-op1", "output", 0, 50, 2, 2);
    tensor("Reshape." SCOPE "a-Part_Reshape-op0", "input", 0, 50, 2, 2);
    tensor("Reshape." SCOPE "a-Part_Reshape-op0", "output", 0, 50, 2, 2);
    tensor("MatMul.Gradients_" SCOPE "a-Part_fc-Dense_Grad_MatMul_MatMul-op2", "input", 0, 60, 2,
           2);
    tensor("MatMul.Gradients_" SCOPE "a-Part_fc-Dense_Grad_MatMul_MatMul-op2", "input", 1, 30, 2,
           2);
    tensor("MatMul.Gradients_" SCOPE "a-Part_fc-Dense_Grad_MatMul_MatMul-op2", "output", 0, 70, 2,
           2);
    tensor("SGD.Default_optimizer-SGD_SGD-op0", "input", 0, 40, 2, 2);
    tensor("SGD.Default_optimizer-SGD_SGD-op0", "input", 1, 70, 2, 2);
    tensor("SGD.Default_optimizer-SGD_SGD-op0", "output", 0, 41, 2, 2);
}

static struct probe_places places;
static struct probe_dump *dump;
static struct probe_tree tree;

static void open_made(void)
{
    char path[512];
    probe_graph_dump_register();
    ck_ok(probe_find(&places, dir, &err), err);
    ck_assert_uint_eq(places.list.n, 1);
    ck_ok(probe_dump_open(&dump, places.list.p[0].json, 0, NULL, &err), err);
    snprintf(path, sizeof path, "%s/construct.json", places.list.p[0].dir);
    ck_ok(probe_tree_open(&tree, path, 0, &err), err);
}

static void open_dump(void)
{
    make_dump();
    open_made();
}

static void close_dump(void)
{
    probe_tree_close(&tree);
    probe_dump_close(dump);
    probe_places_free(&places);
    scratch_remove(dir);
}

/* Max of the row of a node with a path, or NaN. */
static double max_of(const char *node, const char *path)
{
    uint32_t at = probe_node_find(dump, ms_str_of(node));
    if (at == MS_MAP_NONE)
        return (double)NAN;
    const struct probe_node *n = &dump->nodes.p[at];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        struct probe_leaf leaf;
        probe_row_leaf(dump, &dump->rows.p[i], &leaf);
        if (ms_str_is(probe_row_path(dump, &dump->rows.p[i]), path))
            return leaf.stat[PROBE_STAT_MAX].v;
    }
    return (double)NAN;
}

/* Tells whether a node's row with a path names a file. */
static bool has_file(const char *node, const char *path)
{
    uint32_t at = probe_node_find(dump, ms_str_of(node));
    ck_assert_msg(at != MS_MAP_NONE, "%s is missing", node);
    const struct probe_node *n = &dump->nodes.p[at];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        struct probe_leaf leaf;
        probe_row_leaf(dump, &dump->rows.p[i], &leaf);
        if (ms_str_is(probe_row_path(dump, &dump->rows.p[i]), path))
            return leaf.data_name.n != 0;
    }
    return false;
}

static void ck_parent(const char *node, const char *parent)
{
    uint32_t at = probe_tree_find(&tree, ms_str_of(node));
    ck_assert_msg(at != MS_MAP_NONE, "%s is not in construct.json", node);
    uint32_t above = tree.nodes.p[at].parent;
    struct ms_str name = above != MS_MAP_NONE ? probe_tree_name(&tree, above) : MS_STR("-");
    ck_assert_msg(ms_str_is(name, parent), "%s is in %.*s", node, MS_STR_ARG(name));
}

START_TEST(step_and_rank_are_those_of_the_folders)
{
    open_dump();
    ck_assert_int_eq(places.list.p[0].step, 4);
    ck_assert_int_eq(places.list.p[0].rank, 0);
    ck_assert_int_eq(dump->framework, PROBE_FW_MINDSPORE);
    ck_assert_int_eq(dump->mode, PROBE_MODE_TENSOR);
    close_dump();
}
END_TEST

START_TEST(kernels_are_in_the_cells_that_they_run_in)
{
    open_dump();
    ck_parent("Primitive.op.MatMul.0.forward", "Cell.a.fc.Dense.forward.0");
    ck_parent("Primitive.op.Tanh.0.forward", "Cell.a.Part.forward.0");
    ck_parent("Primitive.op.MatMul.1.forward", "Cell.b.fc.Dense.forward.0");
    ck_parent("Primitive.op.Reshape.0.forward", "Cell.b.Part.forward.0"); /* the text says a */
    ck_parent("Primitive.op.MatMul.1.backward", "Cell.b.fc.Dense.backward.0");
    ck_parent("Primitive.op.SGD.0.forward", "optimizer");
    ck_parent("Cell.b.fc.Dense.forward.0", "Cell.b.Part.forward.0");
    ck_parent("Cell.b.Part.forward.0", "-");
    close_dump();
}
END_TEST

START_TEST(what_passes_the_border_of_a_cell_is_its_own)
{
    open_dump();
    ck_assert_double_eq(max_of("Cell.a.Part.forward.0", "input.0"), 4);
    ck_assert_double_eq(max_of("Cell.a.Part.forward.0", "output.0"), 33);
    ck_assert_double_eq(max_of("Cell.b.Part.forward.0", "input.0"), 33);
    ck_assert_double_eq(max_of("Cell.b.fc.Dense.forward.0", "parameters.weight"), 43);
    ck_assert(max_of("Cell.b.fc.Dense.forward.0", "input.1") != 43); /* a parameter does not pass */
    ck_assert_double_eq(max_of("Cell.b.fc.Dense.parameters_grad.0", "weight"), 73);
    close_dump();
}
END_TEST

START_TEST(a_reshape_has_the_shape_that_it_makes)
{
    struct probe_tensor t;
    char path[512];
    open_dump();
    snprintf(path, sizeof path, "%s/dump_tensor_data/Primitive.op.Reshape.0.forward.output.0.npy",
             places.list.p[0].dir);
    ck_ok(probe_tensor_open(&t, path, SIZE_MAX, &err), err);
    ck_assert_uint_eq(t.ndim, 1);
    ck_assert_uint_eq(t.shape[0], 4);
    probe_tensor_close(&t);
    close_dump();
}
END_TEST

/* The kernel of a BatchNorm writes to its running mean and variance, so their files hold what it made of
 * them; a reshape to several axes has each of them. */
START_TEST(what_a_kernel_writes_to_is_no_input_and_each_axis_of_a_reshape_counts)
{
    static const char norm[] = "BatchNorm.Default_n-Part_BatchNorm-op0";
    struct probe_tensor t;
    char path[512];
    scratch_dir(dir);
    write_text("rank_0/execution_order/ms_execution_order_graph_0.csv",
               "NodeExecutionOrder-FullNameWithScope\n"
               "Default/n-Part/BatchNorm-op0\nDefault/n-Part/Reshape-op0\n");
    write_text("rank_0/graphs/ms_output_trace_code_graph_0.ir",
               "subgraph @kernel_graph0() {\n" NODE(
                   1, "BatchNorm(%para1_x, %para2_a, %para3_b, %para4_c, %para5_d)", "",
                   "(<Tensor[Float32], (2, 2)>) -> (<Tensor[Float32], (2, 2)>)",
                   "Default/n-Part/BatchNorm-op0")
                   NODE(2, "PrimFunc_Reshape(%1, (I64(1), I64(4)))", "",
                        "(<Tensor[Float32], (2, 2)>, <Tuple[Int64*2], NoShape>) -> "
                        "(<Tensor[Float32], (1, 4)>)",
                        "Default/n-Part/Reshape-op0"));
    for (int slot = 0; slot < 6; slot++)
        tensor(norm, "input", slot, (float)(10 * slot), 2, 2);
    tensor(norm, "output", 0, 100, 2, 2);
    tensor("Reshape.Default_n-Part_Reshape-op0", "input", 0, 100, 2, 2);
    tensor("Reshape.Default_n-Part_Reshape-op0", "output", 0, 100, 2, 2);
    open_made();
    for (int slot = 0; slot < 6; slot++) {
        const double max = max_of("Primitive.op.BatchNorm.0.forward",
                                  (snprintf(path, sizeof path, "input.%d", slot), path));
        /* a null has no statistics */
        ck_assert_double_eq(max, slot == 3 || slot == 4 ? 0 : 10 * slot + 3);
    }
    snprintf(path, sizeof path, "%s/dump_tensor_data/Primitive.op.Reshape.0.forward.output.0.npy",
             places.list.p[0].dir);
    ck_ok(probe_tensor_open(&t, path, SIZE_MAX, &err), err);
    ck_assert_uint_eq(t.ndim, 2);
    ck_assert_uint_eq(t.shape[0], 1);
    ck_assert_uint_eq(t.shape[1], 4);
    probe_tensor_close(&t);
    close_dump();
}
END_TEST

START_TEST(it_is_read_anew_when_a_file_has_come)
{
    struct stat before, after;
    open_dump();
    const char *json = places.list.p[0].json;
    ck_assert_int_eq(stat(json, &before), 0);
    struct probe_places again;
    ck_ok(probe_find(&again, dir, &err), err);
    probe_places_free(&again);
    ck_assert_int_eq(stat(json, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    tensor("Sub." SCOPE "Sub-op0", "output", 0, 90, 2, 2);
    ck_ok(probe_find(&again, dir, &err), err);
    probe_places_free(&again);
    probe_dump_close(dump);
    ck_ok(probe_dump_open(&dump, json, 0, NULL, &err), err);
    ck_assert_double_eq(
        max_of("Primitive.Default_network-WithLossCell__backbone-Net_Sub.0.forward", "output.0"),
        93);
    close_dump();
}
END_TEST

START_TEST(other_folders_are_none)
{
    scratch_dir(dir);
    write_text("rank_0/Net/readme/x", "");
    ck_assert(!probe__is_graph_dump(dir));
    write_text("rank_0/Net/0/1/x", "");
    ck_assert(probe__is_graph_dump(dir));
    scratch_remove(dir);
}
END_TEST

START_TEST(names_of_files_are_read_from_the_end)
{
    struct probe__kernel_file f;
    ck_assert(probe__kernel_file_parse(
        MS_STR("MatMul.Default_a.b-Part_MatMul-op12.0.0.17956.output.3.DefaultFormat.Float32.npy"),
        &f));
    ck_assert(ms_str_is(f.op, "MatMul") && ms_str_is(f.scope, "Default_a.b-Part_MatMul-op12"));
    ck_assert(!f.is_input && f.slot == 3);
    ck_assert(!probe__kernel_file_parse(MS_STR("statistic.csv"), &f));
    ck_assert(!probe__kernel_file_parse(MS_STR("a.npy"), &f));
    ck_assert(!probe__kernel_file_parse(MS_STR("MatMul.s.0.0.1.sideways.0.D.F.npy"), &f));
}
END_TEST

static const struct {
    const char *full;
    bool has_optimizer;
    enum probe__phase phase;
    const char *cells, *forward, *op;
} scopes[] = {
    {"Default/fc-Dense/MatMul-op0", false, PROBE__PHASE_FORWARD, "fc-Dense", "", "MatMul"},
    {"Default/network-Net/fc-Dense/MatMul-op0", false, PROBE__PHASE_FORWARD, "network-Net/fc-Dense",
     "", "MatMul"},
    {"Default/network-Net/fc-Dense/MatMul-op0", true, PROBE__PHASE_FORWARD, "fc-Dense", "",
     "MatMul"},
    {"Default/network-WithLossCell/_loss_fn-MSELoss/Sub-op3", false, PROBE__PHASE_FORWARD,
     "_loss_fn-MSELoss", "", "Sub"},
    {"Gradients/Default/fc-Dense/Grad_Dense/MatMul-op1", false, PROBE__PHASE_BACKWARD, "fc-Dense",
     "Dense", "MatMul"},
    {"Gradients/Default/Grad_Mul/Mul-op1", false, PROBE__PHASE_BACKWARD, "", "Mul", "Mul"},
    {"Expand/_Dense/MatMul-op0", false, PROBE__PHASE_EXPANDED, "", "", "MatMul"},
    {"Default/optimizer-Adam/Mul-op1", true, PROBE__PHASE_OPTIMIZER, "optimizer-Adam", "", "Mul"},
    {"Default/ApplyMomentum-op0", false, PROBE__PHASE_OPTIMIZER, "", "", "ApplyMomentum"},
    {"MatMul-op0", false, PROBE__PHASE_FORWARD, "", "", "MatMul"},
};

START_TEST(names_say_which_cells_are_around)
{
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        struct probe__kernel_scope s;
        probe__kernel_scope_parse(ms_str_of(scopes[i].full), scopes[i].has_optimizer, &s);
        ck_assert_msg(s.phase == scopes[i].phase && ms_str_is(s.cells, scopes[i].cells) &&
                          ms_str_is(s.forward, scopes[i].forward) && ms_str_is(s.op, scopes[i].op),
                      "%s: %d '%.*s' '%.*s' '%.*s'", scopes[i].full, (int)s.phase,
                      MS_STR_ARG(s.cells), MS_STR_ARG(s.forward), MS_STR_ARG(s.op));
    }
}
END_TEST

/* Two cells of one class, run side by side by the compiler:
 *
 *     10  def construct(self, x):                    20  def construct(self, x):
 *     11      x = self.a(x)                          21      return self.out(half(self.fc(x)))
 *     12      return self.b(self.norm(x)) * 2 * 3
 *
 * The cast in b has the name and source lines of another place, and the numbers of the products are
 * others in files than in the csv. */
#define LINE(place, text) "      # In file net.py:" place "/" text "/\n"
#define NET               LINE("10~12, 4~8", "    def construct(self, x):")
#define PART              LINE("20~21, 4~8", "    def construct(self, x):")
#define IN_A              NET LINE("11, 12~18", "        x = self.a(x)") PART
#define IN_B              NET LINE("12, 15~21", "        return self.b(self.norm(x)) * 2 * 3") PART
#define FC                LINE("21, 29~36", "        return self.out(half(self.fc(x)))")
#define HALF              LINE("21, 24~28", "        return self.out(half(self.fc(x)))")
#define OUT               LINE("21, 15~23", "        return self.out(half(self.fc(x)))")
#define NORM              NET LINE("12, 22~31", "        return self.b(self.norm(x)) * 2 * 3")
#define TYPES                                                                                      \
    "(<Tensor[Float32], (2, 2)>, <Tensor[Float32], (2, 2)>) -> (<Tensor[Float32], (2, 2)>)"

static void one_kernel(const char *kernel, float in, float out)
{
    tensor(kernel, "input", 0, in, 2, 2);
    tensor(kernel, "output", 0, out, 2, 2);
}

/* early: when the files of the first product are written; those of the second are at 30. */
static void make_side_by_side(unsigned early)
{
    scratch_dir(dir);
    write_text("rank_0/execution_order/ms_execution_order_graph_0.csv",
               "NodeExecutionOrder-FullNameWithScope\n"
               "Default/a-Part/fc-Dense/MatMul-op0\nDefault/a-Part/Cast-op0\n"
               "Default/a-Part/out-Dense/MatMul-op0\nDefault/norm-Norm/Scale-op0\n"
               "Default/b-Part/fc-Dense/MatMul-op0\nDefault/norm-Norm/Cast-op1\n"
               "Default/b-Part/out-Dense/MatMul-op0\n"
               "Expand/_Muls/Mul-op0\nExpand/_Muls/Mul-op1\n");
    write_text(
        "rank_0/graphs/ms_output_trace_code_graph_0.ir",
        "subgraph @kernel_graph0() {\n" NODE(1, "MatMul(%0, %para1_a.fc.weight)", "", TYPES,
                                             "Default/a-Part/fc-Dense/MatMul-op0")
            IN_A FC NODE(2, "Cast(%1)", "", TYPES, "Default/a-Part/Cast-op0") IN_A HALF NODE(
                3, "MatMul(%2, %para2_a.out.weight)", "", TYPES,
                "Default/a-Part/out-Dense/MatMul-op0") IN_A OUT NODE(4,
                                                                     "Scale(%3, %para3_norm.gamma)",
                                                                     "", TYPES,
                                                                     "Default/norm-Norm/Scale-op0")
                NORM NODE(5, "MatMul(%4, %para4_b.fc.weight)", "", TYPES,
                          "Default/b-Part/fc-Dense/MatMul-op0")
                    IN_B FC NODE(6, "Cast(%5)", "", TYPES, "Default/norm-Norm/Cast-op1")
                        NORM NODE(7, "MatMul(%6, %para5_b.out.weight)", "", TYPES,
                                  "Default/b-Part/out-Dense/MatMul-op0")
                            IN_B OUT NODE(8, "Mul(%7, 2)", "", TYPES, "Expand/_Muls/Mul-op0")
                                NET LINE("12, 15~39", "        return self.b(self.norm(x)) * 2 * 3")
                                    NODE(9, "Mul(%8, 3)", "", TYPES, "Expand/_Muls/Mul-op1")
                                        NET LINE("12, 15~43",
                                                 "        return self.b(self.norm(x)) * 2 * 3"));
    one_kernel("MatMul.Default_a-Part_fc-Dense_MatMul-op0", 1, 10);
    tensor("MatMul.Default_a-Part_fc-Dense_MatMul-op0", "input", 1, 100, 2, 2);
    one_kernel("Cast.Default_a-Part_Cast-op0", 10, 20);
    one_kernel("MatMul.Default_a-Part_out-Dense_MatMul-op0", 20, 30);
    tensor("MatMul.Default_a-Part_out-Dense_MatMul-op0", "input", 1, 110, 2, 2);
    one_kernel("Scale.Default_norm-Norm_Scale-op0", 30, 40);
    tensor("Scale.Default_norm-Norm_Scale-op0", "input", 1, 120, 2, 2);
    one_kernel("MatMul.Default_b-Part_fc-Dense_MatMul-op0", 40, 50);
    tensor("MatMul.Default_b-Part_fc-Dense_MatMul-op0", "input", 1, 130, 2, 2);
    one_kernel("Cast.Default_norm-Norm_Cast-op1", 50, 60);
    one_kernel("MatMul.Default_b-Part_out-Dense_MatMul-op0", 60, 70);
    tensor("MatMul.Default_b-Part_out-Dense_MatMul-op0", "input", 1, 140, 2, 2);
    tensor_at(early, "Mul.Expand__Muls_Mul-op1", "input", 0, 70, 2, 2);
    tensor_at(early, "Mul.Expand__Muls_Mul-op1", "output", 0, 80, 2, 2);
    tensor_at(30, "Mul.Expand__Muls_Mul-op0", "input", 0, 80, 2, 2);
    tensor_at(30, "Mul.Expand__Muls_Mul-op0", "output", 0, 90, 2, 2);
}

START_TEST(an_operator_is_in_the_cell_that_its_values_stay_in)
{
    make_side_by_side(20);
    open_made();
    ck_parent("Primitive.op.Cast.0.forward", "Cell.a.Part.forward.0");
    ck_parent("Primitive.op.Cast.1.forward", "Cell.b.Part.forward.0"); /* the name says norm */
    ck_parent("Primitive.op.Mul.0.forward", "-"); /* the source line is of no cell */
    close_dump();
}
END_TEST

static void ck_products(unsigned early)
{
    make_side_by_side(early);
    open_made();
    ck_assert_double_eq(max_of("Primitive.op.Mul.0.forward", "input.0"), 73);
    ck_assert_double_eq(max_of("Primitive.op.Mul.1.forward", "input.0"), 83);
    close_dump();
}

START_TEST(expanded_kernels_are_numbered_by_time)
{
    ck_products(20);
}
END_TEST

/* Threads of the framework may write the files of a kernel after those of its reader. */
START_TEST(expanded_kernels_have_the_values_that_their_makers_wrote)
{
    ck_products(40);
}
END_TEST

/* The cast of the result has the name and lines of the cast in a, as the function is the same, and runs
 * before the second cell does. */
START_TEST(a_shared_function_runs_where_its_value_is_read)
{
    scratch_dir(dir);
    write_text("rank_0/execution_order/ms_execution_order_graph_0.csv",
               "NodeExecutionOrder-FullNameWithScope\n"
               "Default/a-Part/fc-Dense/MatMul-op0\nDefault/a-Part/Cast-op1\n"
               "Default/a-Part/Cast-op0\nDefault/a-Part/out-Dense/MatMul-op0\n"
               "Default/b-Part/fc-Dense/MatMul-op0\nDefault/Mul-op0\n");
    write_text("rank_0/graphs/ms_output_trace_code_graph_0.ir",
               "subgraph @kernel_graph0() {\n" NODE(1, "MatMul(%0, %para1_a.fc.weight)", "", TYPES,
                                                    "Default/a-Part/fc-Dense/MatMul-op0")
                   IN_A FC NODE(2, "Cast(%1)", "", TYPES, "Default/a-Part/Cast-op0")
                       IN_A HALF NODE(3, "MatMul(%2, %para2_a.out.weight)", "", TYPES,
                                      "Default/a-Part/out-Dense/MatMul-op0")
                           IN_A OUT NODE(4, "MatMul(%3, %para3_b.fc.weight)", "", TYPES,
                                         "Default/b-Part/fc-Dense/MatMul-op0")
                               IN_B FC NODE(5, "Cast(%1)", "", TYPES, "Default/a-Part/Cast-op1")
                                   IN_A HALF NODE(6, "Mul(%4, %5)", "", TYPES, "Default/Mul-op0")
                                       NET LINE("12, 15~39",
                                                "        return self.b(self.norm(x)) * 2 * 3"));
    one_kernel("MatMul.Default_a-Part_fc-Dense_MatMul-op0", 1, 10);
    tensor("MatMul.Default_a-Part_fc-Dense_MatMul-op0", "input", 1, 100, 2, 2);
    one_kernel("Cast.Default_a-Part_Cast-op0", 10, 20);
    one_kernel("Cast.Default_a-Part_Cast-op1", 10, 25);
    one_kernel("MatMul.Default_a-Part_out-Dense_MatMul-op0", 20, 30);
    tensor("MatMul.Default_a-Part_out-Dense_MatMul-op0", "input", 1, 110, 2, 2);
    one_kernel("MatMul.Default_b-Part_fc-Dense_MatMul-op0", 30, 40);
    tensor("MatMul.Default_b-Part_fc-Dense_MatMul-op0", "input", 1, 120, 2, 2);
    one_kernel("Mul.Default_Mul-op0", 40, 50);
    tensor("Mul.Default_Mul-op0", "input", 1, 25, 2, 2);
    open_made();
    ck_assert_double_eq(max_of("Primitive.op.Cast.1.forward", "output.0"), 28);
    ck_assert_uint_lt(probe_node_find(dump, MS_STR("Primitive.op.MatMul.2.forward")),
                      probe_node_find(dump, MS_STR("Primitive.op.Cast.1.forward")));
    ck_parent("Primitive.op.Cast.0.forward", "Cell.a.Part.forward.0");
    ck_parent("Primitive.op.Cast.1.forward", "-");
    close_dump();
}
END_TEST

/* The csv has the kernels of the second cell before those of the first one. */
START_TEST(forward_kernels_are_in_the_order_of_the_program)
{
    static const char *const names[] = {
        "Primitive.op.MatMul.0.forward", "Primitive.op.Cast.0.forward",
        "Primitive.op.MatMul.1.forward", "Primitive.op.Cast.1.forward"};
    scratch_dir(dir);
    write_text("rank_0/execution_order/ms_execution_order_graph_0.csv",
               "NodeExecutionOrder-FullNameWithScope\n"
               "Default/b-Part/fc-Dense/MatMul-op0\nDefault/a-Part/fc-Dense/MatMul-op0\n"
               "Default/a-Part/Cast-op1\nDefault/a-Part/Cast-op0\n");
    write_text("rank_0/graphs/ms_output_trace_code_graph_0.ir",
               "subgraph @kernel_graph0() {\n" NODE(1, "MatMul(%0, %para1_b.fc.weight)", "", TYPES,
                                                    "Default/b-Part/fc-Dense/MatMul-op0")
                   IN_B FC NODE(2, "MatMul(%0, %para2_a.fc.weight)", "", TYPES,
                                "Default/a-Part/fc-Dense/MatMul-op0")
                       IN_A FC NODE(3, "Cast(%1)", "", TYPES, "Default/a-Part/Cast-op1")
                           IN_A HALF NODE(4, "Cast(%2)", "", TYPES, "Default/a-Part/Cast-op0")
                               IN_A HALF);
    one_kernel("MatMul.Default_a-Part_fc-Dense_MatMul-op0", 1, 10);
    tensor("MatMul.Default_a-Part_fc-Dense_MatMul-op0", "input", 1, 100, 2, 2);
    one_kernel("MatMul.Default_b-Part_fc-Dense_MatMul-op0", 1, 40);
    tensor("MatMul.Default_b-Part_fc-Dense_MatMul-op0", "input", 1, 120, 2, 2);
    one_kernel("Cast.Default_a-Part_Cast-op0", 10, 20);
    one_kernel("Cast.Default_a-Part_Cast-op1", 40, 50);
    open_made();
    ck_assert_double_eq(max_of("Primitive.op.MatMul.0.forward", "output.0"), 13);
    ck_assert_double_eq(max_of("Primitive.op.Cast.1.forward", "output.0"), 53);
    for (unsigned i = 1; i < 4; i++)
        ck_assert_uint_lt(probe_node_find(dump, ms_str_of(names[i - 1])),
                          probe_node_find(dump, ms_str_of(names[i])));
    close_dump();
}
END_TEST

/* Kernels of an optimizer that need no gradient, such as one that multiplies its rate, run at any time. */
START_TEST(kernels_of_the_optimizer_come_after_all_gradients)
{
    scratch_dir(dir);
    write_text("rank_0/execution_order/ms_execution_order_graph_0.csv",
               "NodeExecutionOrder-FullNameWithScope\n"
               "Default/optimizer-SGD/Mul-op1\nDefault/fc-Dense/MatMul-op0\n"
               "Gradients/Default/fc-Dense/Grad_MatMul/MatMul-op2\n");
    one_kernel("Mul.Default_optimizer-SGD_Mul-op1", 200, 300);
    one_kernel("MatMul.Default_fc-Dense_MatMul-op0", 1, 10);
    one_kernel("MatMul.Gradients_Default_fc-Dense_Grad_MatMul_MatMul-op2", 20, 30);
    open_made();
    uint32_t gradient = probe_node_find(dump, MS_STR("Primitive.MatMul.1.backward"));
    uint32_t update = probe_node_find(dump, MS_STR("Primitive.Mul.0.forward"));
    ck_assert_uint_ne(gradient, MS_MAP_NONE);
    ck_assert_uint_ne(update, MS_MAP_NONE);
    ck_assert_uint_lt(gradient, update);
    close_dump();
}
END_TEST

/* A program that calls its optimizer with gradients has a graph of the update alone, in which no cell has a name. What
 * the update reads is a gradient, though its maker's name does not say so. */
START_TEST(a_graph_of_updates_alone_is_the_optimizer)
{
    scratch_dir(dir);
    write_text("rank_0/execution_order/ms_execution_order_graph_0.csv",
               "NodeExecutionOrder-FullNameWithScope\nDefault/fc-Dense/MatMul-op0\n"
               "Gradients/Default/fc-Dense/Grad_MatMul/MatMul-op1\nExpand/_SumExt/ReduceSum-op0\n");
    write_text("rank_0/execution_order/ms_execution_order_graph_1.csv",
               "NodeExecutionOrder-FullNameWithScope\nDefault/Mul-op0\nDefault/SGD-op0\n");
    one_kernel("MatMul.Default_fc-Dense_MatMul-op0", 1, 10);
    one_kernel("MatMul.Gradients_Default_fc-Dense_Grad_MatMul_MatMul-op1", 20, 30);
    one_kernel("ReduceSum.Expand__SumExt_ReduceSum-op0", 30, 60);
    graph = 1;
    one_kernel("Mul.Default_Mul-op0", 60, 80);
    one_kernel("SGD.Default_SGD-op0", 80, 90);
    graph = 0;
    open_made();
    ck_assert_uint_eq(probe_node_find(dump, MS_STR("Primitive.ReduceSum.0.forward")), MS_MAP_NONE);
    ck_assert_uint_lt(probe_node_find(dump, MS_STR("Primitive.MatMul.1.backward")),
                      probe_node_find(dump, MS_STR("Primitive.Mul.0.forward")));
    ck_assert_uint_ne(probe_node_find(dump, MS_STR("Primitive.Mul.0.forward")), MS_MAP_NONE);
    close_dump();
}
END_TEST

#define LAYER(update)                                                                              \
    "subgraph @kernel_graph0() {\n" NODE(                                                          \
        1, "MatMul(%para1_x, %para2_fc.weight)", "", TYPES,                                        \
        "Default/fc-Dense/MatMul-op0") NODE(2, "MatMul(%1, %para1_x)", "", TYPES,                  \
                                            "Gradients/Default/fc-Dense/Grad_MatMul/MatMul-op1")   \
        NODE(3, "SGD(%para2_fc.weight, " update ")", "", TYPES, "Default/optimizer-SGD/SGD-op0")

/* A layer whose gradient is 70 to 73, and an update that reads these numbers from where the text says. */
static bool has_gradient(const char *text)
{
    scratch_dir(dir);
    write_text(
        "rank_0/execution_order/ms_execution_order_graph_0.csv",
        "NodeExecutionOrder-FullNameWithScope\nDefault/fc-Dense/MatMul-op0\n"
        "Gradients/Default/fc-Dense/Grad_MatMul/MatMul-op1\nDefault/optimizer-SGD/SGD-op0\n");
    write_text("rank_0/graphs/ms_output_trace_code_graph_0.ir", text);
    one_kernel("MatMul.Default_fc-Dense_MatMul-op0", 1, 50);
    tensor("MatMul.Default_fc-Dense_MatMul-op0", "input", 1, 40, 2, 2);
    one_kernel("MatMul.Gradients_Default_fc-Dense_Grad_MatMul_MatMul-op1", 50, 70);
    one_kernel("SGD.Default_optimizer-SGD_SGD-op0", 40, 41);
    tensor("SGD.Default_optimizer-SGD_SGD-op0", "input", 1, 70, 2, 2);
    open_made();
    bool has = probe_node_find(dump, MS_STR("Cell.fc.Dense.parameters_grad.0")) != MS_MAP_NONE;
    close_dump();
    return has;
}

/* What an optimizer keeps may equal some gradient, as when both are zero. */
START_TEST(a_state_of_the_optimizer_is_no_gradient)
{
    ck_assert(has_gradient(LAYER("%2")));
    ck_assert(!has_gradient(LAYER("%para3_stat.fc.weight")));
}
END_TEST

/* ---- values ------------------------------------------------------------------- */

/* The gradient of a square takes Pow(x, 1), which makes the bytes of x again. The kernel that reads it is a gradient's,
 * so it is no operator of the forward pass. */
START_TEST(a_kernel_that_repeats_its_input_makes_another_value)
{
    scratch_dir(dir);
    write_text("rank_0/execution_order/ms_execution_order_graph_0.csv",
               "NodeExecutionOrder-FullNameWithScope\nDefault/fc-Dense/MatMul-op0\n"
               "Expand/_PowTensorScalar/Pow-op0\nDefault/Square-op0\nDefault/ReduceMean-op0\n"
               "Gradients/Default/Grad_Square/Mul-op0\n");
    write_text("rank_0/graphs/ms_output_trace_code_graph_0.ir",
               "subgraph @kernel_graph0() {\n" NODE(1, "MatMul(%para1_x, %para2_fc.weight)",
                                                    "unique_id: \"1\"", TYPES,
                                                    "Default/fc-Dense/MatMul-op0")
                   NODE(2, "Pow(%1)", "", TYPES, "Expand/_PowTensorScalar/Pow-op0")
                       NODE(3, "Square(%1)", "unique_id: \"3\"", TYPES, "Default/Square-op0")
                           NODE(4, "ReduceMean(%3)", "", TYPES, "Default/ReduceMean-op0")
                               NODE(5, "Mul(%2, %4)", "forward_unique_id: \"3\"", TYPES,
                                    "Gradients/Default/Grad_Square/Mul-op0"));
    one_kernel("MatMul.Default_fc-Dense_MatMul-op0", 1, 10);
    tensor("MatMul.Default_fc-Dense_MatMul-op0", "input", 1, 40, 2, 2);
    one_kernel("Pow.Expand__PowTensorScalar_Pow-op0", 10, 10);
    one_kernel("Square.Default_Square-op0", 10, 20);
    one_kernel("ReduceMean.Default_ReduceMean-op0", 20, 30);
    one_kernel("Mul.Gradients_Default_Grad_Square_Mul-op0", 10, 50);
    open_made();
    ck_assert_uint_eq(probe_node_find(dump, MS_STR("Primitive.op.Pow.0.forward")), MS_MAP_NONE);
    ck_assert_uint_ne(probe_node_find(dump, MS_STR("Primitive.op.Square.0.forward")), MS_MAP_NONE);
    close_dump();
}
END_TEST

/* A view's file, and that of an input which is a view, has the memory of what it views: those of a transposed tensor
 * the elements in the old order, those of a part other elements. */
START_TEST(the_files_of_views_do_not_hold_them)
{
    scratch_dir(dir);
    write_text("rank_0/execution_order/ms_execution_order_graph_0.csv",
               "NodeExecutionOrder-FullNameWithScope\nDefault/Tanh-op0\nDefault/TransposeView-op0\n"
               "Default/Exp-op0\nDefault/Sin-op0\nDefault/Cos-op0\n");
    write_text(
        "rank_0/graphs/ms_output_trace_code_graph_0.ir",
        "subgraph @kernel_graph0() {\n" NODE(1, "Tanh(%para1_x)", "", TYPES, "Default/Tanh-op0")
            NODE(2, "TransposeView(%1)", "", TYPES, "Default/TransposeView-op0")
                NODE(3, "Exp(%2)", "", TYPES, "Default/Exp-op0")
                    NODE(4, "ChunkView(%2)", "", TYPES, "Default/ChunkView-op0")
                        NODE(5, "TupleGetItem(%4, I64(0))", "", TYPES, "Default/TupleGetItem-op0")
                            NODE(6, "Sin(%5)", "", TYPES, "Default/Sin-op0")
                                NODE(7, "Cos(%6)", "", TYPES, "Default/Cos-op0"));
    one_kernel("Tanh.Default_Tanh-op0", 1, 10);
    one_kernel("TransposeView.Default_TransposeView-op0", 10, 10);
    one_kernel("Exp.Default_Exp-op0", 10, 30);
    one_kernel("Sin.Default_Sin-op0", 10, 50);
    one_kernel("Cos.Default_Cos-op0", 50, 60);
    open_made();
    ck_assert(has_file("Primitive.op.Tanh.0.forward", "output.0"));
    ck_assert_double_eq(max_of("Primitive.op.TransposeView.0.forward", "output.0"), 13);
    ck_assert(!has_file("Primitive.op.TransposeView.0.forward", "output.0"));
    ck_assert(!has_file("Primitive.op.Exp.0.forward", "input.0"));
    ck_assert(has_file("Primitive.op.Exp.0.forward", "output.0"));
    ck_assert_double_eq(max_of("Primitive.op.Sin.0.forward", "input.0"), 0); /* null */
    ck_assert(!has_file("Primitive.op.Sin.0.forward", "input.0"));
    ck_assert_double_eq(max_of("Primitive.op.Sin.0.forward", "output.0"), 53);
    ck_assert(has_file("Primitive.op.Cos.0.forward", "input.0"));
    close_dump();
}
END_TEST

/* ---- what was converted --------------------------------------------------- */

START_TEST(another_version_of_the_conversion_is_not_read)
{
    make_dump();
    write_text(".msprobe_graphs1/step4/rank0/dump.json", "{\"task\": \"tensor\", \"data\": {}}");
    open_made();
    ck_assert_ptr_null(strstr(places.list.p[0].json, "graphs1"));
    ck_assert_double_eq(max_of("Primitive.op.Tanh.0.forward", "output.0"), 33);
    close_dump();
}
END_TEST

/* A kernel's name that is one byte longer than a text may be. */
START_TEST(a_name_in_the_order_that_is_too_long_is_refused_with_its_file)
{
    enum { LONGEST = 65536 };
    static char order[LONGEST + 16] = "title\n";
    const char *file = "execution_order/ms_execution_order_graph_0.csv";
    make_dump();
    probe_graph_dump_register();
    memset(order + 6, 'k', LONGEST + 1);
    write_text("rank_0/execution_order/ms_execution_order_graph_0.csv", order);
    ck_assert_int_eq(probe_find(&places, dir, &err), MS_E_LIMIT);
    ck_says(err, file);
    ck_says(err, "text longer than 65536 bytes");
    ms_err_clear(&err);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_converted_dump_says_that_it_is_of_a_graph)
{
    open_dump();
    ck_assert(dump->is_graph);
    ck_assert_uint_ne(probe_tree_find(&tree, MS_STR("optimizer")), MS_MAP_NONE);
    close_dump();
}
END_TEST

/* The folder of the dump has dots in it, as those of runs with a version or a date have. */
START_TEST(a_path_may_have_dots)
{
    char moved[64];
    make_dump();
    snprintf(moved, sizeof moved, "%.50s.v1.2", dir);
    ck_assert_int_eq(rename(dir, moved), 0);
    snprintf(dir, sizeof dir, "%s", moved);
    open_made();
    ck_assert_double_eq(max_of("Primitive.op.MatMul.1.forward", "output.0"), 53);
    close_dump();
}
END_TEST

static void *convert(void *path)
{
    static struct ms_err failure;
    char *root = NULL;
    bool fine = probe__graph_dump_convert(path, &root, &failure) == MS_OK;
    ms_free(root);
    return fine ? path : NULL;
}

/* Waits until a thread waits for the lock of an open file, which /proc/locks shows behind an arrow. */
static void wait_for_waiter(int fd, const char *json)
{
    struct stat st;
    char line[256], inode[32];
    bool waits = false;
    ck_assert_int_eq(fstat(fd, &st), 0);
    snprintf(inode, sizeof inode, ":%llu ", (unsigned long long)st.st_ino);
    while (!waits && access(json, F_OK) != 0) { /* ends, too, when nothing waited */
        FILE *f = fopen("/proc/locks", "r");
        ck_assert_ptr_nonnull(f);
        while (!waits && fgets(line, sizeof line, f) != NULL)
            waits = strstr(line, "->") != NULL && strstr(line, inode) != NULL;
        fclose(f);
        usleep(1000);
    }
}

START_TEST(a_conversion_waits_for_another_process)
{
    char lock[512], json[512], *root = NULL;
    pthread_t thread;
    void *converted = NULL;
    open_dump();
    snprintf(json, sizeof json, "%s", places.list.p[0].json);
    ck_ok(probe__graph_dump_convert(dir, &root, &err), err);
    snprintf(lock, sizeof lock, "%s/lock", root);
    ck_assert_int_eq(unlink(json), 0);
    int fd = open(lock, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, convert, dir), 0);
    wait_for_waiter(fd, json);
    ck_assert_int_ne(access(json, F_OK), 0);
    close(fd);
    ck_assert_int_eq(pthread_join(thread, &converted), 0);
    ck_assert_ptr_nonnull(converted);
    ck_assert_int_eq(access(json, F_OK), 0);
    ms_free(root);
    close_dump();
}
END_TEST

TEST_MAIN("graph_dump", a_kernel_that_repeats_its_input_makes_another_value,
          the_files_of_views_do_not_hold_them, another_version_of_the_conversion_is_not_read,
          a_name_in_the_order_that_is_too_long_is_refused_with_its_file,
          a_converted_dump_says_that_it_is_of_a_graph, a_path_may_have_dots,
          a_conversion_waits_for_another_process,
          an_operator_is_in_the_cell_that_its_values_stay_in, expanded_kernels_are_numbered_by_time,
          expanded_kernels_have_the_values_that_their_makers_wrote,
          a_shared_function_runs_where_its_value_is_read,
          forward_kernels_are_in_the_order_of_the_program,
          kernels_of_the_optimizer_come_after_all_gradients,
          a_graph_of_updates_alone_is_the_optimizer, a_state_of_the_optimizer_is_no_gradient,
          step_and_rank_are_those_of_the_folders, kernels_are_in_the_cells_that_they_run_in,
          what_passes_the_border_of_a_cell_is_its_own, a_reshape_has_the_shape_that_it_makes,
          what_a_kernel_writes_to_is_no_input_and_each_axis_of_a_reshape_counts,
          it_is_read_anew_when_a_file_has_come, other_folders_are_none,
          names_of_files_are_read_from_the_end, names_say_which_cells_are_around)
