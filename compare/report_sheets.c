/* SPDX-License-Identifier: MIT
 *
 * report_sheets: what is said of tables that are no comparisons of dump.json.
 */
#include "compare/report.h"

#include "probe/base/jprint.h"

#include <stdio.h>

static void put_count(struct ms_jwrite *w, const char *name, uint64_t n)
{
    ms_jwrite_key(w, ms_str_of(name));
    ms_jwrite_u64(w, n);
}

static void put_list(struct ms_jwrite *w, const char *name, char *const *list, size_t n)
{
    ms_jwrite_key(w, ms_str_of(name));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++)
        ms_jwrite_str(w, ms_str_of(list[i]));
    ms_jwrite_arr_end(w);
}

static enum ms_rc tell_json(const struct cmp_sheet_sum *sum, const struct cmp_files *files,
                            struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    put_count(&w, "rows", sum->rows);
    put_count(&w, "accurate", sum->yes);
    put_count(&w, "inaccurate", sum->no);
    put_count(&w, "not_compared", sum->rest);
    put_list(&w, "problems", sum->notes.p, sum->notes.n);
    put_list(&w, "files", files->list.p, files->list.n);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

enum ms_rc cmp_sheet_tell(const struct cmp_sheet_sum *sum, const struct cmp_files *files, bool json,
                          struct ms_err *err)
{
    if (json)
        return tell_json(sum, files, err);
    printf("%llu rows: %llu accurate, %llu not, %llu could not be compared\n",
           (unsigned long long)sum->rows, (unsigned long long)sum->yes, (unsigned long long)sum->no,
           (unsigned long long)sum->rest);
    for (size_t i = 0; i < files->list.n; i++)
        puts(files->list.p[i]);
    return MS_OK;
}
