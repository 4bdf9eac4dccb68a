/* SPDX-License-Identifier: MIT
 *
 * filter: selects the records that the settings ask for. Scope and list depend on which records are
 * open, so a filter belongs to one dumper and is used under its lock.
 */
#ifndef PROBE_WRITE_FILTER_H
#define PROBE_WRITE_FILTER_H

#include "probe/dump/name.h"
#include "probe/dumper.h"
#include "probe/tensor/tensor.h"

struct probe__filter {
    const struct probe_settings *s; /* borrowed */
    bool has_scope, has_list, by_risk;
    bool is_strict; /* a scope is asked about inputs and outputs apart: see filter.c */
    bool in_scope;
    unsigned in_list; /* open modules whose name is on the list: everything inside is wanted */
};

void probe__filter_init(struct probe__filter *f, const struct probe_settings *s);
/* Starts a new step: no record is open. */
void probe__filter_reset(struct probe__filter *f);
/* Begins a record and tells whether it is wanted. Each enter needs its leave. */
bool probe__filter_enter(struct probe__filter *f, struct ms_str name, bool is_module);
void probe__filter_leave(struct probe__filter *f, struct ms_str name, bool is_module);
/* The same for strict scopes: begins and ends a module, and between them tells whether a part of a
 * record is wanted. */
void probe__filter_begin(struct probe__filter *f, struct ms_str name);
void probe__filter_end(struct probe__filter *f, struct ms_str name);
bool probe__filter_passes(struct probe__filter *f, struct ms_str name);
/* Tells whether an operator's name alone excludes it. */
bool probe__filter_hides(const struct probe__filter *f, struct ms_str prefix, struct ms_str name);

bool probe__has_step(const struct probe_settings *s, uint32_t step);
bool probe__has_rank(const struct probe_settings *s, uint32_t rank);
/* Tells whether this part of a record is wanted. */
bool probe__has_data(const struct probe_settings *s, enum probe_dir dir, enum probe_data part);
/* Tells whether some word of the list is a substring of the name. */
bool probe__mentions(const char *const *list, struct ms_str name);
/* Narrows t to the slices of the settings, then to the one of the request, NULL for none. */
void probe__slice(const struct probe_settings *s, const struct probe_slice *request,
                  struct probe_tensor *t);

#endif
