/* SPDX-License-Identifier: MIT
 *
 * to_ascend_tasks: see the header.
 */
#include "mstx/foreign/to_ascend_tasks.h"

#include "mstx/foreign/export.h"
#include "mstx/foreign/op_shapes.h"
#include "mstx/foreign/sql/to_ascend_tasks.h"
#include "mstx/format/device_work.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdio.h>

/* Types of ENUM_API_TYPE. */
enum { API_RUNTIME = 5000, API_OP = 50001, API_TRACE = 50003 };
/* Numbers of calls without one, above all that name a kernel. */
static const int64_t FIRST_OWN_NUMBER = (int64_t)1 << 60;
enum { NUMBER_BITS = 40 };

/* An operator of the framework, on its thread. */
struct op {
    int64_t start, end, id; /* id: of PYTORCH_API */
    uint32_t track, name, args;
};
/* The number of a kernel, and the operator that launched it. */
struct launch {
    int64_t number;
    uint32_t op; /* place in the list; UINT32_MAX: none */
};
struct tasks {
    struct mstx_tl *tl;
    const struct mstx_own_texts *texts;
    struct ms_stmt *add_api, *add_op, *add_connection, *add_task, *add_info, *add_call;
    const struct mstx_ascend_groups *groups;
    struct mstx_ascend_counts counts;
    struct mstx_work_memory works;
    uint32_t process, at; /* the process and the track that are being read */
    const struct mstx_track *track;
    MS_VEC(struct op) op;
    MS_VEC(uint32_t) open; /* operators of the thread that may still be going, innermost last */
    MS_VEC(struct launch) launch;
    int64_t own, *task;
    struct ms_buf dims, types;
};

/* ---- what an event is ------------------------------------------------------------------------ */

bool mstx__process_is_profiled(const struct mstx_process *p)
{
    return ms_str_is(p->tool, MSTX_TOOL_KINETO) || ms_str_is(p->tool, MSTX_TOOL_TABLE);
}

bool mstx__rank_is_profiled(const struct mstx_tl *tl, int32_t rank)
{
    bool any = false;
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++) {
        const struct mstx_process *p = mstx_tl_process(tl, i);
        if (rank != MSTX_ALL_RANKS && p->rank != rank)
            continue;
        if (!mstx__process_is_profiled(p))
            return false;
        any = true;
    }
    return any;
}

/* Returns the type of an event in ENUM_API_TYPE; 0: it is none of an interface. */
static int api_of(struct mstx_tl *tl, const struct mstx_event *e)
{
    if (!(e->flags & MSTX_EVF_CATEGORY) || e->kind > MSTX_EV_PUSHPOP)
        return 0;
    const struct ms_str category = mstx_tl_text(tl, (uint32_t)e->arg);
    if (ms_str_is(category, "cpu_op") || ms_str_is(category, "Operator"))
        return API_OP;
    if (ms_str_is(category, "python_function"))
        return API_TRACE;
    return ms_str_ends(category, MS_STR("_runtime")) || ms_str_ends(category, MS_STR("_driver")) ||
                   ms_str_is(category, "Runtime")
               ? API_RUNTIME
               : 0;
}

bool mstx__is_api(struct mstx_tl *tl, const struct mstx_event *e)
{
    return api_of(tl, e) != 0;
}

bool mstx__is_module(struct mstx_tl *tl, const struct mstx_event *e, struct ms_str *name)
{
    static const struct ms_str start = MS_STR("nn.Module: ");
    *name = mstx_tl_text(tl, e->name);
    if (api_of(tl, e) != API_TRACE || !ms_str_starts(*name, start))
        return false;
    *name = ms_str_sub(*name, start.n, name->n);
    return true;
}

/* Returns the number that an event and its kernel share, unique over all processes; 0: none. */
static int64_t number_of(const struct tasks *t, const struct mstx_event *e)
{
    const uint64_t low = e->size & (((uint64_t)1 << NUMBER_BITS) - 1);
    return low != 0 ? (int64_t)(t->process + 1) << NUMBER_BITS | (int64_t)low : 0;
}

static enum ms_rc text_id(struct tasks *t, struct ms_str text, int64_t *id, struct ms_err *err)
{
    return t->texts->id(t->texts->ctx, text, id, err);
}

/* ---- the host --------------------------------------------------------------------------------- */

static int64_t thread_of(const struct tasks *t)
{
    return mstx__global_tid(mstx_tl_process(t->tl, t->process)->pid, t->track->tid);
}

/* Closes the operators that ended by the start of an event; returns the innermost around it. */
static uint32_t find_around(struct tasks *t, const struct mstx_event *e)
{
    while (t->open.n != 0 && t->op.p[t->open.p[t->open.n - 1]].end < e->start_ns + e->dur_ns)
        t->open.n--;
    return t->open.n != 0 ? t->open.p[t->open.n - 1] : UINT32_MAX;
}

/* Reads shapes and types of an operator's inputs into t->dims and t->types. */
static void read_shapes(struct tasks *t, uint32_t args)
{
    mstx__op_shapes(mstx_tl_text(t->tl, args), &t->dims, &t->types);
}

static enum ms_rc bind_shapes(struct tasks *t, struct ms_stmt *st, int types, int dims,
                              struct ms_err *err)
{
    int64_t id;
    MS_TRY(text_id(t, ms_buf_slice(&t->types), &id, err));
    ms_stmt_i64(st, types, id);
    MS_TRY(text_id(t, ms_buf_slice(&t->dims), &id, err));
    ms_stmt_i64(st, dims, id);
    return ms_buf_check(&t->dims, err);
}

static enum ms_rc add_op_row(struct tasks *t, const struct mstx_event *e, int type, int64_t id,
                             struct ms_err *err)
{
    int64_t name;
    MS_TRY(text_id(t, mstx_tl_text(t->tl, e->name), &name, err));
    const int64_t column[] = {e->start_ns, e->start_ns + e->dur_ns, thread_of(t), id, name};
    for (int i = 0; i < 5; i++)
        ms_stmt_i64(t->add_op, i + 1, column[i]);
    read_shapes(t, e->args);
    MS_TRY(bind_shapes(t, t->add_op, 6, 7, err));
    ms_stmt_i64(t->add_op, 8, type);
    return ms_stmt_run(t->add_op, err);
}

static enum ms_rc take_op(struct tasks *t, const struct mstx_event *e, struct ms_err *err)
{
    find_around(t, e);
    struct op *op = ms_vec_push(&t->op);
    uint32_t *open = op != NULL ? ms_vec_push(&t->open) : NULL;
    if (open == NULL)
        return ms_no_memory(err);
    *op = (struct op){e->start_ns, e->start_ns + e->dur_ns, ++t->own, t->at, e->name, e->args};
    *open = (uint32_t)t->op.n - 1;
    return add_op_row(t, e, API_OP, op->id, err);
}

static enum ms_rc connect(struct tasks *t, int64_t id, int64_t number, struct ms_err *err)
{
    ms_stmt_i64(t->add_connection, 1, id);
    ms_stmt_i64(t->add_connection, 2, number);
    return ms_stmt_run(t->add_connection, err);
}

static enum ms_rc take_call(struct tasks *t, const struct mstx_event *e, struct ms_err *err)
{
    const uint32_t around = find_around(t, e);
    int64_t name;
    MS_TRY(text_id(t, mstx_tl_text(t->tl, e->name), &name, err));
    const int64_t number = number_of(t, e);
    const int64_t column[] = {e->start_ns, e->start_ns + e->dur_ns,     API_RUNTIME, thread_of(t),
                              number,      FIRST_OWN_NUMBER + t->own++, name};
    for (int i = 0; i < 7; i++)
        ms_stmt_i64(t->add_api, i + 1, column[i]);
    MS_TRY(ms_stmt_run(t->add_api, err));
    if (number == 0 || around == UINT32_MAX)
        return MS_OK;
    struct launch *slot = ms_vec_push(&t->launch);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct launch){number, around};
    return connect(t, t->op.p[around].id, number, err);
}

static enum ms_rc take_host(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct tasks *t = ctx;
    switch (api_of(t->tl, e)) {
    case API_OP:
        return take_op(t, e, err);
    case API_RUNTIME:
        return take_call(t, e, err);
    case API_TRACE:
        return add_op_row(t, e, API_TRACE, ++t->own, err);
    default:
        return MS_OK;
    }
}

/* ---- the device --------------------------------------------------------------------------------- */

static int by_number(const void *pa, const void *pb)
{
    const struct launch *a = pa, *b = pb;
    return MS_ORDER(a->number, b->number, MS_ORDER(a->op, b->op, 0));
}

/* Finds the operator that launched a kernel; NULL: none is known. */
static const struct op *find_op(const struct tasks *t, int64_t number)
{
    size_t low = 0, high = t->launch.n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (t->launch.p[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    const bool is = low < t->launch.n && t->launch.p[low].number == number;
    return is && number != 0 ? &t->op.p[t->launch.p[low].op] : NULL;
}

/* Finds the type of a task: KERNEL, MEMCPY, MEMSET, or as the profiler says. */
static enum ms_rc find_type(struct tasks *t, const struct mstx_event *e, int64_t *id,
                            struct ms_err *err)
{
    char text[64] = "KERNEL";
    const struct ms_str category =
        e->flags & MSTX_EVF_CATEGORY ? mstx_tl_text(t->tl, (uint32_t)e->arg) : MS_STR("kernel");
    const uint32_t skip = ms_str_starts(category, MS_STR("gpu_")) ? 4 : 0;
    const int n =
        snprintf(text, sizeof text, "%.*s", MS_STR_ARG(ms_str_sub(category, skip, category.n)));
    for (int i = 0; i < n && text[i] != '\0'; i++)
        text[i] = (char)(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 'a' + 'A' : text[i]);
    return text_id(t, ms_str_of(text), id, err);
}

static enum ms_rc add_info_row(struct tasks *t, const struct mstx_event *e, int64_t number,
                               int64_t type, struct ms_err *err)
{
    const struct op *op = find_op(t, number);
    int64_t name, op_type, none;
    MS_TRY(text_id(t, mstx_tl_text(t->tl, e->name), &name, err));
    MS_TRY(text_id(t, op != NULL ? mstx_tl_text(t->tl, op->name) : MS_STR("N/A"), &op_type, err));
    MS_TRY(text_id(t, MS_STR(""), &none, err));
    const int64_t column[] = {name, *t->task, type, op_type, none, 0, 0, none, none, none};
    for (int i = 0; i < 10; i++)
        ms_stmt_i64(t->add_info, i + 1, column[i]);
    read_shapes(t, op != NULL ? op->args : 0);
    MS_TRY(bind_shapes(t, t->add_info, 6, 7, err));
    return ms_stmt_run(t->add_info, err);
}

/* Reads the operation out of the name of a kernel: ncclDevKernel_AllReduce_Sum_f32_RING_LL(...). */
static uint8_t op_of_kernel(struct ms_str name)
{
    static const struct ms_str mark = MS_STR("Kernel_");
    const char *at = name.n != 0 ? memmem(name.p, name.n, mark.p, mark.n) : NULL;
    if (at == NULL)
        return MSTX_COMM_NONE;
    struct ms_str rest = ms_str_sub(name, (uint32_t)(at - name.p) + mark.n, name.n), word;
    return ms_str_split(&rest, '_', &word) ? mstx_comm_op_find(word.p, strcspn(word.p, "_(<"))
                                           : MSTX_COMM_NONE;
}

static enum ms_rc add_kernel_call(struct tasks *t, const struct mstx_event *e, int64_t number,
                                  struct ms_err *err)
{
    struct mstx_ascend_call k = {.process = t->process,
                                 .rec = {.op = op_of_kernel(mstx_tl_text(t->tl, e->name))}};
    struct mstx_ascend_names names;
    int64_t name, type, group;
    snprintf(k.op, sizeof k.op, "%s",
             k.rec.op != MSTX_COMM_NONE ? mstx_comm_op_official(k.rec.op) : "unknown");
    MS_TRY(mstx__ascend_name_call(&names, &t->counts, t->groups, t->process, &k, err));
    MS_TRY(text_id(t, ms_str_of(names.name), &name, err));
    MS_TRY(text_id(t, ms_str_of(names.type), &type, err));
    MS_TRY(text_id(t, t->groups->list.p[0].name, &group, err));
    const int64_t column[] = {name,  e->start_ns, e->start_ns + e->dur_ns, number,
                              group, type,        t->track->device};
    for (int i = 0; i < 7; i++)
        ms_stmt_i64(t->add_call, i + 1, column[i]);
    return ms_stmt_run(t->add_call, err);
}

static enum ms_rc take_device(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct tasks *t = ctx;
    enum mstx_work work;
    int64_t type;
    if (e->kind != MSTX_EV_RANGE && e->kind != MSTX_EV_PUSHPOP)
        return MS_OK;
    if (!mstx__work_recall(&t->works, e->name, mstx_tl_text(t->tl, e->name), &work))
        return ms_no_memory(err);
    MS_TRY(find_type(t, e, &type, err));
    const int64_t number = number_of(t, e);
    ++*t->task;
    const int64_t column[] = {e->start_ns,
                              e->start_ns + e->dur_ns,
                              t->track->device,
                              number != 0 ? number : FIRST_OWN_NUMBER + t->own++,
                              *t->task,
                              mstx_tl_process(t->tl, t->process)->pid,
                              type,
                              t->track->tid,
                              *t->task};
    for (int i = 0; i < 9; i++)
        ms_stmt_i64(t->add_task, i + 1, column[i]);
    MS_TRY(ms_stmt_run(t->add_task, err));
    if (work == MSTX_WORK_COMM)
        return add_kernel_call(t, e, column[3], err);
    return work == MSTX_WORK_COMPUTE ? add_info_row(t, e, number, type, err) : MS_OK;
}

/* ---- backward passes --------------------------------------------------------------------------- */

static const struct op *find_op_at(const struct tasks *t, int64_t track, int64_t start)
{
    size_t low = 0, high = t->op.n; /* operators are in order of track and start */
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const struct op *o = &t->op.p[middle];
        if (o->track < (uint64_t)track || (o->track == (uint64_t)track && o->start < start))
            low = middle + 1;
        else
            high = middle;
    }
    const struct op *o = low < t->op.n ? &t->op.p[low] : NULL;
    return o != NULL && o->track == (uint64_t)track && o->start == start ? o : NULL;
}

/* Connects operators of the forward and the backward pass, which share a number. */
static enum ms_rc connect_passes(struct tasks *t, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(t->tl), &st, sql_find_backward, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        const struct op *from = find_op_at(t, ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1));
        const struct op *to = find_op_at(t, ms_stmt_get_i64(st, 2), ms_stmt_get_i64(st, 3));
        if (from == NULL || to == NULL)
            continue;
        const int64_t number = FIRST_OWN_NUMBER + t->own++;
        rc = connect(t, from->id, number, err);
        if (rc == MS_OK)
            rc = connect(t, to->id, number, err);
    }
    ms_stmt_free(st);
    return rc;
}

/* ---- a process ----------------------------------------------------------------------------------- */

static enum ms_rc walk_tracks(struct tasks *t, enum mstx_track_kind kind, mstx_event_fn fn,
                              struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(t->tl); i++) {
        t->track = mstx_tl_track(t->tl, i);
        t->at = t->track->id;
        const bool is_kernels = ms_str_is(t->track->domain, MSTX_KERNELS_DOMAIN);
        if (t->track->process != t->process || t->track->kind != kind ||
            is_kernels != (kind == MSTX_TRACK_STREAM))
            continue;
        t->open.n = 0;
        MS_TRY(mstx_tl_walk(t->tl, i, NULL, fn, t, err));
    }
    return MS_OK;
}

static enum ms_rc write_process(struct tasks *t, uint32_t process, struct ms_err *err)
{
    t->process = process;
    t->launch.n = t->op.n = 0;
    MS_TRY(walk_tracks(t, MSTX_TRACK_THREAD, take_host, err));
    if (t->launch.n > 1)
        qsort(t->launch.p, t->launch.n, sizeof *t->launch.p, by_number);
    MS_TRY(walk_tracks(t, MSTX_TRACK_STREAM, take_device, err));
    return connect_passes(t, err);
}

static enum ms_rc prepare(struct tasks *t, struct ms_store *to, struct ms_err *err)
{
    MS_TRY(ms_store_exec(to, sql_create_tables, err));
    MS_TRY(mstx__ascend_comm_table(to, err));
    MS_TRY(ms_store_exec(to, sql_prepare_calls, err));
    MS_TRY(ms_store_prepare(to, &t->add_api, sql_add_api, err));
    MS_TRY(ms_store_prepare(to, &t->add_op, sql_add_op, err));
    MS_TRY(ms_store_prepare(to, &t->add_connection, sql_add_connection, err));
    MS_TRY(ms_store_prepare(to, &t->add_task, sql_add_task, err));
    MS_TRY(ms_store_prepare(to, &t->add_info, sql_add_info, err));
    return ms_store_prepare(to, &t->add_call, sql_add_kernel_call, err);
}

static void free_all(struct tasks *t)
{
    struct ms_stmt *const st[] = {t->add_api,  t->add_op,   t->add_connection,
                                  t->add_task, t->add_info, t->add_call};
    for (size_t i = 0; i < sizeof st / sizeof *st; i++)
        ms_stmt_free(st[i]);
    mstx__ascend_counts_free(&t->counts);
    ms_vec_free(&t->works.of);
    ms_vec_free(&t->op);
    ms_vec_free(&t->open);
    ms_vec_free(&t->launch);
    ms_buf_free(&t->dims);
    ms_buf_free(&t->types);
}

enum ms_rc mstx__ascend_tasks_write(struct mstx_tl *tl, const struct mstx_ascend_groups *groups,
                                    int32_t rank, struct ms_store *to,
                                    const struct mstx_own_texts *texts, int64_t *tasks,
                                    struct ms_err *err)
{
    struct tasks t = {.tl = tl,
                      .texts = texts,
                      .groups = groups,
                      .task = tasks,
                      .dims = {.max = 1 << 16},
                      .types = {.max = 1 << 16}};
    enum ms_rc rc = prepare(&t, to, err);
    for (size_t i = 0; i < mstx_tl_process_count(tl) && rc == MS_OK; i++) {
        const struct mstx_process *p = mstx_tl_process(tl, i);
        if (rank == MSTX_ALL_RANKS || p->rank == rank)
            rc = write_process(&t, (uint32_t)i, err);
    }
    free_all(&t);
    return rc == MS_OK ? ms_store_exec(to, sql_connect_calls, err) : rc;
}
