/* SPDX-License-Identifier: MIT
 *
 * vec: grows by half, which wastes less than doubling at the sizes of a dump and still copies each
 * item a bounded number of times.
 */
#include "probe/base/vec.h"

#include <string.h>

/* Reads the caller's pointer, a T *, by its bytes: an access as void * would break the aliasing
 * rules. */
static void *get_items(const void *p)
{
    void *items;
    memcpy(&items, p, sizeof items);
    return items;
}

static void set_items(void *p, const void *items)
{
    memcpy(p, &items, sizeof items);
}

bool ms_vec_grow(void *p, size_t *cap, size_t want, size_t item)
{
    size_t grown = *cap + *cap / 2 + 8;
    size_t bytes;
    if (grown < want)
        grown = want;
    if (!ms_mul_size(grown, item, &bytes))
        return false;
    void *q = ms_realloc(get_items(p), bytes);
    if (q == NULL)
        return false;
    set_items(p, q);
    *cap = grown;
    return true;
}

void ms_vec_shrink(void *p, size_t *cap, size_t n, size_t item)
{
    if (n == *cap)
        return;
    if (n == 0) {
        ms_free(get_items(p));
        set_items(p, NULL);
        *cap = 0;
        return;
    }
    void *q = ms_realloc(get_items(p), n * item);
    if (q != NULL) {
        set_items(p, q);
        *cap = n;
    }
}
