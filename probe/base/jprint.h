/* SPDX-License-Identifier: MIT
 *
 * jprint: JSON on standard output, which is what --format json of every command writes.
 */
#ifndef PROBE_BASE_JPRINT_H
#define PROBE_BASE_JPRINT_H

#include "probe/base/jwrite.h"

/* Begin a text that is printed while it is made. */
void ms_jprint_begin(struct ms_jwrite *w);
/* End it with its line and free w.  rc: how making it went; MS_OK comes back when all of it was
 * printed. */
enum ms_rc ms_jprint_end(struct ms_jwrite *w, enum ms_rc rc, struct ms_err *err) MS_MUST_USE;

#endif
