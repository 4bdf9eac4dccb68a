/* SPDX-License-Identifier: MIT
 *
 * elf_needs: which shared libraries a program asks for by itself.
 */
#ifndef MSTX_READ_ELF_NEEDS_H
#define MSTX_READ_ELF_NEEDS_H

#include "probe/base/io.h"

#include <stdbool.h>

/* The bytes of a program that is looked up in PATH as execvp does; nothing of one that cannot be
 * read.  ms_file_unmap gives them back. */
struct ms_file mstx_elf_open(const char *program);
/* Does a program name a library that begins with prefix in its dynamic section?  Its bytes may be
 * anything: no for scripts, for static programs and for nothing. */
bool mstx_elf_needs(struct ms_file program, const char *prefix);

#endif
