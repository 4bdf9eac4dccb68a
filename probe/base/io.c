/* SPDX-License-Identifier: MIT
 *
 * io: mapped reading, paths, and the table of temporary names.
 */
#include "probe/base/io_int.h"

#include "probe/base/arena.h"
#include "probe/base/compat.h"
#include "probe/base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---------------------------------------------------------- */

static enum ms_rc check_mappable(const struct stat *st, const char *path, size_t max,
                                 struct ms_err *err)
{
    if (S_ISDIR(st->st_mode))
        return ms_fail(err, MS_E_UNSUPPORTED, "%s: is a directory, expected a file", path);
    if (!S_ISREG(st->st_mode))
        return ms_fail(err, MS_E_UNSUPPORTED, "%s: is not a regular file", path);
    if ((uint64_t)st->st_size > max)
        return ms_fail(err, MS_E_LIMIT, "%s: %lld bytes, more than the %zu allowed", path,
                       (long long)st->st_size, max);
    return MS_OK;
}

enum ms_rc ms_file_map(struct ms_file *f, const char *path, size_t max, struct ms_err *err)
{
    *f = (struct ms_file){"", 0};
    /* O_NONBLOCK: opening a pipe does not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ms_fail_sys(err, "%s", path);
    struct stat st;
    enum ms_rc rc =
        fstat(fd, &st) != 0 ? ms_fail_sys(err, "%s", path) : check_mappable(&st, path, max, err);
    if (rc == MS_OK && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            rc = ms_fail_sys(err, "%s: cannot map", path);
        else
            *f = (struct ms_file){p, (size_t)st.st_size};
    }
    close(fd);
    return rc;
}

void ms_file_release(const struct ms_file *f)
{
    if (f->n != 0)
        (void)madvise((void *)(uintptr_t)f->p, f->n, MADV_DONTNEED);
}

void ms_file_release_part(const struct ms_file *f, size_t from, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = (from + page - 1) / page * page, end = (from + n) / page * page;
    if (first < end && end <= f->n)
        (void)madvise((void *)(uintptr_t)(f->p + first), end - first, MADV_DONTNEED);
}

void ms_file_unmap(struct ms_file *f)
{
    if (f->n != 0)
        munmap((void *)(uintptr_t)f->p, f->n);
    *f = (struct ms_file){"", 0};
}

/* ---- paths ------------------------------------------------------------ */

enum ms_kind ms_path_kind(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return MS_KIND_NONE;
    if (S_ISDIR(st.st_mode))
        return MS_KIND_DIR;
    return S_ISREG(st.st_mode) ? MS_KIND_FILE : MS_KIND_OTHER;
}

enum ms_rc ms_want_no_link(const char *path, struct ms_err *err)
{
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode))
        return MS_OK;
    return ms_fail(
        err, MS_E_IO,
        "%s: is a link, and what it leads to is not written over unasked; name it as the "
        "output, or remove the link",
        path);
}

enum ms_rc ms_want_dir(const char *path, struct ms_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return ms_fail_sys(err, "%s", path);
    if (S_ISDIR(st.st_mode))
        return MS_OK;
    errno = ENOTDIR;
    return ms_fail_sys(err, "%s", path);
}

enum ms_rc ms_fail_kind(const char *path, struct ms_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return ms_fail_sys(err, "%s", path);
    return ms_fail(err, MS_E_NOTFOUND, "%s: is neither a file nor a directory", path);
}

char *ms_path_join(const char *dir, const char *name)
{
    if (name[0] == '/' || dir[0] == '\0')
        return ms_str_dup(ms_str_of(name));
    size_t n = strlen(dir);
    bool slash = dir[n - 1] == '/';
    size_t size = n + strlen(name) + 2;
    char *p = ms_alloc(size);
    if (p != NULL)
        snprintf(p, size, "%s%s%s", dir, slash ? "" : "/", name);
    return p;
}

static struct ms_str without_slashes(const char *path)
{
    struct ms_str s = ms_str_of(path);
    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    return s;
}

struct ms_str ms_path_base(const char *path)
{
    struct ms_str s = without_slashes(path);
    int64_t at = s.n > 1 ? ms_str_rfind(s, '/') : -1;
    return ms_str_sub(s, (uint32_t)(at + 1), s.n);
}

struct ms_str ms_path_dir(const char *path)
{
    struct ms_str s = without_slashes(path);
    int64_t at = ms_str_rfind(s, '/');
    if (at < 0)
        return MS_STR(".");
    return ms_str_sub(s, 0, at == 0 ? 1 : (uint32_t)at);
}

static enum ms_rc make_dir(const char *path, struct ms_err *err)
{
    if (mkdir(path, 0777) == 0)
        return MS_OK;
    int sys = errno;
    if (ms_path_kind(path) == MS_KIND_DIR)
        return MS_OK;
    errno = sys; /* the reason why mkdir failed */
    return ms_fail_sys(err, "%s: cannot make the directory", path);
}

/* Makes a directory. The parent nearly always exists, so it is made only when mkdir reports it
 * missing. */
static enum ms_rc make_dirs(char *z, struct ms_err *err)
{
    char *slash = strrchr(z, '/');
    if (mkdir(z, 0777) == 0)
        return MS_OK;
    if (errno == ENOENT && slash != NULL && slash != z) {
        *slash = '\0';
        enum ms_rc rc = make_dirs(z, err);
        *slash = '/';
        if (rc != MS_OK)
            return rc;
    }
    return make_dir(z, err);
}

enum ms_rc ms_mkdirs(const char *path, struct ms_err *err)
{
    if (path[0] == '\0')
        return ms_fail(err, MS_E_ARG, "the name of a directory is empty");
    char *z = ms_str_dup(without_slashes(path));
    if (z == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = make_dirs(z, err);
    ms_free(z);
    return rc;
}

static int by_natural_order(const void *a, const void *b)
{
    return ms_str_cmp_natural(*(const struct ms_str *)a, *(const struct ms_str *)b);
}

static enum ms_rc list_into(struct ms_dir *d, DIR *dir, const char *path, struct ms_err *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (e == NULL)
            return errno != 0 ? ms_fail_sys(err, "%s", path) : MS_OK;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        struct ms_str name = ms_arena_str(d->arena, ms_str_of(e->d_name));
        struct ms_str *slot = name.p != NULL ? ms_vec_push(&d->names) : NULL;
        if (slot == NULL)
            return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
        *slot = name;
    }
}

enum ms_rc ms_dir_list(struct ms_dir *d, const char *path, struct ms_err *err)
{
    *d = (struct ms_dir){.arena = ms_arena_new(SIZE_MAX)};
    if (d->arena == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
    DIR *dir = opendir(path);
    enum ms_rc rc = dir == NULL ? ms_fail_sys(err, "%s", path) : list_into(d, dir, path, err);
    if (dir != NULL)
        closedir(dir);
    if (rc != MS_OK)
        ms_dir_free(d);
    else if (d->names.n != 0)
        qsort(d->names.p, d->names.n, sizeof *d->names.p, by_natural_order);
    return rc;
}

void ms_dir_free(struct ms_dir *d)
{
    ms_arena_free(d->arena);
    d->arena = NULL;
    ms_vec_free(&d->names);
}

/* ---- names that an interrupt removes ---------------------------------- */
enum { TMP_SLOTS = 64, TREE_DEPTH = 4 };

/* The lock serialises threads. The signal handler takes no lock and reads only slots in use; a slot
 * is marked used after its path is complete. */
static pthread_mutex_t tmp_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    atomic_bool used;
    char path[PATH_MAX];
} tmp_names[TMP_SLOTS];

bool ms_tmp_register(const char *path)
{
    size_t size = strlen(path) + 1;
    if (size > PATH_MAX)
        return false;
    pthread_mutex_lock(&tmp_lock);
    int i = 0;
    while (i < TMP_SLOTS && tmp_names[i].used)
        i++;
    if (i < TMP_SLOTS) {
        memcpy(tmp_names[i].path, path, size);
        tmp_names[i].used = true;
    }
    pthread_mutex_unlock(&tmp_lock);
    return i < TMP_SLOTS;
}

static void forget_begun(const char *tmp);

void ms_tmp_forget(const char *path)
{
    forget_begun(path);
    pthread_mutex_lock(&tmp_lock);
    for (int i = 0; i < TMP_SLOTS; i++) {
        if (tmp_names[i].used && strcmp(tmp_names[i].path, path) == 0) {
            tmp_names[i].used = false;
            break;
        }
    }
    pthread_mutex_unlock(&tmp_lock);
}

/* Removes a file or a folder and its contents. Allocates nothing, because the signal handler calls
 * it, too. depth: levels of subfolders that are still followed. */
static bool remove_tree(int parent, const char *name, int depth)
{
    _Alignas(struct dirent64) char list[2048];
    int dir =
        depth >= 0 ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    ssize_t n;
    while (dir >= 0 && (n = ms_getdents64(dir, list, sizeof list)) > 0) {
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *e = (const void *)(list + at);
            at += e->d_reclen;
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                unlinkat(dir, e->d_name, 0) != 0)
                remove_tree(dir, e->d_name, depth - 1);
        }
    }
    if (dir >= 0)
        close(dir);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

bool ms_tmp_remove(const char *path)
{
    return unlink(path) == 0 || (errno == EISDIR && remove_tree(AT_FDCWD, path, TREE_DEPTH));
}

/* Makes a folder and registers it with signals blocked, so that an interrupt between the two cannot
 * leave the folder behind. */
static bool make_registered(char *folder)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool made = mkdtemp(folder) != NULL;
    if (made)
        (void)ms_tmp_register(folder);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return made;
}

enum ms_rc ms_tmp_folder(char **folder, const char *what, struct ms_err *err)
{
    const char *dir = getenv("TMPDIR");
    char name[64];
    snprintf(name, sizeof name, "msprobe-%s-XXXXXX", what);
    *folder = ms_path_join(dir != NULL && dir[0] != '\0' ? dir : P_tmpdir, name);
    if (*folder == NULL)
        return ms_no_memory(err);
    if (make_registered(*folder))
        return MS_OK;
    enum ms_rc rc = ms_fail_sys(err, "%s: cannot make a folder", *folder);
    ms_err_hint(err, "TMPDIR says where temporary files go");
    ms_free(*folder);
    *folder = NULL;
    return rc;
}

void ms_tmp_folder_remove(char *folder)
{
    if (folder == NULL)
        return;
    ms_tmp_remove(folder);
    ms_tmp_forget(folder);
    ms_free(folder);
}

bool ms_tmp_unlink_all(void)
{
    bool any = false;
    for (int i = 0; i < TMP_SLOTS; i++) {
        if (tmp_names[i].used)
            any |= ms_tmp_remove(tmp_names[i].path);
    }
    return any;
}

/* ---- files written by other processes ---------------------------------- */

/* Identity of the file at a path when a writer for that path began. */
struct begun {
    struct begun *next;
    struct stat seen; /* st_ino 0: there was no file */
    char tmp[];
};
static struct begun *all_begun;

static void look_at(struct stat *st, const char *path)
{
    if (stat(path, st) != 0)
        *st = (struct stat){.st_ino = 0};
}

enum ms_rc ms_tmp__remember(const char *tmp, const char *path, struct ms_err *err)
{
    const size_t n = strlen(tmp) + 1;
    struct begun *b = ms_alloc(sizeof *b + n);
    if (b == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
    memcpy(b->tmp, tmp, n);
    look_at(&b->seen, path);
    pthread_mutex_lock(&tmp_lock);
    b->next = all_begun;
    all_begun = b;
    pthread_mutex_unlock(&tmp_lock);
    return MS_OK;
}

static struct begun **find_begun(const char *tmp)
{
    struct begun **at = &all_begun;
    while (*at != NULL && strcmp((*at)->tmp, tmp) != 0)
        at = &(*at)->next;
    return at;
}

static void forget_begun(const char *tmp)
{
    pthread_mutex_lock(&tmp_lock);
    struct begun **at = find_begun(tmp), *b = *at;
    if (b != NULL)
        *at = b->next;
    pthread_mutex_unlock(&tmp_lock);
    ms_free(b);
}

bool ms_tmp__was_written(const char *tmp, const char *path)
{
    struct stat now;
    look_at(&now, path);
    pthread_mutex_lock(&tmp_lock);
    const struct begun *b = *find_begun(tmp);
    const bool was = b != NULL && now.st_ino != 0 &&
                     (now.st_ino != b->seen.st_ino || now.st_size != b->seen.st_size ||
                      now.st_mtim.tv_sec != b->seen.st_mtim.tv_sec ||
                      now.st_mtim.tv_nsec != b->seen.st_mtim.tv_nsec);
    pthread_mutex_unlock(&tmp_lock);
    return was;
}
