/* SPDX-License-Identifier: MIT
 *
 * call_struct: what a call consists of, for the files that it is made by: call has its
 * life, call_name its name and place, call_alone records that are no calls.
 */
#ifndef PROBE_WRITE_CALL_STRUCT_H
#define PROBE_WRITE_CALL_STRUCT_H

#include "probe/write/call_entry.h"
#include "probe/write/dumper_state.h"

/* A tensor's elements, kept until it is known whether its record stays. */
struct held {
    struct held *next;
    struct probe_tensor t;
    size_t bytes;
    char name[]; /* behind it, aligned, the elements */
};

struct probe_call {
    struct probe_dumper *d;
    struct probe_call *all, *next; /* of the dumper; of the spare ones */
    struct probe_call *outer;      /* the module around this one */
    const void *tag;               /* whose call it is */
    uint64_t uses;                 /* how often it has been given back */
    struct probe__thread *thread;  /* NULL: detached */
    enum probe__call_kind kind;
    enum probe_dir dir;
    int64_t number;
    struct probe__owner self;
    unsigned epoch;
    bool is_wanted;
    bool has_failed; /* what has not been seen will not come */
    bool ends_first; /* what was entered inside may go on after it */
    int part;        /* the section that is open, -1: none yet */
    int is_nan;      /* of task nan_check: -1 while no output could be one */
    struct ms_buf name;
    struct probe__record record;
    struct held *held;
    struct probe__waiting *waiting; /* tensors of devices that it has; NULL: none */
};

/* ---- call ------------------------------------------------------------- */

struct probe_call *probe__take_call(struct probe_dumper *d, struct probe__thread *t);
bool probe__has_level(const struct probe_dumper *d, enum probe__call_kind kind);
/* Tensors go to files where the configuration has it so. */
void probe__call_keep_files(struct probe_call *c);
void probe__put_value(struct probe_call *c, const struct probe_value *v);

/* ---- dumper_state ------------------------------------------------------- */

/* Does a record of that epoch stay?  Overflow checking keeps those with something odd in them alone.
 * The lock is held. */
bool probe__stays(struct probe_dumper *d, unsigned epoch, bool is_odd);
/* The held tensors of a record that stays become files; the lock is held. */
void probe__release_held(struct probe_dumper *d, struct held *first);
void probe__free_held(struct probe_dumper *d, struct held **first);

/* ---- call_name: the dumper's lock is held ------------------------------- */

const char *probe__module_prefix(const struct probe_dumper *d);
/* The part of the name that calls are counted by. */
struct ms_str probe__put_key(struct ms_buf *b, const struct probe__entry *e);
/* An operator has its number before the direction, a module after it. */
void probe__put_number(struct ms_buf *b, bool is_module, enum probe_dir dir, int64_t number);
/* A backward that lies in no open module lies where its forward did. */
void probe__put_parent(struct probe_call *c, const struct probe__thread *t, bool is_loose);
/* Remember where a forward call lies, for its backward. */
void probe__note_owner(struct probe_call *c, const struct probe__thread *t);

#endif
