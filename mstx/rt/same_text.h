/* SPDX-License-Identifier: MIT
 *
 * same_text: is a text the stored one?  What strcmp() says; the way to it and back was a third of
 * a mark.
 */
#ifndef MSTX_RT_SAME_TEXT_H
#define MSTX_RT_SAME_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* stored: n bytes and a NUL, and 7 bytes on either side that may be read.  The text is read in
 * aligned words, and a word only when all before it was equal: then its first byte is one of the
 * text, and the rest lies in the same page.  Checkers that look at single bytes are told to trust
 * that; valgrind does by itself. */
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
