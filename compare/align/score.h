/* SPDX-License-Identifier: MIT
 *
 * score: how well two operators match.
 */
#ifndef COMPARE_ALIGN_SCORE_H
#define COMPARE_ALIGN_SCORE_H

#include "compare/align/search.h"

struct align__evidence {
    float family, shape, out, in, param, shared_use; /* param < 0: no parameter sizes are equal */
    /* twice the score of the modules: 2, 0, -1, -2 */
    int8_t module;
    /* one of a's inputs is the partner of one of b's */
    bool same_in;
    bool veto, families_known;
    bool refuted; /* inputs agree, outputs do not */
    bool blind;   /* no outputs can be compared */
    bool last;    /* both or neither is the last operator in its module */
    bool ends;    /* both are the last operator in their modules */
    bool unread;  /* one of the two has no reader */
    bool views[2];
    float score;
};
/* Weighs golden operator a against target operator b. After a veto the remaining fields are not
 * filled in. */
void align__weigh_pair(const struct align__ctx *c, uint32_t a, uint32_t b,
                       struct align__evidence *e);
/* Tells whether the evidence suffices for the pair to be shown. */
bool align__accept_pair(const struct align__ctx *c, const struct align__evidence *e);

#endif
