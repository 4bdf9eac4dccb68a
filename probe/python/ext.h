/* SPDX-License-Identifier: MIT
 *
 * ext: the C half of the Python adapters, module msprobe._probe.  It belongs to
 * no framework: what a tensor is and how to look into one it is told once.
 *
 *     msprobe.pytorch, .mindspore       names of functions, hooks, settings
 *             │  _probe.setup(...)
 *     ext_watch                         functions that stay what they are
 *     ext_op ext_hook ext_call          functions, modules, gradients, by hand
 *             │                         that call, around the real ones
 *     ext_value ── ext_json             values into the record, without copies
 *     ext_leave                         calls that end before the next one
 *     ext_state                         the framework, the dumper, the frames of a call, trouble
 *             │
 *     probe/write/call_entry.h                  names, filters, files
 *
 * There is one dumper in a process.  All state is guarded by the interpreter
 * lock; the dumper's own lock is only taken while that is held and never the
 * other way round.  A failure in here is noted and swallowed: the training must
 * not see it.
 */
#ifndef PROBE_PYTHON_EXT_H
#define PROBE_PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "probe/tensor/tensor.h"
#include "probe/write/call_entry.h"

/* What a framework's tensors have, read past any wrapper or subclass. */
enum ext_get {
    EXT_DTYPE,
    EXT_SHAPE,
    EXT_REQUIRES_GRAD,
    EXT_IS_HOST,    /* bool: its elements can be read here */
    EXT_IS_STRANGE, /* bool: not what its memory says (negated view); may be None */
    EXT_LAYOUT,     /* compared with `strided` */
    EXT_GRAD_FN,
    EXT_STRIDE,   /* method: a tuple, in elements */
    EXT_DATA_PTR, /* method */
    EXT_GETTERS
};

struct ext_framework {
    PyTypeObject *plain[2]; /* exact classes that the getters read; others go to `describe` */
    PyTypeObject *tensor;   /* base of all of them */
    PyObject *get[EXT_GETTERS];
    PyObject *strided; /* the layout of plain memory; NULL: all have it */
    PyObject *dtypes;  /* dict: dtype object -> "float32" */
    /* Python functions; see msprobe/_values.py. */
    PyObject *describe;   /* of any other value */
    PyObject *to_host;    /* a tensor elsewhere -> the same here */
    PyObject *to_later;   /* -> number of figures to come, or 0 */
    PyObject *figures;    /* -> list of what has been numbered, for stop */
    PyObject *grad_mode;  /* () -> bool: may what is called now have gradients? */
    PyObject *is_tracing; /* () -> bool: is a compiler looking into the program? */
    /* For a framework whose results know nothing of the node that made them: what makes a call of a
     * function whose gradients are wanted, (func, prefix, name, number, args, kwargs) -> result. */
    PyObject *watched_call;
    const char *module_prefix; /* "Module" or "Cell" */
    PyObject *parameters;      /* the attribute where a module has its own: a dict */
    const char *skip_path;     /* frames of files below this folder are not the program's */
};

extern struct ext_framework ext_fw;
extern struct probe_dumper *ext_dumper;
extern bool ext_has_module_backward; /* backward of functions lies in that of modules */
extern bool ext_host_only;           /* figures cannot come later: the records need the elements */

/* ---- ext_json --------------------------------------------------------- */

/* Python's lists, dicts, numbers and texts as JSON. */
void ext_put_json(struct ms_jwrite *json, PyObject *v);
/* The members of a dict, without the braces. */
void ext_put_members(struct ms_jwrite *json, PyObject *dict);
/* The key of a dict, as Python's json writes it; good while *hold is, which may be NULL.  NULL with an
 * exception: it has no text. */
const char *ext_key_text(PyObject *key, PyObject **hold);

/* ---- ext_value -------------------------------------------------------- */

bool ext_is_tensor(PyObject *o);
/* One tensor as the next value of the record at `r`; never fails, at worst it is a null. */
void ext_put_tensor(struct probe_call *c, struct probe__record *r, const char *key, PyObject *t);
/* A new reference to what a getter gives, or NULL with an exception. */
PyObject *ext_get(enum ext_get what, PyObject *t);
bool ext_get_bool(enum ext_get what, PyObject *t);
/* Any value, under a key or as the next item of a list. */
void ext_put_value(struct probe_call *c, struct probe__record *r, const char *key, PyObject *v);
/* The values of one part; masked ones, by index, are null. */
void ext_put_list(struct probe_call *c, enum probe_section section, PyObject *const *v,
                  Py_ssize_t n, uint32_t mask);
void ext_put_tuple(struct probe_call *c, enum probe_section section, PyObject *tuple,
                   uint32_t mask);
void ext_put_dict(struct probe_call *c, enum probe_section section, PyObject *dict);
/* The result of a call: a tuple is the list of results, anything else the only one. */
void ext_put_result(struct probe_call *c, PyObject *result, uint32_t mask);

/* ---- ext_state -------------------------------------------------------- */

/* Where the program is; never NULL. */
struct probe__place *ext_place(void);
/* The dumper, and with it all groups, is gone. */
void ext_forget_places(void);
/* Writes a line about what was left out, with the Python frames. */
void ext_note(const char *where, const char *why);
/* Take the exception that is set, tell the note function, and go on. */
void ext_swallow(const char *where);
/* Something of ours has failed: nothing is dumped from now on, which is said once. */
void ext_switch_off(const char *why);
extern bool ext_is_off;
/* Take the exception that is set and switch off. */
void ext_fail(const char *where);
/* Figures that have been waited for; at the end of a step or when there are many. */
void ext_settle(void);
void ext_settle_if_many(void);
/* Where the files of tensors are; "" where there are none. */
const char *ext_data_dir(void);

/* End the calls that wait for it; while there are none, ext_leaving is 0. */
void ext_leave_calls(void);
extern unsigned ext_leaving;
/* End this call before the next one is entered; true: it is the first that waits. */
bool ext_leave_later(struct probe_call *c, uint64_t uses);

/* Calls a function of ours; what it calls is not recorded. */
PyObject *ext_ask(PyObject *func, PyObject *const *args, size_t n);
/* Does a compiler follow the program, with tensors that have no elements? */
bool ext_is_tracing(void);

/* ---- functions -------------------------------------------------------- */

/* How a function is called past a type that it was given for being watched. */
vectorcallfunc ext_real_of(PyObject *func);
extern PyMethodDef ext_watch_functions[];
int ext_watch_ready(void);

/* ---- calls ------------------------------------------------------------ */

/* Records of gradients that are not complete. */
void ext_finish_grads(void);

extern PyTypeObject ext_op_type, ext_fn_type, ext_back_type; /* ext_op */
/* ext_hook */
extern PyTypeObject ext_hook_type, ext_after_type, ext_grads_type, ext_grad_type;
extern PyTypeObject ext_call_type; /* ext_call */
/* enter(prefix, name, args, kwargs, mask), enter_root(name), ... */
extern PyMethodDef ext_call_functions[];
extern uint32_t ext_late; /* figures that are still to come */
/* How many dumpers have been opened: calls of an older one are void. */
extern unsigned ext_generation;

#endif
