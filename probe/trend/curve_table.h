/* SPDX-License-Identifier: MIT
 *
 * curve_table: curves as a table, a row for each: where it begins and ends, its extremes, its course as a
 * small drawing, and what of it a person should look at.
 *
 *     name,metric,rank,steps,first,last,least,most,course,Result,text
 *     layers.0.fc,actv,0,300,0.81,nan,0.80,4.1,▁▁▁▂▂▃▅▇×,error,no number from step 271 on
 */
#ifndef PROBE_TREND_CURVE_TABLE_H
#define PROBE_TREND_CURVE_TABLE_H

#include "probe/trend/curves.h"

/* Appends the table as CSV. */
enum ms_rc probe_curve_table(const struct probe_curves *c, struct ms_buf *out,
                             struct ms_err *err) MS_MUST_USE;

#endif
