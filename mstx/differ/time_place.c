/* SPDX-License-Identifier: MIT
 *
 * time_place: see the header.
 */
#include "mstx/differ/time_place.h"

#include "probe/base/assert.h"

struct key {
    uint32_t parent, name, kind;
};

static bool add_place(struct mstx_places *p, const struct key *key)
{
    struct mstx_place *slot = ms_vec_push(&p->list);
    if (slot != NULL)
        *slot = (struct mstx_place){key->parent, key->name, (enum mstx_place_kind)key->kind};
    return slot != NULL;
}

bool mstx__places_new(struct mstx_places *p)
{
    *p = (struct mstx_places){.arena = ms_arena_new(SIZE_MAX)};
    const struct key root = {.kind = MSTX_PLACE_STEP};
    return p->arena != NULL && mstx__places_name(p, MS_STR("step")) == 0 && add_place(p, &root);
}

void mstx__places_free(struct mstx_places *p)
{
    ms_vec_free(&p->list);
    ms_map_free(&p->children);
    ms_map_free(&p->names);
    ms_arena_free(p->arena);
    p->arena = NULL;
}

uint32_t mstx__places_name(struct mstx_places *p, struct ms_str text)
{
    return ms_map_put_copy(&p->names, text, p->arena, NULL);
}

uint32_t mstx__places_child(struct mstx_places *p, uint32_t parent, uint32_t name,
                            enum mstx_place_kind kind)
{
    ms_assert(parent < p->list.n);
    const struct key key = {parent, name, kind};
    bool added;
    const uint32_t i = ms_map_put_copy(
        &p->children, (struct ms_str){(const char *)&key, sizeof key}, p->arena, &added);
    if (i == MS_MAP_NONE || (added && !add_place(p, &key)))
        return MSTX_NO_PLACE;
    return i + 1; /* the root is nobody's child */
}

struct ms_str mstx__places_text(const struct mstx_places *p, uint32_t place)
{
    ms_assert(place < p->list.n);
    return ms_map_key(&p->names, p->list.p[place].name);
}

void mstx__places_path(const struct mstx_places *p, uint32_t place, struct ms_buf *out)
{
    if (place == MSTX_ROOT)
        return;
    const uint32_t parent = p->list.p[place].parent;
    mstx__places_path(p, parent, out);
    if (parent != MSTX_ROOT)
        ms_buf_puts(out, " > ");
    ms_buf_str(out, mstx__places_text(p, place));
}
