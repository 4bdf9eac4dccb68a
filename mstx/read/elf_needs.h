/* SPDX-License-Identifier: MIT
 *
 * elf_needs: which shared libraries the dynamic section of a program names (DT_NEEDED).
 */
#ifndef MSTX_READ_ELF_NEEDS_H
#define MSTX_READ_ELF_NEEDS_H

#include "probe/base/io.h"

#include <stdbool.h>

/* Maps a program, found in PATH as execvp finds it; returns an empty file when it cannot be read.
 * Free with ms_file_unmap. */
struct ms_file mstx_elf_open(const char *program);
/* Tells whether the program needs a library whose name begins with prefix.  Accepts any bytes:
 * returns false for scripts, static programs and empty files. */
bool mstx_elf_needs(struct ms_file program, const char *prefix);

#endif
