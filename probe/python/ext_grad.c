/* SPDX-License-Identifier: MIT
 *
 * ext_grad: gradients of a module's own parameters, one record for all of them;
 * of a module that has been called, as others are in no graph.
 * Each is written when it has been made; the record is whole when all are, when
 * the round begins again, or when collecting stops.
 */
#include "probe/python/ext.h"

#include <structmember.h>

struct grads {
    PyObject_HEAD struct grads *next; /* in the list of those with an open record */
    struct probe_call *call;
    uint64_t uses;
    PyObject *hook; /* of the module */
    unsigned total, made;
    uint64_t is_made[4]; /* a bit per parameter */
};

enum { PARAMETERS_MAX = 256 };

/* One parameter: grad(...) when its gradient has been made. */
struct grad {
    PyObject_HEAD vectorcallfunc call;
    PyObject *grads, *parameter, *name, *attribute;
    unsigned index;
};

static struct grads *open_grads;

static void finish(struct grads *g)
{
    struct grads **at = &open_grads;
    while (*at != NULL && *at != g)
        at = &(*at)->next;
    if (*at == g)
        *at = g->next;
    if (g->call != NULL && probe__call_uses(g->call) == g->uses)
        probe_call_exit(g->call);
    g->call = NULL;
    g->made = 0;
    memset(g->is_made, 0, sizeof g->is_made);
}

void ext_finish_grads(void)
{
    while (open_grads != NULL)
        finish(open_grads);
}

static bool begin(struct grads *g)
{
    g->call = probe__begin_grads(ext_dumper, ext_hook_path(g->hook), ext_hook_class(g->hook));
    if (g->call == NULL)
        return false;
    g->uses = probe__call_uses(g->call);
    g->next = open_grads;
    open_grads = g;
    return true;
}

static void put_gradient(const struct grad *one, struct grads *g, PyObject *value)
{
    struct probe__record *r = probe__call_record(g->call);
    const char *name = PyUnicode_AsUTF8(one->name);
    probe__record_open(r, name, true);
    ext_put_value(g->call, r, NULL, value);
    probe__record_close(r, true);
    g->is_made[one->index / 64] |= UINT64_C(1) << one->index % 64;
    if (++g->made >= g->total)
        finish(g);
}

/* It lies in the parameter, or is what the hook is called with. */
static PyObject *gradient_of(const struct grad *one, PyObject *const *args, Py_ssize_t n)
{
    if (one->attribute != Py_None)
        return PyObject_GetAttr(one->parameter, one->attribute);
    return Py_NewRef(n != 0 ? args[0] : Py_None);
}

static PyObject *grad_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const struct grad *one = (struct grad *)self;
    struct grads *g = (struct grads *)one->grads;
    (void)kwnames;
    if (!ext_was_called(g->hook) || !probe__may_enter(ext_dumper, PROBE__MODULE))
        Py_RETURN_NONE;
    if (g->call != NULL && (g->is_made[one->index / 64] >> one->index % 64 & 1) != 0)
        finish(g);
    if (g->call == NULL && !begin(g))
        Py_RETURN_NONE;
    PyObject *value = gradient_of(one, args, PyVectorcall_NARGS(nargsf));
    if (value != NULL)
        put_gradient(one, g, value);
    if (PyErr_Occurred())
        ext_swallow("the gradient of a parameter");
    Py_XDECREF(value);
    ext_settle_if_many();
    Py_RETURN_NONE;
}

/* ---- the objects ------------------------------------------------------ */

static PyObject *grads_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *hook;
    unsigned total;
    (void)kw;
    if (!PyArg_ParseTuple(args, "O!I", &ext_hook_type, &hook, &total))
        return NULL;
    struct grads *g = (struct grads *)type->tp_alloc(type, 0);
    if (g == NULL)
        return NULL;
    g->hook = Py_NewRef(hook);
    g->total = total < PARAMETERS_MAX ? total : PARAMETERS_MAX;
    return (PyObject *)g;
}

static void grads_dealloc(PyObject *self)
{
    struct grads *g = (struct grads *)self;
    finish(g);
    Py_DECREF(g->hook);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject ext_grads_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msprobe._probe.Grads",
                               .tp_doc = "The record of a module's parameter gradients.",
                               .tp_basicsize = sizeof(struct grads),
                               .tp_flags = Py_TPFLAGS_DEFAULT,
                               .tp_new = grads_new,
                               .tp_dealloc = grads_dealloc};

static PyObject *grad_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *grads, *parameter, *name, *attribute;
    unsigned index;
    (void)kw;
    if (!PyArg_ParseTuple(args, "O!IUOO", &ext_grads_type, &grads, &index, &name, &parameter,
                          &attribute))
        return NULL;
    struct grad *one = (struct grad *)type->tp_alloc(type, 0);
    if (one == NULL)
        return NULL;
    one->call = grad_call;
    one->index = index % PARAMETERS_MAX;
    one->grads = Py_NewRef(grads);
    one->name = Py_NewRef(name);
    one->parameter = Py_NewRef(parameter);
    one->attribute = Py_NewRef(attribute);
    return (PyObject *)one;
}

static int grad_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((struct grad *)self)->parameter);
    return 0;
}

static int grad_clear(PyObject *self)
{
    Py_CLEAR(((struct grad *)self)->parameter);
    return 0;
}

static void grad_dealloc(PyObject *self)
{
    struct grad *one = (struct grad *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(one->grads);
    Py_XDECREF(one->name);
    Py_XDECREF(one->parameter);
    Py_XDECREF(one->attribute);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject ext_grad_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msprobe._probe.Grad",
                              .tp_doc = "Called when a parameter's gradient has been made.",
                              .tp_basicsize = sizeof(struct grad),
                              .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                          Py_TPFLAGS_HAVE_VECTORCALL,
                              .tp_vectorcall_offset = offsetof(struct grad, call),
                              .tp_call = PyVectorcall_Call,
                              .tp_new = grad_new,
                              .tp_dealloc = grad_dealloc,
                              .tp_traverse = grad_traverse,
                              .tp_clear = grad_clear};
