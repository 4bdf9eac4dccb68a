/* SPDX-License-Identifier: MIT
 *
 * filter: which records the settings ask for.  Scope and list remember what has
 * been entered, so a filter belongs to one dumper and is used under its lock.
 */
#ifndef PROBE_WRITE_FILTER_H
#define PROBE_WRITE_FILTER_H

#include "probe/dump/name.h"
#include "probe/dumper.h"
#include "probe/tensor/tensor.h"

struct probe__filter {
    const struct probe_settings *s; /* borrowed */
    bool has_scope, has_list, by_risk;
    bool in_scope;
    unsigned in_list; /* modules open whose name is on the list: all inside them is wanted */
};

void probe__filter_init(struct probe__filter *f, const struct probe_settings *s);
/* A new step: nothing has been entered. */
void probe__filter_reset(struct probe__filter *f);
/* A record of this name begins: is it wanted?  Each enter has its leave. */
bool probe__filter_enter(struct probe__filter *f, struct ms_str name, bool is_module);
void probe__filter_leave(struct probe__filter *f, struct ms_str name, bool is_module);
/* An operator's name says that it is not wanted, whatever is entered. */
bool probe__filter_hides(const struct probe__filter *f, struct ms_str prefix, struct ms_str name);

bool probe__has_step(const struct probe_settings *s, uint32_t step);
bool probe__has_rank(const struct probe_settings *s, uint32_t rank);
/* Is this part of a record wanted? */
bool probe__has_data(const struct probe_settings *s, enum probe_dir dir, enum probe_data part);
/* Is some word of the list part of the name? */
bool probe__mentions(const char *const *list, struct ms_str name);
/* Narrow t to what the slices leave of it. */
void probe__slice(const struct probe_settings *s, struct probe_tensor *t);

#endif
