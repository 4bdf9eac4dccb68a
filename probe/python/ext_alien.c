/* SPDX-License-Identifier: MIT
 *
 * ext_alien: exceptions that arrive while our code runs and are none of ours.
 *
 * A handler of a signal may raise at any instruction of Python's, and another thread may send an exception: a
 * timeout, the end of a trial. A program that waits for such an exception must get it, so it is not swallowed like a
 * failure of ours: it is raised again as soon as the interpreter runs the program.
 *
 * An exception is alien where a handler of a signal is among its frames, or where its class belongs to a module that
 * has no frame there and is neither Python's nor the framework's.
 */
#include "probe/python/ext.h"

#include <frameobject.h>
#include <signal.h>

#ifndef NSIG
enum { NSIG = 65 };
#endif

/* Returns the code of a function, of a bound method's function, or of the __call__ of an object; NULL: in C. */
static PyObject *code_of(PyObject *callable)
{
    if (PyMethod_Check(callable))
        callable = PyMethod_GET_FUNCTION(callable);
    if (PyFunction_Check(callable))
        return PyFunction_GET_CODE(callable);
    PyObject *name = PyUnicode_InternFromString("__call__");
    PyObject *call = name != NULL ? _PyType_Lookup(Py_TYPE(callable), name) : NULL;
    Py_XDECREF(name);
    return call != NULL && PyFunction_Check(call) ? PyFunction_GET_CODE(call) : NULL;
}

/* Tells whether the code is that of a handler of a signal. */
static bool is_handler(PyObject *code)
{
    PyObject *module = PyImport_ImportModule("_signal");
    bool is_it = false;
    for (int number = 1; module != NULL && number < NSIG && !is_it; number++) {
        PyObject *handler = PyObject_CallMethod(module, "getsignal", "i", number);
        is_it = handler != NULL && code_of(handler) == code;
        Py_XDECREF(handler);
        PyErr_Clear();
    }
    Py_XDECREF(module);
    return is_it;
}

/* Returns the length of the name of the outermost package. */
static size_t root_length(const char *module)
{
    return strcspn(module, ".");
}

/* Tells whether a module belongs to the package that another belongs to. */
static bool is_of_package(const char *module, const char *other)
{
    size_t n = root_length(other);
    return root_length(module) == n && strncmp(module, other, n) == 0;
}

/* Tells whether classes of a module may come from Python's or the framework's own functions. */
static bool is_known(const char *module)
{
    static const char *const frameworks[] = {"builtins", "torch", "mindspore", "numpy", "msprobe"};
    for (unsigned i = 0; i < sizeof frameworks / sizeof *frameworks; i++) {
        if (is_of_package(module, frameworks[i]))
            return true;
    }
    PyObject *names = PySys_GetObject("stdlib_module_names");
    PyObject *root = PyUnicode_FromStringAndSize(module, (Py_ssize_t)root_length(module));
    bool is_it = names != NULL && root != NULL && PySequence_Contains(names, root) == 1;
    PyErr_Clear();
    Py_XDECREF(root);
    return is_it;
}

/* Returns the name of the module that a frame's code belongs to; a new reference, NULL: none. */
static PyObject *module_of_frame(PyFrameObject *frame)
{
    PyObject *globals = PyObject_GetAttrString((PyObject *)frame, "f_globals");
    PyObject *name = globals != NULL && PyDict_Check(globals)
                         ? Py_XNewRef(PyDict_GetItemString(globals, "__name__"))
                         : NULL;
    PyErr_Clear();
    Py_XDECREF(globals);
    return name;
}

static bool has_frame_of(PyObject *trace, const char *module)
{
    bool has = false;
    for (PyTracebackObject *at = (PyTracebackObject *)trace; at != NULL && !has; at = at->tb_next) {
        PyObject *name = module_of_frame(at->tb_frame);
        const char *text = name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
        has = text != NULL && is_of_package(text, module);
        Py_XDECREF(name);
    }
    PyErr_Clear();
    return has;
}

static bool has_handler(PyObject *trace)
{
    bool has = false;
    for (PyTracebackObject *at = (PyTracebackObject *)trace; at != NULL && !has; at = at->tb_next) {
        PyCodeObject *code = PyFrame_GetCode(at->tb_frame);
        has = is_handler((PyObject *)code);
        Py_DECREF(code);
    }
    return has;
}

/* Tells whether the class of an exception belongs to a module of the program. */
static bool is_of_program(PyObject *error, PyObject *trace)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(error), "__module__");
    const char *module = name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    bool is_it = module != NULL && !is_known(module) && !has_frame_of(trace, module);
    PyErr_Clear();
    Py_XDECREF(name);
    return is_it;
}

static bool is_alien(PyObject *error)
{
    PyObject *trace = PyException_GetTraceback(error);
    bool is_it = trace != NULL && PyTraceBack_Check(trace) &&
                 (has_handler(trace) || is_of_program(error, trace));
    Py_XDECREF(trace);
    return is_it;
}

PyObject *ext_is_alien(PyObject *module, PyObject *error)
{
    (void)module;
    return PyBool_FromLong(PyExceptionInstance_Check(error) && is_alien(error));
}

/* Raises an exception, whose reference it takes, in the main thread. */
static int raise_again(void *error)
{
    PyObject *value = error;
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(value)), value, PyException_GetTraceback(value));
    return -1;
}

/* The interpreter runs what is pending in the main thread alone; another thread gets an exception of the class. */
static void raise_later(PyObject *error)
{
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *main_thread =
        threading != NULL ? PyObject_CallMethod(threading, "main_thread", NULL) : NULL;
    PyObject *ident = main_thread != NULL ? PyObject_GetAttrString(main_thread, "ident") : NULL;
    const unsigned long me = PyThread_get_thread_ident();
    bool is_main = ident == NULL || PyLong_AsUnsignedLong(ident) == me;
    PyErr_Clear();
    if (!is_main)
        (void)PyThreadState_SetAsyncExc(me, (PyObject *)Py_TYPE(error));
    else if (Py_AddPendingCall(raise_again, Py_NewRef(error)) != 0)
        Py_DECREF(error);
    Py_XDECREF(ident);
    Py_XDECREF(main_thread);
    Py_XDECREF(threading);
}

bool ext_pass_on(PyObject *error)
{
    if (PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt)) {
        PyErr_SetInterrupt();
        return true;
    }
    if (!is_alien(error))
        return false;
    raise_later(error);
    return true;
}
