/* SPDX-License-Identifier: MIT
 *
 * pair_drawn: which rows of drawn models are pairs, by each way of pairing, and what is told of the files
 * of mappings, as it is on record.
 *
 *     build/tests/test_pair_drawn --update        records a change that is meant
 */
#include "compare/pair/layer.h"
#include "tests/support/cmp_fixture.h"
#include "tests/support/drawn_model.h"
#include "tests/support/recorded.h"

enum { CASES = 36, ENGINES = 40 };
#define RECORD "tests/data/align/drawn/rows.txt"

static struct dm_model chance;

#define below(n) dm_below(&chance, (n))

/* ---- files --------------------------------------------------------------------------------------------- */

static void put_frames(struct ms_buf *b)
{
    static const char *const frames[] = {
        "File /usr/lib/python3/site-packages/torch/nn/functional.py, line 3, in silu, \\n x",
        "File /usr/lib/python3/site-packages/mindspore/ops/function.py, line 9, in gelu, \\n y",
        "File /home/u/msprobe/core/hook.py, line 1, in Template, \\n z",
        "File /home/u/model/layers.py, line 14, in forward, \\n out = f(x)",
        "File /home/u/model/layers.py, line 15, in construct, \\n out = f(x)",
        "File /usr/lib/python3/site-packages/torch/nn/modules/module.py, line 2, in __call__, \\n "
        "a",
        "File /home/u/train.py, line 40, in main, \\n step()",
        "File /usr/lib/python3/site-packages/torch/x.py, line 1, in , \\n step()",
        "File /usr/lib/python3/site-packages/torch/x.py"};
    for (unsigned n = below(6), i = 0; i < n; i++)
        ms_buf_printf(b, "%s\"%s\"", i != 0 ? ", " : "", frames[below(9)]);
}

static void write_stack(const struct fixture *f, const char *name, const struct probe_dump *d)
{
    struct ms_buf b = {.max = 1 << 20};
    ms_buf_puts(&b, "{");
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        ms_buf_printf(&b, "%s\"%.*s\": [", i != 0 ? ",\n" : "", MS_STR_ARG(probe_node_name(d, i)));
        put_frames(&b);
        ms_buf_puts(&b, "]");
    }
    ms_buf_puts(&b, "}");
    fixture_write(f, name, ms_buf_z(&b));
    ms_buf_free(&b);
}

static void put_indices(struct ms_buf *b, const char *key, unsigned n)
{
    ms_buf_printf(b, ", %s: [", key);
    for (unsigned i = 0; i < n; i++)
        ms_buf_printf(b, "%s%u", i != 0 ? ", " : "", below(3));
    ms_buf_puts(b, "]");
}

static void write_apis(const struct fixture *f)
{
    struct ms_buf b = {.max = 1 << 16};
    for (unsigned i = 0; i < 14; i++) {
        const unsigned args = below(3), outs = below(2), wrong = below(9) == 0;
        ms_buf_printf(&b, "- {ms_api: %s, pt_api: %s", dm_api_names[below(DM_APIS)][1],
                      dm_api_names[below(DM_APIS)][0]);
        put_indices(&b, "ms_args", args);
        put_indices(&b, "pt_args", args + wrong);
        put_indices(&b, "ms_outputs", outs);
        put_indices(&b, "pt_outputs", outs);
        ms_buf_puts(&b, "}\n");
    }
    fixture_write(f, "apis.yaml", ms_buf_z(&b));
    ms_buf_free(&b);
}

static struct ms_str any_name(const struct probe_dump *d)
{
    return probe_node_name(d, below((uint32_t)d->nodes.n));
}

static void write_cells(const struct fixture *f)
{
    struct ms_buf b = {.max = 1 << 16};
    for (unsigned i = 0; i < 12; i++) {
        const struct ms_str part[2] = {cmp__cell_part(any_name(f->c->rows.t.dump)),
                                       cmp__cell_part(any_name(f->c->rows.b.dump))};
        if (part[0].p != NULL && part[1].p != NULL)
            ms_buf_printf(&b, "%.*s%s: %.*s\n", MS_STR_ARG(part[0]), below(8) == 0 ? "x" : "",
                          MS_STR_ARG(part[1]));
    }
    ms_buf_printf(&b, "nowhere.at_all: net\n");
    fixture_write(f, "cells.yaml", ms_buf_z(&b));
    ms_buf_free(&b);
}

/* Nodes and rows with a partner, with none, with the other side's names, or misspelt. */
static void write_pins(const struct fixture *f)
{
    struct ms_buf b = {.max = 1 << 16}, row = {.max = 1 << 12};
    for (unsigned i = 0; i < 16; i++) {
        const struct probe_dump *const d[2] = {f->c->rows.t.dump, f->c->rows.b.dump};
        const bool rows = below(2) == 0, turned = below(9) == 0;
        for (unsigned k = 0; k < 2; k++) {
            const struct probe_dump *of = d[turned ? 1 - k : k];
            ms_buf_clear(&row);
            if (rows && below(9) != 0)
                probe_row_name(of, &of->rows.p[below((uint32_t)of->rows.n)], &row);
            else
                ms_buf_str(&row, any_name(of));
            ms_buf_printf(&b, k == 0 ? "%s%s: " : "%s%s\n",
                          k == 1 && below(5) == 0 ? "N/A" : ms_buf_z(&row),
                          below(12) == 0 ? "_" : "");
        }
    }
    fixture_write(f, "pins.yaml", ms_buf_z(&b));
    ms_buf_free(&b);
    ms_buf_free(&row);
}

/* ---- what is recorded -------------------------------------------------------------------------------------- */

static void tell_problems(const struct fixture *f, struct ms_buf *out)
{
    const struct ms_str *list;
    const size_t n = cmp_problems(f->c, &list), dir = strlen(f->dir);
    for (size_t i = 0; i < n; i++) {
        struct ms_str rest = list[i];
        for (int64_t at; (at = ms_str_find_str(rest, ms_str_of(f->dir))) >= 0;) {
            ms_buf_str(out, ms_str_sub(rest, 0, (uint32_t)at));
            rest = ms_str_sub(rest, (uint32_t)(at + (int64_t)dir), rest.n);
        }
        ms_buf_str(out, rest);
        ms_buf_puts(out, "\n");
    }
}

static void tell_rows(const struct cmp_rows *r, struct ms_buf *out)
{
    for (size_t i = 0; i < r->pairs.n; i++)
        ms_buf_printf(out, "%u %u\n", r->pairs.p[i].t, r->pairs.p[i].b);
    for (size_t i = 0; i < r->folds.n; i++)
        ms_buf_printf(out, "fold %u %u\n", r->folds.p[i].pair, r->folds.p[i].row);
    for (size_t i = 0; i < r->groups.n; i++)
        ms_buf_printf(out, "group %u\n", r->groups.p[i].first);
    for (size_t i = 0; i < r->named.n; i++)
        ms_buf_printf(out, "named %u %u\n", r->named.p[i].target, r->named.p[i].golden);
}

/* Opens the pair as it is set up; an error counts as what is told. */
static void tell_way(struct fixture *f, const char *way, struct ms_buf *record)
{
    struct ms_buf told = {.max = 1 << 22};
    fixture_close(f);
    const enum ms_rc rc = cmp_open(&f->c, &f->conf, f->t, f->b, NULL, &f->err);
    if (rc == MS_OK) {
        ck_ok(cmp_view_init(&f->v, &f->err), f->err);
        tell_rows(&f->c->rows, &told);
        tell_problems(f, &told);
        ms_buf_printf(record, " %s %zu", way, f->c->rows.pairs.n);
    } else {
        f->c = NULL;
        ms_buf_printf(&told, "%d", (int)rc);
        ms_buf_printf(record, " %s error", way);
    }
    ms_buf_printf(record, " %06x", (unsigned)(ms_str_hash(ms_buf_slice(&told)) & 0xffffff));
    if (getenv("PAIR_SHOW") != NULL && strcmp(getenv("PAIR_SHOW"), way) == 0)
        printf("%s", ms_buf_z(&told));
    ms_buf_free(&told);
}

static void tell_names(struct fixture *f, struct ms_buf *record)
{
    static const enum cmp_compat sets[] = {CMP_CUR, CMP_OLD, CMP_STRICT};
    static const char *const ways[] = {"names", "old", "strict"};
    f->conf.matching = CMP_MATCH_EXACT;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        f->conf.rules = cmp_rules_of(sets[i]);
        tell_way(f, ways[i], record);
        f->conf.fuzzy = true;
        tell_way(f, ways[i], record);
        f->conf.fuzzy = false;
    }
    f->conf.rules = cmp_rules_of(CMP_CUR);
}

static void tell_mapped(struct fixture *f, struct cmp_mapping *map, const char *way,
                        const char *file, struct ms_buf *record)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", f->dir, file);
    *map = (struct cmp_mapping){true, NULL};
    tell_way(f, way, record);
    map->file = path;
    tell_way(f, file, record);
    f->conf.rules = cmp_rules_of(CMP_STRICT);
    tell_way(f, "strict-file", record);
    f->conf.rules = cmp_rules_of(CMP_CUR);
    *map = (struct cmp_mapping){false, NULL};
}

/* The mapping that an alignment writes, as it is written and as it pairs. */
static void tell_layers(struct fixture *f, struct ms_buf *record)
{
    struct ms_buf text = {.max = 1 << 20};
    f->conf.matching = CMP_MATCH_ALWAYS;
    tell_way(f, "aligned", record);
    ck_ok(cmp__write_layers(&f->c->rows, &text, &f->err), f->err);
    ms_buf_printf(record, " %06x", (unsigned)(ms_str_hash(ms_buf_slice(&text)) & 0xffffff));
    fixture_write(f, "layers.yaml", ms_buf_z(&text));
    ms_buf_free(&text);
    tell_mapped(f, &f->conf.layer, "layers", "layers.yaml", record);
}

static void tell_pinned(struct fixture *f, struct ms_buf *record)
{
    char path[160];
    snprintf(path, sizeof path, "%s/pins.yaml", f->dir);
    f->conf.pins = path;
    tell_way(f, "pins", record);
    f->conf.pins = NULL;
    f->conf.data_mapping = path;
    tell_way(f, "data", record);
    f->conf.data_mapping = NULL;
}

static void record_case(unsigned seed, struct ms_buf *record)
{
    struct fixture f;
    struct dm_side side[2];
    chance.state = seed;
    fixture_init(&f);
    dm_draw(side, seed + 1000, 2);
    if (side[0].shapes_only) { /* a table needs values */
        dm_free(side);
        fixture_free(&f);
        return;
    }
    fixture_write(&f, "b/dump.json", ms_buf_z(&side[0].dump));
    fixture_write(&f, "t/dump.json", ms_buf_z(&side[1].dump));
    fixture_write(&f, "b/construct.json", ms_buf_z(&side[0].construct));
    fixture_write(&f, "t/construct.json", ms_buf_z(&side[1].construct));
    ms_buf_printf(record, "%u", seed);
    tell_names(&f, record);
    f.conf.matching = CMP_MATCH_EXACT;
    fixture_open(&f);
    write_stack(&f, "t/stack.json", f.c->rows.t.dump);
    write_stack(&f, "b/stack.json", f.c->rows.b.dump);
    write_apis(&f);
    write_cells(&f);
    write_pins(&f);
    tell_mapped(&f, &f.conf.api, "api", "apis.yaml", record);
    tell_mapped(&f, &f.conf.cell, "cells", "cells.yaml", record);
    tell_layers(&f, record);
    tell_pinned(&f, record);
    ms_buf_puts(record, "\n");
    dm_free(side);
    fixture_free(&f);
}

/* ---- training against inference ------------------------------------------------------------------------------ */

static void put_engine(struct ms_buf *b, bool training, bool fsdp, unsigned records)
{
    static const char *const tops[][2] = {{"Module.model.", "Module._fsdp_wrapped_module.model."},
                                          {"Module.", "Module.module.module."},
                                          {"Module.model.", "Module.0.module.module."}},
                             *const parts[][3] = {
                                 {"q_proj.Linear", "qkv_proj.QKVParallelLinear",
                                  "linear_qkv.Column"},
                                 {"k_proj.Linear", "qkv_proj.QKVParallelLinear",
                                  "linear_qkv.Column"},
                                 {"up_proj.Linear", "gate_up_proj.Merged", "linear_fc1.Column"},
                                 {"gate_proj.Linear", "gate_up_proj.Merged", "linear_fc1.Column"},
                                 {"down_proj.Linear", "down_proj.Row", "linear_fc2.Row"},
                                 {"norm.Qwen2RMSNorm", "norm.RMSNorm", "norm.RMSNorm"},
                                 {"model.Qwen3Model", "model.Qwen3Model", "decoder.GPTModel"},
                                 {"embed_tokens.Embedding", "embed_tokens.VocabParallelEmbedding",
                                  "word_embeddings.VocabParallelEmbedding"}};
    unsigned calls[64] = {0};
    for (unsigned i = 0; i < records; i++) {
        const unsigned top = below(3), part = below(8), layer = below(4), kind = below(12),
                       form = !training ? 1
                              : fsdp    ? 0
                                        : 2;
        char name[200], inner[40] = "";
        if (layer < 3)
            snprintf(inner, sizeof inner, "layers.%u.%s", layer,
                     training && fsdp && below(2) == 0 ? "_fsdp_wrapped_module." : "");
        snprintf(name, sizeof name, "%s%s%s", tops[top][training], inner, parts[part][form]);
        unsigned *call = &calls[(top * 32 + part * 4 + layer) % 64];
        ms_buf_printf(b, "%s\"", b->n != 0 ? ",\n" : "");
        if (kind == 0)
            ms_buf_printf(b, "Functional.%s.%u.forward", parts[part][0], i);
        else if (kind == 1)
            ms_buf_printf(b, "%s.%u.parameters_grad", name, i);
        else
            ms_buf_printf(b, "%s.%s.%u", name, kind == 2 ? "backward" : "forward",
                          kind == 2 ? i : 1000 * (top * 32 + part * 4 + layer) + (*call)++);
        ms_buf_puts(b, "\": {\"input_args\": [" TENSOR("1", "0", "0.5", "2") "], \"output\": [");
        for (unsigned n = below(3); n > 0; n--)
            ms_buf_puts(b, n > 1 ? TENSOR("2", "0", "0.5", "2") "," : TENSOR("3", "0", "0.5", "2"));
        ms_buf_puts(b, "]}");
    }
}

static void record_engines(unsigned seed, struct ms_buf *record)
{
    struct fixture f;
    struct ms_buf b[2] = {{.max = 1 << 20}, {.max = 1 << 20}};
    chance.state = seed * 77 + 5;
    fixture_init(&f);
    const bool fsdp = below(2) == 0;
    put_engine(&b[0], true, fsdp, 30 + below(30));
    put_engine(&b[1], false, fsdp, 20 + below(20));
    fixture_pair(&f, ms_buf_z(&b[0]), ms_buf_z(&b[1]));
    f.conf.consistent = fsdp ? CMP_CONSISTENT_FSDP : CMP_CONSISTENT_MEGATRON;
    ms_buf_printf(record, "engines %u", seed);
    tell_way(&f, fsdp ? "fsdp" : "megatron", record);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    tell_way(&f, "strict", record);
    ms_buf_puts(record, "\n");
    ms_buf_free(&b[0]);
    ms_buf_free(&b[1]);
    fixture_free(&f);
}

START_TEST(rows_are_paired_as_on_record)
{
    struct ms_buf now = {.max = 1 << 20};
    for (unsigned seed = 1; seed <= CASES; seed++)
        record_case(seed, &now);
    for (unsigned seed = 1; seed <= ENGINES; seed++)
        record_engines(seed, &now);
    recorded_check_file(
        RECORD, &now,
        "case, then for each way its name, number of pairs and hash of pairs and problems; "
        "PAIR_SHOW=WAY shows them");
    ms_buf_free(&now);
}
END_TEST

RECORDED_MAIN("pair_drawn", rows_are_paired_as_on_record)
