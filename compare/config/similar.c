/* SPDX-License-Identifier: MIT
 *
 * similar: the longest common block, then the same left and right of it (Ratcliff and Obershelp).
 */
#include "compare/config/similar.h"

#include "probe/base/mem.h"

/* Longest text that is looked at: a parameter's name, a line of code. difflib leaves letters out that are
 * frequent in b from this length on ("autojunk"). */
enum { JUNK_FROM = 200, MAX_TEXT = 4000 };

struct block {
    uint32_t a, b, n;
};

struct match {
    struct ms_str a, b;
    bool popular[256]; /* letters of b that do not begin a block */
    uint32_t *run;     /* two rows: length of the block that ends at a letter of b */
};

/* Finds the longest block in a[a_from, a_end) and b[b_from, b_end): the first in a, and of those the first in b. */
static struct block longest(struct match *m, uint32_t a_from, uint32_t a_end, uint32_t b_from,
                            uint32_t b_end)
{
    struct block best = {a_from, b_from, 0};
    const uint32_t width = m->b.n + 1;
    uint32_t *before = m->run, *now = m->run + width;
    memset(m->run, 0, 2 * width * sizeof *m->run);
    for (uint32_t i = a_from; i < a_end; i++) {
        memset(now, 0, width * sizeof *now);
        for (uint32_t j = b_from; j < b_end; j++) {
            if (m->a.p[i] != m->b.p[j] || m->popular[(unsigned char)m->b.p[j]])
                continue;
            const uint32_t k = (j > b_from ? before[j - 1] : 0) + 1;
            now[j] = k;
            if (k > best.n)
                best = (struct block){i + 1 - k, j + 1 - k, k};
        }
        uint32_t *swap = before;
        before = now;
        now = swap;
    }
    /* Popular letters may lengthen a block that others began. */
    while (best.a > a_from && best.b > b_from && m->a.p[best.a - 1] == m->b.p[best.b - 1])
        best = (struct block){best.a - 1, best.b - 1, best.n + 1};
    while (best.a + best.n < a_end && best.b + best.n < b_end &&
           m->a.p[best.a + best.n] == m->b.p[best.b + best.n])
        best.n++;
    return best;
}

static uint32_t count_matches(struct match *m, uint32_t a_from, uint32_t a_end, uint32_t b_from,
                              uint32_t b_end)
{
    if (a_from >= a_end || b_from >= b_end)
        return 0;
    const struct block k = longest(m, a_from, a_end, b_from, b_end);
    if (k.n == 0)
        return 0;
    return k.n + count_matches(m, a_from, k.a, b_from, k.b) +
           count_matches(m, k.a + k.n, a_end, k.b + k.n, b_end);
}

static void find_popular(struct match *m)
{
    uint32_t count[256] = {0};
    for (uint32_t j = 0; j < m->b.n; j++)
        count[(unsigned char)m->b.p[j]]++;
    for (int c = 0; c < 256 && m->b.n >= JUNK_FROM; c++)
        m->popular[c] = count[c] > m->b.n / 100 + 1;
}

double cfg_similar(struct ms_str a, struct ms_str b)
{
    struct match m = {.a = ms_str_sub(a, 0, MAX_TEXT), .b = ms_str_sub(b, 0, MAX_TEXT)};
    if (m.a.n + m.b.n == 0 || ms_str_eq(a, b))
        return 1;
    m.run = ms_alloc(2 * ((size_t)m.b.n + 1) * sizeof *m.run);
    if (m.run == NULL)
        return 0;
    find_popular(&m);
    const uint32_t matches = count_matches(&m, 0, m.a.n, 0, m.b.n);
    ms_free(m.run);
    return 2.0 * matches / (m.a.n + m.b.n);
}
