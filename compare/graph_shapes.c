/* SPDX-License-Identifier: MIT
 *
 * graph_shapes: the names of one side of a graph by their shapes.
 *
 *     layers.12.attn.softmax.3  ┐
 *     layers.13.attn.softmax.3  ┴► layers.#.attn.softmax.#      a number of its own
 *
 * Names of a model differ in numbers mostly: half a million have some hundred shapes.
 * A word without digits stands in a name exactly when it stands in its shape, so the
 * shapes are searched and then one small number a node, instead of every name.
 */
#include "compare/graph_rows.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"

#include <ctype.h>

enum { SHAPES_MOST = UINT16_MAX, PAGES_EACH = 4, TEXT_MOST = 1 << 26 };

struct graph_shapes {
    struct graph_spot at;
    struct ms_map shapes;
    struct ms_arena *arena;
    MS_VEC(uint16_t) of; /* shape of the node of that order */
    bool done, useless;  /* useless: there are too many shapes */
    struct ms_buf text;
};

void graph__shapes_free(struct graph_shapes *s)
{
    if (s == NULL)
        return;
    ms_map_free(&s->shapes);
    ms_arena_free(s->arena);
    ms_vec_free(&s->of);
    ms_buf_free(&s->text);
    ms_free(s);
}

static bool is_same_spot(struct graph_spot a, struct graph_spot b)
{
    return a.step == b.step && a.rank == b.rank && a.golden == b.golden;
}

static enum ms_rc begin(struct graph_view *v, struct graph_spot at, struct ms_err *err)
{
    struct graph_shapes *s = ms_calloc(1, sizeof *s);
    if (s == NULL)
        return ms_no_memory(err);
    s->at = at;
    s->text.max = GRAPH_NAME_MAX;
    s->arena = ms_arena_new(TEXT_MOST);
    graph__shapes_free(v->shapes[at.golden]);
    v->shapes[at.golden] = s;
    return s->arena != NULL ? MS_OK : ms_no_memory(err);
}

static struct ms_str shape_of(struct graph_shapes *s, const char *p, const char *end)
{
    ms_buf_clear(&s->text);
    for (; p < end; p++) {
        bool digit = isdigit((unsigned char)*p) != 0;
        if (!digit || s->text.n == 0 || s->text.p[s->text.n - 1] != '#')
            ms_buf_putc(&s->text, digit ? '#' : *p);
    }
    return ms_buf_slice(&s->text);
}

static enum ms_rc add_names(struct graph_shapes *s, struct ms_str names, struct ms_err *err)
{
    const char *p = names.p, *end = p + names.n;
    while (p < end) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        const char *stop = line != NULL ? line : end;
        uint32_t shape = ms_map_put_copy(&s->shapes, shape_of(s, p, stop), s->arena, NULL);
        uint16_t *slot = ms_vec_push(&s->of);
        if (shape == MS_MAP_NONE || slot == NULL)
            return ms_no_memory(err);
        s->useless = s->shapes.keys.n > SHAPES_MOST;
        *slot = (uint16_t)shape;
        p = stop + 1;
    }
    return ms_buf_check(&s->text, err);
}

/* Pages lie one behind the other; should one be missing the orders would be wrong. */
static enum ms_rc add_pages(struct graph_view *v, struct graph_shapes *s, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more = true;
    enum ms_rc rc;
    MS_TRY(graph__statement(v, Q_NAMES_FROM, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, s->at, MS_STR("")));
    ms_stmt_i64(st, 2, (int64_t)s->of.n);
    for (int i = 0; (rc = ms_stmt_step(st, &more, err)) == MS_OK && more; i++) {
        s->useless = s->useless || ms_stmt_get_i64(st, 0) != (int64_t)s->of.n;
        if (i == PAGES_EACH || s->useless)
            break;
        rc = add_names(s, ms_stmt_get_blob(st, 1), err);
        if (rc != MS_OK)
            break;
    }
    ms_stmt_reset(st);
    s->done = !more || s->useless;
    return rc;
}

enum ms_rc graph_view_ahead(struct graph_view *v, struct graph_spot at, bool *more,
                            struct ms_err *err)
{
    *more = false;
    if (!v->quick)
        return MS_OK;
    struct graph_shapes *s = v->shapes[at.golden];
    if (s == NULL || !is_same_spot(s->at, at))
        MS_TRY(begin(v, at, err));
    s = v->shapes[at.golden];
    if (s->done)
        return MS_OK;
    enum ms_rc rc = add_pages(v, s, err);
    s->done = s->done || rc != MS_OK;
    s->useless = s->useless || rc != MS_OK;
    *more = !s->done;
    return rc;
}

bool graph__shapes_know(const struct graph_view *v, struct graph_spot at, struct ms_str word)
{
    const struct graph_shapes *s = v->shapes[at.golden];
    if (s == NULL || !s->done || s->useless || !is_same_spot(s->at, at))
        return false;
    for (uint32_t i = 0; i < word.n; i++) {
        if (isdigit((unsigned char)word.p[i]) || word.p[i] == '#')
            return false;
    }
    return true;
}

int64_t graph__shapes_next(struct graph_shapes *s, const bool *meets, int64_t after)
{
    for (size_t i = after < 0 ? 0 : (size_t)after + 1; i < s->of.n; i++) {
        if (meets[s->of.p[i]])
            return (int64_t)i;
    }
    return -1;
}

bool *graph__shapes_meet(struct graph_shapes *s, struct ms_str word)
{
    bool *meets = ms_calloc(s->shapes.keys.n + 1, sizeof *meets);
    for (uint32_t i = 0; meets != NULL && i < s->shapes.keys.n; i++)
        meets[i] = ms_str_find_str(ms_map_key(&s->shapes, i), word) >= 0;
    return meets;
}
