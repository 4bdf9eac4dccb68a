/* SPDX-License-Identifier: MIT
 *
 * ext_value: values of Python as leaves, lists and dicts of a record.
 */
#include "probe/python/ext.h"

#include "probe/base/num.h"

enum { TEXT_MAX = 1 << 16 };

/* ---- plain JSON ------------------------------------------------------- */

/* Text as the writer takes it: a lone surrogate in three bytes. */
static void put_text(struct ms_jwrite *json, PyObject *v)
{
    Py_ssize_t n;
    const char *p = PyUnicode_AsUTF8AndSize(v, &n);
    if (p != NULL) {
        ms_jwrite_str(json, (struct ms_str){p, (uint32_t)n});
        return;
    }
    PyErr_Clear();
    PyObject *bytes = PyUnicode_AsEncodedString(v, "utf-8", "surrogatepass");
    if (bytes != NULL)
        ms_jwrite_str(json,
                      (struct ms_str){PyBytes_AS_STRING(bytes), (uint32_t)PyBytes_GET_SIZE(bytes)});
    else
        ms_jwrite_null(json);
    PyErr_Clear();
    Py_XDECREF(bytes);
}

static void put_int(struct ms_jwrite *json, PyObject *v)
{
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(v, &overflow);
    if (overflow == 0) {
        ms_jwrite_i64(json, i);
        return;
    }
    PyObject *text = PyObject_Str(v); /* a subclass may say anything, but not of so large a one */
    const char *p = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
    if (p != NULL && (p[0] == '-' || (p[0] >= '0' && p[0] <= '9')))
        ms_jwrite_raw(json, ms_str_of(p));
    else
        ms_jwrite_null(json);
    PyErr_Clear();
    Py_XDECREF(text);
}

/* The key of a dict, as Python's json writes it. */
static const char *key_text(PyObject *key, PyObject **hold)
{
    *hold = NULL;
    if (PyUnicode_Check(key))
        return PyUnicode_AsUTF8(key);
    if (key == Py_None)
        return "null";
    if (PyBool_Check(key))
        return key == Py_True ? "true" : "false";
    *hold = PyObject_Str(key);
    return *hold != NULL ? PyUnicode_AsUTF8(*hold) : NULL;
}

static void put_items(struct ms_jwrite *json, PyObject *sequence)
{
    PyObject *fast = PySequence_Fast(sequence, "a list");
    ms_jwrite_arr(json);
    for (Py_ssize_t i = 0; fast != NULL && i < PySequence_Fast_GET_SIZE(fast); i++)
        ext_put_json(json, PySequence_Fast_GET_ITEM(fast, i));
    ms_jwrite_arr_end(json);
    PyErr_Clear();
    Py_XDECREF(fast);
}

static void put_members(struct ms_jwrite *json, PyObject *dict)
{
    PyObject *key, *value, *hold;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *text = key_text(key, &hold);
        ms_jwrite_key(json, ms_str_of(text != NULL ? text : "?"));
        PyErr_Clear();
        Py_XDECREF(hold);
        ext_put_json(json, value);
    }
}

void ext_put_json(struct ms_jwrite *json, PyObject *v)
{
    if (v == Py_None)
        ms_jwrite_null(json);
    else if (PyBool_Check(v))
        ms_jwrite_bool(json, v == Py_True);
    else if (PyLong_Check(v))
        put_int(json, v);
    else if (PyFloat_Check(v))
        ms_jwrite_f64(json, PyFloat_AS_DOUBLE(v));
    else if (PyUnicode_Check(v))
        put_text(json, v);
    else if (PyList_Check(v) || PyTuple_Check(v))
        put_items(json, v);
    else if (!PyDict_Check(v))
        ms_jwrite_null(json);
    else {
        ms_jwrite_obj(json);
        put_members(json, v);
        ms_jwrite_obj_end(json);
    }
}

/* ---- leaves ----------------------------------------------------------- */

/* {"type": ..., "value": ...} of a bool, int, float or text; subclasses by their own name. */
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

/* A leaf whose members are JSON but for the tensors among them. */
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

/* The elements of an array of numpy as a file, where records have such. */
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

/* (leaf, array, None), or (leaf, array, what makes a file of it: save(path, array)). */
static void put_array(struct probe__record *r, const char *key, PyObject *told)
{
    PyObject *leaf = PyTuple_GET_ITEM(told, 0), *array = PyTuple_GET_ITEM(told, 1),
             *save = PyTuple_GET_ITEM(told, 2);
    size_t path_n;
    struct ms_jwrite *json = probe__record_value(r, key, &path_n);
    ms_jwrite_obj(json);
    put_members(json, leaf);
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

/* What the framework says: JSON of a leaf, or, in a tuple, what is put instead of the value; with a
 * second item that is a leaf with tensors in it, and with a third an array. */
static void put_told(struct probe_call *c, struct probe__record *r, const char *key, PyObject *v)
{
    PyObject *name = key != NULL ? PyUnicode_FromString(key) : Py_NewRef(Py_None);
    PyObject *args[] = {v, name};
    PyObject *told = name != NULL ? PyObject_Vectorcall(ext_fw.describe, args, 2, NULL) : NULL;
    size_t path_n;
    if (told == NULL)
        ext_swallow("a value");
    if (told != NULL && PyTuple_Check(told) && PyTuple_GET_SIZE(told) == 1) {
        ext_put_value(c, r, key, PyTuple_GET_ITEM(told, 0));
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

static void put_entries(struct probe_call *c, struct probe__record *r, PyObject *dict)
{
    PyObject *key, *value, *hold;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value) && r->json.err.rc == MS_OK) {
        const char *text = key_text(key, &hold);
        PyErr_Clear();
        ext_put_value(c, r, text != NULL ? text : "?", value);
        Py_XDECREF(hold);
    }
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
        probe__record_open(r, key, false);
        put_entries(c, r, v);
        probe__record_close(r, false);
    } else {
        put_told(c, r, key, v);
    }
}

/* ---- parts ------------------------------------------------------------ */

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
