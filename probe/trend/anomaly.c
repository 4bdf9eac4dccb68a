/* SPDX-License-Identifier: MIT
 *
 * anomaly: reads, sorts and writes alarms.
 */
#include "probe/trend/anomaly.h"

#include "probe/base/arena.h"
#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/jwrite.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/vec.h"

#include <stdlib.h>

#define FILE_MAX ((size_t)4 << 30)

struct probe_anomalies {
    struct ms_arena *arena;
    struct ms_buf scratch;
    MS_VEC(struct probe_anomaly) all;
    MS_VEC(uint32_t) chosen; /* indices in `all` */
};

/* ---- reading ----------------------------------------------------------- */

struct reading {
    struct probe_anomalies *a;
    struct probe_anomaly *one;
};

static enum ms_rc read_whole(struct ms_jread *r, const char *key, int64_t *out, struct ms_err *err)
{
    if (ms_jread_next(r) == MS_J_NUM && ms_jread_i64(r, out))
        return MS_OK;
    return ms_jread_reject(r, err, "%s: expected a whole number", key);
}

static enum ms_rc read_text(struct reading *g, struct ms_jread *r, const char *key,
                            struct ms_str *out, struct ms_err *err)
{
    struct ms_str text;
    if (ms_jread_next(r) != MS_J_STR)
        return ms_jread_reject(r, err, "%s: expected a text", key);
    MS_TRY(ms_jread_text(r, &g->a->scratch, &text, err));
    *out = ms_arena_str(g->a->arena, text);
    return out->p != NULL ? MS_OK : ms_arena_fail(g->a->arena, err);
}

/* Reads the ranks of a group, which are written as json.dump does at depth two. */
static enum ms_rc read_mates(struct reading *g, struct ms_jread *r, struct ms_str *out,
                             struct ms_err *err)
{
    struct ms_buf text = {.max = 1 << 24};
    enum ms_jtok tok = ms_jread_next(r);
    if (tok == MS_J_NULL) {
        *out = MS_STR("null");
        return MS_OK;
    }
    if (tok != MS_J_ARR)
        return ms_jread_reject(r, err, "group_mates: expected a list of ranks");
    unsigned n = 0;
    for (; (tok = ms_jread_next(r)) == MS_J_NUM; n++)
        ms_buf_printf(&text, "%s\n   %.*s", n != 0 ? "," : "[", MS_STR_ARG(r->text));
    ms_buf_puts(&text, n != 0 ? "\n  ]" : "[]");
    enum ms_rc rc = tok == MS_J_ARR_END
                        ? ms_buf_check(&text, err)
                        : ms_jread_reject(r, err, "group_mates: expected a list of ranks");
    if (rc == MS_OK) {
        *out = ms_arena_str(g->a->arena, ms_buf_slice(&text));
        rc = out->p != NULL ? MS_OK : ms_arena_fail(g->a->arena, err);
    }
    ms_buf_free(&text);
    return rc;
}

static enum ms_rc read_field(struct reading *g, struct ms_jread *r, struct ms_err *err)
{
    struct probe_anomaly *o = g->one;
    const struct {
        const char *key;
        int64_t *into;
    } numbers[] = {
        {"rank", &o->rank},         {"step", &o->step},           {"micro_step", &o->micro_step},
        {"pp_stage", &o->pp_stage}, {"vpp_stage", &o->vpp_stage}, {"call_id", &o->call_id}};
    const struct ms_str key = r->text;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (ms_str_is(key, numbers[i].key))
            return read_whole(r, numbers[i].key, numbers[i].into, err);
    }
    if (ms_str_is(key, "tag_name"))
        return read_text(g, r, "tag_name", &o->tag, err);
    if (ms_str_is(key, "message"))
        return read_text(g, r, "message", &o->message, err);
    if (ms_str_is(key, "group_mates"))
        return read_mates(g, r, &o->mates, err);
    return ms_jread_skip(r, MS_J_KEY) != MS_J_ERR ? MS_OK : ms_jread_fail(r, err);
}

/* Reads one member of the file: its key is made again when it is written. */
static enum ms_rc read_one(void *of, struct ms_jread *r, struct ms_buf *scratch, struct ms_err *err)
{
    struct reading *g = of;
    struct probe_anomaly one = {.mates = MS_STR("null")};
    enum ms_jtok tok = ms_jread_next(r);
    (void)scratch;
    if (tok != MS_J_OBJ)
        return tok == MS_J_ERR ? ms_jread_fail(r, err)
                               : ms_jread_reject(r, err, "expected an alarm in { }");
    g->one = &one;
    while ((tok = ms_jread_next(r)) == MS_J_KEY)
        MS_TRY(read_field(g, r, err));
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    struct probe_anomaly *slot = ms_vec_push(&g->a->all);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = one;
    return MS_OK;
}

static enum ms_rc read_file(struct probe_anomalies *a, const char *path, struct ms_err *err)
{
    struct ms_file file;
    struct ms_jread r;
    struct reading g = {.a = a};
    const size_t before = a->all.n;
    MS_TRY(ms_file_map(&file, path, FILE_MAX, err));
    ms_jread_init(&r, file.p, file.n, 0);
    enum ms_rc rc = ms_jread_members(&r, "anomaly.json", read_one, &g, err);
    ms_file_unmap(&file);
    if (rc != MS_OK) {
        a->all.n = before;
        ms_err_wrap(err, "%s", path);
    }
    return rc;
}

struct search {
    struct probe_anomalies *a;
    void (*on_note)(void *ctx, const struct ms_err *why);
    void *ctx;
    size_t files;
};

static enum ms_rc visit_folder(struct search *s, const char *dir, const char *name,
                               struct ms_err *err)
{
    struct ms_buf path = {.max = 1 << 16};
    struct ms_err bad = {0};
    ms_buf_printf(&path, "%s/%s/anomaly.json", dir, name);
    enum ms_rc rc = ms_buf_check(&path, err);
    if (rc == MS_OK && ms_path_kind(ms_buf_z(&path)) == MS_KIND_FILE) {
        s->files++;
        enum ms_rc read = read_file(s->a, ms_buf_z(&path), &bad);
        if (read == MS_E_NOMEM)
            rc = ms_no_memory(err);
        else if (read != MS_OK && s->on_note != NULL)
            s->on_note(s->ctx, &bad);
    }
    ms_buf_free(&path);
    return rc;
}

static enum ms_rc visit_all(struct search *s, const char *dir, struct ms_err *err)
{
    struct ms_dir d;
    enum ms_rc rc = MS_OK;
    MS_TRY(ms_want_dir(dir, err));
    MS_TRY(ms_dir_list(&d, dir, err));
    for (size_t i = 0; i < d.names.n && rc == MS_OK; i++)
        rc = visit_folder(s, dir, d.names.p[i].p, err);
    ms_dir_free(&d);
    if (rc == MS_OK && s->files == 0)
        return ms_fail(
            err, MS_E_NOTFOUND,
            "%s: no rankN/anomaly.json in it; the monitor writes them to anomaly_detected "
            "when its config has alert: {\"dump\": true}",
            dir);
    return rc;
}

enum ms_rc probe_anomalies_read(struct probe_anomalies **out, const char *dir,
                                void (*on_note)(void *ctx, const struct ms_err *why), void *ctx,
                                struct ms_err *err)
{
    struct probe_anomalies *a = ms_calloc(1, sizeof *a);
    *out = NULL;
    if (a == NULL || (a->arena = ms_arena_new(SIZE_MAX)) == NULL) {
        ms_free(a);
        return ms_no_memory(err);
    }
    a->scratch.max = 1 << 26;
    struct search s = {a, on_note, ctx, 0};
    enum ms_rc rc = visit_all(&s, dir, err);
    if (rc != MS_OK) {
        probe_anomalies_free(a);
        return rc;
    }
    *out = a;
    return MS_OK;
}

void probe_anomalies_free(struct probe_anomalies *a)
{
    if (a == NULL)
        return;
    ms_vec_free(&a->all);
    ms_vec_free(&a->chosen);
    ms_buf_free(&a->scratch);
    ms_arena_free(a->arena);
    ms_free(a);
}

/* ---- order ------------------------------------------------------------- */

/* 0 forward, 1 backward, 2 optimizer, -1 anything else, by what follows the last slash of a tag. */
static int train_stage(struct ms_str tag)
{
    static const struct {
        const char *word;
        int stage;
    } known[] = {{"actv", 0},     {"actv_grad", 1}, {"pre_grad", 1},  {"post_grad", 1},
                 {"acc_grad", 1}, {"exp_avg", 2},   {"exp_avg_sq", 2}};
    const int64_t slash = ms_str_rfind(tag, '/');
    const struct ms_str word = ms_str_sub(tag, (uint32_t)(slash + 1), tag.n);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ms_str_is(word, known[i].word))
            return known[i].stage;
    }
    return -1;
}

struct sorting {
    int64_t key[6];
    uint32_t at;
};

static struct sorting sorting_of(const struct probe_anomaly *o, uint32_t at)
{
    const int stage = train_stage(o->tag);
    const int64_t turn = stage == 0 ? 1 : -1;
    return (struct sorting){
        {o->step, o->micro_step, stage, turn * o->vpp_stage, turn * o->pp_stage, o->call_id}, at};
}

static int by_time(const void *a, const void *b)
{
    const struct sorting *x = a, *y = b;
    for (size_t i = 0; i < sizeof x->key / sizeof *x->key; i++) {
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    }
    return (x->at > y->at) - (x->at < y->at);
}

static bool is_wanted(int64_t step, const int64_t *steps, size_t nsteps)
{
    for (size_t i = 0; i < nsteps; i++) {
        if (steps[i] == step)
            return true;
    }
    return nsteps == 0;
}

enum ms_rc probe_anomalies_choose(struct probe_anomalies *a, size_t most, const int64_t *steps,
                                  size_t nsteps, struct ms_err *err)
{
    struct sorting *order = ms_calloc(a->all.n + 1, sizeof *order);
    size_t n = 0;
    for (size_t i = 0; order != NULL && i < a->all.n; i++) {
        if (is_wanted(a->all.p[i].step, steps, nsteps))
            order[n++] = sorting_of(&a->all.p[i], (uint32_t)i);
    }
    if (order != NULL)
        qsort(order, n, sizeof *order, by_time);
    if (n > most)
        n = most;
    if (order == NULL || !ms_vec_reserve(&a->chosen, n + 1)) {
        ms_free(order);
        return ms_no_memory(err);
    }
    for (size_t i = 0; i < n; i++)
        a->chosen.p[i] = order[i].at;
    a->chosen.n = n;
    ms_free(order);
    return MS_OK;
}

size_t probe_anomalies_count(const struct probe_anomalies *a)
{
    return a->chosen.n;
}

const struct probe_anomaly *probe_anomalies_at(const struct probe_anomalies *a, size_t i)
{
    ms_assert(i < a->chosen.n);
    return &a->all.p[a->chosen.p[i]];
}

/* ---- writing ----------------------------------------------------------- */

static void put_one(struct ms_jwrite *w, const struct probe_anomaly *o)
{
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "rank", o->rank);
    ms_jwrite_ki64(w, "step", o->step);
    ms_jwrite_ki64(w, "micro_step", o->micro_step);
    ms_jwrite_ki64(w, "pp_stage", o->pp_stage);
    ms_jwrite_ki64(w, "vpp_stage", o->vpp_stage);
    ms_jwrite_ki64(w, "call_id", o->call_id);
    ms_jwrite_ktext(w, "tag_name", o->tag);
    ms_jwrite_ktext(w, "message", o->message);
    ms_jwrite_key(w, MS_STR("group_mates"));
    ms_jwrite_raw(w, o->mates);
    ms_jwrite_obj_end(w);
}

/* A key that occurs again has the last value at the place of the first. */
struct keyed {
    struct ms_map map;
    MS_VEC(uint32_t) last; /* by the index of a key */
    struct ms_arena *arena;
};

static enum ms_rc key_all(const struct probe_anomalies *a, struct keyed *k, struct ms_err *err)
{
    struct ms_buf key = {.max = 1 << 26};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < a->chosen.n && rc == MS_OK; i++) {
        const struct probe_anomaly *o = probe_anomalies_at(a, i);
        ms_buf_clear(&key);
        ms_buf_printf(&key, "%.*s_step_%lld_call_%lld", MS_STR_ARG(o->tag), (long long)o->step,
                      (long long)o->call_id);
        rc = ms_buf_check(&key, err);
        const uint32_t at =
            rc == MS_OK ? ms_map_put_copy(&k->map, ms_buf_slice(&key), k->arena, NULL) : 0;
        if (rc == MS_OK && (at == MS_MAP_NONE || !ms_vec_reserve(&k->last, (size_t)at + 1)))
            rc = ms_no_memory(err);
        if (rc == MS_OK) {
            k->last.n = at >= k->last.n ? (size_t)at + 1 : k->last.n;
            k->last.p[at] = (uint32_t)i;
        }
    }
    ms_buf_free(&key);
    return rc;
}

static enum ms_rc write_keyed(const struct probe_anomalies *a, const struct keyed *k,
                              const char *path, struct ms_err *err)
{
    struct ms_out *out;
    struct ms_jwrite w;
    MS_TRY(ms_out_create(&out, path, err));
    ms_jwrite_init(&w, 1, 1 << 20);
    w.drain = ms_out_sink;
    w.ctx = out;
    ms_jwrite_obj(&w);
    for (uint32_t i = 0; i < k->last.n; i++) {
        ms_jwrite_key(&w, ms_map_key(&k->map, i));
        put_one(&w, probe_anomalies_at(a, k->last.p[i]));
    }
    ms_jwrite_obj_end(&w);
    enum ms_rc rc = ms_jwrite_finish(&w, err);
    ms_jwrite_free(&w);
    if (rc == MS_OK)
        return ms_out_commit(out, err);
    ms_out_abort(out);
    return rc;
}

enum ms_rc probe_anomalies_write(const struct probe_anomalies *a, const char *path,
                                 struct ms_err *err)
{
    struct keyed k = {.arena = ms_arena_new(SIZE_MAX)};
    enum ms_rc rc = k.arena != NULL ? key_all(a, &k, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = write_keyed(a, &k, path, err);
    ms_map_free(&k.map);
    ms_vec_free(&k.last);
    ms_arena_free(k.arena);
    return rc;
}
