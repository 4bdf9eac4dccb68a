/* SPDX-License-Identifier: MIT
 *
 * dumper_drawn: drawn programs: settings, modules in modules, operators and their backward, gradients,
 * saved values, tensors of every type with and without gaps, in several steps. The files that they
 * leave are those on record. So are those of drawn calls of the writer, in any order.
 */
#include "probe/base/dtype.h"
#include "probe/base/log.h"
#include "tests/support/dumper_fixture.h"
#include "tests/support/recorded.h"

#include <math.h>

enum { PROGRAMS = 100, WRITERS = 60 };

static uint64_t state;

#define below(n) recorded_below(&state, (n))

/* ---- values ------------------------------------------------------------------------ */

static const char *const dtypes[] = {"float32",       "float64",       "float16",   "bfloat16",
                                     "int64",         "int32",         "int16",     "int8",
                                     "uint8",         "bool",          "complex64", "complex128",
                                     "torch.float32", "float8_e4m3fn", "uint16",    "no type"};

/* Some whole numbers, so that no sum is rounded; in float types also NaN and infinity. */
static void draw_numbers(char *p, const char *dtype, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const int v = (int)below(9) - 3;
        const float special[] = {NAN, INFINITY, -INFINITY};
        if (strstr(dtype, "float32") != NULL || strcmp(dtype, "complex64") == 0)
            ((float *)(void *)p)[i] = below(30) == 0 ? special[below(3)] : (float)v / 2;
        else if (strcmp(dtype, "float64") == 0 || strcmp(dtype, "complex128") == 0)
            ((double *)(void *)p)[i] = v;
        else if (strcmp(dtype, "float16") == 0)
            ((uint16_t *)(void *)p)[i] = (uint16_t)(0x3c00 + 0x400 * (v & 3));
        else if (strcmp(dtype, "bfloat16") == 0)
            ((uint16_t *)(void *)p)[i] = (uint16_t)(0x3f80 + 0x80 * (v & 3));
        else if (strcmp(dtype, "int64") == 0)
            ((int64_t *)(void *)p)[i] = v;
        else if (strcmp(dtype, "int32") == 0)
            ((int32_t *)(void *)p)[i] = v;
        else if (strcmp(dtype, "int16") == 0)
            ((int16_t *)(void *)p)[i] = (int16_t)v;
        else
            p[i] = (char)(strcmp(dtype, "bool") == 0 ? v & 1 : v & 0x3f);
    }
}

enum { ELEMENTS = 64, VALUES = 24 };

static struct {
    struct probe_tensor_desc desc;
    uint64_t shape[3], stride[3];
    _Alignas(16) char data[ELEMENTS * 16];
} tensors[VALUES];
static struct probe_value values[VALUES];
static unsigned tensor_count, value_count;

static const struct probe_tensor_desc *draw_tensor(void)
{
    const unsigned at = tensor_count++ % VALUES;
    struct probe_tensor_desc *t = &tensors[at].desc;
    *t = (struct probe_tensor_desc){.data = tensors[at].data,
                                    .dtype = dtypes[below(2) == 0 ? 0 : below(16)],
                                    .shape = tensors[at].shape,
                                    .ndim = below(4),
                                    .requires_grad = below(2) == 0};
    memset(tensors[at].data, 0, sizeof tensors[at].data);
    draw_numbers(tensors[at].data, t->dtype, ELEMENTS);
    for (uint32_t d = 0; d < t->ndim; d++) {
        tensors[at].shape[d] = below(12) == 0 ? 0 : 1 + below(3);
        tensors[at].stride[d] = below(5) + (d == 0 ? 4 : 0);
    }
    if (below(4) == 0)
        t->stride = tensors[at].stride;
    if (below(8) == 0)
        t->offset = 16;
    return t;
}

static struct probe_value draw_value(int depth)
{
    struct probe_value v = {.kind = (enum probe_value_kind)below(depth < 2 ? 8 : 6)};
    if (below(2) == 0)
        v.kind = PROBE_TENSOR;
    switch (v.kind) {
    case PROBE_TENSOR:
        v.tensor = draw_tensor();
        break;
    case PROBE_INT:
        v.i = (int64_t)below(99) - 50;
        break;
    case PROBE_FLOAT:
        v.f = below(5) == 0 ? (double)NAN : below(99) / 4.0;
        break;
    case PROBE_BOOL:
        v.b = below(2) == 0;
        break;
    case PROBE_STR:
        v.s = below(2) == 0 ? "text \"with\" \xc3\xa4 and \\" : "";
        break;
    case PROBE_LIST:
    case PROBE_DICT: {
        static const char *const key[] = {"k", "weight", "a.b"};
        struct probe_value *items = &values[value_count++ % (VALUES / 3) * 3];
        v.n = below(4);
        for (size_t i = 0; i < v.n; i++) {
            const struct probe_value item = draw_value(depth + 1);
            items[i] = item;
            items[i].key = v.kind == PROBE_DICT ? key[i] : NULL;
        }
        v.items = items;
        break;
    }
    default:
        break;
    }
    return v;
}

/* ---- programs ------------------------------------------------------------------------ */

static const char *const names[] = {"linear", "relu", "view", "matmul", "softmax", "batch_norm"};
static const char *const prefixes[] = {"Functional", "Torch", "Tensor", "NPU", "Distributed"};

static void fill_call(struct probe_call *c)
{
    for (uint32_t i = below(3); i > 0; i--) {
        struct probe_value v = draw_value(0);
        v.key = below(4) == 0 ? "mask" : NULL;
        probe_call_input(c, &v);
    }
}

static void finish_call(struct probe_call *c, bool is_module)
{
    for (uint32_t i = below(3); i > 0; i--) {
        const struct probe_value v = draw_value(0);
        probe_call_output(c, &v);
    }
    if (is_module && below(2) == 0) {
        const struct probe_value p = {
            .kind = PROBE_TENSOR, .tensor = draw_tensor(), .key = "weight"};
        probe_call_parameter(c, &p);
    }
    if (below(12) == 0)
        probe_call_drop(c);
    else
        probe_call_exit(c);
}

static void run_calls(struct probe_dumper *d, int depth);

static void run_module(struct probe_dumper *d, int depth)
{
    static const char *const paths[] = {"layers.0.fc", "layers.1.fc", "embed", "layers.0"};
    const unsigned at = below(4);
    struct probe_call *c = below(3) != 0 ? probe_module_enter(d, paths[at], "Linear")
                           : below(4) == 0
                               ? probe_root_enter(d, "optimizer")
                               : probe_module_enter_backward(d, paths[at], "Linear", below(2));
    fill_call(c);
    run_calls(d, depth + 1);
    finish_call(c, true);
}

static void run_operator(struct probe_dumper *d)
{
    const char *prefix = prefixes[below(5)], *name = names[below(6)];
    struct probe_call *c = below(3) != 0
                               ? probe_op_enter(d, prefix, name)
                               : probe_op_enter_backward(d, prefix, name, (int64_t)below(3) - 1);
    fill_call(c);
    if (below(8) == 0)
        probe_call_detach(c);
    if (below(3) == 0)
        op(d, "inner"); /* of an operator: not collected */
    finish_call(c, false);
}

static void run_one(struct probe_dumper *d, int depth)
{
    struct probe_value in[2];
    switch (below(depth < 3 ? 6 : 5)) {
    case 0:
        in[0] = draw_value(0);
        in[1] = draw_value(0);
        (void)probe_op(d, prefixes[below(5)], names[below(6)], in, below(3), in, below(3));
        break;
    case 1:
        in[0] = (struct probe_value){PROBE_TENSOR, .tensor = draw_tensor(), .key = "weight"};
        in[1] = (struct probe_value){PROBE_TENSOR, .tensor = draw_tensor(), .key = "bias"};
        probe_parameters_grad(d, "layers.0.fc", "Linear", in, below(3));
        break;
    case 2:
        in[0] = draw_value(0);
        probe_save(d, below(2) == 0 ? "loss" : "hidden", &in[0]);
        break;
    case 3:
        in[0] = draw_value(0);
        probe_save_grad(d, "loss", &in[0]);
        break;
    case 4:
        run_operator(d);
        break;
    default:
        run_module(d, depth);
    }
}

static void run_calls(struct probe_dumper *d, int depth)
{
    for (uint32_t i = below(4); i > 0; i--)
        run_one(d, depth);
}

static struct probe_settings draw_settings(void)
{
    static const struct probe_range steps[] = {{0, 0}, {2, 3}};
    static const char *const few[] = {"linear", "fc", NULL}, *const relu[] = {"relu", NULL},
                             *const scope[] = {"Functional.relu.0.forward",
                                               "Functional.linear.1.forward", NULL},
                             *const modules[] = {"layers.0.fc", "embed", NULL};
    static const struct probe_slice slices[] = {
        {.dim = 0, .has_end = true, .begin = 0, .end = 1},
        {.dim = 1, .begin = -1},
        {.dim = 0, .has_size = true, .size = 3, .begin = 1}};
    struct probe_settings s = everything();
    const bool any = below(8) == 0; /* also what does not go together */
    s.task = (enum probe_task)(below(2) == 0 ? below(2) : below(5));
    s.summary = any || s.task == PROBE_TASK_STATISTICS ? (enum probe_summary)below(3)
                                                       : PROBE_SUMMARY_STATISTICS;
    s.level = (enum probe_level)below(any || s.task <= PROBE_TASK_TENSOR ? 4 : 3);
    if (s.task == PROBE_TASK_NAN_CHECK && !any)
        s.level = PROBE_LEVEL_L1;
    s.framework = (enum probe_framework)below(4);
    s.risk = (enum probe_risk)below(3);
    s.data_mode = below(2) == 0 ? 0 : below(16);
    s.no_extra = below(4) == 0;
    s.high_precision = below(2) == 0;
    s.all_numbers = below(2) == 0;
    s.overflow_nums = (int64_t)below(4) - 1;
    if (below(3) == 0) {
        s.step = steps;
        s.nsteps = 1 + below(2);
    }
    if (below(5) == 0)
        s.list = below(2) == 0 ? few : relu;
    else if (below(5) == 0)
        s.scope = s.level == PROBE_LEVEL_L0 ? modules : scope;
    if (below(2) == 0 && (any || s.task == PROBE_TASK_STATISTICS))
        s.tensor_list = few;
    if (below(4) == 0) {
        s.slice = slices;
        s.nslices = 1 + below(3);
    }
    return s;
}

/* ---- files ---------------------------------------------------------------------------- */

/* Lines of a log behind "[TIME] ", without the call stacks, which are of this program's code. */
static struct ms_str without_times(struct ms_buf *out, struct ms_str text)
{
    struct ms_str line;
    ms_buf_clear(out);
    while (ms_str_split(&text, '\n', &line)) {
        if (line.n == 0 || line.p[0] != '[')
            continue;
        const int64_t at = ms_str_find(line, ']');
        ms_buf_str(out, ms_str_sub(line, (uint32_t)(at + 1), line.n));
        ms_buf_putc(out, '\n');
    }
    return ms_buf_slice(out);
}

/* The nodes of a stack.json in any order; which of them share a stack is a matter of this program's code. */
static void put_nodes(struct ms_buf *b, struct ms_str text)
{
    struct ms_str part;
    uint32_t sum = 0, nodes = 0;
    for (bool is_quoted = false; ms_str_split(&text, '"', &part); is_quoted = !is_quoted) {
        if (!is_quoted || ms_str_starts(part, MS_STR("File")) || ms_str_find(part, '.') < 0)
            continue;
        sum += ms_crc32(0, part.p, part.n);
        nodes++;
    }
    ms_buf_printf(b, " %u nodes %08x", nodes, sum);
}

/* Every file below a folder; of the stacks the nodes. */
static void put_folder(struct ms_buf *b, const char *folder)
{
    struct ms_buf log = {.max = 1 << 20};
    struct ms_dir list;
    ck_ok(ms_dir_list(&list, folder, &err), err);
    for (size_t i = 0; i < list.names.n; i++) {
        char path[600];
        struct ms_file f;
        snprintf(path, sizeof path, "%s/%s", folder, list.names.p[i].p);
        if (ms_path_kind(path) == MS_KIND_DIR) {
            put_folder(b, path);
            continue;
        }
        ck_ok(ms_file_map(&f, path, SIZE_MAX, &err), err);
        ms_buf_printf(b, "%s", path + strlen(dir));
        struct ms_str rest = {f.p, (uint32_t)f.n};
        uint32_t crc = 0;
        if (ms_str_ends(list.names.p[i], MS_STR(".log")))
            rest = without_times(&log, rest);
        for (int64_t at; (at = ms_str_find_str(rest, ms_str_of(dir))) >= 0;) {
            crc = ms_crc32(crc, rest.p, (size_t)at);
            rest = ms_str_sub(rest, (uint32_t)at + (uint32_t)strlen(dir), rest.n);
        }
        if (!ms_str_is(list.names.p[i], "stack.json"))
            ms_buf_printf(b, " %08x", ms_crc32(crc, rest.p, rest.n));
        else
            put_nodes(b, (struct ms_str){f.p, (uint32_t)f.n});
        ms_buf_putc(b, '\n');
        if (recorded_shows && !ms_str_is(list.names.p[i], "stack.json") && f.n < 99999)
            printf("-- %s\n%.*s\n", path + strlen(dir), (int)f.n, f.p);
        ms_file_unmap(&f);
    }
    ms_dir_free(&list);
    ms_buf_free(&log);
}

static void end_case(struct ms_buf *all, const char *what, unsigned seed)
{
    struct ms_buf b = {.max = 1 << 20};
    put_folder(&b, dir);
    if (recorded_shows)
        printf("== %s %u\n%s\n", what, seed, ms_buf_z(&b));
    ms_buf_printf(all, "%s %u: %08x\n", what, seed, ms_crc32(0, ms_buf_z(&b), b.n));
    ms_buf_free(&b);
    scratch_remove(dir);
}

START_TEST(drawn_programs)
{
    struct ms_buf all = {.max = 1 << 20};
    ms_log_set_level(MS_LOG_ERROR);
    for (unsigned seed = 0; seed < PROGRAMS; seed++) {
        struct probe_dumper *d;
        state = seed;
        begin();
        struct probe_settings s = draw_settings();
        const enum ms_rc rc = probe_dumper_open(&d, &s, &err);
        ms_buf_printf(&all, "%s ", err.msg);
        for (unsigned step = 0; rc == MS_OK && step < 3; step++) {
            if (below(9) != 0)
                probe_dumper_start(d);
            for (unsigned i = 0; i < 3; i++)
                run_calls(d, 0);
            if (below(3) == 0)
                probe_dumper_stop(d);
            if (below(9) == 0)
                probe_dumper_set_step(d, 2);
            probe_dumper_step(d);
        }
        if (rc == MS_OK)
            (void)!probe_dumper_close(d, &err);
        end_case(&all, "program", seed);
    }
    recorded_check(&all, "programs");
}
END_TEST

/* ---- the writer ------------------------------------------------------------------------ */

static void draw_put(struct probe_writer *w)
{
    static const char *const keys[] = {NULL, "a", "b", NULL};
    const char *key = keys[below(4)];
    const uint32_t what = below(11);
    if (what < 4)
        probe_put_tensor(w, key, draw_tensor());
    else if (what == 4)
        probe_put_int(w, key, (int64_t)below(9) - 4);
    else if (what == 5)
        probe_put_float(w, key, below(9) / 2.0);
    else if (what == 6)
        probe_put_bool(w, key, below(2) == 0);
    else if (what == 7)
        probe_put_str(w, key, "s\"\n");
    else if (what == 8)
        probe_put_none(w, key);
    else
        (what == 9 ? probe_list_begin : probe_dict_begin)(w, key);
}

static void draw_writing(struct probe_writer *w)
{
    static const char *const record[] = {"Functional.linear.0.forward",
                                         "Functional.linear.0.backward",
                                         "Module.a.A.forward.0",
                                         "Module.a.A.parameters_grad.0",
                                         "loss.0.debug",
                                         "no name",
                                         ""};
    static const char *const frames[] = {"File a.py, line 3", "File \"b\".py, line 4"};
    const uint32_t what = below(16);
    if (what < 3)
        probe_record_begin(w, record[below(7)]);
    else if (what < 5)
        probe_record_end(w);
    else if (what == 5)
        probe_record_drop(w);
    else if (what < 8)
        probe_section(w, (enum probe_section)below(7));
    else if (what == 8)
        probe_list_end(w);
    else if (what == 9)
        probe_dict_end(w);
    else if (what == 10)
        probe_parent(w, record[below(7)], below(3) == 0 ? NULL : record[below(7)]);
    else if (what == 11)
        probe_stack(w, record[below(7)], frames, below(3));
    else if (what == 12 && below(4) == 0)
        (void)!probe_writer_flush(w, NULL);
    else
        draw_put(w);
}

static void draw_values(struct probe_writer *w, int depth, bool is_named)
{
    static const char *const keys[] = {"a", "b", "weight", "a.b"};
    for (uint32_t i = below(4); i > 0; i--) {
        const char *key = is_named ? keys[i - 1] : NULL;
        const uint32_t what = below(depth < 3 ? 4 : 2);
        if (what == 0)
            probe_put_tensor(w, key, draw_tensor());
        else if (what == 1)
            probe_put_int(w, key, (int64_t)below(9) - 4);
        else {
            (what == 2 ? probe_list_begin : probe_dict_begin)(w, key);
            draw_values(w, depth + 1, what == 3);
            (what == 2 ? probe_list_end : probe_dict_end)(w);
        }
    }
}

/* A record whose calls are in order. */
static void draw_record(struct probe_writer *w, unsigned number)
{
    char name[64];
    snprintf(name, sizeof name, below(2) == 0 ? "Torch.mul.%u.forward" : "Module.m.M.backward.%u",
             number);
    probe_record_begin(w, name);
    for (unsigned part = PROBE_SEC_INPUT_ARGS; part <= PROBE_SEC_PARAMETERS; part++) {
        if (below(3) == 0)
            continue;
        probe_section(w, (enum probe_section)part);
        draw_values(w, 0, part == PROBE_SEC_INPUT_KWARGS || part == PROBE_SEC_PARAMETERS);
    }
    probe_record_end(w);
    if (below(2) == 0)
        probe_parent(w, name, "Module.m.M.forward.0");
}

START_TEST(drawn_calls_of_the_writer)
{
    struct ms_buf all = {.max = 1 << 20};
    ms_log_set_level(MS_LOG_ERROR);
    for (unsigned seed = 0; seed < WRITERS; seed++) {
        struct probe_writer *w;
        state = seed;
        begin();
        const struct probe_conf conf = {.dir = dir,
                                        .task = (enum probe_task)below(3),
                                        .summary = (enum probe_summary)below(3),
                                        .level = (enum probe_level)below(4),
                                        .framework = (enum probe_framework)below(4),
                                        .no_extra = below(4) == 0,
                                        .all_numbers = below(2) == 0};
        ck_ok(probe_writer_open(&w, &conf, &err), err);
        for (unsigned i = 0; seed % 2 == 0 && i < 120; i++)
            draw_writing(w);
        for (unsigned i = 0; seed % 2 == 1 && i < 5; i++)
            draw_record(w, i);
        const enum ms_rc rc = probe_writer_close(w, &err);
        ms_buf_printf(&all, "%d %s ", rc,
                      rc != MS_OK ? err.msg + (strstr(err.msg, dir) == err.msg ? strlen(dir) : 0)
                                  : "");
        end_case(&all, "writer", seed);
    }
    recorded_check(&all, "writers");
}
END_TEST

RECORDED_MAIN("dumper_drawn", drawn_programs, drawn_calls_of_the_writer)
