/* SPDX-License-Identifier: MIT
 *
 * call_entry: calls for those who describe values in a language of their own, as
 * the Python module does.  They enter with what they know of the place, write
 * into the record themselves, and leave through the public functions.
 */
#ifndef PROBE_WRITE_CALL_ENTRY_H
#define PROBE_WRITE_CALL_ENTRY_H

#include "probe/dumper.h"
#include "probe/write/record.h"

enum probe__call_kind { PROBE__OP, PROBE__MODULE, PROBE__ROOT, PROBE__SAVED };

/* A place in a program whose frames the caller knows.  The group is filled in at the first use and
 * good as long as the dumper is. */
struct probe__place {
    const char *const *frames; /* innermost first */
    unsigned n;
    uint32_t group; /* MS_MAP_NONE: not asked for yet */
};

/* What is entered, and on behalf of whom. */
struct probe__entry {
    enum probe__call_kind kind;
    enum probe_dir dir;
    const char *prefix, *name, *class_name; /* class_name may be NULL */
    int64_t number;                         /* of a backward */
    const void *frame;                      /* of the public function */
    struct probe__place *place;             /* instead of a frame */
    const void *tag; /* anything that tells calls apart, for probe__open_module */
    bool
        is_loose; /* a backward outside of any module is a root: its forward's place says nothing */
    bool ends_first; /* a backward of a module may end before those that were entered inside it */
};

struct probe_call *probe__enter(struct probe_dumper *d, const struct probe__entry *e);
/* Would a call of this kind be collected on this thread now? */
bool probe__may_enter(struct probe_dumper *d, enum probe__call_kind kind);
/* The innermost module of this thread that was entered with this tag, or NULL. */
struct probe_call *probe__open_module(struct probe_dumper *d, const void *tag);
/* It ended without a result: its inputs are dumped, and a note. */
void probe__call_fail(struct probe_call *c);
/* +1: operators that are entered on this thread are the tool's own; -1: no longer. */
void probe__hide(struct probe_dumper *d, int by);
/* Does a module, or a root, run on this thread? */
bool probe__in_module(struct probe_dumper *d);
/* A handle is used again after its exit: by how often it was, a stale one is told. */
uint64_t probe__call_uses(const struct probe_call *c);
/* How many steps have ended. */
unsigned probe__epoch(const struct probe_dumper *d);
/* Does anything of such a part come into the record? */
bool probe__call_has(const struct probe_call *c, enum probe_section section);
/* The record, at the part where the next value belongs; NULL: such values are not wanted. */
struct probe__record *probe__call_part(struct probe_call *c, enum probe_section section);
/* A tensor as the next value of the record. */
void probe__call_tensor(struct probe_call *c, const char *key, struct probe_tensor *t,
                        const struct probe__leaf_as *as);

/* Records that are no calls; NULL when they are not wanted.  They end with probe_call_exit. */
struct probe_call *probe__begin_grads(struct probe_dumper *d, const char *path,
                                      const char *class_name);
struct probe_call *probe__begin_saved(struct probe_dumper *d, const char *name, bool is_grad,
                                      int64_t *number);
/* Their record, where values go. */
struct probe__record *probe__call_record(struct probe_call *c);

#endif
