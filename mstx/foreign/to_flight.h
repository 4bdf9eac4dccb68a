/* SPDX-License-Identifier: MIT
 *
 * to_flight: writes the communication of a run as dumps of PyTorch's Flight Recorder.
 */
#ifndef MSTX_FOREIGN_TO_FLIGHT_H
#define MSTX_FOREIGN_TO_FLIGHT_H

#include "mstx/rundb/run_query.h"

/* Writes a dump into dir for each rank. */
enum ms_rc mstx_export_flight(struct mstx_tl *tl, const char *dir, struct ms_err *err) MS_MUST_USE;

#endif
