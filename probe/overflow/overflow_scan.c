/* SPDX-License-Identifier: MIT
 *
 * overflow_scan: extracts from the dump of one rank what the search needs.
 *
 * Every leaf of a record is checked, however deep it is nested. Buffers that an operator only
 * writes to have arbitrary contents before the call, so they do not count as inputs.
 */
#include "probe/overflow/overflow_int.h"

#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/base/trace.h"

#include <math.h>

/* ---- leaves ----------------------------------------------------------- */

static unsigned bad_f64(double v)
{
    return isnan(v) ? PROBE_BAD_NAN : isinf(v) ? PROBE_BAD_INF : 0;
}

static unsigned bad_stats(const struct probe_leaf *leaf)
{
    return bad_f64(leaf->stat[PROBE_STAT_MAX].v) | bad_f64(leaf->stat[PROBE_STAT_MIN].v);
}

static unsigned bad_value(const struct probe_leaf *leaf)
{
    double v;
    /* Python's float, NumPy's float32, ... */
    if (!ms_str_starts(leaf->type, MS_STR("float")))
        return 0;
    return ms_num_parse_f64(leaf->value_json.p, leaf->value_json.n, &v) ? bad_f64(v) : 0;
}

/* Gets the tensor, the operation and the peer of a point-to-point operation. */
static bool p2p_parts(struct ms_str json, struct probe_leaf *tensor, struct ms_str *op,
                      int64_t *peer)
{
    struct ms_jread r;
    bool found = false;
    *op = MS_STR_NONE;
    *peer = -1;
    ms_jread_init(&r, json.p, json.n, 0);
    if (ms_jread_next(&r) != MS_J_OBJ)
        return false;
    while (ms_jread_next(&r) == MS_J_KEY) {
        struct ms_str key = r.text;
        enum ms_jtok tok = ms_jread_next(&r);
        const char *from = r.tok;
        if (tok == MS_J_STR && ms_str_is(key, "op"))
            *op = r.text;
        else if (tok == MS_J_NUM && ms_str_is(key, "peer") && !ms_jread_i64(&r, peer))
            *peer = -1;
        if (ms_jread_skip(&r, tok) == MS_J_ERR)
            return found;
        if (tok == MS_J_OBJ && ms_str_is(key, "tensor")) {
            probe_leaf_parse(tensor, (struct ms_str){from, (uint32_t)(r.at - from)},
                             PROBE_LEAF_TENSOR);
            found = true;
        }
    }
    return found;
}

unsigned probe_leaf_fault(const struct probe_leaf *leaf, bool forward)
{
    unsigned bad = probe_leaf_bad(leaf);
    return forward && bad == PROBE_BAD_INF && probe_leaf_is_masked(leaf) ? 0 : bad;
}

unsigned probe_leaf_bad(const struct probe_leaf *leaf)
{
    struct probe_leaf tensor;
    struct ms_str op;
    int64_t peer;
    switch (leaf->kind) {
    case PROBE_LEAF_TENSOR:
    case PROBE_LEAF_OTHER:
        return bad_stats(leaf);
    case PROBE_LEAF_VALUE:
        return bad_value(leaf);
    case PROBE_LEAF_P2P:
        return p2p_parts(leaf->json, &tensor, &op, &peer) ? bad_stats(&tensor) : 0;
    case PROBE_LEAF_NULL:
    case PROBE_LEAF_GROUP:
        break;
    }
    return 0;
}

/* ---- kinds of communication ------------------------------------------- */

enum comm_kind { COMM_NONE, COMM_ALL, COMM_SEND, COMM_RECV, COMM_FROM_ONE, COMM_BATCH };

/* Kinds of communication by words in the operator's name; the first match counts. */
static const struct {
    struct ms_str word;
    enum comm_kind kind;
} comm_words[] = {
    {{"batch_isend_irecv", 17}, COMM_BATCH},
    {{"all_to_all", 10}, COMM_ALL},
    {{"alltoall", 8}, COMM_ALL},
    {{"reduce", 6}, COMM_ALL},
    {{"gather", 6}, COMM_ALL},
    {{"broadcast", 9}, COMM_FROM_ONE},
    {{"scatter", 7}, COMM_FROM_ONE},
    {{"send", 4}, COMM_SEND},
    {{"recv", 4}, COMM_RECV},
};

/* Buffers that an operator only writes to: the index among input_args, and the name as a
 * keyword. */
static const struct {
    struct ms_str api;
    int arg;
    struct ms_str keyword;
} out_buffers[] = {
    {{"all_gather", 10}, 0, {"tensor_list", 11}},
    {{"_all_gather_base", 16}, 0, {"output_tensor", 13}},
    {{"all_gather_into_tensor", 22}, 0, {"output_tensor", 13}},
    {{"reduce_scatter", 14}, 0, {"output", 6}},
    {{"_reduce_scatter_base", 20}, 0, {"output", 6}},
    {{"reduce_scatter_tensor", 21}, 0, {"output", 6}},
    {{"all_to_all", 10}, 0, {"output_tensor_list", 18}},
    {{"all_to_all_single", 17}, 0, {"output", 6}},
    {{"gather", 6}, 1, {"gather_list", 11}},
    {{"scatter", 7}, 0, {"tensor", 6}},
};

static bool is_distributed(struct ms_str prefix)
{
    return ms_str_is(prefix, "Distributed") || ms_str_is(prefix, "MintDistributed");
}

static enum comm_kind comm_kind_of(const struct probe_name *name)
{
    if (!is_distributed(name->prefix))
        return COMM_NONE;
    for (size_t i = 0; i < sizeof comm_words / sizeof *comm_words; i++) {
        if (ms_str_find_str(name->path, comm_words[i].word) >= 0)
            return comm_words[i].kind;
    }
    return COMM_NONE;
}

/* Returns the part of a row's path behind "input.": an index or a keyword. */
static struct ms_str place_in_section(const struct probe_dump *d, const struct probe_row *row)
{
    struct ms_str rest = probe_row_path(d, row);
    struct ms_str part = MS_STR_NONE;
    if (ms_str_split(&rest, '.', &part))
        ms_str_split(&rest, '.', &part);
    return part;
}

static bool is_out_buffer(const struct probe_dump *d, const struct probe_row *row,
                          struct ms_str api)
{
    struct ms_str at = place_in_section(d, row);
    for (size_t i = 0; i < sizeof out_buffers / sizeof *out_buffers; i++) {
        if (!ms_str_eq(out_buffers[i].api, api))
            continue;
        if (row->section == PROBE_SEC_INPUT_KWARGS)
            return ms_str_eq(at, out_buffers[i].keyword);
        return at.n == 1 && at.p[0] == '0' + out_buffers[i].arg;
    }
    return false;
}

/* ---- one record ------------------------------------------------------- */

struct look {
    enum comm_kind comm;
    struct probe_name name;
    unsigned in, out, elsewhere; /* enum probe_bad */
    bool asked_for, forward;
    /* Communication operators only: */
    int64_t first_int, src, dst, group_src, group_dst; /* -1: not given */
    struct ms_str group;                               /* JSON list of ranks */
};

static void look_at_argument(struct look *l, const struct probe_dump *d,
                             const struct probe_row *row, const struct probe_leaf *leaf)
{
    const struct {
        const char *keyword;
        int64_t *into;
    } known[] = {{"src", &l->src},
                 {"dst", &l->dst},
                 {"group_src", &l->group_src},
                 {"src_group", &l->group_src},
                 {"group_dst", &l->group_dst},
                 {"dst_group", &l->group_dst}};
    int64_t v;
    if (leaf->kind == PROBE_LEAF_GROUP)
        l->group = leaf->value_json;
    if (leaf->kind != PROBE_LEAF_VALUE || !ms_str_is(leaf->type, "int") ||
        !ms_str_i64(leaf->value_json, &v))
        return;
    if (row->section == PROBE_SEC_INPUT_ARGS && l->first_int < 0)
        l->first_int = v;
    if (row->section != PROBE_SEC_INPUT_KWARGS)
        return;
    struct ms_str keyword = place_in_section(d, row);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ms_str_is(keyword, known[i].keyword))
            *known[i].into = v;
    }
}

/* Tells whether a leaf is a receive operation, whose tensor is no input. */
static bool is_received(const struct probe_leaf *leaf)
{
    struct probe_leaf tensor;
    struct ms_str op;
    int64_t peer;
    return leaf->kind == PROBE_LEAF_P2P && p2p_parts(leaf->json, &tensor, &op, &peer) &&
           ms_str_ends(op, MS_STR("recv"));
}

static void look_at_input(struct look *l, const struct probe_dump *d, const struct probe_row *row,
                          const struct probe_leaf *leaf)
{
    if (l->comm != COMM_NONE) {
        look_at_argument(l, d, row, leaf);
        if (is_received(leaf) || is_out_buffer(d, row, l->name.path))
            return;
    }
    unsigned bad = probe_leaf_fault(leaf, l->forward);
    if (leaf->kind == PROBE_LEAF_VALUE)
        l->asked_for |= bad != 0;
    else
        l->in |= bad;
}

static void look_at_row(struct look *l, const struct probe_dump *d, const struct probe_row *row)
{
    struct probe_leaf leaf;
    if (row->kind == PROBE_LEAF_NULL)
        return;
    probe_row_leaf(d, row, &leaf);
    switch (row->section) {
    case PROBE_SEC_INPUT_ARGS:
    case PROBE_SEC_INPUT_KWARGS:
    case PROBE_SEC_INPUT:
        look_at_input(l, d, row, &leaf);
        break;
    case PROBE_SEC_OUTPUT:
        l->out |= probe_leaf_fault(&leaf, l->forward);
        break;
    default:
        l->elsewhere |= probe_leaf_fault(&leaf, l->forward);
        break;
    }
}

static struct look look_at(const struct probe_dump *d, uint32_t node)
{
    const struct probe_node *n = &d->nodes.p[node];
    struct look l = {.first_int = -1, .src = -1, .dst = -1, .group_src = -1, .group_dst = -1};
    l.name = probe_name_parse(probe_node_name(d, node));
    l.comm = comm_kind_of(&l.name);
    l.forward = n->dir == PROBE_FORWARD;
    for (uint32_t i = 0; i < n->nrows; i++)
        look_at_row(&l, d, &d->rows.p[n->first_row + i]);
    return l;
}

/* ---- tags of communication -------------------------------------------- */

/* Adds a tag with the number of its call, "all_reduce|0,1|3". */
static enum ms_rc add_tag(struct probe__rank *r, struct ms_buf *tag, const char *counter,
                          struct ms_err *err)
{
    struct ms_buf key = {.max = tag->max + 64};
    bool added;
    ms_buf_puts(&key, counter);
    ms_buf_str(&key, ms_buf_slice(tag));
    enum ms_rc rc = ms_buf_check(&key, err);
    uint32_t id = rc != MS_OK ? MS_MAP_NONE
                              : ms_map_put_copy(&r->counters, ms_buf_slice(&key), r->arena, &added);
    ms_buf_free(&key);
    if (id == MS_MAP_NONE)
        return rc != MS_OK ? rc : ms_no_memory(err);
    uint32_t *count = added ? ms_vec_push(&r->counts) : &r->counts.p[id];
    struct ms_str *slot = ms_vec_push(&r->tags);
    if (count == NULL || slot == NULL)
        return ms_no_memory(err);
    *count = added ? 0 : *count + 1;
    ms_buf_printf(tag, "|%u", *count);
    MS_TRY(ms_buf_check(tag, err));
    *slot = ms_arena_str(r->arena, ms_buf_slice(tag));
    return slot->p != NULL ? MS_OK : ms_no_memory(err);
}

/* Returns the i-th rank of a JSON list; -1 when the list has fewer ranks, i when there is no
 * list. */
static int64_t rank_in_group(struct ms_str group, int64_t i)
{
    struct ms_jread r;
    int64_t rank = -1;
    ms_jread_init(&r, group.p, group.n, 0);
    if (group.n == 0 || i < 0 || ms_jread_next(&r) != MS_J_ARR)
        return i;
    for (;;) {
        if (ms_jread_next(&r) != MS_J_NUM || !ms_jread_i64(&r, &rank))
            return -1;
        if (i-- == 0)
            return rank;
    }
}

/* Returns the peer of a message, or the source of a broadcast: by global rank, by rank in the
 * group, or the first integer among the arguments. */
static int64_t peer_of(const struct look *l, int64_t global, int64_t in_group)
{
    if (global >= 0)
        return global;
    return in_group >= 0 ? rank_in_group(l->group, in_group) : l->first_int;
}

static enum ms_rc add_message(struct probe__rank *r, bool sends, bool object, int64_t peer,
                              struct ms_err *err)
{
    long long own = r->place->rank < 0 ? 0 : r->place->rank;
    long long from = sends ? own : peer, to = sends ? peer : own;
    struct ms_buf tag = {.max = 256};
    if (peer < 0)
        return MS_OK; /* received from any rank: the peer is unknown */
    ms_buf_printf(&tag, "%s|%lld|%lld", object ? "object" : "p2p", from, to);
    enum ms_rc rc = add_tag(r, &tag, sends ? "send " : "recv ", err);
    ms_buf_free(&tag);
    return rc;
}

static enum ms_rc add_batch(struct probe__rank *r, const struct probe_dump *d, uint32_t node,
                            struct ms_err *err)
{
    const struct probe_node *n = &d->nodes.p[node];
    for (uint32_t i = 0; i < n->nrows; i++) {
        const struct probe_row *row = &d->rows.p[n->first_row + i];
        struct probe_leaf tensor;
        struct ms_str op;
        int64_t peer;
        struct ms_str json = {d->file.p + row->off, row->len};
        if (row->kind != PROBE_LEAF_P2P || row->section == PROBE_SEC_OUTPUT)
            continue;
        p2p_parts(json, &tensor, &op, &peer);
        if (op.n != 0)
            MS_TRY(add_message(r, ms_str_ends(op, MS_STR("send")), false, peer, err));
    }
    return MS_OK;
}

/* Adds the tag of a collective, "all_reduce|0,1": calls of one operator in one group have the same
 * order on every rank of the group. */
static enum ms_rc add_collective(struct probe__rank *r, const struct look *l, struct ms_err *err)
{
    struct ms_buf tag = {.max = 1 << 20};
    struct ms_jread reader;
    const char *sep = "";
    ms_buf_str(&tag, l->name.path);
    ms_buf_putc(&tag, l->name.dir == PROBE_BACKWARD ? '<' : '|');
    ms_jread_init(&reader, l->group.p, l->group.n, 0);
    if (l->group.n != 0 && ms_jread_next(&reader) == MS_J_ARR) {
        while (ms_jread_next(&reader) == MS_J_NUM) {
            ms_buf_puts(&tag, sep);
            ms_buf_str(&tag, reader.text);
            sep = ",";
        }
    }
    enum ms_rc rc = add_tag(r, &tag, "", err);
    ms_buf_free(&tag);
    return rc;
}

static enum ms_rc add_tags(struct probe__rank *r, const struct probe_dump *d, uint32_t node,
                           const struct look *l, struct ms_err *err)
{
    bool object = ms_str_ends(l->name.path, MS_STR("object_list"));
    switch (l->comm) {
    case COMM_SEND:
        return add_message(r, true, object, peer_of(l, l->dst, l->group_dst), err);
    case COMM_RECV:
        return add_message(r, false, object, peer_of(l, l->src, l->group_src), err);
    case COMM_BATCH:
        return add_batch(r, d, node, err);
    case COMM_ALL:
    case COMM_FROM_ONE:
        return add_collective(r, l, err);
    case COMM_NONE:
        break;
    }
    return MS_OK;
}

/* Tells whether the operator sends its input on this rank. */
static bool is_sender(const struct probe__rank *r, const struct look *l)
{
    if (l->comm == COMM_FROM_ONE) {
        int64_t src = peer_of(l, l->src, l->group_src);
        return src < 0 || src == (r->place->rank < 0 ? 0 : r->place->rank);
    }
    return l->comm != COMM_RECV;
}

/* ---- one rank --------------------------------------------------------- */

struct walk {
    struct probe__rank *rank;
    const struct probe_dump *dump;
    const struct probe__scan_conf *conf;
    uint32_t sub;
    bool nan_said;    /* an earlier record of a nan_check dump was bad */
    bool bad_forward; /* an earlier forward record was bad */
};

/* Tells whether an operator is ignored: those that return memory as it is, and those of the user's
 * list. */
static bool is_ignored(const struct walk *w, struct ms_str name)
{
    static const char *const always[] = {"Torch.empty", "Torch.fill"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        if (ms_str_find_str(name, ms_str_of(always[i])) >= 0)
            return true;
    }
    for (size_t i = 0; i < w->conf->nignore; i++) {
        if (ms_str_find_str(name, ms_str_of(w->conf->ignore[i])) >= 0)
            return true;
    }
    return false;
}

static struct probe__origin origin_here(const struct walk *w, uint32_t node, const struct look *l)
{
    return (struct probe__origin){
        .name = ms_arena_str(w->rank->arena, probe_node_name(w->dump, node)),
        .off = w->dump->nodes.p[node].off,
        .segment = (uint32_t)w->rank->comms.n,
        .sub = w->sub,
        .asked_for = l->asked_for,
        .communication = l->comm != COMM_NONE,
    };
}

static enum ms_rc note_comm(struct walk *w, uint32_t node, const struct look *l, struct ms_err *err)
{
    struct probe__rank *r = w->rank;
    struct probe__origin here = origin_here(w, node, l);
    uint32_t first = (uint32_t)r->tags.n;
    MS_TRY(add_tags(r, w->dump, node, l, err));
    struct probe__comm *slot = here.name.p != NULL ? ms_vec_push(&r->comms) : NULL;
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct probe__comm){.name = here.name,
                                 .off = here.off,
                                 .sub = here.sub,
                                 .first_tag = first,
                                 .tags = (uint32_t)r->tags.n - first,
                                 .gives = is_sender(r, l),
                                 .in_bad = l->in != 0,
                                 .out_bad = l->out != 0 && !is_ignored(w, here.name)};
    w->sub = 0;
    return MS_OK;
}

static enum ms_rc note_origin(struct walk *w, uint32_t node, const struct look *l,
                              struct ms_err *err)
{
    struct probe__origin here = origin_here(w, node, l);
    struct probe__origin *slot = here.name.p != NULL ? ms_vec_push(&w->rank->origins) : NULL;
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = here;
    return MS_OK;
}

/* Uses is_nan of a dump of task nan_check, which has no statistics, only a flag for a bad output.
 * Nothing is known of the inputs; after the first bad record of a rank they count as bad. */
static void use_is_nan(struct walk *w, uint32_t node, struct look *l)
{
    uint8_t flags = w->dump->nodes.p[node].flags;
    if ((flags & PROBE_NODE_NAN_SAID) == 0)
        return;
    if (w->nan_said)
        l->in |= PROBE_BAD_NAN;
    if ((flags & PROBE_NODE_NAN) != 0) {
        l->out |= PROBE_BAD_NAN;
        w->nan_said = true;
    }
}

static enum ms_rc note_present(struct walk *w, uint32_t node, const struct look *l,
                               struct ms_err *err)
{
    if (w->rank->has_present || (l->in | l->out | l->elsewhere) == 0)
        return MS_OK;
    w->rank->present = origin_here(w, node, l);
    w->rank->has_present = true;
    return w->rank->present.name.p != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc walk_node(struct walk *w, uint32_t node, struct ms_err *err)
{
    struct look l = look_at(w->dump, node);
    use_is_nan(w, node, &l);
    if (l.comm != COMM_NONE) {
        MS_TRY(note_present(w, node, &l, err));
        return note_comm(w, node, &l, err);
    }
    if (is_ignored(w, probe_node_name(w->dump, node)))
        return MS_OK;
    MS_TRY(note_present(w, node, &l, err));
    /* A backward reads values of its forward that its record does not have. */
    if (l.in == 0 && l.out != 0 && (l.forward || !w->bad_forward))
        MS_TRY(note_origin(w, node, &l, err));
    w->bad_forward |= l.forward && (l.in | l.out) != 0;
    w->sub++;
    return MS_OK;
}

enum ms_rc probe__overflow_scan(struct probe__rank *r, const struct probe__scan_conf *conf,
                                struct ms_pool *pool, struct ms_err *err)
{
    struct probe_dump *dump;
    struct walk w = {.rank = r, .conf = conf};
    r->arena = ms_arena_new(SIZE_MAX);
    if (r->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(probe_dump_open(&dump, r->place->json, conf->open_flags, pool, err));
    struct ms_span span = ms_span_begin("scan");
    enum ms_rc rc = MS_OK;
    w.dump = dump;
    for (uint32_t i = 0; i < dump->nodes.n && rc == MS_OK; i++)
        rc = walk_node(&w, i, err);
    ms_span_end(&span);
    probe_dump_close(dump);
    ms_map_free(&r->counters);
    ms_vec_free(&r->counts);
    return rc;
}

void probe__rank_free(struct probe__rank *r)
{
    ms_vec_free(&r->origins);
    ms_vec_free(&r->comms);
    ms_vec_free(&r->tags);
    ms_map_free(&r->counters);
    ms_vec_free(&r->counts);
    ms_arena_free(r->arena);
    r->arena = NULL;
}
