/* SPDX-License-Identifier: MIT
 *
 * overflow: the operator that first turns good numbers into NaN or infinity,
 * across the ranks of a step.
 *
 * An operator introduces an overflow when none of its inputs holds NaN or Inf
 * and some output does.  Communication carries it from rank to rank, so time is
 * cut at the communication operators, each of which is one event on all ranks
 * that take part:
 *
 *     rank 0   compute ──► all_reduce ──► compute ──► send ──────────► compute
 *                             ║                        ╚══╗
 *     rank 1   compute ──► all_reduce ──► compute ─────► recv ──► compute
 *     phase    BEFORE                 BETWEEN                       AFTER
 *
 * The phases are searched in this order and the first with an answer ends it.
 */
#ifndef PROBE_OVERFLOW_OVERFLOW_H
#define PROBE_OVERFLOW_OVERFLOW_H

#include "probe/dump/dump.h"
#include "probe/dump/find.h"

enum probe_overflow_phase {
    PROBE_OVERFLOW_BEFORE,  /* ahead of the first communication; each rank can have an answer */
    PROBE_OVERFLOW_BETWEEN, /* one answer: what the first bad communication was handed */
    PROBE_OVERFLOW_AFTER,   /* behind the last communication; each rank can have an answer */
    PROBE_OVERFLOW_PRESENT, /* no operator introduces it: the first record that holds one */
};

struct probe_overflow_conf {
    const char *path; /* a step; of a whole dump each step is searched until one has an answer */
    bool tolerant;    /* as PROBE_OPEN_TOLERANT */
    const char *const *ignore; /* more words; a record whose name has one never is an answer */
    size_t nignore;
};

struct probe_overflow_answer {
    const struct probe_place *place; /* rank and step */
    struct ms_str node;
    uint64_t off; /* of the record's name in dump.json */
    enum probe_overflow_phase phase;
    bool asked_for;     /* a NaN or Inf was among its plain arguments: perhaps meant so */
    bool communication; /* the communication operator itself */
};

/* A dump that could not be read. */
struct probe_overflow_failure {
    const struct probe_place *place;
    struct ms_err err;
};

struct probe_overflow {
    struct ms_arena *arena;
    struct probe_places places;
    MS_VEC(struct probe_overflow_answer) answers; /* by rank; empty: no NaN or Inf was seen */
    MS_VEC(struct probe_overflow_failure) failures;
    size_t read; /* dumps */
    bool tolerant;
};

/* Search.  A rank that cannot be read is listed in failures and the others are searched; an error
 * means that nothing was.  Dumps are read side by side, as many at once as the pool has threads,
 * and only what the search needs of them is kept.  pool may be NULL. */
enum ms_rc probe_overflow_find(struct probe_overflow *o, const struct probe_overflow_conf *conf,
                               struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void probe_overflow_free(struct probe_overflow *o);

/* Write DIR/anomaly_analyze_{now}.json as the official tool does; its path goes into out. */
enum ms_rc probe_overflow_write(const struct probe_overflow *o, const char *dir, struct ms_buf *out,
                                struct ms_err *err) MS_MUST_USE;

/* All that is known of an answer. */
struct probe_overflow_detail {
    struct ms_buf text;      /* a dump that holds this one record */
    struct probe_dump *dump; /* of that text: node 0 */
    struct ms_arena *arena;
    MS_VEC(struct ms_str) construct; /* from the root to the node itself */
    MS_VEC(struct ms_str)
    stack; /* frames, innermost first; of a backward node those of its
                                        forward twin */
};
enum ms_rc probe_overflow_describe(struct probe_overflow_detail *detail,
                                   const struct probe_overflow *o,
                                   const struct probe_overflow_answer *answer,
                                   struct ms_err *err) MS_MUST_USE;
void probe_overflow_detail_free(struct probe_overflow_detail *detail);

/* What a leaf holds: in the extremes of a tensor, of the tensor of a point-to-point operation, or
 * as a plain value.  Bits. */
enum probe_bad { PROBE_BAD_NAN = 1 << 0, PROBE_BAD_INF = 1 << 1 };
unsigned probe_leaf_bad(const struct probe_leaf *leaf);
/* The same, without what is meant: minus infinity in a forward pass excludes places from a softmax.
 * Every command judges a dump by this. */
unsigned probe_leaf_fault(const struct probe_leaf *leaf, bool forward);

/* ---- words ---------------------------------------------------------------- */

/* "NaN", "Inf", "NaN and Inf", "none" for bits of enum probe_bad. */
const char *probe_overflow_bad_text(unsigned bad);
/* Appends " from -1.5 to 3"; nothing where the dump has no statistics. */
void probe_overflow_put_range(struct ms_buf *out, const struct probe_leaf *leaf);
/* Appends the answer in one sentence. */
void probe_overflow_put_sentence(struct ms_buf *out, const struct probe_overflow_answer *a,
                                 const struct probe_overflow_detail *detail);
struct ms_jwrite;
/* Writes the answer as a finding: kind, severity, ranks, steps, value, text, place. */
enum ms_rc probe_overflow_put_finding(struct ms_jwrite *w, const struct probe_overflow *o,
                                      const struct probe_overflow_answer *a,
                                      struct ms_err *err) MS_MUST_USE;

#endif
