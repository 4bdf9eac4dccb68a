/* SPDX-License-Identifier: MIT
 *
 * call_struct: the fields of a call, shared by call.c (its life), call_name.c (its name and parent)
 * and call_alone.c (records that are no calls).
 */
#ifndef PROBE_WRITE_CALL_STRUCT_H
#define PROBE_WRITE_CALL_STRUCT_H

#include "probe/write/call_entry.h"
#include "probe/write/dumper_state.h"

/* A copy of a tensor's elements, kept until it is known whether the record stays. */
struct held {
    struct held *next;
    struct probe_tensor t;
    size_t bytes;
    char name[]; /* followed by the elements, aligned */
};

struct probe_call {
    struct probe_dumper *d;
    struct probe_call *all, *next; /* links: all calls of the dumper; spare calls */
    struct probe_call *outer;      /* the module around this one */
    const void *tag;               /* identifies the call's owner */
    uint64_t uses;                 /* how often it has been given back */
    struct probe__thread *thread;  /* NULL: detached */
    enum probe__call_kind kind;
    enum probe_dir dir;
    int64_t number;
    struct probe__owner self;
    unsigned epoch;
    bool is_wanted;
    bool has_failed;    /* values not yet seen will not come */
    bool ends_first;    /* calls entered inside may end after it */
    unsigned parts;     /* of enum probe_data: what the scope admits */
    bool is_scope_left; /* a strict scope has been asked about all parts */
    int part;           /* the section that is open; -1: none yet */
    int is_nan;         /* for task nan_check; -1: no output of a float type so far */
    struct ms_buf name;
    struct probe__record record;
    struct held *held;
    struct probe__waiting *waiting; /* its tensors still being copied from a device; NULL: none */
};

/* ---- call ------------------------------------------------------------- */

struct probe_call *probe__take_call(struct probe_dumper *d, struct probe__thread *t);
bool probe__has_level(const struct probe_dumper *d, enum probe__call_kind kind);
/* Enables files of tensors for this call if the settings ask for them. */
void probe__call_keep_files(struct probe_call *c);
void probe__put_value(struct probe_call *c, const struct probe_value *v);

/* ---- call_scope --------------------------------------------------------- */

/* Asks the filter as the call begins: false: no part is wanted. The lock is held. */
bool probe__scope_enter(struct probe_call *c);
/* Asks a strict scope about the parts that come at the end of the call. The lock is not held. */
void probe__scope_turn(struct probe_call *c);
/* Tells the filter that the call has ended; the lock is held. */
void probe__scope_leave(struct probe_call *c);
/* Tells whether gradients of parameters are wanted; has_backward: that of their module is there.
 * The lock is held. */
bool probe__scope_has_grads(struct probe_call *c, bool has_backward);

/* ---- dumper_state ------------------------------------------------------- */

/* Tells whether a record of that epoch is kept; overflow checking keeps only records with a NaN
 * or an infinity. The lock is held. */
bool probe__stays(struct probe_dumper *d, unsigned epoch, bool is_odd);
/* Queues the held tensors of a kept record for writing; the lock is held. */
void probe__release_held(struct probe_dumper *d, struct held *first);
void probe__free_held(struct probe_dumper *d, struct held **first);

/* ---- call_name: the dumper's lock is held ------------------------------- */

const char *probe__module_prefix(const struct probe_dumper *d);
/* Writes the part of the name that calls are counted by. */
struct ms_str probe__put_key(struct ms_buf *b, const struct probe__entry *e);
/* Writes the call number; an operator has it before the direction, a module after. */
void probe__put_number(struct ms_buf *b, bool is_module, enum probe_dir dir, int64_t number);
/* Sets the parent. A backward outside any open module gets the parent of its forward. */
void probe__put_parent(struct probe_call *c, const struct probe__thread *t, bool is_loose);
/* Stores the parent of a forward call for its backward. */
void probe__note_owner(struct probe_call *c, const struct probe__thread *t);

#endif
