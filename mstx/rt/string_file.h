/* SPDX-License-Identifier: MIT
 *
 * string_file: strings.seg, which holds every text of a capture once, and how a mark finds the id
 * of its message.
 */
#ifndef MSTX_RT_STRING_FILE_H
#define MSTX_RT_STRING_FILE_H

#include "mstx/rt/ring.h"
#include "mstx/rt/same_text.h"

/* Tells whether mstx accepts this message. */
bool rt_message_ok(const char *message);
enum { RT_REFUSED_ID = UINT32_MAX };
/* Reports, once, why a message is refused; returns 0. */
uint32_t rt_message_refuse(const char *message);

/* Returns the entry of a text, written to strings.seg when it is new; NULL: no room. n: strlen. */
const struct mstx_text *rt_text_intern(const char *text, size_t n);
/* Appends a definition; returns its id, or 0. */
uint32_t rt_text_define(enum mstx_text_kind kind, uint16_t domain, uint64_t key, const void *bytes,
                        size_t n);
/* Copies a text of this capture by its id; false, and "", when the id is unknown. */
bool rt_text_copy(uint32_t id, char *out, size_t cap);
bool rt_text_start(void);
void rt_text_close(void);
void rt_text_forget(void);
uint64_t rt_text_count(void);
/* Makes a copy that outlives captures and forks; NULL: no memory. */
char *rt_keep(const void *bytes, size_t n);

/* rt_text_id returns the id of a message: one compare when this thread gave the same text from the
 * same address before. UINT32_MAX: mstx refuses it; 0: no room for more texts. rt_text_slow is its
 * slow path. */
uint32_t rt_text_slow(struct rt_ring *r, const char *text, size_t place);
static inline size_t rt_text_place(const char *text)
{
    return (size_t)(((uintptr_t)text * 0x9E3779B97F4A7C15u) >> 54);
}
/* Returns the id if the thread's cache has the text, else 0. */
static inline uint32_t rt_text_known(const struct rt_ring *r, const char *text)
{
    const struct mstx_text *e = r->names[rt_text_place(text)];
    return RT_LIKELY(e != NULL && rt_same((const char *)(e + 1), e->len, text)) ? e->id : 0;
}
static inline uint32_t rt_text_id(struct rt_ring *r, const char *text)
{
    const uint32_t id = rt_text_known(r, text);
    return RT_LIKELY(id != 0) ? id : rt_text_slow(r, text, rt_text_place(text));
}

/* rt_text_id_of_call returns the id of a text that is never freed or changed, so only the address
 * is compared. A line of the cache holds four. */
uint32_t rt_text_keep_id(struct rt_ring *r, const char *text, size_t line);
static inline uint32_t rt_text_id_of_call(struct rt_ring *r, const char *text)
{
    const size_t line = (size_t)(((uintptr_t)text * 0x9E3779B97F4A7C15u) >> 60);
    for (int i = 0; i < 4; i++) {
        if (atomic_load_explicit(&r->call_names[line][i].text, memory_order_relaxed) == text)
            return r->call_names[line][i].id;
    }
    return rt_text_keep_id(r, text, line);
}
static_assert(RT_CALL_NAMES == 1 << 4, "lines are 4 bits");

#endif
