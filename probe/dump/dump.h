/* SPDX-License-Identifier: MIT
 *
 * dump: the dump.json (or debug.json) of one rank, opened as flat rows.
 *
 *     dump.json ──map──► nodes[]  one per record, in file order
 *                          │ first_row, nrows
 *                          ▼
 *                        rows[]   one per leaf, depth first: (path, offset, length)
 *
 * The file stays mapped, and a leaf is parsed only when needed. A dump therefore needs about 24
 * bytes per row, the names of its records, and the pages of the file that are in use. Large files
 * are read in parts, by several threads if available, and the pages of a part are released after
 * reading; the result is the same.
 */
#ifndef PROBE_DUMP_DUMP_H
#define PROBE_DUMP_DUMP_H

#include "probe/base/io.h"
#include "probe/base/map.h"
#include "probe/base/pool.h"
#include "probe/dump/leaf.h"
#include "probe/dump/name.h"
#include "probe/probe.h"

struct probe_row {
    uint64_t off; /* of the leaf's JSON in the file */
    uint32_t len;
    uint32_t node;
    uint32_t path; /* index for probe_row_path: "input.0", "parameters.weight" */
    uint8_t section, kind, flags;
};

enum probe_node_flags {
    PROBE_NODE_RECOMPUTE_SAID = 1 << 0, /* the record has is_recompute (older dumps) */
    PROBE_NODE_RECOMPUTE = 1 << 1,
    PROBE_NODE_NAN_SAID = 1 << 2, /* the record has is_nan (task nan_check) */
    PROBE_NODE_NAN = 1 << 3,
};

struct probe_node {
    uint64_t off; /* of the record's name in the file */
    uint32_t first_row, nrows;
    uint8_t kind, dir, flags; /* enum probe_node_kind, probe_dir, probe_node_flags */
};

/* What the records allow to compare; both dumps of a comparison must have the same mode. */
enum probe_mode { PROBE_MODE_SUMMARY, PROBE_MODE_MD5, PROBE_MODE_TENSOR, PROBE_MODE_STRUCTURE };

enum probe_open_flags {
    /* Reads the complete records of a truncated file, and keeps the last of records with the same
     * name. `problems` lists what was wrong. */
    PROBE_OPEN_TOLERANT = 1 << 0,
};

/* The header's "source" of a dump that was converted from a compiled graph. */
#define PROBE_SOURCE_GRAPH "graph"

struct probe_dump {
    char *path;
    struct ms_file file;
    struct ms_str task, level; /* as written; empty when absent */
    struct ms_str data_dir;    /* dump_data_dir; p is NULL when null or absent */
    bool is_graph;             /* backward kernels of a compiled graph mirror no forward calls */
    enum probe_framework framework;
    struct ms_str framework_text; /* as written; empty when absent */
    enum probe_mode mode;
    struct ms_map names; /* node index <-> name */
    MS_VEC(struct probe_node) nodes;
    MS_VEC(struct probe_row) rows;
    struct ms_map paths;
    MS_VEC(struct ms_str) problems;
    struct ms_arena *arena; /* text that is not a slice of the file */
    bool borrowed;          /* `file` is text of the caller */
};

/* Opens a dump.json or debug.json; an error names path, line and byte. pool may be NULL. */
enum ms_rc probe_dump_open(struct probe_dump **dump, const char *path, unsigned flags,
                           struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
/* Parses text in memory, which must outlive the dump; `name` replaces the path in messages. */
enum ms_rc probe_dump_parse(struct probe_dump **dump, const char *name, struct ms_str text,
                            unsigned flags, struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void probe_dump_close(struct probe_dump *dump);

static inline struct ms_str probe_node_name(const struct probe_dump *d, uint32_t node)
{
    return ms_map_key(&d->names, node);
}
/* Returns the index of a record, or MS_MAP_NONE. */
static inline uint32_t probe_node_find(const struct probe_dump *d, struct ms_str name)
{
    return ms_map_get(&d->names, name);
}
static inline struct ms_str probe_row_path(const struct probe_dump *d, const struct probe_row *r)
{
    return ms_map_key(&d->paths, r->path);
}
/* Parses the leaf of a row; its slices are borrowed from the dump. */
void probe_row_leaf(const struct probe_dump *d, const struct probe_row *r, struct probe_leaf *leaf);
/* Appends the full name of a row: node and path, or the name of the data file without extension
 * when there is one. */
void probe_row_name(const struct probe_dump *d, const struct probe_row *r, struct ms_buf *out);

const char *probe_framework_text(enum probe_framework f);
const char *probe_mode_text(enum probe_mode m);
/* "input_args", ... */
extern const char *const probe_section_names[PROBE_SECTIONS];

#endif
