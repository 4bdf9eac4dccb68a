/* SPDX-License-Identifier: MIT
 *
 * report_rows: the rows of a report's table in the order that was asked for, alike ones as one, and the search
 * among them.
 */
#ifndef VIZ_TUI_REPORT_ROWS_H
#define VIZ_TUI_REPORT_ROWS_H

#include "viz/model/sums.h"

enum tui_table { TUI_RANGES, TUI_COLLECTIVES, TUI_RANKS, TUI_BREAKDOWN, TUI_TABLES };

struct tui_report_row {
    uint32_t first, n;  /* the entry that it stands for, or the first of n that are alike */
    struct viz_sum sum; /* of all of them */
};

struct tui_report_rows {
    bool is_made, is_folded, is_reversed;
    unsigned column; /* what it is sorted by; 0: as it came */
    int64_t most;    /* the greatest total of a row, which fills a bar */
    MS_VEC(struct tui_report_row) rows;
};

/* An entry of the table as it came: its figures, and its name, by which it is found and folded. */
struct tui_report_entry {
    struct viz_sum sum;
    struct ms_str name;
};

/* Heads of the columns by which a table can be sorted, from 1; NULL ends them. The first stands for the order
 * as it came. */
extern const char *const tui_report_columns[TUI_TABLES][8];

/* Makes the rows of n entries anew. */
enum ms_rc tui_report_make(struct tui_report_rows *r, enum tui_table table,
                           const struct tui_report_entry *entry, size_t n,
                           struct ms_err *err) MS_MUST_USE;
/* Sorts by the next column with the next call of tui_report_make. */
void tui_report_sort_next(struct tui_report_rows *r, enum tui_table table);
void tui_report_free(struct tui_report_rows *r);

#endif
