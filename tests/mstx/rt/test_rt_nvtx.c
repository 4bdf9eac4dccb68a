/* SPDX-License-Identifier: MIT
 *
 * Tests of what is recorded of NVTX: a program with NVTX's tables runs under the recorder.
 */
#include "tests/programs/run.h"

/* The continuation of that type behind record r of the capture. */
static const void *behind(const struct cap *c, const struct cap_rec *r, int type)
{
    for (const struct cap_rec *at = r; (at->r.flags & MSTX_F_MORE) != 0; at++) {
        ck_assert_ptr_ne(at + 1, c->rec + c->n);
        if (at[1].r.type == type)
            return &at[1].r;
    }
    ck_abort_msg("no continuation %d", type);
    return NULL;
}

static void record_nvtx(struct cap *c)
{
    rt_setup();
    setenv("NVTX_INJECTION64_PATH", rt_built("libmstx.so"), 1);
    ck_assert_int_eq(rt_wait(rt_spawn("tests/programs/nvtx_app", NULL, NULL, NULL)), 0);
    cap_load_one(c, rt_out);
}

START_TEST(attributes_are_kept_and_short_structures_are_not_overread)
{
    struct cap c;
    record_nvtx(&c);
    const struct cap_rec *m = cap_find(&c, MSTX_REC_MARK, "full");
    ck_assert(m->r.flags & MSTX_F_NVTX);
    struct mstx_rec_attr a;
    memcpy(&a, behind(&c, m, MSTX_REC_ATTR), sizeof a);
    ck_assert_uint_eq(a.fields, MSTX_ATTR_CATEGORY | MSTX_ATTR_COLOR | MSTX_ATTR_PAYLOAD);
    ck_assert_uint_eq(a.category, 7);
    ck_assert_uint_eq(a.argb, 0xff00aa55);
    ck_assert_uint_eq(a.payload_type, MSTX_PAYLOAD_F64);
    double v;
    memcpy(&v, &a.payload, sizeof v);
    ck_assert_double_eq(v, 2.5);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, ""), 2); /* size 40, and no structure */
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "wide \xe2\x82\xac"), 1);
    ck_assert_uint_eq(cap_says(&c, MSTX_CATEGORY, "seven"), 1);
    ck_assert_uint_eq(cap_says(&c, MSTX_RESOURCE, "stream compute"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(stacks_are_kept_by_thread_and_domain_and_pops_carry_the_push)
{
    struct cap c;
    record_nvtx(&c);
    const struct mstx_rec *push = &cap_find(&c, MSTX_REC_PUSH, "inner")->r;
    const struct mstx_rec *pop = &cap_find(&c, MSTX_REC_POP, "inner")->r;
    ck_assert_uint_eq(push->id, 1);
    ck_assert_uint_eq(pop->id, 1);
    ck_assert_uint_eq(pop->arg, push->ticks);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_POP, "other", "in other"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_POP, "two", "registered"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_END, "default", "start/end"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_payload_is_written_with_its_schema)
{
    struct cap c;
    record_nvtx(&c);
    struct mstx_rec_payload p;
    struct mstx_rec_data d;
    const struct cap_rec *push = cap_find(&c, MSTX_REC_PUSH, "ncclAllReduce");
    memcpy(&p, behind(&c, push, MSTX_REC_PAYLOAD), sizeof p);
    memcpy(&d, behind(&c, push, MSTX_REC_DATA), sizeof d);
    ck_assert_uint_eq(p.schema, (1 << 24) + 5);
    ck_assert_uint_eq(p.bytes, 24);
    uint8_t bytes[24];
    memcpy(bytes, d.bytes, 16);
    memcpy(bytes + 16, d.more, 8);
    const struct mstx_text *def = NULL;
    for (size_t i = 1; i <= c.ntexts; i++)
        def = c.text[i]->kind == MSTX_SCHEMA && c.text[i]->key == p.schema ? c.text[i] : def;
    ck_assert_ptr_nonnull(def);
    struct mstx_schema s;
    struct mstx_schema_item item[3];
    memcpy(&s, def + 1, sizeof s);
    ck_assert_uint_eq(s.count, 3);
    ck_assert_uint_eq(s.size, 24);
    memcpy(item, (const char *)(def + 1) + sizeof s, sizeof item);
    static const uint64_t offsets[] = {0, 8, 16};
    static const uint64_t values[] = {0xABCDEF, 4096, 2};
    for (int i = 0; i < 3; i++) {
        uint64_t v = 0;
        ck_assert_uint_eq(item[i].offset, offsets[i]);
        memcpy(&v, bytes + item[i].offset, i == 2 ? 4 : 8);
        ck_assert_uint_eq(v, values[i]);
    }
    ck_assert_str_eq(cap_text(&c, item[1].name), "Message size [bytes]");
    cap_free(&c);
    rt_done();
}
END_TEST

/* Of 8k, two events would not fit one after the other, and one wrote past the mapping. */
START_TEST(the_smallest_segment_holds_the_largest_event)
{
    struct cap c;
    setenv("MSTX_SEGMENT", "8k", 1);
    record_nvtx(&c);
    unsetenv("MSTX_SEGMENT");
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, "default", "largest"), 20);
    const struct cap_rec *at = cap_find(&c, MSTX_REC_MARK, "largest");
    size_t records = 1, bytes = 0;
    for (; (at->r.flags & MSTX_F_MORE) != 0; records++) {
        struct mstx_rec_data d;
        at++;
        memcpy(&d, &at->r, sizeof d);
        for (size_t i = 0; d.type == MSTX_REC_DATA && i < d.n; i++, bytes++)
            ck_assert_int_eq(i < 16 ? d.bytes[i] : d.more[i - 16], 'x');
    }
    ck_assert_uint_eq(records, 193);
    ck_assert_uint_eq(bytes, 4096 + 18 * 24);
    ck_assert_uint_eq(c.dropped, 0);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_pop_of_the_extension_closes_a_plain_push)
{
    struct cap c;
    record_nvtx(&c);
    size_t with = 0;
    for (size_t i = 0; i < c.n; i++) {
        const struct cap_rec *r = &c.rec[i];
        if (r->r.type == MSTX_REC_POP && (r->r.flags & MSTX_F_MORE) != 0) {
            with++;
            ck_assert_str_eq(cap_text(&c, r->r.name), "ncclAllReduce");
            ck_assert_ptr_nonnull(behind(&c, r, MSTX_REC_DATA));
        }
    }
    ck_assert_uint_eq(with, 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_POP, "NCCL", NULL), 2);
    cap_free(&c);
    rt_done();
}
END_TEST

static double real_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The i-th sample of a counter. */
static const struct mstx_rec *counter(const struct cap *c, const char *name, size_t i)
{
    for (size_t k = 0; k < c->n; k++) {
        const struct mstx_rec *r = &c->rec[k].r;
        if (r->type == MSTX_REC_COUNTER && strcmp(cap_text(c, r->name), name) == 0 && i-- == 0)
            return r;
    }
    ck_abort_msg("too few samples of '%s'", name);
    return NULL;
}

START_TEST(counters_are_numbers_or_groups_of_them)
{
    struct cap c;
    record_nvtx(&c);
    ck_assert_int_eq((int64_t)counter(&c, "queue", 0)->arg, -5);
    ck_assert_uint_eq(counter(&c, "queue", 1)->arg,
                      0); /* "zero" is a value, "not to be had" none */
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_COUNTER, "gauges", "queue"), 2);
    ck_assert_double_eq(real_of(counter(&c, "loss", 0)->arg), 0.25);
    ck_assert(counter(&c, "loss", 0)->flags & MSTX_F_REAL);
    ck_assert_uint_eq(counter(&c, "pool.used", 0)->arg, 7);
    ck_assert_double_eq(real_of(counter(&c, "pool.share", 0)->arg), 0.5);
    for (size_t i = 1; i <= 2; i++) { /* of a batch the newest, by both forms of the call */
        ck_assert_uint_eq(counter(&c, "pool.used", i)->arg, 9);
        ck_assert_double_eq(real_of(counter(&c, "pool.share", i)->arg), 1.5);
    }
    ck_assert_uint_eq(cap_says(&c, MSTX_COUNTER, "MB"), 1);
    ck_assert_uint_eq(cap_says(&c, MSTX_NOTE, "newest sample"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(heaps_and_regions_are_recorded_with_their_changes)
{
    struct cap c;
    record_nvtx(&c);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_HEAP, "arena", NULL), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_REGION, "arena", NULL), 3); /* one is a new size */
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_REGION_END, "arena", NULL), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_HEAP_END, "arena", NULL), 2); /* one is a reset */
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BLOCK_NAME, "arena", "activations"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BLOCK_NAME, "arena", "big block"), 1);
    struct mstx_rec_mem m = {0};
    for (size_t i = 0; i + 1 < c.n; i++) {
        if (c.rec[i].r.type == MSTX_REC_PERMIT)
            memcpy(&m, &c.rec[i + 1].r, sizeof m);
    }
    ck_assert_uint_eq(m.address, 0x10040);
    ck_assert_uint_eq(m.permissions, 3); /* atomic is read and write */
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(waiting_for_and_holding_a_lock_are_ranges)
{
    struct cap c;
    record_nvtx(&c);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, "locks", "wait spin"), 2);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_END, "locks", "wait spin"), 2);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_END, "locks", "hold spin"), 1);
    const struct mstx_rec *wait = &cap_find(&c, MSTX_REC_END, "wait spin")->r;
    const struct mstx_rec *hold = &cap_find(&c, MSTX_REC_BEGIN, "hold spin")->r;
    ck_assert_uint_ge(hold->ticks, wait->ticks);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(nvtx_can_be_switched_off)
{
    rt_setup();
    setenv("NVTX_INJECTION64_PATH", rt_built("libmstx.so"), 1);
    setenv("MSTX_NVTX", "0", 1);
    ck_assert_int_eq(rt_wait(rt_spawn("tests/programs/nvtx_app", NULL, NULL, NULL)), 3);
    unsetenv("MSTX_NVTX");
    ck_assert_int_ne(access(rt_out, F_OK), 0);
    rt_done();
}
END_TEST

TEST_MAIN("rt_nvtx", attributes_are_kept_and_short_structures_are_not_overread,
          stacks_are_kept_by_thread_and_domain_and_pops_carry_the_push,
          a_payload_is_written_with_its_schema, counters_are_numbers_or_groups_of_them,
          heaps_and_regions_are_recorded_with_their_changes,
          waiting_for_and_holding_a_lock_are_ranges, a_pop_of_the_extension_closes_a_plain_push,
          nvtx_can_be_switched_off, the_smallest_segment_holds_the_largest_event)
