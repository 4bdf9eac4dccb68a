/* SPDX-License-Identifier: MIT
 *
 * vec: growing arrays of any type.
 *
 *     MS_VEC(uint32_t) ids = {0};
 *     uint32_t *slot = ms_vec_push(&ids);      NULL when out of memory
 *     ms_vec_free(&ids);
 */
#ifndef PROBE_BASE_VEC_H
#define PROBE_BASE_VEC_H

#include "probe/base/mem.h"

#include <stdbool.h>
#include <stddef.h>

#define MS_VEC(type)                                                                               \
    struct {                                                                                       \
        type *p;                                                                                   \
        size_t n, cap;                                                                             \
    }

/* Make room for n items in all; false when out of memory (the vector is unchanged). */
#define ms_vec_reserve(v, want)                                                                    \
    ((want) <= (v)->cap || ms_vec_grow(&(v)->p, &(v)->cap, (want), sizeof *(v)->p))
/* Address of a new, uninitialised last item, or NULL. */
#define ms_vec_push(v) (ms_vec_reserve((v), (v)->n + 1) ? &(v)->p[(v)->n++] : NULL)
/* Frees unused capacity. */
#define ms_vec_trim(v) ms_vec_shrink(&(v)->p, &(v)->cap, (v)->n, sizeof *(v)->p)
#define ms_vec_free(v) (ms_free((v)->p), (v)->p = NULL, (v)->n = (v)->cap = 0)

/* Implement the macros. p is the address of the vector's pointer, whatever its type. */
bool ms_vec_grow(void *p, size_t *cap, size_t want, size_t item);
void ms_vec_shrink(void *p, size_t *cap, size_t n, size_t item);

#endif
