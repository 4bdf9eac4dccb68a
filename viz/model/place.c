/* SPDX-License-Identifier: MIT
 *
 * place: parses and writes links.
 */
#include "viz/model/place.h"

#include <inttypes.h>

const char *const viz_screen_names[VIZ_SCREENS] = {"overview", "timeline", "graph", "table",
                                                   "cluster"};

struct viz_place viz_place_of(enum viz_screen screen)
{
    return (struct viz_place){.screen = screen,
                              .step = -1,
                              .rank = -1,
                              .track = -1,
                              .node = MS_STR(""),
                              .query = MS_STR("")};
}

/* ---- percent signs ----------------------------------------------------------- */

static bool stands_for_itself(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c) != NULL);
}

void viz_percent_encode(struct ms_str s, struct ms_buf *out)
{
    for (uint32_t i = 0; i < s.n; i++) {
        if (stands_for_itself(s.p[i]))
            ms_buf_putc(out, s.p[i]);
        else
            ms_buf_printf(out, "%%%02X", (unsigned char)s.p[i]);
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool viz_percent_decode(struct ms_str s, struct ms_buf *out)
{
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.p[i] != '%') {
            ms_buf_putc(out, s.p[i] == '+' ? ' ' : s.p[i]);
            continue;
        }
        int high = s.n - i > 2 ? hex_digit(s.p[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(s.p[i + 2]) : -1;
        if (low < 0 || (high | low) == 0)
            return false;
        ms_buf_putc(out, (char)(high << 4 | low));
        i += 2;
    }
    return true;
}

/* ---- writing ----------------------------------------------------------------- */

static void put_key(struct ms_buf *out, const char *key, char *separator)
{
    ms_buf_putc(out, *separator);
    ms_buf_puts(out, key);
    ms_buf_putc(out, '=');
    *separator = '&';
}

static void put_number(struct ms_buf *out, const char *key, int64_t v, char *separator)
{
    put_key(out, key, separator);
    ms_buf_printf(out, "%" PRId64, v);
}

static void put_text(struct ms_buf *out, const char *key, struct ms_str s, char *separator)
{
    if (s.n == 0)
        return;
    put_key(out, key, separator);
    viz_percent_encode(s, out);
}

void viz_place_write(const struct viz_place *p, struct ms_buf *out)
{
    char separator = '?';
    ms_buf_puts(out, viz_screen_names[p->screen]);
    if (p->step >= 0)
        put_number(out, "step", p->step, &separator);
    if (p->rank >= 0)
        put_number(out, "rank", p->rank, &separator);
    if (p->from != 0 || p->to != 0) {
        put_number(out, "from", p->from, &separator);
        put_number(out, "to", p->to, &separator);
    }
    if (p->track >= 0)
        put_number(out, "track", p->track, &separator);
    if (p->call != 0)
        put_number(out, "call", p->call, &separator);
    if (p->golden)
        put_number(out, "golden", 1, &separator);
    put_text(out, "node", p->node, &separator);
    put_text(out, "q", p->query, &separator);
}

/* ---- reading ----------------------------------------------------------------- */

static bool screen_of(struct ms_str name, enum viz_screen *screen)
{
    for (int i = 0; i < VIZ_SCREENS; i++) {
        if (ms_str_is(name, viz_screen_names[i])) {
            *screen = (enum viz_screen)i;
            return true;
        }
    }
    return false;
}

/* Returns the field of a text value in *p, or NULL. */
static struct ms_str *text_slot(struct viz_place *p, struct ms_str key)
{
    if (ms_str_is(key, "node"))
        return &p->node;
    return ms_str_is(key, "q") ? &p->query : NULL;
}

static int64_t *number_slot(struct viz_place *p, struct ms_str key)
{
    const struct {
        const char *key;
        int64_t *slot;
    } slots[] = {{"step", &p->step}, {"rank", &p->rank},   {"from", &p->from},
                 {"to", &p->to},     {"track", &p->track}, {"call", &p->call}};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        if (ms_str_is(key, slots[i].key))
            return slots[i].slot;
    }
    return NULL;
}

/* Stores one key and value. Unknown keys are ignored: a later version may have written them. */
static enum ms_rc take_pair(struct viz_place *p, struct ms_str key, struct ms_str value,
                            struct ms_buf *scratch, struct ms_err *err)
{
    struct ms_str *text = text_slot(p, key);
    int64_t *number = number_slot(p, key);
    if (text != NULL) {
        size_t at = scratch->n;
        if (!viz_percent_decode(value, scratch))
            return ms_fail(err, MS_E_FORMAT, "'%.*s' is not a well-formed part of a link",
                           MS_STR_ARG(value));
        MS_TRY(ms_buf_check(scratch, err));
        *text = (struct ms_str){scratch->p + at, (uint32_t)(scratch->n - at)};
        return MS_OK;
    }
    if (number != NULL && !ms_str_i64(value, number))
        return ms_fail(err, MS_E_FORMAT, "%.*s in a link must be a number, not '%.*s'",
                       MS_STR_ARG(key), MS_STR_ARG(value));
    if (ms_str_is(key, "golden"))
        p->golden = ms_str_is(value, "1");
    return MS_OK;
}

enum ms_rc viz_place_read(struct viz_place *p, struct ms_str text, struct ms_buf *scratch,
                          struct ms_err *err)
{
    struct ms_str rest = text, part, name;
    /* Decoded text is never longer, so with this much room the buffer does not move. */
    if (ms_buf_room(scratch, text.n + 1u) == NULL)
        return ms_buf_check(scratch, err);
    ms_str_split(&rest, '?', &name);
    *p = viz_place_of(VIZ_OVERVIEW);
    if (!screen_of(name, &p->screen))
        return ms_fail(err, MS_E_FORMAT,
                       "a link begins with overview, timeline, graph, table or cluster, not '%.*s'",
                       MS_STR_ARG(name));
    while (ms_str_split(&rest, '&', &part)) {
        struct ms_str value = part, key;
        ms_str_split(&value, '=', &key);
        if (value.p == NULL)
            value = MS_STR("");
        MS_TRY(take_pair(p, key, value, scratch, err));
    }
    return MS_OK;
}
