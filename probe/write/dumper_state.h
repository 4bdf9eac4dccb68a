/* SPDX-License-Identifier: MIT
 *
 * dumper_state: the state shared by dumper.c (steps and files) and call.c (records).
 *
 *     dumper ── threads ── the module that is open, and the ones around it
 *        │         └────── the operator that is open
 *        ├── names: call counts in this step
 *        ├── filter, sites: what is collected, where it was called
 *        └── files ◄─ text of finished records     spool ◄─ elements of tensors
 *              await ◄─ records with tensors of devices, before both
 *
 * One lock guards names, filter, sites and files. Statistics are computed without it.
 */
#ifndef PROBE_WRITE_DUMPER_STATE_H
#define PROBE_WRITE_DUMPER_STATE_H

#include "probe/dumper.h"
#include "probe/write/await.h"
#include "probe/write/call_entry.h"
#include "probe/write/callsite.h"
#include "probe/write/filter.h"
#include "probe/write/leaf_write.h"
#include "probe/write/rank_files.h"
#include "probe/write/record.h"
#include "probe/write/spool.h"

#include <pthread.h>
#include <stdatomic.h>

/* A call as the parent of another. */
struct probe__owner {
    uint32_t name; /* index in names; MS_MAP_NONE: no parent */
    uint32_t number;
};

/* Counts of one operator, module or saved value. */
struct probe__called {
    uint32_t calls;                     /* in this step */
    uint32_t grads;                     /* records of parameter gradients in this step */
    bool is_hidden;                     /* by the setting `risk` */
    bool has_backward;                  /* a backward of the module was recorded in this step */
    MS_VEC(struct probe__owner) owners; /* parents of its forward calls, for its backward calls */
};

struct probe__thread {
    struct probe__thread *next;
    bool in_use;
    struct probe_call *module; /* innermost open module or root */
    struct probe_call *op;     /* open operator; those inside it are not collected */
    int hidden; /* above 0: the tool itself calls operators, which are not collected */
    struct probe_call *spare; /* calls to be reused */
    struct probe__stack_area stack;
};

/* Kinds of errors, each logged once a step in dump_error_info.log. */
enum probe__trouble {
    PROBE__BAD_VALUE = 1 << 0,
    PROBE__BAD_RECORD = 1 << 1,
    PROBE__NO_FILE = 1 << 2,
    PROBE__LEFT_OPEN = 1 << 3,
    PROBE__OUT_OF_ORDER = 1 << 4
};

/* The file of the settings, and when it was polled. */
struct probe__source {
    char *path; /* NULL: no file, or polling is off */
    char *over; /* settings that override those of the file, as JSON */
    int64_t looked_ns, changed_ns;
    uint64_t size;
};

struct probe_dumper {
    struct probe_dumper *next; /* in the list of all that are open */
    struct probe_settings s;
    struct probe__source source;
    struct probe__style style;
    struct probe__layout layout;
    struct ms_arena *arena; /* memory of settings and names */
    const char *home;       /* directory that a relative dump_path begins at */
    pthread_key_t key;
    unsigned forks; /* fork count of the process when this was opened */
    atomic_bool active;

    pthread_mutex_t lock; /* guards all below */
    struct probe__thread *threads;
    struct probe_call *all; /* every call ever made, to be freed */
    struct ms_map names;
    MS_VEC(struct probe__called) called;
    struct probe__filter filter;
    struct probe__sites sites;
    struct probe__files files;
    struct ms_buf modules;      /* modules and parents not yet in construct.json */
    struct probe__late late;    /* records that wait for statistics; flushed before all others */
    struct probe__await *await; /* records that wait for copies; NULL: no device tensor so far */
    struct probe__spool *spool; /* NULL: no elements are written */
    char *dir;                  /* of this step and rank */
    uint32_t step;
    unsigned epoch;    /* number of ended steps; calls of an earlier step are void */
    unsigned troubles; /* bits of enum probe__trouble, logged in this step */
    int64_t overflows_left;
    struct probe_slice request; /* with has_request: the tokens of one request in a batch */
    bool has_request;
    bool given_up; /* this step is given up: its files cannot be written */
    bool warned, warned_of_rank;
    struct ms_err err;  /* the first failure since opening */
    atomic_size_t held; /* bytes of tensors whose record may still be dropped */
};

/* Dumps only the elements [begin, end) of the first dimension of tensors in which it has `size`, those
 * of a request in a batch; size 0: of all again. Called while nothing is collected. */
void probe__dumper_request(struct probe_dumper *d, uint64_t begin, uint64_t end, uint64_t size);

/* ---- dumper_state ------------------------------------------------------ */

/* Number of forks between the first call of this function and now, ancestors included. */
unsigned probe__fork_count(void);
bool probe__is_own_process(const struct probe_dumper *d);
/* Tells whether this process owns the dumper and the dumper is collecting. */
bool probe__is_mine(const struct probe_dumper *d);
/* Opens the files of this step unless they are open; the lock is held. false: no files. */
bool probe__begin_step(struct probe_dumper *d);
/* Adds a finished record; is_late: some of its statistics arrive later. The lock is held. */
void probe__add_record(struct probe_dumper *d, struct ms_str text, bool is_late);
/* Passes the statistics of the tensors numbered since the last call. */
void probe__dumper_figures(struct probe_dumper *d, const struct probe__figure *f, size_t n);
/* Logs a message about skipped data; the lock is not held. */
void probe__note(struct probe_dumper *d, enum probe__trouble kind, const char *fmt, ...)
    MS_PRINTF(3, 4);
/* The same for a place that the caller knows. */
void probe__note_at(struct probe_dumper *d, enum probe__trouble kind,
                    const struct probe__place *place, const char *text);
/* Returns the state of the calling thread; NULL when out of memory. */
struct probe__thread *probe__thread_of(struct probe_dumper *d);
/* Returns the index into d->called for a record's name without number and direction; the lock is
 * held. */
uint32_t probe__called_index(struct probe_dumper *d, struct ms_str key, bool *added);

/* Marks the state of an ended thread for reuse. */
void probe__leave_thread(void *thread);
/* Resets all call counts for a new step; the lock is held for this and all below. */
void probe__forget_calls(struct probe_dumper *d);
/* Stops collecting for this step, whose files cannot be written. */
void probe__give_up(struct probe_dumper *d, const struct ms_err *err);
/* Returns the directory of this step and rank, on the heap; NULL when the path is too long or
 * memory is short. */
char *probe__step_dir(const struct probe_dumper *d);
/* Writes first the queued elements, then the records. */
void probe__flush(struct probe_dumper *d);
/* Completes all records that wait for statistics; tensors without any get nulls. */
void probe__release_late(struct probe_dumper *d, const struct probe__figure *f, size_t n);

/* ---- dumper ------------------------------------------------------------ */

/* Stores where the settings come from. A changed file is read again at the start of a step; the
 * file is polled at most every 0.5 s, and every 3 s while it disables the dump. */
void probe__source_set(struct probe_dumper *d, const char *path, struct ms_str over);

/* ---- call.c ----------------------------------------------------------- */

/* Writes the modules queued in d->modules to construct.json; the lock is held. */
void probe__put_modules(struct probe_dumper *d);
/* Drops calls that were left open, without records; their device copies are released. */
void probe__calls_forget(struct probe_call *all);
void probe__calls_free(struct probe_call *all);

#endif
