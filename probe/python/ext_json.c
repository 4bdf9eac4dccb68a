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
    PyObject *text = PyLong_Type.tp_repr(v); /* a subclass may print itself in its own way */
    const char *p = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
    if (p != NULL)
        ms_jwrite_raw(json, ms_str_of(p));
    else
        ms_jwrite_null(json);
    PyErr_Clear();
    Py_XDECREF(text);
}

/* Tells whether the text of a key comes from C: that of a tuple comes from its items, and a class written in
 * Python prints itself in its own way. */
static bool prints_itself_in_c(PyObject *key)
{
    if ((Py_TYPE(key)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 || PyAnySet_Check(key))
        return false;
    bool is_plain = true;
    for (Py_ssize_t i = 0; PyTuple_Check(key) && i < PyTuple_GET_SIZE(key) && is_plain; i++) {
        PyObject *item = PyTuple_GET_ITEM(key, i);
        is_plain = !PyTuple_Check(item) && prints_itself_in_c(item);
    }
    return is_plain;
}

/* Returns the text of a key that is no string; of an object of a class written in Python, the name of its class and
 * its place in the dict. */
static PyObject *text_of_key(PyObject *key, Py_ssize_t place)
{
    if (PyLong_Check(key))
        return PyLong_Type.tp_repr(key);
    if (PyFloat_Check(key))
        return PyFloat_Type.tp_repr(key);
    if (prints_itself_in_c(key))
        return PyObject_Str(key);
    return PyUnicode_FromFormat("%s#%zd", Py_TYPE(key)->tp_name, place);
}

const char *ext_key_text(PyObject *key, Py_ssize_t place, PyObject **hold)
{
    *hold = NULL;
    if (PyUnicode_Check(key))
        return PyUnicode_AsUTF8(key);
    if (key == Py_None)
        return "null";
    if (PyBool_Check(key))
        return key == Py_True ? "true" : "false";
    *hold = text_of_key(key, place);
    return *hold != NULL ? PyUnicode_AsUTF8(*hold) : NULL;
}

/* Writes the items that a list or tuple holds; a subclass may have an __iter__ of its own. */
static void put_items(struct ms_jwrite *json, PyObject *sequence)
{
    ms_jwrite_arr(json);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); i++)
        ext_put_json(json, PySequence_Fast_GET_ITEM(sequence, i));
    ms_jwrite_arr_end(json);
}

void ext_put_members(struct ms_jwrite *json, PyObject *dict)
{
    PyObject *key, *value, *hold;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *text = ext_key_text(key, at, &hold);
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
