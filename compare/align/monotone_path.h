/* SPDX-License-Identifier: MIT
 *
 * monotone_path: matchings that keep the order of both sequences.
 */
#ifndef COMPARE_ALIGN_MONOTONE_PATH_H
#define COMPARE_ALIGN_MONOTONE_PATH_H

#include "probe/base/err.h"
#include "probe/base/vec.h"

struct align__link {
    uint32_t a, b;
    float weight;
    float distance; /* of the two values that suggest the link */
};
/* Keeps the heaviest chain of links that increases strictly in a and in b, sorted; *n becomes its
 * length. */
enum ms_rc align__keep_chain(struct align__link *links, size_t *n, struct ms_err *err);

struct align__path {
    uint32_t rows, cols;
    const uint32_t *lo, *hi; /* by row: first and last column allowed, not decreasing; NULL: all */
    /* the most rows that one column may match, and the reverse; 1: no merging */
    unsigned merge;
    /* by row, by column: the most that may be merged with those before it; needed when merge > 1 */
    const uint8_t *reach[2];
    /* Scores rows r - k + 1 .. r with columns c - l + 1 .. c; k or l is 1. Only a score above 0 is
     * a match. */
    float (*score)(void *ctx, uint32_t r, uint32_t c, unsigned k, unsigned l);
    void *ctx;
};
struct align__match {
    uint32_t r, c;
    uint8_t k, l;
};
struct align__path_room { /* buffers that are reused from call to call */
    MS_VEC(float) best;
    MS_VEC(uint8_t) step;
    MS_VEC(uint64_t) start;
    MS_VEC(struct align__match) out; /* the matches, ascending */
};
/* Returns the half width of the band around the diagonal for this number of rows: `most`, or less
 * when all bands together would cost too much. A segment of 40,000 calls of one operator then takes
 * seconds. */
uint32_t align__path_reach(uint32_t rows, uint32_t most);
enum ms_rc align__path_find(const struct align__path *p, struct align__path_room *room,
                            uint64_t *cells, struct ms_err *err);
void align__path_room_free(struct align__path_room *room);

#endif
