/* SPDX-License-Identifier: MIT
 *
 * row_map: a mapping of row names as a file for -dm, and names in such a file that
 * no dump has.
 */
#include "compare/names.h"
#include "compare/out.h"

/* Keys of this length get a line of their own: with the five characters of their tag they reach the 128
 * bytes at which the writer of the official tool stops calling a key simple. */
enum { SHOWN = 10, SIMPLE_KEY = 123 };

/* ---- writing ------------------------------------------------------------ */

/* Names are plain scalars unless a character of them means something in yaml. */
static bool is_plain(struct ms_str s)
{
    if (s.n == 0 || memchr("-?:,[]{}#&*!|>'\"%@` ", s.p[0], 20) != NULL)
        return false;
    for (uint32_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c == 0x7f || c == '#' || c == ':')
            return false;
    }
    return s.p[s.n - 1] != ' ';
}

static void put_name(struct ms_out *out, struct ms_str s)
{
    if (is_plain(s)) {
        ms_out_str(out, s);
        return;
    }
    ms_out_putc(out, '"');
    for (uint32_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\')
            ms_out_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            ms_out_printf(out, "\\x%02x", c);
        else
            ms_out_putc(out, (char)c);
    }
    ms_out_putc(out, '"');
}

enum ms_rc cmp_write_mapping(const struct cmp *c, const char *path, struct cmp_files *files,
                             struct ms_err *err)
{
    struct ms_out *out;
    const struct cmp__pairs *map = &c->row_map;
    MS_TRY(cmp_files_add(files, ms_str_of(path), err));
    MS_TRY(ms_out_create(&out, path, err));
    for (uint32_t i = 0; i < map->keys.keys.n; i++) {
        struct ms_str key = ms_map_key(&map->keys, i);
        bool simple = key.n < SIMPLE_KEY;
        ms_out_puts(out, simple ? "" : "? ");
        put_name(out, key);
        ms_out_puts(out, simple ? ": " : "\n: ");
        put_name(out, map->values.p[i]);
        ms_out_putc(out, '\n');
    }
    if (map->keys.keys.n == 0)
        ms_out_puts(out, "{}\n");
    return ms_out_commit(out, err);
}

/* ---- unknown names ---------------------------------------------------------- */

/* Which of a mapping's names a side does not have. */
struct check {
    struct cmp *c;
    const char *what;
    struct cmp__names names;
    size_t unknown;
};

static enum ms_rc report_unknown(struct check *k, struct ms_str name, struct ms_err *err)
{
    char *z = ms_str_dup(name);
    if (z == NULL)
        return ms_no_memory(err);
    const char *near = cmp__names_near(&k->names, z);
    enum ms_rc rc = near != NULL
                        ? cmp__problem(k->c, err, "%s: the %s has no row '%s'; did you mean '%s'?",
                                       k->c->conf.data_mapping, k->what, z, near)
                        : cmp__problem(k->c, err, "%s: the %s has no row '%s'",
                                       k->c->conf.data_mapping, k->what, z);
    ms_free(z);
    return rc;
}

static enum ms_rc check_name(struct check *k, struct ms_str name, struct ms_err *err)
{
    if (ms_str_is(name, "N/A") || cmp__names_find(&k->names, name) != NULL)
        return MS_OK;
    return k->unknown++ < SHOWN ? report_unknown(k, name, err) : MS_OK;
}

static enum ms_rc check_side(struct cmp *c, bool golden, struct ms_err *err)
{
    const struct cmp__pairs *map = &c->row_map;
    struct check k = {.c = c, .what = golden ? "golden side" : "target"};
    enum ms_rc rc = cmp__names_list(&k.names, golden ? c->b.dump : c->t.dump, false, err);
    for (uint32_t i = 0; i < map->keys.keys.n && rc == MS_OK; i++)
        rc = check_name(&k, golden ? map->values.p[i] : ms_map_key(&map->keys, i), err);
    if (rc == MS_OK && k.unknown > SHOWN)
        rc = cmp__problem(c, err, "%s: %zu more names that the %s does not have",
                          c->conf.data_mapping, k.unknown - SHOWN, k.what);
    cmp__names_free(&k.names);
    return rc;
}

enum ms_rc cmp__check_names(struct cmp *c, struct ms_err *err)
{
    MS_TRY(check_side(c, false, err));
    return check_side(c, true, err);
}
