/* SPDX-License-Identifier: MIT
 *
 * ext_json: writes Python's lists, dicts, numbers and strings as JSON.
 */
#include "probe/python/ext.h"

/* Writes a string; a lone surrogate becomes three bytes. */
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
    PyObject *text = PyObject_Str(v); /* a subclass may print anything; only digits are taken */
    const char *p = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
    if (p != NULL && (p[0] == '-' || (p[0] >= '0' && p[0] <= '9')))
        ms_jwrite_raw(json, ms_str_of(p));
    else
        ms_jwrite_null(json);
    PyErr_Clear();
    Py_XDECREF(text);
}

const char *ext_key_text(PyObject *key, PyObject **hold)
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

void ext_put_members(struct ms_jwrite *json, PyObject *dict)
{
    PyObject *key, *value, *hold;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *text = ext_key_text(key, &hold);
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
        ext_put_members(json, v);
        ms_jwrite_obj_end(json);
    }
}
