/* SPDX-License-Identifier: MIT
 *
 * overflow: finds the operator that first turns finite numbers into NaN or infinity, across the
 * ranks of a step.
 *
 * An operator introduces an overflow when none of its inputs has NaN or Inf and some output has.
 * Communication carries overflows from rank to rank. Time is therefore cut at the communication
 * operators, each of which is one event on all participating ranks:
 *
 *     rank 0   compute ──► all_reduce ──► compute ──► send ──────────► compute
 *                             ║                        ╚══╗
 *     rank 1   compute ──► all_reduce ──► compute ─────► recv ──► compute
 *     phase    BEFORE                 BETWEEN                       AFTER
 *
 * The phases are searched in this order, and the first phase with an answer ends the search.
 */
#ifndef PROBE_OVERFLOW_OVERFLOW_H
#define PROBE_OVERFLOW_OVERFLOW_H

#include "probe/dump/dump.h"
#include "probe/dump/find.h"

enum probe_overflow_phase {
    PROBE_OVERFLOW_BEFORE,  /* before the first communication; one answer per rank at most */
    PROBE_OVERFLOW_BETWEEN, /* one answer: the origin of a communication's first bad input */
    PROBE_OVERFLOW_AFTER,   /* after the last communication; one answer per rank at most */
    PROBE_OVERFLOW_PRESENT, /* no operator introduces one: the first bad record */
};

struct probe_overflow_conf {
    const char *path;          /* a step, or a dump: steps are searched in turn */
    bool tolerant;             /* as PROBE_OPEN_TOLERANT */
    const char *const *ignore; /* further words; records with one in the name are never an answer */
    size_t nignore;
};

struct probe_overflow_answer {
    const struct probe_place *place; /* rank and step */
    struct ms_str node;
    uint64_t off; /* of the record's name in dump.json */
    enum probe_overflow_phase phase;
    bool asked_for;     /* a NaN or Inf was a plain argument, perhaps on purpose */
    bool communication; /* the operator is a communication operator */
};

/* A dump that could not be read. */
struct probe_overflow_failure {
    const struct probe_place *place;
    struct ms_err err;
};

struct probe_overflow {
    struct ms_arena *arena;
    struct probe_places places;
    MS_VEC(struct probe_overflow_answer) answers; /* sorted by rank; empty: no NaN or Inf found */
    MS_VEC(struct probe_overflow_failure) failures;
    size_t read; /* dumps read */
    bool tolerant;
};

/* Searches a dump. A rank that cannot be read is listed in failures and the others are searched;
 * the call fails only when no rank could be read. As many dumps as the pool has threads are read in
 * parallel, and only what the search needs is kept of each. pool may be NULL. */
enum ms_rc probe_overflow_find(struct probe_overflow *o, const struct probe_overflow_conf *conf,
                               struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void probe_overflow_free(struct probe_overflow *o);

/* Writes DIR/anomaly_analyze_{now}.json in the official tool's format; the path goes into out. */
enum ms_rc probe_overflow_write(const struct probe_overflow *o, const char *dir, struct ms_buf *out,
                                struct ms_err *err) MS_MUST_USE;

/* Details of an answer. */
struct probe_overflow_detail {
    struct ms_buf text;      /* a dump with only this record */
    struct probe_dump *dump; /* the parsed text; the record is node 0 */
    struct ms_arena *arena;
    MS_VEC(struct ms_str) construct; /* from the root to the node itself */
    MS_VEC(struct ms_str)
    stack; /* frames, innermost first; a backward node has its forward node's */
};
enum ms_rc probe_overflow_describe(struct probe_overflow_detail *detail,
                                   const struct probe_overflow *o,
                                   const struct probe_overflow_answer *answer,
                                   struct ms_err *err) MS_MUST_USE;
void probe_overflow_detail_free(struct probe_overflow_detail *detail);

/* Returns whether a leaf has NaN or Inf, as bits: in the statistics of a tensor or of the tensor of
 * a point-to-point operation, or as a plain value. */
enum probe_bad { PROBE_BAD_NAN = 1 << 0, PROBE_BAD_INF = 1 << 1 };
unsigned probe_leaf_bad(const struct probe_leaf *leaf);
/* Like probe_leaf_bad, but ignores intended infinities: minus infinity in a forward pass excludes
 * places from a softmax. Every command judges a dump by this function. */
unsigned probe_leaf_fault(const struct probe_leaf *leaf, bool forward);

/* ---- words ---------------------------------------------------------------- */

/* Returns "NaN", "Inf", "NaN and Inf" or "none" for bits of enum probe_bad. */
const char *probe_overflow_bad_text(unsigned bad);
/* Appends the range " from -1.5 to 3"; nothing when the dump has no statistics. */
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
