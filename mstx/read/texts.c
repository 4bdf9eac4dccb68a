/* SPDX-License-Identifier: MIT
 *
 * texts: reads strings.seg into tables.
 */
#include "mstx/read/texts.h"

#include "mstx/format/comm.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- reading ---------------------------------------------------------------- */

static uint32_t put_text(const struct mstx_text_sink *to, struct ms_str text)
{
    return to->intern(to->ctx, text);
}

/* Sets v[at] = id, growing the vector with zeros. */
static bool put_id(mstx_text_ids *v, size_t at, uint32_t id)
{
    if (at >= v->n) {
        size_t want = at < 64 ? 64 : at + at / 2;
        if (!ms_vec_reserve(v, want))
            return false;
        memset(v->p + v->n, 0, (want - v->n) * sizeof *v->p);
        v->n = want;
    }
    v->p[at] = id;
    return true;
}

static bool keep_entry(mstx_keyed_texts *v, const struct mstx_entry *e, uint32_t name)
{
    struct mstx_keyed *k = ms_vec_push(v);
    if (k != NULL)
        *k = (struct mstx_keyed){e->head.key, e->head.domain, e->head.kind, name, e->text};
    return k != NULL;
}

/* Returns the id of the program's name without directories and arguments, short enough for a
 * viewer. */
static uint32_t short_command(const struct mstx_text_sink *to, struct ms_str cmdline)
{
    struct ms_str rest = cmdline, word;
    if (!ms_str_split(&rest, ' ', &word))
        return 0;
    int64_t slash = ms_str_rfind(word, '/');
    return put_text(to, ms_str_sub(word, (uint32_t)(slash + 1), word.n));
}

static void take_info(struct mstx_texts *t, struct ms_str text)
{
    const struct ms_str cmdline = MS_STR("cmdline="), cost = MS_STR("clock_cost_ticks=");
    if (ms_str_starts(text, cmdline))
        t->process_name = short_command(t->to, ms_str_sub(text, cmdline.n, text.n));
    else if (ms_str_starts(text, cost) &&
             !ms_str_u64(ms_str_sub(text, cost.n, text.n), &t->clock_cost))
        t->clock_cost = 0;
}

static bool take_entry(struct mstx_texts *t, const struct mstx_entry *e)
{
    uint32_t name = 0;
    const uint16_t kind = e->head.kind;
    const bool is_text =
        kind != MSTX_SCHEMA && kind != MSTX_ENUM && kind != MSTX_GROUP && kind != MSTX_HANG;
    if (is_text)
        name = put_text(t->to, e->text);
    if (!put_id(&t->id, e->head.id, name))
        return false;
    switch (e->head.kind) {
    case MSTX_TEXT:
        t->names_mpi |= ms_str_starts(e->text, MS_STR("MPI_"));
        return true;
    case MSTX_DOMAIN:
        return put_id(&t->domain, e->head.domain, name);
    case MSTX_INFO:
        take_info(t, e->text);
        return true;
    case MSTX_NOTE:
        return keep_entry(&t->notes, e, name);
    case MSTX_HANG:
        return keep_entry(&t->hangs, e, 0);
    default:
        return keep_entry(&t->keyed, e, name);
    }
}

static int compare_keys(const struct mstx_keyed *a, const struct mstx_keyed *b)
{
    return MS_ORDER(a->kind, b->kind, MS_ORDER(a->domain, b->domain, MS_ORDER(a->key, b->key, 0)));
}

/* Orders by kind, domain and key, then by age: text pointers ascend in the order of the file. */
static int by_key_and_age(const void *pa, const void *pb)
{
    const struct mstx_keyed *a = pa, *b = pb;
    int order = compare_keys(a, b);
    return order != 0 ? order : (a->text.p > b->text.p) - (a->text.p < b->text.p);
}

enum ms_rc mstx__texts_read(struct mstx_texts *t, const struct mstx_proc *p,
                            const struct mstx_text_sink *sink, const struct mstx_problems *to,
                            struct ms_err *err)
{
    *t = (struct mstx_texts){.to = sink};
    struct mstx_entry e;
    uint64_t at = 0;
    uint32_t expected = 1;
    bool ok = true;
    if (!p->has_strings)
        mstx__problem_text(to, p->dir, "has no readable %s: names are shown as numbers",
                           MSTX_STRINGS);
    while (ok && p->has_strings && mstx__entry_next(&p->strings, &at, &e, to)) {
        if (e.head.id != expected) {
            mstx__problem_text(to, p->strings.path,
                               "text %" PRIu32 " stands where %" PRIu32 " should; texts from here "
                               "on are lost",
                               e.head.id, expected);
            break;
        }
        expected++;
        ok = take_entry(t, &e);
    }
    ms_vec_sort(&t->keyed, by_key_and_age);
    if (!ok) {
        mstx__texts_free(t);
        return ms_no_memory(err);
    }
    return MS_OK;
}

void mstx__texts_free(struct mstx_texts *t)
{
    ms_vec_free(&t->id);
    ms_vec_free(&t->domain);
    ms_vec_free(&t->keyed);
    ms_vec_free(&t->notes);
    ms_vec_free(&t->hangs);
}

/* ---- look-up ---------------------------------------------------------------- */

static uint32_t number_text(const struct mstx_text_sink *to, const char *what, uint32_t number)
{
    char text[32];
    int n = snprintf(text, sizeof text, "(%s %" PRIu32 ")", what, number);
    return put_text(to, (struct ms_str){text, (uint32_t)n});
}

uint32_t mstx__text_id(struct mstx_texts *t, uint32_t local)
{
    if (local < t->id.n && t->id.p[local] != 0)
        return t->id.p[local];
    return local == 0 ? put_text(t->to, MS_STR("(no text)")) : number_text(t->to, "text", local);
}

uint32_t mstx__domain_id(struct mstx_texts *t, uint16_t domain)
{
    if (domain < t->domain.n && t->domain.p[domain] != 0)
        return t->domain.p[domain];
    return domain == 0 ? put_text(t->to, MS_STR("default")) : number_text(t->to, "domain", domain);
}

bool mstx__texts_is_newest(const struct mstx_texts *t, size_t i)
{
    return i + 1 == t->keyed.n || compare_keys(&t->keyed.p[i], &t->keyed.p[i + 1]) != 0;
}

const struct mstx_keyed *mstx__texts_find(const struct mstx_texts *t, uint16_t kind,
                                          uint16_t domain, uint64_t key)
{
    const struct mstx_keyed wanted = {.kind = kind, .domain = domain, .key = key};
    size_t lo = 0,
           hi = t->keyed.n; /* finds the upper bound: the first entry after the equal ones */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_keys(&t->keyed.p[mid], &wanted) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo != 0 && compare_keys(&t->keyed.p[lo - 1], &wanted) == 0 ? &t->keyed.p[lo - 1] : NULL;
}

bool mstx__comm_group_parse(struct ms_str text, struct mstx_comm_known *g)
{
    struct mstx_comm_group h;
    if (text.n < sizeof h)
        return false;
    memcpy(&h, text.p, sizeof h);
    if (h.listed > (text.n - sizeof h) / sizeof(int32_t))
        return false;
    const uint32_t name = (uint32_t)(sizeof h + h.listed * sizeof(int32_t));
    *g = (struct mstx_comm_known){.uid = h.uid,
                                  .size = h.size,
                                  .rank = h.rank,
                                  .listed = h.listed,
                                  .world = text.p + sizeof h,
                                  .name = ms_str_sub(text, name, text.n)};
    return true;
}
