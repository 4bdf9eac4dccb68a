/* SPDX-License-Identifier: MIT
 *
 * clock_agree: finds out through the folder of the run whether all ranks of a job record into it.
 */
#ifndef MSTX_RT_CLOCK_AGREE_H
#define MSTX_RT_CLOCK_AGREE_H

#include <stdbool.h>
#include <stdint.h>

/* Tells whether all ranks of the job call this within patience_ns. All callers get the same
 * answer. */
bool mstx_clock_agree(int rank, int size, int64_t patience_ns);
/* Removes the answer once all ranks have read it: called by rank 0, or after a "no" by every
 * rank. */
void mstx_clock_forget(void);

#endif
