/* SPDX-License-Identifier: MIT
 *
 * ext_value: Python values as tensors, leaves, lists and dicts of a record.
 *
 * A tensor is memory, dtype, shape and strides. Plain host tensors are read by the framework's own
 * descriptors, called directly: some tens of nanoseconds each, no copy, and no wrapped method that
 * could be recorded. All other tensors are described in Python.
 */
#include "probe/python/ext.h"

#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/write/dumper_state.h"

#include <stdio.h>

/* ---- calls into Python -------------------------------------------------- */

/* Number of pending statistics at which they are fetched; each holds a few numbers on a device. */
enum { LATE_MAX = 4096 };

uint32_t ext_late;

PyObject *ext_ask(PyObject *func, PyObject *const *args, size_t n)
{
    struct ext_guard guard = ext_quiet(true);
    probe__hide(ext_dumper, 1);
    PyObject *result = PyObject_Vectorcall(func, args, n, NULL);
    probe__hide(ext_dumper, -1);
    ext_loud(guard);
    return result;
}

static struct probe__figure figure_of(PyObject *v)
{
    if (PyBool_Check(v))
        return (struct probe__figure){.kind = PROBE_NUM_BOOL, .v = v == Py_True};
    if (PyFloat_Check(v))
        return (struct probe__figure){.kind = PROBE_NUM_FLOAT, .v = PyFloat_AS_DOUBLE(v)};
    if (PyLong_Check(v))
        return (struct probe__figure){.kind = PROBE_NUM_INT, .i = PyLong_AsLongLong(v)};
    return (struct probe__figure){.kind = PROBE_NUM_NULL};
}

void ext_settle(void)
{
    if (ext_late == 0)
        return;
    ext_late = 0;
    PyObject *list = ext_ask(ext_fw.figures, NULL, 0);
    size_t n = list != NULL && PyList_Check(list) ? (size_t)PyList_GET_SIZE(list) : 0;
    struct probe__figure *f = n != 0 ? ms_calloc(n, sizeof *f) : NULL;
    for (size_t i = 0; f != NULL && i < n; i++)
        f[i] = figure_of(PyList_GET_ITEM(list, (Py_ssize_t)i));
    if (PyErr_Occurred())
        ext_swallow("figures of a device");
    probe__dumper_figures(ext_dumper, f, f != NULL ? n : 0);
    ms_free(f);
    Py_XDECREF(list);
}

void ext_settle_if_many(void)
{
    if (ext_late >= LATE_MAX)
        ext_settle();
}

/* ---- tensors ------------------------------------------------------------- */

bool ext_is_tensor(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    return type == ext_fw.plain[0] || type == ext_fw.plain[1] ||
           (ext_fw.tensor != NULL && PyType_IsSubtype(type, ext_fw.tensor));
}

static bool is_plain(PyObject *o)
{
    return Py_TYPE(o) == ext_fw.plain[0] || Py_TYPE(o) == ext_fw.plain[1];
}

/* Reads a property by its descriptor, or calls a method with the tensor. The C functions of a plain
 * tensor are called without Python's checks of the tensor's type, which is known. */
PyObject *ext_get(enum ext_get what, PyObject *t)
{
    PyObject *how = ext_fw.get[what];
    if (is_plain(t) && Py_IS_TYPE(how, &PyGetSetDescr_Type)) {
        const PyGetSetDef *property = ((PyGetSetDescrObject *)how)->d_getset;
        return property->get(t, property->closure);
    }
    if (is_plain(t) && Py_IS_TYPE(how, &PyMethodDescr_Type)) {
        const PyMethodDef *method = ((PyMethodDescrObject *)how)->d_method;
        if (method->ml_flags == METH_NOARGS)
            return method->ml_meth(t, NULL);
    }
    descrgetfunc get = Py_TYPE(how)->tp_descr_get;
    if (get != NULL && Py_TYPE(how)->tp_descr_set != NULL)
        return get(how, t, (PyObject *)Py_TYPE(t));
    return PyObject_CallOneArg(how, t);
}

bool ext_get_bool(enum ext_get what, PyObject *t)
{
    PyObject *v = ext_fw.get[what] != NULL ? ext_get(what, t) : NULL;
    bool is_true = v == Py_True;
    if (v == NULL)
        PyErr_Clear();
    Py_XDECREF(v);
    return is_true;
}

/* Reads a tuple or list of sizes, such as shape or stride. */
static bool get_sizes(enum ext_get what, PyObject *t, uint64_t *out, uint32_t *n)
{
    PyObject *v = ext_get(what, t);
    bool ok = v != NULL && (PyTuple_Check(v) || PyList_Check(v)) &&
              PySequence_Fast_GET_SIZE(v) <= PROBE_MAX_DIMS;
    *n = 0;
    for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(v); i++) {
        long long size = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(v, i));
        ok = size >= 0;
        out[(*n)++] = (uint64_t)size;
    }
    Py_XDECREF(v);
    return ok;
}

static enum ms_dtype parse_dtype(PyObject *dtype)
{
    PyObject *name = PyDict_GetItem(ext_fw.dtypes, dtype);
    const char *text = name != NULL ? PyUnicode_AsUTF8(name) : NULL;
    return text != NULL ? ms_dtype_parse(ms_str_of(text)) : MS_DT_NONE;
}

/* The dtypes seen last, by the address of their objects, which are kept alive. */
static enum ms_dtype get_dtype(PyObject *t)
{
    enum { KNOWN = 16 };
    static struct {
        PyObject *object;
        enum ms_dtype dtype;
    } known[KNOWN];
    PyObject *dtype = ext_get(EXT_DTYPE, t);
    if (dtype == NULL)
        return MS_DT_NONE;
    const unsigned at = ((uintptr_t)dtype >> 4) % KNOWN;
    if (known[at].object != dtype) {
        Py_XSETREF(known[at].object, Py_NewRef(dtype));
        known[at].dtype = parse_dtype(dtype);
    }
    const enum ms_dtype result = known[at].dtype;
    Py_DECREF(dtype);
    return result;
}

static bool has_plain_layout(PyObject *t)
{
    if (ext_fw.strided == NULL)
        return true;
    PyObject *layout = ext_get(EXT_LAYOUT, t);
    Py_XDECREF(layout);
    return layout == ext_fw.strided;
}

static bool set_count(struct probe_tensor *t)
{
    uint64_t dense = 1;
    t->count = 1;
    t->contiguous = true;
    for (uint32_t i = t->ndim; i-- > 0;) {
        t->contiguous &= t->stride[i] == dense || t->shape[i] == 1;
        if (__builtin_mul_overflow(t->count, t->shape[i], &t->count))
            return false;
        dense *= t->shape[i] != 0 ? t->shape[i] : 1;
    }
    return true;
}

/* Reads address and strides of the elements; false: they cannot be read in place. */
static bool look_into(PyObject *o, struct probe_tensor *t)
{
    uint32_t nstrides;
    if (ms_dtype_kind(t->dtype) == MS_DTK_COMPLEX || !ext_get_bool(EXT_IS_HOST, o) ||
        !has_plain_layout(o) || ext_get_bool(EXT_IS_STRANGE, o) ||
        !get_sizes(EXT_STRIDE, o, t->stride, &nstrides) || nstrides != t->ndim || !set_count(t))
        return false;
    PyObject *at = t->count != 0 ? ext_get(EXT_DATA_PTR, o) : NULL;
    t->data = at != NULL ? PyLong_AsVoidPtr(at) : NULL;
    Py_XDECREF(at);
    return t->count == 0 || t->data != NULL;
}

/* Reads dtype and shape, and the memory of a plain tensor. */
static bool read_plain(PyObject *o, struct probe_tensor *t)
{
    t->dtype = get_dtype(o);
    return t->dtype != MS_DT_NONE && get_sizes(EXT_SHAPE, o, t->shape, &t->ndim) && look_into(o, t);
}

/* ---- others ----------------------------------------------------------- */

/* The framework's description of a tensor that is not plain: (plain tensor or None, shape, dtype
 * text, type text, requires_grad, members or None, later). */
struct told {
    PyObject *tuple, *plain, *shape, *members;
    const char *dtype, *type;
    int requires_grad;
    unsigned long later;
};

static bool describe_value(PyObject *o, bool host_only, struct told *told)
{
    PyObject *args[] = {o, host_only ? Py_True : Py_False};
    told->tuple = ext_ask(ext_fw.to_host, args, 2);
    return told->tuple != NULL &&
           PyArg_ParseTuple(told->tuple, "OOsspOk", &told->plain, &told->shape, &told->dtype,
                            &told->type, &told->requires_grad, &told->members, &told->later);
}

/* Returns the members of a leaf as text, indented for the depth of the record. */
static struct ms_str members_text(struct ms_jwrite *json, PyObject *members, uint32_t depth)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    ms_jwrite_init(json, 1, 1 << 16);
    for (uint32_t i = 0; i < depth; i++) {
        ms_jwrite_obj(json);
        if (i + 1 < depth)
            ms_jwrite_key(json, MS_STR(""));
    }
    ms_jwrite_key(json, MS_STR("")); /* makes the members that follow non-first ones */
    ms_jwrite_null(json);
    const size_t from = json->buf.n;
    while (PyDict_Next(members, &at, &key, &value)) {
        const char *text = PyUnicode_AsUTF8(key);
        ms_jwrite_key(json, ms_str_of(text != NULL ? text : "?"));
        ext_put_json(json, value);
    }
    if (json->err.rc != MS_OK)
        return (struct ms_str){NULL, 0};
    return (struct ms_str){json->buf.p + from, (uint32_t)(json->buf.n - from)};
}

static void shape_from(PyObject *shape, struct probe_tensor *t)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape) && t->ndim < PROBE_MAX_DIMS; i++)
        t->shape[t->ndim++] = (uint64_t)PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
    for (uint32_t i = 0; i < t->ndim; i++)
        t->stride[i] = 0;
    t->count = 1;
    for (uint32_t i = 0; i < t->ndim; i++)
        t->count *= t->shape[i];
}

/* Reads a plain tensor that is known to be in host memory. */
static bool read_host(PyObject *plain, struct probe_tensor *t)
{
    t->dtype = get_dtype(plain);
    if (t->dtype == MS_DT_NONE || !get_sizes(EXT_SHAPE, plain, t->shape, &t->ndim) ||
        !get_sizes(EXT_STRIDE, plain, t->stride, &t->ndim) || !set_count(t))
        return false;
    PyObject *at = t->count != 0 ? ext_get(EXT_DATA_PTR, plain) : NULL;
    t->data = at != NULL ? PyLong_AsVoidPtr(at) : NULL;
    Py_XDECREF(at);
    return t->count == 0 || t->data != NULL;
}

static void put_told_tensor(struct probe_call *c, struct probe__record *r, const char *key,
                            const struct told *told)
{
    struct probe_tensor t = {.dtype = MS_DT_NONE};
    struct ms_jwrite json;
    struct probe__leaf_as as = {.requires_grad = told->requires_grad != 0,
                                .type = told->type,
                                .dtype = told->dtype,
                                .later = (uint32_t)told->later};
    if (told->plain == Py_None || !read_host(told->plain, &t)) {
        t = (struct probe_tensor){.dtype = MS_DT_U8};
        shape_from(told->shape, &t);
        as.is_blank = true;
    }
    if (told->later > ext_late)
        ext_late = (uint32_t)told->later;
    if (told->members != Py_None)
        as.extra = members_text(&json, told->members, r->json.depth + 1);
    probe__call_tensor(c, key, &t, &as);
    if (told->members != Py_None)
        ms_jwrite_free(&json);
}

/* ---- any -------------------------------------------------------------- */

void ext_put_tensor(struct probe_call *c, struct probe__record *r, const char *key, PyObject *o)
{
    struct probe_tensor t;
    t.ndim = 0;
    t.data = NULL;
    if (is_plain(o) && read_plain(o, &t)) {
        const struct probe__leaf_as as = {.requires_grad = ext_get_bool(EXT_REQUIRES_GRAD, o)};
        probe__call_tensor(c, key, &t, &as);
        return;
    }
    PyErr_Clear();
    struct told told = {.later = 0};
    if (describe_value(o, ext_host_only, &told)) {
        put_told_tensor(c, r, key, &told);
    } else {
        ext_swallow("a tensor");
        probe__record_none(r, key);
    }
    Py_XDECREF(told.tuple);
}

static void dtype_text(struct ext_view *v)
{
    const bool is_mindspore = ext_fw.module_prefix != NULL && ext_fw.module_prefix[0] == 'C';
    snprintf(v->dtype, sizeof v->dtype, "%s%s", is_mindspore ? "" : "torch.",
             is_mindspore ? ms_dtype_mindspore(v->t.dtype) : ms_dtype_torch(v->t.dtype));
}

bool ext_view_tensor(PyObject *o, struct ext_view *v)
{
    v->t.ndim = 0;
    v->t.data = NULL;
    v->hold = NULL;
    if (is_plain(o) && read_plain(o, &v->t)) {
        dtype_text(v);
        return true;
    }
    PyErr_Clear();
    struct told told = {.later = 0};
    bool is_read =
        describe_value(o, true, &told) && told.plain != Py_None && read_host(told.plain, &v->t);
    if (is_read)
        snprintf(v->dtype, sizeof v->dtype, "%s", told.dtype);
    v->hold = told.tuple;
    PyErr_Clear();
    return is_read;
}

void ext_unview(struct ext_view *v)
{
    Py_CLEAR(v->hold);
}

enum { TEXT_MAX = 1 << 16 };

/* ---- leaves ----------------------------------------------------------- */

/* Writes {"type": ..., "value": ...} of a bool, int, float or string; a subclass by its own
 * name. */
static void put_scalar(struct probe__record *r, const char *key, PyObject *v)
{
    size_t path_n;
    struct ms_jwrite *json = probe__record_value(r, key, &path_n);
    const char *type = Py_TYPE(v)->tp_name;
    const char *dot = strrchr(type, '.');
    ms_jwrite_obj(json);
    ms_jwrite_kstr(json, "type", dot != NULL ? dot + 1 : type);
    ms_jwrite_key(json, MS_STR("value"));
    ext_put_json(json, v);
    ms_jwrite_obj_end(json);
    probe__record_value_end(r, path_n);
}

static bool is_scalar(PyObject *v)
{
    return PyBool_Check(v) || PyLong_Check(v) || PyFloat_Check(v) || PyUnicode_Check(v);
}

static bool is_device_key(const char *key)
{
    return key != NULL && (strcmp(key, "device") == 0 || strcmp(key, "dtype") == 0 ||
                           strcmp(key, "output_dtype") == 0);
}

/* Writes a leaf whose members are JSON, except for the tensors among them. */
static void put_object(struct probe_call *c, struct probe__record *r, const char *key, PyObject *v)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    size_t path_n;
    probe__record_open(r, key, false);
    while (PyDict_Next(v, &at, &name, &value)) {
        const char *text = PyUnicode_AsUTF8(name);
        if (text == NULL)
            continue;
        if (ext_is_tensor(value)) {
            ext_put_tensor(c, r, text, value);
        } else {
            ext_put_json(probe__record_value(r, text, &path_n), value);
            probe__record_value_end(r, path_n);
        }
    }
    PyErr_Clear();
    probe__record_close(r, false);
}

/* Writes the elements of a numpy array to a file, when the record has files. */
static void put_elements(struct probe__record *r, PyObject *array, const char *dtype)
{
    struct probe_tensor t = {.dtype = ms_dtype_parse(ms_str_of(dtype)), .contiguous = true};
    Py_buffer view;
    if (r->save == NULL || t.dtype == MS_DT_NONE)
        return;
    PyObject *plain = PyObject_CallMethod(array, "copy", "s", "C");
    if (plain == NULL || PyObject_GetBuffer(plain, &view, PyBUF_C_CONTIGUOUS) != 0) {
        ext_swallow("the file of an array");
        Py_XDECREF(plain);
        return;
    }
    t.ndim = view.ndim <= PROBE_MAX_DIMS ? (uint32_t)view.ndim : 0;
    t.count = t.ndim == (uint32_t)view.ndim ? (uint64_t)view.len / ms_dtype_size(t.dtype) : 0;
    for (uint32_t i = 0; i < t.ndim; i++)
        t.shape[i] = (uint64_t)view.shape[i];
    t.data = view.buf;
    probe__record_file(r, &t);
    PyBuffer_Release(&view);
    Py_DECREF(plain);
}

/* Writes (leaf, array, None), or (leaf, array, save); save(path, array) writes the file. */
static void put_array(struct probe__record *r, const char *key, PyObject *told)
{
    PyObject *leaf = PyTuple_GET_ITEM(told, 0), *array = PyTuple_GET_ITEM(told, 1),
             *save = PyTuple_GET_ITEM(told, 2);
    size_t path_n;
    struct ms_jwrite *json = probe__record_value(r, key, &path_n);
    ms_jwrite_obj(json);
    ext_put_members(json, leaf);
    if (save == Py_None) {
        PyObject *dtype = PyDict_GetItemString(leaf, "dtype");
        put_elements(r, array, dtype != NULL ? PyUnicode_AsUTF8(dtype) : "");
    } else {
        const char *name = probe__record_foreign_file(r, ".npy");
        PyObject *done = name != NULL
                             ? PyObject_CallFunction(save, "ssO", ext_data_dir(), name, array)
                             : Py_NewRef(Py_None);
        if (done == NULL)
            ext_swallow("the file of an array");
        Py_XDECREF(done);
    }
    ms_jwrite_obj_end(json);
    probe__record_value_end(r, path_n);
}

static void put_entries(struct probe_call *c, struct probe__record *r, PyObject *dict)
{
    PyObject *key, *value, *hold;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value) && r->json.err.rc == MS_OK) {
        const char *text = ext_key_text(key, at, &hold);
        PyErr_Clear();
        ext_put_value(c, r, text != NULL ? text : "?", value);
        Py_XDECREF(hold);
    }
}

static void put_dict(struct probe_call *c, struct probe__record *r, const char *key, PyObject *v)
{
    probe__record_open(r, key, false);
    put_entries(c, r, v);
    probe__record_close(r, false);
}

/* Writes the framework's description of a value: the JSON of a leaf; a tuple of one, the value
 * to write instead; of two, a leaf with tensors in it; of three, an array. */
static void put_told(struct probe_call *c, struct probe__record *r, const char *key, PyObject *v)
{
    PyObject *name = key != NULL ? PyUnicode_FromString(key) : Py_NewRef(Py_None);
    PyObject *args[] = {v, name};
    PyObject *told = name != NULL ? ext_ask(ext_fw.describe, args, 2) : NULL;
    size_t path_n;
    if (told == NULL)
        ext_swallow("a value");
    if (told != NULL && PyTuple_Check(told) && PyTuple_GET_SIZE(told) == 1) {
        PyObject *item = PyTuple_GET_ITEM(told, 0);
        (PyDict_Check(item) ? put_dict : ext_put_value)(c, r, key, item);
    } else if (told != NULL && PyTuple_Check(told) && PyTuple_GET_SIZE(told) == 2 &&
               PyDict_Check(PyTuple_GET_ITEM(told, 0))) {
        put_object(c, r, key, PyTuple_GET_ITEM(told, 0));
    } else if (told != NULL && PyTuple_Check(told) && PyTuple_GET_SIZE(told) == 3) {
        put_array(r, key, told);
    } else {
        struct ms_jwrite *json = probe__record_value(r, key, &path_n);
        ext_put_json(json, told != NULL ? told : Py_None);
        probe__record_value_end(r, path_n);
    }
    Py_XDECREF(told);
    Py_XDECREF(name);
}

/* ---- containers ------------------------------------------------------- */

static void put_sequence(struct probe_call *c, struct probe__record *r, const char *key,
                         PyObject *v)
{
    probe__record_open(r, key, true);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(v) && r->json.err.rc == MS_OK; i++)
        ext_put_value(c, r, NULL, PySequence_Fast_GET_ITEM(v, i));
    probe__record_close(r, true);
}

static bool is_plain_sequence(PyObject *v)
{
    return PyList_CheckExact(v) || PyTuple_CheckExact(v);
}

void ext_put_value(struct probe_call *c, struct probe__record *r, const char *key, PyObject *v)
{
    if (v == Py_None) {
        probe__record_none(r, key);
    } else if (ext_is_tensor(v)) {
        if (is_device_key(key))
            put_told(c, r, key, v);
        else
            ext_put_tensor(c, r, key, v);
    } else if (is_scalar(v) && !is_device_key(key)) {
        put_scalar(r, key, v);
    } else if (is_plain_sequence(v)) {
        put_sequence(c, r, key, v);
    } else if (PyDict_CheckExact(v)) {
        put_dict(c, r, key, v);
    } else {
        put_told(c, r, key, v);
    }
}

/* ---- sections ---------------------------------------------------------- */

void ext_put_list(struct probe_call *c, enum probe_section section, PyObject *const *v,
                  Py_ssize_t n, uint32_t mask)
{
    struct probe__record *r = probe__call_part(c, section);
    for (Py_ssize_t i = 0; r != NULL && i < n && r->json.err.rc == MS_OK; i++) {
        bool is_masked = i < 32 && (mask >> i & 1) != 0;
        ext_put_value(c, r, NULL, is_masked ? Py_None : v[i]);
    }
}

void ext_put_tuple(struct probe_call *c, enum probe_section section, PyObject *tuple, uint32_t mask)
{
    ext_put_list(c, section, PySequence_Fast_ITEMS(tuple), PySequence_Fast_GET_SIZE(tuple), mask);
}

void ext_put_dict(struct probe_call *c, enum probe_section section, PyObject *dict)
{
    struct probe__record *r =
        dict != NULL && PyDict_GET_SIZE(dict) != 0 ? probe__call_part(c, section) : NULL;
    if (r != NULL)
        put_entries(c, r, dict);
}

void ext_put_result(struct probe_call *c, PyObject *result, uint32_t mask)
{
    if (PyTuple_Check(result))
        ext_put_tuple(c, PROBE_SEC_OUTPUT, result, mask);
    else
        ext_put_list(c, PROBE_SEC_OUTPUT, &result, 1, mask);
}
