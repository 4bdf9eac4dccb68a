/* SPDX-License-Identifier: MIT
 *
 * view_files: what tests of viewers open: a session and its reader, on files in a scratch folder.
 */
#ifndef TESTS_SUPPORT_VIEW_FILES_H
#define TESTS_SUPPORT_VIEW_FILES_H

#include "viz/model/session.h"

#include "tests/support/check.h"

/* An event of a Chrome trace; times in microseconds. */
#define EVENT(name, pid, tid, ts, dur)                                                             \
    "{\"name\":\"" name "\",\"ph\":\"X\",\"pid\":" pid ",\"tid\":" tid ",\"ts\":" ts               \
    ",\"dur\":" dur "}"

static struct ms_err err;
static char dir[64], events_path[128];
static struct viz_session session;
static struct viz_reader reader;

static inline void view_set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    session = (struct viz_session){.version = 0};
    reader = (struct viz_reader){.version = 0};
}

static inline void view_tear_down(void)
{
    viz_reader_close(&reader);
    viz_session_close(&session);
    scratch_remove(dir);
}

static inline void open_session(const char *what, const char *golden)
{
    struct viz_conf conf = {.path = what, .golden = golden};
    ck_ok(viz_session_open(&session, &conf, &err), err);
}

static inline void open_path(const char *what, const char *golden)
{
    open_session(what, golden);
    ck_ok(viz_reader_open(&reader, &session, &err), err);
}

/* A Chrome trace of these events, at events_path. */
static inline void put_events(struct ms_str events)
{
    snprintf(events_path, sizeof events_path, "%s/trace.json", dir);
    write_file(events_path, events.p, events.n);
}

#endif
