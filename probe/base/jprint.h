/* SPDX-License-Identifier: MIT
 *
 * jprint: JSON on standard output, which is what --format json of every command writes.
 */
#ifndef PROBE_BASE_JPRINT_H
#define PROBE_BASE_JPRINT_H

#include "probe/base/jwrite.h"

/* Begins a JSON text that is printed while it is generated. */
void ms_jprint_begin(struct ms_jwrite *w);
/* Ends the text with a newline and frees w. rc is the result of generating the text; MS_OK is
 * returned when all of the text was generated and printed. */
enum ms_rc ms_jprint_end(struct ms_jwrite *w, enum ms_rc rc, struct ms_err *err) MS_MUST_USE;

#endif
