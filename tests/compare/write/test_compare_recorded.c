/* SPDX-License-Identifier: MIT
 *
 * compare_recorded: the tables of drawn comparisons as they are on record: rows of drawn models by all sets of
 * rules, tensors of all types with values of every kind, partners and the noise of a second run.
 *
 *     build/tests/test_compare_recorded --update        records a change that is meant
 */
#include "compare/table/comparison.h"
#include "compare/write/out.h"
#include "compare/write/partners.h"
#include "probe/tensor/tensor.h"
#include "tests/support/cmp_fixture.h"
#include "tests/support/drawn_model.h"
#include "tests/support/recorded.h"

enum { MODELS = 30, TENSORS = 40, ENGINES = 60, ROWS = 14, MOST = 5003 };
#define RECORD "tests/data/compare/recorded.txt"

static struct dm_model chance;
static struct ms_buf told;

#define below(n) dm_below(&chance, (n))

#define one_in(n) (below(n) == 0)

/* ---- what is recorded ---------------------------------------------------------------------------------------- */

static void leave_out_dir(const struct fixture *f)
{
    struct ms_buf out = {.max = 1 << 24};
    struct ms_str rest = ms_buf_slice(&told), words = ms_str_of(f->dir);
    for (int64_t at; (at = ms_str_find_str(rest, words)) >= 0;) {
        ms_buf_str(&out, ms_str_sub(rest, 0, (uint32_t)at));
        rest = ms_str_sub(rest, (uint32_t)at + words.n, rest.n);
    }
    ms_buf_str(&out, rest);
    ms_buf_free(&told);
    told = out;
}

static void record_told(const struct fixture *f, const char *what, struct ms_buf *record)
{
    leave_out_dir(f);
    ck_assert_int_eq(told.bad, MS_OK);
    ms_buf_printf(record, " %s %06x", what,
                  (unsigned)(ms_str_hash(ms_buf_slice(&told)) & 0xffffff));
    if (getenv("COMPARE_SHOW") != NULL && strcmp(getenv("COMPARE_SHOW"), what) == 0)
        printf("%s\n", ms_buf_z(&told));
    ms_buf_clear(&told);
}

static void tell_file(const char *path)
{
    struct ms_file text;
    struct ms_err err = {0};
    ck_ok(ms_file_map(&text, path, SIZE_MAX, &err), err);
    ms_buf_put(&told, text.p, text.n);
    ms_file_unmap(&text);
}

static void tell_summary(const struct cmp_summary *s)
{
    ms_buf_printf(&told, "%llu %llu %llu %llu %llu %llu %llu %d %zu %u %u\n",
                  (unsigned long long)s->rows, (unsigned long long)s->level[0],
                  (unsigned long long)s->level[1], (unsigned long long)s->level[2],
                  (unsigned long long)s->level[3], (unsigned long long)s->unmatched_target,
                  (unsigned long long)s->unmatched_golden, s->has_first, s->first.group,
                  s->first.row, s->nworst);
    for (unsigned i = 0; i < s->nworst; i++)
        ms_buf_printf(&told, "%zu %u %.6g\n", s->worst[i].group, s->worst[i].row,
                      s->worst[i].score);
}

static void tell_csv(struct fixture *f)
{
    char stem[96], path[104];
    struct cmp_files files = {0};
    struct cmp_summary sum = {0};
    snprintf(stem, sizeof stem, "%s/out", f->dir);
    const enum ms_rc rc = cmp_write_csv(f->c, stem, NULL, &sum, &files, &f->err);
    if (rc == MS_OK) {
        snprintf(path, sizeof path, "%s.csv", stem);
        if (files.list.n != 0)
            tell_file(path);
        tell_summary(&sum);
    } else {
        ms_buf_puts(&told, f->err.msg);
    }
    cmp_files_free(&files);
}

static void tell_rows(struct fixture *f)
{
    for (size_t g = 0; g < cmp_groups(f->c); g++) {
        ck_ok(cmp_view_group(f->c, g, &f->v, &f->err), f->err);
        const struct cmp_pairing p = cmp_group_nodes(f->c, g);
        ms_buf_printf(&told, "%u %u %zu\n", p.target, p.golden, cmp_group_rows(f->c, g));
        for (size_t i = 0; i < f->v.rows.n; i++) {
            const struct cmp_row *r = &f->v.rows.p[i];
            const struct cmp_ext *e = &r->fig.ext;
            ms_buf_printf(&told, "%d %u %d %d %d %s %.3f %.6g", (int)r->level, r->notes,
                          r->grad_same, r->is_output, (int)r->fig.state, r->match.how,
                          r->match.confidence, cmp__row_noise(f->c, r));
            for (unsigned k = 0; k < PROBE_STATS; k++)
                ms_buf_printf(&told, " %.*s %.*s %.6g %d", MS_STR_ARG(r->delta[k].diff),
                              MS_STR_ARG(r->delta[k].rel), r->delta[k].rel_value,
                              r->delta[k].rel_inf);
            for (unsigned k = 0; k < CMP_METRICS; k++)
                ms_buf_printf(&told, " %.6g", r->fig.metric[k]);
            ms_buf_printf(&told, " %.6g %.6g %.6g %.6g %.6g %.6g %.6g %.6g\n", e->rel_l2,
                          e->rel_l2_bound, e->sqnr_db, e->mean_ulp, e->max_ulp, e->bit_equal,
                          e->bias, e->scale);
        }
    }
}

static void tell_problems(const struct fixture *f)
{
    const struct ms_str *list;
    const size_t n = cmp_problems(f->c, &list);
    for (size_t i = 0; i < n; i++)
        ms_buf_printf(&told, "%.*s\n", MS_STR_ARG(list[i]));
}

/* Opens the pair as it is set up and tells all of it. */
static void tell_way(struct fixture *f, const char *what, struct ms_buf *record)
{
    fixture_close(f);
    if (cmp_open(&f->c, &f->conf, f->t, f->b, NULL, &f->err) == MS_OK) {
        ck_ok(cmp_measure(f->c, NULL, &f->err), f->err);
        ck_ok(cmp_view_init(&f->v, &f->err), f->err);
        tell_csv(f);
        tell_rows(f);
        tell_problems(f);
        for (size_t i = 0; i < f->c->measured.noise.n; i++)
            ms_buf_printf(&told, " %.6g", f->c->measured.noise.p[i]);
    } else {
        f->c = NULL;
        ms_buf_puts(&told, f->err.msg);
    }
    record_told(f, what, record);
}

static void tell_compats(struct fixture *f, struct ms_buf *record)
{
    static const enum cmp_compat compats[] = {CMP_CUR, CMP_OLD, CMP_STRICT};
    static const char *const names[] = {"cur", "old", "strict"};
    for (size_t i = 0; i < sizeof compats / sizeof *compats; i++) {
        f->conf.rules = cmp_rules_of(compats[i]);
        tell_way(f, names[i], record);
    }
    f->conf.highlight = true;
    f->conf.rules = cmp_rules_of(CMP_OLD);
    tell_way(f, "highlight", record);
    f->conf.highlight = false;
    f->conf.rules = cmp_rules_of(CMP_CUR);
    f->conf.ext = true;
    tell_way(f, "ext", record);
    f->conf.ext = false;
}

/* ---- models ---------------------------------------------------------------------------------------------------- */

static void tell_partners(struct fixture *f, struct ms_buf *record)
{
    const struct cmp_partners p = cmp_partners_count(f->c);
    struct cmp_pair_list list = {0};
    ms_buf_printf(&told, "%d %d %zu %zu %zu\n", p.aligned, p.by_value, p.nodes, p.paired, p.unsure);
    cmp_partners_text(&p, &told);
    ck_ok(cmp_pair_list_take(&list, f->c, &f->err), f->err);
    for (size_t i = 0; i < list.list.n; i++)
        ms_buf_printf(&told, "%.*s %.*s %.3f %d\n", MS_STR_ARG(list.list.p[i].target),
                      MS_STR_ARG(list.list.p[i].golden), (double)list.list.p[i].confidence,
                      list.list.p[i].how);
    cmp_pair_list_free(&list);
    for (int golden = 0; golden < 2; golden++) {
        const struct probe_dump *d = cmp_dump(f->c, golden != 0);
        for (uint32_t i = 0; i < d->nodes.n; i += 3) {
            if (cmp_explain(f->c, probe_node_name(d, i), &told, &f->err) != MS_OK)
                ms_buf_puts(&told, f->err.msg);
        }
    }
    if (cmp_explain(f->c, MS_STR("Torch.ad.0.forward"), &told, &f->err) != MS_OK)
        ms_buf_puts(&told, f->err.msg);
    record_told(f, "partners", record);
}

static void tell_mappings(struct fixture *f, struct ms_buf *record)
{
    char path[104];
    struct cmp_files files = {0};
    for (int layers = 0; layers < 2 && cmp_alignment(f->c) != NULL; layers++) {
        snprintf(path, sizeof path, "%s/map%d.yaml", f->dir, layers);
        ck_ok(cmp_write_alignment(f->c, layers != 0, path, &files, &f->err), f->err);
        if (access(path, F_OK) == 0)
            tell_file(path);
    }
    cmp_files_free(&files);
    record_told(f, "mappings", record);
}

static void record_model(unsigned seed, struct ms_buf *record)
{
    struct fixture f;
    struct dm_side side[2];
    char path[104];
    chance.state = seed;
    dm_draw(side, seed + 5000, 1);
    if (!side[0].shapes_only) { /* a table needs values */
        fixture_init(&f);
        fixture_write(&f, "b/dump.json", ms_buf_z(&side[0].dump));
        fixture_write(&f, "t/dump.json", ms_buf_z(&side[1].dump));
        fixture_write(&f, "b/construct.json", ms_buf_z(&side[0].construct));
        fixture_write(&f, "t/construct.json", ms_buf_z(&side[1].construct));
        fixture_write(&f, "t/stack.json", "{\"Torch.add.0.forward\": [\"File a, line 1, in f\"]}");
        /* as a second run of the golden side, where both are of one framework */
        fixture_write(&f, "n/dump.json", ms_buf_z(&side[side[1].mindspore ? 0 : 1].dump));
        ms_buf_printf(record, "model %u", seed);
        tell_compats(&f, record);
        snprintf(path, sizeof path, "%s/n/dump.json", f.dir);
        f.conf.noise_floor = path;
        f.conf.noise_step = f.conf.noise_rank = -1;
        tell_way(&f, "noise", record);
        f.conf.noise_floor = NULL;
        f.conf.hide_stack = true;
        tell_way(&f, "no-stack", record);
        if (f.c != NULL) {
            tell_partners(&f, record);
            tell_mappings(&f, record);
        }
        ms_buf_puts(record, "\n");
        fixture_free(&f);
    }
    dm_free(side);
}

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

static const struct {
    enum ms_dtype type;
    const char *name;
    unsigned bytes;
} types[] = {{MS_DT_F32, "torch.float32", 4},     {MS_DT_F16, "torch.float16", 2},
             {MS_DT_BF16, "torch.bfloat16", 2},   {MS_DT_F64, "torch.float64", 8},
             {MS_DT_I64, "torch.int64", 8},       {MS_DT_I32, "torch.int32", 4},
             {MS_DT_I16, "torch.int16", 2},       {MS_DT_I8, "torch.int8", 1},
             {MS_DT_U8, "torch.uint8", 1},        {MS_DT_BOOL, "torch.bool", 1},
             {MS_DT_U16, "torch.uint16", 2},      {MS_DT_U32, "torch.uint32", 4},
             {MS_DT_U64, "torch.uint64", 8},      {MS_DT_C64, "torch.complex64", 8},
             {MS_DT_C128, "torch.complex128", 16}};
enum { TYPES = sizeof types / sizeof *types };

static void put_element(unsigned type, unsigned char *to, double x, uint32_t bits)
{
    const float f = (float)x;
    const int64_t i = isfinite(x) ? (int64_t)x : 0;
    const float parts[2] = {f, f / 3};
    const double wide[2] = {x, -x / 7};
    uint32_t half;
    switch (types[type].type) {
    case MS_DT_F32:
        memcpy(to, &f, 4);
        break;
    case MS_DT_F64:
        memcpy(to, &x, 8);
        break;
    case MS_DT_F16:
        half = bits;
        memcpy(to, &half, 2);
        break;
    case MS_DT_BF16:
        memcpy(&half, &f, 4);
        half >>= 16;
        memcpy(to, &half, 2);
        break;
    case MS_DT_C64:
        memcpy(to, parts, sizeof parts);
        break;
    case MS_DT_C128:
        memcpy(to, wide, sizeof wide);
        break;
    case MS_DT_BOOL:
        *to = (unsigned char)(i & 1);
        break;
    default:
        memcpy(to, &i, types[type].bytes);
    }
}

static double special(double x)
{
    static const double all[] = {0, NAN, INFINITY, -INFINITY, 1e-30, 65504};
    return one_in(3) ? all[below(6)] : x;
}

/* Elements of both sides: equal, near each other, far, or special on one side or both. */
static void draw_elements(const unsigned type[2], uint64_t n, unsigned char *data[2])
{
    const uint32_t kind = below(5), often = 1 + below(40);
    for (uint64_t i = 0; i < n; i++) {
        double x = kind == 4 ? (double)below(200) - 100 : ((double)below(20000) - 10000) / 777,
               y = x;
        uint32_t bits[2];
        bits[0] = bits[1] = 0x3000 + below(0x1000);
        if (kind != 0 && one_in(often)) {
            y = kind == 1 ? x * (1 + 1e-4 * below(60)) : x + below(9);
            bits[1] += below(5);
            if (kind == 3) {
                y = special(y);
                x = one_in(2) ? y : special(x);
                bits[0] = one_in(2) ? 0x7c00 + below(2) : bits[0];
                bits[1] = one_in(2) ? bits[0] : 0xfc00;
            }
        }
        for (int k = 0; k < 2; k++) {
            put_element(type[k], data[k] + i * types[type[k]].bytes, k == 0 ? x : y, bits[k]);
        }
    }
}

static void put_tensor(struct fixture *f, int side, unsigned row, unsigned type, uint64_t n,
                       const void *data, struct ms_buf *b)
{
    char path[200];
    const bool flat = one_in(2) || n % 2 != 0;
    const uint64_t shape[3] = {flat ? n : n / 2, flat ? 1 : 2, 1};
    const uint32_t nd = flat ? 1 + one_in(5) : 2;
    const bool lost = one_in(25), unnamed = one_in(25);
    ms_buf_printf(b, "{\"type\":\"torch.Tensor\",\"dtype\":\"%s\",\"shape\":[%llu",
                  types[type].name, (unsigned long long)shape[0]);
    for (uint32_t i = 1; i < nd; i++)
        ms_buf_printf(b, ", %llu", (unsigned long long)shape[i]);
    ms_buf_printf(b, "],\"Max\":%u,\"Min\":-1,\"Mean\":0.5,\"Norm\":%u.25", 3 + below(2),
                  8 + below(3));
    if (!unnamed)
        ms_buf_printf(b, ",\"data_name\":\"%u.npy\"", row);
    ms_buf_puts(b, "}");
    snprintf(path, sizeof path, "%s/%c/dump_tensor_data/%u.npy", f->dir, "bt"[side], row);
    if (!lost)
        ck_ok(probe_npy_write(path, types[type].type, shape, nd, data, &f->err), f->err);
}

static void record_tensors(unsigned seed, struct ms_buf *record)
{
    static const uint64_t sizes[] = {0, 1, 1, 2, 3, 16, 17, 64, 66, 255, 4096, 4098, MOST};
    static unsigned char data[2][MOST * 16];
    unsigned char *both[2] = {data[0], data[1]};
    struct fixture f;
    struct ms_buf b[2] = {{.max = 1 << 20}, {.max = 1 << 20}};
    chance.state = seed * 31 + 7;
    fixture_init(&f);
    for (unsigned i = 0; i < ROWS; i++) {
        const unsigned first = below(TYPES), type[2] = {first, one_in(4) ? below(TYPES) : first};
        const uint64_t n = sizes[below(13)], other = one_in(20) ? n + 1 : n;
        draw_elements(type, n, both);
        for (int k = 0; k < 2; k++) {
            if (i % 4 == 0)
                ms_buf_printf(&b[k], "%s\"Torch.op%u.0.forward\": {\"input_args\": [",
                              i != 0 ? "]},\n" : "", i / 4);
            else
                ms_buf_puts(&b[k], i % 4 == 2 ? "], \"output\": [" : ", ");
            put_tensor(&f, k, i, type[k], k == 0 ? n : other < MOST ? other : n, both[k], &b[k]);
        }
    }
    for (int k = 0; k < 2; k++) {
        ms_buf_puts(&b[k], "]}");
        fixture_dump(&f, "bt"[k], "tensor", "pytorch", ms_buf_z(&b[k]));
        ms_buf_free(&b[k]);
    }
    ms_buf_printf(record, "tensors %u", seed);
    tell_compats(&f, record);
    f.conf.summarise = true;
    tell_way(&f, "summarised", record);
    ms_buf_puts(record, "\n");
    fixture_free(&f);
}

/* ---- training beside inference --------------------------------------------------------------------------------- */

enum { LAYERS = 3, PARTS = 3 };

static void put_number(struct ms_buf *b, const char *key)
{
    static const char *const odd[] = {"NaN", "Infinity", "-Infinity", "null", "0", "7", "\"text\""};
    ms_buf_printf(b, ", \"%s\": ", key);
    if (one_in(6))
        ms_buf_puts(b, odd[below(7)]);
    else
        ms_buf_printf(b, "%.3f", (double)below(4000) / 500 - 3);
}

/* One output: with a file, a digest or statistics alone. */
static void put_output(struct fixture *f, char side, const char *name, const char *file,
                       const uint64_t *shape, uint32_t nd, uint32_t task, struct ms_buf *b)
{
    static float data[4096];
    char path[200];
    uint64_t n = 1;
    ms_buf_printf(
        b, "%s\"%s\": {\"output\": [{\"type\": \"torch.Tensor\", \"dtype\": \"%s\", \"shape\": [",
        b->n != 0 ? ",\n" : "", name, one_in(9) ? "torch.float16" : "torch.float32");
    for (uint32_t i = 0; i < nd; i++) {
        ms_buf_printf(b, "%s%llu", i != 0 ? ", " : "", (unsigned long long)shape[i]);
        n *= shape[i];
    }
    ms_buf_puts(b, "]");
    put_number(b, "Max");
    put_number(b, "Min");
    put_number(b, "Mean");
    put_number(b, "Norm");
    if (task == 1 && !one_in(9))
        ms_buf_printf(b, ", \"md5\": \"%08x\"", below(5));
    if (task == 2 && !one_in(12))
        ms_buf_printf(b, ", \"data_name\": \"%s.npy\"", file);
    ms_buf_printf(b, ", \"requires_grad\": %s}]}", one_in(3) ? "true" : "false");
    for (uint64_t i = 0; i < n; i++)
        data[i] = (float)below(900) / 90;
    snprintf(path, sizeof path, "%s/%c/dump_tensor_data/%s.npy", f->dir, side, file);
    if (task == 2 && !one_in(15))
        ck_ok(probe_npy_write(path, MS_DT_F32, shape, nd, data, &f->err), f->err);
}

/* Parts of one layer and the module that inference has in their place. */
static void put_layer(struct fixture *f, uint32_t layer, bool fsdp, uint32_t task,
                      struct ms_buf b[2])
{
    static const char *const parts[] = {"q_proj", "k_proj", "v_proj"}, *const up[] = {"gate_proj",
                                                                                      "up_proj"};
    const bool is_qkv = one_in(2);
    const uint32_t many = is_qkv ? PARTS : 2, nd = 1 + below(3);
    uint64_t shape[3] = {1 + below(4), 1 + below(5), 1 + below(6)}, whole = 0;
    shape[below(3)] *= !one_in(8); /* an empty axis */
    char name[160], file[60];
    const uint32_t axis = one_in(4) ? 0 : nd - 1;
    for (uint32_t i = 0; i < many; i++) {
        const char *part = fsdp     ? (is_qkv ? parts[i] : up[i])
                           : is_qkv ? "linear_qkv"
                                    : "linear_fc1";
        snprintf(name, sizeof name, "Module.%slayers.%u.%s%s.Linear.forward.%u",
                 fsdp ? "_fsdp_wrapped_module.model." : "module.module.", layer,
                 fsdp ? "_fsdp_wrapped_module.self_attn." : "self_attention.", part, fsdp ? 0 : i);
        snprintf(file, sizeof file, "Module.%u.%s.%u", layer, one_in(3) ? "other" : part, i);
        shape[axis] = 1 + below(6);
        whole += shape[axis];
        put_output(f, 't', name, file, shape, nd, task, &b[0]);
        if (!fsdp)
            break;
    }
    shape[axis] = one_in(5) ? whole + 1 : whole;
    snprintf(name, sizeof name, "Module.model.layers.%u.self_attn.%s.Parallel.forward.0", layer,
             is_qkv ? "qkv_proj" : "gate_up_proj");
    snprintf(file, sizeof file, "Module.%u.gate_up_proj.0", layer);
    put_output(f, 'b', name, file, shape, nd, task, &b[1]);
}

static void record_engines(unsigned seed, struct ms_buf *record)
{
    static const char *const tasks[] = {"statistics", "md5", "tensor"};
    struct fixture f;
    struct ms_buf b[2] = {{.max = 1 << 20}, {.max = 1 << 20}};
    chance.state = seed * 13 + 3;
    fixture_init(&f);
    const uint32_t task = below(3);
    const bool fsdp = !one_in(4);
    for (uint32_t layer = 0; layer < LAYERS; layer++)
        put_layer(&f, layer, fsdp, task, b);
    fixture_dump(&f, 't', tasks[task], "pytorch", ms_buf_z(&b[0]));
    fixture_dump(&f, 'b', tasks[task], "pytorch", ms_buf_z(&b[1]));
    f.conf.consistent = fsdp ? CMP_CONSISTENT_FSDP : CMP_CONSISTENT_MEGATRON;
    f.conf.fold_lines = one_in(2);
    ms_buf_printf(record, "engines %u", seed);
    tell_compats(&f, record);
    ms_buf_puts(record, "\n");
    ms_buf_free(&b[0]);
    ms_buf_free(&b[1]);
    fixture_free(&f);
}

START_TEST(drawn_comparisons_are_written_as_on_record)
{
    struct ms_buf now = {.max = 1 << 20};
    told.max = 1 << 24;
    for (unsigned seed = 1; seed <= MODELS; seed++)
        record_model(seed, &now);
    for (unsigned seed = 1; seed <= TENSORS; seed++)
        record_tensors(seed, &now);
    for (unsigned seed = 1; seed <= ENGINES; seed++)
        record_engines(seed, &now);
    recorded_check_file(RECORD, &now,
                        "case, then each way and the hash of its table; COMPARE_SHOW=WAY shows it");
    ms_buf_free(&now);
    ms_buf_free(&told);
}
END_TEST

RECORDED_MAIN("compare_recorded", drawn_comparisons_are_written_as_on_record)
