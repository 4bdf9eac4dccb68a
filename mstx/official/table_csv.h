/* SPDX-License-Identifier: MIT
 *
 * table_csv: writes a table in the form of the official text output.
 */
#ifndef MSTX_OFFICIAL_TABLE_CSV_H
#define MSTX_OFFICIAL_TABLE_CSV_H

#include "probe/base/store.h"

/* Writes a table as CSV with its column names in the first line. Values of columns whose names
 * end in Ns are divided, and the name gets the unit: "Us" and 1000 turn MeanNs into Mean(Us). */
struct mstx_unit {
    const char *name;
    double ns;
};
enum ms_rc mstx__write_table_csv(struct ms_store *s, const char *table,
                                 const struct mstx_unit *unit, const char *path,
                                 struct ms_err *err) MS_MUST_USE;

#endif
