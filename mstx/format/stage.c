/* SPDX-License-Identifier: MIT
 *
 * stage: see stage.h.
 */
#include "mstx/format/stage.h"

#include "mstx/format/capture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 4096, TRIES = 8 };

int mstx_stage_mkdirs(const char *path)
{
    char part[PATH];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return n == 0 ? ENOENT : ENAMETOOLONG;
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        char c = part[i];
        part[i] = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return errno;
        part[i] = c;
    }
    struct stat st;
    if (stat(path, &st) != 0)
        return errno;
    return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

static bool read_at(int fd, void *to, size_t n, off_t at)
{
    char *p = to;
    while (n > 0) {
        ssize_t got = pread(fd, p, n, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static bool write_at(int fd, const void *from, size_t n, off_t at)
{
    const char *p = from;
    while (n > 0) {
        ssize_t put = pwrite(fd, p, n, at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        p += put;
        at += put;
        n -= (size_t)put;
    }
    return true;
}

static bool copy_bytes(int from, int to, off_t at, off_t end)
{
    char buf[1 << 14];
    while (at < end) {
        size_t n = end - at < (off_t)sizeof buf ? (size_t)(end - at) : sizeof buf;
        if (!read_at(from, buf, n, at) || !write_at(to, buf, n, at))
            return false;
        at += (off_t)n;
    }
    return true;
}

/* Copies the used part of a segment. The header is written last, and only if the file was not
 * reused for later records meanwhile (else ESTALE). ENODATA: the file is empty, since it was
 * prepared but never used. */
static int copy_once(int from, int to, bool snapshot)
{
    struct mstx_seg h, again;
    struct stat st;
    errno = 0;
    if (fstat(from, &st) != 0 || !read_at(from, &h, sizeof h, 0))
        return errno != 0 ? errno : EIO;
    uint32_t kind = h.kind == MSTX_KIND_STRINGS ? MSTX_KIND_STRINGS : MSTX_KIND_RING;
    if (mstx_seg_check(&h, sizeof h, kind) != MSTX_SEG_GOOD)
        return EILSEQ;
    if (h.part == 0)
        return h.head == 0 ? ENODATA : ESTALE;
    uint64_t n = h.head < h.capacity ? h.head : h.capacity;
    const uint64_t held = ((uint64_t)st.st_size - sizeof h) / h.record_size;
    n = n < held ? n : held;
    if (!copy_bytes(from, to, sizeof h, (off_t)(sizeof h + n * h.record_size)) ||
        !read_at(from, &again, sizeof again, 0))
        return errno != 0 ? errno : EIO;
    if (again.part != h.part)
        return ESTALE;
    h.head = h.capacity = n; /* the copy ends with its last record */
    h.state |= snapshot ? MSTX_SEG_SNAPSHOT | MSTX_SEG_CLOSED : 0u;
    return write_at(to, &h, sizeof h, 0) ? 0 : errno;
}

/* Copies a file. Returns 0 when the file is copied and counted, or empty and not counted. */
static int copy_file(int from_dir, const char *name, int to_dir, bool snapshot, unsigned *copied)
{
    char tmp[300];
    snprintf(tmp, sizeof tmp, "%s.tmp", name);
    int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC);
    int to = openat(to_dir, tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int rc = from < 0 || to < 0 ? errno : ESTALE;
    for (int i = 0; rc == ESTALE && i < TRIES; i++)
        rc = copy_once(from, to, snapshot);
    if (from >= 0)
        close(from);
    if (to >= 0 && close(to) != 0 && rc == 0)
        rc = errno;
    if (rc == 0 && renameat(to_dir, tmp, to_dir, name) != 0)
        rc = errno;
    if (rc != 0 && to >= 0)
        unlinkat(to_dir, tmp, 0);
    *copied += rc == 0;
    return rc == ENODATA ? 0 : rc;
}

static bool is_finished(int dir, const char *name)
{
    struct mstx_seg h;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && read_at(fd, &h, sizeof h, 0) && h.kind == MSTX_KIND_RING &&
              (h.state & MSTX_SEG_CLOSED) != 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool is_segment(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && n < 256 && strcmp(name + n - 4, ".seg") == 0;
}

static int copy_all(DIR *d, int from_dir, int to_dir, enum mstx_stage_what what, unsigned *copied)
{
    int first = 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (!is_segment(e->d_name))
            continue;
        if (what == MSTX_STAGE_FINISHED && !is_finished(from_dir, e->d_name))
            continue;
        int rc = copy_file(from_dir, e->d_name, to_dir, what == MSTX_STAGE_SNAPSHOT, copied);
        if (rc == 0 && what != MSTX_STAGE_SNAPSHOT)
            unlinkat(from_dir, e->d_name, 0);
        first = first != 0 ? first : rc;
    }
    return first;
}

/* Copies texts last, so that every text id in a copied record is in the copied texts. The order of
 * readdir is arbitrary, so strings.seg is copied once more at the end. */
int mstx_stage_copy(int from_dir, const char *to, enum mstx_stage_what what)
{
    int to_dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int own = openat(from_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = own < 0 ? NULL : fdopendir(own);
    unsigned copied = 0;
    int rc = to_dir < 0 || d == NULL ? errno : copy_all(d, from_dir, to_dir, what, &copied);
    if (rc == 0 && what != MSTX_STAGE_ALL && copied > 0)
        rc = copy_file(from_dir, MSTX_STRINGS, to_dir, what == MSTX_STAGE_SNAPSHOT, &copied);
    if (d != NULL)
        closedir(d);
    else if (own >= 0)
        close(own);
    if (to_dir >= 0)
        close(to_dir);
    return rc;
}

void mstx_stage_done(const char *stage, const char *target)
{
    char name[PATH];
    int n = snprintf(name, sizeof name, "%s/" MSTX_STAGED, target);
    if (n > 0 && (size_t)n < sizeof name)
        unlink(name);
    rmdir(stage);
}

/* Opens the file that names a stage. A link, a pipe or a folder is none of the recorder's. */
static int open_pointer(const char *target)
{
    char name[PATH];
    struct stat st;
    int n = snprintf(name, sizeof name, "%s/" MSTX_STAGED, target);
    if (n <= 0 || (size_t)n >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* Opens a stage, from which segments are then taken away. The control file of a process lies at its
 * target: a folder with one is a capture of its own, named by a folder that came from elsewhere. */
static int open_stage(const char *stage)
{
    struct stat st;
    int dir = open(stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0 && fstatat(dir, MSTX_CONTROL, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        close(dir);
        errno = EPERM;
        return -1;
    }
    return dir;
}

int mstx_stage_recover(const char *target)
{
    char stage[PATH];
    int fd = open_pointer(target);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    ssize_t got = read(fd, stage, sizeof stage - 1);
    close(fd);
    if (got <= 0)
        return EIO;
    stage[got] = '\0';
    stage[strcspn(stage, "\n")] = '\0';
    int dir = open_stage(stage);
    if (dir < 0)
        return errno;
    int rc = mstx_stage_copy(dir, target, MSTX_STAGE_ALL);
    close(dir);
    if (rc == 0)
        mstx_stage_done(stage, target);
    return rc;
}
