/* SPDX-License-Identifier: MIT
 *
 * ranks: drawn trees of steps and ranks on both sides; which dumps are compared with which, under which
 * names, and which are left without a counterpart.
 */
#include "compare/pair/ranks.h"
#include "tests/support/check.h"

#include <sys/stat.h>

enum { CASES = 400, STEPS = 3, RANKS = 3 };

static uint64_t state;
static char dir[64];
static struct ms_err err;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* Which dumps a side has, and directories of ranks without one. */
static struct side {
    bool is[STEPS][RANKS], empty[STEPS][RANKS];
    char path[80];
} side[2];

static void make_dir(const char *path)
{
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

static void draw_side(struct side *s, char name, unsigned number)
{
    const bool one = below(3) == 0;
    const uint32_t only = below(STEPS), density = 1 + below(4);
    char path[160];
    memset(s, 0, sizeof *s);
    snprintf(s->path, sizeof s->path, "%s/%c%u", dir, name, number);
    make_dir(s->path);
    for (uint32_t t = 0; t < STEPS; t++) {
        if (one && t != only)
            continue;
        snprintf(path, sizeof path, "%s/step%u", s->path, t);
        make_dir(path);
        for (uint32_t r = 0; r < RANKS; r++) {
            s->is[t][r] = below(4) < density;
            s->empty[t][r] = !s->is[t][r] && below(12) == 0;
            snprintf(path, sizeof path, "%s/step%u/rank%u", s->path, t, r);
            if (s->is[t][r] || s->empty[t][r])
                make_dir(path);
            strcat(path, "/dump.json");
            if (s->is[t][r])
                write_file(path, "{}", 2);
        }
    }
}

static unsigned count(const struct side *s, bool empty)
{
    unsigned n = 0;
    for (int t = 0; t < STEPS; t++) {
        for (int r = 0; r < RANKS; r++)
            n += empty ? s->empty[t][r] : s->is[t][r];
    }
    return n;
}

static int steps_of(const struct side *s)
{
    int n = 0;
    for (int t = 0; t < STEPS; t++)
        n += s->is[t][0] || s->is[t][1] || s->is[t][2];
    return n;
}

/* The i-th dump of a side in order of steps, then ranks. */
static void nth(const struct side *s, unsigned i, int *step, int *rank)
{
    for (int t = 0; t < STEPS; t++) {
        for (int r = 0; r < RANKS; r++) {
            if (s->is[t][r] && i-- == 0) {
                *step = t, *rank = r;
                return;
            }
        }
    }
    ck_abort_msg("there are not so many dumps");
}

static const struct cmp_couple *couple_of(const struct cmp_ranks *r, int step, int rank)
{
    for (size_t i = 0; i < r->list.n; i++) {
        if (r->list.p[i].t->step == step && r->list.p[i].t->rank == rank)
            return &r->list.p[i];
    }
    return NULL;
}

static void check_names(const struct cmp_couple *c, bool steps)
{
    char want[32];
    snprintf(want, sizeof want, "_rank%d", (int)c->t->rank);
    ck_assert_str_eq(c->suffix, want);
    snprintf(want, sizeof want, "step%d", (int)c->t->step);
    ck_assert_str_eq(c->folder, steps ? want : "");
}

static size_t told(const struct cmp_ranks *r, const char *what)
{
    size_t n = 0;
    for (size_t i = 0; i < r->notes.n; i++)
        n += strstr(r->notes.p[i], what) != NULL;
    return n;
}

/* Equal ranks, and equal steps where a side has several. */
static void check_by_number(const struct cmp_ranks *r)
{
    const bool steps = steps_of(&side[0]) > 1 || steps_of(&side[1]) > 1;
    size_t couples = 0, lonely[2] = {0};
    for (int t = 0; t < STEPS; t++) {
        for (int k = 0; k < RANKS; k++) {
            bool both[2] = {false, false};
            for (int other = 0; other < STEPS; other++) {
                both[0] |= side[1].is[other][k] && (!steps || other == t);
                both[1] |= side[0].is[other][k] && (!steps || other == t);
            }
            const struct cmp_couple *c = couple_of(r, t, k);
            ck_assert((c != NULL) == (side[0].is[t][k] && both[0]));
            if (c != NULL) {
                ck_assert(c->b->rank == k && (!steps || c->b->step == t));
                check_names(c, steps);
            }
            couples += c != NULL;
            lonely[0] += side[0].is[t][k] && !both[0];
            lonely[1] += side[1].is[t][k] && !both[1];
        }
    }
    ck_assert_uint_eq(r->list.n, couples);
    ck_assert_uint_eq(told(r, "has no counterpart on the golden side"), lonely[0]);
    ck_assert_uint_eq(told(r, "has no counterpart on the target side"), lonely[1]);
}

static void check_by_position(const struct cmp_ranks *r)
{
    const unsigned n = count(&side[0], false);
    ck_assert_uint_eq(r->list.n, n);
    for (unsigned i = 0; i < n; i++) {
        const struct cmp_couple *c = &r->list.p[i];
        int step[2], rank[2];
        nth(&side[0], i, &step[0], &rank[0]);
        nth(&side[1], i, &step[1], &rank[1]);
        ck_assert(c->t->step == step[0] && c->t->rank == rank[0] && c->b->step == step[1] &&
                  c->b->rank == rank[1]);
        check_names(c, steps_of(&side[0]) > 1);
    }
}

/* How a drawn pair ends: the test's own rules for an error. */
static bool has_common_rank(void)
{
    const bool steps = steps_of(&side[0]) > 1 || steps_of(&side[1]) > 1;
    for (int t = 0; t < STEPS; t++) {
        for (int k = 0; k < RANKS; k++) {
            for (int other = 0; other < STEPS && side[0].is[t][k]; other++) {
                if (side[1].is[other][k] && (!steps || other == t))
                    return true;
            }
        }
    }
    return false;
}

static size_t notes_of(const struct cmp_ranks *r, const char *words)
{
    size_t n = 0;
    for (size_t i = 0; i < r->notes.n; i++)
        n += strstr(r->notes.p[i], words) != NULL;
    return n;
}

START_TEST(dumps_are_paired_by_number_or_by_position)
{
    unsigned seen[4] = {0};
    scratch_dir(dir);
    for (unsigned seed = 0; seed < CASES; seed++) {
        struct cmp_ranks r;
        state = seed;
        draw_side(&side[0], 't', seed);
        draw_side(&side[1], 'b', seed);
        const unsigned n = count(&side[0], false), m = count(&side[1], false);
        const unsigned empty = count(&side[0], true) + count(&side[1], true);
        const bool official = below(2) == 0, ordered = official || (n == 1 && m == 1);
        if (n == 0 || m == 0)
            continue; /* then the search for dumps fails */
        const enum ms_rc rc = cmp_ranks_pair(&r, side[0].path, side[1].path, official, &err);
        if (ordered && n + count(&side[0], true) != m + count(&side[1], true)) {
            ck_assert_int_eq(rc, MS_E_ARG);
            ck_says(err, "dumps on the target side and");
            seen[0]++;
        } else if ((!ordered || empty != 0) && !has_common_rank()) {
            ck_assert_int_eq(rc, MS_E_NOTFOUND);
            ck_says(err, "have no rank and step in common");
            seen[1]++;
        } else {
            ck_ok(rc, err);
            ck_assert_uint_eq(notes_of(&r, "no dump.json in it"), empty);
            if (ordered && empty == 0)
                check_by_position(&r), seen[2]++;
            else
                check_by_number(&r), seen[3]++;
            cmp_ranks_free(&r);
        }
        ms_err_clear(&err);
    }
    for (int i = 0; i < 4; i++)
        ck_assert_msg(seen[i] > 3, "kind %d: %u", i, seen[i]);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_file_goes_with_a_file)
{
    char t[128], b[128];
    struct cmp_ranks r;
    scratch_dir(dir);
    state = 1;
    do {
        draw_side(&side[1], 'b', (unsigned)(state & 0xffff));
    } while (count(&side[1], false) < 2);
    snprintf(t, sizeof t, "%s/dump.json", dir);
    write_file(t, "{}", 2);
    snprintf(b, sizeof b, "%s/other.json", dir);
    write_file(b, "{}", 2);
    ck_ok(cmp_ranks_pair(&r, t, b, false, &err), err);
    ck_assert(r.list.n == 1 && r.list.p[0].suffix[0] == 0 && r.list.p[0].folder[0] == 0);
    cmp_ranks_free(&r);
    ck_assert_int_eq(cmp_ranks_pair(&r, t, side[1].path, false, &err), MS_E_ARG);
    ck_says(err, "dump.json is a file and");
    ms_err_clear(&err);
    ck_assert_int_eq(cmp_ranks_pair(&r, side[1].path, t, false, &err), MS_E_ARG);
    ck_says(err, "dump.json is a file and");
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("ranks", dumps_are_paired_by_number_or_by_position, a_file_goes_with_a_file)
