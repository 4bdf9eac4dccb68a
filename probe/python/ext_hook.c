/* SPDX-License-Identifier: MIT
 *
 * ext_hook: the hooks before and after a module of a model, and after gradients of parameters.
 *
 * The hook before enters the call, tagged with the hook object, and the hook after finds the call
 * by this tag. So a module may call itself, run on several threads, or never return.
 *
 * Gradients of a module's own parameters form one record, written only for modules that have been
 * called, since others are not in the graph. Each gradient is added when it has been computed; the
 * record is complete when all are in, when the next round begins, or when collecting stops.
 */
#include "probe/python/ext.h"

#include "probe/base/mem.h"

#include <structmember.h>

/* before: hook(module, args[, kwargs]) */
struct hook {
    PyObject_HEAD vectorcallfunc call;
    PyObject *backward; /* None, or the watcher of gradients: see msprobe/pytorch/_modules.py */
    char *path, *class_name;
    char takes_kwargs; /* both hooks get keyword arguments */
    char was_called;   /* while collecting */
};

/* after(module, args[, kwargs], result) */
struct after {
    PyObject_HEAD vectorcallfunc call;
    PyObject *hook;
};

/* ---- before ----------------------------------------------------------- */

enum moment { BEFORE, AFTER, MOMENTS };

/* Calls the method of the watcher for a moment; their names are made once. */
static PyObject *ask_backward(struct hook *h, enum moment when, PyObject *module, PyObject *values,
                              int64_t number)
{
    static const char *const texts[MOMENTS] = {"before", "after"};
    static PyObject *names[MOMENTS];
    if (names[when] == NULL)
        names[when] = PyUnicode_InternFromString(texts[when]);
    PyObject *method = names[when] != NULL ? PyObject_GetAttr(h->backward, names[when]) : NULL;
    PyObject *n = method != NULL ? PyLong_FromLongLong(number) : NULL;
    PyObject *args[] = {(PyObject *)h, module, values, n};
    PyObject *result = n != NULL ? ext_ask(method, args, 4) : NULL;
    Py_XDECREF(n);
    Py_XDECREF(method);
    return result;
}

/* Calls the watcher before the module runs. MindSpore's watcher replaces the inputs by tensors
 * of equal elements; PyTorch's returns None. */
static PyObject *watch_inputs(struct hook *h, struct probe_call *c, PyObject *const *args,
                              Py_ssize_t n)
{
    PyObject *inputs = ask_backward(h, BEFORE, args[0], args[1], probe_call_number(c));
    if (inputs == NULL) {
        ext_fail("the gradients of a module's inputs");
        Py_RETURN_NONE;
    }
    if (inputs == Py_None || !h->takes_kwargs || n < 3)
        return inputs;
    PyObject *both = PyTuple_Pack(2, inputs, args[2]);
    Py_DECREF(inputs);
    return both;
}

static void put_inputs(const struct hook *h, struct probe_call *c, PyObject *const *args,
                       Py_ssize_t n)
{
    if (!probe__call_has(c, PROBE_SEC_INPUT_ARGS))
        return;
    PyObject *guard = ext_quiet(false);
    if (PyTuple_Check(args[1]))
        ext_put_tuple(c, PROBE_SEC_INPUT_ARGS, args[1], 0);
    else
        ext_put_list(c, PROBE_SEC_INPUT_ARGS, &args[1], 1, 0);
    if (h->takes_kwargs && n >= 3 && PyDict_Check(args[2]))
        ext_put_dict(c, PROBE_SEC_INPUT_KWARGS, args[2]);
    if (PyErr_Occurred())
        ext_swallow("the inputs of a module");
    ext_loud(guard);
}

static PyObject *hook_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    struct hook *h = (struct hook *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    (void)kwnames;
    if (n < 2 || !probe__may_enter(ext_dumper, PROBE__MODULE))
        Py_RETURN_NONE;
    h->was_called = 1;
    ext_leave_calls();
    struct probe_call *c =
        probe__enter(ext_dumper, &(struct probe__entry){.kind = PROBE__MODULE,
                                                        .dir = PROBE_FORWARD,
                                                        .prefix = ext_fw.module_prefix,
                                                        .name = h->path,
                                                        .class_name = h->class_name,
                                                        .tag = h,
                                                        .place = ext_place()});
    if (c == NULL)
        Py_RETURN_NONE;
    put_inputs(h, c, args, n);
    if (h->backward != NULL && h->backward != Py_None)
        return watch_inputs(h, c, args, n);
    Py_RETURN_NONE;
}

/* ---- after ------------------------------------------------------------ */

static void put_parameters(struct probe_call *c, PyObject *module)
{
    PyObject *name, *value, *params;
    Py_ssize_t at = 0;
    if (!probe__call_has(c, PROBE_SEC_PARAMETERS))
        return;
    params = PyObject_GetAttr(module, ext_fw.parameters);
    struct probe__record *r = params != NULL && PyDict_Check(params) && PyDict_GET_SIZE(params) != 0
                                  ? probe__call_part(c, PROBE_SEC_PARAMETERS)
                                  : NULL;
    while (r != NULL && PyDict_Next(params, &at, &name, &value)) {
        const char *key = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
        if (value != Py_None && key != NULL)
            ext_put_value(c, r, key, value);
    }
    PyErr_Clear();
    Py_XDECREF(params);
}

static PyObject *watch_result(struct hook *h, PyObject *module, PyObject *result, long long number)
{
    PyObject *other = ask_backward(h, AFTER, module, result, number);
    if (other != NULL)
        return other;
    ext_fail("the gradients of a module's result");
    Py_RETURN_NONE;
}

/* Tells whether the module has raised. A framework may call the hook after a module all the
 * same, without a result. */
static bool has_raised(const PyObject *result)
{
    PyObject *type, *value, *trace;
    if (result != Py_None)
        return false;
    PyErr_GetExcInfo(&type, &value, &trace);
    bool is_handled = value != NULL && value != Py_None;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return is_handled;
}

static PyObject *after_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    struct hook *h = (struct hook *)((struct after *)self)->hook;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    struct probe_call *c = n >= 3 ? probe__open_module(ext_dumper, h) : NULL;
    (void)kwnames;
    if (c == NULL)
        Py_RETURN_NONE;
    PyObject *result = args[n - 1];
    if (has_raised(result)) {
        probe__call_fail(c);
        Py_RETURN_NONE;
    }
    PyObject *guard = ext_quiet(false);
    if (probe__call_has(c, PROBE_SEC_OUTPUT))
        ext_put_result(c, result, 0);
    put_parameters(c, args[0]);
    if (PyErr_Occurred())
        ext_swallow("the result of a module");
    ext_loud(guard);
    long long number = probe_call_number(c);
    probe_call_exit(c);
    ext_settle_if_many();
    if (h->backward != NULL && h->backward != Py_None)
        return watch_result(h, args[0], result, number);
    Py_RETURN_NONE;
}

/* ---- the objects ------------------------------------------------------ */

static PyObject *hook_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    const char *path, *class_name;
    int takes_kwargs = 0;
    (void)kw;
    if (!PyArg_ParseTuple(args, "ss|p", &path, &class_name, &takes_kwargs))
        return NULL;
    struct hook *h = (struct hook *)type->tp_alloc(type, 0);
    if (h == NULL)
        return NULL;
    h->call = hook_call;
    h->takes_kwargs = (char)takes_kwargs;
    h->path = ms_str_dup(ms_str_of(path));
    h->class_name = ms_str_dup(ms_str_of(class_name));
    if (h->path != NULL && h->class_name != NULL)
        return (PyObject *)h;
    Py_DECREF(h);
    return PyErr_NoMemory();
}

static void hook_dealloc(PyObject *self)
{
    struct hook *h = (struct hook *)self;
    Py_XDECREF(h->backward);
    ms_free(h->path);
    ms_free(h->class_name);
    Py_TYPE(self)->tp_free(self);
}

/* Returns the hook itself: a copy of a model keeps its hooks. */
static PyObject *hook_copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *hook_reduce(PyObject *self, PyObject *unused)
{
    const struct hook *h = (struct hook *)self;
    (void)unused;
    return Py_BuildValue("O(ssi)", (PyObject *)Py_TYPE(self), h->path, h->class_name,
                         (int)h->takes_kwargs);
}

static PyObject *hook_fail(PyObject *self, PyObject *unused)
{
    (void)unused;
    probe__call_fail(probe__open_module(ext_dumper, self));
    Py_RETURN_NONE;
}

static PyObject *hook_after(PyObject *self, void *unused)
{
    struct after *after = PyObject_New(struct after, &ext_after_type);
    (void)unused;
    if (after == NULL)
        return NULL;
    after->call = after_call;
    after->hook = Py_NewRef(self);
    return (PyObject *)after;
}

static PyGetSetDef hook_getset[] = {{"after", hook_after, NULL, NULL, NULL}, {0}};
static PyMemberDef hook_members[] = {
    {"backward", T_OBJECT, offsetof(struct hook, backward), 0, NULL},
    {"path", T_STRING, offsetof(struct hook, path), READONLY, NULL},
    {"class_name", T_STRING, offsetof(struct hook, class_name), READONLY, NULL},
    {0}};
static PyMethodDef hook_methods[] = {
    {"__deepcopy__", hook_copy, METH_O, NULL},
    {"__reduce__", hook_reduce, METH_NOARGS, NULL},
    {"fail", hook_fail, METH_NOARGS, "the module has raised: there will be no after"},
    {0}};

PyTypeObject ext_hook_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msprobe._probe.Hook",
                              .tp_doc = "Runs before a module; its .after runs after it.",
                              .tp_basicsize = sizeof(struct hook),
                              .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                              .tp_vectorcall_offset = offsetof(struct hook, call),
                              .tp_call = PyVectorcall_Call,
                              .tp_new = hook_new,
                              .tp_dealloc = hook_dealloc,
                              .tp_members = hook_members,
                              .tp_getset = hook_getset,
                              .tp_methods = hook_methods};

static PyObject *after_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("N(Os)", PyObject_GetAttrString(PyImport_AddModule("builtins"), "getattr"),
                         ((struct after *)self)->hook, "after");
}

static void after_dealloc(PyObject *self)
{
    Py_DECREF(((struct after *)self)->hook);
    PyObject_Free(self);
}

static PyMethodDef after_methods[] = {{"__deepcopy__", hook_copy, METH_O, NULL},
                                      {"__reduce__", after_reduce, METH_NOARGS, NULL},
                                      {0}};

PyTypeObject ext_after_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msprobe._probe.After",
                               .tp_basicsize = sizeof(struct after),
                               .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                               .tp_vectorcall_offset = offsetof(struct after, call),
                               .tp_call = PyVectorcall_Call,
                               .tp_dealloc = after_dealloc,
                               .tp_methods = after_methods};

/* ---- gradients of parameters ------------------------------------------- */

struct grads {
    PyObject_HEAD struct grads *next; /* link of the list of open records */
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
    g->call = probe__begin_grads(ext_dumper, ((struct hook *)g->hook)->path,
                                 ((struct hook *)g->hook)->class_name);
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

/* Returns the gradient: an attribute of the parameter, which is `parameter` or the hook's
 * argument, or the argument itself. */
static PyObject *gradient_of(const struct grad *one, PyObject *const *args, Py_ssize_t n)
{
    PyObject *parameter = one->parameter == Py_None && n != 0 ? args[0] : one->parameter;
    if (one->attribute != Py_None)
        return PyObject_GetAttr(parameter, one->attribute);
    return Py_NewRef(n != 0 ? args[0] : Py_None);
}

static PyObject *grad_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const struct grad *one = (struct grad *)self;
    struct grads *g = (struct grads *)one->grads;
    (void)kwnames;
    if (!((struct hook *)g->hook)->was_called || !probe__may_enter(ext_dumper, PROBE__MODULE))
        Py_RETURN_NONE;
    if (g->call != NULL && (g->is_made[one->index / 64] >> one->index % 64 & 1) != 0)
        finish(g);
    if (g->call == NULL && !begin(g))
        Py_RETURN_NONE;
    PyObject *guard = ext_quiet(false);
    PyObject *value = gradient_of(one, args, PyVectorcall_NARGS(nargsf));
    if (value != NULL)
        put_gradient(one, g, value);
    if (PyErr_Occurred())
        ext_swallow("the gradient of a parameter");
    Py_XDECREF(value);
    ext_loud(guard);
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
