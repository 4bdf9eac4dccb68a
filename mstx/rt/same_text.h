/* SPDX-License-Identifier: MIT
 *
 * same_text: an inline strcmp() for equality: the call of strcmp() took a third of the time of a
 * mark.
 */
#ifndef MSTX_RT_SAME_TEXT_H
#define MSTX_RT_SAME_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Tells whether text equals stored, which is n bytes and a NUL, with 7 readable bytes on either
 * side. The text is read in aligned words, and a word is read only when all before it was equal:
 * then its first byte belongs to the text, and the other bytes are in the same page. Sanitizers,
 * which check single bytes, are switched off here; valgrind accepts such reads. */
__attribute__((no_sanitize("address", "thread"))) static inline bool
rt_same(const char *stored, size_t n, const char *text)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    typedef uint64_t __attribute__((may_alias)) word;
    const size_t skip = (uintptr_t)text % sizeof(word); /* bytes in front of the text */
    const word *at = (const word *)(const void *)(text - skip);
    const char *end = stored + n - 7; /* where the last word of the stored text begins */
    uint64_t here;
    memcpy(&here, stored -= skip, sizeof here);
    uint64_t differ = (*at ^ here) >> 8 * skip << 8 * skip;
    for (; stored < end; stored += sizeof(word)) {
        if (differ != 0)
            return false;
        memcpy(&here, stored + sizeof(word), sizeof here);
        differ = *++at ^ here;
    }
    return differ << 8 * (stored - end) == 0;
#else
    return strcmp(stored, text) == 0;
#endif
}

#endif
