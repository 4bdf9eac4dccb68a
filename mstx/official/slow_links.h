/* SPDX-License-Identifier: MIT
 *
 * slow_links: the recipe that finds transfers far slower than others of their kind.
 */
#ifndef MSTX_OFFICIAL_SLOW_LINKS_H
#define MSTX_OFFICIAL_SLOW_LINKS_H

#include "mstx/official/recipe.h"

/* slow_link: writes SlowLinkSum and SlowLinkOps. */
enum ms_rc mstx__find_slow_links(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
