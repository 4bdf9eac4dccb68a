/* SPDX-License-Identifier: MIT
 *
 * update_results: how far parameters and gradients of two programs are apart before and after a step's update.
 *
 * The update of one program is a fused operator, that of another many small ones, and they visit parameters
 * in another order. What they have in common is the result: the new values of the parameters.
 */
#ifndef COMPARE_OBSERVE_UPDATE_RESULTS_H
#define COMPARE_OBSERVE_UPDATE_RESULTS_H

#include "compare/observe/value_flow.h"

/* Fills p->start_gap, p->gradient_gap and p->update_gap, of two programs. */
enum ms_rc observe__weigh_updates(struct observe__part *p, const struct observe__side side[2],
                                  struct ms_err *err);
/* Sets p->do_updates_agree, of two runs of one framework: the target has every value that the golden side's
 * update leaves in a tensor that it changes in place, as parameters and moments, and the golden side every value that
 * the target's leaves in a parameter. Operators of one side alone have then led to the same. */
enum ms_rc observe__compare_updates(struct observe__part *p, const struct observe__side side[2],
                                    struct ms_err *err);

#endif
