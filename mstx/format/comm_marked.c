/* SPDX-License-Identifier: MIT
 *
 * comm_marked: see the header.
 */
#include "mstx/format/comm_marked.h"

#include "probe/base/jread.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

/* longer texts do not have this form */
enum { TEXT_MAX = 1024 };

static const struct {
    const char *text;
    uint8_t number;
} types[] = {
#define ROW(name, number, text, bytes) {text, number},
    MSTX_COMM_TYPES(ROW)
#undef ROW
};

uint8_t mstx__comm_op_find(struct ms_str name)
{
    return mstx_comm_op_find(name.p, name.n);
}

uint8_t mstx__comm_type_find(struct ms_str text)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (ms_str_is_folded(text, types[i].text))
            return types[i].number;
    }
    return MSTX_TYPE_NA;
}

static uint8_t reduce_of(struct ms_str text)
{
    static const struct {
        const char *text;
        uint8_t number;
    } reduces[] = {
#define ROW(name, number, text) {text, number},
        MSTX_COMM_REDUCES(ROW)
#undef ROW
            {"product", MSTX_REDUCE_PROD}};
    for (size_t i = 0; i < sizeof reduces / sizeof *reduces; i++) {
        if (ms_str_is_folded(text, reduces[i].text))
            return reduces[i].number;
    }
    return MSTX_REDUCE_USER;
}

uint32_t mstx__comm_ranks(struct ms_str text, int32_t *rank, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < text.n && n < most;) {
        uint64_t v = 0;
        uint32_t digits = 0;
        for (; i < text.n && isdigit((unsigned char)text.p[i]) && digits < 10; i++, digits++)
            v = v * 10 + (uint64_t)(text.p[i] - '0');
        if (digits != 0 && v <= INT32_MAX)
            rank[n++] = (int32_t)v;
        i += digits == 0;
    }
    return n;
}

static void set_name(char out[MSTX_MARKED_NAME], struct ms_str v)
{
    snprintf(out, MSTX_MARKED_NAME, "%.*s", MS_STR_ARG(v));
}

enum found { OP = 1, GROUP = 2, TYPE = 4, COUNT = 8, STREAM = 16, ALL = 31 };

static unsigned take_op(struct mstx_comm_marked *s, struct ms_str v)
{
    set_name(s->op, v);
    s->rec.op = mstx__comm_op_find(v);
    return v.n != 0 ? OP : 0;
}

static unsigned take_type(struct mstx_comm_marked *s, struct ms_str v)
{
    s->rec.dtype = mstx__comm_type_find(v);
    s->rec.elem = mstx_comm_type_bytes(s->rec.dtype);
    return TYPE;
}

/* Reads a field that only our own texts have. */
static void take_more(struct mstx_comm_marked *s, struct ms_str key, struct ms_str v)
{
    uint64_t n = 0;
    if (ms_str_is_folded(key, "reduceOp"))
        s->rec.reduce = reduce_of(v);
    else if (ms_str_is_folded(key, "groupSize") && ms_str_u64(v, &n) && n <= INT32_MAX)
        s->size = (int32_t)n;
    else if (ms_str_is_folded(key, "groupRanks"))
        s->listed = mstx__comm_ranks(v, s->world, MSTX_MARKED_RANKS);
}

/* Reads a field. All values are strings; a value that is not a number counts as missing. */
static unsigned take_field(struct mstx_comm_marked *s, struct ms_str key, struct ms_str v)
{
    uint64_t peer;
    if (ms_str_is_folded(key, "opName"))
        return take_op(s, v);
    if (ms_str_is_folded(key, "groupName")) {
        set_name(s->group, v);
        return GROUP;
    }
    if (ms_str_is_folded(key, "dataType"))
        return take_type(s, v);
    if (ms_str_is_folded(key, "count"))
        return ms_str_u64(v, &s->rec.count) ? COUNT : 0;
    if (ms_str_is_folded(key, "streamId"))
        return ms_str_u64(v, &s->stream) ? STREAM : 0;
    if ((ms_str_is_folded(key, "destRank") || ms_str_is_folded(key, "srcRank") ||
         ms_str_is_folded(key, "rootRank")) &&
        ms_str_u64(v, &peer) && peer <= INT32_MAX)
        s->rec.peer = (int32_t)peer;
    take_more(s, key, v);
    return 0;
}

static bool read_object(struct mstx_comm_marked *s, struct ms_str plain)
{
    struct ms_jread r;
    struct ms_str key = {0};
    unsigned found = 0;
    ms_jread_init(&r, plain.p, plain.n, 0);
    if (ms_jread_next(&r) != MS_J_OBJ)
        return false;
    enum ms_jtok t;
    while ((t = ms_jread_next(&r)) == MS_J_KEY) {
        key = r.text;
        t = ms_jread_next(&r);
        if (t == MS_J_STR || t == MS_J_NUM)
            found |= take_field(s, key, r.text);
        else if (ms_jread_skip(&r, t) == MS_J_ERR)
            return false;
    }
    return t == MS_J_OBJ_END && ms_jread_next(&r) == MS_J_END && found == ALL;
}

/* Reads the JSON form; backslashes before quotes are skipped. */
static bool read_json(struct mstx_comm_marked *s, struct ms_str text)
{
    char plain[TEXT_MAX];
    uint32_t n = 0;
    if (text.n > TEXT_MAX)
        return false;
    for (uint32_t i = 0; i < text.n; i++) {
        if (text.p[i] != '\\' || i + 1 == text.n || text.p[i + 1] != '"')
            plain[n++] = text.p[i];
    }
    return read_object(s, (struct ms_str){plain, n});
}

static bool read_fields(struct mstx_comm_marked *s, struct ms_str text)
{
    struct ms_str field[4];
    uint32_t from = 5; /* after "comm:" */
    for (int i = 0; i < 4; i++) {
        uint32_t to = from;
        while (to < text.n && text.p[to] != ',')
            to++;
        if ((to == text.n) != (i == 3))
            return false;
        field[i] = ms_str_sub(text, from, to);
        from = to + 1;
    }
    set_name(s->group, field[1]);
    take_type(s, field[2]);
    return take_op(s, field[0]) != 0 && ms_str_u64(field[3], &s->rec.count);
}

bool mstx__comm_parse_marked(struct ms_str text, struct mstx_comm_marked *s)
{
    *s = (struct mstx_comm_marked){
        .size = -1,
        .rec = {
            .peer = -1, .reduce = MSTX_REDUCE_NONE, .type = MSTX_REC_COMM, .lib = MSTX_LIB_TORCH}};
    if (!mstx__comm_is_marked(text))
        return false;
    return text.p[0] == '{' ? read_json(s, text) : read_fields(s, text);
}
