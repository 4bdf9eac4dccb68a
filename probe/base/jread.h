/* SPDX-License-Identifier: MIT
 *
 * jread: a pull reader for JSON of any size, without a tree.
 *
 *     struct ms_jread r;
 *     ms_jread_init(&r, file.p, file.n, 0);
 *     while ((tok = ms_jread_next(&r)) > MS_J_END) ...
 *     if (tok == MS_J_ERR) return ms_jread_fail(&r, err);
 *
 * The grammar is strict JSON, plus the bare words NaN, Infinity and -Infinity
 * that Python writes.  Text is a slice of the input; numbers are converted only
 * when asked, so integers beyond 64 bits stay exact.  Nothing is allocated and
 * no byte outside the input is read.  Depth is limited to 512.
 *
 * The state is a depth and one bit per level, so a reader may be copied to
 * remember a place.
 */
#ifndef PROBE_BASE_JREAD_H
#define PROBE_BASE_JREAD_H

#include "probe/base/str.h"

enum ms_jtok {
    MS_J_ERR,
    MS_J_END, /* the text is complete and well-formed */
    MS_J_OBJ,
    MS_J_OBJ_END,
    MS_J_ARR,
    MS_J_ARR_END,
    MS_J_KEY,
    MS_J_STR,
    MS_J_NUM,
    MS_J_TRUE,
    MS_J_FALSE,
    MS_J_NULL,
};

enum { MS_JREAD_DEPTH = 512 };
/* The largest file of JSON that is opened: what the official tool reads. */
#define MS_JSON_MAX ((size_t)10 << 30)

enum ms_jread_flags {
    /* A text cut off anywhere reads as if its open brackets had been closed: a value that may be
     * incomplete comes as MS_J_NULL, then the closing tokens, and `truncated` is set with the first
     * token that is not in the text.  A key without its colon is left out. */
    MS_JREAD_TOLERANT = 1 << 0,
    /* The text is a run of object members (key, value, comma, ...) without the braces: one part
     * of a split object.  Tokens come at depth 0, MS_J_END at the end. */
    MS_JREAD_MEMBERS = 1 << 1,
    /* With MEMBERS: another part follows, so the text must end with a comma. */
    MS_JREAD_MORE = 1 << 2,
    /* The text was read to its end before, without an error: what is skipped is not looked at. */
    MS_JREAD_KNOWN = 1 << 3,
};

struct ms_jread {
    const char *at, *end;
    const char *file;   /* where offsets and lines count from; the start of the text unless set */
    const char *tok;    /* first byte of the current token */
    struct ms_str text; /* of KEY and STR, inside the quotes; of NUM, as written */
    bool escaped;       /* text holds a backslash: see ms_jread_text */
    bool whole;         /* see ms_jread_is_int */
    bool truncated;     /* the text ends early: closed when tolerant, else the error */
    uint8_t state;      /* internal, as are all below */
    uint8_t flags;
    uint32_t depth;
    uint64_t in_object[MS_JREAD_DEPTH / 64];
    const char *bad_at;
    const char *bad_why;
    enum ms_rc bad_rc;
};

void ms_jread_init(struct ms_jread *r, const char *p, size_t n, unsigned flags);
enum ms_jtok ms_jread_next(struct ms_jread *r);
/* Called after any token: pass over the rest of the value it began (for KEY, the value that
 * follows; for a scalar, nothing).  MS_J_ERR on an error, else the last token passed. */
enum ms_jtok ms_jread_skip(struct ms_jread *r, enum ms_jtok tok);
/* The error of an MS_J_ERR with line and byte (the path is the caller's to wrap). */
enum ms_rc ms_jread_fail(const struct ms_jread *r, struct ms_err *err);
/* Fail at the current token for a reason of the caller's ("expected an object"). */
enum ms_rc ms_jread_reject(const struct ms_jread *r, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
/* Offset of the byte after the last token (for KEY: after its colon), counted from `file`. */
static inline uint64_t ms_jread_off(const struct ms_jread *r)
{
    return (uint64_t)(r->at - r->file);
}

/* Unescaped text of the current KEY or STR: the slice itself, or built in `scratch`.
 * A lone surrogate, which Python can write, becomes its three-byte form. */
enum ms_rc ms_jread_text(const struct ms_jread *r, struct ms_buf *scratch, struct ms_str *out,
                         struct ms_err *err);
/* Reads a text that is one object, of `what`: `take` is called at each KEY and reads its value.
 * A tolerant reader stops without an error where the text is cut (r->truncated). */
typedef enum ms_rc ms_jread_take_fn(void *of, struct ms_jread *r, struct ms_buf *scratch,
                                    struct ms_err *err);
enum ms_rc ms_jread_members(struct ms_jread *r, const char *what, ms_jread_take_fn *take, void *of,
                            struct ms_err *err);
/* Value of the current NUM. i64: false when it has a fraction, an exponent, or does not fit. */
bool ms_jread_f64(const struct ms_jread *r, double *out);
bool ms_jread_i64(const struct ms_jread *r, int64_t *out);
/* NUM without fraction, exponent or word: Python's int. */
static inline bool ms_jread_is_int(const struct ms_jread *r)
{
    return r->whole;
}

/* Cut the members of an object, [p, p + n) between its braces and written with `indent` spaces
 * before each key, into at most `parts` pieces at record boundaries: piece i is
 * [cut[i], cut[i + 1]), cut[0] == 0, cut[result] == n.  `cut` has parts + 1 places.
 * Returns how many pieces came out, 1 when there is no safe place to cut.
 *
 * A record is told by its indentation alone, so in a text that is laid out in an odd way a piece
 * may end inside one; reading that piece then fails.  When every piece reads to MS_J_END, their
 * tokens together are those of the whole; when one fails, read the whole as one piece: what that
 * says, a place of an error included, is true. */
unsigned ms_jread_split(const char *p, size_t n, unsigned indent, unsigned parts, size_t *cut);
/* Set up to read one of those pieces (MEMBERS and MORE are set as needed, TOLERANT holds for the
 * last only); file is the start of the whole text. */
void ms_jread_init_part(struct ms_jread *r, const char *file, const char *p, size_t n, bool last,
                        unsigned flags);

#endif
