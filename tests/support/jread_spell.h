/* SPDX-License-Identifier: MIT
 *
 * jread_spell: what a reader of JSON says of a text, spelled as a text itself.  Every text ends
 * where a page begins that may not be touched, so reading one byte too many ends the test.
 */
#ifndef TESTS_SUPPORT_JREAD_SPELL_H
#define TESTS_SUPPORT_JREAD_SPELL_H

#include "probe/base/jread.h"
#include "tests/support/check.h"

#include <sys/mman.h>

/* ---- texts at the end of a page ------------------------------------------------------ */

struct guarded {
    char *map, *p;
    size_t n, mapped;
};

static inline struct guarded guard(const char *text, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (n + page - 1) / page * page;
    struct guarded g = {.n = n, .mapped = room + page};
    g.map = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(g.map, MAP_FAILED);
    ck_assert_int_eq(mprotect(g.map + room, page, PROT_NONE), 0);
    g.p = g.map + room - n;
    if (n != 0)
        memcpy(g.p, text, n);
    return g;
}

static inline void unguard(struct guarded *g)
{
    munmap(g->map, g->mapped);
}

/* ---- token streams as text -------------------------------------------------------------- */

static const char jread_letters[] = "!.{}[]ksntf0";

/* One letter a token, the text of KEY, STR and NUM behind it in <>. */
static inline void spell_token(const struct ms_jread *r, enum ms_jtok tok, struct ms_buf *out)
{
    struct ms_buf scratch = {.max = 1 << 20};
    ms_buf_putc(out, jread_letters[tok]);
    if (tok == MS_J_NUM) {
        ms_buf_printf(out, "<%.*s>", MS_STR_ARG(r->text));
    } else if (tok == MS_J_KEY || tok == MS_J_STR) {
        struct ms_str text;
        ck_assert_int_eq(ms_jread_text(r, &scratch, &text, NULL), MS_OK);
        ms_buf_printf(out, "<%.*s>", MS_STR_ARG(text));
    }
    ms_buf_free(&scratch);
}

/* The stream up to its end or failure. */
static inline enum ms_jtok spell(struct ms_jread *r, struct ms_buf *out)
{
    enum ms_jtok tok = ms_jread_next(r);
    for (; tok > MS_J_END; tok = ms_jread_next(r))
        spell_token(r, tok, out);
    return tok;
}

static inline void reads_as(const char *text, size_t n, unsigned flags, const char *expected)
{
    struct guarded g = guard(text, n);
    struct ms_buf out = {.max = 1 << 20};
    struct ms_jread r;
    ms_jread_init(&r, g.p, g.n, flags);
    enum ms_jtok last = spell(&r, &out);
    ck_assert_msg(last == MS_J_END, "%.*s: %s", (int)n, text, r.bad_why);
    ck_assert_str_eq(ms_buf_z(&out), expected);
    ck_assert_int_eq(ms_jread_next(&r), MS_J_END);
    ms_buf_free(&out);
    unguard(&g);
}

static inline void fails_at(const char *text, size_t n, unsigned flags, uint32_t line, int64_t off,
                            const char *words)
{
    struct guarded g = guard(text, n);
    struct ms_buf out = {.max = 1 << 20};
    struct ms_jread r;
    struct ms_err e = {0};
    ms_jread_init(&r, g.p, g.n, flags);
    ck_assert_msg(spell(&r, &out) == MS_J_ERR, "accepted: %s", text);
    ck_assert_int_eq(ms_jread_next(&r), MS_J_ERR);
    ck_assert_int_eq(ms_jread_fail(&r, &e), MS_E_FORMAT);
    ck_says(e, words);
    ck_assert_msg(e.line == line && e.off == off, "%s: line %u, byte %lld", text, e.line,
                  (long long)e.off);
    ms_buf_free(&out);
    unguard(&g);
}

/* A dump with one of everything: layout of indent=1, escapes, UTF-8, words, nesting. */
static inline void make_dump(struct ms_buf *out, unsigned records)
{
    ms_buf_puts(out, "{\n \"task\": \"statistics\",\n \"dump_data_dir\": null,\n \"data\": {");
    for (unsigned i = 0; i < records; i++) {
        ms_buf_printf(
            out,
            "%s\n  \"Module.l\\u00e9%u\xC3\xA9.\\\"\\n  \\\"x\\\": 1,\": {\n"
            "   \"input_args\": [\n    {\n     \"type\": \"torch.Tensor\",\n"
            "     \"shape\": [\n      %u,\n      1%u\n     ],\n     \"Max\": -%u.25e-05,\n"
            "     \"Min\": NaN,\n     \"Norm\": -Infinity,\n"
            "     \"requires_grad\": true\n    },\n    []\n   ],\n"
            "   \"input_kwargs\": {},\n   \"is_recompute\": false\n  }",
            i != 0 ? "," : "", i, i, i * 7, i + 1);
    }
    ms_buf_puts(out, "\n }\n}");
}

#endif
