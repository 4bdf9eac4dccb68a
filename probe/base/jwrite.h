/* SPDX-License-Identifier: MIT
 *
 * jwrite: streaming JSON writer, byte-identical to Python's json.dump.
 *
 * The writer appends to an ms_buf. A caller that streams sets `drain`, which gets the text each
 * time enough has collected, and when the writer finishes. Output is ASCII only: other characters
 * become \uXXXX, surrogate pairs included, and the three-byte form of a lone surrogate becomes that
 * surrogate again. A byte that is not UTF-8 becomes \udc80 to \udcff, as Python's surrogateescape
 * writes such a byte of a path.
 *
 * Calls that do not make a JSON value (a value without its key, a bracket that closes nothing) fail
 * with MS_E_ARG. After a failure further calls do nothing, so one check of ms_jwrite_finish at the
 * end is enough.
 */
#ifndef PROBE_BASE_JWRITE_H
#define PROBE_BASE_JWRITE_H

#include "probe/base/str.h"

enum { MS_JWRITE_DEPTH = 512 };

/* Receives the written text; a failure stops the writer. */
typedef enum ms_rc (*ms_jwrite_drain)(void *ctx, const char *p, size_t n, struct ms_err *err);

enum { MS_JWRITE_SPARE = 16 }; /* bytes of room behind a line that ms_jwrite_line may overwrite */

/* Writes a line break and n spaces; returns their end. Most lines are indented by less than 16, and
 * a store of fixed size costs a tenth of a call of memset. */
static inline char *ms_jwrite_line(char *out, size_t n)
{
    *out++ = '\n';
    memset(out, ' ', MS_JWRITE_SPARE);
    if (n > MS_JWRITE_SPARE)
        memset(out + MS_JWRITE_SPARE, ' ', n - MS_JWRITE_SPARE);
    return out + n;
}

struct ms_jwrite {
    struct ms_buf buf; /* set .max before use */
    int indent;        /* spaces per level; 0: one line, ", " and ": " as Python's default */
    bool strict;       /* numbers as every JSON parser reads them, not as Python writes them: an
                          infinity is 9e999, which parsers read as one, and a NaN is null */
    ms_jwrite_drain drain;
    void *ctx;
    struct ms_err err; /* the first failure */
    uint32_t depth;    /* internal, as are all below */
    bool first, after_key, is_object;
    uint64_t outer[MS_JWRITE_DEPTH / 64]; /* one bit per level: is_object outside of it */
};

/* Initialises a writer. max bounds the buffered text. Without a drain that is the whole text; with
 * a drain 256 KiB are enough for any value, as long strings are written in pieces. A text that is
 * shorter than max by less than two indented lines may already be refused. indent: see the field. */
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
/* Writes a value that is already JSON, such as a number too large for 64 bits or a copied part. */
void ms_jwrite_raw(struct ms_jwrite *w, struct ms_str json);
/* Writes members of the open object that are already JSON and already indented: each on a line of
 * its own, the first line break included. */
void ms_jwrite_members(struct ms_jwrite *w, struct ms_str json);
/* Returns room for n bytes of such members, to be ended before any other call; NULL after a failure. */
char *ms_jwrite_begin_members(struct ms_jwrite *w, size_t n);
/* Takes what was written to the room, at least one member. */
void ms_jwrite_end_members(struct ms_jwrite *w, const char *end);
/* Write a key and its value. */
void ms_jwrite_kstr(struct ms_jwrite *w, const char *key, const char *z);
void ms_jwrite_ki64(struct ms_jwrite *w, const char *key, int64_t v);
void ms_jwrite_kf64(struct ms_jwrite *w, const char *key, double v);
void ms_jwrite_kbool(struct ms_jwrite *w, const char *key, bool v);
void ms_jwrite_ktext(struct ms_jwrite *w, const char *key, struct ms_str s);
/* Writes a key and a number; a negative number means "absent" and is written as null. */
void ms_jwrite_kmaybe(struct ms_jwrite *w, const char *key, int64_t v);
/* Drains the remaining text and reports the first failure. */
enum ms_rc ms_jwrite_finish(struct ms_jwrite *w, struct ms_err *err);
void ms_jwrite_free(struct ms_jwrite *w);

#endif
