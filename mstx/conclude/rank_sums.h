/* SPDX-License-Identifier: MIT
 *
 * rank_sums: what the page shows of communication between ranks, summed once when a run is imported,
 * so that a question about thousands of ranks reads a few thousand rows.
 *
 *     rank_comm    time of each rank in communication, and in waiting for others
 *     rank_pairs   who waits for whom (kind 0) and who sends to whom (kind 1)
 *     call_sizes   calls of one operation and size, the most frequent ones
 *     rank_use     means of rank_steps
 *
 * In rank_pairs both ranks are the lowest of a bin: as many neighbours of the sorted ranks as make at
 * most MSTX_RANK_BINS bins, so that the table has a bounded number of rows.
 */
#ifndef MSTX_CONCLUDE_RANK_SUMS_H
#define MSTX_CONCLUDE_RANK_SUMS_H

#include "mstx/rundb/run_query.h"

enum { MSTX_RANK_BINS = 64, MSTX_SIZES_MAX = 500 };
enum mstx_pair_kind { MSTX_PAIR_WAITS, MSTX_PAIR_SENDS };

struct mstx_rank_sums;
/* Sums the packed calls and joins of a run. */
enum ms_rc mstx__rank_sums_make(struct mstx_rank_sums **sums, struct mstx_tl *tl,
                                struct ms_err *err) MS_MUST_USE;
/* Writes the four tables; runs inside the transaction of the caller. */
enum ms_rc mstx__rank_sums_save(const struct mstx_rank_sums *sums, struct ms_store *s,
                                struct ms_err *err) MS_MUST_USE;
void mstx__rank_sums_free(struct mstx_rank_sums *sums);

#endif
