/* SPDX-License-Identifier: MIT
 *
 * likeness: how similar two names of modules or operators are, and two tensors.
 */
#include "compare/align/likeness.h"
#include "compare/align/search.h"
#include "probe/base/assert.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------ */

/* How similar the names of operators and of modules are.
 *
 * Operators are compared by the last part of their names, in lower case and without
 * the underscores of Python's methods: Tensor.__iadd__, Mint.add and Primitive.Add
 * are one family. For names in no family the likeness is learned: two names belong
 * together when their calls have often been paired by value.
 *
 * The words of a module are those of its own name and its class ("input_norm" and
 * "FusedRMSNorm": input, norm, fused, rms); words that few modules have weigh more. */

struct align__family {
    const char *name;
    bool view;
    uint64_t members[3], tails[3], last[3]; /* of a fused family: sets of families */
};

#include "compare/align/family_table.h"

enum { NAME_MAX_BYTES = 64 };

/* Writes the last part of a name in lower case and returns its length; 0: it is empty, or too long
 * for the table. */
static size_t bare_name(struct ms_str api, char out[NAME_MAX_BYTES])
{
    struct ms_str s = probe_name_last(api);
    while (s.n > 0 && s.p[0] == '_')
        s = ms_str_sub(s, 1, s.n);
    while (s.n > 0 && s.p[s.n - 1] == '_')
        s.n--;
    if (s.n >= NAME_MAX_BYTES)
        return 0;
    for (uint32_t i = 0; i < s.n; i++)
        out[i] = (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] + ('a' - 'A') : s.p[i]);
    return s.n;
}

uint16_t align__family_find(struct ms_str api)
{
    char name[NAME_MAX_BYTES];
    struct ms_str key = {name, (uint32_t)bare_name(api, name)};
    size_t lo = 0;
    size_t hi = sizeof align__family_names / sizeof *align__family_names;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = ms_str_cmp(ms_str_of(align__family_names[mid].name), key);
        if (c == 0)
            return align__family_names[mid].family;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return ALIGN__FAM_UNKNOWN;
}

enum ms_rc align__names_put(struct align__names *names, struct ms_str api, uint32_t *id,
                            struct ms_err *err)
{
    bool added;
    *id = ms_map_put(&names->apis, api, &added);
    if (*id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added)
        return MS_OK;
    uint16_t *family = ms_vec_push(&names->family);
    if (family == NULL)
        return ms_no_memory(err);
    *family = align__family_find(api);
    uint32_t *twin = ms_vec_push(&names->twin);
    float *share = ms_vec_push(&names->twin_share);
    if (twin == NULL || share == NULL)
        return ms_no_memory(err);
    *twin = ALIGN__NONE;
    *share = 0;
    ms_assert(*id + 1 == names->family.n && names->family.n == names->twin.n &&
              names->family.n == names->twin_share.n);
    return MS_OK;
}

void align__names_free(struct align__names *names)
{
    ms_map_free(&names->apis);
    ms_vec_free(&names->family);
    ms_vec_free(&names->twin);
    ms_vec_free(&names->twin_share);
}

const char *align__family_text(uint16_t family)
{
    return family < ALIGN__FAM_COUNT ? align__families[family].name : "unknown";
}

bool align__family_is_view(uint16_t family)
{
    return family < ALIGN__FAM_COUNT && align__families[family].view;
}

bool align__family_is_split(uint16_t family)
{
    return family == ALIGN__FAM_SPLIT;
}

uint16_t align__family_with_weight(uint16_t family)
{
    if (family == ALIGN__FAM_MATMUL)
        return ALIGN__FAM_LINEAR;
    return family == ALIGN__FAM_ADD ? ALIGN__FAM_BIASADD : family;
}

bool align__family_is_collective(uint16_t family)
{
    return family >= ALIGN__FAM_ALLREDUCE && family <= ALIGN__FAM_REDUCESCATTER;
}

static bool is_linear_family(uint16_t family)
{
    return family == ALIGN__FAM_LINEAR || family == ALIGN__FAM_MATMUL;
}

static bool has_family(const uint64_t set[3], uint16_t family)
{
    return set[family / 64] >> family % 64 & 1;
}

/* Likeness of a fused family and one of its members. */
static float fused_likeness(uint16_t fused, uint16_t member)
{
    ms_assert(fused < ALIGN__FAM_COUNT && member < ALIGN__FAM_COUNT);
    if (has_family(align__families[fused].last, member))
        return 0.7F;
    if (has_family(align__families[fused].tails, member))
        return 0.5F;
    return has_family(align__families[fused].members, member) ? 0.1F : 0;
}

float align__family_likeness(uint16_t a, uint16_t b)
{
    if (a >= ALIGN__FAM_COUNT || b >= ALIGN__FAM_COUNT)
        return 0;
    if (a == b)
        return 1;
    /* A projection and the split behind it produce the same values. */
    if ((align__family_is_split(a) && is_linear_family(b)) ||
        (align__family_is_split(b) && is_linear_family(a)))
        return 0.4F;
    float ab = fused_likeness(a, b);
    float ba = fused_likeness(b, a);
    return ab > ba ? ab : ba;
}

bool align__family_fuses(uint16_t fused, uint16_t tail)
{
    return fused < ALIGN__FAM_COUNT && tail < ALIGN__FAM_COUNT &&
           has_family(align__families[fused].tails, tail);
}

/* ---- words of modules ---------------------------------------------------- */

static bool is_upper(char ch)
{
    return ch >= 'A' && ch <= 'Z';
}
static bool is_letter(char ch)
{
    return is_upper(ch) || (ch >= 'a' && ch <= 'z');
}

/* Removes the next word from *rest and returns it. A word ends at a non-letter or where a capital
 * starts a new word ("RMSNorm": rms, norm). */
static struct ms_str next_word(struct ms_str *rest)
{
    uint32_t from = 0;
    while (from < rest->n && !is_letter(rest->p[from]))
        from++;
    uint32_t to = from;
    for (; to < rest->n && is_letter(rest->p[to]); to++) {
        bool begins =
            to > from && is_upper(rest->p[to]) &&
            (!is_upper(rest->p[to - 1]) ||
             (to + 1 < rest->n && is_letter(rest->p[to + 1]) && !is_upper(rest->p[to + 1])));
        if (begins)
            break;
    }
    struct ms_str word = ms_str_sub(*rest, from, to);
    *rest = ms_str_sub(*rest, to, rest->n);
    return word;
}

struct word_table {
    struct ms_map map;
    MS_VEC(uint32_t) uses;
};

static enum ms_rc add_word(struct align__ctx *c, struct word_table *t, struct align__words *w,
                           struct ms_str word, struct ms_err *err)
{
    char lower[32];
    uint32_t n = word.n < sizeof lower ? word.n : (uint32_t)sizeof lower;
    for (uint32_t i = 0; i < n; i++)
        lower[i] = (char)(is_upper(word.p[i]) ? word.p[i] + ('a' - 'A') : word.p[i]);
    bool added;
    uint32_t id = ms_map_put_copy(&t->map, (struct ms_str){lower, n}, c->arena, &added);
    if (id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (added) {
        uint32_t *uses = ms_vec_push(&t->uses);
        if (uses == NULL)
            return ms_no_memory(err);
        *uses = 0;
    }
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->id[i] == id)
            return MS_OK;
    }
    if (w->n < ALIGN__WORDS) {
        w->id[w->n++] = id;
        t->uses.p[id]++;
    }
    return MS_OK;
}

static enum ms_rc split_names(struct align__ctx *c, struct word_table *t, int side,
                              struct ms_err *err)
{
    const struct align__side *s = &c->side[side];
    c->words[side] = ms_arena_calloc(c->arena, s->modules.n + 1, sizeof *c->words[side]);
    if (c->words[side] == NULL)
        return ms_arena_fail(c->arena, err);
    for (uint32_t i = 0; i < s->modules.n; i++) {
        const struct ms_str part[2] = {s->modules.p[i].path, s->modules.p[i].cls};
        for (int k = 0; k < 2; k++) {
            struct ms_str rest = part[k];
            for (struct ms_str word = next_word(&rest); word.n != 0; word = next_word(&rest))
                MS_TRY(add_word(c, t, &c->words[side][i], word, err));
        }
    }
    return MS_OK;
}

enum ms_rc align__words_read(struct align__ctx *c, struct ms_err *err)
{
    struct word_table t = {.map = {.slots = NULL}};
    enum ms_rc rc = split_names(c, &t, 0, err);
    if (rc == MS_OK)
        rc = split_names(c, &t, 1, err);
    if (rc == MS_OK) {
        c->word_weight = ms_arena_alloc(c->arena, (t.uses.n + 1) * sizeof *c->word_weight);
        rc = c->word_weight != NULL ? MS_OK : ms_arena_fail(c->arena, err);
    }
    float all = (float)(c->side[0].modules.n + c->side[1].modules.n);
    for (uint32_t i = 0; rc == MS_OK && i < t.uses.n; i++)
        c->word_weight[i] = logf(1 + all / (float)(t.uses.p[i] + 1));
    ms_map_free(&t.map);
    ms_vec_free(&t.uses);
    return rc;
}

float align__word_likeness(const struct align__ctx *c, uint32_t a, uint32_t b)
{
    ms_assert(a < c->side[0].modules.n && b < c->side[1].modules.n);
    const struct align__words *x = &c->words[0][a];
    const struct align__words *y = &c->words[1][b];
    float common = 0;
    float all = 0;
    for (uint32_t i = 0; i < x->n; i++)
        all += c->word_weight[x->id[i]];
    for (uint32_t j = 0; j < y->n; j++) {
        bool in_both = false;
        for (uint32_t i = 0; i < x->n; i++)
            in_both |= x->id[i] == y->id[j];
        *(in_both ? &common : &all) += c->word_weight[y->id[j]];
    }
    ms_assert(common >= 0 && common <= all * 1.0001F);
    return all > 0 ? common / all : 0;
}

/* ---- operators in no family ---------------------------------------------- */

enum { MEET_MIN = 2 };
/* a name with a larger share of all operators is too common to be evidence */
#define COMMON_MAX 0.25F

struct meeting {
    uint32_t a, b; /* numbers of a golden and a target name */
    uint32_t n;
};

static int by_names(const void *p, const void *q)
{
    const struct meeting *x = p;
    const struct meeting *y = q;
    return MS_ORDER(x->a, y->a, MS_ORDER(x->b, y->b, 0));
}

/* Sums up equal meetings and returns the number of distinct ones. */
static size_t join_meetings(struct meeting *m, size_t n)
{
    ms_assert(m != NULL);
    size_t out = 0;
    if (n != 0)
        qsort(m, n, sizeof *m, by_names);
    for (size_t i = 0; i < n; i++) {
        if (out != 0 && m[out - 1].a == m[i].a && m[out - 1].b == m[i].b)
            m[out - 1].n++;
        else
            m[out++] = m[i];
    }
    return out;
}

struct tally { /* counters by name */
    uint32_t *met[2], *ops[2];
};

/* Computes the share of both names' meetings that were with each other, and stores it as their
 * likeness when it is the best. */
static void judge_meeting(struct align__names *names, const struct tally *t,
                          const struct meeting *m, const size_t ops[2])
{
    bool common = (float)t->ops[0][m->a] > COMMON_MAX * (float)ops[0] ||
                  (float)t->ops[1][m->b] > COMMON_MAX * (float)ops[1];
    float share = 2 * (float)m->n / (float)(t->met[0][m->a] + t->met[1][m->b]);
    ms_assert(share > 0 && share <= 1);
    if (!common && m->n >= MEET_MIN && share > names->twin_share.p[m->a]) {
        names->twin.p[m->a] = m->b;
        names->twin_share.p[m->a] = share;
    }
}

static bool both_known(const struct align__names *names, uint32_t a, uint32_t b)
{
    return names->family.p[a] != ALIGN__FAM_UNKNOWN && names->family.p[b] != ALIGN__FAM_UNKNOWN;
}

static void count_meetings(struct align__ctx *c, const struct tally *t, struct meeting *m,
                           const struct align__link *pairs, size_t n)
{
    size_t met = 0; /* meetings of names that the family table does not cover */
    for (size_t i = 0; i < n; i++) {
        ms_assert(pairs[i].a < c->side[0].ops.n && pairs[i].b < c->side[1].ops.n);
        uint32_t a = c->side[0].ops.p[pairs[i].a].api, b = c->side[1].ops.p[pairs[i].b].api;
        t->met[0][a]++;
        t->met[1][b]++;
        if (!both_known(&c->names, a, b))
            m[met++] = (struct meeting){a, b, 1};
    }
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < c->side[s].ops.n; i++)
            t->ops[s][c->side[s].ops.p[i].api]++;
    }
    const size_t ops[2] = {c->side[0].ops.n, c->side[1].ops.n};
    size_t folded = join_meetings(m, met);
    for (size_t i = 0; i < folded; i++)
        judge_meeting(&c->names, t, &m[i], ops);
}

enum ms_rc align__learn_names(struct align__ctx *c, const struct align__link *pairs, size_t n,
                              struct ms_err *err)
{
    ms_assert(pairs != NULL || n == 0);
    size_t names = c->names.family.n;
    struct meeting *m = ms_alloc((n + 1) * sizeof *m);
    uint32_t *tally = ms_calloc(4 * names + 1, sizeof *tally);
    enum ms_rc rc = MS_OK;
    if (m == NULL || tally == NULL) {
        rc = ms_no_memory(err);
    } else {
        const struct tally t = {{tally, tally + names}, {tally + 2 * names, tally + 3 * names}};
        count_meetings(c, &t, m, pairs, n);
    }
    ms_free(m);
    ms_free(tally);
    return rc;
}

/* Where parameters are known, a product of two activations is no projection. */
#define UNWEIGHTED 0.15F

static bool is_unweighted(const struct align__side *s, const struct align__op *op)
{
    return s->owns && op->nparam == 0 && align__family_with_weight(op->family) != op->family &&
           is_linear_family(op->family);
}

static bool meets_weights(const struct align__ctx *c, const struct align__op *a,
                          const struct align__op *b)
{
    bool x = is_unweighted(&c->side[0], a), y = is_unweighted(&c->side[1], b);
    bool projects[2] = {a->nparam != 0 || align__family_is_split(a->family),
                        b->nparam != 0 || align__family_is_split(b->family)};
    return !(x && projects[1]) && !(y && projects[0]);
}

float align__op_likeness(const struct align__ctx *c, const struct align__op *a,
                         const struct align__op *b)
{
    if (a->family != ALIGN__FAM_UNKNOWN && b->family != ALIGN__FAM_UNKNOWN) {
        float like = align__family_likeness(a->family, b->family);
        return meets_weights(c, a, b) ? like : fminf(like, UNWEIGHTED);
    }
    ms_assert(a->api < c->names.family.n && b->api < c->names.family.n);
    return c->names.twin.p[a->api] == b->api ? c->names.twin_share.p[a->api] : 0;
}

/* ---- tensors ---------------------------------------------------------------- */

/* How similar two tensors are, by their shapes and statistics.
 *
 * Layouts differ between frameworks ([batch, sequence, hidden] and [sequence, batch,
 * hidden], [out, in] and [in, out]), so a shape is represented by its dimensions in
 * ascending order without ones. Shapes are numbered; equal shapes have equal numbers. */

static uint64_t hash_dim(const struct align__dim *d)
{
    return ms_str_hash((struct ms_str){(const char *)d->d, (uint32_t)(d->nd * sizeof d->d[0])});
}

bool align__dim_same(const struct align__dim *a, const struct align__dim *b)
{
    return a->nd == b->nd && a->n == b->n && memcmp(a->d, b->d, a->nd * sizeof a->d[0]) == 0;
}

__attribute__((unused)) static bool is_ascending(const struct align__dim *d)
{
    for (uint32_t i = 1; i < d->nd; i++) {
        if (d->d[i - 1] > d->d[i])
            return false;
    }
    return d->nd <= ALIGN__NDIM;
}

struct align__dim align__dim_of(const uint64_t *d, unsigned nd)
{
    struct align__dim out = {.n = 1, .next = ALIGN__NONE};
    for (unsigned i = 0; i < nd; i++) {
        /* A size that overflows still distinguishes shapes. */
        if (__builtin_mul_overflow(out.n, d[i], &out.n))
            out.n = UINT64_MAX;
        if (d[i] == 1)
            continue;
        unsigned at = out.nd < ALIGN__NDIM ? out.nd++ : 0;
        if (at == 0 && out.nd == ALIGN__NDIM && d[i] <= out.d[0])
            continue;
        out.d[at] = d[i];
        for (; at > 0 && out.d[at - 1] > out.d[at]; at--) {
            uint64_t t = out.d[at - 1];
            out.d[at - 1] = out.d[at];
            out.d[at] = t;
        }
        for (; at + 1 < out.nd && out.d[at + 1] < out.d[at]; at++) {
            uint64_t t = out.d[at + 1];
            out.d[at + 1] = out.d[at];
            out.d[at] = t;
        }
    }
    ms_assert(is_ascending(&out));
    return out;
}

static enum ms_rc grow_slots(struct align__dims *dims, struct ms_err *err)
{
    ms_assert(dims->slots == NULL || (dims->mask & (dims->mask + 1)) == 0);
    uint32_t size = dims->slots == NULL ? 256 : 2 * (dims->mask + 1);
    uint32_t *slots = ms_alloc(size * sizeof *slots);
    if (slots == NULL)
        return ms_no_memory(err);
    ms_free(dims->slots);
    dims->slots = slots;
    dims->mask = size - 1;
    memset(slots, 0xff, size * sizeof *slots);
    for (uint32_t i = 0; i < dims->list.n; i++) {
        uint32_t *slot = &slots[hash_dim(&dims->list.p[i]) & dims->mask];
        dims->list.p[i].next = *slot;
        *slot = i;
    }
    return MS_OK;
}

enum ms_rc align__dims_put(struct align__dims *dims, const struct align__dim *key, uint32_t *id,
                           struct ms_err *err)
{
    if (dims->slots == NULL || dims->list.n > dims->mask)
        MS_TRY(grow_slots(dims, err));
    uint32_t *slot = &dims->slots[hash_dim(key) & dims->mask];
    for (uint32_t i = *slot; i != ALIGN__NONE; i = dims->list.p[i].next) {
        if (align__dim_same(&dims->list.p[i], key)) {
            *id = i;
            return MS_OK;
        }
    }
    struct align__dim *new = ms_vec_push(&dims->list);
    if (new == NULL)
        return ms_no_memory(err);
    *new = *key;
    new->next = *slot;
    *id = *slot = (uint32_t)(dims->list.n - 1);
    ms_assert(align__dim_same(&dims->list.p[*id], key));
    return MS_OK;
}

void align__dims_free(struct align__dims *dims)
{
    ms_vec_free(&dims->list);
    ms_free(dims->slots);
}

/* Tells whether `big` has one dimension k times as large as `small` and all others equal. */
static bool is_piece(const struct align__dim *small, const struct align__dim *big, uint64_t k)
{
    ms_assert(k >= 2);
    unsigned i = 0;
    unsigned j = 0;
    uint64_t only_small = 1; /* dimensions of 1 are not in the list */
    uint64_t only_big = 1;
    while (i < small->nd || j < big->nd) {
        if (i < small->nd && j < big->nd && small->d[i] == big->d[j]) {
            i++, j++;
        } else if (j >= big->nd || (i < small->nd && small->d[i] < big->d[j])) {
            if (only_small != 1)
                return false;
            only_small = small->d[i++];
        } else {
            if (only_big != 1)
                return false;
            only_big = big->d[j++];
        }
    }
    return only_big / k == only_small && only_big % k == 0;
}

uint64_t align__dims_ratio(const struct align__dims *dims, uint32_t a, uint32_t b)
{
    if (a == ALIGN__NONE || b == ALIGN__NONE)
        return 0;
    ms_assert(a < dims->list.n && b < dims->list.n);
    const struct align__dim *small = &dims->list.p[a];
    const struct align__dim *big = &dims->list.p[b];
    if (small->n > big->n) {
        const struct align__dim *t = small;
        small = big;
        big = t;
    }
    if (small->n == 0 || big->n % small->n != 0 || big->n / small->n < 2)
        return 0;
    return is_piece(small, big, big->n / small->n) ? big->n / small->n : 0;
}

bool align__dims_piece(const struct align__dims *dims, uint32_t a, uint32_t b)
{
    uint64_t k = align__dims_ratio(dims, a, b);
    return k != 0 && k <= 8;
}

static float larger_of(float a, float b)
{
    return a > b ? a : b;
}

/* Distance by extremes, for integers and booleans, which have no norm. */
static float range_distance(const struct align__value *a, const struct align__value *b, double peak)
{
    double d = fabs(a->stat[ALIGN__MAX] - b->stat[ALIGN__MAX]) +
               fabs(a->stat[ALIGN__MIN] - b->stat[ALIGN__MIN]);
    return peak > 0 ? (float)(d / peak) : 0;
}

static double peak_of(const struct align__value *v)
{
    return fmax(fabs(v->stat[ALIGN__MAX]), fabs(v->stat[ALIGN__MIN]));
}

float align__distance(const struct align__value *a, const struct align__value *b)
{
    enum { ONE_IS_ZERO = 9 };
    if (!a->known || !b->known || a->n != b->n || a->cls != b->cls)
        return -1;
    if (a->digest != 0 || b->digest != 0)
        return a->digest == b->digest ? 0 : -1;
    double peak = fmax(peak_of(a), peak_of(b));
    if (a->cls != ALIGN__FLOAT)
        return range_distance(a, b, peak);
    double na = a->stat[ALIGN__NORM];
    double nb = b->stat[ALIGN__NORM];
    if (na <= 0 || nb <= 0)
        return na <= 0 && nb <= 0 ? 0 : ONE_IS_ZERO;
    /* A mean is near 0, so its difference is measured in units of the root mean square. */
    double rms = sqrt(na * nb / (double)a->n);
    float d = fabsf(a->ln_norm - b->ln_norm);
    d = larger_of(d, (float)(fabs(a->stat[ALIGN__MAX] - b->stat[ALIGN__MAX]) / peak));
    d = larger_of(d, (float)(fabs(a->stat[ALIGN__MIN] - b->stat[ALIGN__MIN]) / peak));
    return larger_of(d, (float)(fabs(a->stat[ALIGN__MEAN] - b->stat[ALIGN__MEAN]) / rms));
}

float align__likeness(float distance)
{
    /* Differences of 10 to 30 % behind a fault still carry information, hence the long tail. Scales
     * from 0.01 to 0.04 change no figure by more than 0.006 (24 pairs); norm is 1 / ln(1 + 1 /
     * scale). */
    const float scale = 0.02F;
    const float norm = 0.25434F;
    if (!(distance < 1) || distance < 0)
        return 0;
    float like = 1 - logf(1 + distance / scale) * norm;
    ms_assert(like > -1e-4F && like <= 1);
    return like;
}
