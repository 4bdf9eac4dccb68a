/* SPDX-License-Identifier: MIT
 *
 * align_drawn: the alignment of drawn models as it is on record: pairs, members, rows, what is said of each
 * node, and the evidence for each two operators and modules, which decides nothing where others win.
 *
 *     build/tests/test_align_drawn --update        records a change that is meant
 */
#include "compare/align/emit.h"
#include "compare/align/module_match.h"
#include "compare/align/score.h"
#include "tests/support/drawn_model.h"
#include "tests/support/recorded.h"

enum { CASES = 160, LARGE = 20 }; /* of a large one the evidence is left out */
#define RECORD "tests/data/align/drawn/models.txt"

struct drawn {
    struct dm_side text[2];
    struct probe_dump *dump[2];
    struct probe_tree tree[2];
    struct cmp_align *al;
};

static void open_drawn(struct drawn *d, unsigned seed)
{
    struct ms_err err = {0};
    struct cmp_align_input in[2];
    struct cmp_align_pin pin[2];
    memset(d, 0, sizeof *d);
    dm_draw(d->text, seed, seed % 80 == 0 ? LARGE : 2);
    for (int k = 0; k < 2; k++) {
        ck_ok(probe_dump_parse(&d->dump[k], "drawn", ms_buf_slice(&d->text[k].dump), 0, NULL, &err),
              err);
        ck_ok(probe_tree_parse(&d->tree[k], "drawn", ms_buf_slice(&d->text[k].construct), 0, &err),
              err);
        in[k] = (struct cmp_align_input){d->dump[k], d->text[k].tree ? &d->tree[k] : NULL};
    }
    for (unsigned i = 0; i < 2; i++) {
        pin[i].target = probe_node_name(d->dump[1], (seed * 5 + i * 7) % d->dump[1]->nodes.n);
        pin[i].golden = i == 1 && seed % 2 == 0
                            ? MS_STR("")
                            : probe_node_name(d->dump[0], (seed * 3 + i) % d->dump[0]->nodes.n);
    }
    ck_ok(cmp_align_new(&d->al, &in[1], &in[0], pin, seed % 8 == 0 ? 2 : 0, NULL, &err), err);
}

static void close_drawn(struct drawn *d)
{
    cmp_align_free(d->al);
    for (int k = 0; k < 2; k++) {
        probe_dump_close(d->dump[k]);
        probe_tree_close(&d->tree[k]);
    }
    dm_free(d->text);
}

static void mix(uint64_t *h, double x)
{
    *h = ms_hash_mix(*h, (uint64_t)(int64_t)lrint(x * 1000));
}

static void tell_rows(const struct cmp_align *al, const struct cmp_align_pair *p,
                      struct ms_buf *out)
{
    static struct cmp_align_row rows[4096];
    const size_t n = cmp_align_rows(al, p, rows);
    for (size_t i = 0; i < n; i++)
        ms_buf_printf(out, " %u:%u", rows[i].target, rows[i].golden);
}

static void tell_pairs(const struct drawn *d, struct ms_buf *out)
{
    size_t n;
    const struct cmp_align_pair *p = cmp_align_pairs(d->al, &n), *of;
    for (size_t i = 0; i < n; i++) {
        ms_buf_printf(out, "%u %u %.3f %s %d", p[i].target, p[i].golden, (double)p[i].confidence,
                      cmp_align_how_names[p[i].how], p[i].more);
        for (int golden = 0; golden < 2; golden++) {
            const uint32_t *members;
            const size_t many = cmp_align_members(d->al, &p[i], golden != 0, &members);
            for (size_t k = 0; k < many; k++)
                ms_buf_printf(out, " %d/%u", golden, members[k]);
        }
        tell_rows(d->al, &p[i], out);
        ms_buf_puts(out, "\n");
    }
    for (uint32_t i = 0; i < d->dump[1]->nodes.n; i++)
        ms_buf_printf(out, "%zu ", cmp_align_of(d->al, i, &of));
    for (uint32_t i = 0; i < d->dump[0]->nodes.n; i++)
        ms_buf_printf(out, "%u ", cmp_align_of_golden(d->al, i));
}

static void tell_words(const struct drawn *d, struct ms_buf *out)
{
    struct ms_err err = {0};
    const struct cmp_align_stats s = cmp_align_stats(d->al);
    ms_buf_printf(out, "%d %.4f %zu %zu %zu %zu %llu %zu %d\n", s.by_value, s.noise, s.ops[0],
                  s.ops[1], s.pairs, s.anchors, (unsigned long long)s.cells, s.unknown_names,
                  cmp_align_wanted(d->dump[1], d->dump[0]));
    ck_ok(cmp_align_write_rows(d->al, out, &err), err);
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < d->dump[k]->nodes.n; i++)
            cmp_align_explain(d->al, k == 0, i, out);
    }
}

static void mix_evidence(uint64_t *h, const struct align__ctx *c, uint32_t a, uint32_t b)
{
    struct align__evidence e;
    align__weigh_pair(c, a, b, &e);
    mix(h, e.veto);
    mix(h, e.out);
    mix(h, e.family);
    if (e.veto)
        return;
    const float all[] = {e.shape, e.in, e.param, e.shared_use, e.score, e.module};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        mix(h, all[i]);
    mix(h, e.same_in + 2 * e.families_known + 4 * e.refuted + 8 * e.blind + 16 * e.last +
               32 * e.ends + 64 * e.unread + 128 * align__accept_pair(c, &e));
}

/* Evidence in the first and in a later round, for every two operators. */
static uint64_t evidence_of(struct align__ctx *c)
{
    uint64_t h = 1;
    for (c->round = 0; c->round < 2; c->round++) {
        for (uint32_t a = 0; a < c->side[0].ops.n; a++) {
            for (uint32_t b = 0; b < c->side[1].ops.n; b++)
                mix_evidence(&h, c, a, b);
        }
    }
    return h;
}

static uint64_t likeness_of(const struct align__ctx *c)
{
    uint64_t h = 1;
    for (uint32_t a = 0; a < c->side[0].modules.n; a++) {
        for (uint32_t b = 0; b < c->side[1].modules.n; b++) {
            bool met;
            mix(&h, align__word_likeness(c, a, b));
            mix(&h,
                align__param_likeness(c, &c->side[0].modules.p[a], &c->side[1].modules.p[b], &met));
            mix(&h, met);
        }
    }
    for (uint32_t a = 0; a < c->dims.list.n; a++) {
        for (uint32_t b = 0; b < c->dims.list.n; b++)
            mix(&h, (double)align__dims_ratio(&c->dims, a, b));
    }
    return h;
}

static uint64_t side_of(const struct align__side *s)
{
    uint64_t h = 1;
    for (uint32_t i = 0; i < s->ops.n; i++) {
        const struct align__op *o = &s->ops.p[i];
        const double all[] = {o->node, o->parent, o->family, o->first, o->twin,  o->back,
                              o->nin,  o->nparam, o->nout,   o->last,  o->passes};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            mix(&h, all[k]);
    }
    for (uint32_t i = 0; i < s->modules.n; i++) {
        const struct align__module *m = &s->modules.p[i];
        const double all[] = {m->node,   m->parent, m->lo,    m->hi,     m->direct,
                              m->place,  m->params, m->outs,  m->twin,   m->back,
                              m->nparam, m->nout,   m->again, m->path.n, m->cls.n};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            mix(&h, all[k]);
    }
    for (uint32_t i = 0; i < s->tensors.n; i++)
        h = ms_hash_mix(ms_hash_mix(h, s->tensors.p[i].value), s->tensors.p[i].row);
    for (uint32_t i = 0; i < s->values.n; i++) {
        const struct align__value *v = &s->values.p[i];
        const double all[] = {(double)v->n, v->ln_norm, v->ln_peak, v->producer,   v->module,
                              v->uses,      v->cls,     v->known,   v->digest != 0};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            mix(&h, all[k]);
    }
    return h;
}

static unsigned low(uint64_t h)
{
    return (unsigned)(h & 0xffffff);
}

static void record_case(unsigned seed, struct ms_buf *record)
{
    struct ms_buf pairs = {.max = 1 << 24}, words = {.max = 1 << 24};
    struct drawn d;
    open_drawn(&d, seed);
    tell_pairs(&d, &pairs);
    tell_words(&d, &words);
    ms_buf_printf(record, "%u %zu", seed, cmp_align_stats(d.al).pairs);
    const uint64_t all[] = {ms_str_hash(ms_buf_slice(&pairs)),
                            ms_str_hash(ms_buf_slice(&words)),
                            side_of(&d.al->c.side[0]),
                            side_of(&d.al->c.side[1]),
                            likeness_of(&d.al->c),
                            evidence_of(&d.al->c)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ms_buf_printf(record, " %06x", low(all[i]));
    ms_buf_puts(record, "\n");
    if (getenv("ALIGN_SHOW") != NULL && strtoul(getenv("ALIGN_SHOW"), NULL, 10) == seed)
        printf("%s\n%s", ms_buf_z(&pairs), ms_buf_z(&words));
    ms_buf_free(&pairs);
    ms_buf_free(&words);
    close_drawn(&d);
}

START_TEST(alignments_are_those_on_record)
{
    struct ms_buf now = {.max = 1 << 20};
    for (unsigned seed = 1; seed <= CASES; seed++)
        record_case(seed, &now);
    recorded_check_file(
        RECORD, &now,
        "case, pairs, then hashes of pairs, words, golden side, target side, likeness of "
        "modules and shapes, evidence; ALIGN_SHOW=CASE shows it");
    ms_buf_free(&now);
}
END_TEST

RECORDED_MAIN("align_drawn", alignments_are_those_on_record)
