/* SPDX-License-Identifier: MIT
 *
 * recorded: what a reader answers to every file of a corpus, whole, cut at every byte and with each
 * byte changed, as it is on record in tests/data/recorded: for each file and way of changing it a
 * checksum of all answers. So any change of an answer, of the place that an error names or of its
 * sentence is noticed.
 *
 *     build/tests/TEST --show      prints all answers: run it before and after, compare with diff
 *     build/tests/TEST --update    records a change that is meant
 */
#ifndef TESTS_SUPPORT_RECORDED_H
#define TESTS_SUPPORT_RECORDED_H

#include "probe/base/crc.h"
#include "probe/base/io.h"
#include "probe/base/str.h"
#include "tests/support/check.h"
#include "tests/support/draw.h"

#include <sys/mman.h>

/* Appends the answer to these bytes to b, without an end of line. */
typedef void recorded_answer(struct ms_buf *b, const char *p, size_t n);

/* Part of an answer: a text that may be absent. */
static inline void recorded_text(struct ms_buf *b, const char *what, struct ms_str s)
{
    ms_buf_printf(b, " %s=", what);
    if (s.p == NULL)
        ms_buf_puts(b, "NULL");
    else
        ms_buf_str(b, s);
}

static bool recorded_updates, recorded_shows;

/* n bytes at the end of a page, behind which no byte can be read or written. The bytes of one of the
 * two places stay until the next call for it. */
static inline char *recorded_guarded(int place, size_t n)
{
    enum { PAGES = 1 << 20, GUARD = 1 << 16 };
    static char *end[2];
    if (end[place] == NULL) {
        char *p =
            mmap(NULL, PAGES + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(p, MAP_FAILED);
        end[place] = p + PAGES;
        ck_assert_int_eq(mprotect(end[place], GUARD, PROT_NONE), 0);
    }
    ck_assert_uint_le(n, PAGES);
    return end[place] - n;
}

/* Answers to all changes of one way. */
struct recorded_way {
    recorded_answer *answer;
    const char *how;
    uint32_t crc;
};

static inline void recorded_one(struct recorded_way *w, size_t at, const char *p, size_t n)
{
    char *copy = recorded_guarded(0, n);
    struct ms_buf b = {.max = 1 << 20};
    memcpy(copy, p, n);
    w->answer(&b, copy, n);
    w->crc = ms_crc32(w->crc, ms_buf_z(&b), b.n + 1);
    if (recorded_shows)
        printf("%s %zu: %s\n", w->how, at, ms_buf_z(&b));
    ms_buf_free(&b);
}

/* One byte of a file changed, left out or written twice: the length of what is in `to` then. */
static inline size_t recorded_change(char *to, const char *p, size_t n, size_t i, int way)
{
    const bool without = way == 4, twice = way == 5;
    const char turned[] = {(char)(p[i] ^ 1), (char)(p[i] ^ 0x20), '\0', '"', p[i], p[i]};
    memcpy(to, p, i);
    to[i] = turned[way];
    memcpy(to + i + !without, p + i + (twice ? 0 : 1), n - i - (twice ? 0 : 1));
    return n - without + twice;
}

/* Every prefix; each byte with a bit of its low and its high half turned, as 0 and as a quote, left
 * out and twice. Of a long file some places. */
static inline void recorded_file(struct ms_buf *b, const char *name, const char *p, size_t n,
                                 recorded_answer *answer)
{
    enum { PLACES = 256 };
    const size_t step = 1 + n / PLACES;
    static const char *const how[] = {"low", "high", "nul", "quote", "without", "twice"};
    struct recorded_way w = {answer, "cut", 0};
    char *changed = malloc(n + 1);
    ck_assert_ptr_nonnull(changed);
    if (recorded_shows)
        printf("== %s\n", name);
    recorded_one(&w, n, p, n);
    for (size_t i = 0; i < n; i += step)
        recorded_one(&w, i, p, i);
    ms_buf_printf(b, "%s: %s %08x", name, w.how, w.crc);
    for (int way = 0; way < 6; way++) {
        w = (struct recorded_way){answer, how[way], 0};
        for (size_t i = 0; i < n; i += step)
            recorded_one(&w, i, changed, recorded_change(changed, p, n, i, way));
        ms_buf_printf(b, " %s %08x", w.how, w.crc);
    }
    ms_buf_putc(b, '\n');
    free(changed);
}

/* Each file of tests/data/fuzz/CORPUS. */
static inline void recorded_corpus(struct ms_buf *b, const char *corpus, recorded_answer *answer)
{
    struct ms_dir list;
    struct ms_err e = {0};
    char path[256];
    snprintf(path, sizeof path, "tests/data/fuzz/%s", corpus);
    ck_ok(ms_dir_list(&list, path, &e), e);
    for (size_t i = 0; i < list.names.n; i++) {
        struct ms_file f;
        snprintf(path, sizeof path, "tests/data/fuzz/%s/%s", corpus, list.names.p[i].p);
        ck_ok(ms_file_map(&f, path, SIZE_MAX, &e), e);
        recorded_file(b, list.names.p[i].p, f.p, f.n, answer);
        ms_file_unmap(&f);
    }
    ms_dir_free(&list);
}

/* All texts of up to `most` of the words, one behind the other with `between` between them; a line of
 * the record for each first word. */
static inline void recorded_words(struct ms_buf *b, const char *const *word, size_t n,
                                  unsigned most, const char *between, recorded_answer *answer)
{
    ck_assert(most > 0 && most < 8);
    for (size_t first = 0; first < n; first++) {
        size_t at[8] = {first};
        struct recorded_way w = {answer, "text", 0};
        for (unsigned len = 1; at[0] == first;) {
            struct ms_buf text = {.max = 1 << 16};
            for (unsigned i = 0; i < len; i++) {
                ms_buf_puts(&text, i != 0 ? between : "");
                ms_buf_puts(&text, word[at[i]]);
            }
            if (recorded_shows)
                printf("%s -> ", ms_buf_z(&text));
            recorded_one(&w, len, ms_buf_z(&text), text.n);
            ms_buf_free(&text);
            if (len < most) {
                at[len++] = 0;
                continue;
            }
            while (len > 1 && at[len - 1] + 1 == n)
                len--;
            at[len - 1]++;
        }
        ms_buf_printf(b, "%s: %08x\n", word[first], w.crc);
    }
}

/* A number below n, of a seed. */
#define recorded_below(seed, n) draw_below(*(seed), (n))

/* Fails at the first line that differs from the record. */
static inline void recorded_compare(const char *was, const char *is, const char *words)
{
    for (unsigned line = 1; *was != '\0' || *is != '\0'; line++) {
        const size_t a = strcspn(was, "\n"), b = strcspn(is, "\n");
        ck_assert_msg(a == b && memcmp(was, is, a) == 0,
                      "line %u of %s\nrecord: %.*s\nnow:    %.*s\n--update records them", line,
                      words, (int)a, was, (int)b, is);
        was += a + (was[a] != '\0');
        is += b + (is[b] != '\0');
    }
}

/* Compares a text with the file on record, or records it. words: what the columns of a line are. */
static inline void recorded_check_file(const char *path, struct ms_buf *now, const char *words)
{
    struct ms_err e = {0};
    struct ms_file f;
    ck_ok(ms_buf_check(now, &e), e);
    if (recorded_updates) {
        write_file(path, now->p, now->n);
        return;
    }
    ck_ok(ms_file_map(&f, path, SIZE_MAX, &e), e);
    char *was = calloc(f.n + 1, 1);
    ck_assert_ptr_nonnull(was);
    memcpy(was, f.p, f.n);
    recorded_compare(was, ms_buf_z(now), words);
    free(was);
    ms_file_unmap(&f);
}

/* The same with tests/data/recorded/NAME. Frees b. */
static inline void recorded_check(struct ms_buf *b, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "tests/data/recorded/%s", name);
    recorded_check_file(path, b, "answers, which --show prints");
    ms_buf_free(b);
}

static inline void recorded_args(int argc, char **argv)
{
    recorded_updates = argc > 1 && strcmp(argv[1], "--update") == 0;
    recorded_shows = argc > 1 && strcmp(argv[1], "--show") == 0;
}

/* main() as TEST_MAIN makes it, which takes --update and --show. */
#define RECORDED_MAIN(name, ...) RECORDED_MAIN_AROUND(NULL, NULL, name, __VA_ARGS__)
#define RECORDED_MAIN_AROUND(set_up, tear_down, name, ...)                                         \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        const TTest *const list[] = {__VA_ARGS__};                                                 \
        TCase *tc = tcase_create(name);                                                            \
        tcase_add_checked_fixture(tc, set_up, tear_down);                                          \
        recorded_args(argc, argv);                                                                 \
        tcase_set_timeout(tc, 240);                                                                \
        for (size_t i = 0; i < sizeof list / sizeof *list; i++)                                    \
            tcase_add_test(tc, list[i]);                                                           \
        return run_case(name, tc);                                                                 \
    }

#endif
