/* SPDX-License-Identifier: MIT
 *
 * terms: the syntax of search and filter lines.
 *
 *     softmax state:EW rank:2 -class:Dropout shape:8,16 dtype:bf16 /layers\.[0-3]\./
 *
 * All words between spaces must match; "-" in front negates; quotes keep spaces together. A bare
 * word matches a part of a name, ignoring case; a POSIX extended expression is written between
 * slashes. Slices of a timeline have terms of their own; nodes have none of these, and slices none of
 * state, class, shape and dtype:
 *
 *     rank:3 kind:comm dur>5ms domain:nccl AllReduce
 */
#ifndef VIZ_MODEL_TERMS_H
#define VIZ_MODEL_TERMS_H

#include "compare/graph/view/graph_view.h"
#include "viz/model/slice_kind.h"

struct viz_terms;

/* Parses the text; an empty text matches everything. Errors name the word and the reason. */
enum ms_rc viz_terms_new(struct viz_terms **t, struct ms_str text, struct ms_err *err) MS_MUST_USE;
void viz_terms_free(struct viz_terms *t);
bool viz_terms_empty(const struct viz_terms *t);

/* Sets the time after which a search pauses (0: after a large number of nodes), to be continued. */
void viz_terms_limit(struct viz_terms *t, int64_t ns);

/* Tells whether a text (an event's name) matches the words and expressions; other terms are
 * ignored. */
bool viz_terms_meet_text(const struct viz_terms *t, struct ms_str text);

/* The first tells whether the terms depend on the name alone, the second whether a name matches. */
bool viz_terms_by_name(const struct viz_terms *t);
bool viz_terms_meet_name(const struct viz_terms *t, struct ms_str name);

/* What terms ask of a slice beside its name. */
struct viz_slice {
    int64_t rank, dur_ns; /* rank: -1 for none */
    struct ms_str domain;
    enum viz_slice_kind kind;
};
/* Tells whether a slice matches all terms that are not about its name. */
bool viz_terms_meet_slice(const struct viz_terms *t, const struct viz_slice *s);
/* Tells whether a lane may hold such slices, whatever their kind and duration. */
bool viz_terms_meet_lane(const struct viz_terms *t, int64_t rank, struct ms_str domain);
bool viz_terms_need_duration(const struct viz_terms *t);
/* Fails and names the term when one is of nodes (of slices: with of_slices false). */
enum ms_rc viz_terms_fit(const struct viz_terms *t, bool of_slices, struct ms_err *err) MS_MUST_USE;
/* Returns the longest bare word that is not negated; "" without one. */
struct ms_str viz_terms_word(const struct viz_terms *t);

/* Searches nodes that match the terms, after node_order `after`. A page may be short or empty
 * with `more` set when a time limit ends the search early: continue at *reached. */
enum ms_rc viz_terms_search(const struct viz_terms *t, struct graph_view *v, struct graph_spot at,
                            int64_t after, uint32_t limit, struct graph_page *page,
                            int64_t *reached, struct ms_err *err) MS_MUST_USE;

#endif
