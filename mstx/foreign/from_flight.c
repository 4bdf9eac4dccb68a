/* SPDX-License-Identifier: MIT
 *
 * from_flight: reads dumps of PyTorch's Flight Recorder.
 */
#include "mstx/foreign/from_flight.h"
#include "mstx/cluster/cluster.h"
#include "mstx/foreign/met_group.h"
#include "mstx/format/comm_marked.h"
#include "mstx/import/cluster_save.h"
#include "mstx/import/comm_calls.h"
#include "mstx/rundb/run_write.h"
#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/mem.h"
#include "probe/base/pickle.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ----------------------------------------------------------------- */

enum { DEPTH_MAX = 64 };

/* ---- pickle ---------------------------------------------------------------------------- */

/* Recognizes the functions by which PyTorch's pickler gives lists their types; they return their
 * first argument. */
static uint32_t name_number(struct ms_str module, struct ms_str name)
{
    static const char *const lists[] = {"restore_type_tag", "build_intlist", "build_doublelist",
                                        "build_boollist", "build_tensorlist"};
    if (ms_str_is(module, "collections") && ms_str_is(name, "OrderedDict"))
        return MS_PICKLE_NEW_DICT;
    for (size_t i = 0; ms_str_is(module, "torch.jit._pickle") && i < 5; i++) {
        if (ms_str_is(name, lists[i]))
            return MS_PICKLE_FIRST;
    }
    return MS_PICKLE_REFUSED;
}

/* Times and counts have at most 64 bits; a dump may hold longer numbers, which are not used. */
static const struct ms_pickle_rules rules = {.of = "a Flight Recorder dump",
                                             .ops = {MS_PICKLE_OPS, sizeof MS_PICKLE_OPS - 1},
                                             .protocol = 5,
                                             .name_number = name_number,
                                             .open = UINT32_MAX,
                                             .remembered = 1 << 24,
                                             .objects = UINT32_MAX,
                                             .items = UINT32_MAX,
                                             .digits = UINT32_MAX};

/* ---- JSON ------------------------------------------------------------------------------ */

struct json {
    struct ms_jread j;
    struct ms_arena *a;
    struct ms_buf scratch;
    bool no_memory;
};

static struct ms_plain *json_text(struct json *r)
{
    struct ms_plain *v = ms_plain_new(r->a, MS_PLAIN_TEXT);
    struct ms_str s;
    if (v == NULL || ms_jread_text(&r->j, &r->scratch, &s, NULL) != MS_OK)
        return NULL;
    v->s = r->j.escaped ? ms_arena_str(r->a, s) : s;
    return v->s.p != NULL || v->s.n == 0 ? v : NULL;
}

static struct ms_plain *json_number(struct json *r)
{
    struct ms_plain *v = ms_plain_new(r->a, MS_PLAIN_INT);
    if (v != NULL && !ms_jread_i64(&r->j, &v->i)) {
        v->kind = MS_PLAIN_REAL;
        if (!ms_jread_f64(&r->j, &v->f))
            v->kind = MS_PLAIN_NONE;
    }
    return v;
}

static struct ms_plain *json_value(struct json *r, enum ms_jtok t, int depth);

static struct ms_plain *json_items(struct json *r, enum ms_jtok t, int depth)
{
    const bool is_list = t == MS_J_ARR;
    const enum ms_jtok last = is_list ? MS_J_ARR_END : MS_J_OBJ_END;
    struct ms_plain *v = ms_plain_new(r->a, is_list ? MS_PLAIN_LIST : MS_PLAIN_DICT);
    if (v == NULL || depth == DEPTH_MAX) { /* no value that is used is nested as deep */
        r->no_memory |= v == NULL;
        return ms_jread_skip(&r->j, t) != MS_J_ERR ? v : NULL;
    }
    while ((t = ms_jread_next(&r->j)) != last && t != MS_J_ERR && !r->no_memory) {
        struct ms_plain *item = t == MS_J_KEY ? json_text(r) : json_value(r, t, depth + 1);
        r->no_memory |= item != NULL && !ms_plain_add(r->a, v, item);
        if (item == NULL)
            return NULL;
    }
    return t == last ? v : NULL;
}

static struct ms_plain *json_value(struct json *r, enum ms_jtok t, int depth)
{
    struct ms_plain *v;
    switch (t) {
    case MS_J_OBJ:
    case MS_J_ARR:
        return json_items(r, t, depth);
    case MS_J_STR:
        return json_text(r);
    case MS_J_NUM:
        return json_number(r);
    case MS_J_TRUE:
    case MS_J_FALSE:
        v = ms_plain_new(r->a, MS_PLAIN_BOOL);
        if (v != NULL)
            v->i = t == MS_J_TRUE;
        return v;
    case MS_J_NULL:
        return ms_plain_new(r->a, MS_PLAIN_NONE);
    default:
        return NULL;
    }
}

static enum ms_rc read_json(struct ms_plain **out, struct ms_str bytes, struct ms_arena *a,
                            struct ms_err *err)
{
    struct json r = {.a = a, .scratch = {.max = (size_t)bytes.n + 1}};
    ms_jread_init(&r.j, bytes.p, bytes.n, 0);
    *out = json_value(&r, ms_jread_next(&r.j), 0);
    const bool is_whole = *out != NULL && ms_jread_next(&r.j) == MS_J_END;
    ms_buf_free(&r.scratch);
    if (is_whole)
        return MS_OK;
    return r.j.bad_why != NULL ? ms_jread_fail(&r.j, err) : ms_no_memory(err);
}

/* ---- both ------------------------------------------------------------------------------ */

/* Tells whether bytes begin like a pickle of protocol 2 to 5. */
static bool plain_is_pickle(struct ms_str bytes)
{
    return bytes.n > 2 && (uint8_t)bytes.p[0] == 0x80 && bytes.p[1] >= 2 && bytes.p[1] <= 5;
}

enum ms_rc mstx_plain_read(struct ms_plain **out, struct ms_str bytes, struct ms_arena *a,
                           struct ms_err *err)
{
    size_t at = 0;
    return plain_is_pickle(bytes) ? ms_pickle_read(out, bytes.p, bytes.n, &at, &rules, a, err)
                                  : read_json(out, bytes, a, err);
}

/* ---- dumps ------------------------------------------------------------------ */

/* Reads PyTorch's Flight Recorder dumps, one file for each rank, pickled or JSON.
 *
 *     {"version": .., "pg_config": {NAME: {"name", "desc", "ranks": "[0, 1]"}}, "entries": [{..}, ..]}
 *
 * A group is identified by its name and its ranks.  The recorder is a ring, so sequence numbers
 * begin anywhere: each group counts from the lowest number that the ring of any rank still holds. */

static const size_t FILE_MAX = (size_t)1 << 32, LOOKED_AT = 1 << 20;
enum { GROUP_RANKS_MAX = 65536 };

struct flight {
    struct mstx_writer *w;
    struct mstx_comm_writer *comm;
    struct mstx_cluster cluster;
    bool
        knows_start; /* true when any dump records starts: then a call that has not started has not arrived */
    uint64_t files, entries, unfinished;
};

/* ---- words -------------------------------------------------------------------------- */

/* Finds the operation in "nccl:_reduce_scatter_base", "gloo:all_reduce" or "nccl:send 1->2". The
 * table lists a word before words that it contains. */
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

/* PyTorch's words for types. */
static const struct {
    const char *word;
    uint8_t type;
} type_words[] = {{"Float", MSTX_TYPE_FP32},
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

static uint8_t type_of(struct ms_str name)
{
    for (size_t i = 0; i < sizeof type_words / sizeof *type_words; i++) {
        if (ms_str_is(name, type_words[i].word))
            return type_words[i].type;
    }
    return MSTX_TYPE_NA;
}

const char *mstx__flight_type(uint8_t type)
{
    for (size_t i = 0; i < sizeof type_words / sizeof *type_words; i++) {
        if (type_words[i].type == type)
            return type_words[i].word;
    }
    return "Byte";
}

/* Finds the peer in "nccl:send 1->2" or "nccl:recv 3<-0"; returns -1 when there is none. */
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

static uint64_t element_count(const struct ms_plain *sizes)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < ms_plain_len(sizes); i++) {
        const struct ms_plain *shape = ms_plain_item(sizes, i);
        uint64_t n = 1;
        for (uint32_t k = 0; k < ms_plain_len(shape); k++) {
            const int64_t d = ms_plain_int(ms_plain_item(shape, k), 0);
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

static int64_t time_of(const struct ms_plain *e, const char *key)
{
    const int64_t years_36 = (int64_t)1 << 60, t = ms_plain_int(ms_plain_get(e, key), 0);
    return t > 0 && t < 2 * years_36 ? t : 0;
}

static void read_times(const struct ms_plain *e, struct entry *to)
{
    const struct ms_str state = ms_plain_text(ms_plain_get(e, "state"));
    const int64_t made = time_of(e, "time_created_ns");
    const int64_t began = time_of(e, "time_discovered_started_ns");
    const int64_t ended = time_of(e, "time_discovered_completed_ns");
    const double ms = ms_plain_real(ms_plain_get(e, "duration_ms"), -1);
    to->is_done = ms_str_is(state, "completed");
    to->has_started = to->is_done || ms_str_is(state, "started");
    to->start_ns = began != 0 ? began : made;
    to->end_ns = to->start_ns;
    if (ms >= 0 && ms < 1e12 &&
        ended != 0) { /* duration_ms is the time on the device; the completion is noticed later */
        to->start_ns = ended - (int64_t)(ms * 1e6);
        to->end_ns = ended;
    } else if (ms >= 0 && ms < 1e12) {
        to->end_ns = to->start_ns + (int64_t)(ms * 1e6);
    } else if (ended > to->start_ns) {
        to->end_ns = ended;
    }
}

static void read_entry(const struct ms_plain *e, struct entry *to)
{
    const struct ms_plain *pg = ms_plain_get(e, "process_group");
    *to = (struct entry){.name = ms_plain_text(ms_plain_get(e, "profiling_name")),
                         .group = ms_plain_text(ms_plain_item(pg, 0))};
    const uint8_t op = op_of(to->name);
    const bool is_p2p = mstx_comm_op_class(op) == MSTX_CLASS_P2P;
    const bool by_output = op == MSTX_COMM_REDUCE_SCATTER || op == MSTX_COMM_SCATTER;
    const struct ms_plain *types = ms_plain_get(e, by_output ? "output_dtypes" : "input_dtypes");
    const int64_t seq =
        ms_plain_int(ms_plain_get(e, is_p2p ? "p2p_seq_id" : "collective_seq_id"), 0);
    to->rec = (struct mstx_rec_comm){
        .count = element_count(ms_plain_get(e, by_output ? "output_sizes" : "input_sizes")),
        .seq = seq >= 0 && seq < UINT32_MAX ? (uint32_t)seq : UINT32_MAX,
        .peer = is_p2p ? peer_of(to->name) : -1,
        .dtype = type_of(ms_plain_text(ms_plain_item(types, 0))),
        .reduce = MSTX_REDUCE_NONE,
        .type = MSTX_REC_COMM,
        .op = op,
        .lib = MSTX_LIB_TORCH};
    to->rec.elem = mstx_comm_type_bytes(to->rec.dtype);
    read_times(e, to);
}

/* ---- groups --------------------------------------------------------------------------- */

/* Adds a group. Group n of the file has number n + 1 in the calls. */
static enum ms_rc add_group(struct flight *f, const struct ms_plain *name,
                            const struct ms_plain *conf, uint32_t number, struct ms_err *err)
{
    const struct ms_str ranks = ms_plain_text(ms_plain_get(conf, "ranks"));
    const struct ms_str desc = ms_plain_text(ms_plain_get(conf, "desc"));
    int32_t *world = ms_calloc(GROUP_RANKS_MAX, sizeof *world);
    char shown[128];
    if (world == NULL)
        return ms_no_memory(err);
    const uint32_t n = mstx__comm_ranks(ranks, world, GROUP_RANKS_MAX);
    snprintf(shown, sizeof shown, "%.*s", MS_STR_ARG(desc.n != 0 ? desc : ms_plain_text(name)));
    const struct mstx_comm_known g = {.uid = ms_str_hash(ms_plain_text(name)) * 31 +
                                             ms_str_hash(ranks),
                                      .size = n != 0 ? (int32_t)n : -1,
                                      .rank = -1,
                                      .listed = n,
                                      .world = (const char *)world,
                                      .name = ms_str_of(shown)};
    enum ms_rc rc = mstx__met_group(f->comm, &f->cluster, &g, number, err);
    ms_free(world);
    return rc;
}

static uint32_t number_of(const struct ms_plain *groups, struct ms_str name)
{
    for (uint32_t i = 0; i + 1 < ms_plain_len(groups); i += 2) {
        if (ms_str_eq(ms_plain_text(ms_plain_item(groups, i)), name))
            return i / 2 + 1;
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
    if (!e->has_started &&
        f->knows_start) /* the call is queued behind another and has not arrived */
        part->calls.n--;
    return true;
}

static enum ms_rc add_entry(struct flight *f, const struct entry *e, struct mstx_cl_part *part,
                            mstx_events *events, struct ms_err *err)
{
    ms_assert(e->end_ns >= e->start_ns);
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

static enum ms_rc add_dump(struct flight *f, const char *path, int32_t rank,
                           const struct ms_plain *dump, struct ms_err *err)
{
    const struct ms_plain *groups = ms_plain_get(dump, "pg_config");
    const struct ms_plain *entries = ms_plain_get(dump, "entries");
    struct mstx_cl_part part = {.rank = rank, .host = MS_STR("")};
    mstx_events events = {0};
    enum ms_rc rc = MS_OK;
    if (entries == NULL || (entries->kind != MS_PLAIN_LIST && entries->kind != MS_PLAIN_TUPLE))
        return ms_fail(err, MS_E_FORMAT,
                       "%s: has no list of entries: it is no Flight Recorder dump", path);
    const uint32_t id = mstx__writer_process_id(f->w);
    mstx__comm_writer_process(f->comm, id, rank, f->entries);
    for (uint32_t i = 0; rc == MS_OK && i + 1 < ms_plain_len(groups); i += 2)
        rc = add_group(f, ms_plain_item(groups, i), ms_plain_item(groups, i + 1), i / 2 + 1, err);
    for (uint32_t i = 0; rc == MS_OK && i < ms_plain_len(entries); i++) {
        struct entry e;
        read_entry(ms_plain_item(entries, i), &e);
        e.rec.group = number_of(groups, e.group);
        rc = add_entry(f, &e, &part, &events, err);
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

/* Tells whether the dump records starts: some entry is in the state "started". */
static bool tells_starts(const struct ms_plain *dump)
{
    const struct ms_plain *entries = ms_plain_get(dump, "entries");
    for (uint32_t i = 0; i < ms_plain_len(entries); i++) {
        const struct ms_plain *e = ms_plain_item(entries, i);
        if (ms_str_is(ms_plain_text(ms_plain_get(e, "state")), "started"))
            return true;
    }
    return false;
}

/* Finds the rank in the digits at the end of a file name, before its extension; returns -1 without
 * digits. */
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
    struct ms_plain *dump;
};

static enum ms_rc load_file(struct loaded *l, const char *path, struct ms_err *err)
{
    *l = (struct loaded){.a = ms_arena_new((size_t)1 << 34)};
    if (l->a == NULL)
        return ms_no_memory(err);
    MS_TRY(ms_file_map(&l->file, path, FILE_MAX - 1, err));
    enum ms_rc rc =
        mstx_plain_read(&l->dump, (struct ms_str){l->file.p, (uint32_t)l->file.n}, l->a, err);
    return rc == MS_OK ? MS_OK : ms_err_wrap(err, "%s", path);
}

static void free_file(struct loaded *l)
{
    ms_file_unmap(&l->file);
    ms_arena_free(l->a);
}

/* Reads all files; notes a damaged file as a problem. With only_look, only tests whether dumps
 * record starts. */
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
            rc = load_file(&l, path, &e);
            if (rc == MS_OK && only_look)
                f->knows_start |= tells_starts(l.dump);
            else if (rc == MS_OK)
                rc = add_dump(f, path, rank_of(ms_str_of(path)), l.dump, &e);
            free_file(&l);
            f->files += !only_look;
            if (!only_look)
                mstx__writer_source(f->w, path);
            if (rc == MS_E_FORMAT || rc == MS_E_UNSUPPORTED || rc == MS_E_LIMIT) {
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

static enum ms_rc conclude_cluster(struct flight *f, struct ms_err *err)
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
        rc = conclude_cluster(&f, err);
    *result = (struct mstx_import_result){
        .files = f.files, .records = f.entries, .unfinished = f.unfinished};
    mstx__cluster_free(&f.cluster);
    mstx__comm_writer_free(f.comm);
    ms_dir_free(&list);
    ms_free(base);
    return rc;
}

static bool has(struct ms_str text, const char *word)
{
    return memmem(text.p, text.n, word, strlen(word)) != NULL;
}

/* A trace of PyTorch's profiler describes the communicators of NCCL too. */
static bool is_trace(struct ms_str start)
{
    return has(start, "\"schemaVersion\"") || has(start, "\"traceEvents\"");
}

bool mstx__is_flight_file(const char *path)
{
    struct ms_file file;
    if (ms_path_kind(path) != MS_KIND_FILE || ms_file_map(&file, path, FILE_MAX - 1, NULL) != MS_OK)
        return false;
    const size_t n = file.n < LOOKED_AT ? file.n : LOOKED_AT;
    const struct ms_str start = {file.p, (uint32_t)n};
    const bool could_be = plain_is_pickle(start) || (n != 0 && file.p[0] == '{');
    const bool is = could_be && !is_trace(start) &&
                    (has(start, "pg_config") || has(start, "collective_seq_id"));
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
