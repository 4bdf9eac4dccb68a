/* SPDX-License-Identifier: MIT
 *
 * row_map: a mapping of row names as a file for -dm, and names in such a file that
 * no dump has.
 */
#include "compare/names.h"
#include "compare/out.h"
#include "compare/yaml_doc.h"

/* Keys of this length get a line of their own: with the five characters of their tag they reach the 128
 * bytes at which the writer of the official tool stops calling a key simple. */
enum { SIMPLE_KEY = 123 };

/* ---- writing ------------------------------------------------------------ */

/* Names are plain scalars unless a character of them means something in yaml. */
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
    const struct cmp__pairs *map = &c->row_map;
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

/* ---- unknown names ---------------------------------------------------------- */

static enum ms_rc check_name(struct cmp__unknown *u, const struct cmp__names *names,
                             struct ms_str name, struct ms_err *err)
{
    if (ms_str_is(name, "N/A") || cmp__names_find(names, name) != NULL)
        return MS_OK;
    char *z = cmp__unknown_is_told(u) ? ms_str_dup(name) : NULL;
    if (z == NULL && cmp__unknown_is_told(u))
        return ms_no_memory(err);
    enum ms_rc rc = cmp__unknown_tell(u, name, z != NULL ? cmp__names_near(names, z) : NULL, err);
    ms_free(z);
    return rc;
}

static enum ms_rc check_side(struct cmp *c, bool golden, struct ms_err *err)
{
    const struct cmp__pairs *map = &c->row_map;
    struct cmp__unknown u = {c, c->conf.data_mapping, golden ? "golden side" : "target", "row", 0};
    struct cmp__names names;
    enum ms_rc rc = cmp__names_list(&names, golden ? c->b.dump : c->t.dump, false, err);
    for (uint32_t i = 0; i < map->keys.keys.n && rc == MS_OK; i++)
        rc = check_name(&u, &names, golden ? map->values.p[i] : ms_map_key(&map->keys, i), err);
    if (rc == MS_OK)
        rc = cmp__unknown_end(&u, err);
    cmp__names_free(&names);
    return rc;
}

enum ms_rc cmp__check_names(struct cmp *c, struct ms_err *err)
{
    MS_TRY(check_side(c, false, err));
    return check_side(c, true, err);
}
