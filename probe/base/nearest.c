/* SPDX-License-Identifier: MIT
 *
 * nearest: Damerau-Levenshtein distance (edit distance with swaps of neighbours, the most frequent
 * typing mistake). Upper and lower case are equal, and so are '-' and '_'.
 */
#include "probe/base/nearest.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { WORD_MAX = 48, FAR = 255 };

static char fold(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    if (c == '-')
        return '_';
    return c;
}

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Returns the edit distance. Keeps three rows of the usual table: the current one, the one before,
 * and the one before that, which swaps need. */
static unsigned edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *up = rows[(i + 2) % 3];
        const unsigned *up2 = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            bool same = fold(a[i - 1]) == fold(b[j - 1]);
            row[j] = least_of(least_of(up[j], row[j - 1]) + 1, up[j - 1] + (same ? 0 : 1));
            bool swapped = i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                           fold(a[i - 2]) == fold(b[j - 1]);
            if (swapped)
                row[j] = least_of(row[j], up2[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

static bool begins_with(const char *text, const char *start)
{
    while (*start != '\0' && fold(*text) == fold(*start)) {
        text++;
        start++;
    }
    return *start == '\0';
}

static unsigned distance_to(const char *word, const char *candidate)
{
    size_t n = strlen(word);
    size_t m = strlen(candidate);
    if (n == 0)
        return FAR;
    /* The typed word may be an unfinished candidate. */
    if (n >= 2 && begins_with(candidate, word))
        return m != n ? 1 : 0;
    /* A common prefix and suffix are removed first, so that long names that differ in a short piece
     * fit the table. */
    size_t head = 0, tail = 0, shorter = n < m ? n : m;
    while (head < shorter && fold(word[head]) == fold(candidate[head]))
        head++;
    while (tail < shorter - head && fold(word[n - 1 - tail]) == fold(candidate[m - 1 - tail]))
        tail++;
    if (n - head - tail > WORD_MAX || m - head - tail > WORD_MAX)
        return FAR;
    unsigned d = edit_distance(word + head, n - head - tail, candidate + head, m - head - tail);
    /* Accepts at most one mistake in three letters. */
    return d <= (n + 2) / 3 && d < n ? d : FAR;
}

void ms_near_offer(struct ms_near *n, const char *candidate)
{
    unsigned d = distance_to(n->word, candidate);
    if (d == FAR || (n->best != NULL && d >= n->distance))
        return;
    n->best = candidate;
    n->distance = d;
}

const char *ms_nearest(const char *word, const char *const *choices)
{
    struct ms_near n = {.word = word};
    for (; *choices != NULL; choices++)
        ms_near_offer(&n, *choices);
    return n.best;
}
