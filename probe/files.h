/* SPDX-License-Identifier: MIT
 *
 * files: what a dump puts into one rank's directory:
 *
 *     dump.json (or debug.json), construct.json, stack.json, dump_tensor_data/
 *
 * Each is a complete document after every flush.  Buffers outlive the files, so
 * a program that opens one directory after the other allocates only for the
 * first.
 */
#ifndef PROBE_FILES_H
#define PROBE_FILES_H

#include "probe/probe.h"
#include "probe/stack_write.h"

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
