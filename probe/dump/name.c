/* SPDX-License-Identifier: MIT
 *
 * name: the grammar of record names.
 */
#include "probe/dump/name.h"

static enum probe_dir dir_of(struct ms_str segment)
{
    if (ms_str_is(segment, "forward"))
        return PROBE_FORWARD;
    return ms_str_is(segment, "backward") ? PROBE_BACKWARD : PROBE_DIR_NONE;
}

/* Takes the last segment off s; all of s when there is no dot. */
static struct ms_str pop(struct ms_str *s)
{
    int64_t dot = ms_str_rfind(*s, '.');
    struct ms_str last = ms_str_sub(*s, (uint32_t)(dot + 1), s->n);
    *s = ms_str_sub(*s, 0, dot < 0 ? 0 : (uint32_t)dot);
    return last;
}

static int64_t call_of(struct ms_str digits)
{
    int64_t call;
    return ms_str_all_digits(digits) && ms_str_i64(digits, &call) ? call : -1;
}

/* Splits the rest of the name into prefix and path. */
static void set_path(struct probe_name *n, struct ms_str rest)
{
    int64_t dot = ms_str_find(rest, '.');
    n->prefix = ms_str_sub(rest, 0, dot < 0 ? rest.n : (uint32_t)dot);
    n->path = ms_str_sub(rest, dot < 0 ? rest.n : (uint32_t)dot + 1, rest.n);
}

static bool parse_api(struct probe_name *n, struct ms_str rest, struct ms_str last)
{
    enum probe_dir dir = dir_of(last);
    if (dir == PROBE_DIR_NONE)
        return false;
    n->call = call_of(pop(&rest));
    if (n->call < 0 || rest.n == 0)
        return false;
    n->kind = PROBE_NODE_API;
    n->dir = dir;
    set_path(n, rest);
    return true;
}

static bool parse_module(struct probe_name *n, struct ms_str rest, struct ms_str last)
{
    n->call = call_of(last);
    n->dir = dir_of(pop(&rest));
    if (n->call < 0 || n->dir == PROBE_DIR_NONE || rest.n == 0)
        return false;
    n->kind = PROBE_NODE_MODULE;
    set_path(n, rest);
    return true;
}

static bool parse_pgrad(struct probe_name *n, struct ms_str rest, struct ms_str last)
{
    n->call = -1;
    if (!ms_str_is(last, "parameters_grad")) {
        n->call = call_of(last);
        if (n->call < 0 || !ms_str_is(pop(&rest), "parameters_grad"))
            return false;
    }
    if (rest.n == 0)
        return false;
    n->kind = PROBE_NODE_PGRAD;
    n->dir = PROBE_BACKWARD;
    set_path(n, rest);
    return true;
}

static bool parse_debug(struct probe_name *n, struct ms_str rest, struct ms_str last)
{
    if (!ms_str_is(last, "debug"))
        return false;
    n->call = call_of(pop(&rest));
    n->kind = PROBE_NODE_DEBUG;
    n->dir = PROBE_DIR_NONE;
    n->prefix = ms_str_sub(rest, 0, 0);
    n->path = rest;
    return n->call >= 0;
}

struct probe_name probe_name_parse(struct ms_str name)
{
    struct probe_name n = {0};
    struct ms_str rest = name;
    struct ms_str last = pop(&rest);
    if (rest.n != 0 && (parse_api(&n, rest, last) || parse_module(&n, rest, last) ||
                        parse_pgrad(&n, rest, last) || parse_debug(&n, rest, last)))
        return n;
    n = (struct probe_name){.call = -1};
    set_path(&n, name);
    return n;
}

const char *probe_node_kind_text(enum probe_node_kind kind)
{
    static const char *const text[] = {"other", "api", "module", "parameters_grad", "debug"};
    return text[kind];
}

/* ---- parts between dots -------------------------------------------------- */

unsigned probe_name_parts(struct ms_str name)
{
    unsigned n = 1;
    for (uint32_t i = 0; i < name.n; i++)
        n += name.p[i] == '.';
    return n;
}

struct ms_str probe_name_part(struct ms_str name, unsigned i)
{
    struct ms_str part = {name.p, 0};
    for (unsigned k = 0; k <= i; k++) {
        if (!ms_str_split(&name, '.', &part))
            return MS_STR("");
    }
    return part;
}

/* Returns the position of the dot before the last n parts; -1 when the name has no more than n
 * parts. */
static int64_t dot_from_right(struct ms_str name, unsigned n)
{
    int64_t at = name.n;
    while (n-- > 0 && at >= 0)
        at = ms_str_rfind(ms_str_sub(name, 0, (uint32_t)at), '.');
    return at;
}

struct ms_str probe_name_part_back(struct ms_str name, unsigned i)
{
    int64_t end = dot_from_right(name, i);
    return end < 0 ? MS_STR("") : probe_name_last(ms_str_sub(name, 0, (uint32_t)end));
}

struct ms_str probe_name_cut(struct ms_str name, unsigned n)
{
    int64_t at = dot_from_right(name, n);
    return ms_str_sub(name, 0, at < 0 ? 0 : (uint32_t)at);
}

struct ms_str probe_name_head(struct ms_str name, unsigned n)
{
    uint32_t at = 0;
    while (at < name.n && (name.p[at] != '.' || --n > 0))
        at++;
    return ms_str_sub(name, 0, at);
}

bool probe_name_find_call(struct ms_str name, struct ms_str *call)
{
    for (unsigned i = 0; i < 2; i++) {
        int64_t dot = ms_str_rfind(name, '.');
        if (dot < 0)
            return false;
        *call = ms_str_sub(name, (uint32_t)dot + 1, name.n);
        if (ms_str_all_digits(*call))
            return true;
        name.n = (uint32_t)dot;
    }
    return false;
}

bool probe_name_is_call_of(struct ms_str name, struct ms_str word)
{
    return ms_str_all_digits(probe_name_last(name)) && dot_from_right(name, 2) >= 0 &&
           ms_str_eq(probe_name_part_back(name, 1), word);
}

void probe_name_put_call(struct ms_buf *out, struct ms_str name, struct ms_str word)
{
    ms_buf_str(out, probe_name_cut(name, 2));
    ms_buf_putc(out, '.');
    ms_buf_str(out, word);
    ms_buf_putc(out, '.');
    ms_buf_str(out, probe_name_last(name));
}

bool probe_name_put_forward(struct ms_buf *out, struct ms_str name)
{
    struct ms_str word = probe_name_last(name);
    if (!ms_str_is(word, "backward"))
        word = probe_name_part_back(name, 1);
    if (!ms_str_is(word, "backward"))
        return false;
    ms_buf_put(out, name.p, (size_t)(word.p - name.p));
    ms_buf_puts(out, "forward");
    ms_buf_put(out, word.p + word.n, (size_t)(name.p + name.n - word.p - word.n));
    return true;
}
