/* SPDX-License-Identifier: MIT
 *
 * arena: memory of one task, freed at once.  Opening a dump makes an arena;
 * its names, records and shapes live there until it is closed.
 */
#ifndef PROBE_BASE_ARENA_H
#define PROBE_BASE_ARENA_H

#include "probe/base/str.h"

#include <stddef.h>

struct ms_arena;

/* limit: the most bytes it may ever hand out, padding included; it holds at most a third and half
 * a MiB more.  NULL when out of memory. */
struct ms_arena *ms_arena_new(size_t limit);
void ms_arena_free(struct ms_arena *a);
/* Uninitialised bytes aligned for any type; NULL at the limit or without memory. */
void *ms_arena_alloc(struct ms_arena *a, size_t n);
/* The same, zeroed, for count items. */
void *ms_arena_calloc(struct ms_arena *a, size_t count, size_t size);
/* Bytes without alignment: text. */
char *ms_arena_text(struct ms_arena *a, size_t n);
/* A copy of s with a NUL behind it; p is NULL on failure. */
struct ms_str ms_arena_str(struct ms_arena *a, struct ms_str s);
/* Bytes handed out so far, with the padding between them. */
size_t ms_arena_used(const struct ms_arena *a);
/* MS_E_LIMIT or MS_E_NOMEM, whichever stopped the last failed allocation. */
enum ms_rc ms_arena_fail(const struct ms_arena *a, struct ms_err *err);

#endif
