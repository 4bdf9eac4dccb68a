/* SPDX-License-Identifier: MIT
 *
 * log: lines of "elapsed-ms level domain [rank R] pid: text", one write each so
 * that lines of several threads and processes do not mix.
 */
#include "probe/base/log.h"

#include "probe/base/calm.h"
#include "probe/base/clock.h"
#include "probe/base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DOMAINS = 32, DOMAIN_LEN = 24 };

#define CUT "..." /* ends a line that was too long */

enum ms_log_level ms_log_max = MS_LOG_WARN;

static struct {
    struct {
        char name[DOMAIN_LEN];
        enum ms_log_level level;
    } domain[MAX_DOMAINS];
    size_t ndomains;
    enum ms_log_level level;
    int fd, rank;
    int64_t start_ns;
} cfg = {.level = MS_LOG_WARN, .fd = STDERR_FILENO, .rank = -1};

static pthread_once_t started = PTHREAD_ONCE_INIT;

static void note_start(void)
{
    cfg.start_ns = ms_clock_ns();
}

static enum ms_log_level level_of(const char *domain)
{
    for (size_t i = 0; i < cfg.ndomains; i++) {
        if (strcmp(cfg.domain[i].name, domain) == 0)
            return cfg.domain[i].level;
    }
    return cfg.level;
}

static void refresh_max(void)
{
    ms_log_max = cfg.level;
    for (size_t i = 0; i < cfg.ndomains; i++) {
        if (cfg.domain[i].level > ms_log_max)
            ms_log_max = cfg.domain[i].level;
    }
}

/* Replaces control characters: names from a file may hold any byte, and a control character could
 * forge a log line or control the terminal. */
static void hide_controls(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)p[i] < ' ' || p[i] == 0x7f)
            p[i] = '?';
    }
}

/* Returns the last place up to `at` that is not inside a character. */
static size_t cut_at(const char *p, size_t at)
{
    while (at > 0 && ((unsigned char)p[at] & 0xC0) == 0x80)
        at--;
    return at;
}

void ms_log_write(enum ms_log_level level, const char *domain, const char *fmt, ...)
{
    static const char tag[] = "EWI123";
    if (level > level_of(domain))
        return;
    int sys = errno; /* a caller may log before it reports errno */
    pthread_once(&started, note_start);
    char line[1024];
    double ms = (double)(ms_clock_ns() - cfg.start_ns) / 1e6;
    int n = snprintf(line, sizeof line, "%10.3f %c %s ", ms, tag[level], domain);
    if (cfg.rank >= 0)
        n += snprintf(line + n, sizeof line - (size_t)n, "rank %d ", cfg.rank);
    n += snprintf(line + n, sizeof line - (size_t)n, "%d: ", (int)getpid());
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    va_end(ap);
    size_t len = (size_t)n + (size_t)(m > 0 ? m : 0);
    if (len > sizeof line - 1) {
        len = cut_at(line, sizeof line - sizeof CUT);
        memcpy(line + len, CUT, sizeof CUT);
        len += sizeof CUT - 1;
    }
    hide_controls(line + n, len - (size_t)n);
    line[len] = '\n';
    struct ms_calm calm;
    ms_calm(&calm, false);
    ssize_t ignored = write(cfg.fd, line, len + 1); /* a failed write to the log is ignored */
    ms_calm_end(&calm);
    (void)ignored;
    errno = sys;
}

void ms_log_set_level(enum ms_log_level level)
{
    pthread_once(&started, note_start);
    cfg.level = level;
    refresh_max();
}

void ms_log_set_rank(int rank)
{
    cfg.rank = rank;
}

static enum ms_rc set_domain(struct ms_str name, enum ms_log_level level, struct ms_err *err)
{
    if (ms_str_is(name, "all")) {
        cfg.level = level;
        return MS_OK;
    }
    if (name.n == 0 || name.n >= DOMAIN_LEN)
        return ms_fail(err, MS_E_ARG, "bad debug domain '%.*s'; write DOMAIN[:LEVEL], level 1 to 3",
                       MS_STR_ARG(name));
    size_t i = 0;
    while (i < cfg.ndomains && !ms_str_is(name, cfg.domain[i].name))
        i++;
    if (i == MAX_DOMAINS)
        return ms_fail(err, MS_E_LIMIT, "more than %d debug domains; use all:LEVEL", MAX_DOMAINS);
    if (i == cfg.ndomains) {
        memcpy(cfg.domain[i].name, name.p, name.n);
        cfg.domain[i].name[name.n] = '\0';
        cfg.ndomains++;
    }
    cfg.domain[i].level = level;
    return MS_OK;
}

static enum ms_rc configure_one(struct ms_str item, struct ms_err *err)
{
    uint64_t n = 1;
    struct ms_str name = item;
    int64_t colon = ms_str_find(item, ':');
    if (colon >= 0)
        name = ms_str_sub(item, 0, (uint32_t)colon);
    struct ms_str number = ms_str_sub(item, colon < 0 ? item.n : (uint32_t)colon + 1, item.n);
    if (colon < 0 && ms_str_all_digits(item)) {
        name = MS_STR("all");
        number = item;
    }
    if (number.n != 0 || colon >= 0) {
        if (!ms_str_u64(number, &n) || n < 1 || n > 3)
            return ms_fail(err, MS_E_ARG, "bad debug level '%.*s'; it is 1, 2 or 3",
                           MS_STR_ARG(number));
    }
    return set_domain(name, (enum ms_log_level)(MS_LOG_INFO + n), err);
}

enum ms_rc ms_log_configure(const char *spec, struct ms_err *err)
{
    struct ms_str rest = ms_str_of(spec);
    struct ms_str item;
    while (ms_str_split(&rest, ',', &item))
        MS_TRY(configure_one(item, err));
    refresh_max();
    return MS_OK;
}

enum ms_rc ms_log_from_env(struct ms_err *err)
{
    pthread_once(&started, note_start);
    const char *spec = getenv("MSPROBE_DEBUG");
    const char *path = getenv("MSPROBE_LOG");
    enum ms_rc rc = spec != NULL && *spec != '\0' ? ms_log_configure(spec, err) : MS_OK;
    if (rc != MS_OK) {
        ms_err_wrap(err, "MSPROBE_DEBUG");
        return rc;
    }
    if (path == NULL || *path == '\0')
        return MS_OK;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return ms_fail_sys(err, "MSPROBE_LOG: %s", path);
    if (cfg.fd != STDERR_FILENO)
        close(cfg.fd);
    cfg.fd = fd;
    return MS_OK;
}
