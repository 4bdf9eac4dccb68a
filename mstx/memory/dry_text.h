/* SPDX-License-Identifier: MIT
 *
 * dry_text: a plan and a table of layouts, as text or JSON.
 */
#ifndef MSTX_MEMORY_DRY_TEXT_H
#define MSTX_MEMORY_DRY_TEXT_H

#include "mstx/memory/dry_plan.h"

#include "probe/base/jwrite.h"

/* A layout and its peak. */
struct dry_choice {
    struct dry_layout layout;
    uint64_t peak;
};
struct dry_choices {
    uint64_t device_memory; /* 0: none was asked for */
    MS_VEC(struct dry_choice) list;
};

/* Tries every layout of as many devices as tp * pp * dp of `base` says, or those of up to 64, and keeps
 * those that fit into the device: those that divide least first. */
enum ms_rc mstx__dry_choices_find(struct dry_choices *c, const struct dry_graph *g,
                                  const struct dry_layout *base, uint64_t device_memory,
                                  struct ms_err *err) MS_MUST_USE;
void mstx__dry_choices_free(struct dry_choices *c);

void mstx__dry_plan_text(const struct dry_graph *g, const struct dry_plan *p,
                         const struct dry_choices *c, size_t most, struct ms_buf *out);
void mstx__dry_plan_json(const struct dry_graph *g, const struct dry_plan *p,
                         const struct dry_layout *l, const struct dry_choices *c, size_t most,
                         struct ms_jwrite *w);

#endif
