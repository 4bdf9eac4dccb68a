/* SPDX-License-Identifier: MIT
 *
 * ext_op: an object that dumps the calls of a function of the framework, and the gradients of its
 * results.
 *
 * The calls of a watched function come here (see ext_watch.c). A function that cannot be watched is
 * replaced by the object, which binds like a function where the function was a method. While nothing
 * is collected it only passes the call on.
 */
#include "probe/python/ext.h"

#include "probe/base/mem.h"

#include <structmember.h>

struct op {
    PyObject_HEAD vectorcallfunc call;
    PyObject *func;
    PyObject *dict;
    PyObject *probability; /* keyword that, when 0, makes the function the identity: no backward */
    PyObject *owner; /* of a method that is called as owner.method(): NULL, a class, or an object */
    bool is_of_class;
    char *prefix, *name;
    uint32_t mask_in, mask_out; /* bit per value not to be read: buffers before they are filled */
};

/* ---- the gradients ---------------------------------------------------- */

/* Hook on a result; the framework's engine calls it when the node of the result has run. */
struct back {
    PyObject_HEAD vectorcallfunc call;
    PyObject *op;
    int64_t number;
    unsigned epoch;
};

static PyObject *back_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const struct back *b = (struct back *)self;
    const struct op *op = (struct op *)b->op;
    (void)kwnames;
    if (PyVectorcall_NARGS(nargsf) < 2 || !probe__may_enter(ext_dumper, PROBE__OP) ||
        b->epoch != probe__epoch(ext_dumper))
        Py_RETURN_NONE;
    ext_leave_calls();
    struct probe_call *c =
        probe__enter(ext_dumper, &(struct probe__entry){.kind = PROBE__OP,
                                                        .dir = PROBE_BACKWARD,
                                                        .prefix = op->prefix,
                                                        .name = op->name,
                                                        .number = b->number,
                                                        .is_loose = !ext_has_module_backward});
    struct ext_guard guard = ext_quiet(false);
    if (probe__call_has(c, PROBE_SEC_INPUT) && PyTuple_Check(args[1]))
        ext_put_tuple(c, PROBE_SEC_INPUT, args[1], 0);
    if (probe__call_has(c, PROBE_SEC_OUTPUT) && PyTuple_Check(args[0]))
        ext_put_tuple(c, PROBE_SEC_OUTPUT, args[0], 0);
    if (PyErr_Occurred())
        ext_swallow("the gradient of a function");
    ext_loud(guard);
    probe_call_exit(c);
    ext_settle_if_many();
    Py_RETURN_NONE;
}

static void back_dealloc(PyObject *self)
{
    Py_XDECREF(((struct back *)self)->op);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject ext_back_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msprobe._probe.Backward",
                              .tp_basicsize = sizeof(struct back),
                              .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                              .tp_vectorcall_offset = offsetof(struct back, call),
                              .tp_call = PyVectorcall_Call,
                              .tp_dealloc = back_dealloc};

/* Returns the first tensor in a result; borrowed. */
static PyObject *first_tensor(PyObject *v)
{
    while (!ext_is_tensor(v)) {
        if (PyTuple_Check(v) && PyTuple_GET_SIZE(v) != 0) {
            v = PyTuple_GET_ITEM(v, 0);
        } else if (PyList_Check(v) && PyList_GET_SIZE(v) != 0) {
            v = PyList_GET_ITEM(v, 0);
        } else {
            return NULL;
        }
    }
    return v;
}

static bool is_zero(PyObject *v)
{
    bool zero = (PyFloat_Check(v) && PyFloat_AS_DOUBLE(v) == 0) ||
                (PyLong_Check(v) && PyObject_IsTrue(v) == 0);
    PyErr_Clear();
    return zero;
}

/* Tells whether the call is the identity: a dropout with probability 0 has no backward. */
static bool does_nothing(const struct op *op, PyObject *const *args, Py_ssize_t n,
                         PyObject *kwnames)
{
    if (op->probability == NULL)
        return false;
    if (n >= 2)
        return is_zero(args[1]);
    for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(kwnames, i), op->probability) == 0)
            return is_zero(args[n + i]);
    }
    return false;
}

static PyObject *new_back(PyObject *op, int64_t number)
{
    struct back *b = PyObject_New(struct back, &ext_back_type);
    if (b == NULL)
        return NULL;
    b->call = back_call;
    b->op = Py_NewRef(op);
    b->number = number;
    b->epoch = probe__epoch(ext_dumper);
    return (PyObject *)b;
}

static void watch_gradient(PyObject *op, PyObject *result, int64_t number)
{
    PyObject *t =
        ext_dumper != NULL && ext_fw.get[EXT_GRAD_FN] != NULL ? first_tensor(result) : NULL;
    if (t == NULL || !ext_get_bool(EXT_REQUIRES_GRAD, t) || !ext_is_yes(ext_fw.grad_mode, NULL))
        return;
    PyObject *node = ext_get(EXT_GRAD_FN, t);
    PyObject *back = node != NULL && node != Py_None ? new_back(op, number) : NULL;
    if (back != NULL)
        Py_XDECREF(PyObject_CallMethod(node, "register_hook", "O", back));
    if (PyErr_Occurred())
        ext_swallow("the gradient of a function");
    Py_XDECREF(back);
    Py_XDECREF(node);
}

/* ---- the call --------------------------------------------------------- */

/* Tells whether the call is one that is recorded: of a method, only its owner's. An object is compared
 * by its address, as it may have died. */
static bool is_of_owner(const struct op *op, PyObject *const *args, Py_ssize_t n)
{
    if (op->owner == NULL)
        return true;
    if (n == 0 || !op->is_of_class)
        return n != 0 && args[0] == op->owner;
    return PyType_Check(args[0]) &&
           PyType_IsSubtype((PyTypeObject *)args[0], (PyTypeObject *)op->owner);
}

static void put_inputs(const struct op *op, struct probe_call *c, PyObject *const *args,
                       Py_ssize_t n, PyObject *kwnames)
{
    if (!probe__call_has(c, PROBE_SEC_INPUT_ARGS))
        return;
    const Py_ssize_t first = op->owner != NULL ? 1 : 0;
    ext_put_list(c, PROBE_SEC_INPUT_ARGS, args + first, n - first, op->mask_in);
    if (kwnames == NULL || PyTuple_GET_SIZE(kwnames) == 0)
        return;
    struct probe__record *r = probe__call_part(c, PROBE_SEC_INPUT_KWARGS);
    for (Py_ssize_t i = 0; r != NULL && i < PyTuple_GET_SIZE(kwnames); i++)
        ext_put_value(c, r, PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, i)), args[n + i]);
}

/* Runs the call inside the framework's own watcher of gradients. */
static PyObject *run_watched(const struct op *op, int64_t number, PyObject *const *args,
                             Py_ssize_t n, PyObject *kwnames)
{
    PyObject *positional = PyTuple_New(n), *named = PyDict_New(), *result = NULL;
    for (Py_ssize_t i = 0; positional != NULL && i < n; i++)
        PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
    Py_ssize_t nkw = named != NULL && kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;
    bool ok = positional != NULL && named != NULL;
    for (Py_ssize_t i = 0; ok && i < nkw; i++)
        ok = PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), args[n + i]) == 0;
    if (ok)
        result = PyObject_CallFunction(ext_fw.watched_call, "OssLOO", op->func, op->prefix,
                                       op->name, (long long)number, positional, named);
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return result;
}

static PyObject *run_recorded(const struct op *op, const struct probe_call *c,
                              PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    int64_t number = c != NULL ? probe_call_number(c) : -1;
    bool is_watched = ext_fw.watched_call != NULL && number >= 0 &&
                      ext_is_yes(ext_fw.grad_mode, NULL) && !does_nothing(op, args, n, kwnames);
    return is_watched ? run_watched(op, number, args, n, kwnames)
                      : ext_real_of(op->func)(op->func, args, nargsf, kwnames);
}

/* Records the result of a call, and has its gradient recorded. */
static void end_call(PyObject *self, struct probe_call *c, PyObject *result, bool has_backward)
{
    struct ext_guard guard = ext_quiet(false);
    if (probe__call_has(c, PROBE_SEC_OUTPUT))
        ext_put_result(c, result, ((struct op *)self)->mask_out);
    if (PyErr_Occurred())
        ext_swallow("the result of a function");
    int64_t number = probe_call_number(c);
    probe_call_exit(c);
    if (number >= 0 && has_backward)
        watch_gradient(self, result, number);
    ext_loud(guard);
    ext_settle_if_many();
}

static PyObject *op_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const struct op *op = (struct op *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (!probe__may_enter(ext_dumper, PROBE__OP) || ext_is_tracing() || !is_of_owner(op, args, n))
        return ext_real_of(op->func)(op->func, args, nargsf, kwnames);
    ext_begin_call();
    struct probe_call *c =
        probe__enter(ext_dumper, &(struct probe__entry){.kind = PROBE__OP,
                                                        .dir = PROBE_FORWARD,
                                                        .prefix = op->prefix,
                                                        .name = op->name,
                                                        .place = ext_function_place(op->prefix)});
    struct ext_guard guard = ext_quiet(false);
    put_inputs(op, c, args, n, kwnames);
    if (PyErr_Occurred())
        ext_swallow("the inputs of a function");
    ext_loud(guard);
    const struct ext_held_call held = ext_hold_call(c);
    PyObject *result = run_recorded(op, c, args, nargsf, kwnames);
    if (c != NULL &&
        ext_open_call(&held) == NULL) /* another thread has ended the step, or the program */
        return result;
    if (result == NULL) {
        probe__call_fail(c);
        return NULL;
    }
    end_call(self, c, result, !does_nothing(op, args, n, kwnames));
    return result;
}

/* ---- the object ------------------------------------------------------- */

static PyObject *op_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char names[][12] = {"func",     "prefix",      "name", "mask_in",
                               "mask_out", "probability", "owner"};
    char *list[] = {names[0], names[1], names[2], names[3], names[4], names[5], names[6], NULL};
    PyObject *func, *probability = NULL, *owner = Py_None;
    const char *prefix, *name;
    unsigned in = 0, out = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "Oss|IIOO", list, &func, &prefix, &name, &in, &out,
                                     &probability, &owner))
        return NULL;
    struct op *op = (struct op *)type->tp_alloc(type, 0);
    if (op == NULL)
        return NULL;
    op->call = op_call;
    op->func = Py_NewRef(func);
    op->prefix = ms_str_dup(ms_str_of(prefix));
    op->name = ms_str_dup(ms_str_of(name));
    op->mask_in = in;
    op->mask_out = out;
    op->probability = probability != Py_None ? Py_XNewRef(probability) : NULL;
    op->owner = owner != Py_None ? owner : NULL;
    op->is_of_class = PyType_Check(owner) != 0;
    if (op->is_of_class)
        Py_INCREF(owner);
    if (op->prefix != NULL && op->name != NULL)
        return (PyObject *)op;
    Py_DECREF(op);
    return PyErr_NoMemory();
}

static int op_traverse(PyObject *self, visitproc visit, void *arg)
{
    const struct op *op = (struct op *)self;
    Py_VISIT(op->func);
    Py_VISIT(op->dict);
    Py_VISIT(op->probability);
    return 0;
}

static int op_clear(PyObject *self)
{
    struct op *op = (struct op *)self;
    Py_CLEAR(op->func);
    Py_CLEAR(op->dict);
    Py_CLEAR(op->probability);
    return 0;
}

static void op_dealloc(PyObject *self)
{
    struct op *op = (struct op *)self;
    PyObject_GC_UnTrack(self);
    op_clear(self);
    if (op->is_of_class)
        Py_DECREF(op->owner);
    ms_free(op->prefix);
    ms_free(op->name);
    Py_TYPE(self)->tp_free(self);
}

/* Binds like a Python function when taken from an object. */
static PyObject *op_bind(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

/* Hashes and compares like the function. */
static Py_hash_t op_hash(PyObject *self)
{
    return PyObject_Hash(((struct op *)self)->func);
}

static bool is_op(PyObject *v)
{
    return Py_TYPE(v) == &ext_op_type || Py_TYPE(v) == &ext_fn_type;
}

static PyObject *func_of(PyObject *v)
{
    return is_op(v) ? ((struct op *)v)->func : v;
}

static PyObject *op_compare(PyObject *a, PyObject *b, int how)
{
    if (how != Py_EQ && how != Py_NE)
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((func_of(a) == func_of(b)) == (how == Py_EQ));
}

/* Forwards all other attributes to the function. */
static PyObject *op_getattr(PyObject *self, PyObject *name)
{
    PyObject *v = PyObject_GenericGetAttr(self, name);
    if (v != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return v;
    PyErr_Clear();
    return PyObject_GetAttr(((struct op *)self)->func, name);
}

/* Copies and pickles as the function's name. */
static PyObject *op_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(((struct op *)self)->func, "__name__");
}

static PyObject *op_doc(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *doc = PyObject_GetAttrString(((struct op *)self)->func, "__doc__");
    if (doc != NULL)
        return doc;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyObject *op_module(PyObject *self, void *unused)
{
    (void)unused;
    return PyObject_GetAttrString(((struct op *)self)->func, "__module__");
}

static PyObject *op_repr(PyObject *self)
{
    return PyObject_Repr(((struct op *)self)->func);
}

static PyMemberDef op_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(struct op, func), READONLY, NULL}, {0}};
static PyMethodDef op_methods[] = {{"__reduce__", op_reduce, METH_NOARGS, NULL}, {0}};
static PyGetSetDef op_getset[] = {
    {"__doc__", op_doc, NULL, NULL, NULL}, {"__module__", op_module, NULL, NULL, NULL}, {0}};

/* Python functions bind to an object and C functions do not; each wrapper type does as its
 * function. */
/* clang-format off */
#define OP_TYPE(title, flags, bind)                                                                \
    {                                                                                              \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = title,                                            \
        .tp_doc = "A function with a dump around it.",                                             \
        .tp_basicsize = sizeof(struct op),                                                         \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | (flags), \
        .tp_vectorcall_offset = offsetof(struct op, call),                                         \
        .tp_call = PyVectorcall_Call,                                                              \
        .tp_new = op_new,                                                                          \
        .tp_dealloc = op_dealloc,                                                                  \
        .tp_traverse = op_traverse,                                                                \
        .tp_clear = op_clear,                                                                      \
        .tp_descr_get = (bind),                                                                    \
        .tp_getattro = op_getattr,                                                                 \
        .tp_setattro = PyObject_GenericSetAttr,                                                    \
        .tp_dictoffset = offsetof(struct op, dict),                                                \
        .tp_repr = op_repr,                                                                        \
        .tp_hash = op_hash,                                                                        \
        .tp_richcompare = op_compare,                                                              \
        .tp_members = op_members,                                                                  \
        .tp_methods = op_methods,                                                                  \
        .tp_getset = op_getset                                                                     \
    }
/* clang-format on */
PyTypeObject ext_op_type = OP_TYPE("msprobe._probe.Op", Py_TPFLAGS_METHOD_DESCRIPTOR, op_bind);
PyTypeObject ext_fn_type = OP_TYPE("msprobe._probe.Fn", 0, NULL);
