/* SPDX-License-Identifier: MIT
 *
 * record: one record of a dump while it is described.  Its text is made apart
 * from the document and joins that when it is whole, so a record that fails or
 * is dropped leaves no trace, and many can be open at once.
 *
 * A failure is kept in the record and makes later calls do nothing; finishing
 * reports it.
 */
#ifndef PROBE_WRITE_RECORD_H
#define PROBE_WRITE_RECORD_H

#include "probe/base/jwrite.h"
#include "probe/write/leaf_write.h"

enum { PROBE__NEST = 64 };

/* Keep the tensor's elements as a file of this name; false: it has none. */
typedef bool (*probe__save)(void *ctx, const char *name, const struct probe_tensor *t);

/* One open list or dict: how long the path was outside, and the next index of a list. */
struct probe__level {
    size_t path_n;
    uint64_t index;
    bool is_list;
};

struct probe__record {
    struct ms_jwrite json;
    struct ms_buf path; /* name of the value that is open: item of the file name */
    struct probe__level level[PROBE__NEST];
    const struct probe__style *style;
    probe__save save; /* NULL: no files */
    void *ctx;
    unsigned depth;
    bool open, in_section;
    bool bare;    /* its value is no object of parts but what is put next */
    bool pgrad;   /* it holds gradients of parameters: names of files have no index */
    bool odd;     /* some tensor's figures had a NaN or an infinity */
    bool is_late; /* some tensor's figures come later */
};

/* Zero it first.  style is borrowed until the record is freed. */
void probe__record_init(struct probe__record *r, const struct probe__style *style);
void probe__record_free(struct probe__record *r);

/* What was there before is forgotten; memory is kept.  pgrad is false until it is set. */
void probe__record_begin(struct probe__record *r, struct ms_str name);
/* The same for a record that is a single value. */
void probe__record_begin_value(struct probe__record *r, struct ms_str name);
void probe__record_drop(struct probe__record *r);
/* The text of the member, borrowed until the next begin; the name stays at r->path. */
enum ms_rc probe__record_finish(struct probe__record *r, struct ms_str *text,
                                struct ms_err *err) MS_MUST_USE;

void probe__record_section(struct probe__record *r, enum probe_section section);
/* The same section without anything in it. */
void probe__record_empty_section(struct probe__record *r, enum probe_section section);
void probe__record_section_end(struct probe__record *r);
void probe__record_open(struct probe__record *r, const char *key, bool is_list);
void probe__record_close(struct probe__record *r, bool is_list);

void probe__record_tensor(struct probe__record *r, const char *key, const struct probe_tensor *t,
                          const struct probe__leaf_as *as);
/* A tensor that is described later: `mark`, a single byte that JSON has not, stands for it.  The path
 * to it is added to `path`. */
void probe__record_gap(struct probe__record *r, const char *key, struct ms_str mark,
                       struct ms_buf *path);
/* Instead of begin: what is put next, a tensor alone, is for a gap at this path and depth of the
 * document; its text is that of the document, and nothing is finished. */
void probe__record_begin_gap(struct probe__record *r, struct ms_str path, unsigned depth);
/* A value that the caller writes to the document itself, between these two.  Within it elements can
 * have a file, whose name becomes a member of the object that is open: one like those of tensors, or
 * one of another ending that the caller makes; NULL: there is to be none. */
struct ms_jwrite *probe__record_value(struct probe__record *r, const char *key, size_t *path_n);
void probe__record_value_end(struct probe__record *r, size_t path_n);
void probe__record_file(struct probe__record *r, const struct probe_tensor *t);
const char *probe__record_foreign_file(struct probe__record *r, const char *ending);
void probe__record_int(struct probe__record *r, const char *key, int64_t v);
void probe__record_float(struct probe__record *r, const char *key, double v);
void probe__record_bool(struct probe__record *r, const char *key, bool v);
void probe__record_str(struct probe__record *r, const char *key, const char *v);
void probe__record_none(struct probe__record *r, const char *key);
/* A failure of the caller's, kept as any other. */
void probe__record_fail(struct probe__record *r, enum ms_rc rc, const char *what);

#endif
