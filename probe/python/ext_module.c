/* SPDX-License-Identifier: MIT
 *
 * ext_module: the module msprobe._probe: setup of the framework, and the one dumper.
 */
#include "probe/python/ext.h"

#include "probe/base/mem.h"
#include "probe/write/dumper_state.h"
#include "probe/write/settings.h"

#include <time.h>

static PyObject *raise(const struct ms_err *err)
{
    PyErr_SetString(err->rc == MS_E_NOMEM ? PyExc_MemoryError : PyExc_ValueError, err->msg);
    return NULL;
}

/* ---- the framework ---------------------------------------------------- */

static PyObject *member(PyObject *dict, const char *key)
{
    PyObject *v = PyDict_GetItemString(dict, key);
    return v != NULL && v != Py_None ? Py_NewRef(v) : NULL;
}

static const char *text_member(PyObject *dict, const char *key)
{
    PyObject *v = member(dict, key);
    return v != NULL ? PyUnicode_AsUTF8(v) : NULL;
}

static const char *const getters[EXT_GETTERS] = {
    [EXT_DTYPE] = "dtype",      [EXT_SHAPE] = "shape",
    [EXT_IS_HOST] = "is_host",  [EXT_REQUIRES_GRAD] = "requires_grad",
    [EXT_LAYOUT] = "layout",    [EXT_IS_STRANGE] = "is_strange",
    [EXT_STRIDE] = "stride",    [EXT_GRAD_FN] = "grad_fn",
    [EXT_DATA_PTR] = "data_ptr"};

/* setup(dict): stores the framework's types and functions; the references are kept for good. */
static PyObject *setup(PyObject *module, PyObject *told)
{
    static const char *const required[] = {"tensor",  "plain",   "dtypes",     "describe",
                                           "to_host", "figures", "parameters", "module_prefix"};
    (void)module;
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (!PyDict_Check(told) || PyDict_GetItemString(told, required[i]) == NULL)
            return PyErr_Format(PyExc_ValueError, "setup: no %s", required[i]);
    }
    for (unsigned i = 0; i < EXT_GETTERS; i++)
        ext_fw.get[i] = member(told, getters[i]);
    PyObject *plain = PyDict_GetItemString(told, "plain");
    for (Py_ssize_t i = 0; i < 2 && i < PyTuple_GET_SIZE(plain); i++)
        ext_fw.plain[i] = (PyTypeObject *)Py_NewRef(PyTuple_GET_ITEM(plain, i));
    ext_fw.tensor = (PyTypeObject *)member(told, "tensor");
    ext_fw.strided = member(told, "strided");
    ext_fw.dtypes = member(told, "dtypes");
    ext_fw.describe = member(told, "describe");
    ext_fw.to_host = member(told, "to_host");
    ext_fw.figures = member(told, "figures");
    ext_fw.grad_mode = member(told, "grad_mode");
    ext_fw.watched_call = member(told, "watched_call");
    ext_fw.tracing = member(told, "tracing");
    ext_fw.function_modes = member(told, "function_modes");
    ext_fw.dispatch_modes = member(told, "dispatch_modes");
    ext_fw.quiet = member(told, "quiet");
    ext_fw.copied_hook = member(told, "copied_hook");
    ext_fw.pickled_hook = member(told, "pickled_hook");
    ext_fw.expand_as = member(told, "expand_as");
    ext_fw.is_lazy = member(told, "is_lazy");
    ext_fw.parameters = member(told, "parameters");
    ext_fw.module_prefix = text_member(told, "module_prefix");
    ext_fw.skip_path = text_member(told, "skip_path");
    Py_RETURN_NONE;
}

/* ---- the dumper ------------------------------------------------------- */

static bool needs_elements(const struct probe_settings *s)
{
    return s->task != PROBE_TASK_STATISTICS || s->summary != PROBE_SUMMARY_STATISTICS ||
           s->tensor_list[0] != NULL;
}

static PyObject *texts_of(const char *const *words)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && words[i] != NULL; i++) {
        PyObject *text = PyUnicode_FromString(words[i]);
        if (text == NULL || PyList_Append(list, text) != 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *info_of(const struct probe_dumper *d)
{
    static const char *const levels[] = {"mix", "L0", "L1", "debug"};
    static const char *const tasks[] = {"statistics", "tensor", "structure", "nan_check",
                                        "overflow_check"};
    return Py_BuildValue("{s:s,s:s,s:s,s:O,s:O,s:O,s:O,s:O,s:I,s:N}", "level", levels[d->s.level],
                         "task", tasks[d->s.task], "dump_path", d->s.dump_path, "forward_only",
                         probe__has_data(&d->s, PROBE_BACKWARD, PROBE_DATA_INPUT) ||
                                 probe__has_data(&d->s, PROBE_BACKWARD, PROBE_DATA_OUTPUT)
                             ? Py_False
                             : Py_True,
                         "module_backward", d->s.module_backward ? Py_True : Py_False, "enabled",
                         d->s.disabled ? Py_False : Py_True, "strict",
                         d->s.strict ? Py_True : Py_False, "watched",
                         d->s.is_watched ? Py_True : Py_False, "step", d->step, "op_namespaces",
                         texts_of(d->s.op_namespaces));
}

/* Updates settings derived from the file, which may have changed. */
static void follow_settings(void)
{
    ext_has_module_backward = ext_dumper->s.module_backward;
    ext_host_only = needs_elements(&ext_dumper->s);
}

/* open(name, text, over): opens the dumper with the config.json of this name and text; the
 * settings in `over`, JSON with the same keys, take precedence. */
static PyObject *open_dumper(PyObject *module, PyObject *args)
{
    const char *name, *text, *over;
    Py_ssize_t n, nover;
    struct probe_settings *s;
    struct ms_err err = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "ss#s#", &name, &text, &n, &over, &nover))
        return NULL;
    if (ext_dumper != NULL)
        return PyErr_Format(PyExc_ValueError, "a dumper is open");
    if (probe__settings_parse_over(&s, name, text, (size_t)n,
                                   (struct ms_str){over, (uint32_t)nover}, &err) != MS_OK)
        return raise(&err);
    enum ms_rc rc = probe_dumper_open(&ext_dumper, s, &err);
    if (rc == MS_OK && s->is_watched)
        probe__source_set(ext_dumper, name, ms_str_of(over));
    probe_settings_free(s);
    if (rc != MS_OK)
        return raise(&err);
    ext_forget_places();
    ext_generation++;
    follow_settings();
    return info_of(ext_dumper);
}

static PyObject *py_info(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (ext_dumper == NULL)
        Py_RETURN_NONE;
    return info_of(ext_dumper);
}

static void settle_all(void)
{
    ext_leave_calls();
    ext_finish_grads();
    ext_settle();
}

static PyObject *py_start(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (ext_is_off)
        Py_RETURN_FALSE;
    probe_dumper_start(ext_dumper);
    if (ext_dumper != NULL)
        follow_settings();
    return PyBool_FromLong(probe_dumper_active(ext_dumper));
}

static PyObject *py_stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    settle_all();
    Py_BEGIN_ALLOW_THREADS;
    probe_dumper_stop(ext_dumper);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *py_step(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    settle_all();
    Py_BEGIN_ALLOW_THREADS;
    probe_dumper_step(ext_dumper);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* Waits until no other thread records a call, as a daemon does while the program ends; at most a tenth of a
 * second.  Returns false when one still does. */
static bool wait_for_others(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 100 && ext_inside != 0; i++) {
        Py_BEGIN_ALLOW_THREADS;
        nanosleep(&pause, NULL);
        Py_END_ALLOW_THREADS;
    }
    return ext_inside == 0;
}

static PyObject *py_close(PyObject *module, PyObject *unused)
{
    struct ms_err err = {0};
    struct probe_dumper *d = ext_dumper;
    (void)module, (void)unused;
    settle_all();
    ext_dumper = NULL; /* no call begins any more */
    if (!wait_for_others())
        Py_RETURN_NONE; /* what it records into stays */
    enum ms_rc rc = probe_dumper_close(d, &err);
    return rc == MS_OK ? Py_NewRef(Py_None) : raise(&err);
}

static PyObject *py_active(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(probe_dumper_active(ext_dumper));
}

/* idle(): whether nothing is collected and no file is open */
static PyObject *py_idle(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(ext_dumper == NULL ||
                           (!probe_dumper_active(ext_dumper) && !ext_dumper->files.is_open));
}

static PyObject *py_set_step(PyObject *module, PyObject *arg)
{
    unsigned long v = PyLong_AsUnsignedLong(arg);
    (void)module;
    if (PyErr_Occurred())
        return NULL;
    probe_dumper_set_step(ext_dumper, (uint32_t)v);
    Py_RETURN_NONE;
}

static PyObject *py_set_rank(PyObject *module, PyObject *arg)
{
    unsigned long v = PyLong_AsUnsignedLong(arg);
    (void)module;
    if (PyErr_Occurred())
        return NULL;
    probe_dumper_set_rank(ext_dumper, (uint32_t)v);
    Py_RETURN_NONE;
}

/* set_request(begin, end, size): the tokens of a request in a batch; size 0 for none */
static PyObject *py_set_request(PyObject *module, PyObject *args)
{
    unsigned long long begin, end, size;
    (void)module;
    if (!PyArg_ParseTuple(args, "KKK", &begin, &end, &size))
        return NULL;
    probe__dumper_request(ext_dumper, begin, end, size);
    Py_RETURN_NONE;
}

/* switch_off(why): stops dumping in this process after an internal error */
static PyObject *switch_off(PyObject *module, PyObject *why)
{
    const char *text = PyUnicode_AsUTF8(why);
    (void)module;
    if (text == NULL)
        return NULL;
    ext_switch_off(text);
    Py_RETURN_NONE;
}

static PyObject *py_note(PyObject *module, PyObject *arg)
{
    const char *text = PyUnicode_AsUTF8(arg);
    (void)module;
    if (text == NULL)
        return NULL;
    ext_note("", text);
    Py_RETURN_NONE;
}

/* Writes what is pending when the program exits. */
static void at_exit(void)
{
    if (ext_dumper == NULL)
        return;
    settle_all();
}

static PyObject *py_settle(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    at_exit();
    Py_RETURN_NONE;
}

/* set_call_frames(frames): texts that stand before the stacks of functions */
static PyObject *set_call_frames(PyObject *module, PyObject *frames)
{
    (void)module;
    if (!ext_set_call_frames(frames))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"setup", setup, METH_O, "setup(dict): what a framework's tensors are"},
    {"open", open_dumper, METH_VARARGS, "open(name, text, over) -> info"},
    {"info", py_info, METH_NOARGS, "what the open dumper does"},
    {"start", py_start, METH_NOARGS, "begin to collect -> bool"},
    {"stop", py_stop, METH_NOARGS, "collect no more"},
    {"step", py_step, METH_NOARGS, "the step is over"},
    {"close", py_close, METH_NOARGS, "finish the files"},
    {"active", py_active, METH_NOARGS, "is anything collected now?"},
    {"idle", py_idle, METH_NOARGS, "is there nothing to stop?"},
    {"set_step", py_set_step, METH_O, "the number of the step"},
    {"set_request", py_set_request, METH_VARARGS, "the tokens of a request"},
    {"set_rank", py_set_rank, METH_O, "the rank of this process"},
    {"is_alien", ext_is_alien, METH_O,
     "is_alien(exception): is it the program's, to be raised again?"},
    {"note", py_note, METH_O, "a line of dump_error_info.log"},
    {"set_call_frames", set_call_frames, METH_O, "frames before the stacks of functions"},
    {"switch_off", switch_off, METH_O, "switch_off(why): this process dumps no more"},
    {"settle", py_settle, METH_NOARGS, "finish records that wait for something"},
    {0}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "msprobe._probe",
                                        .m_doc = "The C half of msprobe's Python adapters.",
                                        .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__probe(void); /* imported by name */

PyMODINIT_FUNC PyInit__probe(void)
{
    static const struct {
        const char *name;
        PyTypeObject *type;
    } types[] = {{"Op", &ext_op_type},          {"Fn", &ext_fn_type},     {"Hook", &ext_hook_type},
                 {"Grads", &ext_grads_type},    {"Grad", &ext_grad_type}, {"Call", &ext_call_type},
                 {"After", &ext_after_type},    {NULL, &ext_ran_type},    {NULL, &ext_back_type},
                 {"Monitor", &ext_monitor_type}};
    PyObject *m = PyModule_Create(&definition);
    if (m == NULL || PyModule_AddFunctions(m, ext_call_functions) != 0 ||
        PyModule_AddFunctions(m, ext_put_functions) != 0 ||
        PyModule_AddFunctions(m, ext_watch_functions) != 0 ||
        PyModule_AddFunctions(m, ext_monitor_functions) != 0 || ext_state_ready() != 0 ||
        ext_watch_ready() != 0)
        return NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (PyType_Ready(types[i].type) != 0)
            return NULL;
        if (types[i].name != NULL &&
            PyModule_AddObjectRef(m, types[i].name, (PyObject *)types[i].type) != 0)
            return NULL;
    }
    return m;
}
