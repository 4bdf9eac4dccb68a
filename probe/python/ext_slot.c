/* SPDX-License-Identifier: MIT
 *
 * ext_slot: what the framework's tensors do for x[i] = y, -x and abs(x).
 *
 * Python finds these functions in slots of the type of x, not by a name, and each subtype has a copy
 * of the pointers. While calls are collected, the slots point to functions of this file, and so does
 * the slot wrapper __setitem__, for calls by name. Attributes of the types stay the same objects.
 *
 * Assignments are recorded. Operators whose method is a watched function, as -x is x.neg(), call the
 * function itself: only calls by name are recorded.
 */
#include "probe/python/ext.h"

struct slot {
    const char *name;
    size_t at;          /* offset in the methods of a number, or of a mapping */
    void *ours;         /* the function of this file */
    void *was;          /* the function that the framework's type had; NULL: not watched */
    PyTypeObject *type; /* the framework's type; its subtypes have copies */
    PyObject *func;     /* the slot wrapper, or the method that an operator calls */
    PyObject *key;      /* the name, interned */
    PyObject *op;       /* records an assignment */
};

static int set_item(PyObject *x, PyObject *key, PyObject *value);
static PyObject *negative(PyObject *x);
static PyObject *absolute(PyObject *x);

enum { SET_ITEM, NEGATIVE, ABSOLUTE, SLOTS };
static struct slot slots[SLOTS] = {
    [SET_ITEM] = {.name = "__setitem__",
                  .at = offsetof(PyMappingMethods, mp_ass_subscript),
                  .ours = (void *)set_item},
    [NEGATIVE] = {.name = "__neg__",
                  .at = offsetof(PyNumberMethods, nb_negative),
                  .ours = (void *)negative},
    [ABSOLUTE] = {.name = "__abs__",
                  .at = offsetof(PyNumberMethods, nb_absolute),
                  .ours = (void *)absolute},
};

/* Tells what a call of a watched function does without being recorded. */
static vectorcallfunc (*real_of)(PyObject *func);

void ext_slot_ready(vectorcallfunc (*given)(PyObject *func))
{
    real_of = given;
}

/* ---- calls ------------------------------------------------------------ */

static int set_item(PyObject *x, PyObject *key, PyObject *value)
{
    const struct slot *s = &slots[SET_ITEM];
    if (value == NULL) /* del x[key] */
        return ((objobjargproc)s->was)(x, key, value);
    PyObject *args[] = {x, key, value};
    PyObject *result = PyObject_Vectorcall(s->op, args, 3, NULL);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

/* Calls the framework's own function for an assignment. */
static PyObject *call_set_item(PyObject *func, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames)
{
    if (PyVectorcall_NARGS(nargsf) != 3 || kwnames != NULL) /* raises */
        return PyObject_Vectorcall(func, args, nargsf, kwnames);
    int rc = ((objobjargproc)slots[SET_ITEM].was)(args[0], args[1], args[2]);
    return rc == 0 ? Py_NewRef(Py_None) : NULL;
}

vectorcallfunc ext_slot_real(PyObject *func)
{
    return func == slots[SET_ITEM].func ? call_set_item : PyObject_Vectorcall;
}

/* Calls the operator's method past its recorder, unless a subtype has a method of its own. */
static PyObject *call_operator(const struct slot *s, PyObject *x)
{
    bool is_own = _PyType_Lookup(Py_TYPE(x), s->key) != s->func;
    return !is_own ? real_of(s->func)(s->func, &x, 1, NULL) : ((unaryfunc)s->was)(x);
}

static PyObject *negative(PyObject *x)
{
    return call_operator(&slots[NEGATIVE], x);
}

static PyObject *absolute(PyObject *x)
{
    return call_operator(&slots[ABSOLUTE], x);
}

/* ---- the slots of all types ------------------------------------------- */

static void **pointer_in(const PyTypeObject *type, const struct slot *s)
{
    void *methods =
        s == &slots[SET_ITEM] ? (void *)type->tp_as_mapping : (void *)type->tp_as_number;
    return methods != NULL ? (void **)((char *)methods + s->at) : NULL;
}

static void *one_of(const struct slot *s, bool is_ours)
{
    return is_ours ? s->ours : s->was;
}

/* Replaces the pointers of the root's slots in one type: by those of this file, or back. */
static void replace_in(const PyTypeObject *type, const PyTypeObject *root, bool is_on)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct slot *s = &slots[i];
        void **at = s->type == root ? pointer_in(type, s) : NULL;
        if (at != NULL && *at == one_of(s, !is_on))
            *at = one_of(s, is_on);
    }
}

/* Returns the dict of a type's direct subtypes, NULL where it has none. Its values are weak references.
 * Python's own static types keep theirs elsewhere; they are no subtypes of a framework's. */
static PyObject *subtypes_of(const PyTypeObject *type)
{
    PyObject *dict = (PyObject *)type->tp_subclasses;
    return dict != NULL && PyDict_Check(dict) ? dict : NULL;
}

/* Replaces the pointers in the root, and in all types below it. A step switches twice, and a list of the subtypes, as
 * __subclasses__ makes it, cost 90,000 instructions each time with PyTorch 2.15. */
static void replace_in_all(const PyTypeObject *type, const PyTypeObject *root, bool is_on)
{
    PyObject *dict = subtypes_of(type), *number, *reference;
    Py_ssize_t at = 0;
    replace_in(type, root, is_on);
    while (dict != NULL && PyDict_Next(dict, &at, &number, &reference)) {
        PyObject *sub = ext_alive(reference);
        if (sub != NULL)
            replace_in_all((PyTypeObject *)sub, root, is_on);
        Py_XDECREF(sub);
    }
}

/* Replaces the function of a slot wrapper. That of __delitem__ is the same, and a class defined
 * meanwhile gets the slot only where both agree. */
static void replace_in_wrapper(const struct slot *s, const char *name, bool is_on)
{
    PyObject *wrapper = PyDict_GetItemString(s->type->tp_dict, name);
    bool is_it = wrapper != NULL && Py_IS_TYPE(wrapper, &PyWrapperDescr_Type) &&
                 ((PyWrapperDescrObject *)wrapper)->d_wrapped == one_of(s, !is_on);
    if (is_it)
        ((PyWrapperDescrObject *)wrapper)->d_wrapped = one_of(s, is_on);
}

void ext_slot_watching(bool is_on)
{
    const struct slot *item = &slots[SET_ITEM];
    for (unsigned i = 0; i < SLOTS; i++) {
        const PyTypeObject *root = slots[i].type;
        if (root != NULL && (i == 0 || root != slots[i - 1].type))
            replace_in_all(root, root, is_on);
    }
    if (item->was != NULL) {
        replace_in_wrapper(item, "__setitem__", is_on);
        replace_in_wrapper(item, "__delitem__", is_on);
    }
}

static bool watch(struct slot *s, PyTypeObject *type, PyObject *func, PyObject *op)
{
#ifdef Py_GIL_DISABLED
    return false;
#endif
    void **at = pointer_in(type, s);
    if (s->was != NULL || at == NULL || *at == NULL)
        return false;
    s->key = PyUnicode_InternFromString(s->name);
    if (s->key == NULL)
        return false;
    s->type = (PyTypeObject *)Py_NewRef(type);
    s->func = Py_NewRef(func);
    s->op = Py_XNewRef(op);
    s->was = *at;
    return true;
}

bool ext_slot_watch(PyObject *func, PyObject *op)
{
    struct slot *s = &slots[SET_ITEM];
    return Py_IS_TYPE(func, &PyWrapperDescr_Type) &&
           strcmp(((PyWrapperDescrObject *)func)->d_base->name, s->name) == 0 &&
           watch(s, PyDescr_TYPE(func), func, op);
}

/* spare_operator(type, name) -> bool: the operator is not recorded as a call of its method */
PyObject *ext_slot_spare(PyObject *module, PyObject *args)
{
    PyObject *type;
    const char *name;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!s", &PyType_Type, &type, &name))
        return NULL;
    PyObject *func = PyObject_GetAttrString(type, name);
    bool is_spared = false;
    for (unsigned i = NEGATIVE; func != NULL && i < SLOTS; i++)
        is_spared |=
            strcmp(slots[i].name, name) == 0 && watch(&slots[i], (PyTypeObject *)type, func, NULL);
    Py_XDECREF(func);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(is_spared);
}
