/* SPDX-License-Identifier: MIT
 *
 * ext_put: puts the hooks of a model's modules into their dicts of hooks at each start, and takes them
 * away at each stop. All modules are handled in one call, as a call for each costs more than the rest.
 */
#include "probe/python/ext.h"

/* A module has up to five dicts by the key of a hook. The last three exist in newer versions of the
 * framework only, and say how a hook is called. */
enum dict { BEFORE, AFTER, BEFORE_KWARGS, AFTER_KWARGS, AFTER_ALWAYS, DICTS };

/* One module: its reference, the hooks before and after it, and their keys. */
enum place { REFERENCE, HOOK_BEFORE, HOOK_AFTER, KEY_BEFORE, KEY_AFTER, PLACES };

static const enum place keys[DICTS] = {KEY_BEFORE, KEY_AFTER, KEY_BEFORE, KEY_AFTER, KEY_AFTER};

static PyObject *dict_of(PyObject *module, enum dict which)
{
    static const char *const texts[DICTS] = {
        "_forward_pre_hooks", "_forward_hooks", "_forward_pre_hooks_with_kwargs",
        "_forward_hooks_with_kwargs", "_forward_hooks_always_called"};
    static PyObject *names[DICTS];
    if (names[which] == NULL)
        names[which] = PyUnicode_InternFromString(texts[which]);
    return names[which] != NULL ? ext_attribute(module, names[which]) : NULL;
}

/* The hook after a module runs first of all hooks after it. */
static int move_to_front(PyObject *dict, PyObject *key)
{
    if (PyObject_Size(dict) <= 1)
        return PyErr_Occurred() != NULL ? -1 : 0;
    PyObject *done = PyObject_CallMethod(dict, "move_to_end", "OO", key, Py_False);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

static int put_into(PyObject *module, PyObject *const *at, enum dict which)
{
    PyObject *key = at[keys[which]], *dict = dict_of(module, which);
    PyObject *value = which == BEFORE ? at[HOOK_BEFORE] : which == AFTER ? at[HOOK_AFTER] : Py_True;
    int rc = dict != NULL ? PyObject_SetItem(dict, key, value) : -1;
    if (rc == 0 && which == AFTER)
        rc = move_to_front(dict, key);
    Py_XDECREF(dict);
    return rc;
}

/* The program may have removed the hook. */
static int take_from(PyObject *module, PyObject *const *at, enum dict which)
{
    PyObject *dict = dict_of(module, which);
    int rc = dict != NULL ? PyObject_DelItem(dict, at[keys[which]]) : -1;
    if (rc != 0 && PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Clear();
        rc = 0;
    }
    Py_XDECREF(dict);
    return rc;
}

typedef int each_dict(PyObject *module, PyObject *const *at, enum dict which);

static int for_module(PyObject *entry, long dicts, each_dict *each)
{
    PyObject *const *at = PySequence_Fast_ITEMS(entry);
    PyObject *module = ext_alive(at[REFERENCE]);
    int rc = 0;
    for (int which = 0; which < dicts && rc == 0 && module != NULL; which++)
        rc = each(module, at, (enum dict)which);
    Py_XDECREF(module);
    return rc;
}

/* Calls `each` for each dict of each module; args are a list of tuples, and the number of dicts. */
static PyObject *for_modules(PyObject *args, each_dict *each)
{
    PyObject *list;
    long dicts;
    if (!PyArg_ParseTuple(args, "O!l", &PyList_Type, &list, &dicts))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *entry = PyList_GET_ITEM(list, i);
        if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != PLACES || dicts > DICTS ||
            !PyWeakref_Check(PyTuple_GET_ITEM(entry, REFERENCE)))
            return PyErr_Format(PyExc_TypeError, "hooks: expected tuples of %d", PLACES);
        if (for_module(entry, dicts, each) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *put_hooks(PyObject *module, PyObject *args)
{
    (void)module;
    return for_modules(args, put_into);
}

static PyObject *take_hooks(PyObject *module, PyObject *args)
{
    (void)module;
    return for_modules(args, take_from);
}

PyMethodDef ext_put_functions[] = {
    {"put_hooks", put_hooks, METH_VARARGS,
     "put_hooks([(reference, before, after, key, key)], number of dicts)"},
    {"take_hooks", take_hooks, METH_VARARGS, "take_hooks: as put_hooks"},
    {0}};
