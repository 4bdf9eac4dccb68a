/* SPDX-License-Identifier: MIT
 *
 * segment_file: the directory of the process, segment files in it, and copies of them.
 *
 * The blocks of a segment file are allocated before it is used, so a full disk is an error here and
 * never a SIGBUS in the training loop.  Its pages are made present too, so the writer has no page
 * faults.  Names are relative to an open directory, so a renamed directory keeps working and a
 * deleted one fails cleanly.
 */
#include "mstx/rt/segment_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mstx/format/stage.h"
#include "mstx/rt/ticks.h"
#include "probe/base/calm.h"
#include "probe/base/compat.h"
#include "probe/base/held.h"

enum { TRIM_LEAST = 128 << 10 };

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* ---- identity ----------------------------------------------------------------- */

static size_t read_text(const char *path, char *to, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, to, cap - 1);
    if (fd >= 0)
        close(fd);
    to[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* Field 22 of /proc/self/stat; the name in field 2 may hold anything, so count from its ")". */
static uint64_t start_jiffies(void)
{
    char text[1024];
    read_text("/proc/self/stat", text, sizeof text);
    const char *p = strrchr(text, ')');
    for (int field = 2; p != NULL && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p == NULL ? 0 : strtoull(p, NULL, 10);
}

void rt_file_boot_id(uint8_t id[16])
{
    char text[64];
    unsigned n = 0;
    memset(id, 0, 16);
    read_text("/proc/sys/kernel/random/boot_id", text, sizeof text);
    for (const char *p = text; *p != '\0' && n < 32; p++) {
        int v = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : -1;
        if (v < 0)
            continue;
        id[n / 2] = (uint8_t)(id[n / 2] << 4 | v);
        n++;
    }
    id[0] ^= (uint8_t)rt_clock_fake_host; /* for tests that simulate several hosts */
}

static void fill_header(struct mstx_seg *h)
{
    struct stat ns;
    memset(h, 0, sizeof *h);
    memcpy(h->magic, MSTX_SEG_MAGIC, sizeof h->magic);
    h->endian = MSTX_SEG_ENDIAN;
    h->major = MSTX_SEG_MAJOR;
    h->minor = MSTX_SEG_MINOR;
    h->header_size = MSTX_SEG_HEADER;
    h->record_size = MSTX_REC_SIZE;
    h->kind = MSTX_KIND_RING;
    h->pid = rt.pid;
    h->tid = (uint32_t)ms_gettid();
    h->ppid = (uint32_t)getppid();
    h->rank = rt.conf.rank;
    h->world_size = rt.conf.world_size;
    h->local_rank = rt.conf.local_rank;
    h->clock = rt_clock_kind;
    h->tick_hz = rt_clock_kind == MSTX_CLOCK_MONOTONIC ? 1000000000 : 0;
    h->start_jiffies = start_jiffies();
    rt_file_boot_id(h->boot_id);
    h->pid_ns = stat("/proc/self/ns/pid", &ns) == 0 ? (uint64_t)ns.st_ino : 0;
    h->flight_ns = (uint64_t)(rt.conf.flight_s * 1e9);
    rt_clock_calibrate(&h->first_calib);
    h->last_calib = h->first_calib;
    h->first_ticks = h->first_calib.ticks;
    h->start_ns = h->first_calib.realtime_ns;
    if (gethostname(h->host, sizeof h->host - 1) != 0 || h->host[0] == '\0')
        memcpy(h->host, "host", 5);
    memcpy(h->tool, "msprobe " MS_VERSION, sizeof "msprobe " MS_VERSION);
    atomic_store(&rt.tick_hz, h->tick_hz);
    rt.start_jiffies = h->start_jiffies;
}

/* ---- blocks ------------------------------------------------------------------- */

/* Allocates blocks with signals blocked: fallocate fails when a signal arrives, and a program may
 * have a timer that fires faster than fallocate finishes. Without fallocate (NFS) glibc writes
 * zeros. */
int rt_file_allocate(int fd, size_t bytes)
{
    struct ms_calm calm;
    ms_calm(&calm, true);
    int rc = posix_fallocate(fd, 0, (off_t)bytes);
    ms_calm_end(&calm);
    return rc;
}

/* ---- directories -------------------------------------------------------------- */

/* Makes the directory of the process. Two containers may have the same host name and pid, so the
 * name also holds a distinguishing tag, and mkdir detects a collision. */
static int make_own_dir(const char *base, char *path, size_t cap)
{
    uint64_t mix = rt.proto.start_jiffies * 0x9E3779B97F4A7C15u ^ rt.proto.pid_ns;
    for (int i = 0; i < 16; i++)
        mix = (mix ^ rt.proto.boot_id[i]) * 0x100000001B3u;
    for (int i = 0; i < 1000; i++) {
        mix = (mix ^ rt.proto.first_calib.ticks ^ (uint64_t)i) * 0xFF51AFD7ED558CCDu;
        int n = snprintf(path, cap, "%s/%s.%u.%08x", base, rt.proto.host, rt.pid,
                         (unsigned)(mix >> 32));
        if (n < 0 || (size_t)n >= cap)
            return ENAMETOOLONG;
        if (mkdir(path, 0755) == 0)
            return 0;
        if (errno != EEXIST)
            return errno;
    }
    return EEXIST;
}

static int make_dirs(const char *run, char *path, size_t cap)
{
    char base[RT_PATH];
    int n = rt.conf.rank < 0
                ? snprintf(base, sizeof base, "%s/" MSTX_RANK_NONE, run)
                : snprintf(base, sizeof base, "%s/" MSTX_RANK_PREFIX "%d", run, rt.conf.rank);
    if (n < 0 || (size_t)n >= sizeof base)
        return ENAMETOOLONG;
    int rc = mstx_stage_mkdirs(base);
    return rc != 0 ? rc : make_own_dir(base, path, cap);
}

/* Writes a file at the target that names the stage, where the segments are. */
static int point_to_stage(void)
{
    char name[RT_PATH + sizeof MSTX_STAGED + 1];
    snprintf(name, sizeof name, "%s/" MSTX_STAGED, rt.target);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return errno;
    struct ms_calm calm;
    ms_calm(&calm, false);
    ssize_t n = write(fd, rt.path, strlen(rt.path));
    int bad = n != (ssize_t)strlen(rt.path) || write(fd, "\n", 1) != 1;
    ms_calm_end(&calm);
    return close(fd) != 0 || bad ? EIO : 0;
}

static struct ms_held own; /* the process directory, at the number that it had first */

static int open_folder(const char *path)
{
    return ms_fd_move_high(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int open_dirs(void)
{
    int rc = make_dirs(rt.conf.out, rt.target, sizeof rt.target);
    if (rc != 0)
        return rc;
    memcpy(rt.path, rt.target, sizeof rt.path);
    if (rt.conf.stage[0] != '\0') {
        rc = make_dirs(rt.conf.stage, rt.path, sizeof rt.path);
        rc = rc != 0 ? rc : point_to_stage();
        if (rc != 0)
            return rc;
    }
    const int fd = open_folder(rt.path);
    if (fd < 0)
        return errno;
    own = ms_hold(fd);
    atomic_store(&rt.dir, own.fd);
    return own.fd < 0 ? errno : 0;
}

static bool is_own(int fd)
{
    const struct ms_held same = {.fd = fd, .device = own.device, .inode = own.inode};
    return ms_is_held(&same);
}

int rt_file_dir(void)
{
    int fd = atomic_load(&rt.dir);
    if (is_own(fd))
        return fd;
    int again = open_folder(rt.path);
    if (again >= 0 && !is_own(again)) {
        close(again);
        errno = ENOENT;
        return -1;
    }
    atomic_store(&rt.dir, again); /* the old number belongs to another file now and is not closed */
    return again;
}

int rt_file_open(const char *name)
{
    int dir = rt_file_dir();
    return dir < 0 ? -1 : ms_fd_move_high(openat(dir, name, O_RDWR | O_CLOEXEC));
}

static int open_control(void)
{
    char name[RT_PATH + sizeof MSTX_CONTROL + 1];
    snprintf(name, sizeof name, "%s/" MSTX_CONTROL, rt.target);
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return errno;
    int rc = rt_file_allocate(fd, sizeof *rt.control);
    void *p = rc != 0 ? MAP_FAILED
                      : mmap(NULL, sizeof *rt.control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (rc == 0 && p == MAP_FAILED)
        rc = errno;
    close(fd);
    if (rc != 0)
        return rc;
    rt.control = p;
    memcpy(rt.control, &rt.proto, offsetof(struct mstx_seg, tid));
    rt.control->kind = MSTX_KIND_CONTROL;
    rt.control->record_size = 1;
    rt.control->pid = rt.pid;
    rt.control->start_jiffies = rt.start_jiffies;
    return 0;
}

void rt_bell_ring(void)
{
    if (rt.control == NULL)
        return;
    __atomic_fetch_add(&rt.control->bell, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &rt.control->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool rt_file_start(void)
{
    ms_assert(rt.control == NULL);
    fill_header(&rt.proto);
    int rc = open_dirs();
    if (rc == 0)
        rc = open_control();
    if (rc == 0)
        return true;
    rt_say(RT_SAY_DIR, MSTX_WHY_IO, "cannot record into %s: %s; nothing is recorded", rt.conf.out,
           strerror(rc));
    return false;
}

void rt_file_withdraw(void)
{
    char name[RT_PATH + sizeof MSTX_CONTROL + 1];
    int dir = atomic_load(&rt.dir);
    if (!is_own(dir))
        return;
    snprintf(name, sizeof name, "%s/" MSTX_CONTROL, rt.target);
    unlink(name);
    unlinkat(dir, MSTX_STRINGS, 0);
    if (strcmp(rt.path, rt.target) != 0)
        mstx_stage_done(rt.path, rt.target);
    rmdir(rt.target);
}

void rt_file_close(void)
{
    if (rt.control != NULL)
        munmap(rt.control, sizeof *rt.control);
    if (is_own(rt.dir))
        close(rt.dir);
    rt.control = NULL;
    atomic_store(&rt.dir, -1);
}

void rt_file_forget(void)
{
    /* Without a control page the parent had no capture, and rt.parents, the page of its own parent,
     * is kept. */
    if (rt.control != NULL) {
        rt_file_ask_parent(true);
        rt.parents = rt.control;
        rt.control = NULL;
    }
    rt_file_close();
}

bool rt_file_ask_parent(bool otherwise)
{
    if (rt.parents == NULL)
        return otherwise;
    bool records = __atomic_load_n(&rt.parents->recording, __ATOMIC_ACQUIRE) != 0;
    munmap(rt.parents, sizeof *rt.parents);
    rt.parents = NULL;
    return records;
}

/* ---- segments ----------------------------------------------------------------- */

/* Writes zeros before the pages are mapped in: the kernel then takes large pieces of the page cache,
 * where faults take one page after the other at three times the price.  Pieces above a quarter of a
 * megabyte (PAGES) are no better, and far worse where memory is fragmented.  On tmpfs the allocated blocks
 * are the pages. */
static void write_zeros(int fd, size_t n)
{
    enum { PAGE = 4096, PAGES = 64 };
    static const char page[PAGE];
    struct iovec v[PAGES];
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0 || fs.f_type == TMPFS_MAGIC)
        return;
    for (int i = 0; i < PAGES; i++)
        v[i] = (struct iovec){.iov_base = (void *)(uintptr_t)page, .iov_len = PAGE};
    for (size_t at = 0; at < n; at += PAGES * PAGE) {
        size_t left = (n - at) / PAGE;
        if (pwritev(fd, v, left < PAGES ? (int)left : PAGES, (off_t)at) <= 0)
            return; /* no harm: the pages are made present by faults */
    }
}

static void make_present(void *p, size_t n)
{
    if (madvise(p, n, MADV_POPULATE_WRITE) == 0)
        return;
    for (size_t i = 0; i < n; i += 4096) /* before Linux 5.14 */
        ((volatile char *)p)[i] = 0;
}

/* Appends ".tmp" to the name; readers skip such files. */
static void temporary_name(char to[64], const char *name)
{
    ms_assert(strlen(name) <= 40);
    snprintf(to, 64, "%.40s.tmp", name);
}

int rt_file_begin(const char *name, size_t bytes)
{
    ms_assert(bytes > 0);
    char tmp[64];
    temporary_name(tmp, name);
    int dir = rt_file_dir();
    int fd = dir < 0 ? -1 : openat(dir, tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    fd = ms_fd_move_high(fd);
    int rc = rt_file_allocate(fd, bytes);
    if (rc == 0)
        return fd;
    close(fd);
    unlinkat(dir, tmp, 0);
    errno = rc;
    return -1;
}

void rt_file_give_up(const char *name)
{
    char tmp[64];
    const int why = errno;
    temporary_name(tmp, name);
    unlinkat(rt_file_dir(), tmp, 0);
    errno = why;
}

bool rt_file_name(const char *name)
{
    char tmp[64];
    temporary_name(tmp, name);
    int dir = rt_file_dir();
    if (dir < 0)
        return false;
    if (renameat(dir, tmp, dir, name) == 0)
        return true;
    int why = errno;
    unlinkat(dir, tmp, 0);
    errno = why;
    return false;
}

static void fill_segment(struct mstx_seg *seg, uint32_t ring, uint32_t tid, size_t bytes)
{
    ms_assert((uintptr_t)seg % 64 == 0);
    rt_lock(&rt.proto_lock);
    struct mstx_seg h = rt.proto;
    rt_unlock(&rt.proto_lock);
    h.ring = ring;
    h.tid = tid;
    h.capacity = (bytes - MSTX_SEG_HEADER) / MSTX_REC_SIZE;
    h.state = rt.conf.flight_s > 0 && ring != 0 ? MSTX_SEG_FLIGHT : 0;
    memcpy(seg, &h, sizeof h);
}

static struct mstx_seg *create_segment(const char *name, uint32_t ring, uint32_t tid, size_t bytes)
{
    ms_assert(bytes > MSTX_SEG_HEADER);
    int fd = rt_file_begin(name, bytes);
    if (fd < 0)
        return NULL;
    write_zeros(fd, bytes);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED) {
        rt_file_give_up(name);
        errno = ENOMEM;
        return NULL;
    }
    make_present(p, bytes);
    fill_segment(p, ring, tid, bytes);
    if (rt_file_name(name))
        return p;
    int why = errno;
    munmap(p, bytes);
    errno = why;
    return NULL;
}

struct mstx_seg *rt_segment_make(uint32_t ring, uint32_t number, uint32_t tid, size_t bytes)
{
    ms_assert(number > 0 && ring < (1 << 16));
    char name[32];
    uint64_t all = atomic_fetch_add(&rt.bytes, bytes) + bytes;
    struct mstx_seg *seg = NULL;
    if (rt.conf.max_bytes != 0 && all > rt.conf.max_bytes && ring != 0)
        errno = EDQUOT;
    else {
        snprintf(name, sizeof name, MSTX_SEG_NAME, ring, number);
        seg = create_segment(name, ring, tid, bytes);
    }
    if (seg == NULL) {
        atomic_fetch_sub(&rt.bytes, bytes);
        return NULL;
    }
    atomic_fetch_add(&rt.segments, 1);
    return seg;
}

size_t rt_file_bytes(const struct mstx_seg *seg)
{
    ms_assert(seg->record_size != 0);
    return MSTX_SEG_HEADER + (size_t)seg->capacity * seg->record_size;
}

/* Releases unused blocks by punching a hole, not by truncating: a thread that still writes gets
 * fresh blocks instead of SIGBUS. Fewer than TRIM_LEAST bytes are not worth the time at the end of
 * a process. */
size_t rt_file_trim(const struct mstx_seg *seg, const char *name, size_t all)
{
    ms_assert(seg->head <= seg->capacity);
    size_t used = MSTX_SEG_HEADER + (size_t)seg->head * seg->record_size;
    used = (used + 4095) & ~(size_t)4095;
    if (used + TRIM_LEAST > all)
        return all;
    int fd = rt_file_open(name);
    if (fd < 0)
        return all;
    (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)used,
                     (off_t)(all - used));
    close(fd);
    return used;
}

void rt_segment_close(struct mstx_seg *seg, uint32_t ring, uint32_t number)
{
    ms_assert(seg->head <= seg->capacity);
    char name[32];
    snprintf(name, sizeof name, MSTX_SEG_NAME, ring, number);
    __atomic_or_fetch(&seg->state, MSTX_SEG_CLOSED | MSTX_SEG_LAST, __ATOMIC_RELEASE);
    rt_file_trim(seg, name, rt_file_bytes(seg));
}

/* ---- copies ------------------------------------------------------------------- */

static int copy_calmly(int dir, const char *to, enum mstx_stage_what what)
{
    struct ms_calm calm;
    if (dir < 0)
        return errno;
    ms_calm(&calm, false);
    int rc = mstx_stage_copy(dir, to, what);
    ms_calm_end(&calm);
    return rc;
}

/* Copies the segments that were moved off the stage before; the texts of the stage come after those
 * of the target. */
static int copy_moved(const char *to)
{
    int dir = open(rt.target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = copy_calmly(dir, to, MSTX_STAGE_SNAPSHOT);
    if (dir >= 0)
        close(dir);
    return rc;
}

/* Writes a snapshot to RUN/snapshots/NNN/rank_R/HOST.PID.TAG, so that each snapshot is a run of its
 * own. */
int rt_file_snapshot(const char *to)
{
    ms_assert(to != NULL && rt_is_running());
    const char *tail = rt.target + strlen(rt.conf.out);
    char path[RT_PATH];
    int n = snprintf(path, sizeof path, "%s%s", to, tail);
    if (n < 0 || (size_t)n >= sizeof path)
        return ENAMETOOLONG;
    int rc = mstx_stage_mkdirs(path);
    if (rc == 0 && rt.conf.stage[0] != '\0')
        rc = copy_moved(path);
    return rc != 0 ? rc : copy_calmly(rt_file_dir(), path, MSTX_STAGE_SNAPSHOT);
}

void rt_file_unstage(bool all)
{
    if (rt.conf.stage[0] == '\0')
        return;
    int rc = copy_calmly(rt_file_dir(), rt.target, all ? MSTX_STAGE_ALL : MSTX_STAGE_FINISHED);
    if (rc != 0)
        rt_say(RT_SAY_IO, MSTX_WHY_IO, "cannot copy segments to %s: %s; they stay in %s", rt.target,
               strerror(rc), rt.path);
    else if (all)
        mstx_stage_done(rt.path, rt.target);
}
