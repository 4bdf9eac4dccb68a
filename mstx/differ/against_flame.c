/* SPDX-License-Identifier: MIT
 *
 * against_flame: where the time of a step goes in both runs, as a tree that pictures are drawn of.
 *
 *     [[place, parent, "name", old ms, new ms], ...]      parents before children; the step itself is place 0
 */
#include "mstx/differ/against.h"

#include "probe/base/mem.h"

#include <math.h>

/* Places that take less than this share of a step in both runs are too narrow to be seen. */
static const double LEAST = 0.002;

static void put_place(const struct mstx_against *a, uint32_t place, struct ms_jwrite *w)
{
    const struct mstx_change *c = &a->difference.change[place];
    ms_jwrite_arr(w);
    ms_jwrite_i64(w, place);
    ms_jwrite_i64(w, a->places.list.p[place].parent);
    ms_jwrite_str(w, place == MSTX_ROOT ? MS_STR("") : mstx__places_text(&a->places, place));
    ms_jwrite_f64(w, c->old_ns / 1e6);
    ms_jwrite_f64(w, c->new_ns / 1e6);
    ms_jwrite_arr_end(w);
}

enum ms_rc mstx_against_flame(const struct mstx_against *a, struct ms_jwrite *w, struct ms_err *err)
{
    const struct mstx_change *all = a->difference.change;
    const double least = LEAST * fmax(all[MSTX_ROOT].old_ns, all[MSTX_ROOT].new_ns);
    bool *is_shown = ms_calloc(a->places.list.n, sizeof *is_shown);
    if (is_shown == NULL)
        return ms_no_memory(err);
    ms_jwrite_arr(w);
    for (uint32_t i = 0; i < a->places.list.n; i++) {
        const uint32_t parent = a->places.list.p[i].parent;
        is_shown[i] =
            i == MSTX_ROOT || (is_shown[parent] && fmax(all[i].old_ns, all[i].new_ns) >= least);
        if (is_shown[i])
            put_place(a, i, w);
    }
    ms_jwrite_arr_end(w);
    ms_free(is_shown);
    return MS_OK;
}
