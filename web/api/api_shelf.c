/* SPDX-License-Identifier: MIT
 *
 * api_shelf: the list of what a folder holds, and the choice of what is opened next.
 */
#include "viz/model/shelf.h"
#include "web/api/api.h"

#include "probe/base/mem.h"

static void put_entry(struct ms_jwrite *w, const struct viz_shelf_entry *e)
{
    ms_jwrite_obj(w);
    ms_jwrite_ktext(w, "name", e->name);
    ms_jwrite_ki64(w, "kind", e->kind);
    ms_jwrite_kstr(w, "what", viz_path_what(e->kind));
    ms_jwrite_ki64(w, "changed_ms", e->changed_ms);
    ms_jwrite_ki64(w, "bytes", e->bytes);
    ms_jwrite_ki64(w, "ranks", e->ranks);
    ms_jwrite_ki64(w, "findings", e->findings);
    ms_jwrite_kbool(w, "pairs", viz_shelf_pairs(e->kind));
    ms_jwrite_obj_end(w);
}

static enum ms_rc want_folder(const struct web_call *c, struct ms_err *err)
{
    return c->session->shelf != NULL
               ? MS_OK
               : ms_fail(err, MS_E_NOTFOUND,
                         "the server was started with one run, dump or comparison, not with a "
                         "folder of them");
}

enum ms_rc web_api_shelf(struct web_call *c, struct ms_err *err)
{
    struct viz_shelf shelf;
    MS_TRY(want_folder(c, err));
    MS_TRY(viz_shelf_read(&shelf, c->session->shelf, err));
    ms_jwrite_obj(c->json);
    ms_jwrite_kstr(c->json, "path", c->session->shelf);
    if (c->session->failed[0] != '\0')
        ms_jwrite_kstr(c->json, "failed", c->session->failed);
    ms_jwrite_kbool(c->json, "more", shelf.is_cut);
    ms_jwrite_key(c->json, MS_STR("entries"));
    ms_jwrite_arr(c->json);
    for (size_t i = 0; i < shelf.list.n; i++)
        put_entry(c->json, &shelf.list.p[i]);
    ms_jwrite_arr_end(c->json);
    ms_jwrite_obj_end(c->json);
    viz_shelf_free(&shelf);
    return MS_OK;
}

/* Finds the path of an entry; NULL (*path): no name was given. */
static enum ms_rc path_of(const struct web_call *c, const char *key, char **path,
                          struct ms_err *err)
{
    const struct ms_str name = web_query_text(c->query, key);
    *path = NULL;
    return name.n != 0 ? viz_shelf_path(c->session->shelf, name, path, err) : MS_OK;
}

/* Opens the entry `name`, beside `golden` if that is given; without a name the list is opened again. The server
 * begins anew with it, under the same address. */
enum ms_rc web_api_choose(struct web_call *c, struct ms_err *err)
{
    char *path, *golden = NULL;
    MS_TRY(want_folder(c, err));
    MS_TRY(path_of(c, "name", &path, err));
    enum ms_rc rc = path_of(c, "golden", &golden, err);
    if (rc != MS_OK) {
        ms_free(path);
        return rc;
    }
    viz_session_choose(c->session, path, golden);
    ms_jwrite_bool(c->json, true);
    return MS_OK;
}
