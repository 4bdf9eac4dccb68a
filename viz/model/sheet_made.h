/* SPDX-License-Identifier: MIT
 *
 * sheet_made: tables made of what was opened, for viewers that show tables: statistics over steps, who owns the
 * memory, and by what a run is slower than another one.
 */
#ifndef VIZ_MODEL_SHEET_MADE_H
#define VIZ_MODEL_SHEET_MADE_H

#include "viz/model/sheet_rows.h"

enum ms_rc viz_sheet_of_trend(struct viz_sheet **s, const char *path,
                              struct ms_err *err) MS_MUST_USE;
enum ms_rc viz_sheet_of_memory(struct viz_sheet **s, const char *path,
                               struct ms_err *err) MS_MUST_USE;
/* *flame: where the time of a step goes in both, as mstx_against_flame writes it, on the heap. */
enum ms_rc viz_sheet_of_runs(struct viz_sheet **s, char **flame, const char *new_path,
                             const char *old_path, struct ms_err *err) MS_MUST_USE;

#endif
