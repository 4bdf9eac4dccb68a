/* SPDX-License-Identifier: MIT
 *
 * rank_files: what a dump puts into one rank's directory:
 *
 *     dump.json (or debug.json), construct.json, stack.json, dump_tensor_data/
 *
 * Each is a complete document after every flush.  Buffers outlive the files, so
 * a program that opens one directory after the other allocates only for the
 * first.
 */
#ifndef PROBE_WRITE_RANK_FILES_H
#define PROBE_WRITE_RANK_FILES_H

#include "probe/base/map.h"
#include "probe/probe.h"
#include "probe/write/append.h"

/* ---- stack.json ---------------------------------------------------------
 * stack.json as it is collected: nodes grouped by equal stacks.
 *
 * A group grows as nodes are added, so groups already in the file cannot be
 * appended to.  Each flush appends what is new as groups of its own, which
 * readers accept; finishing writes the file once more, each stack one group.
 *
 * Stacks are remembered from one file to the next, so a program that comes by
 * the same places step after step allocates only in the first.
 */

struct probe__stack_group {
    uint32_t first, last; /* nodes of the group, as a list through `next`; NONE: not in this file */
    uint32_t pending;     /* the first of them that is not in the file, MS_MAP_NONE: none */
};
struct probe__stack_node {
    size_t name; /* in `names` */
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
    struct ms_jwrite frames; /* scratch, as is text */
    struct ms_buf text;
    uint32_t written; /* groups in the file */
    bool split;       /* some stack is in the file as more than one group */
};

enum ms_rc probe__stack_open(struct probe__stack_writer *s, const char *path,
                             struct ms_err *err) MS_MUST_USE;
/* The group of these frames, made when they are new, and good for later files as well;
 * MS_MAP_NONE on failure. */
uint32_t probe__stack_group(struct probe__stack_writer *s, const char *const *frames, unsigned n,
                            struct ms_err *err);
enum ms_rc probe__stack_add(struct probe__stack_writer *s, struct ms_str node, uint32_t group,
                            struct ms_err *err);
enum ms_rc probe__stack_flush(struct probe__stack_writer *s, struct ms_err *err);
/* Flush, and write the file once more when that makes it better; closes it. */
enum ms_rc probe__stack_finish(struct probe__stack_writer *s, struct ms_err *err);
void probe__stack_free(struct probe__stack_writer *s);

/* ---- the directory ------------------------------------------------------- */

/* What the head of dump.json says, and which files there are. */
struct probe__layout {
    enum probe_task task;
    enum probe_level level;
    enum probe_framework framework;
    bool extra;   /* construct.json and stack.json */
    bool tensors; /* dump_tensor_data */
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
/* Text of one member of "data", as a record has it.  true: so much has come together that a flush is
 * due. */
bool probe__files_add(struct probe__files *f, struct ms_str member) MS_MUST_USE;
/* Node `child` lies in `parent`; NULL: it is a root. */
void probe__files_parent(struct probe__files *f, struct ms_str child, const char *parent);
enum ms_rc probe__files_flush(struct probe__files *f, struct ms_err *err);
/* The directory has another name now. */
enum ms_rc probe__files_moved(struct probe__files *f, const char *dir,
                              struct ms_err *err) MS_MUST_USE;
/* Flush and close; fine when nothing is open. */
enum ms_rc probe__files_close(struct probe__files *f, struct ms_err *err);
/* Close without another write: in a process that has only inherited the files. */
void probe__files_abandon(struct probe__files *f);
void probe__files_free(struct probe__files *f);

#endif
