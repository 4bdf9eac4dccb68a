/* SPDX-License-Identifier: MIT
 *
 * ext_since: functions of Python 3.10 that the adapters use, for Python 3.9.
 */
#ifndef PROBE_PYTHON_EXT_SINCE_H
#define PROBE_PYTHON_EXT_SINCE_H

#include <Python.h>

#if PY_VERSION_HEX < 0x030A0000
static inline PyObject *ext__new_ref(PyObject *o)
{
    Py_INCREF(o);
    return o;
}
static inline PyObject *ext__xnew_ref(PyObject *o)
{
    Py_XINCREF(o);
    return o;
}
#define Py_NewRef(o)  ext__new_ref((PyObject *)(o))
#define Py_XNewRef(o) ext__xnew_ref((PyObject *)(o))
/* Unlike PyModule_AddObject it leaves the caller's reference alone, on success, too. */
static inline int PyModule_AddObjectRef(PyObject *module, const char *name, PyObject *o)
{
    Py_XINCREF(o);
    if (PyModule_AddObject(module, name, o) == 0)
        return 0;
    Py_XDECREF(o);
    return -1;
}
#endif

#endif
