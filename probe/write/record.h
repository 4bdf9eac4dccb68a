/* SPDX-License-Identifier: MIT
 *
 * record: one record of a dump under construction. Its text is built apart from the document and
 * appended when complete, so a record that fails or is dropped leaves no trace, and many can be
 * open at once.
 *
 * A failure is kept in the record and makes later calls do nothing; finishing reports it.
 */
#ifndef PROBE_WRITE_RECORD_H
#define PROBE_WRITE_RECORD_H

#include "probe/base/jwrite.h"
#include "probe/write/leaf_write.h"

enum { PROBE__NEST = 64 };

/* Stores the tensor's elements in a file of this name; false: no file. */
typedef bool (*probe__save)(void *ctx, const char *name, const struct probe_tensor *t);

/* One open list or dict: length of the path outside, and the next index of a list. */
struct probe__level {
    size_t path_n;
    uint64_t index;
    bool is_list;
};

struct probe__record {
    struct ms_jwrite json;
    struct ms_buf path; /* name of the open value: `item` of the file name */
    struct probe__level level[PROBE__NEST];
    const struct probe__style *style;
    probe__save save; /* NULL: no files */
    void *ctx;
    unsigned depth;
    bool open, in_section;
    bool bare;    /* its value is a single tensor or value, not an object of sections */
    bool pgrad;   /* holds gradients of parameters: file names have no index */
    bool odd;     /* some tensor's statistics had a NaN or an infinity */
    bool is_late; /* some tensor's statistics arrive later */
};

/* Zero it first.  style is borrowed until the record is freed. */
void probe__record_init(struct probe__record *r, const struct probe__style *style);
void probe__record_free(struct probe__record *r);

/* Starts a record; drops an earlier one and keeps the memory. pgrad is false until it is set. */
void probe__record_begin(struct probe__record *r, struct ms_str name);
/* The same for a record that is a single value. */
void probe__record_begin_value(struct probe__record *r, struct ms_str name);
void probe__record_drop(struct probe__record *r);
/* Returns the text of the member, borrowed until the next begin; r->path still holds the name. */
enum ms_rc probe__record_finish(struct probe__record *r, struct ms_str *text,
                                struct ms_err *err) MS_MUST_USE;

void probe__record_section(struct probe__record *r, enum probe_section section);
/* Writes an empty section. */
void probe__record_empty_section(struct probe__record *r, enum probe_section section);
void probe__record_section_end(struct probe__record *r);
void probe__record_open(struct probe__record *r, const char *key, bool is_list);
void probe__record_close(struct probe__record *r, bool is_list);

void probe__record_tensor(struct probe__record *r, const char *key, const struct probe_tensor *t,
                          const struct probe__leaf_as *as);
/* Adds a tensor that is described later: `mark`, a single byte that JSON never contains, takes
 * its place. The path to the tensor is appended to `path`. */
void probe__record_gap(struct probe__record *r, const char *key, struct ms_str mark,
                       struct ms_buf *path);
/* Replaces probe__record_begin for the tensor of a gap, at this path and depth of the document;
 * the text is indented for its place, and no finish follows. */
void probe__record_begin_gap(struct probe__record *r, struct ms_str path, unsigned depth);
/* Between the first two calls the caller writes one value to the document itself. Within that
 * value, elements can have a file, whose name becomes a member of the open object:
 * probe__record_file writes one as for tensors; probe__record_foreign_file only names one with
 * another ending, which the caller writes; NULL: no file is to be written. */
struct ms_jwrite *probe__record_value(struct probe__record *r, const char *key, size_t *path_n);
void probe__record_value_end(struct probe__record *r, size_t path_n);
void probe__record_file(struct probe__record *r, const struct probe_tensor *t);
const char *probe__record_foreign_file(struct probe__record *r, const char *ending);
void probe__record_int(struct probe__record *r, const char *key, int64_t v);
void probe__record_float(struct probe__record *r, const char *key, double v);
void probe__record_bool(struct probe__record *r, const char *key, bool v);
void probe__record_str(struct probe__record *r, const char *key, const char *v);
void probe__record_none(struct probe__record *r, const char *key);
/* Records a failure of the caller. */
void probe__record_fail(struct probe__record *r, enum ms_rc rc, const char *what);

#endif
