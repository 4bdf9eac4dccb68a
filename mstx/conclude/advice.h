/* SPDX-License-Identifier: MIT
 *
 * advice: what would make the steps of a profiled training shorter, with the time that it would save at
 * most.
 *
 * Each is measured in the traces of PyTorch's profiler when a report is made.  A cause of the host costs
 * only what the device idles meanwhile: in a process with kernels it saves no more than the time in which
 * its devices waited for the host.
 */
#ifndef MSTX_CONCLUDE_ADVICE_H
#define MSTX_CONCLUDE_ADVICE_H

#include "mstx/conclude/findings.h"
#include "mstx/conclude/steps.h"

/* Appends the advice for each process, worst first. The value of each is the share of the steps that it
 * would save at most, its evidence a query that shows the events. */
enum ms_rc mstx_advice_measure(struct mstx_tl *tl, const struct mstx_steps *steps,
                               mstx_findings *advice, struct ms_err *err) MS_MUST_USE;

#endif
