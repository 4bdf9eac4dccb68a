/* SPDX-License-Identifier: MIT
 *
 * consequences: differences that an operator inherits from other ranks and earlier suspects.
 */
#ifndef COMPARE_SOURCE_CONSEQUENCES_H
#define COMPARE_SOURCE_CONSEQUENCES_H

#include "compare/source/suspect.h"

/* Largest difference that enters a collective, or is sent, on any rank. */
struct source__context {
    float e, en;
    float inherited_e,
        inherited_s; /* what suspects contribute to e, and the strength of those suspects */
    uint8_t flags, attrs;
};
struct source__comms {
    struct ms_map names; /* "STEP/NAME" -> context */
    MS_VEC(struct source__context) list;
    struct ms_arena *arena;
};
enum ms_rc source__gather_comms(const struct cmp_source *s, struct source__comms *comms,
                                struct ms_err *err);
void source__comms_free(struct source__comms *comms);
struct source__context *source__comm_of(const struct source__comms *comms,
                                        const struct observe__part *p,
                                        const struct observe__node *n);

/* Removes raw suspects that merely seem to amplify the difference of an earlier suspect. */
enum ms_rc source__drop_explained(struct cmp_source *s, const struct source__comms *comms,
                                  struct ms_err *err);

#endif
