/* SPDX-License-Identifier: MIT
 *
 * partners: reports how nodes found their partners, as text, JSON and mapping files.
 */
#include "compare/write/partners.h"

#include "compare/pair/layer.h"
#include "compare/pair/names.h"
#include "compare/read/yaml_doc.h"
#include "compare/table/comparison.h"

#include <math.h>

#define UNSURE   0.8F
#define TEXT_MAX ((size_t)8 << 30)

/* ---- counting ------------------------------------------------------------ */

struct cmp_partners cmp_partners_count(const struct cmp *c)
{
    struct cmp_partners p = {.aligned = c->rows.al != NULL};
    const struct cmp_align_pair *pairs;
    p.by_value = p.aligned && cmp_align_stats(c->rows.al).by_value;
    for (size_t i = 0; p.aligned && i < c->rows.t.ops.n; i++) {
        size_t n = cmp_align_of(c->rows.al, c->rows.t.ops.p[i].node, &pairs);
        p.nodes++;
        p.paired += n != 0;
        p.unsure += n != 0 && pairs[0].confidence < UNSURE;
    }
    return p;
}

void cmp_partners_text(const struct cmp_partners *p, struct ms_buf *out)
{
    if (!p->aligned || p->nodes == 0)
        return;
    ms_buf_printf(out, "aligned by %s: %zu of %zu target nodes have a partner",
                  p->by_value ? "values and structure" : "structure alone", p->paired, p->nodes);
    if (p->unsure != 0)
        ms_buf_printf(out, ", %zu of them unsure", p->unsure);
}

/* ---- all pairs ------------------------------------------------------------- */

enum ms_rc cmp_pair_list_take(struct cmp_pair_list *l, const struct cmp *c, struct ms_err *err)
{
    size_t n;
    if (c->rows.al == NULL)
        return MS_OK;
    const struct cmp_align_pair *p = cmp_align_pairs(c->rows.al, &n);
    l->arena = ms_arena_new(TEXT_MAX);
    if (l->arena == NULL || !ms_vec_reserve(&l->list, n + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        struct cmp_pair_copy *told = &l->list.p[l->list.n++];
        *told = (struct cmp_pair_copy){
            ms_arena_str(l->arena, probe_node_name(c->rows.t.dump, p[i].target)),
            ms_arena_str(l->arena, probe_node_name(c->rows.b.dump, p[i].golden)), p[i].confidence,
            p[i].how};
        if (told->target.p == NULL || told->golden.p == NULL)
            return ms_arena_fail(l->arena, err);
    }
    return MS_OK;
}

void cmp_pair_list_json(const struct cmp_pair_list *l, struct ms_jwrite *w)
{
    for (size_t i = 0; i < l->list.n; i++) {
        const struct cmp_pair_copy *told = &l->list.p[i];
        ms_jwrite_obj(w);
        ms_jwrite_key(w, MS_STR("target"));
        ms_jwrite_str(w, told->target);
        ms_jwrite_key(w, MS_STR("golden"));
        ms_jwrite_str(w, told->golden);
        ms_jwrite_kstr(w, "match", cmp_align_how_names[told->how]);
        ms_jwrite_kf64(w, "confidence", round((double)told->confidence * 1000) / 1000);
        ms_jwrite_obj_end(w);
    }
}

void cmp_pair_list_free(struct cmp_pair_list *l)
{
    ms_vec_free(&l->list);
    ms_arena_free(l->arena);
}

/* ---- explaining ---------------------------------------------------------- */

/* Finds a node by its own name or by the name of one of its rows. */
static bool find_node(const struct cmp__names *names, struct ms_str name, uint32_t *node)
{
    const struct cmp__named *found = cmp__names_find(names, name);
    if (found != NULL)
        *node = found->node;
    return found != NULL;
}

static void explain_by_name(const struct cmp *c, bool golden, uint32_t node, struct ms_buf *out)
{
    const struct probe_dump *d[2] = {cmp_dump(c, true), cmp_dump(c, false)};
    struct ms_str name = probe_node_name(d[golden ? 0 : 1], node);
    for (size_t g = 0; g < cmp_groups(c); g++) {
        struct cmp_pairing p = cmp_group_nodes(c, g);
        if ((golden ? p.golden : p.target) != node || p.target == MS_MAP_NONE ||
            p.golden == MS_MAP_NONE)
            continue;
        struct ms_str other = probe_node_name(d[golden ? 1 : 0], golden ? p.target : p.golden);
        ms_buf_printf(out, "%.*s of the %s is paired with %.*s of the %s by name%s.\n",
                      MS_STR_ARG(name), golden ? "golden side" : "target", MS_STR_ARG(other),
                      golden ? "target" : "golden side",
                      ms_str_eq(name, other) ? "" : ", as calls are counted or names are mapped");
        return;
    }
    ms_buf_printf(out, "%.*s of the %s has no namesake with equal rows on the %s.\n",
                  MS_STR_ARG(name), golden ? "golden side" : "target",
                  golden ? "target" : "golden side");
}

static enum ms_rc explain_node(const struct cmp *c, struct ms_str name,
                               const struct cmp__names names[2], struct ms_buf *out,
                               struct ms_err *err)
{
    bool found = false;
    for (int golden = 0; golden < 2; golden++) {
        uint32_t node;
        if (!find_node(&names[golden], name, &node))
            continue;
        if (found)
            ms_buf_putc(out, '\n');
        found = true;
        if (c->rows.al != NULL)
            cmp_align_explain(c->rows.al, golden, node, out);
        else
            explain_by_name(c, golden, node, out);
    }
    if (found)
        return ms_buf_check(out, err);
    char *z = ms_str_dup(name);
    if (z == NULL)
        return ms_no_memory(err);
    struct ms_near near = {.word = z};
    cmp__names_offer(&names[0], &near);
    cmp__names_offer(&names[1], &near);
    ms_fail(err, MS_E_NOTFOUND, "neither dump has a node '%s'", z);
    if (near.best != NULL)
        ms_err_hint(err, "did you mean '%s'?", near.best);
    ms_free(z);
    return MS_E_NOTFOUND;
}

enum ms_rc cmp_explain(const struct cmp *c, struct ms_str node, struct ms_buf *out,
                       struct ms_err *err)
{
    struct cmp__names names[2] = {{.dump = NULL}};
    enum ms_rc rc = cmp__names_list(&names[0], cmp_dump(c, false), true, err);
    if (rc == MS_OK)
        rc = cmp__names_list(&names[1], cmp_dump(c, true), true, err);
    if (rc == MS_OK)
        rc = explain_node(c, node, names, out, err);
    cmp__names_free(&names[0]);
    cmp__names_free(&names[1]);
    return rc;
}

/* ---- files ----------------------------------------------------------------- */

enum ms_rc cmp_write_alignment(const struct cmp *c, bool layers, const char *path,
                               struct cmp_files *files, struct ms_err *err)
{
    struct ms_buf text = {.max = TEXT_MAX};
    struct ms_out *out;
    enum ms_rc rc = layers ? cmp__write_layers(&c->rows, &text, err)
                           : cmp_align_write_rows(c->rows.al, &text, err);
    if (rc == MS_OK)
        rc = cmp_files_add(files, ms_str_of(path), err);
    if (rc == MS_OK)
        rc = ms_out_create(&out, path, err);
    if (rc == MS_OK) {
        ms_out_str(out, text.n != 0 ? ms_buf_slice(&text) : MS_STR("{}\n"));
        rc = ms_out_commit(out, err);
    }
    ms_buf_free(&text);
    return rc;
}

/* ---- a mapping of rows ------------------------------------------------------ */

/* Length from which a key is written in the explicit form "? key". With the five characters of its
 * tag such a key reaches 128 bytes, from which on the YAML writer of the official tool does not
 * use the simple form. */
enum { SIMPLE_KEY = 123 };

/* Tells whether a name can be a plain YAML scalar: no character has a meaning in YAML. */
static bool is_plain(struct ms_str s)
{
    if (s.n == 0 || memchr("-?:,[]{}#&*!|>'\"%@` ", s.p[0], 20) != NULL)
        return false;
    for (uint32_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c >= 0x7f || c == '#' || c == ':')
            return false;
    }
    return s.p[s.n - 1] != ' ';
}

static void put_name(struct ms_out *out, struct ms_str s, struct ms_buf *quoted)
{
    if (is_plain(s)) {
        ms_out_str(out, s);
        return;
    }
    ms_buf_clear(quoted);
    cmp__yaml_quote(quoted, s);
    ms_out_str(out, ms_buf_slice(quoted));
}

enum ms_rc cmp_write_mapping(const struct cmp *c, const char *path, struct cmp_files *files,
                             struct ms_err *err)
{
    struct ms_out *out;
    struct ms_buf quoted = {.max = 1 << 20};
    const struct cmp__pairs *map = &c->rows.row_map;
    MS_TRY(cmp_files_add(files, ms_str_of(path), err));
    MS_TRY(ms_out_create(&out, path, err));
    for (uint32_t i = 0; i < map->keys.keys.n; i++) {
        struct ms_str key = ms_map_key(&map->keys, i);
        bool simple = key.n < SIMPLE_KEY;
        ms_out_puts(out, simple ? "" : "? ");
        put_name(out, key, &quoted);
        ms_out_puts(out, simple ? ": " : "\n: ");
        put_name(out, map->values.p[i], &quoted);
        ms_out_putc(out, '\n');
    }
    if (map->keys.keys.n == 0)
        ms_out_puts(out, "{}\n");
    ms_buf_free(&quoted);
    return ms_out_commit(out, err);
}
