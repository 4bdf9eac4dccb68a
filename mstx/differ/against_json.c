/* SPDX-License-Identifier: MIT
 *
 * against_json: the answer for programs.
 */
#include "mstx/differ/against_words.h"

static double ms_of(double ns)
{
    return ns / 1e6;
}

static void json_run(const char *key, const struct mstx_run_facts *f, const struct mstx_profile *p,
                     double step_ns, double quiet_ns, struct ms_jwrite *w)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "path", f->path);
    ms_jwrite_ki64(w, "ranks", (int64_t)p->rank.n);
    ms_jwrite_ki64(w, "steps", (int64_t)f->steps);
    ms_jwrite_kf64(w, "step_ms", ms_of(step_ns));
    ms_jwrite_kf64(w, "undisturbed_ms", ms_of(quiet_ns));
    ms_jwrite_obj_end(w);
}

static void json_facts(const struct mstx_against *a, struct ms_jwrite *w)
{
    struct mstx_fact fact[MSTX_FACTS_MAX];
    const size_t n = mstx__facts_differ(&a->old_facts, &a->new_facts, fact);
    ms_jwrite_key(w, MS_STR("surroundings"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++) {
        ms_jwrite_obj(w);
        ms_jwrite_kstr(w, "what", fact[i].what);
        ms_jwrite_kstr(w, "old", fact[i].old);
        ms_jwrite_kstr(w, "new", fact[i].new);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
}

static void json_place(const struct mstx_against *a, const struct mstx_cause *c,
                       struct ms_jwrite *w)
{
    struct ms_buf path = {.max = MSTX_SENTENCE_MAX}, text = {.max = MSTX_SENTENCE_MAX};
    mstx__places_path(&a->places, c->place, &path);
    mstx__against_sentence(a, c, &text);
    ms_jwrite_ktext(w, "place", ms_buf_slice(&path));
    ms_jwrite_ktext(w, "name",
                    c->place == MSTX_ROOT ? MS_STR("") : mstx__places_text(&a->places, c->place));
    ms_jwrite_ktext(w, "text", ms_buf_slice(&text));
    ms_buf_free(&path);
    ms_buf_free(&text);
}

static void json_cause(const struct mstx_against *a, const struct mstx_cause *c, double all,
                       struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "kind", mstx__cause_word(c->kind));
    ms_jwrite_key(w, MS_STR("ranks"));
    ms_jwrite_arr(w);
    if (c->pair >= 0)
        ms_jwrite_i64(w, mstx__against_rank(a, (size_t)c->pair));
    for (size_t i = 0; i < a->difference.pair.n && c->pair < 0; i++)
        ms_jwrite_i64(w, mstx__against_rank(a, i));
    ms_jwrite_arr_end(w);
    json_place(a, c, w);
    ms_jwrite_kf64(w, "cost_ms", ms_of(c->cost_ns));
    ms_jwrite_key(w, MS_STR("interval"));
    ms_jwrite_arr(w);
    ms_jwrite_f64(w, ms_of(c->low_ns));
    ms_jwrite_f64(w, ms_of(c->high_ns));
    ms_jwrite_arr_end(w);
    ms_jwrite_kf64(w, "share", all > 0 ? c->cost_ns / all : 0);
    ms_jwrite_kf64(w, "old_ms", ms_of(c->old_ns));
    ms_jwrite_kf64(w, "new_ms", ms_of(c->new_ns));
    ms_jwrite_obj_end(w);
}

static void json_causes(const struct mstx_against *a, struct ms_jwrite *w)
{
    double all = 0;
    for (size_t i = 0; i < a->causes.list.n; i++)
        all += a->causes.list.p[i].cost_ns;
    ms_jwrite_key(w, MS_STR("causes"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < a->causes.list.n; i++)
        json_cause(a, &a->causes.list.p[i], all, w);
    ms_jwrite_arr_end(w);
}

static void json_split(const struct mstx_against *a, struct ms_jwrite *w)
{
    const struct mstx_split s = mstx__against_split(a);
    ms_jwrite_key(w, MS_STR("split_ms"));
    ms_jwrite_obj(w);
    ms_jwrite_kf64(w, "causes", ms_of(s.causes));
    ms_jwrite_kf64(w, "all_alike", ms_of(s.alike));
    ms_jwrite_kf64(w, "below_noise", ms_of(s.below));
    ms_jwrite_kf64(w, "waiting", ms_of(s.waiting));
    ms_jwrite_kf64(w, "disturbed_steps", ms_of(s.disturbed));
    ms_jwrite_obj_end(w);
}

/* Writes a list of names and frees it. */
static void json_names(const struct mstx_against *a, const char *key, bool ok, mstx_name_changes *c,
                       struct ms_jwrite *w)
{
    if (!ok)
        (void)ms_no_memory(&w->err);
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < c->n; i++) {
        ms_jwrite_obj(w);
        ms_jwrite_ktext(w, "name", ms_map_key(&a->places.names, c->p[i].name));
        ms_jwrite_kbool(w, "on_device", c->p[i].on_device);
        ms_jwrite_ki64(w, "old_count", (int64_t)c->p[i].old_count);
        ms_jwrite_ki64(w, "new_count", (int64_t)c->p[i].new_count);
        ms_jwrite_kf64(w, "old_ms", ms_of(c->p[i].old_ns));
        ms_jwrite_kf64(w, "new_ms", ms_of(c->p[i].new_ns));
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
    ms_vec_free(c);
}

void mstx_against_json(const struct mstx_against *a, double gate, struct ms_jwrite *w)
{
    const struct mstx_difference *d = &a->difference;
    ms_jwrite_obj(w);
    json_run("old", &a->old_facts, &a->old, d->old_step_ns, d->old_quiet_ns, w);
    json_run("new", &a->new_facts, &a->new, d->new_step_ns, d->new_quiet_ns, w);
    ms_jwrite_kbool(w, "same", a->is_same);
    ms_jwrite_kf64(w, "difference_ms", ms_of(d->new_step_ns - d->old_step_ns));
    ms_jwrite_kf64(w, "slower", mstx_against_slower(a));
    if (gate >= 0)
        ms_jwrite_kbool(w, "gate_passed", !mstx__against_fails(a, gate));
    ms_jwrite_kf64(w, "all_alike_factor", d->factor);
    ms_jwrite_kf64(w, "scatter", d->scatter);
    json_facts(a, w);
    json_causes(a, w);
    json_split(a, w);
    mstx_name_changes hidden = {0}, names = {0};
    json_names(a, "hidden", mstx__against_hidden(a, &hidden), &hidden, w);
    json_names(a, "names", mstx__against_names(a, &names), &names, w);
    ms_jwrite_obj_end(w);
}
