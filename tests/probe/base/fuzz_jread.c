/* SPDX-License-Identifier: MIT
 *
 * fuzz_jread: what must hold for any text.
 *
 *   1. a strict reader that accepts it: writing what was read and reading that
 *      gives the same tokens, and writing again the same bytes;
 *   2. a tolerant reader gives a well-formed stream for every start of an
 *      accepted text;
 *   3. of an accepted text each container can be skipped without a look at what
 *      is in it;
 *   4. taken as members of an object, it reads in parts as it reads in one, when
 *      no part complains.
 */
#include "tests/support/json_copy.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TEXT = 1 << 24, MAX_PARTS = 8, LEAP_MAX = 4096 };

static void require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "fuzz_jread: %s\n", what);
    abort();
}

/* Tokens in a form that can be compared: the kind, then text of known length. */
static void record_token(const struct ms_jread *r, enum ms_jtok tok, struct ms_buf *out,
                         struct ms_buf *scratch)
{
    struct ms_str text = MS_STR_NONE;
    ms_buf_putc(out, (char)('A' + tok));
    if (tok == MS_J_KEY || tok == MS_J_STR) {
        require(ms_jread_text(r, scratch, &text, NULL) == MS_OK, "text of a string");
        require(text.n <= r->text.n && r->escaped == (text.n < r->text.n), "length of a text");
        ms_buf_printf(out, "%u:", text.n);
        ms_buf_str(out, text);
    } else if (tok == MS_J_NUM) {
        double v;
        int64_t i;
        require(ms_jread_f64(r, &v), "a number without a value");
        require(!ms_jread_i64(r, &i) || (ms_jread_is_int(r) && (double)i == v), "an integer");
        ms_buf_put(out, &v, sizeof v);
    }
}

/* All tokens; checks that brackets match and every key has its value. */
static enum ms_jtok record(struct ms_jread *r, struct ms_buf *out)
{
    struct ms_buf scratch = {.max = MAX_TEXT};
    int depth = 0;
    bool after_key = false;
    enum ms_jtok tok = ms_jread_next(r);
    for (; tok > MS_J_END; tok = ms_jread_next(r)) {
        record_token(r, tok, out, &scratch);
        require(!after_key || (tok != MS_J_KEY && tok != MS_J_OBJ_END), "a key without a value");
        after_key = tok == MS_J_KEY;
        depth += tok == MS_J_OBJ || tok == MS_J_ARR;
        depth -= tok == MS_J_OBJ_END || tok == MS_J_ARR_END;
        require(depth >= 0 && (uint32_t)depth == r->depth, "depth");
        require(r->tok <= r->at && r->at <= r->end, "place");
    }
    require(tok == MS_J_ERR || (depth == 0 && !after_key), "the end inside a container");
    require(ms_jread_next(r) == tok, "the end is not the end");
    ms_buf_free(&scratch);
    return tok;
}

static void check_error(const struct ms_jread *r, size_t size)
{
    struct ms_err e = {0};
    require(ms_jread_fail(r, &e) != MS_OK, "an error without a code");
    require(e.line >= 1 && e.off >= 0 && (size_t)e.off <= size && e.msg[0] != '\0', "its place");
}

/* As a writer with this indent writes it. */
static void rewrite(struct ms_str text, int indent, struct ms_jwrite *w)
{
    struct ms_jread r;
    struct ms_err e = {0};
    ms_jread_init(&r, text.p, text.n, 0);
    ms_jwrite_init(w, indent, MAX_TEXT);
    require(json_copy(&r, w, &e) == MS_OK, e.msg);
}

static void check_rewrite(struct ms_str text, const struct ms_buf *tokens, int indent)
{
    struct ms_jwrite first;
    struct ms_jwrite second;
    struct ms_buf again = {.max = MAX_TEXT};
    struct ms_jread r;
    rewrite(text, indent, &first);
    rewrite(ms_buf_slice(&first.buf), indent, &second);
    require(ms_str_eq(ms_buf_slice(&first.buf), ms_buf_slice(&second.buf)), "written differently");
    ms_jread_init(&r, first.buf.p, first.buf.n, 0);
    require(record(&r, &again) == MS_J_END, "what was written does not read");
    require(ms_str_eq(ms_buf_slice(tokens), ms_buf_slice(&again)), "other tokens");
    ms_buf_free(&again);
    ms_jwrite_free(&first);
    ms_jwrite_free(&second);
}

/* Skips the container that r has just opened, and says where that ends. */
static const char *end_of(struct ms_jread r, unsigned flags, enum ms_jtok tok)
{
    r.flags |= (uint8_t)flags;
    tok = ms_jread_skip(&r, tok);
    require(tok == MS_J_OBJ_END || tok == MS_J_ARR_END, "a container without an end");
    return r.at;
}

static void check_leaps(struct ms_str text)
{
    struct ms_jread r;
    ms_jread_init(&r, text.p, text.n, 0);
    for (enum ms_jtok tok; (tok = ms_jread_next(&r)) > MS_J_END;) {
        if (tok == MS_J_OBJ || tok == MS_J_ARR)
            require(end_of(r, 0, tok) == end_of(r, MS_JREAD_KNOWN, tok), "skipped elsewhere");
    }
}

static void check_tolerant(const char *p, size_t n, bool is_start)
{
    struct ms_jread r;
    struct ms_buf tokens = {.max = MAX_TEXT};
    /* A copy of its own size, so that a sanitizer sees a read past its end. */
    char *copy = malloc(n != 0 ? n : 1);
    if (copy == NULL)
        return;
    if (n != 0)
        memcpy(copy, p, n);
    ms_jread_init(&r, copy, n, MS_JREAD_TOLERANT);
    enum ms_jtok last = record(&r, &tokens);
    require(last == MS_J_END || !is_start, "the start of a valid text is refused");
    ms_buf_free(&tokens);
    free(copy);
}

static bool record_parts(const char *p, size_t n, unsigned indent, unsigned parts,
                         struct ms_buf *out)
{
    size_t cut[MAX_PARTS + 1];
    unsigned made = ms_jread_split(p, n, indent, parts, cut);
    bool ok = true;
    require(made >= 1 && (made == 1 || made <= parts) && cut[0] == 0 && cut[made] == n, "cuts");
    for (unsigned i = 0; i < made; i++) {
        struct ms_jread r;
        require(cut[i] < cut[i + 1] || n == 0, "an empty part");
        ms_jread_init_part(&r, p, p + cut[i], cut[i + 1] - cut[i], i + 1 == made, 0);
        ok = record(&r, out) == MS_J_END && ok;
    }
    return ok;
}

static void check_parts(const char *p, size_t n)
{
    struct ms_buf whole = {.max = MAX_TEXT};
    bool valid = record_parts(p, n, 2, 1, &whole);
    for (unsigned indent = 0; indent < 3; indent++) {
        for (unsigned parts = 0; parts <= MAX_PARTS; parts++) {
            struct ms_buf joined = {.max = MAX_TEXT};
            bool ok = record_parts(p, n, indent, parts, &joined);
            require(!ok || valid, "parts accept what the whole does not");
            require(!ok || ms_str_eq(ms_buf_slice(&whole), ms_buf_slice(&joined)), "parts differ");
            ms_buf_free(&joined);
        }
    }
    ms_buf_free(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    struct ms_jread r;
    struct ms_buf tokens = {.max = MAX_TEXT};
    if (size > UINT16_MAX)
        return 0;
    ms_jread_init(&r, p, size, 0);
    bool valid = record(&r, &tokens) == MS_J_END;
    if (!valid)
        check_error(&r, size);
    for (int indent = 0; valid && indent < 2; indent++)
        check_rewrite((struct ms_str){p, (uint32_t)size}, &tokens, indent);
    if (valid && size <= LEAP_MAX)
        check_leaps((struct ms_str){p, (uint32_t)size});
    /* Every start of a short text, some of a long one. */
    for (size_t n = 0; n <= size; n += 1 + size / 256)
        check_tolerant(p, n, valid);
    check_parts(p, size);
    ms_buf_free(&tokens);
    return 0;
}
