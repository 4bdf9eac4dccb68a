/* SPDX-License-Identifier: MIT
 *
 * append: a JSON document that grows at its end and is complete after every
 * flush.
 *
 *     { "task": ..., "data": {  "a": {...},  "b": {...}    }  }
 *     └──────────── body, written once ──────────────────┘└tail┘
 *                                                          rewritten by each flush
 *
 * A process may be killed in the middle of a write, which the kernel then ends at
 * a page.  So text that lies within one page goes into the file as it is; any
 * more goes into a second file beside it, hidden, which then changes places with
 * the first.  The one that was seen is the next to be written to: it lacks what
 * the last flush added, and so all is written twice and never more often.
 */
#ifndef PROBE_WRITE_APPEND_H
#define PROBE_WRITE_APPEND_H

#include "probe/base/jwrite.h"

struct probe__append {
    struct ms_jwrite json; /* text since the last flush */
    char *path, *next_name;
    int dir;              /* where both lie, whatever it is called by now */
    int fd;               /* the file that is seen; -1 before the first flush */
    int next;             /* the one beside it; -1: none */
    struct ms_buf behind; /* what the body in it lacks, or would lack if there was one */
    uint64_t next_end;    /* of the body in it */
    bool in_place;        /* files cannot change places here: each flush is one write */
    uint64_t end;         /* of the body in the file */
    const char *tail;     /* closes the body when it has members */
    const char *tail_0;   /* closes it when it has none */
    const char *in_file;  /* the tail that is in the file; NULL before the first flush */
    bool members;
};

/* Makes path anew, with the first flush, which leaves it a complete document without members: the
 * caller first writes the head to json, up to the place where members go.
 * *a is zero, or was closed: then its memory is used again. */
enum ms_rc probe__append_open(struct probe__append *a, const char *path, const char *tail_0,
                              const char *tail, struct ms_err *err) MS_MUST_USE;
/* Text of one whole member, laid out for its place, in place of calls to json. */
void probe__append_member(struct probe__append *a, struct ms_str text);
/* Put text and a new tail into the file, at once.  When that fails the file is left as it was
 * and the text is kept for the next flush. */
enum ms_rc probe__append_flush(struct probe__append *a, struct ms_err *err);
/* Close the file and keep the memory; free gives that back. */
void probe__append_close(struct probe__append *a);
void probe__append_free(struct probe__append *a);

#endif
