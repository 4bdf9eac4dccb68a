/* SPDX-License-Identifier: MIT
 *
 * message: writes arguments into a JSON object of fixed size and reads them back.
 */
#include "probe/base/message.h"

#include "probe/base/assert.h"
#include "probe/base/jread.h"
#include "probe/base/num.h"

#include <math.h>
#include <stdio.h>

/* Takes the next name off the argument names of a kind; false when none is left. */
static bool next_name(struct ms_str *names, struct ms_str *name, bool *is_optional)
{
    while (ms_str_split(names, ' ', name)) {
        *is_optional = name->n != 0 && name->p[name->n - 1] == '?';
        name->n -= *is_optional;
        if (name->n != 0)
            return true;
    }
    return false;
}

/* Tells whether a kind declares an argument. Only assertions call this function, so a release build
 * has no caller. */
__attribute__((unused)) static bool is_declared(const struct ms_message_kind *kind,
                                                const char *want)
{
    struct ms_str names = ms_str_of(kind->args), name;
    bool is_optional, found = false;
    while (!found && next_name(&names, &name, &is_optional))
        found = ms_str_is(name, want);
    return found;
}

/* ---- making ---------------------------------------------------------------------- */

void ms_message_begin(struct ms_message *m, const struct ms_message_kind *kind)
{
    m->kind = kind;
    m->n = 2;
    memcpy(m->args, "{}", 3);
}

/* Adds `"name": value`; an argument that does not fit is left out. */
static void add_value(struct ms_message *m, const char *name, struct ms_str value)
{
    ms_assert(m->kind != NULL && is_declared(m->kind, name));
    const bool is_first = m->n == 2;
    const size_t room = sizeof m->args - (m->n - 1U);
    const int n = snprintf(m->args + m->n - 1, room, "%s\"%s\": %.*s}", is_first ? "" : ", ", name,
                           MS_STR_ARG(value));
    if (n > 0 && (size_t)n < room)
        m->n = (uint16_t)(m->n - 1 + n);
    else
        memcpy(m->args + m->n - 1, "}", 2);
}

void ms_message_i64(struct ms_message *m, const char *name, int64_t v)
{
    char text[MS_NUM_MAX];
    add_value(m, name, (struct ms_str){text, ms_num_i64(text, v)});
}

void ms_message_f64(struct ms_message *m, const char *name, double v)
{
    char text[MS_NUM_MAX];
    if (isfinite(v))
        add_value(m, name, (struct ms_str){text, ms_num_f64(text, v)});
    else
        ms_message_str(m, name, isnan(v) ? MS_STR("NaN") : v > 0 ? MS_STR("inf") : MS_STR("-inf"));
}

/* The longest prefix of at most MS_MESSAGE_STR_MAX bytes that splits no character. */
static struct ms_str cut(struct ms_str s)
{
    uint32_t n = s.n < MS_MESSAGE_STR_MAX ? s.n : MS_MESSAGE_STR_MAX;
    while (n < s.n && n > 0 && ((unsigned char)s.p[n] & 0xC0) == 0x80)
        n--;
    return ms_str_sub(s, 0, n);
}

void ms_message_str(struct ms_message *m, const char *name, struct ms_str s)
{
    char text[6 * MS_MESSAGE_STR_MAX + 3];
    size_t n = 0;
    s = cut(s);
    text[n++] = '"';
    for (uint32_t i = 0, len; i < s.n; i += len) {
        const unsigned char c = (unsigned char)s.p[i];
        const unsigned whole = ms_utf8_len(s.p + i, s.n - i);
        len = whole != 0 ? whole : 1;
        if (c < 0x20 || whole == 0) /* a control character or a byte that is not UTF-8 */
            n += (size_t)snprintf(text + n, sizeof text - n, "\\u%04x", c < 0x20 ? c : 0xfffdU);
        if (c < 0x20 || whole == 0)
            continue;
        if (c == '"' || c == '\\')
            text[n++] = '\\';
        memcpy(text + n, s.p + i, len);
        n += len;
    }
    text[n++] = '"';
    add_value(m, name, (struct ms_str){text, (uint32_t)n});
}

struct ms_stored_message ms_message_stored(const struct ms_message *m)
{
    if (m->kind == NULL)
        return (struct ms_stored_message){MS_STR(""), MS_STR("")};
    return (struct ms_stored_message){ms_str_of(m->kind->name), {m->args, m->n}};
}

bool ms_message_is_whole(const struct ms_message *m)
{
    struct ms_message_args args;
    struct ms_str names = ms_str_of(m->kind->args), name;
    bool is_optional, is_whole = ms_message_read(&args, ms_message_stored(m).args);
    while (is_whole && next_name(&names, &name, &is_optional))
        is_whole = is_optional || ms_message_find(&args, name) != NULL;
    return is_whole;
}

/* ---- reading --------------------------------------------------------------------- */

/* Stores an unescaped text in `to`; p is NULL when there is no room. */
static struct ms_str keep_text(struct ms_message_args *to, size_t *used, const struct ms_jread *r)
{
    struct ms_buf scratch = {.max = MS_MESSAGE_MAX};
    struct ms_str s = MS_STR_NONE, kept = MS_STR_NONE;
    if (ms_jread_text(r, &scratch, &s, NULL) == MS_OK && s.n <= sizeof to->text - *used) {
        memcpy(to->text + *used, s.p, s.n);
        kept = (struct ms_str){to->text + *used, s.n};
        *used += s.n;
    }
    ms_buf_free(&scratch);
    return kept;
}

bool ms_message_read(struct ms_message_args *to, struct ms_str args)
{
    struct ms_jread r;
    enum ms_jtok t;
    size_t used = 0;
    to->n = 0;
    ms_jread_init(&r, args.n != 0 ? args.p : "", args.n, 0);
    if (ms_jread_next(&r) != MS_J_OBJ)
        return false;
    while ((t = ms_jread_next(&r)) == MS_J_KEY && to->n < MS_MESSAGE_ARGS_MAX) {
        struct ms_message_arg *a = &to->list[to->n++];
        *a = (struct ms_message_arg){.name = keep_text(to, &used, &r)};
        t = ms_jread_next(&r);
        a->is_number = t == MS_J_NUM && ms_jread_f64(&r, &a->number);
        if (!a->is_number && t != MS_J_STR)
            return false;
        a->text = keep_text(to, &used, &r);
        if (a->name.p == NULL || a->text.p == NULL)
            return false;
    }
    return t == MS_J_OBJ_END && ms_jread_next(&r) == MS_J_END;
}

const struct ms_message_arg *ms_message_find(const struct ms_message_args *in, struct ms_str name)
{
    for (size_t i = 0; i < in->n; i++) {
        if (ms_str_eq(in->list[i].name, name))
            return &in->list[i];
    }
    return NULL;
}

bool ms_message_restore(struct ms_message *m, const struct ms_message_kind *kind,
                        struct ms_str args)
{
    struct ms_message_args ignored;
    if (args.n >= sizeof m->args || !ms_message_read(&ignored, args))
        return false;
    m->kind = kind;
    m->n = (uint16_t)args.n;
    memcpy(m->args, args.p, args.n);
    m->args[m->n] = '\0';
    return true;
}

/* ---- speaking --------------------------------------------------------------------- */

static ms_speak_fn *speaker;

void ms_message_set_speaker(ms_speak_fn *fn)
{
    speaker = fn;
}

void ms_message_speak(struct ms_stored_message message, struct ms_buf *out)
{
    if (speaker == NULL || !speaker(message, out))
        ms_buf_printf(out, "%.*s %.*s", MS_STR_ARG(message.kind), MS_STR_ARG(message.args));
}
