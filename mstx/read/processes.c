/* SPDX-License-Identifier: MIT
 *
 * processes: finds the process directories of a run and opens their segments in
 * the order in which they were written.
 *
 * A process directory is any directory that holds segment files, at most a few
 * levels below the run, so moved and renamed captures are found as well.
 */
#include "mstx/read/processes.h"

#include "mstx/read/control.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEVELS_MAX = 4, STAGED_LINE_MAX = 4096 };

static bool is_segment_name(struct ms_str name)
{
    return ms_str_ends(name, MS_STR(".seg"));
}

static enum ms_rc add_proc(struct mstx_procs *p, const char *dir, struct ms_err *err)
{
    struct mstx_proc *proc = ms_vec_push(&p->list);
    if (proc == NULL)
        return ms_no_memory(err);
    *proc = (struct mstx_proc){.dir = ms_str_dup(ms_str_of(dir))};
    return proc->dir != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc find_below(struct mstx_procs *p, const char *dir, int level, struct ms_err *err);

/* Searches path when it is a directory that was not searched before. */
static enum ms_rc find_once(struct mstx_procs *p, const char *path, int level, struct ms_err *err)
{
    bool enters;
    MS_TRY(mstx__dir_walk_enter(&p->walk, path, &enters, err));
    return enters ? find_below(p, path, level, err) : MS_OK;
}

static enum ms_rc find_in(struct mstx_procs *p, const char *dir, struct ms_str name, int level,
                          struct ms_err *err)
{
    if (level >= LEVELS_MAX || ms_str_is(name, MSTX_SNAPSHOTS))
        return MS_OK;
    char *path = ms_path_join(dir, name.p);
    if (path == NULL)
        return ms_no_memory(err);
    const enum ms_rc rc = find_once(p, path, level + 1, err);
    ms_free(path);
    return rc;
}

/* Leaves a directory out that cannot be read: it may be that of one rank of many, or one that another process
 * removes just now. */
static enum ms_rc leave_out(struct mstx_procs *p, const char *dir, enum ms_rc rc,
                            struct ms_err *why, struct ms_err *err)
{
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    if (rc != MS_E_NOTFOUND && p->to != NULL)
        mstx__problem(p->to, dir, why);
    return MS_OK;
}

static enum ms_rc find_below(struct mstx_procs *p, const char *dir, int level, struct ms_err *err)
{
    struct ms_dir list;
    struct ms_err aside = {0};
    bool holds_segments = false;
    enum ms_rc rc = ms_dir_list(&list, dir, level == 0 ? err : &aside);
    if (rc != MS_OK)
        return level == 0 ? rc : leave_out(p, dir, rc, &aside, err);
    for (size_t i = 0; i < list.names.n && rc == MS_OK; i++) {
        struct ms_str name = list.names.p[i];
        holds_segments |= is_segment_name(name) || ms_str_is(name, MSTX_STAGED);
        if (!is_segment_name(name))
            rc = find_in(p, dir, name, level, err);
    }
    if (rc == MS_OK && holds_segments)
        rc = add_proc(p, dir, err);
    ms_dir_free(&list);
    return rc;
}

enum ms_rc mstx__procs_find(struct mstx_procs *p, const char *root, const struct mstx_problems *to,
                            struct ms_err *err)
{
    *p = (struct mstx_procs){.to = to};
    enum ms_rc rc = find_below(p, root, 0, err);
    if (rc != MS_OK)
        mstx__procs_free(p);
    return rc;
}

void mstx__procs_free(struct mstx_procs *p)
{
    for (size_t i = 0; i < p->list.n; i++) {
        mstx__proc_close(&p->list.p[i]);
        ms_free(p->list.p[i].dir);
    }
    ms_vec_free(&p->list);
    mstx__dir_walk_free(&p->walk);
}

/* ---- opening ---------------------------------------------------------------- */

/* Reports a file that could not be opened.  A file that has vanished since it was listed is not a
 * problem: a recorder moves staged segments and removes prepared ones that it did not need.
 * tell_gaps finds segments that are really missing. */
static enum ms_rc note_failure(enum ms_rc rc, const char *path, const struct mstx_problems *to,
                               struct ms_err *err)
{
    if (rc == MS_OK || rc == MS_E_NOMEM)
        return rc;
    if (rc != MS_E_NOTFOUND)
        mstx__problem(to, path, err);
    return MS_OK;
}

static enum ms_rc open_strings(struct mstx_proc *p, const char *dir, const struct mstx_problems *to)
{
    struct ms_err err = {0};
    if (p->has_strings)
        return MS_OK;
    char *path = ms_path_join(dir, MSTX_STRINGS);
    if (path == NULL)
        return MS_E_NOMEM;
    enum ms_rc rc = mstx__segment_open(&p->strings, path, MSTX_KIND_STRINGS, to, &err);
    p->has_strings = rc == MS_OK;
    rc = note_failure(rc, path, to, &err);
    ms_free(path);
    return rc;
}

static enum ms_rc open_ring(struct mstx_proc *p, const char *path, const struct mstx_problems *to)
{
    struct ms_err err = {0};
    struct mstx_segment s;
    enum ms_rc rc = mstx__segment_open(&s, path, MSTX_KIND_RING, to, &err);
    if (rc != MS_OK)
        return note_failure(rc, path, to, &err);
    bool in_use = s.head.part != 0;
    struct mstx_segment *slot = in_use ? ms_vec_push(&p->seg) : NULL;
    if (slot == NULL)
        mstx__segment_close(&s);
    else
        *slot = s;
    return slot != NULL || !in_use ? MS_OK : MS_E_NOMEM;
}

static enum ms_rc open_rings(struct mstx_proc *p, const char *dir, const struct mstx_problems *to,
                             struct ms_err *err)
{
    struct ms_dir list;
    MS_TRY(ms_dir_list(&list, dir, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < list.names.n && rc == MS_OK; i++) {
        if (!is_segment_name(list.names.p[i]) || ms_str_is(list.names.p[i], MSTX_STRINGS))
            continue;
        char *path = ms_path_join(dir, list.names.p[i].p);
        rc = path != NULL ? open_ring(p, path, to) : MS_E_NOMEM;
        ms_free(path);
    }
    ms_dir_free(&list);
    return rc == MS_OK ? MS_OK : ms_fail(err, rc, "%s: %s", dir, ms_rc_text(rc));
}

/* Reads the path of the staging directory on node-local storage, which holds the segments that were
 * not moved yet; the caller frees it.  NULL when there is none or its name is still being written, and
 * when the file that names it cannot be read, which is reported. */
static enum ms_rc find_staged(const char *dir, const struct mstx_problems *to, char **staged)
{
    struct ms_err err = {0};
    char *path = ms_path_join(dir, MSTX_STAGED);
    struct ms_file f;
    *staged = NULL;
    if (path == NULL)
        return MS_E_NOMEM;
    enum ms_rc rc = ms_file_map(&f, path, STAGED_LINE_MAX, &err);
    if (rc == MS_OK) {
        struct ms_str line = {f.p, (uint32_t)f.n};
        int64_t end = ms_str_find(line, '\n');
        *staged = end > 0 ? ms_str_dup(ms_str_sub(line, 0, (uint32_t)end)) : NULL;
        rc = end > 0 && *staged == NULL ? MS_E_NOMEM : MS_OK;
        ms_file_unmap(&f);
    }
    rc = note_failure(rc, path, to, &err);
    ms_free(path);
    return rc;
}

static int by_ring_and_part(const void *pa, const void *pb)
{
    const struct mstx_seg *a = &((const struct mstx_segment *)pa)->head;
    const struct mstx_seg *b = &((const struct mstx_segment *)pb)->head;
    return MS_ORDER(a->ring, b->ring, MS_ORDER(a->part, b->part, 0));
}

/* Keeps the longer copy of each segment that was found twice because it was just being moved from
 * the staging directory. */
static void drop_doubles(struct mstx_proc *p)
{
    size_t out = 0;
    for (size_t i = 0; i < p->seg.n; i++) {
        struct mstx_segment *s = &p->seg.p[i];
        struct mstx_segment *last = out != 0 ? &p->seg.p[out - 1] : NULL;
        if (last == NULL || by_ring_and_part(last, s) != 0) {
            p->seg.p[out++] = *s;
            continue;
        }
        struct mstx_segment *shorter = last->n < s->n ? last : s;
        struct mstx_segment longer = last->n < s->n ? *s : *last;
        mstx__segment_close(shorter);
        p->seg.p[out - 1] = longer;
    }
    p->seg.n = out;
}

static void tell_gaps(const struct mstx_proc *p, const struct mstx_problems *to)
{
    for (size_t i = 0; i < p->seg.n; i++) {
        const struct mstx_seg *h = &p->seg.p[i].head;
        bool first = i == 0 || p->seg.p[i - 1].head.ring != h->ring;
        uint64_t expected = first ? 1 : p->seg.p[i - 1].head.part + 1;
        if (!(h->state & (MSTX_SEG_FLIGHT | MSTX_SEG_SNAPSHOT)) && h->part != expected)
            mstx__problem_text(to, p->seg.p[i].path,
                               "ring %" PRIu32 " has no part %" PRIu64 ": a segment is missing",
                               h->ring, expected);
    }
}

/* Opens the segments in the staging directory.  A missing directory is no problem once the file
 * that names it is gone too: the recorder removes both after it has moved the last segment. */
static enum ms_rc open_staged(struct mstx_proc *p, const char *staged,
                              const struct mstx_problems *to)
{
    struct ms_err err = {0};
    char *again = NULL;
    enum ms_rc rc = open_rings(p, staged, to, &err);
    if (rc == MS_E_NOTFOUND) {
        MS_TRY(find_staged(p->dir, to, &again));
        rc = again != NULL ? MS_E_NOTFOUND : MS_OK;
    }
    ms_free(again);
    if (rc == MS_OK || rc == MS_E_NOMEM)
        return rc;
    mstx__problem(to, staged, &err);
    return MS_OK;
}

/* Opens the segments in the process directory.  A directory deleted meanwhile is reported as a
 * problem, and the other processes are still read. */
static enum ms_rc open_target(struct mstx_proc *p, const struct mstx_problems *to,
                              struct ms_err *err)
{
    struct ms_err aside = {0};
    enum ms_rc rc = open_rings(p, p->dir, to, &aside);
    if (rc == MS_OK)
        return rc;
    if (rc != MS_E_NOTFOUND)
        return ms_fail(err, rc, "%s", aside.msg);
    mstx__problem(to, p->dir, &aside);
    return MS_OK;
}

/* Reads in the order in which a live recorder moves files: a segment that leaves the staging
 * directory after it was listed is found in the process directory.  strings.seg is read last, and
 * the staged one is preferred to an older copy, so that every name in the records that were read
 * exists. */
enum ms_rc mstx__proc_open(struct mstx_proc *p, const struct mstx_problems *to, struct ms_err *err)
{
    char *staged;
    enum ms_rc rc = find_staged(p->dir, to, &staged);
    if (rc == MS_OK && staged != NULL)
        rc = open_staged(p, staged, to);
    if (rc == MS_OK)
        rc = open_target(p, to, err);
    if (rc == MS_OK && staged != NULL)
        rc = open_strings(p, staged, to);
    if (rc == MS_OK)
        rc = open_strings(p, p->dir, to);
    ms_free(staged);
    if (rc != MS_OK)
        return ms_fail(err, rc, "%s: %s", p->dir, ms_rc_text(rc));
    ms_vec_sort(&p->seg, by_ring_and_part);
    drop_doubles(p);
    tell_gaps(p, to);
    return MS_OK;
}

void mstx__proc_close(struct mstx_proc *p)
{
    for (size_t i = 0; i < p->seg.n; i++)
        mstx__segment_close(&p->seg.p[i]);
    ms_vec_free(&p->seg);
    if (p->has_strings)
        mstx__segment_close(&p->strings);
    p->has_strings = false;
}

/* ---- how a process ended ------------------------------------------------------ */

/* exec() keeps pid and start time of a process and runs no exit code of the old image, whose
 * capture looks as if the process had been killed.  A younger capture of the same process shows
 * that it was replaced. */

/* Reads the header of the first segment of ring 0. */
static bool read_first(const char *dir, struct mstx_seg *head)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/" MSTX_SEG_NAME, dir, 0u, 1u);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && read(fd, head, sizeof *head) == (ssize_t)sizeof *head;
    if (fd >= 0)
        close(fd);
    return ok && mstx_seg_check(head, sizeof *head, MSTX_KIND_RING) == MSTX_SEG_GOOD;
}

static bool is_younger_image(const struct mstx_seg *old, const char *dir)
{
    struct mstx_seg young;
    return read_first(dir, &young) && young.pid == old->pid &&
           young.start_jiffies == old->start_jiffies && young.start_ns > old->start_ns &&
           memcmp(young.boot_id, old->boot_id, sizeof young.boot_id) == 0;
}

/* Tells whether a younger capture of the same process exists.  Process directories are named
 * HOST.PID.TAG. */
static bool was_replaced(const struct mstx_procs *all, size_t place, const struct mstx_seg *head)
{
    const char *own = all->list.p[place].dir;
    const char *tag = strrchr(own, '.');
    const size_t n = tag != NULL ? (size_t)(tag - own) + 1 : 0;
    for (size_t i = 0; i < all->list.n && n != 0; i++) {
        const char *dir = all->list.p[i].dir;
        if (i != place && strncmp(dir, own, n) == 0 && is_younger_image(head, dir))
            return true;
    }
    return false;
}

/* Tells whether the process would be visible here while it runs: same host and same pid
 * namespace. */
static bool is_in_sight(const struct mstx_seg *head)
{
    char host[sizeof head->host] = "";
    struct stat ns;
    if (gethostname(host, sizeof host - 1) != 0 || strcmp(host, head->host) != 0)
        return false;
    return head->pid_ns == 0 || stat("/proc/self/ns/pid", &ns) != 0 ||
           head->pid_ns == (uint64_t)ns.st_ino;
}

const char *mstx__process_state(const struct mstx_procs *all, size_t place,
                                const struct mstx_seg *head, bool is_closed)
{
    if (is_closed)
        return "finished";
    if (was_replaced(all, place, head))
        return "replaced";
    if (!is_in_sight(head))
        return "not finished";
    return mstx_process_runs(head->pid, head->start_jiffies) ? "running" : "killed";
}
