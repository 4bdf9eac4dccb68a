/* SPDX-License-Identifier: MIT
 *
 * par: finds out whether mpirun has started this process, finds the plugin, and builds messages of
 * any length from pieces.
 *
 *     8 bytes length, then pieces of MS_PAR_PIECE
 */
#include "probe/base/par.h"

#include "probe/base/assert.h"
#include "probe/base/beside.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/base/par_plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct ms_par {
    const struct ms_par_plugin *mpi; /* NULL: a single process */
    unsigned rank, size;
};

/* ---- detection of mpirun --------------------------------------------------- */

struct flavour {
    const char *name;
    const char *size; /* variable that this flavour's mpirun sets */
};
static const struct flavour flavours[] = {
    {"openmpi", "OMPI_COMM_WORLD_SIZE"}, {"mpich", "PMI_SIZE"}, /* and MPIs derived from it */
};

/* Finds the flavour of MPI; NULL for a single process. */
static const struct flavour *find_flavour(uint64_t *size)
{
    for (size_t i = 0; i < sizeof flavours / sizeof *flavours; i++) {
        const char *text = getenv(flavours[i].size);
        if (text != NULL && ms_str_u64(ms_str_of(text), size) && *size > 1)
            return &flavours[i];
    }
    return NULL;
}

/* ---- programs that have an MPI of their own --------------------------------- */

/* Tells whether a file of a process in /proc holds a word. */
static bool holds_word(long pid, const char *file, const char *word)
{
    char path[64], text[1 << 14];
    const size_t n = strlen(word);
    size_t kept = 0, got;
    bool found = false;
    ms_assert(n != 0 && n < sizeof text);
    snprintf(path, sizeof path, "/proc/%ld/%s", pid, file);
    FILE *f = fopen(path, "re");
    while (f != NULL && !found && (got = fread(text + kept, 1, sizeof text - kept, f)) > 0) {
        const size_t all = kept + got;
        found = memmem(text, all, word, n) != NULL;
        kept = all < n - 1 ? all : n - 1; /* the word may go on in the next piece */
        memmove(text, text + all - kept, kept);
    }
    if (f != NULL)
        fclose(f);
    return found;
}

/* Returns the parent of a process, 0 when it is not known. */
static long parent_of(long pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    const size_t n = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f != NULL)
        fclose(f);
    const char *name_end = strrchr(text, ')'); /* "PID (NAME) STATE PARENT ..." */
    return name_end != NULL && strlen(name_end) > 4 ? strtol(name_end + 4, NULL, 10) : 0;
}

/* Tells whether a program of the job that uses MPI has started this process. MPI cannot be started
 * once more below it, and the other processes of the job do not come. */
static bool is_within_program(const struct flavour *f)
{
    enum { ANCESTORS = 32 };
    long pid = getppid();
    for (int i = 0; i < ANCESTORS && pid > 1 && holds_word(pid, "environ", f->size); i++) {
        if (holds_word(pid, "maps", "/libmpi"))
            return true;
        pid = parent_of(pid);
    }
    return false;
}

bool ms_par_is_variable(const char *entry)
{
    const char *end = strchr(entry, '=');
    const struct ms_str name = {entry, (uint32_t)(end != NULL ? end - entry : 0)};
    for (size_t i = 0; i < sizeof flavours / sizeof *flavours; i++) {
        if (ms_str_is(name, flavours[i].size))
            return true;
    }
    return false;
}

/* ---- the plugin -------------------------------------------------------------- */

/* Finds the plugin of a flavour; false when there is none. */
static bool find_file(const char *flavour, char *path, size_t cap)
{
    char built[64], installed[sizeof built + 16];
    const char *folder = getenv("MSPROBE_PLUGINS");
    snprintf(built, sizeof built, "libmsprobe_mpi_%s.so", flavour);
    if (folder != NULL && folder[0] != 0) {
        int n = snprintf(path, cap, "%s/%s", folder, built);
        return n > 0 && (size_t)n < cap && access(path, R_OK) == 0;
    }
    snprintf(installed, sizeof installed, "../lib/msprobe/%s", built);
    return ms_place_find(&(struct ms_place){built, installed}, path, cap);
}

static void *open_library(const char *flavour)
{
    char path[2 * PATH_MAX];
    /* RTLD_GLOBAL: components that Open MPI opens later look up its symbols globally. */
    return find_file(flavour, path, sizeof path) ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
}

static enum ms_rc find_plugin(struct ms_par *par, const struct flavour *f, uint64_t size,
                              struct ms_err *err)
{
    void *library = open_library(f->name);
    const char *why = library == NULL ? dlerror() : NULL;
    par->mpi = library != NULL ? dlsym(library, "ms_par_plugin") : NULL;
    if (par->mpi != NULL && par->mpi->version == MS_PAR_PLUGIN_VERSION)
        return MS_OK;
    ms_fail(err, MS_E_NOTFOUND, "mpirun has started %llu processes, but libmsprobe_mpi_%s.so %s%s",
            (unsigned long long)size, f->name,
            par->mpi != NULL ? "is of another version"
            : why != NULL    ? "cannot be used: "
                             : "is not beside the program",
            why != NULL && par->mpi == NULL ? why : "");
    ms_err_hint(err, "build msprobe where mpicc.%s is, or run it without mpirun", f->name);
    par->mpi = NULL;
    return MS_E_NOTFOUND;
}

static enum ms_rc report_failure(const struct ms_par *par, int code, const char *doing,
                                 struct ms_err *err)
{
    char text[128] = "";
    par->mpi->explain(code, text, sizeof text);
    return ms_fail(err, MS_E_IO, "%s: %s: %s", par->mpi->name, doing, text);
}

enum ms_rc ms_par_open(struct ms_par **out, struct ms_err *err)
{
    uint64_t size = 1;
    const struct flavour *f = find_flavour(&size);
    if (f != NULL && is_within_program(f))
        f = NULL;
    struct ms_par *par = ms_calloc(1, sizeof *par);
    *out = NULL;
    if (par == NULL)
        return ms_no_memory(err);
    par->size = 1;
    enum ms_rc rc = f != NULL ? find_plugin(par, f, size, err) : MS_OK;
    if (rc == MS_OK && par->mpi != NULL) {
        int code = par->mpi->begin(&par->rank, &par->size);
        if (code != 0)
            rc = report_failure(par, code, "starting", err);
        else
            ms_log_set_rank((int)par->rank);
    }
    if (rc != MS_OK) {
        ms_free(par);
        return rc;
    }
    *out = par;
    return MS_OK;
}

void ms_par_close(struct ms_par *par)
{
    if (par != NULL && par->mpi != NULL)
        par->mpi->end();
    ms_free(par);
}

unsigned ms_par_rank(const struct ms_par *par)
{
    return par != NULL ? par->rank : 0;
}
unsigned ms_par_size(const struct ms_par *par)
{
    return par != NULL ? par->size : 1;
}

/* ---- messages ------------------------------------------------------------------ */

enum ms_rc ms_par_send(struct ms_par *par, unsigned to, const void *p, size_t n, struct ms_err *err)
{
    uint64_t length = n;
    if (to >= par->size || to == par->rank)
        return ms_fail(err, MS_E_ARG, "no process %u to send to", to);
    int code = par->mpi->send(to, &length, sizeof length);
    for (size_t at = 0; at < n && code == 0; at += MS_PAR_PIECE) {
        size_t piece = n - at < MS_PAR_PIECE ? n - at : MS_PAR_PIECE;
        code = par->mpi->send(to, (const char *)p + at, piece);
    }
    return code == 0 ? MS_OK : report_failure(par, code, "sending", err);
}

enum ms_rc ms_par_recv(struct ms_par *par, int from, struct ms_buf *into, unsigned *who,
                       struct ms_err *err)
{
    uint64_t length = 0;
    ms_buf_clear(into);
    if (par->mpi == NULL || from >= (int)par->size)
        return ms_fail(err, MS_E_ARG, "no process %d to hear from", from);
    int code = par->mpi->recv(from, &length, sizeof length, who);
    if (code != 0)
        return report_failure(par, code, "receiving", err);
    char *room = length != 0 ? ms_buf_room(into, (size_t)length) : NULL;
    if (length != 0 && room == NULL)
        return ms_buf_check(into, err);
    for (size_t at = 0; at < length && code == 0; at += MS_PAR_PIECE) {
        size_t piece = length - at < MS_PAR_PIECE ? (size_t)length - at : MS_PAR_PIECE;
        code = par->mpi->recv((int)*who, room + at, piece, who);
    }
    into->n = (size_t)length;
    return code == 0 ? MS_OK : report_failure(par, code, "receiving", err);
}

enum ms_rc ms_par_share(struct ms_par *par, void *p, size_t n, struct ms_err *err)
{
    unsigned who;
    if (ms_par_size(par) == 1)
        return MS_OK;
    for (unsigned i = 1; par->rank == 0 && i < par->size; i++)
        MS_TRY(ms_par_send(par, i, p, n, err));
    if (par->rank == 0)
        return MS_OK;
    struct ms_buf got = {.max = n + 1};
    enum ms_rc rc = ms_par_recv(par, 0, &got, &who, err);
    if (rc == MS_OK && got.n != n)
        rc = ms_fail(err, MS_E_FORMAT, "%zu bytes from process 0 instead of %zu", got.n, n);
    if (rc == MS_OK && n != 0)
        memcpy(p, got.p, n);
    ms_buf_free(&got);
    return rc;
}

enum ms_rc ms_par_agree(struct ms_par *par, bool mine, bool *all, struct ms_err *err)
{
    struct ms_buf got = {.max = 16};
    enum ms_rc rc = MS_OK;
    unsigned who;
    *all = mine;
    if (ms_par_rank(par) != 0)
        rc = ms_par_send(par, 0, &mine, sizeof mine, err);
    for (unsigned i = 1; rc == MS_OK && ms_par_rank(par) == 0 && i < ms_par_size(par); i++) {
        rc = ms_par_recv(par, (int)i, &got, &who, err);
        *all = *all && rc == MS_OK && got.n == sizeof mine && got.p[0] != 0;
    }
    ms_buf_free(&got);
    return rc == MS_OK ? ms_par_share(par, all, sizeof *all, err) : rc;
}
