/* SPDX-License-Identifier: MIT
 *
 * alloc_python: the Python frames of the calling thread, read out of the interpreter's memory.
 *
 * PyTorch gives the interpreter's lock back while it computes, so nothing of Python may be called,
 * allocated or counted when it allocates. The frames of the thread itself stand still meanwhile, so
 * they are only read, at the places that each version of CPython (3.9 to 3.13) has for them. With
 * any other version there are no frames.
 */
#ifndef MSTX_HOOK_ALLOC_PYTHON_H
#define MSTX_HOOK_ALLOC_PYTHON_H

#include <stddef.h>
#include <stdint.h>

/* One frame. Texts belong to the interpreter and live as long as the frame runs; they are not
 * ended by NUL. */
struct alloc_frame {
    const char *file, *function;
    size_t file_n, function_n;
    int line;     /* 0 unless asked for */
    uint64_t key; /* equal for equal places of the program */
};

/* Reads the frames of this thread, the innermost first, at most `room`; returns their number.
 * with_lines: also finds the lines, which takes longer. */
size_t alloc_python_frames(struct alloc_frame *frame, size_t room, int with_lines);

#endif
