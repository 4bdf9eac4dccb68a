/* SPDX-License-Identifier: MIT
 *
 * record: compares text with a file on record, or writes that file when the program is called with --update.
 */
#ifndef TESTS_SUPPORT_RECORD_H
#define TESTS_SUPPORT_RECORD_H

#include "probe/base/str.h"
#include "tests/support/check.h"

static bool record_updates;

static inline void record_args(int argc, char **argv)
{
    record_updates = argc > 1 && strcmp(argv[1], "--update") == 0;
}

static inline void record_same_lines(const char *a, const char *b, const char *words)
{
    size_t n;
    while (*a != 0 && (n = strcspn(a, "\n")) == strcspn(b, "\n") && strncmp(a, b, n) == 0) {
        a += n + (a[n] != 0);
        b += n + (b[n] != 0);
    }
    ck_assert_msg(*a == 0 && *b == 0, "%s: '%.*s', not '%.*s'; --update records it", words,
                  (int)strcspn(b, "\n"), b, (int)strcspn(a, "\n"), a);
}

/* `words` say what the columns of a line are. */
static inline void record_check(const char *path, struct ms_buf *now, const char *words)
{
    static char recorded[1 << 18];
    FILE *f = fopen(path, record_updates ? "wb" : "rb");
    ck_assert_ptr_nonnull(f);
    if (record_updates)
        ck_assert_uint_eq(fwrite(now->p, 1, now->n, f), now->n);
    else
        ck_assert_uint_gt(fread(recorded, 1, sizeof recorded - 1, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    if (!record_updates)
        record_same_lines(recorded, ms_buf_z(now), words);
}

#endif
