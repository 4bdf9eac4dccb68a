/* SPDX-License-Identifier: MIT
 *
 * ext: the C half of the Python adapters, module msprobe._probe. It is independent of any
 * framework: setup() passes the descriptors and functions that read a tensor.
 *
 *     msprobe.pytorch, .mindspore       names of functions, hooks, settings
 *             │  _probe.setup(...)
 *     ext_watch ── ext_slot             functions, and operators of tensors, that are recorded
 *             │                         without being replaced
 *     ext_around                        calls that go by way of a function of the adapter
 *     ext_op ext_hook ext_call          wrappers of functions; hooks of modules and gradients;
 *             │                         calls entered from Python
 *     ext_monitor                       figures of each step, into csv files
 *     ext_value ── ext_json             values into the record, without copies
 *     ext_put                           hooks into a model's modules, and out of them
 *     ext_held                          calls that stay open while code of the program runs
 *     ext_state ── ext_alien            framework, dumper, frames of a call, errors; exceptions of the
 *             │                         program that arrive in here
 *     probe/write/call_entry.h          names, filters, files
 *
 * A process has one dumper. All state is guarded by the interpreter lock. Lock order: interpreter
 * lock first, then the dumper's own. An error in here is noted and swallowed: the training must not
 * see it.
 */
#ifndef PROBE_PYTHON_EXT_H
#define PROBE_PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "probe/monitor/monitor.h"
#include "probe/python/ext_since.h"
#include "probe/tensor/tensor.h"
#include "probe/write/call_entry.h"

/* Properties and methods of a framework's tensors, read past any wrapper or subclass. */
enum ext_get {
    EXT_DTYPE,
    EXT_SHAPE,
    EXT_REQUIRES_GRAD,
    EXT_IS_HOST,    /* bool: elements are in host memory */
    EXT_IS_STRANGE, /* bool: values differ from memory (negated view); may be None */
    EXT_LAYOUT,     /* compared with `strided` */
    EXT_GRAD_FN,
    EXT_STRIDE,   /* method: a tuple, in elements */
    EXT_DATA_PTR, /* method */
    EXT_GETTERS
};

struct ext_framework {
    PyTypeObject *plain[2]; /* exact classes that the getters read; other values go to `describe` */
    PyTypeObject *tensor;   /* base of all of them */
    PyObject *get[EXT_GETTERS];
    PyObject *strided; /* layout of plain memory; NULL: every tensor has it */
    PyObject *dtypes;  /* dict: dtype object -> "float32" */
    /* Python functions; see msprobe/_values.py. */
    PyObject *describe;  /* describes any other value */
    PyObject *to_host;   /* copies a tensor to host memory */
    PyObject *to_later;  /* reduces a tensor on its device -> number of statistics to come, or 0 */
    PyObject *figures;   /* returns all numbered statistics, as a list */
    PyObject *grad_mode; /* () -> bool: can the next call have gradients? */
    PyObject
        *tracing; /* threading.local: has a tracing_context while a compiler traces its thread */
    /* () -> has the program modes that see calls of functions, or calls of kernels? And an object
     * that takes them out of the way until its end(). NULL: the framework has no modes. */
    PyObject *function_modes, *dispatch_modes, *quiet;
    /* For a framework whose results do not refer to the node that made them: calls a function
     * whose gradients are recorded, (func, prefix, name, number, args, kwargs) -> result. */
    PyObject *watched_call;
    const char *module_prefix; /* "Module" or "Cell" */
    /* Stands for a hook in a copy of a model, and what a pickle calls to make one: (function,
     * arguments). NULL: the hook itself. */
    PyObject *copied_hook, *pickled_hook;
    /* For a framework whose nodes are hooked: makes a node that follows that of a parameter; has a
     * parameter no shape yet? */
    PyObject *expand_as, *is_lazy;
    PyObject *parameters;  /* name of the attribute with a module's own parameters: a dict */
    const char *skip_path; /* frames of files below this folder are left out of stacks */
};

extern struct ext_framework ext_fw;
extern struct probe_dumper *ext_dumper;
extern bool ext_has_module_backward; /* backward of functions belongs to the backward of modules */
extern bool ext_host_only; /* statistics cannot come later: the records need the elements */

/* ---- ext_json --------------------------------------------------------- */

/* Writes Python's lists, dicts, numbers and strings as JSON. */
void ext_put_json(struct ms_jwrite *json, PyObject *v);
/* Writes the members of a dict, without the braces. */
void ext_put_members(struct ms_jwrite *json, PyObject *dict);
/* Returns the key of a dict as Python's json writes it, valid as long as *hold, which may be
 * NULL. NULL with an exception: the key has no text. No code of the program runs: what it says of an object
 * of its own is not asked; `place` tells such keys apart. */
const char *ext_key_text(PyObject *key, Py_ssize_t place, PyObject **hold);

/* ---- ext_alien --------------------------------------------------------- */

/* Raises an exception again in the program when it is none of ours: a handler of a signal, or another thread, has
 * raised it while our code ran. False: it is ours. */
bool ext_pass_on(PyObject *error);
/* is_alien(error) -> bool: the caller is to raise it again */
PyObject *ext_is_alien(PyObject *module, PyObject *error);

/* ---- ext_value -------------------------------------------------------- */

bool ext_is_tensor(PyObject *o);
/* Adds one tensor as the next value of the record at `r`; on failure the value is null. */
void ext_put_tensor(struct probe_call *c, struct probe__record *r, const char *key, PyObject *t);
/* Elements of a tensor in host memory, held until ext_unview(). */
struct ext_view {
    struct probe_tensor t;
    PyObject *hold;
    char dtype[32]; /* as the framework writes it */
};
/* False: it has none that can be read. */
bool ext_view_tensor(PyObject *o, struct ext_view *v);
void ext_unview(struct ext_view *v);
/* Returns a new reference to the property or the method's result, or NULL with an exception. */
PyObject *ext_get(enum ext_get what, PyObject *t);
bool ext_get_bool(enum ext_get what, PyObject *t);
/* Adds any value, under a key or as the next item of a list. */
void ext_put_value(struct probe_call *c, struct probe__record *r, const char *key, PyObject *v);
/* Add the values of one section; values whose bit is set in the mask are null. */
void ext_put_list(struct probe_call *c, enum probe_section section, PyObject *const *v,
                  Py_ssize_t n, uint32_t mask);
void ext_put_tuple(struct probe_call *c, enum probe_section section, PyObject *tuple,
                   uint32_t mask);
void ext_put_dict(struct probe_call *c, enum probe_section section, PyObject *dict);
/* Adds the result of a call: a tuple is the list of results, anything else the only one. */
void ext_put_result(struct probe_call *c, PyObject *result, uint32_t mask);

/* ---- ext_state -------------------------------------------------------- */

int ext_state_ready(void);
/* Returns the current place of the program; never NULL. */
struct probe__place *ext_place(void);
/* The same for a function: after ext_set_call_frames its stack begins with those frames. */
struct probe__place *ext_function_place(const char *prefix);
/* frames: a list of texts, innermost first; false: an exception is set. */
bool ext_set_call_frames(PyObject *frames);
/* Forgets the groups of all places, as the dumper is closed. */
void ext_forget_places(void);
/* Logs that a value was left out, with the Python frames. */
void ext_note(const char *where, const char *why);
/* Clears the current exception, which code in Python has raised. */
void ext_clear(void);
/* Clears the current exception and logs it as a note. */
void ext_swallow(const char *where);
/* Switches the dump off for good after an internal error, and reports that once. */
void ext_switch_off(const char *why);
extern bool ext_is_off;
/* Clears the current exception and switches off. */
void ext_fail(const char *where);
/* Fetch the statistics that devices have computed: all of them at the end of a step, or when
 * many wait. */
void ext_settle(void);
void ext_settle_if_many(void);
/* Directory of tensor files; "" when there is none. */
const char *ext_data_dir(void);

/* Ends the calls queued by ext_leave_later; ext_leaving is their number. */
void ext_leave_calls(void);
extern unsigned ext_leaving;
/* The same before a call of the program, which calls what ext_when_called() was given, once. */
void ext_begin_call(void);
void ext_when_called(PyObject *func);
/* Queues a call to end before the next one is entered; true: the queue was empty. */
bool ext_leave_later(struct probe_call *c, uint64_t uses);

/* Returns a new reference to an attribute of a module. What lies in the module's own dict is read there: the
 * class of modules has a __getattr__, which makes a plain getattr four times as slow. */
PyObject *ext_attribute(PyObject *module, PyObject *name);
/* Returns a new reference to the object of a weak reference, NULL when the object was freed. */
PyObject *ext_alive(PyObject *reference);
/* Asks a function of the framework, with one argument or none; false where there is none. */
bool ext_is_yes(PyObject *question, PyObject *about);
/* What is put aside while tensors are read. */
struct ext_guard {
    PyObject *modes; /* of the program; NULL: it has none */
    uint64_t fpu;    /* settings and flags of floating point: see ms_fpu_hold */
};
/* Takes the modes of the program that see calls of functions, or of kernels as well, and its settings of
 * floating point out of the way until ext_loud(), which takes the result. */
struct ext_guard ext_quiet(bool with_kernels);
void ext_loud(struct ext_guard guard);
/* Number of threads between the two, which may hold a call while another thread runs. */
extern unsigned ext_inside;
/* Calls one of the adapter's functions; its calls are neither recorded nor seen by modes. */
PyObject *ext_ask(PyObject *func, PyObject *const *args, size_t n);
/* Tells whether a compiler is tracing the program, with tensors that have no elements. */
bool ext_is_tracing(void);

/* ---- functions -------------------------------------------------------- */

/* ext_around: a call by way of around(func, args, kwargs), a function of the adapter. real: what func does by itself,
 * which the call comes to whatever fails in around. */
PyObject *ext_call_around(PyObject *around, PyObject *func, vectorcallfunc real,
                          PyObject *const *args, size_t nargsf, PyObject *kwnames);
/* Stand around the call of func itself: the first finds which call goes on, NULL: none that is known. */
struct ext_passing *ext_pass(PyObject *func, PyObject *args);
void ext_has_passed(struct ext_passing *p, PyObject *result);
/* Make new objects of a call's arguments. */
PyObject *ext_tuple_of(PyObject *const *values, Py_ssize_t n);
PyObject *ext_dict_of(PyObject *const *values, PyObject *names);
/* Allocates with Python's allocator: when its memory is used up, the call would fail without a dump
 * as well. */
PyObject **ext_room_for(Py_ssize_t n);

/* Returns the function that implements a call, past the derived type of a watched function. */
vectorcallfunc ext_real_of(PyObject *func);
extern PyMethodDef ext_watch_functions[];
int ext_watch_ready(void);

/* ---- ext_slot --------------------------------------------------------- */

/* Call first; real_of returns the function that implements a call of a watched function. */
void ext_slot_ready(vectorcallfunc (*real_of)(PyObject *func));
/* Has assignments to items of tensors recorded by op. False: func is no such slot wrapper. */
bool ext_slot_watch(PyObject *func, PyObject *op);
void ext_slot_watching(bool is_on);
/* Returns the function that implements a call of a watched slot wrapper, or of any other object. */
vectorcallfunc ext_slot_real(PyObject *func);
PyObject *ext_slot_spare(PyObject *module, PyObject *args);

/* ---- calls ------------------------------------------------------------ */

/* Finishes records of gradients that are not complete. */
void ext_finish_grads(void);

extern PyTypeObject ext_op_type, ext_fn_type, ext_back_type; /* ext_op */
/* ext_hook */
extern PyTypeObject ext_hook_type, ext_after_type, ext_grads_type, ext_grad_type, ext_ran_type;
extern PyTypeObject ext_call_type; /* ext_call */
/* ext_monitor */
extern PyTypeObject ext_monitor_type;
extern PyMethodDef ext_monitor_functions[];
/* enter(prefix, name, args, kwargs, mask), enter_root(name), ... */
extern PyMethodDef ext_call_functions[];
extern PyMethodDef ext_put_functions[]; /* ext_put */
extern uint32_t ext_late;               /* number of statistics still to come */
/* Number of dumpers opened so far; calls of an earlier one are void. */
extern unsigned ext_generation;
/* A call that is held while code of the program runs, in which another thread may end the step or the dump. */
struct ext_held_call {
    struct probe_call *call;
    uint64_t uses;
    unsigned generation; /* value of ext_generation when the call began */
};
struct ext_held_call ext_hold_call(struct probe_call *call);
/* Returns the call while it is open, else NULL. */
struct probe_call *ext_open_call(const struct ext_held_call *held);

#endif
