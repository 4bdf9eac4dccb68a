/* SPDX-License-Identifier: MIT
 *
 * align_family: what an operator's name says about what it computes.
 *
 * Names are compared by their last part, in lower case and without the
 * underscores of Python's methods: Tensor.__iadd__, Mint.add and Primitive.Add
 * are one family.
 */
#include "compare/align_int.h"

#include "compare/align_family_table.h"

enum { NAME_MAX_BYTES = 64 };

/* The bare name in lower case; its length, 0 when it has none or is too long for any table. */
static size_t bare_name(struct ms_str api, char out[NAME_MAX_BYTES])
{
    int64_t dot = ms_str_rfind(api, '.');
    struct ms_str s = ms_str_sub(api, (uint32_t)(dot + 1), api.n);
    while (s.n > 0 && s.p[0] == '_')
        s = ms_str_sub(s, 1, s.n);
    while (s.n > 0 && s.p[s.n - 1] == '_')
        s.n--;
    if (s.n >= NAME_MAX_BYTES)
        return 0;
    for (uint32_t i = 0; i < s.n; i++)
        out[i] = (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] + ('a' - 'A') : s.p[i]);
    return s.n;
}

uint16_t align__family_find(struct ms_str api)
{
    char name[NAME_MAX_BYTES];
    struct ms_str key = {name, (uint32_t)bare_name(api, name)};
    size_t lo = 0;
    size_t hi = sizeof align__family_names / sizeof *align__family_names;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = ms_str_cmp(ms_str_of(align__family_names[mid].name), key);
        if (c == 0)
            return align__family_names[mid].family;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return ALIGN__FAM_UNKNOWN;
}

enum ms_rc align__names_put(struct align__names *names, struct ms_str api, uint32_t *id,
                            struct ms_err *err)
{
    bool added;
    *id = ms_map_put(&names->apis, api, &added);
    if (*id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added)
        return MS_OK;
    uint16_t *family = ms_vec_push(&names->family);
    if (family == NULL)
        return ms_no_memory(err);
    *family = align__family_find(api);
    uint32_t *twin = ms_vec_push(&names->twin);
    float *share = ms_vec_push(&names->twin_share);
    if (twin == NULL || share == NULL)
        return ms_no_memory(err);
    *twin = ALIGN__NONE;
    *share = 0;
    return MS_OK;
}

void align__names_free(struct align__names *names)
{
    ms_map_free(&names->apis);
    ms_vec_free(&names->family);
    ms_vec_free(&names->twin);
    ms_vec_free(&names->twin_share);
}

const char *align__family_text(uint16_t family)
{
    return family < ALIGN__FAM_COUNT ? align__families[family].name : "unknown";
}

bool align__family_is_view(uint16_t family)
{
    return family < ALIGN__FAM_COUNT && align__families[family].view;
}

bool align__family_is_split(uint16_t family)
{
    return family == ALIGN__FAM_SPLIT;
}

uint16_t align__family_with_weight(uint16_t family)
{
    if (family == ALIGN__FAM_MATMUL)
        return ALIGN__FAM_LINEAR;
    return family == ALIGN__FAM_ADD ? ALIGN__FAM_BIASADD : family;
}

bool align__family_is_collective(uint16_t family)
{
    return family >= ALIGN__FAM_ALLREDUCE && family <= ALIGN__FAM_REDUCESCATTER;
}

bool align__family_is_linear(uint16_t family)
{
    return family == ALIGN__FAM_LINEAR || family == ALIGN__FAM_MATMUL;
}

static bool has(const uint64_t set[3], uint16_t family)
{
    return set[family / 64] >> family % 64 & 1;
}

/* Likeness of a fused family with one of its members. */
static float fused_likeness(uint16_t fused, uint16_t member)
{
    if (has(align__families[fused].last, member))
        return 0.7F;
    if (has(align__families[fused].tails, member))
        return 0.5F;
    return has(align__families[fused].members, member) ? 0.1F : 0;
}

float align__family_likeness(uint16_t a, uint16_t b)
{
    if (a >= ALIGN__FAM_COUNT || b >= ALIGN__FAM_COUNT)
        return 0;
    if (a == b)
        return 1;
    /* The projection and the split behind it produce the same values together. */
    if ((align__family_is_split(a) && align__family_is_linear(b)) ||
        (align__family_is_split(b) && align__family_is_linear(a)))
        return 0.4F;
    float ab = fused_likeness(a, b);
    float ba = fused_likeness(b, a);
    return ab > ba ? ab : ba;
}

bool align__family_fuses(uint16_t fused, uint16_t tail)
{
    return fused < ALIGN__FAM_COUNT && tail < ALIGN__FAM_COUNT &&
           has(align__families[fused].tails, tail);
}
