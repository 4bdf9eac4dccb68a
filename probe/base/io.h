/* SPDX-License-Identifier: MIT
 *
 * io: reads files by mapping them whole, writes files so that a killed run leaves nothing
 * half-written, and lists directories in sorted order.
 */
#ifndef PROBE_BASE_IO_H
#define PROBE_BASE_IO_H

#include "probe/base/str.h"
#include "probe/base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A read-only mapping of a regular file.  An empty file has n == 0 and a valid p.
 * Errors carry the path. */
struct ms_file {
    const char *p;
    size_t n;
};
/* Maps a file. Files larger than max, directories, pipes and devices are refused. */
enum ms_rc ms_file_map(struct ms_file *f, const char *path, size_t max,
                       struct ms_err *err) MS_MUST_USE;
/* Releases the memory of the file's mapped pages; the kernel reads a page again when it is next
 * accessed. */
void ms_file_release(const struct ms_file *f);
/* Releases the pages that lie wholly inside the n bytes from `from` on. */
void ms_file_release_part(const struct ms_file *f, size_t from, size_t n);
void ms_file_unmap(struct ms_file *f);

/* A buffered writer that keeps its first failure: later writes do nothing, and commit reports the
 * failure. Either `path` appears complete or `path` is left as it was. */
struct ms_out;
/* Begins a file that gets its name at commit (see ms_tmp_open); parent directories are made. A
 * device or pipe at path is written to directly. */
enum ms_rc ms_out_create(struct ms_out **out, const char *path, struct ms_err *err) MS_MUST_USE;
/* Tells commit not to wait for the disk: the file need not survive a crash of the machine. */
void ms_out_lazy(struct ms_out *o);
void ms_out_write(struct ms_out *o, const void *p, size_t n);
/* Writes to the struct ms_out in ctx, as the sink of a JSON writer: never fails itself, since a file
 * keeps its failure until it is committed. */
enum ms_rc ms_out_sink(void *ctx, const char *p, size_t n, struct ms_err *err);
void ms_out_puts(struct ms_out *o, const char *z);
void ms_out_str(struct ms_out *o, struct ms_str s);
void ms_out_putc(struct ms_out *o, char c);
/* Writes formatted text of at most 1 MiB. */
void ms_out_printf(struct ms_out *o, const char *fmt, ...) MS_PRINTF(2, 3);
/* Returns room for n bytes in the buffer (n is at most MS_OUT_ROOM). The caller then reports with
 * ms_out_used how many bytes it wrote. */
char *ms_out_room(struct ms_out *o, size_t n);
void ms_out_used(struct ms_out *o, size_t n);
/* Bytes written so far. */
uint64_t ms_out_size(const struct ms_out *o);
/* Hands buffered bytes to the kernel. */
enum ms_rc ms_out_flush(struct ms_out *o, struct ms_err *err);
/* Flushes, calls fsync and renames the file into place (or only flushes to a device); frees o in
 * any case. */
enum ms_rc ms_out_commit(struct ms_out *o, struct ms_err *err) MS_MUST_USE;
/* Discards the file and frees o; NULL is fine. */
void ms_out_abort(struct ms_out *o);
enum { MS_OUT_ROOM = 4096 };

/* For writers that are not an ms_out: makes a temporary name beside path, "path.PID.RANDOM.tmp",
 * which no other process uses on any host. The name is registered and on the heap. Parent
 * directories are made; anything but a regular file at path is refused. Temporary files of path
 * that processes killed over an hour ago left behind are removed. */
enum ms_rc ms_tmp_new(char **tmp, const char *path, struct ms_err *err) MS_MUST_USE;
/* For writers that need no name of their own: opens a file that has no name until it is published,
 * so that even a killed process leaves nothing behind. *tmp, on the heap, is a path by which others
 * can open the file while fd is open. Where the file system has no unnamed files, the file has a
 * temporary name as with ms_tmp_new. */
enum ms_rc ms_tmp_open(int *fd, char **tmp, const char *path, struct ms_err *err) MS_MUST_USE;
/* Closes fd and removes the temporary file. */
void ms_tmp_discard(int fd, const char *tmp);
/* Makes the bytes of tmp durable and renames tmp to path; closes fd, which is open on tmp, in any
 * case. On failure tmp is removed. Also fails with MS_E_IO when another process has written path
 * since this writer began; the file of that process stays. */
enum ms_rc ms_tmp_publish(int fd, const char *tmp, const char *path,
                          struct ms_err *err) MS_MUST_USE;
/* Like ms_tmp_publish, but not durable; for a path that is itself temporary. */
enum ms_rc ms_tmp_place(int fd, const char *tmp, const char *path, struct ms_err *err) MS_MUST_USE;

/* Makes a private folder "msprobe-WHAT-XXXXXX" in $TMPDIR or /tmp; its name is registered and on
 * the heap. */
enum ms_rc ms_tmp_folder(char **folder, const char *what, struct ms_err *err) MS_MUST_USE;
/* Removes such a folder with its contents and frees its name; NULL is fine. */
void ms_tmp_folder_remove(char *folder);
/* Removes a temporary file, or a folder of a few levels with its contents; async-signal-safe. */
bool ms_tmp_remove(const char *path);
/* Removes all registered temporary files, for a signal handler; async-signal-safe. Returns true
 * when there were some. */
bool ms_tmp_unlink_all(void);
/* Registers a temporary name, or drops it from the register. Registering returns false when the
 * table is full; then an interrupt will not remove the file. */
bool ms_tmp_register(const char *path);
void ms_tmp_forget(const char *path);

/* Makes a directory and its parents; not an error when the directory exists. */
enum ms_rc ms_mkdirs(const char *path, struct ms_err *err) MS_MUST_USE;

enum ms_kind { MS_KIND_NONE, MS_KIND_FILE, MS_KIND_DIR, MS_KIND_OTHER };
/* Returns what is at path, links followed; NONE when there is nothing or a link loop. */
enum ms_kind ms_path_kind(const char *path);
/* Fails with MS_E_IO when a link is at a path that the user has not named: it may have come with
 * the input, and what it leads to would be written over. */
enum ms_rc ms_want_no_link(const char *path, struct ms_err *err) MS_MUST_USE;
/* Returns MS_OK when a directory is at path; otherwise fails with a message that says why path
 * cannot be used as a directory. */
enum ms_rc ms_want_dir(const char *path, struct ms_err *err);
/* Fails with the message for a path that is neither a file nor a directory. */
enum ms_rc ms_fail_kind(const char *path, struct ms_err *err);
/* Returns "dir/name" on the heap, NULL when out of memory; an absolute name is returned
 * unchanged. */
char *ms_path_join(const char *dir, const char *name);
/* Returns the part after the last slash, trailing slashes ignored. */
struct ms_str ms_path_base(const char *path);
/* Returns the part before the last slash, "." when there is none. */
struct ms_str ms_path_dir(const char *path);

/* Names in a directory except . and .., in natural order. */
struct ms_dir {
    struct ms_arena *arena;
    MS_VEC(struct ms_str) names; /* each with a NUL behind it */
};
enum ms_rc ms_dir_list(struct ms_dir *d, const char *path, struct ms_err *err) MS_MUST_USE;
void ms_dir_free(struct ms_dir *d);

/* Flushes standard output and reports a failed write, such as a full disk. */
enum ms_rc ms_stdout_finish(struct ms_err *err);

#endif
