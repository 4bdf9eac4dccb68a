/* SPDX-License-Identifier: MIT
 *
 * ext_state: state shared by all files of the module: the framework, the one dumper, the Python
 * frames of a call, and error handling.
 *
 * A place is identified by the code objects of its frames and the position in each, which takes a
 * few pointer reads. The text is made once. Code objects of known places are kept alive, so that no
 * new one gets the same address.
 */
#include "probe/python/ext.h"

#include "probe/base/fpu.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/write/dumper_state.h"

#include <frameobject.h>

enum { FRAMES_MAX = 128 };

struct ext_framework ext_fw;
struct probe_dumper *ext_dumper;
bool ext_host_only, ext_has_module_backward;

struct step {
    PyCodeObject *code;
    intptr_t at;
};

struct known {
    struct probe__place place;
    char **text; /* one allocation */
};

static struct ms_arena *arena;
static struct ms_map places; /* bytes of the steps -> index into known */
static MS_VEC(struct known *) known;
static PyObject *line_of_fn;
static PyObject *call_frames; /* list of texts before the stacks of functions, or NULL */

/* Used while another thread builds the text of a place, or when memory is short. */
static const char *const failed[] = {"The call stack retrieval failed."};
static struct probe__place unknown = {failed, 1, MS_MAP_NONE};

/* ---- walking ---------------------------------------------------------- */

static intptr_t how_far(PyFrameObject *f)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(f);
#else
    return PyFrame_GetLineNumber(f);
#endif
}

/* Collects code and position of each frame from steps[n] on. The frames outlive the call made from
 * them, and a running frame holds its code, so borrowed pointers suffice. */
static unsigned walk(struct step *steps, unsigned n)
{
    PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
    while (f != NULL && n < FRAMES_MAX) {
        PyCodeObject *code = PyFrame_GetCode(f);
        steps[n++] = (struct step){code, how_far(f)};
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(f);
        Py_DECREF(f);
        f = back;
    }
    Py_XDECREF(f);
    return n;
}

/* ---- text ------------------------------------------------------------- */

/* Imports what a step needs, before there is one: a program may count its imports. */
int ext_state_ready(void)
{
    PyObject *lines = PyImport_ImportModule("msprobe._lines");
    line_of_fn = lines != NULL ? PyObject_GetAttrString(lines, "line_of") : NULL;
    Py_XDECREF(lines);
    return line_of_fn != NULL ? 0 : -1;
}

static PyObject *source_line(PyObject *path, int line)
{
    PyObject *text =
        line_of_fn != NULL ? PyObject_CallFunction(line_of_fn, "Oi", path, line) : NULL;
    PyObject *bare = text != NULL ? PyObject_CallMethod(text, "strip", NULL) : NULL;
    Py_XDECREF(text);
    return bare;
}

static bool is_ours(PyObject *path)
{
    const char *p = PyUnicode_AsUTF8(path);
    return p != NULL && ext_fw.skip_path != NULL &&
           strncmp(p, ext_fw.skip_path, strlen(ext_fw.skip_path)) == 0;
}

/* Returns "File /w/net.py, line 10, in forward, \n return f(x)"; NULL: the frame is left out. */
static PyObject *frame_text(PyFrameObject *f, PyCodeObject *code)
{
    int line = PyFrame_GetLineNumber(f);
    PyObject *source = is_ours(code->co_filename) ? NULL : source_line(code->co_filename, line);
    PyObject *text = NULL;
    if (source != NULL && PyUnicode_GET_LENGTH(source) != 0)
        text = PyUnicode_FromFormat("File %U, line %d, in %U, \n %U", code->co_filename, line,
                                    code->co_name, source);
    ext_clear();
    Py_XDECREF(source);
    return text;
}

static PyObject *all_text(void)
{
    PyObject *list = PyList_New(0);
    PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
    while (f != NULL) {
        PyCodeObject *code = PyFrame_GetCode(f);
        PyObject *text = frame_text(f, code);
        if (text != NULL && list != NULL)
            PyList_Append(list, text);
        Py_XDECREF(text);
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(f);
        Py_DECREF(f);
        f = back;
    }
    PyErr_Clear();
    return list;
}

/* Copies the strings to one block, freed with ms_free. */
static char **copy_texts(PyObject *list, unsigned *n)
{
    size_t bytes = 0;
    *n = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        const char *p = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));
        bytes += sizeof(char *) + (p != NULL ? strlen(p) + 1 : 0);
    }
    PyErr_Clear();
    char **text = ms_alloc(bytes + sizeof(char *));
    char *at = text != NULL ? (char *)(text + PyList_GET_SIZE(list)) : NULL;
    for (Py_ssize_t i = 0; text != NULL && i < PyList_GET_SIZE(list); i++) {
        const char *p = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));
        if (p == NULL)
            continue; /* a path that is not valid UTF-8 */
        text[(*n)++] = memcpy(at, p, strlen(p) + 1);
        at += strlen(p) + 1;
    }
    PyErr_Clear();
    return text;
}

/* ---- places ----------------------------------------------------------- */

static struct known *new_known(PyObject *before)
{
    PyObject *list = all_text();
    if (list != NULL && before != NULL && PyList_SetSlice(list, 0, 0, before) != 0)
        Py_CLEAR(list);
    struct known *k = list != NULL ? ms_calloc(1, sizeof *k) : NULL;
    if (k != NULL) {
        k->text = copy_texts(list, &k->place.n);
        k->place.frames = (const char *const *)k->text;
        k->place.group = MS_MAP_NONE;
    }
    Py_XDECREF(list);
    return k;
}

static struct known *add_place(const struct step *steps, unsigned n, uint32_t at, PyObject *before)
{
    struct known *k = new_known(before);
    known.p[at] = k;
    for (unsigned i = 0; i < n; i++)
        Py_XINCREF(steps[i].code);
    return k;
}

/* before: frames that are none of the program, or NULL; a first step without code stands for them. */
static struct probe__place *place_behind(PyObject *before)
{
    struct step steps[FRAMES_MAX] = {{NULL, 0}};
    bool added;
    unsigned n = walk(steps, before != NULL ? 1 : 0);
    if (arena == NULL)
        arena = ms_arena_new(SIZE_MAX);
    if (arena == NULL || !ms_vec_reserve(&known, known.n + 1))
        return &unknown;
    uint32_t at = ms_map_put_copy(
        &places, (struct ms_str){(const char *)steps, n * (uint32_t)sizeof *steps}, arena, &added);
    if (at == MS_MAP_NONE)
        return &unknown;
    if (added)
        known.p[known.n++] = NULL;
    struct known *k = added ? add_place(steps, n, at, before) : known.p[at];
    return k != NULL ? &k->place : &unknown;
}

struct probe__place *ext_place(void)
{
    return place_behind(NULL);
}

struct probe__place *ext_function_place(const char *prefix)
{
    bool has_more = ext_dumper != NULL && ext_dumper->s.strict && strcmp(prefix, "Primitive") != 0;
    return place_behind(has_more ? call_frames : NULL);
}

bool ext_set_call_frames(PyObject *frames)
{
    PyObject *list = PySequence_List(frames);
    if (list == NULL)
        return false;
    Py_XSETREF(call_frames, list);
    return true;
}

void ext_forget_places(void)
{
    unknown.group = MS_MAP_NONE;
    for (size_t i = 0; i < known.n; i++) {
        if (known.p[i] != NULL)
            known.p[i]->place.group = MS_MAP_NONE;
    }
}

/* Looks into the dict of this thread: a question in Python would cost each call of a function four
 * times as much. */
bool ext_is_tracing(void)
{
    static PyObject *dict_name, *name;
    if (ext_fw.tracing == NULL)
        return false;
    if (name == NULL) {
        dict_name = PyUnicode_InternFromString("__dict__");
        name = PyUnicode_InternFromString("tracing_context");
    }
    PyObject *dict = name != NULL ? PyObject_GetAttr(ext_fw.tracing, dict_name) : NULL;
    PyObject *v = dict != NULL && PyDict_Check(dict) ? PyDict_GetItemWithError(dict, name) : NULL;
    bool is_on = v != NULL && v != Py_None;
    if (v == NULL)
        PyErr_Clear();
    Py_XDECREF(dict);
    return is_on;
}

PyObject *ext_attribute(PyObject *module, PyObject *name)
{
    PyObject *dict = NULL, *value = NULL;
    if (_PyType_Lookup(Py_TYPE(module), name) == NULL)
        dict = PyObject_GenericGetDict(module, NULL);
    if (dict != NULL)
        value = Py_XNewRef(PyDict_GetItemWithError(dict, name));
    Py_XDECREF(dict);
    if (value != NULL)
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(module, name);
}

PyObject *ext_alive(PyObject *reference)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *object = NULL;
    (void)PyWeakref_GetRef(reference, &object);
    return object;
#else
    PyObject *object = PyWeakref_GET_OBJECT(reference);
    return object != Py_None ? Py_NewRef(object) : NULL;
#endif
}

/* ---- errors ------------------------------------------------------------ */

void ext_note(const char *where, const char *why)
{
    char text[1024];
    snprintf(text, sizeof text, "%s%s%s", where, *where != '\0' ? " is left out: " : "", why);
    if (ext_dumper != NULL)
        probe__note_at(ext_dumper, PROBE__BAD_VALUE, ext_place(), text);
}

bool ext_is_off;

void ext_switch_off(const char *why)
{
    if (ext_is_off)
        return;
    struct ms_err err = {0};
    ext_is_off = true;
    ext_note("", why);
    (void)ms_fail(&err, MS_E_INTERNAL, "%s; the training goes on, nothing is dumped any more", why);
    if (ext_dumper != NULL)
        probe__give_up(ext_dumper, &err);
}

/* Clears the current exception and passes its text to `then`; one that is none of ours is raised again in the
 * program. */
static void take_exception(const char *where, void (*then)(const char *where, const char *why))
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (type == NULL)
        return;
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL && value != NULL)
        PyException_SetTraceback(value, trace);
    if (value == NULL || !ext_pass_on(value)) {
        PyObject *text = value != NULL ? PyObject_Str(value) : NULL;
        const char *p = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
        PyErr_Clear();
        then(where, p != NULL ? p : "?");
        Py_XDECREF(text);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

static void ignore(const char *where, const char *why)
{
    (void)where;
    (void)why;
}

void ext_clear(void)
{
    take_exception("", ignore);
}

void ext_swallow(const char *where)
{
    take_exception(where, ext_note);
}

static void switch_off_for(const char *where, const char *why)
{
    char text[1024];
    snprintf(text, sizeof text, "%s: %s", where, why);
    ext_switch_off(text);
}

void ext_fail(const char *where)
{
    /* The program has used up the stack, so this is not an error of ours. */
    bool is_program = PyErr_ExceptionMatches(PyExc_RecursionError) != 0;
    take_exception(where, is_program ? ext_note : switch_off_for);
}

const char *ext_data_dir(void)
{
    const char *dir = ext_dumper != NULL ? ext_dumper->files.data_dir : NULL;
    return dir != NULL ? dir : "";
}

/* ---- unseen by the program ---------------------------------------------
 * A program may have modes, objects that the framework asks about each call, even about the shape of
 * a tensor. While the C half or the adapter reads tensors, the modes are out of the way. Programs
 * rarely have any, so a question to the framework, some 30 ns, comes first. */

bool ext_is_yes(PyObject *question, PyObject *about)
{
    PyObject *v = question == NULL ? NULL
                  : about == NULL  ? PyObject_CallNoArgs(question)
                                   : PyObject_CallOneArg(question, about);
    bool yes = v == Py_True || (v != NULL && v != Py_False && PyObject_IsTrue(v) == 1);
    if (v == NULL)
        PyErr_Clear();
    Py_XDECREF(v);
    return yes;
}

static PyObject *quiet(void)
{
    PyObject *guard = PyObject_CallNoArgs(ext_fw.quiet);
    if (guard == NULL)
        ext_swallow("the modes of the program");
    return guard;
}

unsigned ext_inside;

struct ext_guard ext_quiet(bool with_kernels)
{
    ext_inside++;
    bool has_modes = ext_is_yes(ext_fw.function_modes, NULL) ||
                     (with_kernels && ext_is_yes(ext_fw.dispatch_modes, NULL));
    return (struct ext_guard){.modes = has_modes ? quiet() : NULL, .fpu = ms_fpu_hold()};
}

void ext_loud(struct ext_guard guard)
{
    PyObject *type, *value, *trace;
    ms_fpu_restore(guard.fpu);
    if (guard.modes != NULL) {
        PyErr_Fetch(&type, &value, &trace);
        PyObject *done = PyObject_CallMethod(guard.modes, "end", NULL);
        if (done == NULL)
            ext_swallow("the modes of the program");
        Py_XDECREF(done);
        Py_DECREF(guard.modes);
        PyErr_Restore(type, value, trace);
    }
    ext_inside--;
}
