/* SPDX-License-Identifier: MIT
 *
 * dump_int: what the files of the dump reader share.
 */
#ifndef PROBE_DUMP_DUMP_INT_H
#define PROBE_DUMP_DUMP_INT_H

#include "probe/dump/dump.h"

struct probe__named_node {
    struct probe_node node;
    struct ms_str name;
};

/* Records of one part of a dump as flat rows; node and path indices count within the part. */
struct probe__flat {
    const char *file;
    bool debug_level; /* records have values without sections */
    MS_VEC(struct probe__named_node) nodes;
    MS_VEC(struct probe_row) rows;
    struct ms_map paths;
    struct ms_arena *arena; /* path texts, and names with escapes */
    struct ms_buf path, scratch;
    /* Of the record being read: */
    unsigned sections; /* bits of enum probe_section seen so far */
    bool sections_in_order;
    bool pgrad; /* row names have no list index */
};

enum ms_rc probe__flat_init(struct probe__flat *f, const char *file, bool debug_level,
                            struct ms_err *err);
void probe__flat_free(struct probe__flat *f);
/* Reads members of `data` up to the first token that is no key, which is returned in *stop. A
 * record that is cut off by the end of the text is dropped. */
enum ms_rc probe__flat_read(struct probe__flat *f, struct ms_jread *r, enum ms_jtok *stop,
                            struct ms_err *err);

#endif
