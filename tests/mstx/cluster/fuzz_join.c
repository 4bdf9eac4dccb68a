/* SPDX-License-Identifier: MIT
 *
 * Any calls of a few ranks, as a damaged capture may hold them: joining them ends, what waiting there is
 * is found in the steps too, and every conclusion names somebody.
 *
 *     8 bytes each:  process and group | op | number | start | duration | bytes and flags
 */
#include "mstx/cluster/cluster.h"

#include "probe/base/mem.h"

#include <assert.h>

enum { PROCESSES = 4, GROUPS = 3, RECORD = 8 };

/* Small numbers mostly, as only those meet; now and then the greatest. */
static uint32_t number_of(uint8_t byte)
{
    return byte == 255 ? UINT32_MAX : byte == 254 ? 1000000 : byte % 32;
}

static void take(struct mstx_cl_part *part, const uint8_t *p)
{
    struct mstx_cl_call *k = ms_vec_push(&part->calls);
    assert(k != NULL);
    *k = (struct mstx_cl_call){.start_ns = p[3] * 100,
                               .dur_ns = p[4] * 10,
                               .bytes = (uint64_t)(p[5] & 15) << 16,
                               .group = 1 + (p[0] >> 2) % GROUPS,
                               .seq = number_of(p[2]),
                               .peer = (p[6] & 7) - 1,
                               .op = p[1] % MSTX_COMM_OP_COUNT,
                               .dtype = p[6] >> 4,
                               .flags = p[5] >> 6 & MSTX_CF_ASYNC,
                               .unfinished = p[5] >> 5 & 1};
}

static void bring(struct mstx_cluster *c, int process, const uint8_t *data, size_t size)
{
    struct mstx_cl_part part = {.rank = process, .host = process < 2 ? MS_STR("a") : MS_STR("b")};
    for (size_t i = 0; i + RECORD <= size; i += RECORD) {
        if (data[i] % PROCESSES == process)
            take(&part, data + i);
    }
    for (uint32_t i = 0; i < 8; i++) {
        struct mstx_cl_step *s = ms_vec_push(&part.steps);
        assert(s != NULL);
        *s = (struct mstx_cl_step){.number = i, .start_ns = i * 3000, .end_ns = i * 3000 + 2900};
    }
    mstx__cluster_part(c, &part);
    mstx__cluster_part_free(&part);
}

static void check(const struct mstx_cluster *c)
{
    int64_t waited = 0, in_steps = 0;
    for (size_t i = 0; i < c->join.n; i++) {
        const struct mstx_cl_join *j = &c->join.p[i];
        assert(j->group < c->group.n && j->ranks != 0 && j->waited_ns >= 0 && j->skew_ns >= 0);
        assert(j->transfer_ns < 0 || j->last < c->process.n);
        waited += j->waited_ns;
    }
    for (size_t i = 0; i < c->step.n; i++) {
        assert(c->step.p[i].waiting_ns >= 0 && c->step.p[i].blame_ns >= 0);
        in_steps += c->step.p[i].waiting_ns;
    }
    assert(in_steps <= waited);
    for (size_t i = 0; i < c->link.n; i++)
        assert(c->link.p[i].calls > 0 && c->link.p[i].transfer_ns > 0);
    for (size_t i = 0; i < c->note.n; i++)
        assert(ms_message_is_whole(&c->note.p[i].message) && c->note.p[i].rank < PROCESSES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int32_t world[] = {0, 1, 2, 3};
    struct mstx_cluster c = {0};
    struct ms_err err = {0};
    mstx__cluster_group(&c, 1, MS_STR("all"), 4, world, 4);
    mstx__cluster_group(&c, 2, MS_STR("two"), 2, world, 2);
    mstx__cluster_group(&c, 3, MS_STR(""), -1, NULL, 0);
    for (int i = 0; i < PROCESSES; i++)
        bring(&c, i, data, size);
    const enum ms_rc rc = mstx__cluster_conclude(&c, &err);
    assert(rc == MS_OK);
    check(&c);
    mstx__cluster_free(&c);
    return 0;
}
