/* SPDX-License-Identifier: MIT
 *
 * session: the input that a viewer has opened, and handles to read it.
 *
 *     path            opened as
 *     run directory   timeline (run.db, imported when missing or stale), and the
 *                     dump in it as a graph
 *     dump, or two    graph, built in a temporary folder that is removed at close
 *     *.vis.db        graph
 *     run.db, Chrome trace, database of Ascend's profilers    timeline
 *     *.trend.db, folder of a training monitor    trend: statistics over steps
 *     compare_result*.csv, .xlsx    table
 *     memory snapshot, timeline     table of who owns the memory
 *     two runs        timeline of the first, and a table of what takes longer in it
 *     folder of these    a list to choose from, where the viewer has one
 *
 * A session is opened once; every thread that reads it opens a reader.
 */
#ifndef VIZ_MODEL_SESSION_H
#define VIZ_MODEL_SESSION_H

#include "compare/graph/view/graph_view.h"
#include "mstx/rundb/run_query.h"

#include <stdatomic.h>

struct viz_sheet;

struct viz_conf {
    const char *path;
    const char *golden;         /* second dump or run of a pair; NULL: none */
    const char *shelf;          /* folder from which this was chosen; NULL: none */
    bool can_choose;            /* a folder of runs is a list; else it is refused */
    void (*on_choice)(void);    /* something was chosen, from any thread; may be NULL */
    graph_progress_fn progress; /* while a graph is built; may be NULL */
    graph_note_fn note;         /* messages for the user; may be NULL */
    void *ctx;
};

struct viz_session {
    char *path, *golden;
    char *timeline;               /* database; NULL: no timeline */
    char *graph;                  /* .vis.db as opened; NULL: no graph */
    char *trend;                  /* database or folder of statistics over steps; NULL: none */
    struct viz_session *older;    /* of two runs: the older one; NULL: none */
    char *flame;                  /* of two runs: see viz_sheet_of_runs; NULL: none */
    struct viz_sheet *sheet;      /* a table; NULL: none */
    char *shelf;                  /* folder to choose from; NULL: none */
    char failed[512];             /* why the last choice was not opened */
    char *chosen, *chosen_golden; /* what is opened next; guarded by viz_session_choose */
    bool has_choice;
    int64_t opened_ns; /* Unix time, which tells one session from another */
    void (*on_choice)(void);
    char *origin; /* the opened file, of which graph may be a copy; NULL: built from dumps */
    char *made;   /* folder to remove at close; NULL: none */
    _Atomic(char *) work;      /* working copy with the user's changes; NULL: none */
    _Atomic(uint64_t) changes; /* number not written yet */
    _Atomic uint64_t version;  /* incremented when viz_session_refresh finds new data */
};

enum ms_rc viz_session_open(struct viz_session *s, const struct viz_conf *conf,
                            struct ms_err *err) MS_MUST_USE;
void viz_session_close(struct viz_session *s);
/* Updates the database of a run that is still being written. Existing readers keep reading the
 * older version; reopen them to see the new data. */
enum ms_rc viz_session_refresh(struct viz_session *s, struct ms_err *err) MS_MUST_USE;
/* Takes what is opened next (NULL: the list) and its ownership, and tells the viewer. The second moves the choice
 * out; false: there is none. */
void viz_session_choose(struct viz_session *s, char *path, char *golden);
bool viz_session_chosen(struct viz_session *s, char **path, char **golden);
/* Return the current database of the graph (the working copy, if one exists), and the last part
 * of the path, which the viewers use as title. */
const char *viz_session_graph(const struct viz_session *s);
struct ms_str viz_session_title(const struct viz_session *s);

struct viz_reader {
    struct mstx_tl *tl;       /* NULL: no timeline */
    struct graph_view *graph; /* NULL: no graph */
    const char *trend;        /* borrowed from the session; NULL: no statistics over steps */
    struct viz_reader *older; /* of the older of two runs; NULL: none */
    const char *graph_path;   /* borrowed from the session: viz_session_graph at opening */
    uint64_t version;         /* the session's version at opening */
};
enum ms_rc viz_reader_open(struct viz_reader *r, const struct viz_session *s,
                           struct ms_err *err) MS_MUST_USE;
void viz_reader_close(struct viz_reader *r);

/* Changes that the user makes to a graph. The opened file stays unchanged. The first change creates a working copy in the session's folder,
 * which all readers use from then on. Changes are kept when the copy is written to a file beside
 * the opened one, or over the opened one on request. */

/* Returns the working copy, created when needed; the session owns the text. Call
 * viz_changes_made after each change. */
enum ms_rc viz_changes_begin(struct viz_session *s, const char **path,
                             struct ms_err *err) MS_MUST_USE;
void viz_changes_made(struct viz_session *s);
/* Number of changes since the last write. */
uint64_t viz_changes_count(const struct viz_session *s);
/* Writes the working copy. to: a file; NULL means NAME.edited.vis.db beside the opened graph,
 * and with `over` the opened graph itself. *where, with its max set, receives the path. */
enum ms_rc viz_changes_write(struct viz_session *s, const char *to, bool over, struct ms_buf *where,
                             struct ms_err *err) MS_MUST_USE;

/* Callbacks of viz_conf that print to standard error; progress is printed only on a terminal. ctx:
 * the name of the command. */
void viz_print_progress(void *ctx, int percent);
void viz_print_note(void *ctx, const char *line);

#endif
