/* SPDX-License-Identifier: MIT
 *
 * jwrite: streaming JSON writer, byte-identical to Python's json.dump.
 *
 * It writes into an ms_buf; a caller that streams sets `drain`, which is handed
 * the text each time enough of it has collected and when the writer finishes.
 * ASCII only: other characters become \uXXXX, surrogate pairs included, and the
 * three-byte form of a lone surrogate becomes that surrogate again.  A byte that
 * is no UTF-8 becomes \udc80 to \udcff, as Python names such a byte in a path.
 *
 * Calls that do not make a JSON value (a value without its key, a bracket that
 * closes nothing) fail with MS_E_ARG.  After a failure the calls do nothing, so
 * one check of ms_jwrite_finish at the end is enough.
 */
#ifndef PROBE_BASE_JWRITE_H
#define PROBE_BASE_JWRITE_H

#include "probe/base/str.h"

enum { MS_JWRITE_DEPTH = 512 };

/* Text on its way out; returns a failure to stop. */
typedef enum ms_rc (*ms_jwrite_drain)(void *ctx, const char *p, size_t n, struct ms_err *err);

struct ms_jwrite {
    struct ms_buf buf; /* set .max before use */
    int indent;        /* spaces per level; 0: one line, ", " and ": " as Python's default */
    ms_jwrite_drain drain;
    void *ctx;
    struct ms_err err; /* the first failure */
    uint32_t depth;    /* internal, as are all below */
    bool first, after_key, is_object;
    uint64_t outer[MS_JWRITE_DEPTH / 64]; /* one bit per level: is_object outside of it */
};

/* max bounds the buffered text: the whole of it without a drain, with one 256 KiB are plenty for
 * any value, as long strings pass in pieces. A text shorter than max by less than an indented line
 * may already be refused. indent as above. */
void ms_jwrite_init(struct ms_jwrite *w, int indent, size_t max);
void ms_jwrite_obj(struct ms_jwrite *w);
void ms_jwrite_obj_end(struct ms_jwrite *w);
void ms_jwrite_arr(struct ms_jwrite *w);
void ms_jwrite_arr_end(struct ms_jwrite *w);
void ms_jwrite_key(struct ms_jwrite *w, struct ms_str key);
void ms_jwrite_str(struct ms_jwrite *w, struct ms_str s);
void ms_jwrite_i64(struct ms_jwrite *w, int64_t v);
void ms_jwrite_u64(struct ms_jwrite *w, uint64_t v);
void ms_jwrite_f64(struct ms_jwrite *w, double v);
void ms_jwrite_bool(struct ms_jwrite *w, bool v);
void ms_jwrite_null(struct ms_jwrite *w);
/* A value that is already JSON: a number too large for 64 bits, a copied part. */
void ms_jwrite_raw(struct ms_jwrite *w, struct ms_str json);
/* Members of the open object that are already JSON, laid out for their place: each on a line of its
 * own, the first line break included. */
void ms_jwrite_members(struct ms_jwrite *w, struct ms_str json);
/* key and value at once, for the common short ones */
void ms_jwrite_kstr(struct ms_jwrite *w, const char *key, const char *z);
void ms_jwrite_ki64(struct ms_jwrite *w, const char *key, int64_t v);
void ms_jwrite_kf64(struct ms_jwrite *w, const char *key, double v);
void ms_jwrite_kbool(struct ms_jwrite *w, const char *key, bool v);
void ms_jwrite_ktext(struct ms_jwrite *w, const char *key, struct ms_str s);
/* A number below zero stands for none and becomes null. */
void ms_jwrite_kmaybe(struct ms_jwrite *w, const char *key, int64_t v);
/* Drain what is left and report the first failure. */
enum ms_rc ms_jwrite_finish(struct ms_jwrite *w, struct ms_err *err);
void ms_jwrite_free(struct ms_jwrite *w);

#endif
