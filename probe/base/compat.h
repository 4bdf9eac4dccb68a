/* SPDX-License-Identifier: MIT
 *
 * compat: functions of the C library that systems of users do not have yet.
 *
 * What enters a training process runs with the C library of that machine. The oldest one that is
 * supported is glibc 2.28 (2018: CentOS 8, openEuler 20.03; Ubuntu 20.04 has 2.31). A function that came later has
 * its replacement in this header, and no other file calls the function itself. With a newer C
 * library the name is that library's own. tests/portable/symbols.sh checks the built files.
 */
#ifndef PROBE_BASE_COMPAT_H
#define PROBE_BASE_COMPAT_H

#include <dirent.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Since glibc 2.30: the thread's number, and the entries of a directory as the kernel has them. */
#if __GLIBC_PREREQ(2, 30)
static inline pid_t ms_gettid(void)
{
    return gettid();
}
static inline ssize_t ms_getdents64(int dir, void *list, size_t cap)
{
    return getdents64(dir, list, cap);
}
#else
static inline pid_t ms_gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}
static inline ssize_t ms_getdents64(int dir, void *list, size_t cap)
{
    return (ssize_t)syscall(SYS_getdents64, dir, list, cap);
}
#endif

/* Returns the text of an errno, in `room` or in memory that stays. strerror is not thread-safe, and
 * strerror_r translates the text where the program has set a locale; strerrordesc_np, since glibc
 * 2.32, does neither. */
static inline const char *ms_errno_text(int sys, char *room, size_t cap)
{
#if __GLIBC_PREREQ(2, 32)
    (void)room;
    (void)cap;
    const char *text = strerrordesc_np(sys);
    return text != NULL ? text : "unknown system error";
#else
    return strerror_r(sys, room, cap);
#endif
}

#endif
