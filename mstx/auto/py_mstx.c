/* SPDX-License-Identifier: MIT
 *
 * py_mstx: `import mstx`, with the functions of the vendor's module and a domain argument on
 * top.  The module marks through ms_tools_ext.h, so it works with any tool.
 *
 *     import mstx
 *     r = mstx.range_start("step")
 *     mstx.mark("loss is finite", domain="checks")
 *     mstx.range_end(r)
 *
 * The interpreter lock is kept: a mark takes less time than releasing the lock.
 */
#define PY_SSIZE_T_CLEAN
#include <patchlevel.h>
#if PY_VERSION_HEX >= 0x030A0000
#define Py_LIMITED_API 0x030A0000 /* one file for every Python since 3.10 */
#endif
#include <Python.h>

#include "mstx/ms_tools_ext.h"

#include <dlfcn.h>
#include <string.h>

/* Copies arguments, by position or keyword, into out, in the order of names. */
static int take_arguments(const char *fn, const char *const *names, Py_ssize_t n,
                          PyObject *const *args, Py_ssize_t npos, PyObject *kwnames, PyObject **out)
{
    Py_ssize_t nkw = kwnames != NULL ? PyTuple_Size(kwnames) : 0;
    if (npos > n) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments (%zd given)", fn, n, npos);
        return -1;
    }
    for (Py_ssize_t i = 0; i < npos; i++)
        out[i] = args[i];
    for (Py_ssize_t k = 0; k < nkw; k++) {
        const char *key = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(kwnames, k), NULL);
        Py_ssize_t i = 0;
        while (key != NULL && i < n && strcmp(names[i], key) != 0)
            i++;
        if (key == NULL || i == n || out[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected or repeated argument '%s'", fn,
                         key != NULL ? key : "?");
            return -1;
        }
        out[i] = args[npos + k];
    }
    return 0;
}

static int is_given(PyObject *o)
{
    return o != NULL && o != Py_None;
}

static int take_text(PyObject *o, const char **text)
{
    if (is_given(o) && !PyUnicode_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "messages and domains are text or None");
        return -1;
    }
    *text = is_given(o) ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;
    return is_given(o) && *text == NULL ? -1 : 0;
}

/* Converts an integer handle, as torch.npu streams have; the handle is a key and never
 * dereferenced. */
static int take_stream(PyObject *o, aclrtStream *stream)
{
    *stream = NULL;
    if (!is_given(o))
        return 0;
    if (!PyLong_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "stream must be an integer handle or None");
        return -1;
    }
    *stream = PyLong_AsVoidPtr(o);
    return *stream == NULL && PyErr_Occurred() ? -1 : 0;
}

static int take_domain(PyObject *o, mstxDomainHandle_t *domain)
{
    const char *name;
    *domain = NULL;
    if (take_text(o, &name) != 0)
        return -1;
    if (name != NULL && strcmp(name, "default") != 0)
        *domain = mstxDomainCreateA(name);
    return 0;
}

struct event {
    const char *message;
    aclrtStream stream;
    mstxDomainHandle_t domain;
};

static int take_event(const char *fn, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                      struct event *e)
{
    static const char *const names[] = {"message", "stream", "domain"};
    PyObject *given[3] = {NULL, NULL, NULL};
    if (take_arguments(fn, names, 3, args, n, kwnames, given) != 0 ||
        take_text(given[0], &e->message) != 0 || take_stream(given[1], &e->stream) != 0)
        return -1;
    return take_domain(given[2], &e->domain);
}

static PyObject *py_mark(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    struct event e;
    (void)self;
    if (take_event("mark", args, n, kwnames, &e) != 0)
        return NULL;
    if (e.domain != NULL)
        mstxDomainMarkA(e.domain, e.message, e.stream);
    else
        mstxMarkA(e.message, e.stream);
    Py_RETURN_NONE;
}

static PyObject *py_range_start(PyObject *self, PyObject *const *args, Py_ssize_t n,
                                PyObject *kwnames)
{
    struct event e;
    (void)self;
    if (take_event("range_start", args, n, kwnames, &e) != 0)
        return NULL;
    mstxRangeId id = e.domain != NULL ? mstxDomainRangeStartA(e.domain, e.message, e.stream)
                                      : mstxRangeStartA(e.message, e.stream);
    return PyLong_FromUnsignedLongLong(id);
}

static PyObject *py_range_end(PyObject *self, PyObject *const *args, Py_ssize_t n,
                              PyObject *kwnames)
{
    static const char *const names[] = {"range_id", "domain"};
    PyObject *given[2] = {NULL, NULL};
    mstxDomainHandle_t domain;
    (void)self;
    if (take_arguments("range_end", names, 2, args, n, kwnames, given) != 0 ||
        take_domain(given[1], &domain) != 0)
        return NULL;
    if (given[0] == NULL) {
        PyErr_SetString(PyExc_TypeError, "range_end() needs the id that range_start() gave");
        return NULL;
    }
    unsigned long long id = PyLong_AsUnsignedLongLong(given[0]);
    if (id == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    if (domain != NULL)
        mstxDomainRangeEnd(domain, id);
    else
        mstxRangeEnd(id);
    Py_RETURN_NONE;
}

static PyObject *py_get_tool_id(PyObject *self, PyObject *unused)
{
    uint64_t id = MSTX_TOOL_INVALID_ID;
    (void)self;
    (void)unused;
    mstxGetToolId(&id);
    return PyLong_FromUnsignedLongLong(id);
}

/* ---- collections of garbage ------------------------------------------------------------------- */

typedef void sample_use(void);

/* Returns the recorder's function that samples the use of processors, or NULL without a recorder. */
static sample_use *find_sample_use(void)
{
    sample_use *found;
    *(void **)&found = dlsym(RTLD_DEFAULT, "mstx_use_sample");
    return found;
}

static int is_of_all_generations(PyObject *info)
{
    PyObject *generation = PyDict_Check(info) ? PyDict_GetItemString(info, "generation") : NULL;
    return generation != NULL && PyLong_Check(generation) && PyLong_AsLong(generation) == 2;
}

/* A function of gc.callbacks, with the domain as its self. It is in C because Python may run a signal's handler
 * at each call of a function in Python, and the collector drops what such a handler raises. */
static PyObject *collection(PyObject *domain_name, PyObject *const *args, Py_ssize_t n)
{
    static _Thread_local mstxRangeId opened;
    static sample_use *sample;
    mstxDomainHandle_t domain;
    if (n != 2 || !PyUnicode_Check(args[0]) || !is_of_all_generations(args[1]) ||
        take_domain(domain_name, &domain) != 0) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    if (sample == NULL)
        sample = find_sample_use();
    if (sample != NULL)
        sample();
    if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
        opened = mstxDomainRangeStartA(domain, "garbage_collection", NULL);
    } else if (opened != 0) {
        mstxDomainRangeEnd(domain, opened);
        opened = 0;
    }
    Py_RETURN_NONE;
}

static PyObject *py_collection_of(PyObject *self, PyObject *domain)
{
    static PyMethodDef def = {"collection", (PyCFunction)(void (*)(void))collection, METH_FASTCALL,
                              "Marks collections of all generations."};
    mstxDomainHandle_t handle;
    (void)self;
    return take_domain(domain, &handle) == 0 ? PyCFunction_NewEx(&def, domain, NULL) : NULL;
}

#define FAST(fn) (PyCFunction)(void (*)(void)) fn, METH_FASTCALL | METH_KEYWORDS
static PyMethodDef methods[] = {
    {"mark", FAST(py_mark), "mark(message=None, stream=None, domain=None)\n\nA moment."},
    {"range_start", FAST(py_range_start),
     "range_start(message=None, stream=None, domain=None) -> int\n\n"
     "Begin a range; 0 when nobody records. Any thread may end it."},
    {"range_end", FAST(py_range_end), "range_end(range_id, domain=None)\n\nEnd a range."},
    {"get_tool_id", py_get_tool_id, METH_NOARGS,
     "get_tool_id() -> int\n\nThe tool that listens, 0: none."},
    {"_collection_of", py_collection_of, METH_O,
     "_collection_of(domain)\n\nA function for gc.callbacks that marks collections of all "
     "generations."},
    {NULL, NULL, 0, NULL}};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "mstx",
                             .m_doc = "Marks and ranges for timelines of training runs.",
                             .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_mstx(void);
PyMODINIT_FUNC PyInit_mstx(void)
{
    return PyModule_Create(&module);
}
