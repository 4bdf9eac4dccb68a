/* SPDX-License-Identifier: MIT
 *
 * call_spool: the calls of all ranks in a file without a name, until their collectives are joined.
 *
 *     a process ─► spool_take ─► its calls, communicator by communicator, in the file
 *     all ranks ─► spool_join ─► a round of collectives at a time, with the calls of all their ranks
 *
 * So the memory of an import does not grow with the calls.  Rounds are joined in order of places, as
 * the parts of several importing processes are, and give the same joins, paths and notes.
 */
#ifndef MSTX_IMPORT_CALL_SPOOL_H
#define MSTX_IMPORT_CALL_SPOOL_H

#include "mstx/cluster/rows.h"

#include "probe/base/store.h"

struct mstx_spool;
/* Makes the file in the folder of `beside`. A round has about that many calls; 0: half a million. */
enum ms_rc mstx__spool_new(struct mstx_spool **out, const char *beside, size_t round,
                           struct ms_err *err) MS_MUST_USE;
void mstx__spool_free(struct mstx_spool *s);
/* Moves the calls in c, those of one process, to the file. */
enum ms_rc mstx__spool_take(struct mstx_spool *s, struct mstx_cluster *c,
                            struct ms_err *err) MS_MUST_USE;
/* Joins the collectives of all ranks, saves them in `to`, and adds paths and notes to c, which has no
 * calls and joins afterwards. */
enum ms_rc mstx__spool_join(struct mstx_spool *s, struct mstx_cluster *c, struct ms_store *to,
                            struct ms_err *err) MS_MUST_USE;

#endif
