/* SPDX-License-Identifier: MIT
 *
 * checkpoint_int: what the readers of this room share. A reader maps files and adds entries; the
 * parts of a tensor are added right behind its entry.
 */
#ifndef PROBE_CHECKPOINT_CHECKPOINT_INT_H
#define PROBE_CHECKPOINT_CHECKPOINT_INT_H

#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/map.h"
#include "probe/base/vec.h"
#include "probe/checkpoint/checkpoint.h"
#include "probe/tensor/tensor.h"

/* A box of a tensor's elements, and where they lie. In a flat tensor the box has one dimension, the
 * order of the elements. */
struct ckpt_part {
    const char *data;                 /* the box's first element */
    uint64_t from[PROBE_CKPT_DIMS];   /* its place in the tensor */
    uint64_t extent[PROBE_CKPT_DIMS]; /* its sizes */
    uint64_t stride[PROBE_CKPT_DIMS]; /* in elements */
    const struct ms_file *file;       /* NULL: not mapped */
};

struct ckpt_file {
    struct ms_file map; /* of a file that was opened, else zeroed */
    struct ms_str path; /* followed by a NUL */
};

struct probe_ckpt {
    struct ms_arena *arena;
    char kind[96];
    MS_VEC(struct ckpt_file *) files;
    MS_VEC(struct probe_ckpt_entry) entries;
    MS_VEC(bool) flat; /* of the entry: its parts are ranges of elements */
    MS_VEC(struct ckpt_part) parts;
    MS_VEC(struct ms_str) notes;
    MS_VEC(struct probe_ckpt *) shards; /* checkpoints of single ranks that this one joins */
    struct ms_map names;                /* filled by ckpt__finish */
    bool is_tree;                       /* names begin with the keys of a dictionary of states */
    bool knows_weights;                 /* the reader has given the weights their role */
};

/* Limits that no checkpoint reaches. */
enum { CKPT_MAX_DEPTH = 48, CKPT_MAX_ENTRIES = 4 << 20, CKPT_MAX_MEMBERS = 4 << 20 };
#define CKPT_MAX_BYTES ((size_t)1 << 46)

enum ms_rc ckpt__new(struct probe_ckpt **c, struct ms_err *err) MS_MUST_USE;
/* Maps a file; it stays mapped until the checkpoint is closed. */
enum ms_rc ckpt__map(struct probe_ckpt *c, const char *path, struct ckpt_file **f,
                     struct ms_err *err) MS_MUST_USE;
/* Makes a file of bytes that the caller keeps. */
enum ms_rc ckpt__borrow(struct probe_ckpt *c, const char *name, struct ckpt_file **f,
                        struct ms_err *err) MS_MUST_USE;
/* Takes a checkpoint over, to be closed with c. On failure it is closed at once. */
enum ms_rc ckpt__adopt(struct probe_ckpt *c, struct probe_ckpt *shard,
                       struct ms_err *err) MS_MUST_USE;
enum ms_rc ckpt__note(struct probe_ckpt *c, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);

/* Adds a tensor; the name is copied. Fails when sizes do not fit. */
enum ms_rc ckpt__add(struct probe_ckpt *c, struct ms_str name, enum ms_dtype dtype,
                     const uint64_t *shape, uint32_t ndim, bool flat, const struct ckpt_file *f,
                     struct ms_err *err) MS_MUST_USE;
/* Adds a part to the last entry. */
enum ms_rc ckpt__add_part(struct probe_ckpt *c, const struct ckpt_part *part,
                          struct ms_err *err) MS_MUST_USE;
/* Adds a tensor that lies in one piece: contiguous elements in C order, or with the strides of t. */
enum ms_rc ckpt__add_plain(struct probe_ckpt *c, struct ms_str name, enum ms_dtype dtype,
                           const uint64_t *shape, uint32_t ndim, const char *data,
                           const struct ckpt_file *f, struct ms_err *err) MS_MUST_USE;
enum ms_rc ckpt__add_tensor(struct probe_ckpt *c, struct ms_str name, const struct probe_tensor *t,
                            const struct ckpt_file *f, struct ms_err *err) MS_MUST_USE;
/* Adds an entry like one of a shard, without its parts; the parts of that one, moved along a
 * dimension; or both. */
enum ms_rc ckpt__add_like(struct probe_ckpt *c, struct ms_str name,
                          const struct probe_ckpt_entry *e, const uint64_t *shape,
                          struct ms_err *err) MS_MUST_USE;
enum ms_rc ckpt__add_parts_of(struct probe_ckpt *c, const struct probe_ckpt *shard,
                              const struct probe_ckpt_entry *e, uint32_t dim, uint64_t by,
                              struct ms_err *err) MS_MUST_USE;
enum ms_rc ckpt__add_value(struct probe_ckpt *c, struct ms_str name, const struct ms_plain *v,
                           const struct ckpt_file *f, struct ms_err *err) MS_MUST_USE;
/* Tells whether an entry's parts are ranges of elements. */
bool ckpt__is_flat(const struct probe_ckpt *c, const struct probe_ckpt_entry *e);

/* Finds roles, shortens names of weights and sorts the entries; no entry is added afterwards. */
enum ms_rc ckpt__finish(struct probe_ckpt *c, struct ms_err *err) MS_MUST_USE;
/* Returns the role of an entry by the keys of its name. */
enum probe_ckpt_role ckpt__role_of(struct ms_str name, enum ms_dtype dtype);
/* Tells whether a key is one under which a checkpoint has its weights. */
bool ckpt__is_weight_root(struct ms_str key);

/* ---- readers -------------------------------------------------------------------------- */

/* A .pt archive: a pickle, and storages that lie where they lie in the file. */
struct ckpt_archive;
enum ms_rc ckpt__pt_open(struct ckpt_archive **a, struct probe_ckpt *c, const struct ckpt_file *f,
                         const char *p, size_t n, struct ms_err *err) MS_MUST_USE;
const struct ms_plain *ckpt__pt_root(const struct ckpt_archive *a);
/* Adds every tensor and value below v, under prefix. */
enum ms_rc ckpt__pt_add(struct ckpt_archive *a, struct ms_str prefix, const struct ms_plain *v,
                        struct ms_err *err) MS_MUST_USE;
void ckpt__pt_close(struct ckpt_archive *a);
/* Opens the archive, adds all of it and closes it. */
enum ms_rc ckpt__pt_read(struct probe_ckpt *c, const struct ckpt_file *f, struct ms_str prefix,
                         const char *p, size_t n, struct ms_err *err) MS_MUST_USE;
/* Reads a pickle of objects without an archive. */
enum ms_rc ckpt__pickle_read(const struct ms_plain **root, struct probe_ckpt *c, const char *p,
                             size_t n, struct ms_err *err) MS_MUST_USE;

enum ms_rc ckpt__safetensors_read(struct probe_ckpt *c, const struct ckpt_file *f, const char *p,
                                  size_t n, struct ms_err *err) MS_MUST_USE;
bool ckpt__is_safetensors(const char *p, size_t n);
enum ms_rc ckpt__mindspore_read(struct probe_ckpt *c, const struct ckpt_file *f, const char *p,
                                size_t n, struct ms_err *err) MS_MUST_USE;
bool ckpt__is_mindspore(const char *p, size_t n);

/* Folders. Each reads a folder that its `is` accepts. */
enum ms_rc ckpt__index_read(struct probe_ckpt *c, const char *dir, const char *index,
                            struct ms_err *err) MS_MUST_USE;
enum ms_rc ckpt__distributed_read(struct probe_ckpt *c, const char *dir,
                                  struct ms_err *err) MS_MUST_USE;
/* Parses .metadata alone, without the files that it names. */
enum ms_rc ckpt__metadata_parse(struct probe_ckpt *c, const char *p, size_t n,
                                struct ms_err *err) MS_MUST_USE;
enum ms_rc ckpt__megatron_read(struct probe_ckpt *c, const char *dir,
                               struct ms_err *err) MS_MUST_USE;
enum ms_rc ckpt__deepspeed_read(struct probe_ckpt *c, const char *dir,
                                struct ms_err *err) MS_MUST_USE;
/* Reads the bytes of a file, whose format they tell. */
enum ms_rc ckpt__read_bytes(struct probe_ckpt *c, const struct ckpt_file *f, const char *p,
                            size_t n, struct ms_err *err) MS_MUST_USE;
/* Reads one file of a rank into a checkpoint of its own, whose names stay as they are. */
enum ms_rc ckpt__open_file(struct probe_ckpt **c, const char *path, struct ms_err *err) MS_MUST_USE;

#endif
