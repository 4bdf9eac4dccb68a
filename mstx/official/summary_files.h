/* SPDX-License-Identifier: MIT
 *
 * summary_files: the recipe export_summary, which writes api_statistic.csv and kernel_details.csv
 * of each rank, as the profiler does when it records no database.
 */
#ifndef MSTX_OFFICIAL_SUMMARY_FILES_H
#define MSTX_OFFICIAL_SUMMARY_FILES_H

#include "mstx/official/recipe.h"

/* Writes the files beside the database of each rank, or those of a run below the output. Files that
 * are there already are kept. */
enum ms_rc mstx__write_summaries(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
