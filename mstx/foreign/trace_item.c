/* SPDX-License-Identifier: MIT
 *
 * trace_item: see the header.
 */
#include "mstx/foreign/trace_item.h"

#include <stddef.h>

/* ---- values ----------------------------------------------------------------- */

/* Converts microseconds in text to nanoseconds; drops digits after the third decimal. */
static bool parse_us(struct ms_str s, int64_t *ns)
{
    struct ms_str whole = s, rest = MS_STR("");
    int64_t point = ms_str_find(s, '.'), us, part = 0;
    bool minus = s.n != 0 && s.p[0] == '-';
    if (point >= 0) {
        whole = ms_str_sub(s, 0, (uint32_t)point);
        rest = ms_str_sub(s, (uint32_t)point + 1, s.n);
    }
    if (!ms_str_i64(whole, &us) || us >= MSTX_TRACE_TIME_MOST / 1000 ||
        us <= -MSTX_TRACE_TIME_MOST / 1000)
        return false;
    for (uint32_t i = 0; i < 3; i++) {
        char c = i < rest.n ? rest.p[i] : '0';
        if (c < '0' || c > '9')
            return false;
        part = 10 * part + (c - '0');
    }
    *ns = us * 1000 + (minus ? -part : part);
    return true;
}

/* Reads a time, which may be a number or a text. */
static bool read_time(const struct ms_jread *j, enum ms_jtok t, int64_t *ns)
{
    double us;
    if ((t == MS_J_NUM || t == MS_J_STR) && parse_us(j->text, ns))
        return true;
    if (t != MS_J_NUM || !ms_jread_f64(j, &us) ||
        !(us * 1000 > -(double)MSTX_TRACE_TIME_MOST / 2 &&
          us * 1000 < (double)MSTX_TRACE_TIME_MOST / 2))
        return false;
    *ns = (int64_t)(us * 1000);
    return true;
}

struct ms_str mstx__trace_string(struct mstx_trace_json *r)
{
    struct ms_buf scratch = {.max = 1 << 24};
    struct ms_str s = MS_STR("");
    if (ms_jread_text(&r->j, &scratch, &s, NULL) == MS_OK && s.n != 0) {
        s = ms_arena_str(r->arena, s);
        r->no_memory |= s.p == NULL;
    }
    r->no_memory |= scratch.bad == MS_E_NOMEM;
    ms_buf_free(&scratch);
    return s.p != NULL ? s : MS_STR("");
}

/* As mstx__trace_string, without a copy where the text has no escapes. */
static struct ms_str text_of(struct mstx_trace_json *r)
{
    return r->j.escaped ? mstx__trace_string(r) : r->j.text;
}

/* ---- args ------------------------------------------------------------------- */

/* Members that are looked at, by the length of their keys; those of to_chrome.c have no place. */
#define FIELD(f) offsetof(struct mstx_trace_item, f)
enum { NO_FIELD = 0, KEY_MOST = 25 };
static const struct member {
    struct ms_str key;
    enum ms_jtok kind;
    size_t at;
} members[] = {
    {MS_STR("name"), MS_J_STR, NO_FIELD},
    {MS_STR("Addr"), MS_J_NUM, FIELD(memory.address)},
    {MS_STR("Bytes"), MS_J_NUM, FIELD(memory.bytes)},
    {MS_STR("dtype"), MS_J_STR, FIELD(comm.type)},
    {MS_STR("device"), MS_J_NUM, FIELD(device)},
    {MS_STR("stream"), MS_J_NUM, FIELD(stream)},
    {MS_STR("domain"), MS_J_STR, NO_FIELD},
    {MS_STR("end_tid"), MS_J_NUM, NO_FIELD},
    {MS_STR("Src Rank"), MS_J_NUM, FIELD(comm.source)},
    {MS_STR("Dst Rank"), MS_J_NUM, FIELD(comm.target)},
    {MS_STR("Device Id"), MS_J_NUM, FIELD(memory.device)},
    {MS_STR("Group size"), MS_J_NUM, FIELD(comm.size)},
    {MS_STR("event_type"), MS_J_STR, NO_FIELD},
    {MS_STR("unfinished"), MS_J_NULL, NO_FIELD},
    {MS_STR("correlation"), MS_J_NUM, FIELD(correlation)},
    {MS_STR("Device Type"), MS_J_NUM, FIELD(memory.device_type)},
    {MS_STR("In msg nelems"), MS_J_NUM, FIELD(comm.sent)},
    {MS_STR("Out msg nelems"), MS_J_NUM, FIELD(comm.received)},
    {MS_STR("Total Reserved"), MS_J_NUM, FIELD(memory.reserved)},
    {MS_STR("Collective name"), MS_J_STR, FIELD(comm.op)},
    {MS_STR("Total Allocated"), MS_J_NUM, FIELD(memory.allocated)},
    {MS_STR("Process Group Name"), MS_J_STR, FIELD(comm.group)},
    {MS_STR("Process Group Ranks"), MS_J_STR, FIELD(comm.ranks)},
    {MS_STR("Process Group Description"), MS_J_STR, FIELD(comm.group_text)},
};
enum { MEMBERS = sizeof members / sizeof *members };
/* 1 + the first member whose key has the length. */
static const uint8_t with_length[KEY_MOST + 1] = {
    [4] = 1,   [5] = 3,   [6] = 5,   [7] = 8,   [8] = 9,   [9] = 11,  [10] = 12,
    [11] = 15, [13] = 17, [14] = 18, [15] = 20, [18] = 22, [19] = 23, [25] = 24,
};

enum mstx_trace_member mstx__trace_item_place(struct ms_str key, enum ms_jtok kind, size_t *at)
{
    if (key.n > KEY_MOST || with_length[key.n] == 0)
        return MSTX_MEMBER_PLAIN;
    for (const struct member *m = &members[with_length[key.n] - 1];
         m < members + MEMBERS && m->key.n == key.n; m++) {
        if (m->key.p[0] != key.p[0] || m->kind != kind || memcmp(m->key.p, key.p, key.n) != 0)
            continue;
        *at = m->at;
        return m->at == NO_FIELD ? MSTX_MEMBER_OWN : MSTX_MEMBER_TAKEN;
    }
    return MSTX_MEMBER_PLAIN;
}

enum mstx_trace_member mstx__trace_item_member(struct mstx_trace_item *it, struct ms_str key,
                                               struct ms_str value, enum ms_jtok kind)
{
    size_t at;
    const enum mstx_trace_member is = mstx__trace_item_place(key, kind, &at);
    if (is != MSTX_MEMBER_TAKEN)
        return is;
    if (kind == MS_J_STR)
        *(struct ms_str *)((char *)it + at) = value;
    else
        ms_str_i64(value, (int64_t *)((char *)it + at));
    return is;
}

/* Reads a member of args that to_chrome.c writes; returns false when it is an attribute of the
 * user. */
static bool read_own_member(struct mstx_trace_json *r, struct mstx_trace_item *it,
                            struct ms_str key, enum ms_jtok t)
{
    if (t == MS_J_STR && ms_str_is(key, "domain"))
        it->domain = text_of(r);
    else if (t == MS_J_STR && ms_str_is(key, "event_type"))
        it->type = r->j.text;
    else if (t == MS_J_NUM && ms_str_is(key, "end_tid"))
        ms_jread_i64(&r->j, &it->end_tid);
    else if (t == MS_J_TRUE && ms_str_is(key, "unfinished"))
        it->is_unfinished = true;
    else
        return false;
    return true;
}

static void read_attribute(struct mstx_trace_json *r, struct mstx_trace_item *it, struct ms_str key,
                           enum ms_jtok t)
{
    if (t == MS_J_NUM && it->number.n == 0)
        it->number = r->j.text;
    const enum mstx_trace_member is =
        t == MS_J_NUM || t == MS_J_STR
            ? mstx__trace_item_member(it, key, t == MS_J_STR ? text_of(r) : r->j.text, t)
            : MSTX_MEMBER_PLAIN;
    if (is == MSTX_MEMBER_OWN && ms_str_is(key, "name"))
        it->label = text_of(r);
}

/* Reads one member of args; appends the JSON text of an attribute unchanged. */
static bool read_args_member(struct mstx_trace_json *r, struct mstx_trace_item *it)
{
    const char *from = r->j.tok;
    struct ms_str key = r->j.text;
    enum ms_jtok t = ms_jread_next(&r->j);
    bool is_own = read_own_member(r, it, key, t);
    if (!is_own)
        read_attribute(r, it, key, t);
    if (ms_jread_skip(&r->j, t) == MS_J_ERR)
        return false;
    if (!is_own) {
        ms_buf_puts(&r->args, r->args.n == 0 ? "{" : ", ");
        ms_buf_put(&r->args, from, (size_t)(r->j.at - from));
    }
    return true;
}

static bool read_args(struct mstx_trace_json *r, struct mstx_trace_item *it, enum ms_jtok t)
{
    if (t != MS_J_OBJ)
        return ms_jread_skip(&r->j, t) != MS_J_ERR;
    bool ok = true;
    ms_buf_clear(&r->args);
    for (t = ms_jread_next(&r->j); ok && t != MS_J_OBJ_END; t = ms_jread_next(&r->j)) {
        ok = t == MS_J_KEY && read_args_member(r, it);
        if (!ok)
            break;
    }
    if (r->args.n != 0)
        ms_buf_putc(&r->args, '}');
    if (ok && r->args.bad == MS_OK && r->args.n != 0)
        it->args = ms_buf_slice(&r->args);
    r->no_memory |= r->args.bad == MS_E_NOMEM;
    return ok;
}

/* ---- an event --------------------------------------------------------------- */

static bool read_member(struct mstx_trace_json *r, struct mstx_trace_item *it, struct ms_str key)
{
    enum ms_jtok t = ms_jread_next(&r->j);
    if (t == MS_J_ERR)
        return false;
    if (ms_str_is(key, "args"))
        return read_args(r, it, t);
    if (t != MS_J_STR && t != MS_J_NUM)
        return ms_jread_skip(&r->j, t) != MS_J_ERR;
    if (ms_str_is(key, "ts"))
        it->has_ts = read_time(&r->j, t, &it->ts);
    else if (ms_str_is(key, "dur"))
        read_time(&r->j, t, &it->dur);
    else if (t == MS_J_STR && ms_str_is(key, "name"))
        it->name = text_of(r);
    else if (t == MS_J_STR && ms_str_is(key, "ph"))
        it->phase = r->j.text;
    else if (t == MS_J_STR && ms_str_is(key, "cat"))
        it->category = r->j.text;
    else if (ms_str_is(key, "pid"))
        it->pid = r->j.text;
    else if (ms_str_is(key, "tid"))
        it->tid = r->j.text;
    else if (ms_str_is(key, "id"))
        it->id = r->j.text;
    return true;
}

void mstx__trace_item_init(struct mstx_trace_item *it)
{
    const struct ms_str none = MS_STR("");
    *it = (struct mstx_trace_item){.name = none,
                                   .type = none,
                                   .pid = MS_STR("0"),
                                   .tid = MS_STR("0"),
                                   .correlation = -1,
                                   .device = -1,
                                   .stream = -1,
                                   .comm = {none, none, none, none, none, -1, -1, -1, -1, -1},
                                   .memory = {-1, -1, -1, -1, -1, 0}};
}

bool mstx__trace_item_read(struct mstx_trace_json *r, struct mstx_trace_item *it)
{
    mstx__trace_item_init(it);
    for (;;) {
        enum ms_jtok t = ms_jread_next(&r->j);
        if (t == MS_J_OBJ_END)
            return true;
        if (t != MS_J_KEY || !read_member(r, it, r->j.text))
            return false;
    }
}
