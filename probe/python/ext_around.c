/* SPDX-License-Identifier: MIT
 *
 * ext_around: calls of watched functions that go by way of a function of the adapter, around(func, args, kwargs).
 *
 *     program ─► func ─► around ─► past() ─► func itself
 *
 * The call comes to what it would come to without us, whatever fails in around: before past() the function is called
 * here, with the arguments that it was given; behind it the result, or the exception, that it gave counts. So each
 * such call has a record of how far it came. Records lie in a list for each thread and not on the stack, since
 * greenlets of a program copy their stacks away.
 */
#include "probe/python/ext.h"

/* ---- arguments ------------------------------------------------------ */

PyObject *ext_dict_of(PyObject *const *values, PyObject *names)
{
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; dict != NULL && i < PyTuple_GET_SIZE(names); i++) {
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), values[i]) != 0)
            Py_CLEAR(dict);
    }
    return dict;
}

PyObject *ext_tuple_of(PyObject *const *values, Py_ssize_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple != NULL && i < n; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(values[i]));
    return tuple;
}

PyObject **ext_room_for(Py_ssize_t n)
{
    return PyMem_Malloc((size_t)n * sizeof(PyObject *));
}

/* ---- how far a call came --------------------------------------------- */

enum how { NOT_YET, UNDER_WAY, RETURNED, RAISED };

struct ext_passing {
    PyObject *func, *args; /* borrowed, alive while the call goes on */
    enum how how;
    PyObject *outcome; /* what it returned or raised; NULL before */
    struct ext_passing *next;
};
static _Thread_local struct ext_passing *passing;

/* Returns NULL when there is no memory. */
static struct ext_passing *begin(PyObject *func, PyObject *args)
{
    struct ext_passing *p = PyMem_RawMalloc(sizeof *p);
    if (p == NULL)
        return NULL;
    *p = (struct ext_passing){.func = func, .args = args, .next = passing};
    passing = p;
    return p;
}

static void leave(const struct ext_passing *p)
{
    struct ext_passing **at = &passing;
    while (*at != NULL && *at != p)
        at = &(*at)->next;
    if (*at != NULL)
        *at = p->next;
}

/* Finds the call that past() goes on with: by its arguments, or, when around passes other ones, the newest of the
 * function. */
static struct ext_passing *find(PyObject *func, PyObject *args)
{
    struct ext_passing *newest = NULL;
    for (struct ext_passing *p = passing; p != NULL; p = p->next) {
        if (p->func != func || p->how != NOT_YET)
            continue;
        if (p->args == args)
            return p;
        newest = newest == NULL ? p : newest;
    }
    return newest;
}

/* Returns the exception that is raised, as a new reference, and leaves it raised. */
static PyObject *raised(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value != NULL && trace != NULL)
        PyException_SetTraceback(value, trace);
    PyObject *error = Py_XNewRef(value);
    PyErr_Restore(type, value, trace);
    return error;
}

struct ext_passing *ext_pass(PyObject *func, PyObject *args)
{
    struct ext_passing *p = find(func, args);
    if (p != NULL)
        p->how = UNDER_WAY;
    return p;
}

void ext_has_passed(struct ext_passing *p, PyObject *result)
{
    if (p == NULL)
        return;
    p->how = result != NULL ? RETURNED : RAISED;
    p->outcome = result != NULL ? Py_NewRef(result) : raised();
}

/* Raises an exception in the place of another one, which was ours. */
static void raise_instead(PyObject *error)
{
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(error)), Py_NewRef(error),
                  PyException_GetTraceback(error));
}

/* ---- the call ------------------------------------------------------------ */

/* What the call comes to after around has raised. */
static PyObject *after_failure(const struct ext_passing *p, vectorcallfunc real,
                               PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    static const char where[] = "what stands around a function";
    if (p->how == NOT_YET) {
        ext_fail(where);
        return real(p->func, args, nargsf, kwnames);
    }
    if (p->how == RETURNED) {
        ext_fail(where);
        return Py_NewRef(p->outcome);
    }
    PyObject *now = p->how == RAISED ? raised() : NULL;
    if (now != NULL && p->outcome != NULL && now != p->outcome) {
        ext_fail(where);
        raise_instead(p->outcome);
    }
    Py_XDECREF(now);
    return NULL;
}

PyObject *ext_call_around(PyObject *around, PyObject *func, vectorcallfunc real,
                          PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyObject *tuple = ext_tuple_of(args, n);
    PyObject *dict = kwnames != NULL ? ext_dict_of(args + n, kwnames) : PyDict_New();
    struct ext_passing *p = tuple != NULL && dict != NULL ? begin(func, tuple) : NULL;
    PyObject *values[] = {func, tuple, dict}, *result;
    if (p != NULL) {
        result = PyObject_Vectorcall(around, values, 3, NULL);
        leave(p);
        result = result != NULL ? result : after_failure(p, real, args, nargsf, kwnames);
        Py_XDECREF(p->outcome);
        PyMem_RawFree(p);
    } else { /* memory is used up: the call goes on without a record */
        PyErr_Clear();
        result = real(func, args, nargsf, kwnames);
    }
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    return result;
}
