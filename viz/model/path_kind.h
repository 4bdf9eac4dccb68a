/* SPDX-License-Identifier: MIT
 *
 * path_kind: what lies at a path, by names and first bytes. Nothing is imported or written, and little is read,
 * so it can be asked for each entry of a folder.
 */
#ifndef VIZ_MODEL_PATH_KIND_H
#define VIZ_MODEL_PATH_KIND_H

#include "probe/base/str.h"

#include <stdbool.h>

enum viz_path_kind {
    VIZ_PATH_NONE,      /* nothing, or nothing that can be opened */
    VIZ_PATH_OTHER,     /* something that no command reads */
    VIZ_PATH_FOLDER,    /* a folder with none of the following in it */
    VIZ_PATH_DUMP,      /* a dump: its folder, that of a step or rank, or its dump.json */
    VIZ_PATH_DUMP_PART, /* construct.json or stack.json */
    VIZ_PATH_RUN,       /* a recorded run: its folder or its run.db */
    VIZ_PATH_TRACE,     /* a trace of another tool */
    VIZ_PATH_PROFILE,   /* what Ascend's profiler left, a folder or a database */
    VIZ_PATH_GRAPH,     /* *.vis.db, or a folder of them */
    VIZ_PATH_TABLE,     /* tables of a comparison, or a folder of them */
    VIZ_PATH_TREND,     /* *.trend.db, or a folder of them */
    VIZ_PATH_MEMORY,    /* a snapshot, timeline or table of memory */
    VIZ_PATH_TENSOR,    /* a tensor file, or a folder of them */
    VIZ_PATH_CONFIG,    /* config.json of a dump */
    VIZ_PATH_DATABASE,  /* a SQLite database of another program */
    /* Kinds that no command reads, but of which more can be said. */
    VIZ_PATH_TAR,     /* an archive, also a compressed one */
    VIZ_PATH_ZIP,     /* an archive that is no tensor file */
    VIZ_PATH_PROGRAM, /* an executable of this system, or a script that names its interpreter */
    VIZ_PATH_PICTURE,
    VIZ_PATH_DAMAGED, /* a SQLite database that is damaged or cut off, of whatever program */
    VIZ_PATH_KINDS
};

enum viz_path_kind viz_path_kind_of(const char *path);
bool viz_path_holds_dump(const char *path);
/* What it is, with its article, such as "a recorded run"; never NULL. */
const char *viz_path_what(enum viz_path_kind kind);
/* Tells whether a command of msprobe reads it. */
static inline bool viz_path_is_read(enum viz_path_kind kind)
{
    return kind > VIZ_PATH_FOLDER && kind < VIZ_PATH_DATABASE;
}
/* Tells whether there is a command that people want next. */
bool viz_path_has_next(enum viz_path_kind kind);
/* Appends that command for a path, such as "msprobe report DIR", quoted for a shell. */
void viz_path_next(enum viz_path_kind kind, const char *path, struct ms_buf *out);
/* What that command does with the path: "does", for what another command could not, "unpacks it", "records it". */
const char *viz_path_verb(enum viz_path_kind kind);

#endif
