/* SPDX-License-Identifier: MIT
 *
 * elf_needs: see elf_needs.h.  The file may be anything: every offset is checked.
 */
#include "mstx/read/elf_needs.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns n bytes of the file at off, NULL when the file is too short. */
static const void *bytes_at(struct ms_file file, uint64_t off, uint64_t n)
{
    return off <= file.n && n <= file.n - off ? file.p + off : NULL;
}

/* Converts a virtual address into an offset in the file; false when no segment holds it. */
static bool place_of(struct ms_file file, const Elf64_Ehdr *h, uint64_t address, uint64_t *off)
{
    for (unsigned i = 0; i < h->e_phnum; i++) {
        Elf64_Phdr p;
        const void *from = bytes_at(file, h->e_phoff + i * sizeof p, sizeof p);
        if (from == NULL)
            return false;
        memcpy(&p, from, sizeof p);
        if (p.p_type == PT_LOAD && address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz) {
            *off = p.p_offset + (address - p.p_vaddr);
            return true;
        }
    }
    return false;
}

static bool find_dynamic(struct ms_file file, const Elf64_Ehdr *h, Elf64_Phdr *out)
{
    for (unsigned i = 0; i < h->e_phnum; i++) {
        const void *from = bytes_at(file, h->e_phoff + i * sizeof *out, sizeof *out);
        if (from == NULL)
            return false;
        memcpy(out, from, sizeof *out);
        if (out->p_type == PT_DYNAMIC)
            return true;
    }
    return false;
}

/* Reads the i-th entry of the dynamic section; returns false after the last. */
static bool read_entry(struct ms_file file, const Elf64_Phdr *dynamic, uint64_t i, Elf64_Dyn *d)
{
    const void *from = bytes_at(file, dynamic->p_offset + i * sizeof *d, sizeof *d);
    if (from == NULL || (i + 1) * sizeof *d > dynamic->p_filesz)
        return false;
    memcpy(d, from, sizeof *d);
    return d->d_tag != DT_NULL;
}

bool mstx_elf_needs(struct ms_file file, const char *prefix)
{
    const size_t n = strlen(prefix);
    Elf64_Ehdr h;
    Elf64_Phdr dynamic;
    Elf64_Dyn d;
    uint64_t texts = 0;
    if (bytes_at(file, 0, sizeof h) == NULL)
        return false;
    memcpy(&h, file.p, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_phentsize != sizeof dynamic || !find_dynamic(file, &h, &dynamic))
        return false;
    for (uint64_t i = 0; read_entry(file, &dynamic, i, &d); i++) {
        if (d.d_tag == DT_STRTAB && texts == 0 && !place_of(file, &h, d.d_un.d_ptr, &texts))
            return false;
    }
    for (uint64_t i = 0; texts != 0 && read_entry(file, &dynamic, i, &d); i++) {
        const uint64_t name = texts + d.d_un.d_val;
        if (d.d_tag == DT_NEEDED && name >= texts && bytes_at(file, name, n) != NULL &&
            memcmp(file.p + name, prefix, n) == 0)
            return true;
    }
    return false;
}

static char *find_program(const char *program)
{
    const char *path = getenv("PATH");
    if (strchr(program, '/') != NULL)
        return ms_path_join(program[0] == '/' ? "/" : ".", program);
    struct ms_str rest = ms_str_of(path != NULL ? path : "/usr/bin:/bin"), dir;
    while (ms_str_split(&rest, ':', &dir)) {
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%.*s", MS_STR_ARG(dir));
        char *file = ms_path_join(dir.n != 0 ? folder : ".", program);
        if (file != NULL && access(file, X_OK) == 0)
            return file;
        ms_free(file);
    }
    return NULL;
}

struct ms_file mstx_elf_open(const char *program)
{
    char *path = find_program(program);
    struct ms_file f = {0};
    struct ms_err ignored = {0};
    if (path == NULL || ms_file_map(&f, path, (size_t)1 << 32, &ignored) != MS_OK)
        f = (struct ms_file){0};
    ms_free(path);
    return f;
}
