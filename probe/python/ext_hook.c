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
    PyObject
        *later; /* None, or a list of Grad: the nodes of these parameters are hooked after use */
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
    struct ext_guard guard = ext_quiet(false);
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
    ext_begin_call();
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
    params = ext_attribute(module, ext_fw.parameters);
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

/* Ends the call of a module; args are the module, its arguments, and its result as the last. */
static PyObject *end_call(struct hook *h, PyObject *const *args, Py_ssize_t n)
{
    struct probe_call *c = probe__open_module(ext_dumper, h);
    if (c == NULL)
        Py_RETURN_NONE;
    PyObject *result = args[n - 1];
    if (has_raised(result)) {
        probe__call_fail(c);
        Py_RETURN_NONE;
    }
    struct ext_guard guard = ext_quiet(false);
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

static void watch_nodes(PyObject *later, PyObject *module);

static PyObject *after_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const struct after *after = (struct after *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    (void)kwnames;
    if (n < 3)
        Py_RETURN_NONE;
    PyObject *result = end_call((struct hook *)after->hook, args, n);
    if (PyList_Check(after->later))
        watch_nodes(after->later, args[0]);
    return result;
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

/* Returns what a copy of a model has in the place of the hook: the hook itself, if the framework names
 * nothing else. */
static PyObject *hook_copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(ext_fw.copied_hook != NULL ? ext_fw.copied_hook : self);
}

static PyObject *hook_reduce(PyObject *self, PyObject *unused)
{
    const struct hook *h = (struct hook *)self;
    (void)unused;
    if (ext_fw.pickled_hook != NULL)
        return Py_NewRef(ext_fw.pickled_hook);
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
    after->later = Py_NewRef(Py_None);
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
    if (ext_fw.pickled_hook != NULL)
        return Py_NewRef(ext_fw.pickled_hook);
    return Py_BuildValue("N(Os)", PyObject_GetAttrString(PyImport_AddModule("builtins"), "getattr"),
                         ((struct after *)self)->hook, "after");
}

static void after_dealloc(PyObject *self)
{
    Py_DECREF(((struct after *)self)->hook);
    Py_XDECREF(((struct after *)self)->later);
    PyObject_Free(self);
}

static PyMethodDef after_methods[] = {{"__deepcopy__", hook_copy, METH_O, NULL},
                                      {"__reduce__", after_reduce, METH_NOARGS, NULL},
                                      {0}};

static PyMemberDef after_members[] = {
    {"later", T_OBJECT_EX, offsetof(struct after, later), 0, NULL}, {0}};

PyTypeObject ext_after_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msprobe._probe.After",
                               .tp_basicsize = sizeof(struct after),
                               .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                               .tp_vectorcall_offset = offsetof(struct after, call),
                               .tp_call = PyVectorcall_Call,
                               .tp_dealloc = after_dealloc,
                               .tp_members = after_members,
                               .tp_methods = after_methods};

/* ---- gradients of parameters ------------------------------------------- */

struct grads {
    PyObject_HEAD struct grads *next; /* link of the list of open records */
    struct probe_call *call;
    uint64_t uses;
    PyObject *hook; /* of the module */
    unsigned total, made;
    bool is_counted;     /* the total is that of each call of the module */
    uint64_t is_made[4]; /* a bit per parameter */
};

enum { PARAMETERS_MAX = 256 };

/* One parameter: grad(...) when its gradient has been made. */
struct grad {
    PyObject_HEAD vectorcallfunc call;
    PyObject *grads, *parameter, *name;
    PyObject *attributes; /* None, or a tuple of names */
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

/* Looks for an attribute; a missing one is NULL without an exception, whose text would have to be made. */
static PyObject *find_attribute(PyObject *object, PyObject *name)
{
    PyObject *value = NULL;
#if PY_VERSION_HEX >= 0x030D0000
    (void)PyObject_GetOptionalAttr(object, name, &value);
#else
    (void)_PyObject_LookupAttr(object, name, &value);
#endif
    return value;
}

/* Returns the value of the first attribute that the object has. */
static PyObject *first_attribute(PyObject *object, PyObject *names)
{
    PyObject *value = NULL;
    for (Py_ssize_t i = 0; value == NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyErr_Clear();
        value = find_attribute(object, PyTuple_GET_ITEM(names, i));
    }
    return value;
}

/* Returns the gradient: an attribute of the parameter, which is `parameter` or the hook's
 * argument, or the argument itself. */
static PyObject *gradient_of(const struct grad *one, PyObject *const *args, Py_ssize_t n)
{
    PyObject *parameter = one->parameter == Py_None && n != 0 ? args[0] : one->parameter;
    if (PyTuple_Check(one->attributes))
        return first_attribute(parameter, one->attributes);
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
    struct ext_guard guard = ext_quiet(false);
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

/* ---- nodes of parameters -----------------------------------------------
 * Where parameters have no hook of their own, the node that accumulates a parameter's gradient is hooked
 * after the module has used the parameter. The graph keeps the node alive, and nothing of ours does. */

/* Called after the node of a parameter has run. */
struct ran {
    PyObject_HEAD vectorcallfunc call;
    PyObject *parameter; /* a weak reference */
    PyObject *grad;
};

static PyObject *ran_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const struct ran *r = (struct ran *)self;
    (void)args, (void)nargsf, (void)kwnames;
    PyObject *parameter = PyObject_CallNoArgs(r->parameter);
    if (parameter != NULL && parameter != Py_None)
        Py_XDECREF(grad_call(r->grad, &parameter, 1, NULL));
    Py_XDECREF(parameter);
    if (PyErr_Occurred())
        ext_swallow("the gradient of a parameter");
    Py_RETURN_NONE;
}

static void ran_dealloc(PyObject *self)
{
    struct ran *r = (struct ran *)self;
    Py_XDECREF(r->parameter);
    Py_XDECREF(r->grad);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject ext_ran_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msprobe._probe.Ran",
                             .tp_basicsize = sizeof(struct ran),
                             .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                             .tp_vectorcall_offset = offsetof(struct ran, call),
                             .tp_call = PyVectorcall_Call,
                             .tp_dealloc = ran_dealloc};

static PyObject *ran_of(PyObject *parameter, PyObject *grad)
{
    struct ran *r = (struct ran *)ext_ran_type.tp_alloc(&ext_ran_type, 0);
    if (r == NULL)
        return NULL;
    r->call = ran_call;
    r->grad = Py_NewRef(grad);
    r->parameter = PyWeakref_NewRef(parameter, NULL);
    if (r->parameter == NULL)
        Py_CLEAR(r);
    return (PyObject *)r;
}

/* Returns the node that accumulates the gradient: the first that follows an operator on the parameter. */
static PyObject *node_of(PyObject *parameter)
{
    PyObject *args[] = {parameter, parameter}, *node = NULL;
    PyObject *used = PyObject_Vectorcall(ext_fw.expand_as, args, 2, NULL);
    PyObject *made = used != NULL ? ext_get(EXT_GRAD_FN, used) : NULL;
    PyObject *next =
        made != NULL && made != Py_None ? PyObject_GetAttrString(made, "next_functions") : NULL;
    if (next != NULL && PyTuple_Check(next) && PyTuple_GET_SIZE(next) != 0 &&
        PyTuple_Check(PyTuple_GET_ITEM(next, 0)))
        node = Py_NewRef(PyTuple_GET_ITEM(PyTuple_GET_ITEM(next, 0), 0));
    Py_XDECREF(next);
    Py_XDECREF(made);
    Py_XDECREF(used);
    return node;
}

/* Marks the node as hooked in its metadata. Returns whether it was not. */
static bool is_new(PyObject *node)
{
    static PyObject *key;
    if (key == NULL)
        key = PyUnicode_InternFromString("msprobe.parameter");
    PyObject *metadata = key != NULL ? PyObject_GetAttrString(node, "metadata") : NULL;
    bool is_first = metadata != NULL && PyDict_Check(metadata) &&
                    PyDict_GetItemWithError(metadata, key) == NULL && !PyErr_Occurred() &&
                    PyDict_SetItem(metadata, key, Py_True) == 0;
    Py_XDECREF(metadata);
    return is_first;
}

static void watch_node(PyObject *parameter, PyObject *grad)
{
    PyObject *node = node_of(parameter);
    if (node != NULL && node != Py_None && is_new(node)) {
        PyObject *ran = ran_of(parameter, grad);
        PyObject *handle =
            ran != NULL ? PyObject_CallMethod(node, "register_hook", "O", ran) : NULL;
        Py_XDECREF(handle);
        Py_XDECREF(ran);
    }
    Py_XDECREF(node);
}

/* A parameter without a shape is of a class of its own. */
static bool is_lazy(PyObject *p)
{
    bool is_plain = Py_TYPE(p) == ext_fw.plain[0] || Py_TYPE(p) == ext_fw.plain[1];
    return !is_plain && ext_is_yes(ext_fw.is_lazy, p);
}

/* Returns the parameter if it will have a gradient. */
static PyObject *wanted(PyObject *params, PyObject *name)
{
    PyObject *p = PyDict_GetItemWithError(params, name);
    bool is_wanted =
        p != NULL && ext_is_tensor(p) && ext_get_bool(EXT_REQUIRES_GRAD, p) && !is_lazy(p);
    return is_wanted ? Py_NewRef(p) : NULL;
}

static void watch_each(PyObject *params, PyObject *later)
{
    unsigned total = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(later) && !PyErr_Occurred(); i++) {
        struct grad *one = (struct grad *)PyList_GET_ITEM(later, i);
        PyObject *parameter = wanted(params, one->name);
        total += parameter != NULL;
        if (parameter != NULL)
            watch_node(parameter, (PyObject *)one);
        Py_XDECREF(parameter);
    }
    struct grads *g =
        total != 0 ? (struct grads *)((struct grad *)PyList_GET_ITEM(later, 0))->grads : NULL;
    if (g != NULL && g->is_counted)
        g->total = total;
}

static void watch_nodes(PyObject *later, PyObject *module)
{
    if (!ext_is_yes(ext_fw.grad_mode, NULL))
        return;
    PyObject *list = Py_NewRef(later);
    struct ext_guard guard = ext_quiet(true);
    probe__hide(ext_dumper, 1);
    PyObject *params = ext_attribute(module, ext_fw.parameters);
    if (params != NULL && PyDict_Check(params))
        watch_each(params, list);
    if (PyErr_Occurred())
        ext_swallow("the gradients of a module's parameters");
    probe__hide(ext_dumper, -1);
    ext_loud(guard);
    Py_XDECREF(params);
    Py_DECREF(list);
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
    g->is_counted = total == 0;
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
    PyObject *grads, *parameter, *name;
    PyObject *attributes; /* None, or a tuple of names */
    unsigned index;
    (void)kw;
    if (!PyArg_ParseTuple(args, "O!IUOO", &ext_grads_type, &grads, &index, &name, &parameter,
                          &attributes))
        return NULL;
    struct grad *one = (struct grad *)type->tp_alloc(type, 0);
    if (one == NULL)
        return NULL;
    one->call = grad_call;
    one->index = index % PARAMETERS_MAX;
    one->grads = Py_NewRef(grads);
    one->name = Py_NewRef(name);
    one->parameter = Py_NewRef(parameter);
    one->attributes = Py_NewRef(attributes);
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
    Py_XDECREF(one->attributes);
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
