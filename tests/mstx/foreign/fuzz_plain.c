/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a pickle or JSON: they are refused with a reason, or they are values that can be walked
 * as deep as readers of them go, within memory in proportion to the bytes.
 */
#include "mstx/foreign/from_flight.h"

#include <stdlib.h>

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            abort();                                                                               \
    } while (0)

static volatile size_t seen;

/* A list may hold itself. */
static void walk(const struct ms_plain *v, int depth)
{
    const struct ms_str s = ms_plain_text(v);
    MUST(v != NULL && v->kind < MS_PLAIN_MARK && v->n <= v->cap);
    for (uint32_t i = 0; i < s.n; i++)
        seen += (unsigned char)s.p[i];
    seen += (size_t)ms_plain_int(v, 1);
    for (uint32_t i = 0; i < ms_plain_len(v) && i < 64 && depth < 4; i++)
        walk(ms_plain_item(v, i), depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_arena *a = ms_arena_new(((size_t)1 << 20) + 2048 * size);
    struct ms_err err = {0};
    struct ms_plain *v = NULL;
    if (a == NULL || size > UINT32_MAX)
        return 0;
    if (mstx_plain_read(&v, (struct ms_str){(const char *)data, (uint32_t)size}, a, &err) == MS_OK)
        walk(v, 0);
    else
        MUST(err.rc != MS_OK && err.rc != MS_E_NOMEM && err.msg[0] != '\0');
    MUST(ms_arena_used(a) <= ((size_t)1 << 20) + 1024 * size);
    ms_arena_free(a);
    return 0;
}
