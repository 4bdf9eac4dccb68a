/* SPDX-License-Identifier: MIT
 *
 * ext_watch: records calls of the framework's functions without replacing the functions.
 *
 * A watched function stays the same object: names, tables, pickles, compilers and tracers find what
 * they would find without a dump. While calls are collected, its type is derived from the original
 * type (as an assignment to __class__ would make it), and its calls come here; when collecting
 * stops, it gets its original type back. The derived types differ only in how a call is dispatched.
 *
 * A call is dispatched to an Op, which records it, or to a function of the adapter, around(func,
 * args, kwargs), which passes it on with past(). Each group of functions is watched separately.
 *
 * Five kinds of functions can be watched: Python functions, built-in functions, the methods of a type
 * written in C, with their bound methods, functools.partial objects, which keep their type, and objects
 * whose class has a __call__ written in Python, such as operators of extensions. A bound method may
 * outlive the collecting; its calls then go straight to the function. For objects the __call__ of their
 * class is watched, which looks up who is called. See ext_slot.c for operators such as x[i] = y.
 */
#include "probe/python/ext.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <opcode.h>

/* When a function that is only told of calls is told, instead of being called. */
enum when { WHEN_BEFORE = 1, WHEN_RETURNED = 2, WHEN_RAISED = 4 };

struct watched {
    PyObject *func;
    PyObject *op; /* NULL: the __call__ of a class; its first argument says who is called */
    unsigned group;
    PyTypeObject *was;
    vectorcallfunc was_call; /* NULL: called with a tuple and a dict */
    PyTypeObject *ours;      /* its type while its calls come here; NULL: it cannot be changed */
    vectorcallfunc *call;    /* where it keeps what is called */
    bool is_ours;            /* its calls come here now */
    bool is_object;          /* its calls come by way of the __call__ of its class */
    bool rests;              /* it is watched, and has its own type for a while: see rest() */
    unsigned tells;          /* bits of enum when: op(first argument, when) is called then */
};

enum { WATCHED_MAX = 4096, SLOTS = 4 * WATCHED_MAX };
static struct watched *all[WATCHED_MAX];
static unsigned count;
/* Places of the first function of a group and behind the last: a group is switched at every step, and all
 * functions of PyTorch are a thousand. */
enum { GROUPS = 7 };
static struct span {
    unsigned first, end;
} spans[GROUPS];
static struct watched *slots[SLOTS]; /* hash table by key_of */

static PyTypeObject function_type, builtin_type, method_type;

/* Returns the key of a function; a bound method has the same key as its function. */
static const void *key_of(PyObject *func)
{
    if (PyObject_TypeCheck(func, &PyCFunction_Type))
        return ((PyCFunctionObject *)func)->m_ml;
    if (PyObject_TypeCheck(func, &PyMethodDescr_Type))
        return ((PyMethodDescrObject *)func)->d_method;
    return func;
}

static struct watched **slot_of(const void *key)
{
    size_t at = ((uintptr_t)key >> 4) * 0x9E3779B1u % SLOTS;
    while (slots[at] != NULL && key_of(slots[at]->func) != key)
        at = (at + 1) % SLOTS;
    return &slots[at];
}

/* ---- calls ------------------------------------------------------------ */

/* Calls a function that takes a tuple and a dict, past its derived type. */
static PyObject *call_with_tuple(PyObject *func, PyObject *const *args, size_t nargsf,
                                 PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    bool has_names = kwnames != NULL && PyTuple_GET_SIZE(kwnames) != 0;
    PyObject *tuple = ext_tuple_of(args, n),
             *dict = has_names ? ext_dict_of(args + n, kwnames) : NULL;
    PyObject *result = NULL;
    const bool is_builtin = PyObject_TypeCheck(func, &PyCFunction_Type);
    ternaryfunc call = is_builtin ? PyCFunction_Type.tp_call : Py_TYPE(func)->tp_call;
    if (tuple != NULL && (dict != NULL || !has_names))
        result = call(func, tuple, dict);
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    return result;
}

/* Tells op of a call; an exception of the function itself is kept. */
static void tell_watcher(const struct watched *w, PyObject *first, enum when when)
{
    PyObject *type, *value, *trace;
    if ((w->tells & when) == 0)
        return;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = PyObject_CallFunction(w->op, "Oi", first, (int)when);
    if (done == NULL)
        ext_fail("what stands around a function");
    Py_XDECREF(done);
    PyErr_Restore(type, value, trace);
}

/* Calls the function and tells op before and after, without a frame of Python around the call: the
 * program may look at its frames. */
static PyObject *call_and_tell(const struct watched *w, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames)
{
    PyObject *first = PyVectorcall_NARGS(nargsf) != 0 ? Py_NewRef(args[0]) : Py_NewRef(Py_None);
    tell_watcher(w, first, WHEN_BEFORE);
    PyObject *result = ext_real_of(w->func)(w->func, args, nargsf, kwnames);
    tell_watcher(w, first, result != NULL ? WHEN_RETURNED : WHEN_RAISED);
    Py_DECREF(first);
    return result;
}

/* Calls the op of the object whose __call__ this is; an object that is not watched is just called. */
static PyObject *call_op_of_object(const struct watched *w, PyObject *const *args, size_t nargsf,
                                   PyObject *kwnames)
{
    size_t n = (size_t)PyVectorcall_NARGS(nargsf);
    const struct watched *object = n != 0 ? *slot_of(key_of(args[0])) : NULL;
    if (object == NULL || !object->is_object || !object->is_ours)
        return w->was_call(w->func, args, nargsf, kwnames);
    return PyObject_Vectorcall(object->op, args + 1, n - 1, kwnames);
}

static PyObject *call_op(const struct watched *w, PyObject *const *args, size_t nargsf,
                         PyObject *kwnames)
{
    if (w->op == NULL)
        return call_op_of_object(w, args, nargsf, kwnames);
    if (w->tells != 0)
        return call_and_tell(w, args, nargsf, kwnames);
    if (!PyFunction_Check(w->op))
        return PyObject_Vectorcall(w->op, args, nargsf, kwnames);
    vectorcallfunc real = w->was_call != NULL ? w->was_call : call_with_tuple;
    return ext_call_around(w->op, w->func, real, args, nargsf, kwnames);
}

typedef PyObject *caller(const struct watched *w, PyObject *const *args, size_t nargsf,
                         PyObject *kwnames);

/* Calls with an object in front of the arguments, as a bound method does. */
static PyObject *call_bound(caller *call, const struct watched *w, PyObject *self,
                            PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    enum { SMALL = 16 };
    PyObject *few[SMALL], **values = few;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    Py_ssize_t all_n = n + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
    if (all_n + 1 > SMALL)
        values = ext_room_for(all_n + 1);
    if (values == NULL)
        return PyErr_NoMemory();
    values[0] = self;
    for (Py_ssize_t i = 0; i < all_n; i++)
        values[i + 1] = args[i];
    PyObject *result = call(w, values, (size_t)n + 1, kwnames);
    if (values != few)
        PyMem_Free(values);
    return result;
}

static PyObject *call_real(const struct watched *w, PyObject *const *args, size_t nargsf,
                           PyObject *kwnames)
{
    return w->was_call(w->func, args, nargsf, kwnames);
}

/* Returns the __call__ of an object's class where it is a Python function; borrowed. */
static PyObject *call_of_class(PyObject *object)
{
    static PyObject *name;
    if (name == NULL)
        name = PyUnicode_InternFromString("__call__");
    PyObject *call = name != NULL ? _PyType_Lookup(Py_TYPE(object), name) : NULL;
    bool is_python = call != NULL && PyObject_TypeCheck(call, &PyFunction_Type);
    return is_python && !PyType_Check(object) ? call : NULL;
}

/* Calls a watched object itself. */
static PyObject *call_object(PyObject *func, PyObject *const *args, size_t nargsf,
                             PyObject *kwnames)
{
    PyObject *call = call_of_class(func);
    const struct watched *w = call != NULL ? *slot_of(key_of(call)) : NULL;
    if (w == NULL)
        return PyObject_Vectorcall(func, args, nargsf, kwnames);
    return call_bound(call_real, w, func, args, nargsf, kwnames);
}

static PyObject *call_watched(const struct watched *w, PyObject *func, PyObject *const *args,
                              size_t nargsf, PyObject *kwnames)
{
    if (func != w->func)
        return call_bound(call_op, w, PyCFunction_GET_SELF(func), args, nargsf, kwnames);
    return call_op(w, args, nargsf, kwnames);
}

/* A profiler of Python hears of calls of functions in C from the interpreter, which knows them by their exact
 * types; from 3.12 on it takes derived types as well. So it hears of the watched ones from here. */
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000

/* Tells whether the frame is at an instruction that calls: of others, as of an addition, a profiler does not hear. */
static bool is_at_call(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *bytes = PyCode_GetCode(code);
    const int at = PyFrame_GetLasti(frame);
    int op = -1;
    if (bytes != NULL && at >= 0 && at < PyBytes_GET_SIZE(bytes))
        op = (unsigned char)PyBytes_AS_STRING(bytes)[at];
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_DECREF(code);
    return op == CALL || op == PRECALL || op == CALL_FUNCTION_EX;
}

static bool is_profiled(const struct watched *w)
{
    const PyThreadState *state = PyThreadState_Get();
    if (state->c_profilefunc == NULL || state->tracing != 0 || w->ours == &function_type ||
        w->is_object)
        return false;
    PyFrameObject *frame = PyEval_GetFrame();
    return frame != NULL && is_at_call(frame);
}

/* Tells the profiler, unless there is none any more; false: it has raised. */
static bool tell_profiler(PyObject *func, int what)
{
    PyThreadState *state = PyThreadState_Get();
    PyFrameObject *frame = PyEval_GetFrame();
    if (state->c_profilefunc == NULL || state->tracing != 0 || frame == NULL)
        return true;
    PyThreadState_EnterTracing(state);
    int failed = state->c_profilefunc(state->c_profileobj, frame, what, func);
    PyThreadState_LeaveTracing(state);
    return failed == 0;
}

/* Tells of a call's end; an exception of the function itself is kept. */
static PyObject *tell_end(PyObject *func, PyObject *result)
{
    PyObject *type, *value, *trace;
    if (result != NULL) {
        if (!tell_profiler(func, PyTrace_C_RETURN))
            Py_CLEAR(result);
        return result;
    }
    PyErr_Fetch(&type, &value, &trace);
    if (tell_profiler(func, PyTrace_C_EXCEPTION)) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return NULL;
}

static PyObject *call_profiled(const struct watched *w, PyObject *func, PyObject *const *args,
                               size_t nargsf, PyObject *kwnames)
{
    const bool is_method = PyObject_TypeCheck(func, &PyMethodDescr_Type);
    PyObject *seen = Py_NewRef(func), *result = NULL;
    if (is_method && PyVectorcall_NARGS(nargsf) != 0)
        Py_SETREF(seen,
                  PyMethodDescr_Type.tp_descr_get(func, args[0], (PyObject *)Py_TYPE(args[0])));
    if (seen == NULL || !PyObject_TypeCheck(seen, &PyCFunction_Type)) {
        PyErr_Clear(); /* the call itself will say what is wrong */
        result = call_watched(w, func, args, nargsf, kwnames);
    } else if (tell_profiler(seen, PyTrace_C_CALL)) {
        result = tell_end(seen, call_watched(w, func, args, nargsf, kwnames));
    }
    Py_XDECREF(seen);
    return result;
}

#else
static bool is_profiled(const struct watched *w)
{
    (void)w;
    return false;
}
#define call_profiled call_watched
#endif

static PyObject *watched_call(PyObject *func, PyObject *const *args, size_t nargsf,
                              PyObject *kwnames)
{
    const struct watched *w = *slot_of(key_of(func));
    ms_assert(w != NULL);
    if (is_profiled(w))
        return call_profiled(w, func, args, nargsf, kwnames);
    return call_watched(w, func, args, nargsf, kwnames);
}

/* ---- the derived types ------------------------------------------------ */

/* Binds a method to an object so that calls of the bound method are watched as well. */
static PyObject *method_bind(PyObject *self, PyObject *object, PyObject *type)
{
    PyObject *bound = PyMethodDescr_Type.tp_descr_get(self, object, type);
    if (bound != NULL && bound != self && PyCFunction_CheckExact(bound) &&
        *slot_of(key_of(bound)) != NULL) {
        ((PyCFunctionObject *)bound)->vectorcall = watched_call;
        Py_SET_TYPE(bound, &builtin_type);
    }
    return bound;
}

static PyObject *get_class(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)Py_TYPE(self)->tp_base);
}

/* Assignments fail as those to the class of any function do. */
static int set_class(PyObject *self, PyObject *value, void *unused)
{
    PyObject *name = PyUnicode_InternFromString("__class__");
    PyObject *own = name != NULL ? _PyType_Lookup(&PyBaseObject_Type, name) : NULL;
    (void)unused;
    Py_XDECREF(name);
    return own != NULL ? Py_TYPE(own)->tp_descr_set(own, self, value) : -1;
}

/* Copies a function, or copies it deeply: it is its own copy. */
static PyObject *same(PyObject *module, PyObject *args)
{
    (void)module;
    return PySequence_GetItem(args, 0);
}

/* Pickles a function as its name. */
static PyObject *reduce_to_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyGetSetDef getset[] = {{"__class__", get_class, set_class, NULL, NULL}, {0}};
static PyMethodDef by_name[] = {{"__reduce__", reduce_to_name, METH_NOARGS, NULL}, {0}};
static PyMethodDef copier = {"same", same, METH_VARARGS, NULL};

static PyTypeObject function_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "function",
                                     .tp_flags = Py_TPFLAGS_DEFAULT, .tp_methods = by_name,
                                     .tp_getset = getset, .tp_base = &PyFunction_Type};
static PyTypeObject builtin_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name =
                                        "builtin_function_or_method",
                                    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                                    .tp_vectorcall_offset = offsetof(PyCFunctionObject, vectorcall),
                                    .tp_call = PyVectorcall_Call,
                                    .tp_getset = getset,
                                    .tp_base = &PyCFunction_Type};
static PyTypeObject method_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "method_descriptor",
                                   .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_METHOD_DESCRIPTOR,
                                   .tp_getset = getset, .tp_descr_get = method_bind,
                                   .tp_base = &PyMethodDescr_Type};

/* Enters a type into a table of the module copy, as that has the types of functions: a method __copy__ would be
 * seen by a program that lists the attributes of a function. */
static int add_copier(PyObject *module, const char *table, PyTypeObject *type, PyObject *func)
{
    PyObject *dict = PyObject_GetAttrString(module, table);
    int rc = dict != NULL ? PyObject_SetItem(dict, (PyObject *)type, func) : -1;
    Py_XDECREF(dict);
    return rc;
}

static int ready_copies(PyTypeObject *type)
{
    PyObject *module = PyImport_ImportModule("copy"), *func = PyCFunction_New(&copier, NULL);
    int rc = module != NULL && func != NULL ? 0 : -1;
    if (rc == 0)
        rc = add_copier(module, "_copy_dispatch", type, func);
    if (rc == 0)
        rc = add_copier(module, "_deepcopy_dispatch", type, func);
    Py_XDECREF(func);
    Py_XDECREF(module);
    return rc;
}

/* Readies the derived types. A type without __doc__ gets None, which would hide the __doc__ of
 * its functions, so that entry is removed. */
int ext_watch_ready(void)
{
    PyTypeObject *types[] = {&function_type, &builtin_type, &method_type};
    ext_slot_ready(ext_real_of);
    for (unsigned i = 0; i < 3; i++) {
        if (PyType_Ready(types[i]) != 0 || PyDict_DelItemString(types[i]->tp_dict, "__doc__") != 0)
            return -1;
        PyType_Modified(types[i]);
        if (ready_copies(types[i]) != 0)
            return -1;
    }
    return 0;
}

vectorcallfunc ext_real_of(PyObject *func)
{
    const struct watched *w = *slot_of(key_of(func));
    if (w == NULL || w->func != func)
        return ext_slot_real(func);
    return w->was_call != NULL ? w->was_call : call_with_tuple;
}

/* past(func, args, kwargs): the result of the watched function itself */
static PyObject *past(PyObject *module, PyObject *args)
{
    PyObject *func, *tuple, *dict, *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!O!", &func, &PyTuple_Type, &tuple, &PyDict_Type, &dict))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(tuple), at = 0, i = n;
    PyObject **values = ext_room_for(n + PyDict_GET_SIZE(dict) + 1);
    PyObject *names = PyTuple_New(PyDict_GET_SIZE(dict)), *name;
    if (values == NULL || names == NULL) {
        PyErr_NoMemory();
    } else {
        memcpy(values, PySequence_Fast_ITEMS(tuple), (size_t)n * sizeof *values);
        while (PyDict_Next(dict, &at, &name, &values[i]))
            PyTuple_SET_ITEM(names, i++ - n, Py_NewRef(name));
        struct ext_passing *p = ext_pass(func, tuple);
        result = ext_real_of(func)(func, values, (size_t)n, names);
        ext_has_passed(p, result);
    }
    PyMem_Free(values);
    Py_XDECREF(names);
    return result;
}

/* ---- watching --------------------------------------------------------- */

/* Tells whether an object is a functools.partial, each of which has a call pointer of its own. */
static bool is_partial(PyObject *func)
{
    static PyTypeObject *partial;
    if (partial == NULL) {
        PyObject *module = PyImport_ImportModule("functools");
        partial = module != NULL ? (PyTypeObject *)PyObject_GetAttrString(module, "partial") : NULL;
        PyErr_Clear();
        Py_XDECREF(module);
    }
    return partial != NULL && Py_IS_TYPE(func, partial) && partial->tp_vectorcall_offset > 0 &&
           PyType_HasFeature(partial, Py_TPFLAGS_HAVE_VECTORCALL);
}

/* Returns the derived type and the address of the function's call pointer; NULL: cannot be
 * watched. */
static PyTypeObject *derived(PyObject *func, vectorcallfunc **call)
{
#ifndef Py_GIL_DISABLED
    if (PyFunction_Check(func)) {
        *call = &((PyFunctionObject *)func)->vectorcall;
        return &function_type;
    }
    if (PyCFunction_CheckExact(func)) {
        *call = &((PyCFunctionObject *)func)->vectorcall;
        return &builtin_type;
    }
    if (Py_IS_TYPE(func, &PyMethodDescr_Type)) {
        *call = &((PyMethodDescrObject *)func)->vectorcall;
        return &method_type;
    }
    if (is_partial(func)) {
        *call = (vectorcallfunc *)(void *)((char *)func + Py_TYPE(func)->tp_vectorcall_offset);
        return Py_TYPE(func);
    }
#endif
    *call = NULL;
    return NULL;
}

static void begin(struct watched *w)
{
    if (w->ours == NULL || Py_TYPE(w->func) != w->was) /* other code has changed it */
        w->ours = derived(w->func, &w->call);
    if (w->ours != NULL && !w->rests) {
        *w->call = watched_call;
        Py_SET_TYPE(w->func, w->ours);
    }
    w->is_ours = w->ours != NULL || w->is_object;
}

static void end(struct watched *w)
{
    PyTypeObject *type = Py_TYPE(w->func);
    w->is_ours = false;
    if (w->is_object || (type != w->ours && type != w->was && type->tp_base != w->was))
        return;
    Py_SET_TYPE(w->func, w->was);
    if (type != w->ours)
        w->ours = derived(w->func, &w->call);
    if (w->call != NULL)
        *w->call = w->was_call;
}

/* Makes room in a span for the function that is added next. */
static void widen(struct span *s)
{
    if (s->end == 0)
        s->first = count;
    s->end = count + 1;
}

/* Adds a function, or what stands for one; NULL with an exception: no memory. */
static struct watched *add(const struct watched *given)
{
    struct watched *w = ms_calloc(1, sizeof *w);
    if (w == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *w = *given;
    w->ours = derived(w->func, &w->call);
    Py_INCREF(w->func);
    Py_XINCREF(w->op);
    widen(&spans[w->group]);
    *slot_of(key_of(w->func)) = all[count++] = w;
    return w;
}

static bool has_room_for(PyObject *func)
{
    return count < WATCHED_MAX - 1 && *slot_of(key_of(func)) == NULL;
}

/* Watches the __call__ of a class; true also where it is watched already. */
static bool add_class(PyObject *call, unsigned group)
{
    vectorcallfunc *pointer;
    const struct watched *known = *slot_of(key_of(call));
    if (known != NULL)
        return known->op == NULL; /* else it is watched for itself */
    if (derived(call, &pointer) == NULL)
        return false;
    const struct watched given = {
        .func = call, .group = group, .was = Py_TYPE(call), .was_call = *pointer};
    return add(&given) != NULL;
}

static bool add_object(const struct watched *given)
{
    PyObject *call = call_of_class(given->func);
    struct watched object = *given;
    object.is_object = true;
    object.was_call = call_object;
    return call != NULL && add_class(call, given->group) && add(&object) != NULL;
}

/* Gives a function that is not watched now another op. */
static bool replace_op(struct watched *w, PyObject *func, PyObject *op, unsigned group)
{
    if (w == NULL || w->func != func || w->op == NULL || w->group != group || w->is_ours)
        return false;
    Py_SETREF(w->op, Py_NewRef(op));
    return true;
}

/* watch(func, op, group, tells) -> bool: dispatches calls of func to op while the group is watched;
 * with tells, bits of enum when, calls func and tells op(first argument, when); False: the function
 * cannot be watched, or is watched already */
static PyObject *watch(PyObject *module, PyObject *args)
{
    PyObject *func, *op;
    unsigned group = 0, tells = 0;
    vectorcallfunc *call;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO|II", &func, &op, &group, &tells))
        return NULL;
    if (group >= GROUPS)
        return PyErr_Format(PyExc_ValueError, "watch: no group %u", group);
    struct watched given = {.func = func, .op = op, .group = group, .tells = tells};
    bool ok;
    given.was = derived(func, &call) != NULL ? Py_TYPE(func) : NULL;
    given.was_call = given.was != NULL ? *call : NULL;
    if (!has_room_for(func))
        ok = group != 0 && replace_op(*slot_of(key_of(func)), func, op, group);
    else if (given.was != NULL)
        ok = add(&given) != NULL;
    else
        ok = ext_slot_watch(func, op) || add_object(&given);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(ok);
}

/* Tells whether a watched object of the class with this __call__ is left. */
static bool is_needed(PyObject *call)
{
    for (unsigned i = 0; i < count; i++) {
        if (all[i]->is_object && all[i]->is_ours && call_of_class(all[i]->func) == call)
            return true;
    }
    return false;
}

/* Tells whether a switch of one function switches w. */
static bool is_switched(const struct watched *w, PyObject *only, bool is_on)
{
    if (w->func == only)
        return true;
    return w->op == NULL && w->func == call_of_class(only) && (is_on || !is_needed(w->func));
}

/* Switch a group, or one function of it where `only` is given. A step switches a thousand functions
 * twice. */
static void begin_group(unsigned group, PyObject *only)
{
    for (unsigned i = spans[group].first; i < spans[group].end; i++) {
        struct watched *w = all[i];
        if (w->group == group && !w->is_ours && (only == NULL || is_switched(w, only, true)))
            begin(w);
    }
}

/* The __call__ of a class stands before its objects, so the list is walked from its end. */
static void end_group(unsigned group, PyObject *only)
{
    for (unsigned i = spans[group].end; i > spans[group].first; i--) {
        struct watched *w = all[i - 1];
        if (w->group == group && w->is_ours && (only == NULL || is_switched(w, only, false)))
            end(w);
    }
}

/* watching(on, group, func): starts or stops watching the functions of the group, or one of them. */
static PyObject *watching(PyObject *module, PyObject *args)
{
    int is_on;
    unsigned group = 0;
    PyObject *only = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "p|IO", &is_on, &group, &only))
        return NULL;
    if (group >= GROUPS)
        return PyErr_Format(PyExc_ValueError, "watching: no group %u", group);
    if (group == 0)
        ext_slot_watching(is_on != 0);
    if (is_on)
        begin_group(group, only);
    else
        end_group(group, only);
    Py_RETURN_NONE;
}

/* rest(on, functions): gives functions their own types while on, whether or not they are watched meanwhile. */
static PyObject *rest(PyObject *module, PyObject *args)
{
    int is_on;
    PyObject *list;
    (void)module;
    if (!PyArg_ParseTuple(args, "pO!", &is_on, &PyList_Type, &list))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        struct watched *w = *slot_of(key_of(PyList_GET_ITEM(list, i)));
        if (w == NULL || w->rests == (is_on != 0))
            continue;
        const bool is_watched = w->is_ours;
        if (is_watched)
            end(w);
        w->rests = is_on != 0;
        if (is_watched)
            begin(w);
    }
    Py_RETURN_NONE;
}

/* twin(method): an equal method of the same type that is not watched */
static PyObject *twin(PyObject *module, PyObject *method)
{
    (void)module;
    if (!PyObject_TypeCheck(method, &PyMethodDescr_Type))
        return PyErr_Format(PyExc_TypeError, "twin: expected a method of a type in C");
    return PyDescr_NewMethod(PyDescr_TYPE(method), ((PyMethodDescrObject *)method)->d_method);
}

PyMethodDef ext_watch_functions[] = {
    {"watch", watch, METH_VARARGS, "watch(function, op, group=0, tells=0) -> can it be watched?"},
    {"watching", watching, METH_VARARGS, "watching(on, group=0, function): are calls seen?"},
    {"rest", rest, METH_VARARGS, "rest(on, functions): they have their own types for a while"},
    {"spare_operator", ext_slot_spare, METH_VARARGS,
     "spare_operator(type, name): the operator is not recorded as a call of its method"},
    {"past", past, METH_VARARGS, "past(function, args, kwargs): what it gives by itself"},
    {"twin", twin, METH_O, "twin(method): an equal one that is not watched"},
    {0}};
