/* SPDX-License-Identifier: MIT
 *
 * jread: a pull reader for JSON of any size, without a tree.
 *
 *     struct ms_jread r;
 *     ms_jread_init(&r, file.p, file.n, 0);
 *     while ((tok = ms_jread_next(&r)) > MS_J_END) ...
 *     if (tok == MS_J_ERR) return ms_jread_fail(&r, err);
 *
 * The grammar is strict JSON, plus the bare words NaN, Infinity and -Infinity that Python writes.
 * Text is a slice of the input; numbers are converted only on request, so integers beyond 64 bits
 * stay exact. Nothing is allocated and no byte outside the input is read. Depth is limited to 512.
 *
 * The state is a depth and one bit per level, so a reader may be copied to remember a position.
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
/* Size limit of JSON files: the largest that the official tool reads. */
#define MS_JSON_MAX ((size_t)10 << 30)

enum ms_jread_flags {
    /* A truncated text is read as if its open brackets had been closed. A value that may be
     * incomplete is returned as MS_J_NULL, followed by the closing tokens; `truncated` is set with
     * the first token that is not in the text. A key without its colon is left out. */
    MS_JREAD_TOLERANT = 1 << 0,
    /* The text is a run of object members (key, value, comma, ...) without the braces: one part of
     * a split object. Tokens are returned at depth 0, and MS_J_END at the end. */
    MS_JREAD_MEMBERS = 1 << 1,
    /* With MEMBERS: another part follows, so the text must end with a comma. */
    MS_JREAD_MORE = 1 << 2,
    /* The text has already been read to its end without an error, so skipped values are not checked
     * again. */
    MS_JREAD_KNOWN = 1 << 3,
};

struct ms_jread {
    const char *at, *end;
    const char *file;   /* base of offsets and lines; the start of the text unless set */
    uint64_t before;    /* bytes of the text that lay before `file` and are gone */
    const char *tok;    /* first byte of the current token */
    struct ms_str text; /* of KEY and STR, inside the quotes; of NUM, as written */
    bool escaped;       /* text holds a backslash: see ms_jread_text */
    bool whole;         /* see ms_jread_is_int */
    bool truncated;     /* the text ends early: closed if tolerant, else an error */
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
/* Skips the rest of the value that the token began (after KEY, the value that follows; after a
 * scalar, nothing). May be called after any token. Returns MS_J_ERR on an error, else the last
 * token skipped. */
enum ms_jtok ms_jread_skip(struct ms_jread *r, enum ms_jtok tok);
/* Reports the error behind MS_J_ERR with line and byte. The caller adds the path with
 * ms_err_wrap. */
enum ms_rc ms_jread_fail(const struct ms_jread *r, struct ms_err *err);
/* Fails at the current token with a message of the caller ("expected an object"). */
enum ms_rc ms_jread_reject(const struct ms_jread *r, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
/* Returns the offset of the byte after the last token (after KEY: after its colon), counted from
 * `file`. */
static inline uint64_t ms_jread_off(const struct ms_jread *r)
{
    return r->before + (uint64_t)(r->at - r->file);
}

/* For a text that comes in pieces. ms_jread_drop makes the reader forget what it has read and returns
 * the number of these bytes; ms_jread_moved tells it that the rest lies at p now, followed by more. A
 * piece that ends within a value is seen by `truncated` of a tolerant reader; the caller then goes
 * back to a copy of the reader. Errors behind the first piece tell their byte and no line. */
size_t ms_jread_drop(struct ms_jread *r);
void ms_jread_moved(struct ms_jread *r, const char *p, size_t n);
/* Returns the first byte of the next value of the innermost array, NULL when no value follows; the
 * reader does not move. */
const char *ms_jread_item(const struct ms_jread *r);
/* Moves behind the value found by ms_jread_item, which the caller has read and checked up to
 * `end`. */
void ms_jread_pass_item(struct ms_jread *r, const char *end);

/* Returns the unescaped text of the current KEY or STR: the slice itself, or text built in
 * `scratch`. A lone surrogate, which Python can write, becomes its three-byte form. */
enum ms_rc ms_jread_text(const struct ms_jread *r, struct ms_buf *scratch, struct ms_str *out,
                         struct ms_err *err);
/* Reads a text that is one object; messages call it `what`. `visit` is called at each KEY and reads
 * the value. A tolerant reader stops without an error where the text is truncated
 * (r->truncated). */
typedef enum ms_rc ms_jread_visit_fn(void *of, struct ms_jread *r, struct ms_buf *scratch,
                                     struct ms_err *err);
enum ms_rc ms_jread_members(struct ms_jread *r, const char *what, ms_jread_visit_fn *visit,
                            void *of, struct ms_err *err);
/* Value of the current NUM. ms_jread_i64 returns false when the number has a fraction or an
 * exponent, or does not fit. */
bool ms_jread_f64(const struct ms_jread *r, double *out);
bool ms_jread_i64(const struct ms_jread *r, int64_t *out);
/* Tells whether NUM has no fraction, exponent or word, as Python's int. */
static inline bool ms_jread_is_int(const struct ms_jread *r)
{
    return r->whole;
}

/* Cuts the members of an object, [p, p + n) between its braces and written with `indent` spaces
 * before each key, into at most `parts` pieces at record boundaries. Piece i is [cut[i], cut[i +
 * 1]), cut[0] == 0, cut[result] == n. `cut` has parts + 1 places. Returns the number of pieces, 1
 * when there is no safe place to cut.
 *
 * Records are recognised by their indentation alone. In a text with an unusual layout a piece may
 * therefore end inside a record; reading that piece then fails. When every piece reads to MS_J_END,
 * the tokens of all pieces are the tokens of the whole text. When one piece fails, the caller reads
 * the whole text as one piece; the result of that, including the place of an error, is correct. */
unsigned ms_jread_split(const char *p, size_t n, unsigned indent, unsigned parts, size_t *cut);
/* Initialises a reader for one piece. MEMBERS and MORE are set as needed, and TOLERANT applies to
 * the last piece only; `file` is the start of the whole text. */
void ms_jread_init_part(struct ms_jread *r, const char *file, const char *p, size_t n, bool last,
                        unsigned flags);

#endif
