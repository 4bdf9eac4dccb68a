/* SPDX-License-Identifier: MIT
 *
 * ext_call: calls that Python code enters and leaves explicitly: communication, whose results come
 * later, backward of modules, roots such as the optimizer, and values saved by hand.
 */
#include "probe/python/ext.h"

#include "probe/write/dumper_state.h"

#include <structmember.h>

struct call {
    PyObject_HEAD struct ext_held_call held;
    long long number;
};

static PyObject *wrap(struct probe_call *call)
{
    if (call == NULL)
        Py_RETURN_NONE;
    struct call *c = PyObject_New(struct call, &ext_call_type);
    if (c == NULL) {
        probe_call_drop(call);
        return NULL;
    }
    *c = (struct call){
        .ob_base = c->ob_base, .held = ext_hold_call(call), .number = probe_call_number(call)};
    return (PyObject *)c;
}

static struct probe_call *open_call(PyObject *self)
{
    return ext_open_call(&((struct call *)self)->held);
}

/* leave_calls(): ends all queued calls */
static PyObject *leave_calls(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    ext_leave_calls();
    Py_RETURN_NONE;
}

/* when_called(func): calls func before the next call of the program is entered, once */
static PyObject *when_called(PyObject *module, PyObject *func)
{
    (void)module;
    ext_when_called(func);
    Py_RETURN_NONE;
}

/* ---- entering --------------------------------------------------------- */

static PyObject *call_enter(PyObject *module, PyObject *args)
{
    const char *prefix, *name;
    PyObject *positional, *named;
    unsigned mask = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "ssO!O!|I", &prefix, &name, &PyTuple_Type, &positional,
                          &PyDict_Type, &named, &mask))
        return NULL;
    if (!probe__may_enter(ext_dumper, PROBE__OP))
        Py_RETURN_NONE;
    ext_begin_call();
    struct probe_call *c =
        probe__enter(ext_dumper, &(struct probe__entry){.kind = PROBE__OP,
                                                        .dir = PROBE_FORWARD,
                                                        .prefix = prefix,
                                                        .name = name,
                                                        .place = ext_function_place(prefix)});
    struct ext_guard guard = ext_quiet(false);
    if (probe__call_has(c, PROBE_SEC_INPUT_ARGS)) {
        ext_put_tuple(c, PROBE_SEC_INPUT_ARGS, positional, mask);
        ext_put_dict(c, PROBE_SEC_INPUT_KWARGS, named);
    }
    if (PyErr_Occurred())
        ext_swallow("the inputs of a function");
    ext_loud(guard);
    return wrap(c);
}

/* enter_root(name, outside): with outside, only where no module runs */
static PyObject *enter_root(PyObject *module, PyObject *args)
{
    const char *name;
    int outside = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "s|p", &name, &outside))
        return NULL;
    ext_begin_call();
    if (outside && probe__in_module(ext_dumper))
        Py_RETURN_NONE;
    if (ext_dumper != NULL && ext_dumper->s.strict && ext_dumper->style.mindspore)
        Py_RETURN_NONE; /* the official tool knows none with MindSpore */
    return wrap(probe__enter(
        ext_dumper,
        &(struct probe__entry){.kind = PROBE__ROOT, .dir = PROBE_DIR_NONE, .name = name}));
}

static PyObject *enter_module_backward(PyObject *module, PyObject *args)
{
    const char *path, *class_name;
    long long number;
    int ends_first = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "ssL|p", &path, &class_name, &number, &ends_first))
        return NULL;
    ext_leave_calls();
    return wrap(probe__enter(ext_dumper, &(struct probe__entry){.kind = PROBE__MODULE,
                                                                .dir = PROBE_BACKWARD,
                                                                .prefix = ext_fw.module_prefix,
                                                                .name = path,
                                                                .class_name = class_name,
                                                                .number = number,
                                                                .ends_first = ends_first != 0}));
}

static PyObject *enter_backward(PyObject *module, PyObject *args)
{
    const char *prefix, *name;
    long long number;
    (void)module;
    if (!PyArg_ParseTuple(args, "ssL", &prefix, &name, &number))
        return NULL;
    if (!probe__may_enter(ext_dumper, PROBE__OP))
        Py_RETURN_NONE;
    return wrap(
        probe__enter(ext_dumper, &(struct probe__entry){.kind = PROBE__OP,
                                                        .dir = PROBE_BACKWARD,
                                                        .prefix = prefix,
                                                        .name = name,
                                                        .number = number,
                                                        .is_loose = !ext_has_module_backward}));
}

/* ask(function, *args): calls a function of the adapter; its calls are neither dumped nor seen by
 * modes of the program */
static PyObject *ask(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "ask(function, *args)");
        return NULL;
    }
    return ext_ask(args[0], args + 1, (size_t)n - 1);
}

/* hidden(function, *args): calls a function of the program; its calls are not dumped */
static PyObject *hidden(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "hidden(function, *args)");
        return NULL;
    }
    probe__hide(ext_dumper, 1);
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, (size_t)n - 1, NULL);
    probe__hide(ext_dumper, -1);
    return result;
}

/* hide(by): 1: calls on this thread are not dumped; -1: as before */
static PyObject *hide(PyObject *module, PyObject *by)
{
    long n = PyLong_AsLong(by);
    (void)module;
    if (n == -1 && PyErr_Occurred())
        return NULL;
    probe__hide(ext_dumper, (int)n);
    Py_RETURN_NONE;
}

/* save(name, value, is_grad, number) -> number, or None when not wanted */
static PyObject *save(PyObject *module, PyObject *args)
{
    const char *name;
    PyObject *value;
    int is_grad = 0;
    long long number = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO|pL", &name, &value, &is_grad, &number))
        return NULL;
    int64_t n = number;
    struct probe_call *c = probe__begin_saved(ext_dumper, name, is_grad != 0, &n);
    if (c == NULL)
        Py_RETURN_NONE;
    struct ext_guard guard = ext_quiet(false);
    ext_put_value(c, probe__call_record(c), NULL, value);
    if (PyErr_Occurred())
        ext_swallow("a saved value");
    ext_loud(guard);
    probe_call_exit(c);
    ext_settle_if_many();
    return PyLong_FromLongLong(n);
}

PyMethodDef ext_call_functions[] = {
    {"enter", call_enter, METH_VARARGS,
     "enter(prefix, name, args, kwargs, mask=0) -> Call or None"},
    {"enter_root", enter_root, METH_VARARGS, "enter_root(name, outside=False) -> Call or None"},
    {"enter_module_backward", enter_module_backward, METH_VARARGS,
     "enter_module_backward(path, class_name, number, ends_first=False) -> Call or None"},
    {"enter_backward", enter_backward, METH_VARARGS,
     "enter_backward(prefix, name, number) -> Call or None"},
    {"ask", (PyCFunction)(void (*)(void))ask, METH_FASTCALL,
     "ask(function, *args): its result; what it calls is not dumped, nor seen by modes"},
    {"hidden", (PyCFunction)(void (*)(void))hidden, METH_FASTCALL,
     "hidden(function, *args): its result; functions it calls are not dumped"},
    {"hide", hide, METH_O, "hide(by): 1: what this thread calls is not dumped; -1: as before"},
    {"when_called", when_called, METH_O,
     "when_called(func): called before the next call of the program"},
    {"leave_calls", leave_calls, METH_NOARGS, "leave_calls(): calls that are leaving end now"},
    {"save", save, METH_VARARGS, "save(name, value, is_grad=False, number=-1) -> number or None"},
    {0}};

/* ---- the object ------------------------------------------------------- */

static PyObject *put_values(PyObject *self, PyObject *args, enum probe_section section)
{
    struct probe_call *c = open_call(self);
    PyObject *values;
    unsigned mask = 0;
    if (!PyArg_ParseTuple(args, "O!|I", &PyTuple_Type, &values, &mask))
        return NULL;
    struct ext_guard guard = ext_quiet(false);
    if (probe__call_has(c, section))
        ext_put_tuple(c, section, values, mask);
    if (PyErr_Occurred())
        ext_swallow("values of a call");
    ext_loud(guard);
    Py_RETURN_NONE;
}

static PyObject *put_input(PyObject *self, PyObject *args)
{
    return put_values(self, args, PROBE_SEC_INPUT);
}

static PyObject *put_output(PyObject *self, PyObject *args)
{
    return put_values(self, args, PROBE_SEC_OUTPUT);
}

static PyObject *detach(PyObject *self, PyObject *unused)
{
    (void)unused;
    probe_call_detach(open_call(self));
    Py_RETURN_NONE;
}

static PyObject *end_record(PyObject *self, PyObject *unused)
{
    (void)unused;
    probe_call_exit(open_call(self));
    ext_settle_if_many();
    Py_RETURN_NONE;
}

/* leave() -> whether the queue of ending calls was empty */
static PyObject *leave_call(PyObject *self, PyObject *unused)
{
    struct probe_call *c = open_call(self);
    (void)unused;
    if (c == NULL)
        Py_RETURN_FALSE;
    return PyBool_FromLong(ext_leave_later(c, ((struct call *)self)->held.uses));
}

static PyObject *fail(PyObject *self, PyObject *unused)
{
    (void)unused;
    probe__call_fail(open_call(self));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"input", put_input, METH_VARARGS, "input(tuple, mask=0): inputs of a backward"},
    {"output", put_output, METH_VARARGS, "output(tuple, mask=0)"},
    {"detach", detach, METH_NOARGS, "the rest comes later; others may be entered"},
    {"done", end_record, METH_NOARGS, "the call is over"},
    {"leave", leave_call, METH_NOARGS, "the call is over before the next one is entered"},
    {"fail", fail, METH_NOARGS, "the call ended without a result"},
    {0}};
static PyMemberDef members[] = {
    {"number", T_LONGLONG, offsetof(struct call, number), READONLY, NULL}, {0}};

PyTypeObject ext_call_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msprobe._probe.Call",
                              .tp_doc = "A call that is open.",
                              .tp_basicsize = sizeof(struct call),
                              .tp_flags = Py_TPFLAGS_DEFAULT,
                              .tp_dealloc = (destructor)PyObject_Free,
                              .tp_methods = methods,
                              .tp_members = members};
