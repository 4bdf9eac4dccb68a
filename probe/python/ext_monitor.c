/* SPDX-License-Identifier: MIT
 *
 * ext_monitor: the training monitor for Python: its settings as a dict, and the type Monitor, which gets
 * tensors by name and writes the rows of each step.
 */
#include "probe/python/ext.h"

#include "probe/base/mem.h"
#include "probe/base/num.h"

#include <math.h>

static PyObject *raise(const struct ms_err *err)
{
    PyObject *type = err->rc == MS_E_NOMEM ? PyExc_MemoryError
                     : err->rc == MS_E_IO  ? PyExc_OSError
                                           : PyExc_ValueError;
    PyErr_SetString(type, err->msg);
    return NULL;
}

/* ---- settings ---------------------------------------------------------- */

static PyObject *texts(const char *const *words)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && words != NULL && words[i] != NULL; i++) {
        PyObject *text = PyUnicode_DecodeUTF8(words[i], (Py_ssize_t)strlen(words[i]), "replace");
        if (text == NULL || PyList_Append(list, text) != 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *ranks(const struct probe_monitor_settings *s)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < s->nranks; i++) {
        PyObject *n = PyLong_FromLongLong(s->module_ranks[i]);
        if (n == NULL || PyList_Append(list, n) != 0)
            Py_CLEAR(list);
        Py_XDECREF(n);
    }
    return list;
}

static PyObject *op_names(const struct probe_monitor_settings *s)
{
    const char *words[PROBE_MON_OPS + 1] = {NULL};
    for (uint32_t i = 0; i < s->nops; i++)
        words[i] = probe_monitor_op_name(s->ops[i]);
    return texts(words);
}

static bool add(PyObject *dict, const char *key, PyObject *value)
{
    const bool ok = value != NULL && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static bool add_switches(PyObject *dict, const struct probe_monitor_settings *s)
{
#define SWITCH(field) add(dict, #field, PyBool_FromLong(s->field))
    return SWITCH(print_struct) && SWITCH(all_xy) && SWITCH(xy_distribution) &&
           SWITCH(forward_only) && SWITCH(backward_only) && SWITCH(ur_distribution) &&
           SWITCH(mv_distribution) && SWITCH(wg_distribution) && SWITCH(param_distribution) &&
           SWITCH(mg_direction) && SWITCH(stack_info) && SWITCH(monitor_mbs_grad) &&
           SWITCH(recording_l2_features) && SWITCH(squash_name) && SWITCH(dynamic_on) &&
           SWITCH(invariants) && SWITCH(cc_enable) && SWITCH(cc_log_only) && SWITCH(cc_pre_hook) &&
           SWITCH(alert_dump);
#undef SWITCH
}

static bool add_numbers(PyObject *dict, const struct probe_monitor_settings *s)
{
#define NUMBER(field) add(dict, #field, PyLong_FromLongLong(s->field))
    return NUMBER(ndigits) && NUMBER(start_step) && NUMBER(collect_times) &&
           NUMBER(step_interval) && NUMBER(step_count_per_record) && NUMBER(nrules) &&
           NUMBER(format) && NUMBER(sa_order) && add(dict, "eps", PyFloat_FromDouble(s->eps));
#undef NUMBER
}

static bool add_lists(PyObject *dict, const struct probe_monitor_settings *s)
{
#define LIST(field) add(dict, #field, texts(s->field))
    return LIST(targets) && LIST(attention_hook) && LIST(linear_hook) &&
           LIST(moe_router_weight_hook) && LIST(moe_router_logit_hook) && LIST(cc_codeline) &&
           LIST(append_output) && add(dict, "module_ranks", ranks(s)) &&
           add(dict, "has_linear_hook", PyBool_FromLong(s->linear_hook != NULL)) &&
           add(dict, "ops", op_names(s));
#undef LIST
}

/* monitor_settings(name, text) -> dict: the checked settings of a config.json */
static PyObject *settings(PyObject *module, PyObject *args)
{
    const char *name, *text;
    Py_ssize_t n;
    struct ms_err err = {0};
    struct probe_monitor_settings *s;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss#", &name, &text, &n))
        return NULL;
    if (probe_monitor_settings_parse(&s, name, (struct ms_str){text, (uint32_t)n}, &err) != MS_OK)
        return raise(&err);
    PyObject *dict = PyDict_New();
    if (dict != NULL && (!add_switches(dict, s) || !add_numbers(dict, s) || !add_lists(dict, s)))
        Py_CLEAR(dict);
    probe_monitor_settings_free(s);
    return dict;
}

/* ---- samples ----------------------------------------------------------- */

/* Returns the place of element i in memory, in elements. */
static uint64_t offset_of(const struct probe_tensor *t, uint64_t i)
{
    uint64_t at = 0;
    for (uint32_t d = t->ndim; d-- > 0 && i != 0;) {
        at += i % t->shape[d] * t->stride[d];
        i /= t->shape[d];
    }
    return at;
}

struct sample {
    uint64_t hash;
    unsigned nonzero;
    bool is_finite;
};

/* Looks at some elements, from the first to the last. */
static void take_sample(struct sample *s, const struct probe_tensor *t)
{
    enum { ELEMENTS = 64 };
    const uint64_t n = t->count < ELEMENTS ? t->count : ELEMENTS;
    *s = (struct sample){.hash = t->count, .is_finite = true};
    for (uint64_t i = 0; i < n; i++) {
        double v;
        const uint64_t at = n > 1 ? i * (t->count - 1) / (n - 1) : 0;
        const size_t size = ms_dtype_size(t->dtype);
        ms_dtype_to_f64(t->dtype, (const char *)t->data + offset_of(t, at) * size, 1, &v);
        s->hash = ms_hash_mix(s->hash, ms_bits_of_f64(v));
        s->nonzero += v != 0;
        s->is_finite &= isfinite(v) != 0;
    }
}

/* sample(tensor) -> (hash, number of elements that are not 0, are all finite?) of 64 elements, None: unreadable */
static PyObject *sample(PyObject *module, PyObject *value)
{
    struct ext_view view;
    struct sample s;
    (void)module;
    struct ext_guard guard = ext_quiet(false);
    const bool is_read = ext_is_tensor(value) && ext_view_tensor(value, &view);
    if (is_read) {
        take_sample(&s, &view.t);
        ext_unview(&view);
    }
    ext_loud(guard);
    if (!is_read)
        Py_RETURN_NONE;
    return Py_BuildValue("KIO", (unsigned long long)s.hash, s.nonzero,
                         s.is_finite ? Py_True : Py_False);
}

/* figures(tensor) -> (min, max, mean, norm, NaNs) in the precision of float32, None: unreadable */
static PyObject *figures(PyObject *module, PyObject *value)
{
    struct ext_view view;
    struct probe_mon_row row;
    (void)module;
    struct ext_guard guard = ext_quiet(false);
    const bool is_read = ext_is_tensor(value) && ext_view_tensor(value, &view);
    if (is_read) {
        probe_monitor_figures(&row, &view.t, view.dtype, 1U << PROBE_MON_NORM, 0);
        ext_unview(&view);
    }
    ext_loud(guard);
    if (!is_read)
        Py_RETURN_NONE;
    const double *f = row.figures;
    return Py_BuildValue("ddddd", (double)(float)f[PROBE_MON_MIN], (double)(float)f[PROBE_MON_MAX],
                         (double)(float)f[PROBE_MON_MEAN], (double)(float)f[PROBE_MON_NORM],
                         f[PROBE_MON_NANS]);
}

PyMethodDef ext_monitor_functions[] = {
    {"figures", figures, METH_O, "figures(tensor) -> (min, max, mean, norm, NaNs)"},
    {"sample", sample, METH_O, "sample(tensor) -> (hash, number not 0, are all finite?)"},
    {"monitor_settings", settings, METH_VARARGS, "monitor_settings(name, text) -> dict"},
    {0}};

/* ---- the monitor ------------------------------------------------------- */

/* Figures of a tensor that was seen lately: what a module returns is most often what the next one takes, and what the
 * module around it returns. They count again while the tensor lives, is the same memory, has the version that it had
 * (the framework counts changes in place), and a sample of its elements is the same. */
struct lately {
    PyObject *reference; /* weak */
    const void *data;
    uint64_t count, version, sample;
    struct probe_mon_row row;
};
enum { LATELY = 64 };

struct monitor {
    PyObject_HEAD struct probe_monitor *m;
    struct probe_monitor_settings *s;
    struct lately *lately; /* LATELY of them; NULL: without memory each tensor is looked at anew */
};

static struct probe_monitor *opened(PyObject *self)
{
    struct probe_monitor *m = ((struct monitor *)self)->m;
    if (m == NULL)
        PyErr_SetString(PyExc_ValueError, "the monitor is closed");
    return m;
}

static int64_t *read_mates(PyObject *list)
{
    int64_t *mates = ms_calloc((size_t)PyList_GET_SIZE(list) + 1, sizeof *mates);
    for (Py_ssize_t i = 0; mates != NULL && i < PyList_GET_SIZE(list); i++)
        mates[i] = PyLong_AsLongLong(PyList_GET_ITEM(list, i));
    return mates;
}

/* Monitor(name, text, dir, base, rank, pp_stage, mates) */
static PyObject *monitor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const char *name, *text, *dir, *base;
    Py_ssize_t n;
    long long rank, pp_stage;
    PyObject *list;
    struct ms_err err = {0};
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "ss#ssLLO!", &name, &text, &n, &dir, &base, &rank, &pp_stage,
                          &PyList_Type, &list))
        return NULL;
    struct monitor *self = (struct monitor *)type->tp_alloc(type, 0);
    int64_t *mates = read_mates(list);
    enum ms_rc rc = self == NULL || mates == NULL
                        ? ms_no_memory(&err)
                        : probe_monitor_settings_parse(&self->s, name,
                                                       (struct ms_str){text, (uint32_t)n}, &err);
    if (rc == MS_OK)
        rc = probe_monitor_open(
            &self->m,
            &(struct probe_monitor_conf){.settings = self->s,
                                         .dir = dir,
                                         .base = base,
                                         .rank = rank,
                                         .pp_stage = pp_stage,
                                         .mates = mates,
                                         .nmates = (size_t)PyList_GET_SIZE(list)},
            &err);
    ms_free(mates);
    if (rc == MS_OK && !PyErr_Occurred()) {
        self->lately = ms_calloc(LATELY, sizeof *self->lately);
        return (PyObject *)self;
    }
    Py_XDECREF(self);
    return rc != MS_OK ? raise(&err) : NULL;
}

static void monitor_free(PyObject *self)
{
    struct monitor *m = (struct monitor *)self;
    for (size_t i = 0; m->lately != NULL && i < LATELY; i++)
        Py_XDECREF(m->lately[i].reference);
    ms_free(m->lately);
    probe_monitor_close(m->m);
    probe_monitor_settings_free(m->s);
    Py_TYPE(self)->tp_free(self);
}

static bool is_metric(unsigned metric)
{
    if (metric < PROBE_MON_METRICS)
        return true;
    PyErr_Format(PyExc_ValueError, "no metric %u", metric);
    return false;
}

/* ---- tensors seen lately ------------------------------------------------- */

/* Mixes some elements of a tensor, from its begin to its end. */
static uint64_t sample_of(const struct probe_tensor *t)
{
    enum { ELEMENTS = 32 };
    const size_t size = ms_dtype_size(t->dtype);
    const uint64_t step = t->count > ELEMENTS ? t->count / ELEMENTS : 1;
    uint64_t hash = t->count;
    for (uint64_t i = 0; t->contiguous && i < t->count; i += step) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)t->data + i * size, size < sizeof bits ? size : sizeof bits);
        hash = ms_hash_mix(hash, bits);
    }
    return hash;
}

static bool version_of(PyObject *tensor, uint64_t *version)
{
    static PyObject *name;
    if (name == NULL && (name = PyUnicode_InternFromString("_version")) == NULL)
        return false;
    PyObject *v = PyObject_GetAttr(tensor, name);
    *version = v != NULL ? PyLong_AsUnsignedLongLong(v) : 0;
    Py_XDECREF(v);
    if (!PyErr_Occurred())
        return true;
    PyErr_Clear();
    return false;
}

static bool is_same(const struct lately *l, PyObject *tensor, const struct probe_tensor *t,
                    uint64_t version)
{
    return l->reference != NULL && l->data == t->data && l->count == t->count &&
           l->version == version && PyWeakref_GetObject(l->reference) == tensor &&
           l->row.ndim == t->ndim &&
           memcmp(l->row.shape, t->shape, t->ndim * sizeof *t->shape) == 0 &&
           l->sample == sample_of(t);
}

/* Returns the figures of a tensor, those of lately where they are still right; NULL: it is not to be remembered. */
static const struct probe_mon_row *figures_of(struct monitor *self, PyObject *tensor,
                                              const struct ext_view *view)
{
    uint64_t version;
    if (self->lately == NULL || !view->t.contiguous || view->t.count < 1024 || view->hold != NULL ||
        !version_of(tensor, &version))
        return NULL;
    struct lately *l = &self->lately[((uintptr_t)view->t.data >> 6) % LATELY];
    if (is_same(l, tensor, &view->t, version))
        return &l->row;
    PyObject *reference = PyWeakref_NewRef(tensor, NULL);
    if (reference == NULL) {
        PyErr_Clear();
        return NULL;
    }
    Py_XSETREF(l->reference, reference);
    l->data = view->t.data;
    l->count = view->t.count;
    l->version = version;
    l->sample = sample_of(&view->t);
    probe_monitor_row(self->m, &l->row, &view->t, view->dtype);
    return &l->row;
}

/* Parameters and their gradients are looked at each time: programs change them past the version. */
static bool is_passing(enum probe_mon_metric metric)
{
    return metric == PROBE_MON_ACTV || metric == PROBE_MON_ACTV_GRAD;
}

static enum ms_rc put_value(struct monitor *self, enum probe_mon_metric metric, uint32_t group,
                            struct ms_str name, PyObject *value, struct ms_err *err)
{
    struct ext_view view;
    struct ext_guard guard = ext_quiet(false);
    const bool is_read = ext_is_tensor(value) && ext_view_tensor(value, &view);
    const struct probe_mon_row *row =
        is_read && is_passing(metric) ? figures_of(self, value, &view) : NULL;
    enum ms_rc rc = row != NULL
                        ? probe_monitor_put_row(self->m, metric, group, name, row, err)
                        : probe_monitor_put(self->m, metric, group, name, is_read ? &view.t : NULL,
                                            is_read ? view.dtype : "", err);
    if (is_read)
        ext_unview(&view);
    ext_loud(guard);
    return rc;
}

/* put(metric, group, name, tensor or any other value) */
static PyObject *put(PyObject *self, PyObject *args)
{
    unsigned metric, group;
    const char *name;
    Py_ssize_t n;
    PyObject *value;
    struct ms_err err = {0};
    if (opened(self) == NULL ||
        !PyArg_ParseTuple(args, "IIs#O", &metric, &group, &name, &n, &value) || !is_metric(metric))
        return NULL;
    if (put_value((struct monitor *)self, metric, group, (struct ms_str){name, (uint32_t)n}, value,
                  &err) != MS_OK)
        return raise(&err);
    Py_RETURN_NONE;
}

static PyObject *called(PyObject *self, PyObject *unused)
{
    struct probe_monitor *m = opened(self);
    (void)unused;
    if (m == NULL)
        return NULL;
    probe_monitor_called(m);
    Py_RETURN_NONE;
}

/* flush(metric, step, with_micro, is_kept) */
static PyObject *flush(PyObject *self, PyObject *args)
{
    unsigned metric;
    long long step;
    int with_micro, is_kept;
    struct ms_err err = {0};
    struct probe_monitor *m = opened(self);
    if (m == NULL || !PyArg_ParseTuple(args, "ILpp", &metric, &step, &with_micro, &is_kept) ||
        !is_metric(metric))
        return NULL;
    if (step < 0)
        return PyErr_Format(PyExc_ValueError, "step %lld", step);
    if (probe_monitor_flush(m, metric, step, with_micro, is_kept, &err) != MS_OK)
        return raise(&err);
    Py_RETURN_NONE;
}

/* step_end() -> number of alarms */
static PyObject *step_end(PyObject *self, PyObject *unused)
{
    uint32_t alarms = 0;
    struct ms_err err = {0};
    struct probe_monitor *m = opened(self);
    (void)unused;
    if (m == NULL)
        return NULL;
    if (probe_monitor_step_end(m, &alarms, &err) != MS_OK)
        return raise(&err);
    return PyLong_FromUnsignedLong(alarms);
}

static PyObject *drop(PyObject *self, PyObject *unused)
{
    struct probe_monitor *m = opened(self);
    (void)unused;
    if (m == NULL)
        return NULL;
    probe_monitor_drop(m);
    Py_RETURN_NONE;
}

/* ---- rows, for an interface of Python and for TensorBoard ---------------- */

struct listing {
    PyObject *list;
    const struct probe_monitor_settings *s;
};

static PyObject *shape_of(const struct probe_mon_row *row)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < row->ndim; i++) {
        PyObject *n = PyLong_FromUnsignedLongLong(row->shape[i]);
        if (n == NULL || PyList_Append(list, n) != 0)
            Py_CLEAR(list);
        Py_XDECREF(n);
    }
    return list;
}

static PyObject *value_of(enum probe_mon_op op, const struct probe_mon_row *row)
{
    if (row->kind == PROBE_MON_NOTHING)
        return PyFloat_FromDouble(NAN);
    if (op == PROBE_MON_SHAPE)
        return shape_of(row);
    if (op == PROBE_MON_DTYPE)
        return PyUnicode_FromString(row->dtype);
    if (op == PROBE_MON_ID && !row->has_id)
        return Py_NewRef(Py_None);
    return PyFloat_FromDouble(row->figures[op]);
}

static void list_row(void *ctx, struct ms_str name, const struct probe_mon_row *row)
{
    struct listing *l = ctx;
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict != NULL && i < l->s->nops; i++) {
        if (!add(dict, probe_monitor_op_name(l->s->ops[i]), value_of(l->s->ops[i], row)))
            Py_CLEAR(dict);
    }
    PyObject *pair = dict != NULL ? Py_BuildValue("s#N", name.p, (Py_ssize_t)name.n, dict) : NULL;
    if (l->list != NULL && (pair == NULL || PyList_Append(l->list, pair) != 0))
        Py_CLEAR(l->list);
    Py_XDECREF(pair);
}

/* rows(metric) -> [(name, {op: value})] of what was put since the last flush */
static PyObject *rows(PyObject *self, PyObject *arg)
{
    struct probe_monitor *m = opened(self);
    const unsigned long metric = PyLong_AsUnsignedLong(arg);
    if (m == NULL || PyErr_Occurred() || !is_metric((unsigned)metric))
        return NULL;
    struct listing l = {PyList_New(0), ((struct monitor *)self)->s};
    probe_monitor_each(m, (enum probe_mon_metric)metric, list_row, &l);
    return l.list;
}

static PyMethodDef methods[] = {
    {"put", put, METH_VARARGS, "put(metric, group, name, tensor)"},
    {"called", called, METH_NOARGS, "count a call without figures"},
    {"flush", flush, METH_VARARGS, "flush(metric, step, with_micro, is_kept)"},
    {"step_end", step_end, METH_NOARGS, "step_end() -> number of alarms"},
    {"drop", drop, METH_NOARGS, "forget what was not flushed"},
    {"rows", rows, METH_O, "rows(metric) -> [(name, {op: value})]"},
    {0}};

PyTypeObject ext_monitor_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msprobe._probe.Monitor",
                                 .tp_doc = "Figures of each step of a training, into csv files.",
                                 .tp_basicsize = sizeof(struct monitor),
                                 .tp_flags = Py_TPFLAGS_DEFAULT,
                                 .tp_new = monitor_new,
                                 .tp_dealloc = monitor_free,
                                 .tp_methods = methods};
