/* SPDX-License-Identifier: MIT
 *
 * ext_quiet: calls of the framework that the program does not see.
 *
 * A program may have modes, objects that the framework asks about each call, even about the shape of
 * a tensor. While the C half or the adapter reads tensors, the modes are out of the way. Programs
 * rarely have any, so a question to the framework, some 30 ns, comes first.
 */
#include "probe/python/ext.h"

static bool is_yes(PyObject *question)
{
    PyObject *v = question != NULL ? PyObject_CallNoArgs(question) : NULL;
    bool yes = v != NULL && PyObject_IsTrue(v) == 1;
    PyErr_Clear();
    Py_XDECREF(v);
    return yes;
}

static PyObject *quiet(void)
{
    PyObject *guard = PyObject_CallNoArgs(ext_fw.quiet);
    if (guard == NULL)
        ext_swallow("the modes of the program");
    return guard;
}

PyObject *ext_quiet(void)
{
    return is_yes(ext_fw.function_modes) ? quiet() : NULL;
}

void ext_loud(PyObject *guard)
{
    PyObject *type, *value, *trace;
    if (guard == NULL)
        return;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = PyObject_CallMethod(guard, "end", NULL);
    if (done == NULL)
        ext_swallow("the modes of the program");
    Py_XDECREF(done);
    Py_DECREF(guard);
    PyErr_Restore(type, value, trace);
}

PyObject *ext_ask(PyObject *func, PyObject *const *args, size_t n)
{
    bool has_modes = is_yes(ext_fw.function_modes) || is_yes(ext_fw.dispatch_modes);
    PyObject *guard = has_modes ? quiet() : NULL;
    probe__hide(ext_dumper, 1);
    PyObject *result = PyObject_Vectorcall(func, args, n, NULL);
    probe__hide(ext_dumper, -1);
    ext_loud(guard);
    return result;
}
