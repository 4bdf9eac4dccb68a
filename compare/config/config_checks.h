/* SPDX-License-Identifier: MIT
 *
 * config_checks: what two archives of configurations differ in, as tables with the official columns.
 */
#ifndef COMPARE_CONFIG_CONFIG_CHECKS_H
#define COMPARE_CONFIG_CONFIG_CHECKS_H

#include "compare/config/config_value.h"
#include "compare/config/config_zip.h"
#include "probe/base/vec.h"

enum { CFG_COLUMNS = 8 };

/* A table: one sheet of result.xlsx. */
struct cfg_table {
    const char *name, *verdict; /* "pass", "warning", "error" */
    const char *header[CFG_COLUMNS + 1];
    unsigned columns;
    MS_VEC(const struct ms_plain *) cells; /* row by row; NULL: empty */
};

/* Both archives while they are compared: 0 is the benchmark, 1 the compared run. */
struct cfg_sides {
    struct cfg_zip zip[2];
    struct ms_arena *a;
    bool swaps_env; /* as the official tool, which takes the sides of env for each other */
};

struct cfg_result {
    struct cfg_sides sides;
    MS_VEC(struct cfg_table) tables;
};

/* Compares every member that both archives have. strict: with the defects of the official tool. */
enum ms_rc cfg_compare(struct cfg_result *r, const char *bench, const char *cmp, bool strict,
                       struct ms_err *err) MS_MUST_USE;
void cfg_result_free(struct cfg_result *r);
/* Unpacks both archives to DIR/bench and DIR/cmp and writes DIR/result.xlsx. */
enum ms_rc cfg_result_write(const struct cfg_result *r, const char *dir,
                            struct ms_err *err) MS_MUST_USE;
size_t cfg_table_rows(const struct cfg_table *t);

#endif
