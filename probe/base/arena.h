/* SPDX-License-Identifier: MIT
 *
 * arena: memory of one task, freed at once. Opening a dump makes an arena; the dump's names,
 * records and shapes live there until the dump is closed.
 */
#ifndef PROBE_BASE_ARENA_H
#define PROBE_BASE_ARENA_H

#include "probe/base/str.h"

#include <stddef.h>

struct ms_arena;

/* Creates an arena that hands out at most `limit` bytes, padding included. The arena itself takes
 * at most a third more, plus half a MiB. NULL when out of memory. */
struct ms_arena *ms_arena_new(size_t limit);
void ms_arena_free(struct ms_arena *a);
/* Returns n uninitialised bytes aligned for any type; NULL at the limit or when out of memory. */
void *ms_arena_alloc(struct ms_arena *a, size_t n);
/* Returns zeroed memory for `count` items of `size` bytes; NULL as above. */
void *ms_arena_calloc(struct ms_arena *a, size_t count, size_t size);
/* Returns n unaligned bytes, for text. */
char *ms_arena_text(struct ms_arena *a, size_t n);
/* Copies s and adds a NUL; p is NULL on failure. */
struct ms_str ms_arena_str(struct ms_arena *a, struct ms_str s);
/* Bytes handed out so far, padding included. */
size_t ms_arena_used(const struct ms_arena *a);
/* Reports the last failed allocation: MS_E_LIMIT or MS_E_NOMEM. */
enum ms_rc ms_arena_fail(const struct ms_arena *a, struct ms_err *err);

#endif
