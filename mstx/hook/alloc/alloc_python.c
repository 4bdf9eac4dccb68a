/* SPDX-License-Identifier: MIT
 *
 * alloc_python: see the header.
 *
 *     3.9, 3.10    thread ─► frame ─► back ─► ..           frame: code, last instruction (a number)
 *     3.11, 3.12   thread ─► cframe ─► frame ─► previous   frame: code, last instruction (an address)
 *     3.13         thread ─► frame ─► previous
 */
#include "mstx/hook/alloc/alloc_python.h"

#include "mstx/hook/real_function.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Offsets in bytes, as offsetof gives them with the headers of each version on 64-bit machines. */
struct layout {
    const char *version;                 /* how Py_GetVersion begins */
    int16_t of_thread;                   /* frame or cframe in the state of a thread */
    int16_t of_cframe;                   /* frame in the cframe; -1: there is none */
    int16_t code, previous, instruction; /* in a frame */
    int16_t instructions;                /* in a code object; -1: the instruction is a number */
    int16_t unit;                        /* bytes of one such number */
    int16_t file, function;              /* in a code object */
    int16_t characters;                  /* of a text that is ASCII, behind its head */
};
enum { OBJECT_TYPE = 8, TEXT_LENGTH = 16, TEXT_STATE = 32, TEXT_COMPACT_ASCII = 0x60 };
static const struct layout layouts[] = {
    {"3.9.", 24, -1, 32, 24, 104, -1, 1, 104, 112, 48},
    {"3.10.", 24, -1, 32, 24, 96, -1, 2, 104, 112, 48},
    {"3.11.", 56, 8, 32, 48, 56, 184, 1, 112, 120, 48},
    {"3.12.", 56, 0, 0, 8, 56, 192, 1, 112, 120, 40},
    {"3.13.", 72, -1, 0, 8, 56, 200, 1, 112, 120, 40},
};

/* What the process has of an interpreter. */
static struct {
    const struct layout *layout;
    void *(*this_thread)(void);
    int (*line_of)(void *code, int instruction);
    const void *code_type, *text_type;
} python;
enum { NOT_LOOKED, LOOKING, NONE, FOUND };
static atomic_int state;
static atomic_uint asked;

/* Finds the interpreter, which may be a program or a library. */
static HOOK_COLD bool find_python(void)
{
    const char *(*version_of)(void);
    *(void **)(void *)&version_of = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    *(void **)(void *)&python.this_thread = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    *(void **)(void *)&python.line_of = dlsym(RTLD_DEFAULT, "PyCode_Addr2Line");
    python.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    python.text_type = dlsym(RTLD_DEFAULT, "PyUnicode_Type");
    if (version_of == NULL || python.this_thread == NULL || python.line_of == NULL ||
        python.code_type == NULL || python.text_type == NULL)
        return false;
    const char *version = version_of();
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (strncmp(version, layouts[i].version, strlen(layouts[i].version)) == 0 &&
            strstr(version, "free-threading") == NULL)
            python.layout = &layouts[i];
    }
    return python.layout != NULL;
}

/* Looks for the interpreter once; a program that loads one late is asked again now and then. */
static bool has_python(void)
{
    int was = atomic_load_explicit(&state, memory_order_acquire);
    if (HOOK_LIKELY(was == FOUND))
        return true;
    if (was == NONE && (atomic_fetch_add(&asked, 1) & 0xfff) != 0)
        return false;
    if (was == LOOKING || !atomic_compare_exchange_strong(&state, &was, LOOKING))
        return false;
    const bool found = find_python();
    atomic_store_explicit(&state, found ? FOUND : NONE, memory_order_release);
    return found;
}

/* Returns the pointer that lies `offset` bytes behind the begin of an object. */
static const char *pointer_at(const char *object, int offset)
{
    const char *p;
    memcpy(&p, object + offset, sizeof p);
    return p;
}

static const char *text_of(const char *text, size_t *n)
{
    uint32_t bits;
    int64_t length;
    *n = 1;
    if (text == NULL || pointer_at(text, OBJECT_TYPE) != python.text_type)
        return "?";
    memcpy(&bits, text + TEXT_STATE, sizeof bits);
    memcpy(&length, text + TEXT_LENGTH, sizeof length);
    if ((bits & TEXT_COMPACT_ASCII) != TEXT_COMPACT_ASCII || length < 0)
        return "?"; /* letters beyond ASCII lie elsewhere */
    *n = (size_t)length;
    return text + python.layout->characters;
}

/* Returns the place of the frame's last instruction in its code, in bytes. */
static int instruction_of(const char *frame, const char *code)
{
    const struct layout *l = python.layout;
    int number;
    if (l->instructions >= 0)
        return (int)(pointer_at(frame, l->instruction) - (code + l->instructions));
    memcpy(&number, frame + l->instruction, sizeof number);
    return number * l->unit;
}

static void read_frame(struct alloc_frame *to, const char *frame, const char *code, bool with_lines)
{
    const struct layout *l = python.layout;
    const int instruction = instruction_of(frame, code);
    const char *file = pointer_at(code, l->file), *function = pointer_at(code, l->function);
    *to = (struct alloc_frame){0};
    to->key = ((uint64_t)(uintptr_t)code * 31 + (uint64_t)(uintptr_t)file) * 31 +
              (uint64_t)(uintptr_t)function + ((uint64_t)(uint32_t)instruction << 40);
    if (!with_lines)
        return;
    to->file = text_of(file, &to->file_n);
    to->function = text_of(function, &to->function_n);
    to->line = python.line_of((void *)(uintptr_t)code, instruction);
}

size_t alloc_python_frames(struct alloc_frame *frame, size_t room, int with_lines)
{
    if (sizeof(void *) != 8 || !has_python())
        return 0;
    const struct layout *l = python.layout;
    const char *at = python.this_thread();
    size_t n = 0;
    at = at != NULL ? pointer_at(at, l->of_thread) : NULL;
    if (l->of_cframe >= 0)
        at = at != NULL ? pointer_at(at, l->of_cframe) : NULL;
    /* frames that are no function, such as those of the interpreter itself, have no code object */
    for (size_t seen = 0; at != NULL && n < room && seen < 4 * room; seen++) {
        const char *code = pointer_at(at, l->code);
        if (code != NULL && pointer_at(code, OBJECT_TYPE) == python.code_type)
            read_frame(&frame[n++], at, code, with_lines != 0);
        at = pointer_at(at, l->previous);
    }
    return n;
}
