/* SPDX-License-Identifier: MIT
 *
 * bisect: from a good and a bad program to the operator that introduces their difference.
 *
 *     good ─┬─► statistics of all operators ─┐
 *     good ─┴─► the same again: noise        ├─► up to three suspects ─► their tensors, of both ─► blame, reproduce
 *     bad  ───► statistics of all operators ─┘
 *
 * Five runs; the tensors of three operators are the most that lies on the disk.
 */
#ifndef COMPARE_BISECT_BISECT_H
#define COMPARE_BISECT_BISECT_H

#include "compare/blame/blame_pick.h"
#include "compare/reproduce/reproduce.h"

struct bisect_how {
    const char *good, *bad; /* commands for a shell */
    const char *dir;        /* for dumps, logs and the program; made when it is not there */
    int64_t step;           /* of the training */
    size_t limit;           /* bytes of memory for computing an operator again */
    void (*say)(const char *line);
};

enum { BISECT_SUSPECTS = 3 };

/* What was found, as far as it went. */
enum bisect_end {
    BISECT_EQUAL, /* nothing differs beyond noise */
    BISECT_ALONE, /* one side alone has the operator: no tensors decide */
    BISECT_JUDGED
};
struct bisected {
    enum bisect_end end;
    char noisy
        [256]; /* first operator that differs between both runs of good, or "their values"; "": none */
    char alone[512];                              /* the suspect of BISECT_ALONE */
    struct blame_picks suspects[BISECT_SUSPECTS]; /* in the statistics, the first first; one each */
    size_t n;
    struct blame_picks judged; /* the first of them, in the dumps of tensors */
    struct blame *blame;       /* of it */
    bool has_program;          /* DIR/bug/reproduce.py was written */
    char why_not[512];         /* why there is none */
};

/* The caller frees, also after a failure. */
enum ms_rc bisect(const struct bisect_how *how, struct bisected *out,
                  struct ms_err *err) MS_MUST_USE;
void bisect_free(struct bisected *b);

#endif
