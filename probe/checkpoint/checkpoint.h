/* SPDX-License-Identifier: MIT
 *
 * checkpoint: what a training saved, as a list of named tensors and plain values.
 *
 * A checkpoint is one file or a folder of shards. Files are mapped and never executed; a tensor that
 * several ranks hold in parts is one entry, whose parts stay where they lie until its elements are
 * read. So a checkpoint larger than memory is read in pieces, and memory is needed for names and
 * shapes alone.
 *
 *     struct probe_ckpt *c;
 *     MS_TRY(probe_ckpt_open(&c, path, err));
 *     for (size_t i = 0; i < probe_ckpt_count(c); i++)
 *         use(probe_ckpt_entry(c, i));
 *     probe_ckpt_close(c);
 */
#ifndef PROBE_CHECKPOINT_CHECKPOINT_H
#define PROBE_CHECKPOINT_CHECKPOINT_H

#include "probe/base/dtype.h"
#include "probe/base/pickle.h"

enum { PROBE_CKPT_DIMS = 8 };

/* The place of an entry: what a checkpoint has beside weights. */
enum probe_ckpt_role {
    PROBE_CKPT_OTHER,
    PROBE_CKPT_WEIGHT,    /* of the model */
    PROBE_CKPT_EMA,       /* an average of the weights */
    PROBE_CKPT_OPTIMIZER, /* moments, steps, learning rates */
    PROBE_CKPT_SCHEDULER,
    PROBE_CKPT_SCALER, /* of the gradients of a training in mixed precision */
    PROBE_CKPT_RANDOM, /* states of random generators */
    PROBE_CKPT_DATA,   /* where the training was in its data */
};

struct probe_ckpt_entry {
    struct ms_str name; /* path of keys, joined by dots; its last byte is followed by a NUL */
    enum probe_ckpt_role role;
    enum ms_dtype dtype;          /* MS_DT_NONE: a plain value */
    const struct ms_plain *value; /* of a plain value */
    uint32_t ndim;
    uint64_t shape[PROBE_CKPT_DIMS];
    uint64_t count;       /* elements */
    uint32_t part, parts; /* internal: the first part and their number */
    struct ms_str file;   /* where it, or its first part, lies */
};

struct probe_ckpt;

/* Opens a file or folder; its kind is found by content. On failure the error names the file and the
 * place in it. */
enum ms_rc probe_ckpt_open(struct probe_ckpt **c, const char *path, struct ms_err *err) MS_MUST_USE;
void probe_ckpt_close(struct probe_ckpt *c);

/* Returns what the checkpoint is: "safetensors", "Megatron, 2 x 2 ranks". */
const char *probe_ckpt_kind(const struct probe_ckpt *c);
/* Number of entries, which are in natural order of their names. */
size_t probe_ckpt_count(const struct probe_ckpt *c);
const struct probe_ckpt_entry *probe_ckpt_entry(const struct probe_ckpt *c, size_t i);
/* Returns the entry of a name, or NULL. */
const struct probe_ckpt_entry *probe_ckpt_find(const struct probe_ckpt *c, struct ms_str name);
/* Remarks about the checkpoint, one line each: ranks that disagree about a shared weight, and so on. */
size_t probe_ckpt_notes(const struct probe_ckpt *c);
struct ms_str probe_ckpt_note(const struct probe_ckpt *c, size_t i);

/* Returns the elements [from, from + n) of a tensor in C order as contiguous bytes: in place, or
 * gathered into `scratch` of n elements. */
const void *probe_ckpt_elements(const struct probe_ckpt *c, const struct probe_ckpt_entry *e,
                                uint64_t from, uint64_t n, void *scratch);
/* Gives the memory of mapped pages of the entry back, after its elements were read. */
void probe_ckpt_release(const struct probe_ckpt *c, const struct probe_ckpt_entry *e);

/* Appends a plain value as Python prints it, at most `most` bytes. */
void probe_ckpt_value_text(const struct ms_plain *v, struct ms_buf *out, size_t most);

/* Parses one file in memory, which must outlive c; `name` takes the place of the path. For tests. */
enum ms_rc probe_ckpt_parse(struct probe_ckpt **c, const char *name, const char *p, size_t n,
                            struct ms_err *err) MS_MUST_USE;

#endif
