/* SPDX-License-Identifier: MIT
 *
 * closes: a fixture around each test, after which as many files are open as before.
 */
#ifndef TESTS_SUPPORT_CLOSES_H
#define TESTS_SUPPORT_CLOSES_H

#include "tests/support/check.h"

#include <dirent.h>

static unsigned files_before;

static inline unsigned open_files(void)
{
    unsigned n = 0;
    DIR *list = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(list);
    while (readdir(list) != NULL)
        n++;
    closedir(list);
    return n;
}

static inline void count_open_files(void)
{
    files_before = open_files();
}

static inline void ck_all_closed(void)
{
    ck_assert_uint_eq(open_files(), files_before);
}

#endif
