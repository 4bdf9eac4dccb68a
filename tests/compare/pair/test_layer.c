/* SPDX-License-Identifier: MIT
 *
 * layer: drawn models under a layer mapping.  A model is a list of places with operators; the golden side
 * has other names for the same places, which the mapping tells, and lacks or repeats some operators.  The
 * n-th operator of a place belongs to the n-th of the place that the mapping names.
 */
#include "tests/support/cmp_fixture.h"

#include "compare/pair/layer.h"
#include "compare/table/comparison.h"

enum { CASES = 60, PLACES = 9, MOST = 200 };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* A place in a block: its module on both sides, the operator in it, and the function of the framework that
 * calls the operator (NULL: called by the model itself). */
static const struct place {
    const char *target, *golden; /* below the block; "": the block itself */
    const char *api[2];          /* operator of target and golden */
    const char *function;
    bool dropped; /* the mapping says N/A */
} places[PLACES] = {
    {"attn.wq", "self_attn.q_proj", {"Mint.matmul", "Functional.linear"}, NULL, false},
    {"attn.wk", "self_attn.k_proj", {"Mint.matmul", "Functional.linear"}, NULL, false},
    {"attn.wv", "self_attn.v_proj", {"Mint.matmul", "Functional.linear"}, NULL, false},
    {"attn", "self_attn", {"Mint.softmax", "Torch.softmax"}, "attend", false},
    {"attn", "self_attn", {"Mint.mul", "Torch.mul"}, NULL, false},
    {"attn", "self_attn", {"Mint.cast", "Torch.cast"}, NULL, true},
    {"ffn.w1", "mlp.gate_proj", {"Mint.matmul", "Functional.linear"}, NULL, false},
    {"", "", {"Mint.add", "Torch.add"}, NULL, false},
    {"", "", {"Primitive.norm.RmsNorm", "NPU.npu_rms_norm"}, NULL, false}};

static const char mapping[] = "TopLayer:\n  net: model\n"
                              "Net:\n  blocks: layers\n"
                              "Block:\n  attn: self_attn\n  ffn: mlp\n  RmsNorm: npu_rms_norm\n"
                              "Attention:\n  wq: q_proj\n  wk: k_proj\n  wv: v_proj\n  cast: N/A\n"
                              "FeedForward:\n  w1: gate_proj\n"
                              "Dense:\n  matmul: linear\n";

/* An operator of a side: its name, its golden place and its number there. */
struct op {
    char name[80], place[80];
    unsigned number;
    bool backward;
};

struct side {
    struct op op[MOST];
    size_t ops;
    struct ms_buf data, tree, stack;
    unsigned calls[2 * PLACES];
};

static struct side side[2];

static void put_record(struct side *s, const char *name, const char *parent)
{
    ms_buf_printf(&s->data, "%s\"%s\":{\"%s\":[" TENSOR("1.0", "0.0", "0.5", "1.0") "]}",
                  s->data.n != 0 ? ",\n" : "", name,
                  strstr(name, "backward") != NULL ? "input" : "output");
    ms_buf_printf(&s->tree, "%s\"%s\":", s->tree.n != 0 ? "," : "", name);
    ms_buf_printf(&s->tree, parent != NULL ? "\"%s\"" : "null", parent);
}

static void put_stack(struct side *s, const char *name, const char *function, bool golden)
{
    ms_buf_printf(&s->stack, "%s\"%s\":[", s->stack.n != 0 ? "," : "", name);
    if (function != NULL)
        ms_buf_printf(&s->stack,
                      "\"File /usr/lib/python3/site-packages/%s/nn/inner.py, line 1, in inner, "
                      "\\n x\",\"File /usr/lib/python3/site-packages/%s/nn/f.py, line 2, in %s, "
                      "\\n y\",",
                      golden ? "torch" : "mindspore", golden ? "torch" : "mindspore", function);
    ms_buf_puts(&s->stack, "\"File /home/me/model.py, line 7, in forward, \\n z\"]");
}

/* The call of an operator counts all operators with its name. */
static unsigned call_of(struct side *s, const char *api, bool golden)
{
    for (unsigned i = 0;; i++) {
        if (strcmp(places[i].api[golden], api) == 0)
            return s->calls[i]++;
    }
}

static void note_op(struct side *s, const char *name, const char *place, bool backward)
{
    struct op *o = &s->op[s->ops];
    ck_assert_uint_lt(s->ops, MOST);
    *o = (struct op){.backward = backward};
    snprintf(o->name, sizeof o->name, "%s", name);
    snprintf(o->place, sizeof o->place, "%s", place);
    for (size_t i = 0; i < s->ops; i++)
        o->number += strcmp(s->op[i].place, place) == 0 && s->op[i].backward == backward;
    s->ops++;
}

static void put_op(struct side *s, bool golden, unsigned block, const struct place *p,
                   const char *module, bool backward)
{
    char name[80], place[160];
    const unsigned call = call_of(s, p->api[golden], golden);
    const char *api = strrchr(places[p - places].api[1], '.') + 1;
    snprintf(place, sizeof place, "model.layers.%u%s%s%s%s.%s", block, p->golden[0] != 0 ? "." : "",
             p->golden, p->function != NULL ? "." : "", p->function != NULL ? p->function : "",
             p->dropped && !golden ? "none" : api);
    snprintf(name, sizeof name, "%s.%u.forward", p->api[golden], call);
    put_record(s, name, module);
    put_stack(s, name, p->function, golden);
    note_op(s, name, place, false);
    if (!backward)
        return;
    snprintf(name, sizeof name, "%s.%u.backward", p->api[golden], call);
    put_record(s, name, module);
    note_op(s, name, place, true);
}

static void put_module(struct side *s, char name[96], bool golden, unsigned block,
                       const char *below_it, const char *class, const char *parent)
{
    snprintf(name, 96, "%s.%u%s%s.%s.forward.0", golden ? "Module.model.layers" : "Cell.net.blocks",
             block, below_it[0] != 0 ? "." : "", below_it, class);
    put_record(s, name, parent);
    put_stack(s, name, NULL, golden);
}

/* The modules of a block, then its operators; each as often as is drawn. */
static void put_block(struct side *s, bool golden, unsigned block, const char *top)
{
    char in_block[96], module[3][96], leaf[96];
    put_module(s, in_block, golden, block, "", golden ? "DecoderLayer" : "Block", top);
    put_module(s, module[0], golden, block, golden ? "self_attn" : "attn",
               golden ? "SelfAttention" : "Attention", in_block);
    put_module(s, module[1], golden, block, golden ? "mlp" : "ffn", golden ? "MLP" : "FeedForward",
               in_block);
    for (int i = 0; i < PLACES; i++) {
        const struct place *p = &places[i];
        const char *where = golden ? p->golden : p->target;
        const char *parent = where[0] == 0                        ? in_block
                             : where[0] == 'a' || where[0] == 's' ? module[0]
                                                                  : module[1];
        if (strchr(where, '.') != NULL) {
            put_module(s, leaf, golden, block, where, golden ? "Linear" : "Dense", parent);
            parent = leaf;
        }
        for (uint32_t n = below(8) == 0 ? below(3) : 1; n > 0; n--)
            put_op(s, golden, block, p, parent, below(4) == 0);
    }
}

static void write_side(struct fixture *f, bool golden, unsigned blocks)
{
    struct side *s = &side[golden];
    struct ms_buf text = {.max = 1 << 18};
    const char *top = golden ? "Module.model.Model.forward.0" : "Cell.net.Net.forward.0";
    *s = (struct side){.data.max = 1 << 18, .tree.max = 1 << 18, .stack.max = 1 << 18};
    put_record(s, top, NULL);
    put_stack(s, top, NULL, golden);
    for (unsigned b = 0; b < blocks; b++)
        put_block(s, golden, b, top);
    fixture_dump(f, "tb"[golden], "statistics", golden ? "pytorch" : "mindspore",
                 ms_buf_z(&s->data));
    ms_buf_printf(&text, "{%s}", ms_buf_z(&s->tree));
    fixture_write(f, golden ? "b/construct.json" : "t/construct.json", ms_buf_z(&text));
    ms_buf_clear(&text);
    ms_buf_printf(&text, "{%s}", ms_buf_z(&s->stack));
    fixture_write(f, golden ? "b/stack.json" : "t/stack.json", ms_buf_z(&text));
    ms_buf_free(&text);
    ms_buf_free(&s->data);
    ms_buf_free(&s->tree);
    ms_buf_free(&s->stack);
}

static const struct op *partner_of(const struct op *o)
{
    for (size_t i = 0; i < side[1].ops; i++) {
        const struct op *g = &side[1].op[i];
        if (strcmp(g->place, o->place) == 0 && g->number == o->number && g->backward == o->backward)
            return g;
    }
    return NULL;
}

static void row_name(char to[120], const struct op *o)
{
    snprintf(to, 120, "%.80s.%s.0", o->name, o->backward ? "input" : "output");
}

static void check_pairs(struct fixture *f, unsigned seed)
{
    size_t paired = 0;
    for (size_t i = 0; i < side[0].ops; i++) {
        const struct op *o = &side[0].op[i], *g = partner_of(o);
        char name[120], want[120] = "N/A";
        row_name(name, o);
        if (g != NULL)
            row_name(want, g);
        const struct cmp_row *row = fixture_row(f, name);
        ck_assert_msg(ms_str_is(row->b.name, want), "seed %u: %s is with %.*s, not %s", seed, name,
                      MS_STR_ARG(row->b.name), want);
        paired += g != NULL;
    }
    ck_assert_uint_gt(paired, side[0].ops / 3); /* the other side has fewer, or no backward */
}

static void draw(struct fixture *f, unsigned seed)
{
    char path[128];
    state = seed;
    fixture_init(f);
    const unsigned blocks = 1 + below(3);
    write_side(f, false, blocks);
    write_side(f, true, blocks + (below(3) == 0));
    fixture_write(f, "layers.yaml", mapping);
    snprintf(path, sizeof path, "%s/layers.yaml", f->dir);
    f->conf.layer.on = true;
    f->conf.layer.file = strdup(path);
}

static void end(struct fixture *f)
{
    free((void *)(uintptr_t)f->conf.layer.file);
    fixture_free(f);
}

START_TEST(the_nth_of_a_place_is_with_the_nth_of_the_place_that_is_mapped)
{
    for (unsigned seed = 1; seed <= CASES; seed++) {
        struct fixture f;
        draw(&f, seed);
        fixture_open(&f);
        ck_assert(cmp_maps_layers(f.c));
        check_pairs(&f, seed);
        end(&f);
    }
}
END_TEST

static enum ms_rc opens(struct fixture *f)
{
    fixture_close(f);
    ms_err_clear(&f->err);
    const enum ms_rc rc = cmp_open(&f->c, &f->conf, f->t, f->b, NULL, &f->err);
    if (rc == MS_OK)
        ck_ok(cmp_view_init(&f->v, &f->err), f->err);
    return rc;
}

static bool is_told(const struct fixture *f, const char *what)
{
    const struct ms_str *list;
    const size_t n = cmp_problems(f->c, &list);
    for (size_t i = 0; i < n; i++) {
        if (ms_str_find_str(list[i], ms_str_of(what)) >= 0)
            return true;
    }
    return false;
}

static void remove_file(const struct fixture *f, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    ck_assert_int_eq(unlink(path), 0);
}

START_TEST(a_side_without_its_files_is_told)
{
    for (int golden = 0; golden < 2; golden++) {
        struct fixture f;
        char words[64];
        draw(&f, 3);
        remove_file(&f, golden ? "b/stack.json" : "t/stack.json");
        ck_assert_int_eq(opens(&f), MS_E_NOTFOUND);
        ck_says(f.err, "-lm needs stack.json beside both dumps");
        snprintf(words, sizeof words, "/%c/dump.json", "tb"[golden]);
        ck_says(f.err, words);
        remove_file(&f, golden ? "b/construct.json" : "t/construct.json");
        ck_assert_int_eq(opens(&f), MS_OK);
        snprintf(words, sizeof words, "/%c/dump.json: neither stack.json nor construct.json",
                 "tb"[golden]);
        ck_assert(is_told(&f, words));
        end(&f);
    }
}
END_TEST

/* ---- an alignment written as a layer mapping ------------------------------------------------------- */

/* Read back, the mapping pairs no operators but those that the alignment pairs. */
START_TEST(an_alignment_that_is_written_pairs_the_same)
{
    size_t kept = 0, all = 0;
    for (unsigned seed = 1; seed <= CASES / 2; seed++) {
        struct fixture f, again;
        struct ms_buf text = {.max = 1 << 20};
        char name[120];
        draw(&f, seed);
        f.conf.layer.on = false;
        fixture_open(&f);
        ck_assert_ptr_nonnull(cmp_alignment(f.c));
        ck_ok(cmp__write_layers(&f.c->rows, &text, &f.err), f.err);
        draw(&again, seed);
        fixture_write(&again, "layers.yaml", ms_buf_z(&text));
        fixture_open(&again);
        for (size_t i = 0; i < side[0].ops; i++) {
            if (side[0].op[i].backward)
                continue;
            row_name(name, &side[0].op[i]);
            const struct cmp_row *row = fixture_row(&f, name);
            char was[120];
            snprintf(was, sizeof was, "%.*s", MS_STR_ARG(row->b.name));
            row = fixture_row(&again, name);
            all += strcmp(was, "N/A") != 0;
            kept += strcmp(was, "N/A") != 0 && ms_str_is(row->b.name, was);
        }
        ms_buf_free(&text);
        end(&f);
        end(&again);
    }
    ck_assert_msg(kept * 10 >= all * 8, "%zu of %zu", kept, all);
}
END_TEST

TEST_MAIN("layer", the_nth_of_a_place_is_with_the_nth_of_the_place_that_is_mapped,
          a_side_without_its_files_is_told, an_alignment_that_is_written_pairs_the_same)
