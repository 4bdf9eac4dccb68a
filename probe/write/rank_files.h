/* SPDX-License-Identifier: MIT
 *
 * rank_files: the files of one rank's directory:
 *
 *     dump.json (or debug.json), construct.json, stack.json, dump_tensor_data/
 *
 * Each is a complete document after every flush. Buffers outlive the files, so a program that opens
 * one directory after the other allocates only for the first.
 */
#ifndef PROBE_WRITE_RANK_FILES_H
#define PROBE_WRITE_RANK_FILES_H

#include "probe/base/held.h"
#include "probe/base/jwrite.h"
#include "probe/base/map.h"
#include "probe/probe.h"

/* A JSON document that grows at its end and is complete after every flush.
 *
 *     { "task": ..., "data": {  "a": {...},  "b": {...}    }  }
 *     └──────────── body, written once ──────────────────┘└tail┘
 *                                                          rewritten by each flush
 *
 * A process may be killed in the middle of a write, and the kernel then ends the write at a page
 * boundary. Text that lies within one page is therefore written to the file in place. Longer text
 * is written to a second, hidden file in the same directory, which then changes names with the
 * first. The file that was visible before is the target of the next such flush: it lacks only the
 * text of the last flush, so every byte is written at most twice. */

struct probe__append {
    struct ms_jwrite json; /* text since the last flush */
    char *path, *next_name;
    struct ms_held dir;   /* the directory of both files; stays valid when it is renamed */
    struct ms_held file;  /* the visible file; none before the first flush */
    struct ms_held next;  /* the second, hidden file, or none */
    struct ms_buf behind; /* text that the second file lacks, or would lack if it existed */
    uint64_t next_end;    /* length of the body in the second file */
    bool in_place;        /* the file system cannot exchange files: each flush is one write */
    uint64_t end;         /* length of the body in the visible file */
    const char *tail;     /* closes the body when it has members */
    const char *tail_0;   /* closes it when it has none */
    const char *in_file;  /* the tail now in the file; NULL before the first flush */
    bool members;
};

/* ---- stack.json ---------------------------------------------------------
 * Nodes grouped by equal stacks.
 *
 * A group grows as nodes are added, so groups already in the file cannot be extended. Each flush
 * appends the new nodes as groups of their own, which readers accept; finishing rewrites the
 * file with one group for each stack.
 *
 * Stacks are kept from one file to the next, so a program that repeats the same calls step after
 * step allocates only in the first step. */

struct probe__stack_group {
    uint32_t first, last; /* list of the group's nodes through `next`; NONE: not in this file */
    uint32_t pending;     /* first node not yet written; MS_MAP_NONE: none */
};
struct probe__stack_node {
    size_t name; /* offset in `names` */
    uint32_t name_n, next;
};

/* Zero it first. */
struct probe__stack_writer {
    struct probe__append out;
    struct ms_arena *arena;
    struct ms_map stacks; /* JSON text of the frames -> group */
    MS_VEC(struct probe__stack_group) groups;
    MS_VEC(uint32_t) order; /* groups in the order of their first use in this file */
    MS_VEC(struct probe__stack_node) nodes;
    struct ms_buf names;
    struct ms_jwrite frames; /* scratch buffers, also `text` */
    struct ms_buf text;
    uint32_t written; /* number of groups in the file */
    bool split;       /* some stack has more than one group in the file */
};
/* Returns the group of these frames, added when new and valid for later files as well;
 * MS_MAP_NONE on failure. */
uint32_t probe__stack_group(struct probe__stack_writer *s, const char *const *frames, unsigned n,
                            struct ms_err *err);
enum ms_rc probe__stack_add(struct probe__stack_writer *s, struct ms_str node, uint32_t group,
                            struct ms_err *err);

/* ---- the directory ------------------------------------------------------- */

/* Head of dump.json, and the set of files. */
struct probe__layout {
    enum probe_task task;
    enum probe_level level;
    enum probe_framework framework;
    bool extra;   /* write construct.json and stack.json */
    bool tensors; /* write dump_tensor_data */
};

/* Zero it first. */
struct probe__files {
    struct probe__layout layout;
    struct probe__append dump, construct;
    struct probe__stack_writer stack;
    char *dir, *data_dir; /* data_dir is absolute, NULL without tensors */
    bool is_open;
};

/* Makes the directory and its files; nothing is left open on failure. */
enum ms_rc probe__files_open(struct probe__files *f, const char *dir,
                             const struct probe__layout *layout, struct ms_err *err) MS_MUST_USE;
/* Appends the text of one member of "data". true: enough text is pending that a flush is due. */
bool probe__files_add(struct probe__files *f, struct ms_str member) MS_MUST_USE;
/* Writes the parent of node `child`; NULL: a root. */
void probe__files_parent(struct probe__files *f, struct ms_str child, const char *parent);
enum ms_rc probe__files_flush(struct probe__files *f, struct ms_err *err);
/* Updates the paths after the directory was renamed to `dir`. */
enum ms_rc probe__files_moved(struct probe__files *f, const char *dir,
                              struct ms_err *err) MS_MUST_USE;
/* Flushes and closes; does nothing when no file is open. */
enum ms_rc probe__files_close(struct probe__files *f, struct ms_err *err);
/* Closes without writing, in a process that only inherited the files. */
void probe__files_abandon(struct probe__files *f);
void probe__files_free(struct probe__files *f);

#endif
