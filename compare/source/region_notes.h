/* SPDX-License-Identifier: MIT
 *
 * region_notes: reports operators that only one side runs, without effect on values.
 */
#ifndef COMPARE_SOURCE_REGION_NOTES_H
#define COMPARE_SOURCE_REGION_NOTES_H

#include "compare/source/suspect.h"

/* Adds a note for each kind of harmless region, and for operators that are computed again. */
enum ms_rc source__note_regions(struct cmp_source *s, struct ms_err *err);

#endif
