/* SPDX-License-Identifier: MIT
 *
 * err: fills and extends an error without allocating, so that running out of memory can be
 * reported.
 */
#include "probe/base/err.h"

#include "probe/base/compat.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ms_rc_text(enum ms_rc rc)
{
    static const char *const text[] = {"success",
#define MS_RC_TEXT(name, words) words,
                                       MS_RC_MAP(MS_RC_TEXT)
#undef MS_RC_TEXT
    };
    return (unsigned)rc < MS_RC_MAX ? text[rc] : "unknown error";
}

MS_PRINTF(5, 0)
static void fill(struct ms_err *e, enum ms_rc rc, uint32_t line, int64_t off, const char *fmt,
                 va_list ap)
{
    if (e == NULL || e->rc != MS_OK)
        return;
    e->rc = rc;
    e->sys = 0;
    e->line = line;
    e->off = off;
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
}

enum ms_rc ms_fail(struct ms_err *e, enum ms_rc rc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(e, rc, 0, -1, fmt, ap);
    va_end(ap);
    return rc;
}

enum ms_rc ms_fail_at(struct ms_err *e, enum ms_rc rc, uint32_t line, int64_t off, const char *fmt,
                      ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(e, rc, line, off, fmt, ap);
    va_end(ap);
    return rc;
}

enum ms_rc ms_no_memory(struct ms_err *e)
{
    return ms_fail(e, MS_E_NOMEM, "%s", ms_rc_text(MS_E_NOMEM));
}

MS_PRINTF(3, 0)
static void append(struct ms_err *e, const char *sep, const char *fmt, va_list ap)
{
    size_t n = strlen(e->msg);
    n += (size_t)snprintf(e->msg + n, sizeof e->msg - n, "%s", sep);
    if (n < sizeof e->msg)
        vsnprintf(e->msg + n, sizeof e->msg - n, fmt, ap);
}

static enum ms_rc rc_of_errno(int sys)
{
    switch (sys) {
    case ENOENT:
    case ENOTDIR:
        return MS_E_NOTFOUND;
    case ENOMEM:
        return MS_E_NOMEM;
    case EINTR:
        return MS_E_INTERRUPTED;
    default:
        return MS_E_IO;
    }
}

enum ms_rc ms_fail_sys(struct ms_err *e, const char *fmt, ...)
{
    int sys = errno;
    enum ms_rc rc = rc_of_errno(sys);
    if (e == NULL || e->rc != MS_OK)
        return rc;
    va_list ap;
    va_start(ap, fmt);
    fill(e, rc, 0, -1, fmt, ap);
    va_end(ap);
    e->sys = sys;
    size_t n = strlen(e->msg);
    char room[128];
    snprintf(e->msg + n, sizeof e->msg - n, ": %s", ms_errno_text(sys, room, sizeof room));
    return rc;
}

enum ms_rc ms_err_wrap(struct ms_err *e, const char *fmt, ...)
{
    if (e == NULL || e->rc == MS_OK)
        return MS_E_INTERNAL;
    char inner[sizeof e->msg];
    memcpy(inner, e->msg, sizeof inner);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    size_t n = strlen(e->msg);
    size_t room = sizeof e->msg - n;
    if (e->line != 0)
        snprintf(e->msg + n, room, ": line %u, byte %lld: %s", e->line, (long long)e->off, inner);
    else if (e->off >= 0)
        snprintf(e->msg + n, room, ": byte %lld: %s", (long long)e->off, inner);
    else
        snprintf(e->msg + n, room, ": %s", inner);
    /* The place is now part of the text, so that a second wrap does not repeat it. */
    e->line = 0;
    e->off = -1;
    return e->rc;
}

void ms_err_hint(struct ms_err *e, const char *fmt, ...)
{
    if (e == NULL || e->rc == MS_OK)
        return;
    va_list ap;
    va_start(ap, fmt);
    append(e, "; ", fmt, ap);
    va_end(ap);
}

void ms_err_clear(struct ms_err *e)
{
    if (e != NULL)
        memset(e, 0, sizeof *e);
}
