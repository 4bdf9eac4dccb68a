/* SPDX-License-Identifier: MIT
 *
 * highlight: the colours that msprobe 1.x gives to rows of its workbook (-hl), and why.
 */
#ifndef COMPARE_HIGHLIGHT_H
#define COMPARE_HIGHLIGHT_H

#include "compare/compare.h"

enum cmp_colour { CMP_PLAIN, CMP_YELLOW, CMP_RED };

/* Colour of a row of the view.  The reasons of that colour are put into `reasons`, a line each; it
 * may be NULL. */
enum cmp_colour cmp__highlight(const struct cmp *c, const struct cmp_view *v,
                               const struct cmp_row *row, struct ms_buf *reasons);

#endif
