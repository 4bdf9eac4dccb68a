/* SPDX-License-Identifier: MIT
 *
 * tl_hang: communication calls that did not return, from HANG texts to run.db.  The report makes
 * findings of them: see tl_report.h.
 */
#ifndef MSTX_TL_HANG_H
#define MSTX_TL_HANG_H

#include "mstx/tl_texts.h"

/* Rows of the table hangs for one process. What makes no sense is passed over; a failure stays
 * in the writer. */
void mstx__hangs_write(struct mstx_writer *w, uint32_t process, int32_t rank,
                       const struct mstx_texts *t);

#endif
