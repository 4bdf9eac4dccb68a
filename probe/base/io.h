/* SPDX-License-Identifier: MIT
 *
 * io: files read whole by mapping, files written so that a killed run leaves
 * nothing half-written, and sorted directory listings.
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
/* max: refuse larger files.  Directories, pipes and devices are refused. */
enum ms_rc ms_file_map(struct ms_file *f, const char *path, size_t max,
                       struct ms_err *err) MS_MUST_USE;
/* Give back the memory that pages of the file take; they are read again when they are needed. */
void ms_file_release(const struct ms_file *f);
/* The same for the whole pages among n bytes from `from` on. */
void ms_file_release_part(const struct ms_file *f, size_t from, size_t n);
void ms_file_unmap(struct ms_file *f);

/* A buffered writer with a kept first failure: writes after it do nothing, and
 * commit reports it.  Either `path` appears complete or it is left as it was. */
struct ms_out;
/* A file that gets its name at commit (see ms_tmp_open); parent directories are made.  A device or
 * pipe at path is written to directly. */
enum ms_rc ms_out_create(struct ms_out **out, const char *path, struct ms_err *err) MS_MUST_USE;
/* The file need not outlive a crash of the machine: commit does not wait for the disk. */
void ms_out_lazy(struct ms_out *o);
void ms_out_write(struct ms_out *o, const void *p, size_t n);
void ms_out_puts(struct ms_out *o, const char *z);
void ms_out_str(struct ms_out *o, struct ms_str s);
void ms_out_putc(struct ms_out *o, char c);
/* At most 1 MiB at a time. */
void ms_out_printf(struct ms_out *o, const char *fmt, ...) MS_PRINTF(2, 3);
/* Room for n bytes in the buffer (n at most MS_OUT_ROOM); then say how many were used. */
char *ms_out_room(struct ms_out *o, size_t n);
void ms_out_used(struct ms_out *o, size_t n);
/* Bytes written so far. */
uint64_t ms_out_size(const struct ms_out *o);
/* Hand what is buffered to the kernel. */
enum ms_rc ms_out_flush(struct ms_out *o, struct ms_err *err);
/* Flush, fsync and rename into place (or just flush to a device); frees o in any case. */
enum ms_rc ms_out_commit(struct ms_out *o, struct ms_err *err) MS_MUST_USE;
/* Throw away what was written; NULL is fine. */
void ms_out_abort(struct ms_out *o);
enum { MS_OUT_ROOM = 4096 };

/* For writers that are not an ms_out.  A temporary name beside path, "path.PID.RANDOM.tmp", that no
 * other process has on any host, registered and on the heap; parent directories are made, anything but a regular file at path is refused.  What
 * processes killed over an hour ago left of path is removed. */
enum ms_rc ms_tmp_new(char **tmp, const char *path, struct ms_err *err) MS_MUST_USE;
/* For writers that need no name of their own: a file opened for writing that has none until it is
 * published, so that even a killed process leaves nothing of it.  *tmp, on the heap, is where others
 * can open it while fd is open.  Where the file system has no such files it is as with ms_tmp_new. */
enum ms_rc ms_tmp_open(int *fd, char **tmp, const char *path, struct ms_err *err) MS_MUST_USE;
/* Closes fd and removes what was written. */
void ms_tmp_discard(int fd, const char *tmp);
/* Make what was written to tmp durable and name it path; closes fd, which is open on tmp, in any
 * case.  On failure tmp is removed.  MS_E_IO, too, when another process wrote path since this one began:
 * its file stays. */
enum ms_rc ms_tmp_publish(int fd, const char *tmp, const char *path,
                          struct ms_err *err) MS_MUST_USE;
/* The same without making it durable, where path is itself a name for a while. */
enum ms_rc ms_tmp_place(int fd, const char *tmp, const char *path, struct ms_err *err) MS_MUST_USE;

/* A new folder of one's own, "msprobe-WHAT-XXXXXX" in $TMPDIR or /tmp, registered and on the heap. */
enum ms_rc ms_tmp_folder(char **folder, const char *what, struct ms_err *err) MS_MUST_USE;
/* Removes it with all in it and frees its name; NULL is fine. */
void ms_tmp_folder_remove(char *folder);
/* Removes a temporary file, or a folder of a few levels and all in it; async-signal-safe. */
bool ms_tmp_remove(const char *path);
/* Temporary names a signal handler must remove; async-signal-safe.  true: there were some. */
bool ms_tmp_unlink_all(void);
/* Register and forget a temporary name of one's own; false when the table is full, which only means
 * that an interrupt will not remove it. */
bool ms_tmp_register(const char *path);
void ms_tmp_forget(const char *path);

/* Make a directory and its parents; fine when it exists. */
enum ms_rc ms_mkdirs(const char *path, struct ms_err *err) MS_MUST_USE;

enum ms_kind { MS_KIND_NONE, MS_KIND_FILE, MS_KIND_DIR, MS_KIND_OTHER };
/* What is at path, links followed; NONE when there is nothing or a link loop. */
enum ms_kind ms_path_kind(const char *path);
/* MS_OK when a directory is at path; else what is said of a path that was to be one. */
enum ms_rc ms_want_dir(const char *path, struct ms_err *err);
/* What is said where neither a file nor a directory is at path. */
enum ms_rc ms_fail_kind(const char *path, struct ms_err *err);
/* "dir/name" on the heap, NULL when out of memory; an absolute name is returned as it is. */
char *ms_path_join(const char *dir, const char *name);
/* The part after the last slash, trailing slashes ignored. */
struct ms_str ms_path_base(const char *path);
/* The part before the last slash, "." when there is none. */
struct ms_str ms_path_dir(const char *path);

/* Names in a directory but . and .., in natural order. */
struct ms_dir {
    struct ms_arena *arena;
    MS_VEC(struct ms_str) names; /* with a NUL behind each */
};
enum ms_rc ms_dir_list(struct ms_dir *d, const char *path, struct ms_err *err) MS_MUST_USE;
void ms_dir_free(struct ms_dir *d);

/* Flush standard output and report what could not be written: "disk full" is an error too. */
enum ms_rc ms_stdout_finish(struct ms_err *err);

#endif
