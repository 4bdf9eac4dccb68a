/* SPDX-License-Identifier: MIT
 *
 * control: see control.h.  A request is two words and a text in a mapped page, so it works
 * across users and containers wherever the directory can be written.
 */
#include "mstx/read/control.h"

#include "probe/base/clock.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the processes of a run -------------------------------------------------------------- */

struct walk {
    mstx_process_fn *fn;
    void *arg;
};

static enum ms_rc visit_rank(const struct walk *w, const char *path, struct ms_err *err)
{
    struct ms_dir d;
    MS_TRY(ms_dir_list(&d, path, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < d.names.n; i++) {
        char *process = ms_path_join(path, d.names.p[i].p);
        if (process == NULL)
            rc = ms_fail(err, MS_E_NOMEM, "%s: out of memory", path);
        else if (ms_path_kind(process) == MS_KIND_DIR)
            rc = w->fn(w->arg, process, err);
        ms_free(process);
    }
    ms_dir_free(&d);
    return rc;
}

static bool wanted_rank(struct ms_str name, int rank)
{
    struct ms_str prefix = MS_STR(MSTX_RANK_PREFIX);
    uint64_t n;
    if (!ms_str_starts(name, prefix))
        return false;
    return rank < 0 || (ms_str_u64(ms_str_sub(name, prefix.n, name.n), &n) && n == (uint64_t)rank);
}

enum ms_rc mstx_each_process(const char *run, int rank, mstx_process_fn *fn, void *arg,
                             struct ms_err *err)
{
    const struct walk w = {fn, arg};
    struct ms_dir d;
    MS_TRY(ms_dir_list(&d, run, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < d.names.n; i++) {
        if (!wanted_rank(d.names.p[i], rank))
            continue;
        char *path = ms_path_join(run, d.names.p[i].p);
        rc = path != NULL ? visit_rank(&w, path, err)
                          : ms_fail(err, MS_E_NOMEM, "%s: out of memory", run);
        ms_free(path);
    }
    ms_dir_free(&d);
    return rc;
}

/* ---- one process ---------------------------------------------------------------------------- */

struct mstx_link {
    struct mstx_control *page;
    int fd;
    char path[];
};

static bool is_control(const struct mstx_control *c)
{
    return memcmp(c->magic, MSTX_SEG_MAGIC, sizeof c->magic) == 0 && c->endian == MSTX_SEG_ENDIAN &&
           c->major == MSTX_SEG_MAJOR && c->kind == MSTX_KIND_CONTROL;
}

static enum ms_rc map_page(struct mstx_link *l, struct ms_err *err)
{
    struct stat st;
    if (fstat(l->fd, &st) != 0)
        return ms_fail_sys(err, "%s", l->path);
    if (st.st_size < (off_t)sizeof *l->page)
        return ms_fail(err, MS_E_FORMAT, "%s: too short for a control file", l->path);
    void *p = mmap(NULL, sizeof *l->page, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
    if (p == MAP_FAILED)
        return ms_fail_sys(err, "%s", l->path);
    l->page = p;
    if (!is_control(l->page))
        return ms_fail(err, MS_E_FORMAT, "%s: not a control file of this version", l->path);
    return MS_OK;
}

enum ms_rc mstx_link_open(struct mstx_link **out, const char *process_dir, struct ms_err *err)
{
    size_t n = strlen(process_dir) + sizeof MSTX_CONTROL + 1;
    struct mstx_link *l = ms_calloc(1, sizeof *l + n);
    *out = NULL;
    if (l == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: out of memory", process_dir);
    snprintf(l->path, n, "%s/" MSTX_CONTROL, process_dir);
    l->fd = open(l->path, O_RDWR | O_CLOEXEC);
    if (l->fd < 0 && errno == ENOENT) {
        ms_free(l);
        return MS_OK;
    }
    enum ms_rc rc = l->fd < 0 ? ms_fail_sys(err, "%s", l->path) : map_page(l, err);
    if (rc == MS_OK)
        *out = l;
    else
        mstx_link_close(l);
    return rc;
}

void mstx_link_close(struct mstx_link *l)
{
    if (l == NULL)
        return;
    if (l->page != NULL)
        munmap(l->page, sizeof *l->page);
    if (l->fd >= 0)
        close(l->fd);
    ms_free(l);
}

/* Returns the third or a later field of /proc/PID/stat as a number, 0 when it is missing. */
static uint64_t field_of(const char *text, int number)
{
    const char *p = strrchr(text, ')');
    for (int field = 2; p != NULL && field < number; field++)
        p = strchr(p + 1, ' ');
    return p == NULL ? 0 : strtoull(p, NULL, 10);
}

/* Returns the start time of a process in jiffies, 0 when no such process exists or it is a zombie.
 * A process whose main thread has ended is in state Z too, but has other threads (field 20). */
static uint64_t start_of(uint32_t pid)
{
    char name[32], text[1024];
    snprintf(name, sizeof name, "/proc/%u/stat", pid);
    FILE *f = fopen(name, "re");
    size_t n = f == NULL ? 0 : fread(text, 1, sizeof text - 1, f);
    if (f != NULL)
        fclose(f);
    text[n] = '\0';
    const char *state = strrchr(text, ')');
    bool ended = state != NULL && strncmp(state, ") Z", 3) == 0 && field_of(text, 20) <= 1;
    return ended ? 0 : field_of(text, 22);
}

bool mstx_process_runs(uint32_t pid, uint64_t start_jiffies)
{
    return start_of(pid) == start_jiffies;
}

bool mstx_link_alive(const struct mstx_link *l)
{
    char host[65] = "";
    gethostname(host, sizeof host - 1);
    struct ms_str dir = ms_path_dir(l->path); /* HOST.PID.TAG */
    const char *slash = memrchr(dir.p, '/', dir.n);
    const char *process = slash != NULL ? slash + 1 : dir.p;
    size_t n = strlen(host);
    bool here = strncmp(process, host, n) == 0 && process[n] == '.';
    return !here || mstx_process_runs(l->page->pid, l->page->start_jiffies);
}

static void ring_bell(uint32_t *bell)
{
    __atomic_fetch_add(bell, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Waits until `done` has the value; returns false after five seconds or when the process has
 * ended. */
static bool wait_done(const struct mstx_link *l, uint32_t value)
{
    struct mstx_control *c = l->page;
    const struct timespec slice = {.tv_nsec = 20000000};
    int64_t end = ms_clock_ns() + 5000000000;
    for (;;) {
        uint32_t seen = __atomic_load_n(&c->done, __ATOMIC_ACQUIRE);
        if (seen == value)
            return true;
        if (ms_clock_ns() > end || !mstx_link_alive(l))
            return false;
        syscall(SYS_futex, &c->done, FUTEX_WAIT, seen, &slice, NULL, 0);
    }
}

static enum ms_rc no_answer(const struct mstx_link *l, struct ms_err *err)
{
    if (!mstx_link_alive(l))
        return ms_fail(err, MS_E_NOTFOUND, "%s: the process has ended", l->path);
    return ms_fail(err, MS_E_IO, "%s: the process does not answer", l->path);
}

static enum ms_rc exchange_command(struct mstx_link *l, enum mstx_command command, const char *text,
                                   struct mstx_control *reply, struct ms_err *err)
{
    struct mstx_control *c = l->page;
    if (!wait_done(l, c->request))
        return no_answer(l, err);
    snprintf(c->text, sizeof c->text, "%s", text != NULL ? text : "");
    c->command = command;
    uint32_t request = c->request + 1;
    __atomic_store_n(&c->request, request, __ATOMIC_RELEASE);
    ring_bell(&c->bell);
    if (!wait_done(l, request))
        return no_answer(l, err);
    memcpy(reply, c, sizeof *reply);
    reply->answer[sizeof reply->answer - 1] = '\0';
    if (reply->result != 0)
        return ms_fail(err, MS_E_IO, "%s: %s", l->path, reply->answer);
    return MS_OK;
}

enum ms_rc mstx_link_ask(struct mstx_link *l, enum mstx_command command, const char *text,
                         struct mstx_control *reply, struct ms_err *err)
{
    if (text != NULL && strlen(text) >= sizeof l->page->text)
        return ms_fail(err, MS_E_LIMIT, "'%.40s...': longer than %zu bytes", text,
                       sizeof l->page->text - 1);
    if (flock(l->fd, LOCK_EX) != 0)
        return ms_fail_sys(err, "%s", l->path);
    enum ms_rc rc = exchange_command(l, command, text, reply, err);
    flock(l->fd, LOCK_UN);
    return rc;
}
