/* SPDX-License-Identifier: MIT
 *
 * ext_tensor: a tensor of Python as memory, type, shape and strides.
 *
 * Plain host tensors are read by the framework's own descriptors, called
 * directly: some tens of nanoseconds each, no copy, and no way for a wrapped
 * method to be recorded.  All others are described in Python.
 */
#include "probe/python/ext.h"

#include "probe/base/map.h"

struct ext_framework ext_fw;

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

/* A property is read by its descriptor, a method called with the tensor. */
PyObject *ext_get(enum ext_get what, PyObject *t)
{
    PyObject *how = ext_fw.get[what];
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

/* A tuple or list of sizes, as shape and stride are. */
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

static enum ms_dtype get_dtype(PyObject *t)
{
    PyObject *dtype = ext_get(EXT_DTYPE, t);
    PyObject *name = dtype != NULL ? PyDict_GetItem(ext_fw.dtypes, dtype) : NULL;
    Py_XDECREF(dtype);
    const char *text = name != NULL ? PyUnicode_AsUTF8(name) : NULL;
    return text != NULL ? ms_dtype_parse(ms_str_of(text)) : MS_DT_NONE;
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

/* Where its elements are and how they lie; false: it has none that could be read. */
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

/* Type and shape, and with them the memory of a plain tensor. */
static bool read_plain(PyObject *o, struct probe_tensor *t)
{
    t->dtype = get_dtype(o);
    return t->dtype != MS_DT_NONE && get_sizes(EXT_SHAPE, o, t->shape, &t->ndim) && look_into(o, t);
}

/* ---- others ----------------------------------------------------------- */

/* What the framework says of a tensor that is not plain:
 * (plain tensor or None, shape, dtype text, type text, requires_grad, members or None, later). */
struct told {
    PyObject *tuple, *plain, *shape, *members;
    const char *dtype, *type;
    int requires_grad;
    unsigned long later;
};

static bool ask(PyObject *o, struct told *told)
{
    PyObject *host_only = ext_host_only ? Py_True : Py_False;
    PyObject *args[] = {o, host_only};
    told->tuple = PyObject_Vectorcall(ext_fw.to_host, args, 2, NULL);
    return told->tuple != NULL &&
           PyArg_ParseTuple(told->tuple, "OOsspOk", &told->plain, &told->shape, &told->dtype,
                            &told->type, &told->requires_grad, &told->members, &told->later);
}

/* Members of a leaf as text, laid out for a leaf at the depth of the record. */
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
    ms_jwrite_key(json, MS_STR("")); /* what follows is not the first member */
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

static void put_told(struct probe_call *c, struct probe__record *r, const char *key,
                     const struct told *told)
{
    struct probe_tensor t = {.dtype = MS_DT_NONE};
    struct ms_jwrite json;
    struct probe__leaf_as as = {.requires_grad = told->requires_grad != 0,
                                .type = told->type,
                                .dtype = told->dtype,
                                .later = (uint32_t)told->later};
    bool is_read = told->plain != Py_None;
    if (is_read) {
        t.dtype = get_dtype(told->plain);
        is_read = t.dtype != MS_DT_NONE && get_sizes(EXT_SHAPE, told->plain, t.shape, &t.ndim) &&
                  get_sizes(EXT_STRIDE, told->plain, t.stride, &t.ndim) && set_count(&t);
        PyObject *at = is_read && t.count != 0 ? ext_get(EXT_DATA_PTR, told->plain) : NULL;
        t.data = at != NULL ? PyLong_AsVoidPtr(at) : NULL;
        Py_XDECREF(at);
        is_read &= t.count == 0 || t.data != NULL;
    }
    if (!is_read) {
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
    if (ask(o, &told)) {
        put_told(c, r, key, &told);
    } else {
        ext_swallow("a tensor");
        probe__record_none(r, key);
    }
    Py_XDECREF(told.tuple);
}
