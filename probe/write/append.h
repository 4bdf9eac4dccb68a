/* SPDX-License-Identifier: MIT
 *
 * append: a JSON document that grows at its end and is complete after every flush.
 *
 *     { "task": ..., "data": {  "a": {...},  "b": {...}    }  }
 *     └──────────── body, written once ──────────────────┘└tail┘
 *                                                          rewritten by each flush
 *
 * A process may be killed in the middle of a write, and the kernel then ends the write at a page
 * boundary. Text that lies within one page is therefore written to the file in place. Longer text
 * is written to a second, hidden file in the same directory, which then changes names with the
 * first. The file that was visible before is the target of the next such flush: it lacks only the
 * text of the last flush, so every byte is written at most twice.
 */
#ifndef PROBE_WRITE_APPEND_H
#define PROBE_WRITE_APPEND_H

#include "probe/base/jwrite.h"

struct probe__append {
    struct ms_jwrite json; /* text since the last flush */
    char *path, *next_name;
    int dir;  /* the directory of both files; stays valid when the directory is renamed */
    int fd;   /* the visible file; -1 before the first flush */
    int next; /* the second, hidden file; -1: none */
    struct ms_buf behind; /* text that the second file lacks, or would lack if it existed */
    uint64_t next_end;    /* length of the body in the second file */
    bool in_place;        /* the file system cannot exchange files: each flush is one write */
    uint64_t end;         /* length of the body in the visible file */
    const char *tail;     /* closes the body when it has members */
    const char *tail_0;   /* closes it when it has none */
    const char *in_file;  /* the tail now in the file; NULL before the first flush */
    bool members;
};

/* Opens a new document. The file appears with the first flush, as a complete document without
 * members: the caller first writes the head to json, up to the place where members belong. *a is
 * zero, or was closed: then its memory is used again. */
enum ms_rc probe__append_open(struct probe__append *a, const char *path, const char *tail_0,
                              const char *tail, struct ms_err *err) MS_MUST_USE;
/* Appends the text of one complete member, indented for its depth; replaces calls to json. */
void probe__append_member(struct probe__append *a, struct ms_str text);
/* Writes the pending text and a new tail to the file in one step. On failure the file is
 * unchanged and the text is kept for the next flush. */
enum ms_rc probe__append_flush(struct probe__append *a, struct ms_err *err);
/* Closes the file and keeps the memory, which probe__append_free releases. */
void probe__append_close(struct probe__append *a);
void probe__append_free(struct probe__append *a);

#endif
