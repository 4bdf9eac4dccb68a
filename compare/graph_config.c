/* SPDX-License-Identifier: MIT
 *
 * graph_config: pairs that were matched by hand, as a file of their own that can be
 * applied to another database: {"TARGET NODE": "GOLDEN NODE"}, as the official
 * plugin writes and reads it.
 *
 * The plugin lists changed rows of both sides, so its files also hold pairs the
 * wrong way round.  A key that is no node of the target is passed over.
 */
#include "compare/graph_int.h"
#include "compare/graph_view.h"

#include <stdio.h>

enum { NAME_MAX_BYTES = 1 << 20 };
#define FILE_MAX ((size_t)1 << 30)

/* ---- writing ------------------------------------------------------------------- */

static enum ms_rc put_pairs(struct ms_jwrite *w, struct ms_store *s, struct graph_spot at,
                            uint64_t *pairs, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    enum ms_rc rc;
    MS_TRY(ms_store_prepare(s, &st,
                            "SELECT node_name, json_extract(matched_node_link, '$[#-1]') FROM"
                            " tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = 'NPU' AND"
                            " modified = 1 AND json_array_length(matched_node_link) > 0"
                            " ORDER BY node_order",
                            err));
    ms_stmt_i64(st, 1, at.step);
    ms_stmt_i64(st, 2, at.rank);
    ms_jwrite_obj(w);
    while ((rc = ms_stmt_step(st, &more, err)) == MS_OK && more) {
        ms_jwrite_key(w, ms_stmt_get_str(st, 0));
        ms_jwrite_str(w, ms_stmt_get_str(st, 1));
        ++*pairs;
    }
    ms_jwrite_obj_end(w);
    ms_stmt_free(st);
    return rc == MS_OK ? ms_jwrite_finish(w, err) : rc;
}

/* DIR/TAG_STEP_RANK.vis.config for DIR/TAG.vis.db */
static enum ms_rc name_config(const char *db, struct graph_spot at, struct ms_buf *path,
                              struct ms_err *err)
{
    struct ms_str tag = ms_str_of(db);
    if (ms_str_ends(tag, MS_STR(".vis.db")))
        tag.n -= 7;
    ms_buf_clear(path);
    ms_buf_printf(path, "%.*s_%lld_%lld.vis.config", MS_STR_ARG(tag), (long long)at.step,
                  (long long)at.rank);
    return ms_buf_check(path, err);
}

static enum ms_rc write_text(const char *path, struct ms_str text, struct ms_err *err)
{
    struct ms_out *o;
    MS_TRY(ms_out_create(&o, path, err));
    ms_out_str(o, text);
    return ms_out_commit(o, err);
}

enum ms_rc graph_save_matches(const char *db, struct graph_spot at, struct ms_buf *path,
                              uint64_t *pairs, struct ms_err *err)
{
    struct ms_store *s;
    struct ms_jwrite w;
    *pairs = 0;
    MS_TRY(name_config(db, at, path, err));
    MS_TRY(ms_store_open(&s, db, err));
    ms_jwrite_init(&w, 4, FILE_MAX);
    enum ms_rc rc = put_pairs(&w, s, at, pairs, err);
    ms_store_close(s);
    if (rc == MS_OK)
        rc = write_text(ms_buf_z(path), ms_buf_slice(&w.buf), err);
    ms_jwrite_free(&w);
    return rc;
}

/* ---- reading -------------------------------------------------------------------- */

static enum ms_rc keep_name(const struct ms_jread *r, struct ms_buf *scratch, struct ms_arena *a,
                            struct ms_str *out, struct ms_err *err)
{
    struct ms_str text;
    MS_TRY(ms_jread_text(r, scratch, &text, err));
    *out = ms_arena_str(a, text);
    return out->p != NULL ? MS_OK : ms_arena_fail(a, err);
}

static enum ms_rc read_pairs(struct graph__names *names, struct ms_str text, struct ms_buf *scratch,
                             struct ms_err *err)
{
    struct ms_jread r;
    enum ms_jtok tok;
    ms_jread_init(&r, text.p, text.n, 0);
    tok = ms_jread_next(&r);
    if (tok != MS_J_OBJ && tok != MS_J_ERR)
        return ms_jread_reject(&r, err, "expected an object of target and golden nodes");
    while (tok != MS_J_ERR && (tok = ms_jread_next(&r)) == MS_J_KEY) {
        struct graph__two_names *pair = ms_vec_push(&names->list);
        if (pair == NULL)
            return ms_no_memory(err);
        MS_TRY(keep_name(&r, scratch, names->arena, &pair->target, err));
        tok = ms_jread_next(&r);
        if (tok != MS_J_STR && tok != MS_J_ERR)
            return ms_jread_reject(&r, err, "expected the name of a golden node");
        if (tok == MS_J_STR)
            MS_TRY(keep_name(&r, scratch, names->arena, &pair->golden, err));
    }
    if (tok != MS_J_ERR)
        tok = ms_jread_next(&r);
    return tok != MS_J_ERR ? MS_OK : ms_jread_fail(&r, err);
}

enum ms_rc graph__names_parse(struct graph__names *names, struct ms_str text, struct ms_err *err)
{
    struct ms_buf scratch = {.max = NAME_MAX_BYTES};
    names->list.p = NULL;
    names->list.n = names->list.cap = 0;
    names->arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc =
        names->arena != NULL ? read_pairs(names, text, &scratch, err) : ms_no_memory(err);
    ms_buf_free(&scratch);
    if (rc != MS_OK)
        graph__names_free(names);
    return rc;
}

void graph__names_free(struct graph__names *names)
{
    ms_vec_free(&names->list);
    ms_arena_free(names->arena);
    names->arena = NULL;
}

enum ms_rc graph_match_saved(const char *db, struct graph_spot at, const char *config,
                             uint64_t *matched, struct ms_err *err)
{
    struct ms_file file;
    struct graph__names names;
    *matched = 0;
    MS_TRY(ms_file_map(&file, config, FILE_MAX, err));
    enum ms_rc rc = graph__names_parse(&names, (struct ms_str){file.p, (uint32_t)file.n}, err);
    ms_file_unmap(&file);
    if (rc != MS_OK)
        return ms_err_wrap(err, "%s", config), rc;
    rc = graph__match_all(db, at, &names, matched, err);
    graph__names_free(&names);
    return rc;
}
