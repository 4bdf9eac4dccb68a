/* SPDX-License-Identifier: MIT
 *
 * import: the capture of a run becomes the tables of run.db, without findings.
 */
#ifndef MSTX_IMPORT_IMPORT_H
#define MSTX_IMPORT_IMPORT_H

#include "probe/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mstx_import_result {
    uint64_t files, records, events, unfinished, dropped, problems;
    uint64_t repeated; /* traces of ranks that another trace has, too */
    uint32_t processes, ranks, tracks;
    int64_t start_ns, end_ns;
    uint64_t bytes; /* size of run.db */
};

struct ms_par;
struct ms_progress;
struct mstx_import_how {
    bool fold;        /* store once what repeats over steps and ranks (rundb/fold_write.h) */
    int64_t bound_ns; /* by how much times of a folded database may differ; 0: not at all */
    bool summary;     /* only results about all ranks, without timelines and single calls */
    /* How long the others wait before a rank that may still be running counts as missing; 0: as in
     * the database that is replaced, or the default. */
    double missing_after_s;
    /* Processes that share the work; each of them calls.  NULL for a single process.  Process 0
     * writes the database and has the result. */
    struct ms_par *par;
    /* Further traces of other tools that belong to the same run; NULL: none. */
    const char *const *more;
    size_t more_n;
    const char *rank_from; /* of traces: finds the rank in a path; NULL: the number behind "rank" */
    unsigned threads;      /* that read; fewer than 2: the caller's alone */
    size_t
        round_calls; /* of a single process: calls that are joined at a time; 0: half a million */
    struct ms_progress *bar; /* shows how much has been read; NULL: nothing does */
};

/* Reads a run directory and writes db.  Files that cannot be read become rows of the table
 * problems, and the rest is imported; only a directory without any readable segment fails, with
 * MS_E_NOTFOUND. */
enum ms_rc mstx__import_capture(const char *dir, const char *db, const struct mstx_import_how *how,
                                struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;
/* Tells whether the directory holds processes of a capture. */
bool mstx__is_capture(const char *dir);
/* Returns the number of capture files that an import of the directory reads. */
size_t mstx__count_capture_files(const char *dir, bool *is_capture);

#endif
