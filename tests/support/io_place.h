/* SPDX-License-Identifier: MIT
 *
 * io_place: a folder of one test, and what lies in it.
 */
#ifndef TESTS_SUPPORT_IO_PLACE_H
#define TESTS_SUPPORT_IO_PLACE_H

#include "probe/base/io.h"
#include "tests/support/check.h"

#include <sys/stat.h>
#include <sys/wait.h>

enum { NOBODY = 65534 };

static char dir[64];

/* "dir/name" in one of a few static buffers, so that two may be in use at a time. */
static inline const char *in_dir(const char *name)
{
    static char buf[4][512];
    static unsigned next;
    char *p = buf[next++ % 4];
    snprintf(p, sizeof *buf, "%s/%s", dir, name);
    return p;
}

static inline void put(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static inline const char *text_of(const char *path)
{
    static char text[4096];
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static inline size_t entries(const char *path)
{
    struct ms_err e = {0};
    struct ms_dir d;
    ck_ok(ms_dir_list(&d, path, &e), e);
    size_t n = d.names.n;
    ms_dir_free(&d);
    return n;
}

/* Runs the body in a process of its own, where it may lose rights and die; its exit status, or the
 * signal that ended it, negative. */
static inline int in_child(int (*body)(void))
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(body());
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Root may do anything, so what is forbidden is tried as somebody else. */
static inline bool drop_rights(void)
{
    return geteuid() != 0 || (setegid(NOBODY) == 0 && seteuid(NOBODY) == 0);
}

static inline void setup(void)
{
    scratch_dir(dir);
    ck_assert_int_eq(chmod(dir, 0755), 0);
}

#endif
