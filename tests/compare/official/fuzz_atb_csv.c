/* SPDX-License-Identifier: MIT
 *
 * fuzz atb_csv: two texts, cut at the first line that is "---", as the statistic.csv of
 * both sides.  They are refused, or the table has a row for each line of either side at
 * most; a file against itself has nothing that is alone or different.
 */
#include "compare/official/atb.h"

#include "probe/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[32], dirs[3][40];

static void check(bool fine)
{
    if (!fine)
        abort();
}

static void clean(void)
{
    char path[128];
    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"statistic.csv", "atb_stats_compare_result_0.xlsx",
                                     "atb_tensor_compare_result_0.xlsx"};
        for (int k = 0; k < 3; k++) {
            snprintf(path, sizeof path, "%s/%s", dirs[i], names[k]);
            unlink(path);
        }
        rmdir(dirs[i]);
    }
    rmdir(root);
}

static void make_dirs(void)
{
    if (root[0] != 0)
        return;
    strcpy(root, "/tmp/fuzz-atb-XXXXXX");
    check(mkdtemp(root) != NULL);
    for (int i = 0; i < 3; i++) {
        snprintf(dirs[i], sizeof dirs[i], "%s/%c", root, "tgo"[i]);
        check(mkdir(dirs[i], 0700) == 0);
    }
    atexit(clean);
}

static size_t put(int side, const char *p, size_t n)
{
    char path[128];
    size_t lines = 1;
    snprintf(path, sizeof path, "%s/statistic.csv", dirs[side]);
    FILE *f = fopen(path, "wb");
    check(f != NULL && fwrite(p, 1, n, f) == n && fclose(f) == 0);
    for (size_t i = 0; i < n; i++)
        lines += p[i] == '\n' || p[i] == '\r';
    return lines;
}

static void compare(size_t most, bool same)
{
    const struct cmp_atb_conf conf = {.stamp = "0"};
    struct cmp_sheet_sum sum = {0};
    struct cmp_files files = {0};
    struct ms_err err = {0};
    enum ms_rc rc = cmp_compare_atb(dirs[0], dirs[1], dirs[2], &conf, &sum, &files, &err);
    check(rc != MS_OK || (files.list.n == 1 && sum.rows <= most));
    check(rc == MS_OK || err.msg[0] != 0);
    check(rc != MS_OK || !same || sum.rows <= most / 2);
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = size != 0 ? (const char *)data : "";
    size_t live = ms_mem_live(), cut = size, rest = size;
    for (size_t i = 0; i + 5 <= size && cut == size; i++) {
        if (memcmp(p + i, "\n---\n", 5) == 0)
            cut = i + 1, rest = i + 5;
    }
    make_dirs();
    size_t lines = put(0, p, cut);
    bool same = rest == size;
    lines += same ? put(1, p, cut) : put(1, p + rest, size - rest);
    compare(lines, same);
    check(ms_mem_live() == live);
    return 0;
}
