/* SPDX-License-Identifier: MIT
 *
 * leaf: one tensor or plain value of a dump, as described in JSON.
 */
#ifndef PROBE_DUMP_LEAF_H
#define PROBE_DUMP_LEAF_H

#include "probe/base/dtype.h"
#include "probe/base/jread.h"

enum probe_leaf_kind {
    PROBE_LEAF_NULL,   /* null: no value, or one that cannot be dumped */
    PROBE_LEAF_TENSOR, /* type, dtype and shape */
    PROBE_LEAF_VALUE,  /* int, float, bool, str, numpy scalar, slice, torch.Size, dtype, device */
    PROBE_LEAF_GROUP,  /* a process group: group_ranks */
    PROBE_LEAF_P2P,    /* a point-to-point operation: class_type */
    PROBE_LEAF_OTHER,  /* an unknown kind of leaf: still a row */
};

/* Kinds of numbers: Python's int, float, bool and None are distinguished. */
enum probe_num_kind {
    PROBE_NUM_ABSENT, /* the key is not there */
    PROBE_NUM_NULL,
    PROBE_NUM_BOOL,
    PROBE_NUM_INT,
    PROBE_NUM_FLOAT,
    PROBE_NUM_OTHER, /* text or a container: not a number */
};
struct probe_num {
    enum probe_num_kind kind;
    double v;           /* of BOOL (0 or 1), INT and FLOAT */
    struct ms_str text; /* as written */
};

enum { PROBE_STAT_MAX, PROBE_STAT_MIN, PROBE_STAT_MEAN, PROBE_STAT_NORM, PROBE_STATS };
/* "Max", "Min", "Mean", "Norm" */
extern const char *const probe_stat_names[PROBE_STATS];

/* A leaf. All text is a slice of the dump. Slices named *_json are JSON as written; the others are
 * text between quotes, with escapes when `escaped` is set. */
struct probe_leaf {
    enum probe_leaf_kind kind;
    struct ms_str json; /* the whole leaf */
    struct ms_str type; /* type or class_type */
    struct ms_str dtype_text;
    enum ms_dtype dtype;
    struct ms_str shape_json; /* !!of a P2P operation: that of its tensor */
    struct probe_num stat[PROBE_STATS];
    int requires_grad;        /* -1: not in the dump */
    struct ms_str md5;        /* digest, or a 0-dim xor value as JSON */
    struct ms_str data_name;  /* !!of a P2P operation: that of its tensor */
    struct ms_str value_json; /* value, format, or group_ranks */
    bool escaped;             /* some text slice holds a backslash */
    bool unfinished;          /* has a placeholder that a finished dump would have replaced */
};

/* Keys of a leaf, found while skipping it. */
enum probe_leaf_flags {
    PROBE_LEAF_HAS_MD5 = 1 << 0,
    PROBE_LEAF_HAS_DATA_NAME = 1 << 1,
    PROBE_LEAF_REAL_STATS = 1 << 2, /* a tensor whose four statistics are numbers with a fraction or
                                       an exponent: none is missing, whole, NaN or infinite */
};

/* Finds while reading an object whether it is a leaf and of which kind, or a container. Zero it,
 * note each member, then get the result. */
struct probe_leaf_scan {
    bool typed; /* is a leaf: has a string `type`, or class_type */
    bool class_type, dtype, shape, group, value;
    uint8_t flags;
    uint8_t reals; /* a bit for each statistic: as for PROBE_LEAF_REAL_STATS */
    struct ms_str type;
};
/* Notes a member; `r` is at its value. */
void probe_leaf_note(struct probe_leaf_scan *s, struct ms_str key, enum ms_jtok value,
                     const struct ms_jread *r);
enum probe_leaf_kind probe_leaf_kind_of(const struct probe_leaf_scan *s);
/* Returns the flags of a leaf of this kind. */
uint8_t probe_leaf_flags_of(const struct probe_leaf_scan *s, enum probe_leaf_kind kind);

/* Parses the JSON of a leaf, which is known to be well-formed. */
void probe_leaf_parse(struct probe_leaf *leaf, struct ms_str json, enum probe_leaf_kind kind);
/* Tells whether a tensor holds minus infinity and otherwise only finite numbers: in a forward pass
 * the scores that a mask excludes from a softmax, or the mask itself. */
bool probe_leaf_is_masked(const struct probe_leaf *leaf);

/* Parses shape_json; false when it is not a list of whole numbers or has more than max. */
bool probe_leaf_shape(const struct probe_leaf *leaf, uint64_t *dim, unsigned max, unsigned *ndim);

#endif
