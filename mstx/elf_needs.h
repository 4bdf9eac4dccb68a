/* SPDX-License-Identifier: MIT
 *
 * elf_needs: which shared libraries a program asks for by itself.
 */
#ifndef MSTX_ELF_NEEDS_H
#define MSTX_ELF_NEEDS_H

#include "probe/base/io.h"

#include <stdbool.h>

/* Does the program, looked up in PATH as execvp does, name a library that begins with prefix in its
 * dynamic section?  No for scripts, for static programs and for what cannot be read. */
bool mstx_elf_needs(const char *program, const char *prefix);
/* The same of a file's bytes, which may be anything. */
bool mstx__elf_names(struct ms_file file, struct ms_str prefix);

#endif
