/* SPDX-License-Identifier: MIT
 *
 * dumper_state: what dumper.c (steps and files) and call.c (records) share.
 *
 *     dumper ── threads ── the module that is open, and the ones around it
 *        │         └────── the operator that is open
 *        ├── names: how often each has been called in this step
 *        ├── filter, sites: what is wanted, where it was called
 *        └── files ◄─ text of finished records     spool ◄─ elements of tensors
 *              await ◄─ records with tensors of devices, before both
 *
 * One lock guards names, filter, sites and files.  Figures are made without it.
 */
#ifndef PROBE_WRITE_DUMPER_STATE_H
#define PROBE_WRITE_DUMPER_STATE_H

#include "probe/dumper.h"
#include "probe/write/await.h"
#include "probe/write/call_entry.h"
#include "probe/write/callsite.h"
#include "probe/write/filter.h"
#include "probe/write/late.h"
#include "probe/write/rank_files.h"
#include "probe/write/record.h"
#include "probe/write/spool.h"

#include <pthread.h>
#include <stdatomic.h>

/* A call as another one's parent. */
struct probe__owner {
    uint32_t name; /* index in names; MS_MAP_NONE: there is none */
    uint32_t number;
};

/* An operator, a module, a saved value. */
struct probe__called {
    uint32_t calls;                     /* in this step */
    uint32_t grads;                     /* records of parameter gradients in this step */
    bool is_hidden;                     /* by risk */
    MS_VEC(struct probe__owner) owners; /* of its forward calls, for their backward ones */
};

struct probe__thread {
    struct probe__thread *next;
    bool in_use;
    struct probe_call *module; /* innermost open module or root */
    struct probe_call *op;     /* open operator; those inside it are not collected */
    int hidden;                /* the tool itself calls operators */
    struct probe_call *spare;  /* to be used again */
    struct probe__stack_area stack;
};

/* Kinds of trouble, each told once a step in dump_error_info.log. */
enum probe__trouble {
    PROBE__BAD_VALUE = 1 << 0,
    PROBE__BAD_RECORD = 1 << 1,
    PROBE__NO_FILE = 1 << 2,
    PROBE__LEFT_OPEN = 1 << 3,
    PROBE__OUT_OF_ORDER = 1 << 4
};

/* The file that the settings came from, and when it was looked at. */
struct probe__source {
    char *path; /* NULL: none, or nobody wants to know */
    char *over; /* settings that go before those of the file, as JSON */
    int64_t looked_ns, changed_ns;
    uint64_t size;
};

struct probe_dumper {
    struct probe_dumper *next; /* in the list of all that are open */
    struct probe_settings s;
    struct probe__source source;
    struct probe__style style;
    struct probe__layout layout;
    struct ms_arena *arena; /* settings and names */
    pthread_key_t key;
    unsigned forks; /* how often the process had been forked when this was opened */
    atomic_bool active;

    pthread_mutex_t lock; /* guards all below */
    struct probe__thread *threads;
    struct probe_call *all; /* every call ever made, to be freed */
    struct ms_map names;
    MS_VEC(struct probe__called) called;
    struct probe__filter filter;
    struct probe__sites sites;
    struct probe__files files;
    struct ms_buf modules;      /* modules with their parents, on their way to construct.json */
    struct probe__late late;    /* records that wait for figures, before all others */
    struct probe__await *await; /* records that wait for copies; NULL: no device was seen */
    struct probe__spool *spool; /* NULL: no elements are kept */
    char *dir;                  /* of this step and rank */
    uint32_t step;
    unsigned epoch;    /* steps that have ended: calls of an earlier one are void */
    unsigned troubles; /* of this step */
    int64_t overflows_left;
    bool given_up; /* this step: its files cannot be written */
    bool warned, warned_of_rank;
    struct ms_err err;  /* the first failure of all */
    atomic_size_t held; /* bytes of tensors whose record may yet be dropped */
};

/* ---- dumper_state ------------------------------------------------------ */

/* How often this process and those before it have been forked; counted from the first call on. */
unsigned probe__fork_count(void);
bool probe__is_own_process(const struct probe_dumper *d);
/* Does this process own the dumper, and does it collect? */
bool probe__is_mine(const struct probe_dumper *d);
/* Open the files of this step if they are not; the lock is held.  false: there are none. */
bool probe__begin_step(struct probe_dumper *d);
/* A finished record; is_late: figures of it come later.  The lock is held. */
void probe__add_record(struct probe_dumper *d, struct ms_str text, bool is_late);
/* The figures of the tensors numbered since the last time. */
void probe__dumper_figures(struct probe_dumper *d, const struct probe__figure *f, size_t n);
/* Write a line about something that was left out; the lock is not held. */
void probe__note(struct probe_dumper *d, enum probe__trouble kind, const char *fmt, ...)
    MS_PRINTF(3, 4);
/* The same about a place that the caller knows. */
void probe__note_at(struct probe_dumper *d, enum probe__trouble kind,
                    const struct probe__place *place, const char *text);
/* What belongs to the calling thread; NULL without memory. */
struct probe__thread *probe__thread_of(struct probe_dumper *d);
/* Text of the record's name without call and direction -> index into d->called; the lock is held. */
uint32_t probe__called_index(struct probe_dumper *d, struct ms_str key, bool *added);

/* The end of a thread: what belongs to it is for the next one. */
void probe__leave_thread(void *thread);
/* No name has been called in this step; the lock is held for this and all below. */
void probe__forget_calls(struct probe_dumper *d);
/* Collect nothing more in this step, whose files cannot be written. */
void probe__give_up(struct probe_dumper *d, const struct ms_err *err);
/* The folder of this step and rank, on the heap; NULL when it is too long or memory is short. */
char *probe__step_dir(const struct probe_dumper *d);
/* Bring elements and then records to the files. */
void probe__flush(struct probe_dumper *d);
/* Records that wait for figures take these; those that still lack some go without. */
void probe__release_late(struct probe_dumper *d, const struct probe__figure *f, size_t n);

/* ---- dumper ------------------------------------------------------------ */

/* Remember where the settings come from, to read them again at the start of a step when that has
 * changed: looked at every half second at most, every three while it says not to dump. */
void probe__source_set(struct probe_dumper *d, const char *path, struct ms_str over);

/* ---- call.c ----------------------------------------------------------- */

/* What waits in d->modules goes to construct.json; the lock is held. */
void probe__put_modules(struct probe_dumper *d);
/* Calls that were left open have no records: what they had from devices is let go. */
void probe__calls_forget(struct probe_call *all);
void probe__calls_free(struct probe_call *all);

#endif
