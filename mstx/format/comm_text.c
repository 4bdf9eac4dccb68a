/* SPDX-License-Identifier: MIT
 *
 * comm_text: names of operations, types and reductions, and the message that frameworks of
 * Ascend give to a communication range.  Used by the recorder and by readers of captures.
 */
#include "mstx/format/comm.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const struct {
    const char *text, *official;
} ops[] = {
#define ROW(name, text, official, class) {text, official},
    MSTX_COMM_OPS(ROW)
#undef ROW
};

const char *mstx_comm_op_text(unsigned op)
{
    return op < MSTX_COMM_OP_COUNT ? ops[op].text : "na";
}

const char *mstx_comm_op_official(unsigned op)
{
    return op < MSTX_COMM_OP_COUNT ? ops[op].official : "na";
}

bool mstx_comm_op_asks(unsigned op)
{
    return op == MSTX_COMM_PROBE || op == MSTX_COMM_TEST || op == MSTX_COMM_WINDOW;
}

bool mstx_comm_op_has_peer(unsigned op)
{
    return op == MSTX_COMM_SEND || op == MSTX_COMM_RECV || op == MSTX_COMM_SENDRECV ||
           op == MSTX_COMM_PROBE;
}

static bool is_word(const char *word, const char *name, size_t n)
{
    return strlen(word) == n && strncasecmp(word, name, n) == 0;
}

/* Ignores case: versions differ in one letter (AllReduce, Allreduce). */
uint8_t mstx_comm_op_find(const char *name, size_t n)
{
    for (unsigned op = 1; op < MSTX_COMM_OP_COUNT; op++) {
        if (is_word(ops[op].official, name, n) || is_word(ops[op].text, name, n))
            return (uint8_t)op;
    }
    return MSTX_COMM_NONE;
}

const char *mstx_comm_type_text(unsigned type)
{
#define ENTRY(name, number, text, bytes) [number] = text,
    static const char *const texts[UINT8_MAX + 1] = {MSTX_COMM_TYPES(ENTRY)};
#undef ENTRY
    return type <= UINT8_MAX && texts[type] != NULL ? texts[type] : "na";
}

uint32_t mstx_comm_type_bytes(unsigned type)
{
#define ENTRY(name, number, text, bytes) [number] = bytes,
    static const uint8_t sizes[UINT8_MAX + 1] = {MSTX_COMM_TYPES(ENTRY)};
#undef ENTRY
    return type <= UINT8_MAX ? sizes[type] : 0;
}

const char *mstx_comm_reduce_text(unsigned reduce)
{
#define ENTRY(name, number, text) [number] = text,
    static const char *const texts[UINT8_MAX + 1] = {MSTX_COMM_REDUCES(ENTRY)};
#undef ENTRY
    return reduce <= UINT8_MAX && texts[reduce] != NULL ? texts[reduce] : "na";
}

const char *mstx_comm_lib_text(unsigned lib)
{
    static const char *const text[] = {"other", "mpi", "nccl", "rccl", "hccl", "torch"};
    return lib < MSTX_LIB_COUNT ? text[lib] : "other";
}

/* Returns the name of a type of HCCL, else "na": official readers know no other types. */
static const char *official_type(unsigned type)
{
    return type <= MSTX_TYPE_FP8E8M0 ? mstx_comm_type_text(type) : "na";
}

/* Copies a name with quotes, backslashes and control characters replaced by '_', since these would
 * end the text early. */
static void copy_name(char out[128], const char *name)
{
    size_t n = 0;
    for (; *name != '\0' && n < 127; name++)
        out[n++] = *name == '"' || *name == '\\' || (unsigned char)*name < 0x20 ? '_' : *name;
    out[n] = '\0';
}

size_t mstx_comm_message(char *out, size_t cap, const struct mstx_rec_comm *c, const char *group,
                         uint64_t stream)
{
    char name[128], peer[48] = "";
    copy_name(name, group);
    if (c->op == MSTX_COMM_SEND && c->peer >= 0)
        snprintf(peer, sizeof peer, "\\\"destRank\\\": \\\"%" PRId32 "\\\",", c->peer);
    else if (c->op == MSTX_COMM_RECV && c->peer >= 0)
        snprintf(peer, sizeof peer, "\\\"srcRank\\\": \\\"%" PRId32 "\\\",", c->peer);
    int n = snprintf(out, cap,
                     "{\\\"count\\\": \\\"%" PRIu64 "\\\",\\\"dataType\\\": \\\"%s\\\",%s"
                     "\\\"groupName\\\": \\\"%s\\\",\\\"opName\\\": \\\"%s\\\","
                     "\\\"streamId\\\": \\\"%" PRIu64 "\\\"}",
                     c->count, official_type(c->dtype), peer, name, mstx_comm_op_official(c->op),
                     stream);
    return n < 0 ? 0 : (size_t)n < cap ? (size_t)n : cap - 1;
}

/* ---- reading a message ---------------------------------------------------------------------- */

static const char *skip_word(const char *p, const char *expected)
{
    size_t n = strlen(expected);
    return strncmp(p, expected, n) == 0 ? p + n : p;
}

/* Copies the value of a member, whose quotes may have backslashes; "" without the member. */
static void take_value(const char *text, const char *key, char *out, size_t cap)
{
    const char *p = strstr(text, key);
    out[0] = '\0';
    if (p == NULL)
        return;
    p = skip_word(skip_word(p + strlen(key), "\\"), "\":");
    p = skip_word(skip_word(p + strspn(p, " "), "\\"), "\"");
    snprintf(out, cap, "%.*s", (int)strcspn(p, "\\\""), p);
}

/* Reads the two fields after "comm:". */
static void take_fields(const char *p, struct mstx_comm_description *out)
{
    size_t op = strcspn(p, ",");
    snprintf(out->name, sizeof out->name, "%.*s", (int)op, p);
    p += op + (p[op] == ',');
    snprintf(out->group, sizeof out->group, "%.*s", (int)strcspn(p, ","), p);
}

static int32_t number_or_none(const char *text)
{
    return text[0] >= '0' && text[0] <= '9' ? (int32_t)strtol(text, NULL, 10) : -1;
}

void mstx_comm_message_read(const char *text, struct mstx_comm_description *out)
{
    char size[16] = "", peer[16] = "";
    *out = (struct mstx_comm_description){0};
    if (text[0] == '{') {
        take_value(text, "opName", out->name, sizeof out->name);
        take_value(text, "groupName", out->group, sizeof out->group);
        take_value(text, "groupSize", size, sizeof size);
        take_value(text, "destRank", peer, sizeof peer);
        if (peer[0] == '\0')
            take_value(text, "srcRank", peer, sizeof peer);
    } else if (strncmp(text, "comm:", 5) == 0) {
        take_fields(text + 5, out);
    }
    out->size = number_or_none(size);
    out->peer = number_or_none(peer);
    out->op = mstx_comm_op_find(out->name, strlen(out->name));
    if (out->op != MSTX_COMM_NONE || out->name[0] == '\0')
        snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1,
                 out->op != MSTX_COMM_NONE ? mstx_comm_op_text(out->op) : text);
}

/* ---- phrase of a call --------------------------------------------------------------------- */

void mstx_comm_speak(char out[MSTX_COMM_SPOKEN], const struct mstx_comm_description *c)
{
    char call[32] = "", with[32] = "";
    if (c->op != MSTX_COMM_NONE && mstx_comm_op_class(c->op) < MSTX_SEQUENCES)
        snprintf(call, sizeof call, " (call %" PRIu32 ")", c->seq);
    if (c->peer >= 0 && mstx_comm_op_has_peer(c->op))
        snprintf(with, sizeof with, " %s rank %" PRId32,
                 c->op == MSTX_COMM_RECV || c->op == MSTX_COMM_PROBE ? "from"
                 : c->op == MSTX_COMM_SEND                           ? "to"
                                                                     : "with",
                 c->peer);
    snprintf(out, MSTX_COMM_SPOKEN, "%s%s%s%s%s", c->name, call, with,
             c->group[0] != '\0' ? " of " : "", c->group);
}
