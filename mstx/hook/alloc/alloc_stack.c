/* SPDX-License-Identifier: MIT
 *
 * alloc_stack: see the header.
 */
#include "mstx/hook/alloc/alloc_stack.h"

#include "mstx/format/memory_names.h"
#include "mstx/hook/alloc/alloc_python.h"
#include "mstx/hook/real_function.h"

#include <stdio.h>
#include <string.h>

enum { FRAMES = 48, TEXT = 4096, STACKS = 1 << 13 };

/* Texts by hash of the frames, open addressing; entries are only added. */
static struct {
    _Atomic uint64_t hash; /* 0: free */
    _Atomic(const char *) text;
} stacks[STACKS];
static atomic_uint stacks_used;

static uint64_t hash_of(const struct alloc_frame *frame, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ frame[i].key) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 29;
    }
    return h != 0 ? h : 1;
}

/* Appends a text in which the separators of folded stacks are replaced; returns the new length. */
static size_t put(char *out, size_t at, const char *text, size_t n)
{
    for (size_t i = 0; i < n && at < TEXT; i++)
        out[at++] = text[i] == ';' || text[i] == '\n' || text[i] == '\0' ? '_' : text[i];
    return at;
}

/* The folders of packages are long and say little: the file is kept from the last one on. */
static void cut_folders(struct alloc_frame *f)
{
    static const char *const packages[] = {"site-packages/", "dist-packages/"};
    for (size_t i = 0; i < 2; i++) {
        const char *found = memmem(f->file, f->file_n, packages[i], strlen(packages[i]));
        if (found == NULL)
            continue;
        found += strlen(packages[i]);
        f->file_n -= (size_t)(found - f->file);
        f->file = found;
    }
}

/* Formats "at train.py:12 step;adam.py:80 step", the outermost frame first. Outer frames are left
 * out where the text would be too long: the inner ones say who allocates. */
static const char *format(struct alloc_frame *frame, size_t n)
{
    char text[TEXT], line[16];
    size_t at = put(text, 0, MSTX_MEMORY_STACK, sizeof MSTX_MEMORY_STACK - 1), length = at;
    size_t from = 0;
    for (; from < n; from++) {
        cut_folders(&frame[from]);
        length += frame[from].file_n + frame[from].function_n + sizeof line;
        if (length > TEXT)
            break;
    }
    for (size_t i = from; i-- > 0;) {
        const int digits = snprintf(line, sizeof line, ":%d ", frame[i].line);
        at = put(text, at, frame[i].file, frame[i].file_n);
        at = put(text, at, line, (size_t)digits);
        at = put(text, at, frame[i].function, frame[i].function_n);
        if (i != 0 && at < TEXT)
            text[at++] = ';';
    }
    char *kept = hook_keep(at + 1);
    if (kept != NULL)
        memcpy(kept, text, at); /* hook_keep zeroes the byte behind */
    return kept;
}

static HOOK_COLD const char *add_stack(size_t place, uint64_t hash)
{
    struct alloc_frame frame[FRAMES];
    uint64_t none = 0;
    if (atomic_load(&stacks_used) >= STACKS / 2 ||
        !atomic_compare_exchange_strong(&stacks[place].hash, &none, hash))
        return NULL;
    atomic_fetch_add(&stacks_used, 1);
    const size_t n = alloc_python_frames(frame, FRAMES, 1);
    const char *text = format(frame, n);
    atomic_store_explicit(&stacks[place].text, text, memory_order_release);
    return text;
}

const char *alloc_stack_text(void)
{
    struct alloc_frame frame[FRAMES];
    const size_t n = alloc_python_frames(frame, FRAMES, 0);
    if (n == 0)
        return NULL;
    const uint64_t hash = hash_of(frame, n);
    for (size_t i = hash % STACKS;; i = (i + 1) % STACKS) {
        const uint64_t there = atomic_load_explicit(&stacks[i].hash, memory_order_acquire);
        if (there == hash) /* another thread may still be formatting the text */
            return atomic_load_explicit(&stacks[i].text, memory_order_acquire);
        if (there == 0)
            return add_stack(i, hash);
    }
}
