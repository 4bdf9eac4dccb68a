/* SPDX-License-Identifier: MIT
 *
 * Tests of what is recorded of NVTX: a program with NVTX's tables runs under the recorder.
 */
#include "tests/rt/run.h"

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
    ck_assert_int_eq(rt_wait(rt_spawn("tests/rt/nvtx_app", NULL, NULL, NULL)), 0);
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
        def = c.text[i]->kind == MSTX_SCHEMA ? c.text[i] : def;
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

START_TEST(nvtx_can_be_switched_off)
{
    rt_setup();
    setenv("NVTX_INJECTION64_PATH", rt_built("libmstx.so"), 1);
    setenv("MSTX_NVTX", "0", 1);
    ck_assert_int_eq(rt_wait(rt_spawn("tests/rt/nvtx_app", NULL, NULL, NULL)), 3);
    unsetenv("MSTX_NVTX");
    ck_assert_int_ne(access(rt_out, F_OK), 0);
    rt_done();
}
END_TEST

TEST_MAIN("rt_nvtx", attributes_are_kept_and_short_structures_are_not_overread,
          stacks_are_kept_by_thread_and_domain_and_pops_carry_the_push,
          a_payload_is_written_with_its_schema, a_pop_of_the_extension_closes_a_plain_push,
          nvtx_can_be_switched_off)
