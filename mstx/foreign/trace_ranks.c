/* SPDX-License-Identifier: MIT
 *
 * trace_ranks: see the header.
 */
#include "mstx/foreign/trace_ranks.h"

#include "mstx/foreign/met_group.h"
#include "mstx/format/comm_marked.h"
#include "mstx/import/cluster_save.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum { GROUP_RANKS_MAX = 65536 };

/* ---- communicators ----------------------------------------------------------------- */

/* Tells a communicator from others in all traces. */
static uint64_t uid_of(const struct mstx_trace_comm *c)
{
    return ms_str_hash(c->group) * 31 + ms_str_hash(c->ranks);
}

/* Meets a communicator of the process. It is known by its name and ranks: a name alone may belong to
 * another communicator on another rank. */
static enum ms_rc meet_group(struct mstx_trace_rank *r, const struct mstx_trace_comm *c,
                             uint32_t number, struct ms_err *err)
{
    struct mstx_trace_ranks *a = r->all;
    char shown[160];
    int32_t *world = ms_calloc(GROUP_RANKS_MAX, sizeof *world);
    if (world == NULL)
        return ms_no_memory(err);
    const bool is_told = c->group_text.n != 0 && !ms_str_is(c->group_text, "undefined");
    snprintf(shown, sizeof shown, "%.*s%s%.*s", MS_STR_ARG(is_told ? c->group_text : c->group),
             is_told && c->group.n != 0 ? " " : "", MS_STR_ARG(is_told ? c->group : MS_STR("")));
    const uint32_t listed = mstx__comm_ranks(c->ranks, world, GROUP_RANKS_MAX);
    const bool is_whole = listed != 0 && (c->size < 0 || c->size == (int64_t)listed);
    const struct mstx_comm_known g = {.uid = uid_of(c),
                                      .size = c->size > 0 && c->size <= INT32_MAX ? (int32_t)c->size
                                              : is_whole                          ? (int32_t)listed
                                                                                  : -1,
                                      .rank = -1,
                                      .listed = is_whole ? listed : 0,
                                      .world = (const char *)world,
                                      .name = ms_str_of(shown)};
    const enum ms_rc rc = mstx__met_group(a->comm, &a->cluster, &g, number, err);
    ms_free(world);
    return rc;
}

static bool keep_group(struct mstx_trace_rank *r, const struct mstx_trace_comm *c)
{
    struct ms_arena *a = r->all->texts;
    struct mstx_trace_comm *slot = ms_vec_push(&r->group);
    if (slot == NULL)
        return false;
    *slot = (struct mstx_trace_comm){.group = ms_arena_str(a, c->group),
                                     .group_text = ms_arena_str(a, c->group_text),
                                     .ranks = ms_arena_str(a, c->ranks),
                                     .size = c->size};
    return slot->group.p != NULL && slot->group_text.p != NULL && slot->ranks.p != NULL;
}

/* Finds the number of the communicator in the process; a call without one has number 0. */
static bool find_group(struct mstx_trace_rank *r, const struct mstx_trace_comm *c, uint32_t *number)
{
    struct ms_buf key = {.max = 1 << 22};
    bool is_new;
    *number = 0;
    if (c->group.n == 0 && c->ranks.n == 0)
        return true;
    ms_buf_printf(&key, "%.*s/%.*s", MS_STR_ARG(c->group), MS_STR_ARG(c->ranks));
    const uint32_t at =
        key.bad == MS_OK ? ms_map_put_copy(&r->groups, ms_buf_slice(&key), r->all->texts, &is_new)
                         : MS_MAP_NONE;
    ms_buf_free(&key);
    if (at == MS_MAP_NONE)
        return false;
    *number = at + 1;
    return !is_new || keep_group(r, c);
}

/* Keeps of `common` the ranks that are listed; both in any order. */
static uint32_t intersect(int32_t *common, uint32_t n, const int32_t *listed, uint32_t m)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < m && listed[k] != common[i])
            k++;
        if (k < m)
            common[kept++] = common[i];
    }
    return kept;
}

int32_t mstx__trace_rank_common(const struct mstx_trace_rank *r)
{
    enum { MOST = 4096 }; /* longer lists, whose comparison takes long, are of the whole job */
    int32_t *list = ms_calloc(2 * MOST, sizeof *list);
    uint32_t n = 0;
    for (size_t i = 0; list != NULL && i < r->group.n && (n != 0 || i == 0); i++) {
        const uint32_t m = mstx__comm_ranks(r->group.p[i].ranks, i == 0 ? list : list + MOST, MOST);
        n = i == 0 ? m : intersect(list, n, list + MOST, m);
    }
    const int32_t rank = n == 1 ? list[0] : -1;
    ms_free(list);
    return rank;
}

static enum ms_rc meet_groups(struct mstx_trace_rank *r, struct ms_err *err)
{
    ms_assert(r->group.n == r->groups.keys.n);
    for (size_t i = 0; i < r->group.n; i++)
        MS_TRY(meet_group(r, &r->group.p[i], (uint32_t)i + 1, err));
    return MS_OK;
}

/* ---- calls --------------------------------------------------------------------------- */

/* The profiler's names of what is not called as in MPI. */
static const struct {
    struct ms_str text;
    uint8_t op;
} op_names[] = {
    {MS_STR("_allgather_base"), MSTX_COMM_ALLGATHER},
    {MS_STR("all_gather_into_tensor_coalesced"), MSTX_COMM_ALLGATHER},
    {MS_STR("allgather_into_tensor_coalesced"), MSTX_COMM_ALLGATHER},
    {MS_STR("_reduce_scatter_base"), MSTX_COMM_REDUCE_SCATTER},
    {MS_STR("reduce_scatter_tensor_coalesced"), MSTX_COMM_REDUCE_SCATTER},
    {MS_STR("allreduce_coalesced"), MSTX_COMM_ALLREDUCE},
    {MS_STR("all_to_all"), MSTX_COMM_ALLTOALL},
    {MS_STR("all_to_allv"), MSTX_COMM_ALLTOALL_V},
    {MS_STR("alltoall_base"), MSTX_COMM_ALLTOALL},
};

/* Finds an operation by its name with or without underscores. */
static uint8_t op_of(struct ms_str text)
{
    char plain[64];
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof op_names / sizeof *op_names; i++) {
        if (ms_str_eq(op_names[i].text, text))
            return op_names[i].op;
    }
    for (uint32_t i = 0; i < text.n && n < sizeof plain; i++) {
        if (text.p[i] != '_')
            plain[n++] = text.p[i];
    }
    return mstx__comm_op_find((struct ms_str){plain, n});
}

/* Types as PyTorch names them. */
static uint8_t type_of(struct ms_str text)
{
    static const struct {
        const char *name;
        uint8_t type;
    } types[] = {{"Float", MSTX_TYPE_FP32},     {"Half", MSTX_TYPE_FP16},
                 {"BFloat16", MSTX_TYPE_BFP16}, {"Double", MSTX_TYPE_FP64},
                 {"Long", MSTX_TYPE_INT64},     {"Int", MSTX_TYPE_INT32},
                 {"Short", MSTX_TYPE_INT16},    {"Char", MSTX_TYPE_INT8},
                 {"Byte", MSTX_TYPE_UINT8},     {"Bool", MSTX_TYPE_UINT8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (ms_str_is(text, types[i].name))
            return types[i].type;
    }
    return mstx__comm_type_find(text);
}

/* Takes the next sequence number of a class of calls on a communicator. */
static bool number_call(struct mstx_trace_rank *r, struct mstx_trace_call *c)
{
    const uint32_t class = mstx_comm_op_class(c->rec.op);
    if (class >= MSTX_SEQUENCES)
        return true;
    const size_t at = (size_t)c->number * MSTX_SEQUENCES + class;
    while (r->seen.n <= at) {
        uint32_t *slot = ms_vec_push(&r->seen);
        if (slot == NULL)
            return false;
        *slot = 0;
    }
    c->rec.seq = r->seen.p[at]++;
    return true;
}

static int32_t peer_of(const struct mstx_trace_comm *c, uint8_t op)
{
    const int64_t peer = op == MSTX_COMM_SEND ? c->target : c->source;
    const bool has = op == MSTX_COMM_SEND || op == MSTX_COMM_RECV;
    return has && peer >= 0 && peer <= INT32_MAX ? (int32_t)peer : -1;
}

bool mstx__trace_rank_call(struct mstx_trace_rank *r, const struct mstx_trace_item *it,
                           uint32_t stream)
{
    const struct mstx_trace_comm *c = &it->comm;
    if (c->op.n == 0)
        return true;
    uint32_t number;
    if (!find_group(r, c, &number))
        return false;
    struct mstx_trace_call *call = ms_vec_push(&r->call);
    if (call == NULL)
        return false;
    const int64_t count = c->sent > c->received ? c->sent : c->received;
    *call = (struct mstx_trace_call){.start_ns = it->ts,
                                     .end_ns = it->ts + (it->dur > 0 ? it->dur : 0),
                                     .name = mstx__writer_text(r->all->w, it->name),
                                     .number = number,
                                     .stream = stream,
                                     .rec = {.count = count > 0 ? (uint64_t)count : 0,
                                             .reduce = MSTX_REDUCE_NONE,
                                             .type = MSTX_REC_COMM,
                                             .lib = MSTX_LIB_NCCL,
                                             .group = number,
                                             .op = op_of(c->op),
                                             .dtype = type_of(c->type)}};
    call->rec.elem = mstx_comm_type_bytes(call->rec.dtype);
    call->rec.peer = peer_of(c, call->rec.op);
    return true;
}

/* ---- steps and work -------------------------------------------------------------------- */

bool mstx__trace_rank_step(struct mstx_trace_rank *r, int64_t number, int64_t start, int64_t end)
{
    if (number < 0 || number >= UINT32_MAX || end <= start)
        return true;
    struct mstx_cl_step *slot = ms_vec_push(&r->part.steps);
    if (slot != NULL)
        *slot = (struct mstx_cl_step){.number = (uint32_t)number, .start_ns = start, .end_ns = end};
    return slot != NULL;
}

bool mstx__trace_rank_span(struct mstx_trace_rank *r, const struct mstx_trace_item *it,
                           enum mstx_work work)
{
    r->part.knows_work = true;
    if (work == MSTX_WORK_MEMORY)
        return true;
    struct mstx_cl_span *slot =
        work == MSTX_WORK_COMM ? ms_vec_push(&r->part.comm) : ms_vec_push(&r->part.work);
    if (slot != NULL)
        *slot = (struct mstx_cl_span){it->ts, it->ts + (it->dur > 0 ? it->dur : 0)};
    return slot != NULL;
}

bool mstx__trace_rank_work(struct mstx_trace_rank *r, const struct mstx_trace_item *it,
                           uint32_t text)
{
    enum mstx_work work;
    return mstx__work_recall(&r->all->works, text, it->name, &work) &&
           mstx__trace_rank_span(r, it, work);
}

static int order_steps(const void *a, const void *b)
{
    const struct mstx_cl_step *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Puts steps into their order, without those that begin before the one before them has ended. */
static void settle_steps(struct mstx_cl_part *p)
{
    size_t n = 0;
    if (p->steps.n > 1)
        qsort(p->steps.p, p->steps.n, sizeof *p->steps.p, order_steps);
    for (size_t i = 0; i < p->steps.n; i++) {
        if (n == 0 || p->steps.p[i].start_ns >= p->steps.p[n - 1].end_ns)
            p->steps.p[n++] = p->steps.p[i];
    }
    p->steps.n = n;
}

static void convert_spans(mstx_cl_spans *s, const struct mstx_trace_time *t)
{
    for (size_t i = 0; i < s->n; i++)
        s->p[i] = (struct mstx_cl_span){mstx__trace_time(t, s->p[i].start),
                                        mstx__trace_time(t, s->p[i].end)};
}

static void convert(struct mstx_cl_part *p, const struct mstx_trace_time *t)
{
    for (size_t i = 0; i < p->steps.n; i++) {
        p->steps.p[i].start_ns = mstx__trace_time(t, p->steps.p[i].start_ns);
        p->steps.p[i].end_ns = mstx__trace_time(t, p->steps.p[i].end_ns);
    }
    convert_spans(&p->comm, t);
    convert_spans(&p->work, t);
}

/* ---- a trace ------------------------------------------------------------------------------ */

static int order_calls(const void *a, const void *b)
{
    const struct mstx_trace_call *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Puts the calls into their order and numbers them. */
static bool order_all(struct mstx_trace_rank *r)
{
    if (r->is_ordered)
        return true;
    if (r->call.n > 1)
        qsort(r->call.p, r->call.n, sizeof *r->call.p, order_calls);
    for (size_t i = 0; i < r->call.n; i++) {
        if (!number_call(r, &r->call.p[i]))
            return false;
    }
    return r->is_ordered = true;
}

/* No device ends such a kernel before all have begun it. */
static bool waits_for_all(const struct mstx_rec_comm *c)
{
    return c->op == MSTX_COMM_BARRIER ||
           (c->count != 0 && (c->op == MSTX_COMM_ALLREDUCE || c->op == MSTX_COMM_REDUCE_SCATTER ||
                              c->op == MSTX_COMM_ALLGATHER || c->op == MSTX_COMM_ALLTOALL));
}

static bool collect_meetings(const struct mstx_trace_rank *r, mstx_trace_meetings *to)
{
    for (size_t i = 0; i < r->call.n; i++) {
        const struct mstx_trace_call *c = &r->call.p[i];
        if (c->number == 0 || !waits_for_all(&c->rec))
            continue;
        struct mstx_trace_meeting *slot = ms_vec_push(to);
        if (slot == NULL)
            return false;
        *slot = (struct mstx_trace_meeting){.group = uid_of(&r->group.p[c->number - 1]),
                                            .bytes = c->rec.count * c->rec.elem,
                                            .start_ns = c->start_ns,
                                            .end_ns = c->end_ns,
                                            .seq = c->rec.seq,
                                            .op = c->rec.op};
    }
    return true;
}

enum ms_rc mstx__trace_rank_clock(struct mstx_trace_rank *r, struct mstx_trace_time *t,
                                  struct mstx_trace_joined *joined, struct ms_err *err)
{
    mstx_trace_meetings met = {0};
    enum ms_rc rc = order_all(r) && collect_meetings(r, &met) ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = mstx__trace_clock_join(&r->all->clocks, &met, r->all->texts, t, joined, err);
    ms_vec_free(&met);
    return rc;
}

static enum ms_rc save_call(struct mstx_trace_rank *r, struct mstx_trace_call *c,
                            const struct mstx_trace_time *t, struct ms_err *err)
{
    const struct mstx_comm_fact fact = {.rec = &c->rec};
    const int64_t start = mstx__trace_time(t, c->start_ns), end = mstx__trace_time(t, c->end_ns);
    const struct mstx_event ev = {
        .start_ns = start, .dur_ns = end > start ? end - start : 0, .name = c->name};
    struct mstx_cl_call *k = ms_vec_push(&r->part.calls);
    if (k == NULL)
        return ms_no_memory(err);
    *k = (struct mstx_cl_call){.start_ns = ev.start_ns,
                               .dur_ns = ev.dur_ns,
                               .bytes = c->rec.count * c->rec.elem,
                               .group = mstx__comm_writer_id(r->all->comm, c->number),
                               .seq = c->rec.seq,
                               .peer = c->rec.peer,
                               .op = c->rec.op,
                               .dtype = c->rec.dtype};
    r->all->calls++;
    return mstx__comm_writer_call(r->all->comm, &fact, &ev, c->stream, err);
}

enum ms_rc mstx__trace_rank_save(struct mstx_trace_rank *r, int32_t rank, uint32_t process,
                                 const struct mstx_trace_time *t, struct ms_err *err)
{
    ms_assert(process != 0);
    mstx__comm_writer_process(r->all->comm, process, rank, r->all->calls);
    enum ms_rc rc = meet_groups(r, err);
    if (rc == MS_OK && !order_all(r))
        rc = ms_no_memory(err);
    for (size_t i = 0; i < r->call.n && rc == MS_OK; i++)
        rc = save_call(r, &r->call.p[i], t, err);
    if (rc == MS_OK)
        rc = mstx__comm_writer_flush(r->all->comm, err);
    settle_steps(&r->part);
    convert(&r->part, t);
    r->part.rank = rank;
    r->part.host = MS_STR("");
    if (rc == MS_OK && r->part.steps.n == 0 && !mstx__cluster_slice(&r->part))
        rc = ms_no_memory(err);
    if (rc == MS_OK && (r->part.calls.n != 0 || r->part.steps.n != 0))
        mstx__cluster_part(&r->all->cluster, &r->part);
    return rc == MS_OK && r->all->cluster.no_memory ? ms_no_memory(err) : rc;
}

void mstx__trace_rank_free(struct mstx_trace_rank *r)
{
    mstx__cluster_part_free(&r->part);
    ms_map_free(&r->groups);
    ms_vec_free(&r->group);
    ms_vec_free(&r->seen);
    ms_vec_free(&r->call);
}

/* ---- all traces ------------------------------------------------------------------------------ */

enum ms_rc mstx__trace_ranks_new(struct mstx_trace_ranks *a, struct mstx_writer *w,
                                 struct ms_err *err)
{
    *a = (struct mstx_trace_ranks){.w = w};
    a->texts = ms_arena_new((size_t)1 << 34);
    if (a->texts == NULL)
        return ms_no_memory(err);
    return mstx__comm_writer_new(&a->comm, w, err);
}

enum ms_rc mstx__trace_ranks_save(struct mstx_trace_ranks *a, struct ms_err *err)
{
    if (a->cluster.process.n == 0)
        return MS_OK;
    MS_TRY(mstx__cluster_conclude(&a->cluster, err));
    return mstx__cluster_save_all(&a->cluster, a->w, err);
}

void mstx__trace_ranks_free(struct mstx_trace_ranks *a)
{
    mstx__comm_writer_free(a->comm);
    mstx__cluster_free(&a->cluster);
    mstx__trace_clocks_free(&a->clocks);
    ms_arena_free(a->texts);
    ms_vec_free(&a->rank);
    ms_vec_free(&a->works.of);
}
