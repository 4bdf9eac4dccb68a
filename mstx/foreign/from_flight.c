/* SPDX-License-Identifier: MIT
 *
 * tl_from_flight: PyTorch's Flight Recorder dumps, one file for each rank, pickled or JSON, as a run.
 *
 *     {"version": .., "pg_config": {NAME: {"name", "desc", "ranks": "[0, 1]"}}, "entries": [{..}, ..]}
 *
 * A group is its name and its ranks.  The recorder is a ring: numbers of calls begin anywhere, so each
 * group counts from the lowest that any rank has left.
 */
#include "mstx/tl_cluster.h"
#include "mstx/tl_comm.h"
#include "mstx/tl_comm_said.h"
#include "mstx/tl_flight.h"
#include "mstx/tl_import.h"
#include "mstx/tl_plain.h"
#include "mstx/tl_write.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t FILE_MAX = (size_t)1 << 32, LOOKED_AT = 1 << 20;
enum { GROUP_RANKS_MAX = 65536 };

struct flight {
    struct mstx_writer *w;
    struct mstx_comm_writer *comm;
    struct mstx_cluster cluster;
    bool knows_start; /* somewhere: then what has not started has not come */
    uint64_t files, entries, unfinished;
};

/* ---- words -------------------------------------------------------------------------- */

/* "nccl:_reduce_scatter_base", "gloo:all_reduce", "nccl:send 1->2"; the longer words first. */
static uint8_t op_of(struct ms_str name)
{
    static const struct {
        const char *word;
        uint8_t op;
    } words[] = {
        {"reduce_scatter", MSTX_COMM_REDUCE_SCATTER},
        {"REDUCE_SCATTER", MSTX_COMM_REDUCE_SCATTER},
        {"all_reduce_barrier", MSTX_COMM_BARRIER},
        {"all_reduce", MSTX_COMM_ALLREDUCE},
        {"allreduce", MSTX_COMM_ALLREDUCE},
        {"all_gather", MSTX_COMM_ALLGATHER},
        {"allgather", MSTX_COMM_ALLGATHER},
        {"ALLGATHER", MSTX_COMM_ALLGATHER},
        {"all_to_all", MSTX_COMM_ALLTOALL},
        {"alltoall", MSTX_COMM_ALLTOALL},
        {"broadcast", MSTX_COMM_BROADCAST},
        {"barrier", MSTX_COMM_BARRIER},
        {"gather", MSTX_COMM_GATHER},
        {"scatter", MSTX_COMM_SCATTER},
        {"reduce", MSTX_COMM_REDUCE},
        {"send", MSTX_COMM_SEND},
        {"recv", MSTX_COMM_RECV},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (ms_str_find_str(name, ms_str_of(words[i].word)) >= 0)
            return words[i].op;
    }
    return MSTX_COMM_NONE;
}

static uint8_t type_of(struct ms_str name)
{
    static const struct {
        const char *word;
        uint8_t type;
    } words[] = {{"Float", MSTX_TYPE_FP32},
                 {"Half", MSTX_TYPE_FP16},
                 {"BFloat16", MSTX_TYPE_BFP16},
                 {"Double", MSTX_TYPE_FP64},
                 {"Long", MSTX_TYPE_INT64},
                 {"Int", MSTX_TYPE_INT32},
                 {"Short", MSTX_TYPE_INT16},
                 {"Char", MSTX_TYPE_INT8},
                 {"Byte", MSTX_TYPE_UINT8},
                 {"Bool", MSTX_TYPE_BOOL},
                 {"ComplexFloat", MSTX_TYPE_COMPLEX64}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (ms_str_is(name, words[i].word))
            return words[i].type;
    }
    return MSTX_TYPE_NA;
}

/* "nccl:send 1->2" and "nccl:recv 3<-0": who is on the other side. */
static int32_t peer_of(struct ms_str name)
{
    int64_t at = ms_str_find_str(name, MS_STR("->")), peer;
    if (at < 0)
        at = ms_str_find_str(name, MS_STR("<-"));
    return at >= 0 && ms_str_i64(ms_str_sub(name, (uint32_t)at + 2, name.n), &peer) && peer >= 0 &&
                   peer <= INT32_MAX
               ? (int32_t)peer
               : -1;
}

/* ---- an entry ------------------------------------------------------------------------ */

static const struct mstx_plain *item(const struct mstx_plain *v, size_t i)
{
    return v != NULL && v->kind == MSTX_PLAIN_LIST && i < v->n ? v->item[i] : NULL;
}

static uint64_t elements(const struct mstx_plain *sizes)
{
    uint64_t all = 0;
    for (size_t i = 0; item(sizes, i) != NULL; i++) {
        const struct mstx_plain *shape = item(sizes, i);
        uint64_t n = 1;
        for (size_t k = 0; item(shape, k) != NULL; k++) {
            const int64_t d = mstx_plain_int(item(shape, k), 0);
            if (d < 0 || __builtin_mul_overflow(n, (uint64_t)d, &n) || n > INT64_MAX / 64)
                return 0;
        }
        all += n;
        if (all > INT64_MAX / 64)
            return 0;
    }
    return all;
}

struct entry {
    struct mstx_rec_comm rec;
    struct ms_str name, group;
    int64_t start_ns, end_ns;
    bool has_started, is_done;
};

static int64_t time_of(const struct mstx_plain *e, const char *key)
{
    const int64_t years_36 = (int64_t)1 << 60, t = mstx_plain_int(mstx_plain_get(e, key), 0);
    return t > 0 && t < 2 * years_36 ? t : 0;
}

static void read_times(const struct mstx_plain *e, struct entry *to)
{
    const struct ms_str state = mstx_plain_text(mstx_plain_get(e, "state"));
    const int64_t made = time_of(e, "time_created_ns");
    const int64_t began = time_of(e, "time_discovered_started_ns");
    const int64_t ended = time_of(e, "time_discovered_completed_ns");
    const double ms = mstx_plain_real(mstx_plain_get(e, "duration_ms"), -1);
    to->is_done = ms_str_is(state, "completed");
    to->has_started = to->is_done || ms_str_is(state, "started");
    to->start_ns = began != 0 ? began : made;
    to->end_ns = to->start_ns;
    if (ms >= 0 && ms < 1e12 && ended != 0) { /* what the device measured, before it was noticed */
        to->start_ns = ended - (int64_t)(ms * 1e6);
        to->end_ns = ended;
    } else if (ms >= 0 && ms < 1e12) {
        to->end_ns = to->start_ns + (int64_t)(ms * 1e6);
    } else if (ended > to->start_ns) {
        to->end_ns = ended;
    }
}

static void read_entry(const struct mstx_plain *e, struct entry *to)
{
    const struct mstx_plain *pg = mstx_plain_get(e, "process_group");
    *to = (struct entry){.name = mstx_plain_text(mstx_plain_get(e, "profiling_name")),
                         .group = mstx_plain_text(item(pg, 0))};
    const uint8_t op = op_of(to->name);
    const bool is_p2p = mstx_comm_op_class(op) == MSTX_CLASS_P2P;
    const bool by_output = op == MSTX_COMM_REDUCE_SCATTER || op == MSTX_COMM_SCATTER;
    const struct mstx_plain *types =
        mstx_plain_get(e, by_output ? "output_dtypes" : "input_dtypes");
    const int64_t seq =
        mstx_plain_int(mstx_plain_get(e, is_p2p ? "p2p_seq_id" : "collective_seq_id"), 0);
    to->rec = (struct mstx_rec_comm){
        .count = elements(mstx_plain_get(e, by_output ? "output_sizes" : "input_sizes")),
        .seq = seq >= 0 && seq < UINT32_MAX ? (uint32_t)seq : UINT32_MAX,
        .peer = is_p2p ? peer_of(to->name) : -1,
        .dtype = type_of(mstx_plain_text(item(types, 0))),
        .reduce = MSTX_REDUCE_NONE,
        .type = MSTX_REC_COMM,
        .op = op,
        .lib = MSTX_LIB_TORCH};
    to->rec.elem = mstx_comm_type_bytes(to->rec.dtype);
    read_times(e, to);
}

/* ---- groups --------------------------------------------------------------------------- */

/* Group n of the file has number n + 1 in its calls. */
static enum ms_rc take_group(struct flight *f, const struct mstx_plain *name,
                             const struct mstx_plain *conf, uint32_t number, struct ms_err *err)
{
    const struct ms_str ranks = mstx_plain_text(mstx_plain_get(conf, "ranks"));
    const struct ms_str desc = mstx_plain_text(mstx_plain_get(conf, "desc"));
    int32_t *world = ms_calloc(GROUP_RANKS_MAX, sizeof *world);
    char shown[128];
    bool is_new = false;
    if (world == NULL)
        return ms_no_memory(err);
    const uint32_t n = mstx__comm_ranks(ranks, world, GROUP_RANKS_MAX);
    snprintf(shown, sizeof shown, "%.*s", MS_STR_ARG(desc.n != 0 ? desc : mstx_plain_text(name)));
    const struct mstx_comm_known g = {.uid = ms_str_hash(mstx_plain_text(name)) * 31 +
                                             ms_str_hash(ranks),
                                      .size = n != 0 ? (int32_t)n : -1,
                                      .rank = -1,
                                      .listed = n,
                                      .world = (const char *)world,
                                      .name = ms_str_of(shown)};
    enum ms_rc rc = mstx__comm_writer_meet(f->comm, &g, &is_new, err);
    if (rc == MS_OK)
        rc = mstx__comm_writer_group(f->comm, number, &g, err);
    if (rc == MS_OK && is_new)
        mstx__cluster_group(&f->cluster, mstx__comm_writer_id(f->comm, number), g.name, g.size,
                            world, n);
    ms_free(world);
    return rc;
}

static uint32_t number_of(const struct mstx_plain *groups, struct ms_str name)
{
    for (size_t i = 0; groups != NULL && groups->kind == MSTX_PLAIN_DICT && i + 1 < groups->n;
         i += 2) {
        if (ms_str_eq(mstx_plain_text(groups->item[i]), name))
            return (uint32_t)(i / 2) + 1;
    }
    return 0;
}

/* ---- a file --------------------------------------------------------------------------- */

static bool add_call(struct flight *f, struct mstx_cl_part *part, const struct entry *e)
{
    struct mstx_cl_call *k = ms_vec_push(&part->calls);
    struct mstx_cl_span *s = e->end_ns > e->start_ns ? ms_vec_push(&part->comm) : NULL;
    if (k == NULL || (e->end_ns > e->start_ns && s == NULL))
        return false;
    if (s != NULL)
        *s = (struct mstx_cl_span){e->start_ns, e->end_ns};
    *k = (struct mstx_cl_call){.start_ns = e->start_ns,
                               .dur_ns = e->end_ns - e->start_ns,
                               .bytes = e->rec.count * e->rec.elem,
                               .group = mstx__comm_writer_id(f->comm, e->rec.group),
                               .seq = e->rec.seq,
                               .peer = e->rec.peer,
                               .op = e->rec.op,
                               .dtype = e->rec.dtype,
                               .unfinished = !e->is_done};
    if (!e->has_started && f->knows_start) /* it is in the queue behind another */
        part->calls.n--;
    return true;
}

static enum ms_rc take_entry(struct flight *f, const struct entry *e, struct mstx_cl_part *part,
                             mstx_events *events, struct ms_err *err)
{
    struct mstx_event *slot = ms_vec_push(events);
    const struct mstx_comm_fact fact = {.rec = &e->rec};
    if (slot == NULL || !add_call(f, part, e))
        return ms_no_memory(err);
    *slot = (struct mstx_event){.start_ns = e->start_ns,
                                .dur_ns = e->end_ns - e->start_ns,
                                .name = mstx__writer_text(f->w, e->name),
                                .count = 1,
                                .kind = MSTX_EV_RANGE,
                                .flags = e->is_done ? 0 : MSTX_EVF_UNFINISHED};
    f->entries++;
    f->unfinished += !e->is_done;
    return mstx__comm_writer_call(f->comm, &fact, slot, 0, err);
}

static void write_process(struct flight *f, uint32_t id, int32_t rank, const char *path,
                          mstx_events *events)
{
    const struct mstx_track_row track = {.process = id,
                                         .kind = MSTX_TRACK_THREAD,
                                         .domain = MS_STR(MSTX_COMM_DOMAIN),
                                         .name = MS_STR("collectives")};
    struct mstx_process_row row = {.rank = rank,
                                   .host = MS_STR(""),
                                   .name = MS_STR("flight recorder"),
                                   .dir = ms_str_of(path),
                                   .tool = MS_STR("PyTorch Flight Recorder"),
                                   .state = MS_STR("finished"),
                                   .records = events->n,
                                   .events = events->n};
    for (size_t i = 0; i < events->n; i++) {
        const struct mstx_event *e = &events->p[i];
        row.start_ns = i == 0 || e->start_ns < row.start_ns ? e->start_ns : row.start_ns;
        row.end_ns = e->start_ns + e->dur_ns > row.end_ns ? e->start_ns + e->dur_ns : row.end_ns;
        row.unfinished += (e->flags & MSTX_EVF_UNFINISHED) != 0;
    }
    mstx__writer_track(f->w, &track, events);
    mstx__writer_process(f->w, id, &row);
}

static enum ms_rc take_dump(struct flight *f, const char *path, int32_t rank,
                            const struct mstx_plain *dump, struct ms_err *err)
{
    const struct mstx_plain *groups = mstx_plain_get(dump, "pg_config");
    const struct mstx_plain *entries = mstx_plain_get(dump, "entries");
    struct mstx_cl_part part = {.rank = rank, .host = MS_STR("")};
    mstx_events events = {0};
    enum ms_rc rc = MS_OK;
    if (entries == NULL || entries->kind != MSTX_PLAIN_LIST)
        return ms_fail(err, MS_E_FORMAT,
                       "%s: has no list of entries: it is no Flight Recorder dump", path);
    const uint32_t id = mstx__writer_process_id(f->w);
    mstx__comm_writer_process(f->comm, id, rank, f->entries);
    for (size_t i = 0; rc == MS_OK && groups != NULL && i + 1 < groups->n; i += 2)
        rc = take_group(f, groups->item[i], groups->item[i + 1], (uint32_t)(i / 2) + 1, err);
    for (size_t i = 0; rc == MS_OK && i < entries->n; i++) {
        struct entry e;
        read_entry(entries->item[i], &e);
        e.rec.group = number_of(groups, e.group);
        rc = take_entry(f, &e, &part, &events, err);
    }
    if (rc == MS_OK)
        rc = mstx__comm_writer_flush(f->comm, err);
    if (rc == MS_OK && !mstx__cluster_slice(&part))
        rc = ms_no_memory(err);
    if (rc == MS_OK) {
        mstx__cluster_part(&f->cluster, &part);
        write_process(f, id, rank, path, &events);
    }
    mstx__cluster_part_free(&part);
    ms_vec_free(&events);
    return rc;
}

/* Any entry that has started and is not done, or was seen to start: the recorder tells of starts. */
static bool tells_starts(const struct mstx_plain *dump)
{
    const struct mstx_plain *entries = mstx_plain_get(dump, "entries");
    for (size_t i = 0; item(entries, i) != NULL; i++) {
        const struct mstx_plain *e = item(entries, i);
        if (ms_str_is(mstx_plain_text(mstx_plain_get(e, "state")), "started"))
            return true;
    }
    return false;
}

/* The digits that its name ends in, before an ending; -1: none. */
static int32_t rank_of(struct ms_str name)
{
    const int64_t dot = ms_str_rfind(name, '.'), slash = ms_str_rfind(name, '/');
    uint32_t end = dot > slash ? (uint32_t)dot : name.n, from;
    uint64_t rank;
    for (from = end; from > 0 && isdigit((unsigned char)name.p[from - 1]);)
        from--;
    return ms_str_u64(ms_str_sub(name, from, end), &rank) && rank <= INT32_MAX ? (int32_t)rank : -1;
}

struct loaded {
    struct ms_file file;
    struct ms_arena *a;
    struct mstx_plain *dump;
};

static enum ms_rc load(struct loaded *l, const char *path, struct ms_err *err)
{
    *l = (struct loaded){.a = ms_arena_new((size_t)1 << 34)};
    if (l->a == NULL)
        return ms_no_memory(err);
    MS_TRY(ms_file_map(&l->file, path, FILE_MAX - 1, err));
    enum ms_rc rc =
        mstx_plain_read(&l->dump, (struct ms_str){l->file.p, (uint32_t)l->file.n}, l->a, err);
    return rc == MS_OK ? MS_OK : ms_err_wrap(err, "%s", path);
}

static void unload(struct loaded *l)
{
    ms_file_unmap(&l->file);
    ms_arena_free(l->a);
}

/* A damaged file is a problem; the others are read. */
static enum ms_rc each_file(struct flight *f, const struct ms_dir *list, const char *dir,
                            bool only_look, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < list->names.n; i++) {
        struct loaded l = {0};
        struct ms_err e = {0};
        char *path = ms_path_join(dir, list->names.p[i].p);
        if (path == NULL)
            return ms_no_memory(err);
        if (mstx__is_flight_file(path)) {
            rc = load(&l, path, &e);
            if (rc == MS_OK && only_look)
                f->knows_start |= tells_starts(l.dump);
            else if (rc == MS_OK)
                rc = take_dump(f, path, rank_of(ms_str_of(path)), l.dump, &e);
            unload(&l);
            f->files += !only_look;
            if (!only_look)
                mstx__import_source(f->w, path);
            if (rc == MS_E_FORMAT) {
                if (!only_look)
                    mstx__writer_problem(f->w, path, e.msg);
                rc = MS_OK;
            }
        }
        ms_free(path);
        if (rc != MS_OK && err != NULL)
            *err = e;
    }
    return rc;
}

/* ---- all ------------------------------------------------------------------------------ */

static enum ms_rc conclude(struct flight *f, struct ms_err *err)
{
    MS_TRY(mstx__cluster_conclude(&f->cluster, err));
    return mstx__cluster_save_all(&f->cluster, f->w, err);
}

enum ms_rc mstx__import_flight(const char *path, struct mstx_writer *w,
                               struct mstx_import_result *result, struct ms_err *err)
{
    struct flight f = {.w = w};
    struct ms_dir list = {0};
    const bool is_dir = ms_path_kind(path) == MS_KIND_DIR;
    char *base = ms_str_dup(ms_str_of(path));
    char *slash = base != NULL ? strrchr(base, '/') : NULL;
    struct ms_str one = ms_str_of(slash != NULL && !is_dir ? slash + 1 : path);
    struct ms_dir single = {.names = {.p = &one, .n = 1, .cap = 1}};
    if (base == NULL)
        return ms_no_memory(err);
    if (slash != NULL && !is_dir)
        *slash = '\0';
    const char *dir = is_dir ? path : slash == base ? "/" : slash != NULL ? base : ".";
    enum ms_rc rc = mstx__comm_writer_new(&f.comm, w, err);
    if (rc == MS_OK && is_dir)
        rc = ms_dir_list(&list, path, err);
    for (int look = 1; rc == MS_OK && look >= 0; look--)
        rc = each_file(&f, is_dir ? &list : &single, dir, look != 0, err);
    if (rc == MS_OK)
        rc = conclude(&f, err);
    *result = (struct mstx_import_result){
        .files = f.files, .records = f.entries, .unfinished = f.unfinished};
    mstx__cluster_free(&f.cluster);
    mstx__comm_writer_free(f.comm);
    ms_dir_free(&list);
    ms_free(base);
    return rc;
}

bool mstx__is_flight_file(const char *path)
{
    struct ms_file file;
    if (ms_path_kind(path) != MS_KIND_FILE || ms_file_map(&file, path, FILE_MAX - 1, NULL) != MS_OK)
        return false;
    const size_t n = file.n < LOOKED_AT ? file.n : LOOKED_AT;
    const struct ms_str start = {file.p, (uint32_t)n};
    const bool could_be = mstx_plain_is_pickle(start) || (n != 0 && file.p[0] == '{');
    const bool is = could_be && (memmem(file.p, n, "pg_config", 9) != NULL ||
                                 memmem(file.p, n, "collective_seq_id", 17) != NULL);
    ms_file_unmap(&file);
    return is;
}

size_t mstx__count_flight_files(const char *dir)
{
    struct ms_dir list;
    size_t n = 0;
    if (ms_dir_list(&list, dir, NULL) != MS_OK)
        return 0;
    for (size_t i = 0; i < list.names.n; i++) {
        char *path = ms_path_join(dir, list.names.p[i].p);
        n += path != NULL && mstx__is_flight_file(path);
        ms_free(path);
    }
    ms_dir_free(&list);
    return n;
}
