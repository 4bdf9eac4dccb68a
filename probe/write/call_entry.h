/* SPDX-License-Identifier: MIT
 *
 * call_entry: calls for callers that describe values in another language, as the Python module
 * does. Such a caller passes the place it knows, writes into the record directly, and leaves
 * through the public functions.
 */
#ifndef PROBE_WRITE_CALL_ENTRY_H
#define PROBE_WRITE_CALL_ENTRY_H

#include "probe/dumper.h"
#include "probe/write/record.h"

enum probe__call_kind { PROBE__OP, PROBE__MODULE, PROBE__ROOT, PROBE__SAVED };

/* A place in a program whose frames the caller knows. The group is filled in at first use and is
 * valid for the life of the dumper. */
struct probe__place {
    const char *const *frames; /* innermost first */
    unsigned n;
    uint32_t group; /* MS_MAP_NONE: not looked up yet */
};

/* What is entered, and from where. */
struct probe__entry {
    enum probe__call_kind kind;
    enum probe_dir dir;
    const char *prefix, *name, *class_name; /* class_name may be NULL */
    int64_t number;                         /* of a backward */
    const void *frame;                      /* frame address of the public function */
    struct probe__place *place;             /* used instead of a frame */
    const void *tag; /* identifies the call's owner, for probe__open_module */
    bool is_loose; /* a backward outside any module is a root, whatever module its forward was in */
    bool ends_first; /* a backward of a module may end before calls that were entered inside it */
};

struct probe_call *probe__enter(struct probe_dumper *d, const struct probe__entry *e);
/* Tells whether a call of this kind would be collected on this thread now. */
bool probe__may_enter(struct probe_dumper *d, enum probe__call_kind kind);
/* The innermost module of this thread that was entered with this tag, or NULL. */
struct probe_call *probe__open_module(struct probe_dumper *d, const void *tag);
/* Marks the call as failed: its inputs are dumped, and a note is written. */
void probe__call_fail(struct probe_call *c);
/* by +1: operators entered on this thread are the tool's own and not collected; -1 undoes it. */
void probe__hide(struct probe_dumper *d, int by);
/* Tells whether a module or a root is open on this thread. */
bool probe__in_module(struct probe_dumper *d);
/* Returns how often this handle has been given back. Handles are reused after their exit; a
 * changed count identifies a stale one. */
uint64_t probe__call_uses(const struct probe_call *c);
/* Number of steps that have ended. */
unsigned probe__epoch(const struct probe_dumper *d);
/* Tells whether the record of this call has the given section. */
bool probe__call_has(struct probe_call *c, enum probe_section section);
/* Returns the record, positioned for the next value of the section; NULL: not wanted. */
struct probe__record *probe__call_part(struct probe_call *c, enum probe_section section);
/* Adds a tensor as the next value of the record. */
void probe__call_tensor(struct probe_call *c, const char *key, struct probe_tensor *t,
                        const struct probe__leaf_as *as);

/* Begin records that are no calls; NULL when not wanted. Both end with probe_call_exit. */
struct probe_call *probe__begin_grads(struct probe_dumper *d, const char *path,
                                      const char *class_name);
struct probe_call *probe__begin_saved(struct probe_dumper *d, const char *name, bool is_grad,
                                      int64_t *number);
/* Returns the record of a call begun by the two functions above. */
struct probe__record *probe__call_record(struct probe_call *c);

#endif
