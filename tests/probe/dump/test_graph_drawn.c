/* SPDX-License-Identifier: MIT
 *
 * graph_drawn: drawn dumps of compiled graphs as MindSpore makes them, converted: the files that come
 * out are those on record. The model has nested cells, of which several are of one class; kernels
 * take parameters, values of other kernels or numbers, stand in the order of the program or not, have
 * names and source lines of their own or of another place; there are gradients, sums of them, kernels
 * that were made from one operator, and an optimizer.
 */
#include "probe/dump/find.h"
#include "probe/dump/graph_dump.h"
#include "probe/tensor/tensor.h"

#include "probe/base/mem.h"

#include "tests/support/closes.h"
#include "tests/support/recorded.h"

enum { GRAPHS = 96, SMALL = 24, KERNELS_MAX = 40, CELLS = 10 };

struct cell {
    const char *path, *attribute; /* "a-Part/fc-Dense", "a.fc" */
    const char *lines;            /* calls that lead into it */
};

#define LINE(place, text) "      # In file net.py:" place "/" text "/\n"
#define NET               LINE("10~16, 4~8", "    def construct(self, x):")
#define PART              LINE("20~25, 4~8", "    def construct(self, x):")
#define IN_A              NET LINE("11, 12~18", "        x = self.a(x)") PART
#define IN_B              NET LINE("12, 15~21", "        return self.b(self.norm(x)) * 2") PART
#define IN_NORM           NET LINE("12, 22~31", "        return self.b(self.norm(x)) * 2")
#define FC                LINE("21, 29~36", "        return self.out(half(self.fc(x)))")
#define OUT               LINE("21, 15~23", "        return self.out(half(self.fc(x)))")

static const struct cell cells[CELLS] = {
    {"", "", NET},
    {"a-Part", "a", IN_A},
    {"a-Part/fc-Dense", "a.fc", IN_A FC PART},
    {"a-Part/out-Dense", "a.out", IN_A OUT PART},
    {"b-Part", "b", IN_B},
    {"b-Part/fc-Dense", "b.fc", IN_B FC PART},
    {"b-Part/out-Dense", "b.out", IN_B OUT PART},
    {"norm-Norm", "norm", IN_NORM PART},
    {"0-Part", "0", NET},
    {"a-PartBig", "a", IN_A}, /* begins as another one does */
};

struct kernel {
    char full[160], argument[2][48];
    unsigned inputs, in[2], out, cell, source,
        forward; /* forward: 1 + the kernel it is the gradient of */
    bool has_text, is_saved, reshapes;
};

struct model {
    uint64_t state;
    struct kernel k[KERNELS_MAX];
    unsigned n, values, numbers[8];
    const char *scope; /* of all cells */
    bool is_shuffled;
};

static char dir[64];
static struct ms_err err;
static const char *const ops[] = {"MatMul",  "Tanh", "Cast", "Mul",
                                  "Reshape", "AddN", "Load", "Sum"};

#define one_in(m, n) (recorded_below(&(m)->state, (n)) == 0)

/* ---- kernels ---------------------------------------------------------------------- */

/* Value 0 comes from outside; parameter p of cell c is value 1000 + 10 c + p. */
static void take_inputs(struct model *m, struct kernel *k)
{
    k->inputs = one_in(m, 12) ? 0 : 1 + recorded_below(&m->state, 2);
    for (unsigned i = 0; i < k->inputs; i++) {
        const unsigned maker = m->n != 0 ? recorded_below(&m->state, m->n) : 0;
        if (m->n == 0 || one_in(m, 9)) {
            snprintf(k->argument[i], sizeof k->argument[i], "%%para1_inputs0");
            k->in[i] = 0;
        } else if (i == 1 && one_in(m, 2)) {
            const unsigned p = recorded_below(&m->state, 2);
            snprintf(k->argument[i], sizeof k->argument[i], "%%para%u_%s%s%s", 10 * k->cell + p,
                     cells[k->cell].attribute, k->cell != 0 ? "." : "", p != 0 ? "bias" : "weight");
            k->in[i] = 1000 + 10 * k->cell + p;
        } else if (i == 1 && one_in(m, 6)) {
            snprintf(k->argument[i], sizeof k->argument[i], "Float32(2)");
            k->in[i] = 2000;
        } else {
            const unsigned from = one_in(m, 2) ? m->n - 1 : maker;
            snprintf(k->argument[i], sizeof k->argument[i], "%%%u", from + 1);
            k->in[i] = m->k[from].out;
        }
    }
}

static void name_kernel(struct model *m, struct kernel *k, const char *before, unsigned op,
                        const char *behind)
{
    /* The name may be that of another cell of the class, as the compiler shares code. */
    const unsigned named = one_in(m, 5) && k->cell >= 4 && k->cell <= 6 ? k->cell - 3 : k->cell;
    if (before[0] == '\0' && one_in(m, 6))
        snprintf(k->full, sizeof k->full, "Expand/_%ss/%s-op%u", ops[op], ops[op],
                 m->numbers[op]++);
    else
        snprintf(k->full, sizeof k->full, "%sDefault/%s%s%s%s%s-op%u", before, m->scope,
                 cells[named].path, named != 0 ? "/" : "", behind, ops[op], m->numbers[op]++);
}

static void draw_forward(struct model *m)
{
    struct kernel *k = &m->k[m->n];
    const unsigned op = recorded_below(&m->state, 8);
    *k = (struct kernel){.cell = recorded_below(&m->state, CELLS), .has_text = !one_in(m, 9)};
    k->source = one_in(m, 5) ? recorded_below(&m->state, CELLS) : k->cell;
    k->reshapes = op == 4;
    take_inputs(m, k);
    name_kernel(m, k, "", op, "");
    k->out = op == 4 ? k->in[0] : ++m->values;
    m->n++;
}

static void draw_gradient(struct model *m, unsigned of)
{
    struct kernel *k = &m->k[m->n];
    char grad[32];
    const unsigned op = one_in(m, 4) ? 5 : recorded_below(&m->state, 4);
    *k = (struct kernel){.cell = m->k[of].cell,
                         .forward = 1 + of,
                         .has_text = !one_in(m, 9),
                         .inputs = 2,
                         .is_saved = one_in(m, 9)};
    k->source = k->cell;
    const unsigned from = m->n - 1;
    k->out = one_in(m, 6) ? m->k[from].out : ++m->values; /* some change a value in place */
    snprintf(k->argument[0], sizeof k->argument[0], "%%%u", from + 1);
    k->in[0] = m->k[from].out;
    snprintf(k->argument[1], sizeof k->argument[1], "%%%u", of + 1);
    k->in[1] = one_in(m, 3) ? m->k[of].in[0] : m->k[of].out;
    snprintf(grad, sizeof grad, "Grad_%s/", strrchr(m->k[of].full, '/') + 1);
    *strchr(grad, '-') = '\0';
    strcat(grad, "/");
    name_kernel(m, k, "Gradients/", op, one_in(m, 6) ? "" : grad);
    m->n++;
}

static void draw_optimizer(struct model *m, unsigned gradient)
{
    struct kernel *k = &m->k[m->n];
    const unsigned c = m->k[gradient].cell;
    *k = (struct kernel){.inputs = 2, .has_text = true, .out = ++m->values};
    k->in[0] = 1000 + 10 * c;
    k->in[1] = m->k[gradient].out;
    snprintf(k->argument[0], sizeof k->argument[0], "%%para%u_%s.weight", 10 * c,
             cells[c].attribute);
    snprintf(k->argument[1], sizeof k->argument[1], "%%%u", gradient + 1);
    snprintf(k->full, sizeof k->full, "Default/optimizer-SGD/SGD-op%u", m->numbers[7]++);
    m->n++;
}

static void draw_model(struct model *m, unsigned seed)
{
    *m = (struct model){.state = seed, .is_shuffled = seed % 4 == 3};
    m->scope = seed % 3 == 0   ? ""
               : seed % 3 == 1 ? "network-WithLossCell/_backbone-Net/"
                               : "_backbone-Net/";
    const unsigned forward = seed < GRAPHS ? 2 + recorded_below(&m->state, 14) : 1 + seed % 3;
    for (unsigned i = 0; i < forward; i++)
        draw_forward(m);
    for (unsigned i = forward; i-- > 0 && seed % 5 != 4;) {
        if (!one_in(m, 4))
            draw_gradient(m, i);
    }
    for (unsigned i = forward, last = m->n; i < last && seed % 2 == 0; i++) {
        if (one_in(m, 4))
            draw_optimizer(m, i);
    }
    ck_assert_uint_lt(m->n, KERNELS_MAX);
}

/* ---- files ------------------------------------------------------------------------ */

static void write_at(const char *name, struct ms_buf *b)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    ck_ok(ms_mkdirs(path, &err), err);
    *slash = '/';
    write_file(path, ms_buf_z(b), b->n);
    ms_buf_free(b);
}

static void write_order(struct model *m)
{
    struct ms_buf b = {.max = 1 << 20};
    ms_buf_puts(&b, "NodeExecutionOrder-FullNameWithScope\n");
    for (unsigned i = 0; i < m->n; i++) {
        const unsigned at = m->is_shuffled ? (i * 7 + 3) % m->n : i;
        ms_buf_printf(&b, "%s\n", m->k[m->n % 7 != 0 ? at : i].full);
    }
    write_at("rank_0/execution_order/ms_execution_order_graph_0.csv", &b);
}

static void put_text(struct ms_buf *b, const struct model *m, unsigned i)
{
    const struct kernel *k = &m->k[i];
    const char *name = strrchr(k->full, '/') + 1;
    ms_buf_printf(b, "  %%%u(x) = %.*s(%s%s%s) {instance name: %s} cnode_primal_attrs: {", i + 1,
                  (int)strcspn(name, "-"), name, k->argument[0], k->inputs == 2 ? ", " : "",
                  k->argument[1], i % 3 == 0 ? "op" : "other");
    if (k->forward != 0)
        ms_buf_printf(b, "forward_node_name: \"%.*s_%u\", forward_unique_id: \"%u\"",
                      (int)strcspn(name, "-"), name, k->forward, 100 + k->forward);
    else
        ms_buf_printf(b, "unique_id: \"%u\"", 101 + i);
    ms_buf_puts(b, "}\n      : (");
    for (unsigned n = 0; n < k->inputs; n++)
        ms_buf_printf(b, "%s<Tensor[Float32], (2, 2)>", n != 0 ? ", " : "");
    ms_buf_printf(b, ") -> (<Tensor[Float32], (%s)>)\n", k->reshapes ? "4" : "2, 2");
    ms_buf_printf(b, "      # Fullname with scope: (%s)\n", k->full);
    if (i % 6 == 5)
        return;
    ms_buf_puts(b, cells[k->source].lines);
    ms_buf_printf(b, "      # In file net.py:%u, %u~%u/        y = op(x)(z)/\n", 22 + k->source % 3,
                  8 + i % 4, 10 + i % 4);
}

static void write_graph(const struct model *m)
{
    struct ms_buf b = {.max = 1 << 20};
    ms_buf_puts(&b, "subgraph @kernel_graph0() {\n");
    for (unsigned i = 0; i < m->n; i++) {
        if (m->k[i].has_text)
            put_text(&b, m, i);
    }
    write_at("rank_0/graphs/ms_output_trace_code_graph_0.ir", &b);
}

static void write_tensor(const struct kernel *k, unsigned time, const char *side, unsigned slot,
                         unsigned value)
{
    char path[512], scope[200];
    const float v[4] = {(float)(4 * value), (float)(4 * value + 1), -1, 3};
    static const uint64_t shape[] = {2, 2};
    const char *name = strrchr(k->full, '/') + 1;
    snprintf(scope, sizeof scope, "%s", k->full);
    for (char *c = scope; *c != '\0'; c++)
        *c = *c == '/' ? '_' : *c;
    snprintf(path, sizeof path, "%s/rank_0/Net/0/4/%.*s.%s.0.0.%u.%s.%u.DefaultFormat.Float32.npy",
             dir, (int)strcspn(name, "-"), name, scope, time, side, slot);
    ck_ok(probe_npy_write(path, MS_DT_F32, shape, value == 2000 ? 0 : 2, v, &err), err);
}

static void write_tensors(struct model *m)
{
    for (unsigned i = 0; i < m->n; i++) {
        const struct kernel *k = &m->k[i];
        const unsigned time = 1000 + (one_in(m, 5) ? 300 - i : i);
        for (unsigned n = 0; n < k->inputs; n++)
            write_tensor(k, time, "input", n, k->in[n]);
        if (k->inputs == 0 || !one_in(m, 12))
            write_tensor(k, time, "output", 0, k->out);
    }
}

/* ---- what comes out ----------------------------------------------------------------- */

/* A text file without the name of the scratch directory. */
static uint32_t crc_of(const char *path)
{
    struct ms_file f;
    struct ms_buf b = {.max = 1 << 24};
    ck_ok(ms_file_map(&f, path, SIZE_MAX, &err), err);
    struct ms_str rest = {f.p, (uint32_t)f.n};
    for (int64_t at; (at = ms_str_find_str(rest, ms_str_of(dir))) >= 0;) {
        ms_buf_str(&b, ms_str_sub(rest, 0, (uint32_t)at));
        rest = ms_str_sub(rest, (uint32_t)at + (uint32_t)strlen(dir), rest.n);
    }
    ms_buf_str(&b, rest);
    const uint32_t crc = ms_crc32(0, b.p, b.n);
    if (recorded_shows)
        printf("%.*s\n", (int)b.n, b.p);
    ms_buf_free(&b);
    ms_file_unmap(&f);
    return crc;
}

static void put_files(struct ms_buf *b, const char *folder)
{
    static const char *const name[] = {"dump.json", "construct.json", "stack.json"};
    char path[600];
    struct ms_dir list;
    uint32_t crc = 0;
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        ms_buf_printf(b, " %s %08x", name[i], crc_of(path));
    }
    snprintf(path, sizeof path, "%s/dump_tensor_data", folder);
    ck_ok(ms_dir_list(&list, path, &err), err);
    for (size_t i = 0; i < list.names.n; i++) {
        struct ms_file f;
        snprintf(path, sizeof path, "%s/dump_tensor_data/%s", folder, list.names.p[i].p);
        crc = ms_crc32(crc, list.names.p[i].p, list.names.p[i].n);
        ck_ok(ms_file_map(&f, path, SIZE_MAX, &err), err);
        crc = ms_crc32(crc, f.p, f.n);
        ms_file_unmap(&f);
    }
    ms_buf_printf(b, " %zu tensors %08x", list.names.n, crc);
    ms_dir_free(&list);
}

static void convert_one(struct ms_buf *b, unsigned seed)
{
    static struct model m;
    struct probe_places places;
    scratch_dir(dir);
    draw_model(&m, seed);
    write_order(&m);
    write_graph(&m);
    write_tensors(&m);
    probe_graph_dump_register();
    ck_ok(probe_find(&places, dir, &err), err);
    ms_buf_printf(b, "graph %u: %u kernels", seed, m.n);
    for (size_t i = 0; i < places.list.n; i++)
        put_files(b, places.list.p[i].dir);
    ms_buf_putc(b, '\n');
    probe_places_free(&places);
    scratch_remove(dir);
}

START_TEST(drawn_graphs)
{
    struct ms_buf b = {.max = 1 << 20};
    const size_t live = ms_mem_live();
    for (unsigned seed = 0; seed < GRAPHS + SMALL; seed++)
        convert_one(&b, seed);
    recorded_check(&b, "graphs");
    ck_assert_uint_eq(ms_mem_live(), live);
}
END_TEST

RECORDED_MAIN_AROUND(count_open_files, ck_all_closed, "graph_drawn", drawn_graphs)
