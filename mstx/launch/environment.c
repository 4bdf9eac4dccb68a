/* SPDX-License-Identifier: MIT
 *
 * environment: see the header.
 *
 * How a program finds the recorder depends on how it marks: by the variable of the marking headers,
 * by a preload if it looks the functions up, by the variable of NVTX.
 */
#include "mstx/launch/environment.h"

#include "mstx/read/elf_needs.h"

#include "probe/base/beside.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum ms_rc find_library(const struct ms_place *place, char *path, size_t cap,
                               struct ms_err *err)
{
    if (ms_place_find(place, path, cap))
        return MS_OK;
    return ms_fail(err, MS_E_NOTFOUND, "%s is not there; is msprobe installed whole?", path);
}

/* Makes `import mstx` work in Python programs if the module was built. In front of it the folder
 * "auto" has a sitecustomize that marks PyTorch and then runs the sitecustomize of the program. */
static void offer_python(bool torch)
{
    static const struct ms_place place = {"python/mstx.so", "../lib/msprobe/python/mstx.so"};
    char path[PATH_MAX], list[4 * PATH_MAX];
    struct ms_err ignored = {0};
    const char *others = getenv("PYTHONPATH");
    if (find_library(&place, path, sizeof path, &ignored) != MS_OK)
        return;
    *strrchr(path, '/') = '\0';
    bool more = others != NULL && *others != '\0';
    snprintf(list, sizeof list, "%s%s%s%s%s", torch ? path : "", torch ? "/auto:" : "", path,
             more ? ":" : "", more ? others : "");
    setenv("PYTHONPATH", list, 1);
}

static void set_variable(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
}

/* Formats without the decimal comma of a locale. */
static void set_seconds(const char *name, double seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%lld.%03lld", (long long)seconds,
             (long long)(seconds * 1000) % 1000);
    set_variable(name, text);
}

/* Adds a library in front of those that are preloaded already. */
static void preload_library(const char *library)
{
    char list[2 * PATH_MAX];
    const char *others = getenv("LD_PRELOAD");
    snprintf(list, sizeof list, "%s%s%s", library, others != NULL ? ":" : "",
             others != NULL ? others : "");
    setenv("LD_PRELOAD", list, 1);
}

/* ---- communication hooks ---------------------------------------------------------------------- */

static bool has_any(const char *const *names)
{
    for (; *names != NULL; names++) {
        if (getenv(*names) != NULL)
            return true;
    }
    return false;
}

/* Finds the flavour of MPI by the variables of the launcher and by the libraries that the
 * program links. */
static enum mstx_launch_comm find_mpi(struct ms_file program)
{
    static const char *const openmpi[] = {"OMPI_COMM_WORLD_RANK", "OMPI_UNIVERSE_SIZE", NULL};
    static const char *const mpich[] = {"PMI_RANK", "PMI_FD", NULL};
    if (has_any(openmpi))
        return MSTX_COMM_OPENMPI;
    if (mstx_elf_needs(program, "libmpi.so.40"))
        return MSTX_COMM_OPENMPI;
    if (mstx_elf_needs(program, "libmpich.so.12") || mstx_elf_needs(program, "libmpi.so.12"))
        return MSTX_COMM_MPICH;
    return has_any(mpich) ? MSTX_COMM_MPICH : MSTX_COMM_NONE;
}

/* Preloads the hooks of NCCL, HCCL and device streams, which cost nothing in a program without
 * these. */
static enum ms_rc preload_ccl(struct ms_err *err)
{
    static const struct ms_place place = {"libmstx_hook.so", "../lib/msprobe/libmstx_hook.so"};
    char path[PATH_MAX];
    MS_TRY(find_library(&place, path, sizeof path, err));
    preload_library(path);
    setenv("NCCL_PROFILER_PLUGIN", path, 0); /* keeps a value that another tool has set */
    return MS_OK;
}

static enum ms_rc preload_dlsym(struct ms_err *err)
{
    static const struct ms_place place = {"libmstx_dlsym.so", "../lib/msprobe/libmstx_dlsym.so"};
    char path[PATH_MAX];
    MS_TRY(find_library(&place, path, sizeof path, err));
    preload_library(path);
    return MS_OK;
}

/* Preloads the hooks of MPI. A flavour that the user named must be there; one that was detected
 * need not. */
static enum ms_rc preload_hooks(int comm, struct ms_file program, struct ms_err *err)
{
    static const struct ms_place places[] = {
        [MSTX_COMM_OPENMPI] = {"libmstx_mpi_openmpi.so", "../lib/msprobe/libmstx_mpi_openmpi.so"},
        [MSTX_COMM_MPICH] = {"libmstx_mpi_mpich.so", "../lib/msprobe/libmstx_mpi_mpich.so"}};
    char path[PATH_MAX];
    struct ms_err ignored = {0};
    if (comm != MSTX_COMM_NONE)
        MS_TRY(preload_ccl(err));
    const int mpi = comm == MSTX_COMM_AUTO ? (int)find_mpi(program) : comm;
    if (mpi == MSTX_COMM_NONE)
        return MS_OK;
    enum ms_rc rc =
        find_library(&places[mpi], path, sizeof path, comm == MSTX_COMM_AUTO ? &ignored : err);
    if (rc == MS_OK)
        preload_library(path);
    return comm == MSTX_COMM_AUTO ? MS_OK : rc;
}

/* A sanitizer must be the first library that is loaded: the one that the program links, and the
 * one that this build of the recorder contains, are preloaded in front of all others. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif
static void preload_sanitizers_of(struct ms_file elf)
{
    static const char *const names[] = {"libasan.so.8",
                                        "libasan.so.7",
                                        "libasan.so.6",
                                        "libasan.so.5",
                                        "libasan.so.4",
                                        "libtsan.so.2",
                                        "libtsan.so.1",
                                        "libtsan.so.0",
                                        "liblsan.so.0",
                                        "libhwasan.so.0",
                                        "libclang_rt.asan-x86_64.so",
                                        "libclang_rt.asan-aarch64.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (mstx_elf_needs(elf, names[i]))
            preload_library(names[i]);
    }
}

/* Puts an option of a sanitizer in front of those that are already set, which take precedence. */
static void add_option(const char *variable, const char *option)
{
    char list[4096];
    const char *others = getenv(variable);
    int n = snprintf(list, sizeof list, "%s%s%s", option, others != NULL ? ":" : "",
                     others != NULL ? others : "");
    if (n > 0 && (size_t)n < sizeof list)
        setenv(variable, list, 1);
}

/* Relaxes sanitizers of programs that PROG starts, which cannot be examined here: AddressSanitizer
 * would end them because libraries without it are loaded first, ThreadSanitizer would end a forked
 * child in which the recorder starts its thread, and report races in the recorder, of whose code it
 * sees the calls of memcpy but not the atomic operations that order them. */
static void calm_sanitizers(void)
{
    add_option("ASAN_OPTIONS", "verify_asan_link_order=0");
    add_option("TSAN_OPTIONS", "die_after_fork=0:ignore_noninstrumented_modules=1");
}

static void preload_sanitizers(struct ms_file program, const char *recorder)
{
    preload_sanitizers_of(program);
    calm_sanitizers();
    if (IS_SANITIZED) {
        struct ms_file own = mstx_elf_open(recorder);
        preload_sanitizers_of(own);
        ms_file_unmap(&own);
    }
}

/* Stores absolute paths: the program may change its directory before it imports its framework. */
static enum ms_rc request_dump(const char *config, const char *out, struct ms_err *err)
{
    char path[PATH_MAX];
    if (config == NULL)
        return MS_OK;
    if (realpath(config, path) == NULL || access(path, R_OK) != 0)
        return ms_fail_sys(err, "--dump %s", config);
    set_variable("MSPROBE_DUMP", path);
    set_variable("MSPROBE_DUMP_PATH", realpath(out, path) != NULL ? path : out);
    return MS_OK;
}

/* Passes on a tool that was configured before, so that the recorder forwards every mark to it. */
static void chain_tool(const char *variable, const char *next, const char *ours)
{
    const char *was = getenv(variable);
    if (was != NULL && *was != '\0' && strcmp(was, ours) != 0)
        setenv(next, was, 0);
    setenv(variable, ours, 1);
}

enum ms_rc mstx__launch_environment(const struct mstx_launch *how, const char *out,
                                    struct ms_file program, struct ms_err *err)
{
    static const struct ms_place recorder = {"libmstx.so", "../lib/libmstx.so"};
    static const struct ms_place door = {"dropin/libmspti.so", "../lib/msprobe/dropin/libmspti.so"};
    char lib[PATH_MAX], drop[PATH_MAX];
    MS_TRY(find_library(&recorder, lib, sizeof lib, err));
    MS_TRY(find_library(&door, drop, sizeof drop, err));
    chain_tool("MSTX_INJECTION_PATH", "MSTX_NEXT_PATH", lib);
    if (how->nvtx)
        chain_tool("NVTX_INJECTION64_PATH", "MSTX_NEXT_NVTX_PATH", lib);
    preload_library(drop);
    MS_TRY(preload_hooks(how->comm, program, err));
    if (how->hook_dlsym)
        MS_TRY(preload_dlsym(err));
    preload_sanitizers(program, lib);
    offer_python(!how->no_torch || how->dump != NULL);
    MS_TRY(request_dump(how->dump, out, err));
    set_variable("MSTX_TORCH", how->no_torch ? "0" : NULL);
    set_variable("MSTX_OUT", out);
    set_variable("MSTX_DOMAIN_INCLUDE", how->include);
    set_variable("MSTX_DOMAIN_EXCLUDE", how->exclude);
    set_variable("MSTX_MAX_SIZE", how->max_size);
    set_variable("MSTX_STAGE", how->stage);
    set_variable("MSTX_POLICY", how->policy);
    set_variable("MSTX_START", how->wait ? "off" : NULL);
    set_variable("MSTX_QUIET", "1"); /* msprobe names the directory of the capture */
    set_variable("MSTX_DEVICE", how->device);
    set_seconds("MSTX_HANG_TIMEOUT", how->hang_timeout);
    if (how->flight > 0)
        set_seconds("MSTX_FLIGHT", how->flight);
    return MS_OK;
}
