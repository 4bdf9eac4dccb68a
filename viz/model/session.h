/* SPDX-License-Identifier: MIT
 *
 * session: what a viewer was asked to open, and the handles to read it with.
 *
 *     path            opened as
 *     run directory   timeline (run.db, imported when missing or stale), and the
 *                     dump in it as a graph
 *     dump, or two    graph, built into a folder of its own that goes away at close
 *     *.vis.db        graph
 *     run.db, Chrome trace, database of Ascend's profilers    timeline
 *
 * A session is opened once; every thread that reads it opens a reader.
 */
#ifndef VIZ_MODEL_SESSION_H
#define VIZ_MODEL_SESSION_H

#include "compare/graph/view/graph_view.h"
#include "mstx/rundb/run_query.h"

#include <stdatomic.h>

struct viz_conf {
    const char *path;
    const char *golden;         /* of a pair of dumps; NULL: none */
    graph_progress_fn progress; /* while a graph is built; may be NULL */
    graph_note_fn note;         /* lines for people; may be NULL */
    void *ctx;
};

struct viz_session {
    char *path, *golden;
    char *timeline;       /* its database; NULL: there is no timeline */
    char *graph;          /* its .vis.db as it was opened; NULL: there is no graph */
    char *origin;         /* the file that it is, or that graph is a copy of; NULL: made of dumps */
    char *made;           /* folder to take away at close; NULL: none */
    _Atomic(char *) work; /* working copy with what was changed by hand; NULL: none */
    _Atomic(uint64_t) changes; /* that were not written yet */
    uint64_t version;          /* grows when viz_session_refresh finds something new */
};

enum ms_rc viz_session_open(struct viz_session *s, const struct viz_conf *conf,
                            struct ms_err *err) MS_MUST_USE;
void viz_session_close(struct viz_session *s);
/* Of a run that is still written: bring its database up to date.  Readers of an older version go on
 * reading what they have; open them again to see more. */
enum ms_rc viz_session_refresh(struct viz_session *s, struct ms_err *err) MS_MUST_USE;
/* The last part of the path: what the viewers call it. */
/* The database that holds the graph as it is now: the working copy, where there is one. */
const char *viz_session_graph(const struct viz_session *s);
struct ms_str viz_session_title(const struct viz_session *s);

struct viz_reader {
    struct mstx_tl *tl;       /* NULL: there is no timeline */
    struct graph_view *graph; /* NULL: there is no graph */
    const char *graph_path;   /* borrowed from the session: viz_session_graph when it was opened */
    uint64_t version;         /* of the session when it was opened */
};
enum ms_rc viz_reader_open(struct viz_reader *r, const struct viz_session *s,
                           struct ms_err *err) MS_MUST_USE;
void viz_reader_close(struct viz_reader *r);

#endif
