/* SPDX-License-Identifier: MIT
 *
 * importing: what a recorder left is imported and reported; a torn page of it is told or does no harm.
 * Then it is imported again over the first run.db, while the disk fills or fails, calls are cut
 * short, and the import is killed: run.db is the old one or a whole new one, and a failure is told.
 */
#include "tests/mstx/simulate/recording.h"

#include "mstx/conclude/run_ready.h"
#include "mstx/conclude/run_report.h"
#include "tests/mstx/simulate/seam.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096 };
static char wrong[800];

/* The page of a file that a crash of the machine kept from the disk reads as zeros. */
static void tear_page(const char *run)
{
    static const char zeros[PAGE];
    char pattern[400];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s/*/*/*.seg", run);
    if (glob(pattern, 0, NULL, &found) == 0) {
        const int fd =
            open(found.gl_pathv[sim_below((uint32_t)found.gl_pathc)], O_RDWR | O_CLOEXEC);
        const off_t pages = fd >= 0 ? lseek(fd, 0, SEEK_END) / PAGE : 0;
        if (pages > 0 && pwrite(fd, zeros, PAGE, (off_t)sim_below((uint32_t)pages) * PAGE) != PAGE)
            snprintf(wrong, sizeof wrong, "a page cannot be torn");
        if (fd >= 0)
            close(fd);
    }
    globfree(&found);
}

static void report(const char *db)
{
    struct ms_err err = {0};
    struct ms_buf text = {.max = 1 << 20};
    struct mstx_report r = {0};
    struct mstx_tl *tl = NULL;
    if (mstx_tl_open(&tl, db, &err) != MS_OK || mstx_report_read(tl, true, &r, &err) != MS_OK)
        snprintf(wrong, sizeof wrong, "no report of a run that was imported: %s", err.msg);
    else {
        mstx_report_text(tl, &r, "the run", 0, &text);
        if (text.bad != MS_OK || text.n == 0)
            snprintf(wrong, sizeof wrong, "a report is empty");
    }
    mstx_report_free(&r);
    mstx_tl_close(tl);
    ms_buf_free(&text);
}

/* ---- again, under faults ----------------------------------------------------------------- */

enum { AGAIN = 3 };

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void sim_remove(const char *folder)
{
    enum { DESCRIPTORS = 16 };
    nftw(folder, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

bool sim_read_file(const char *path, struct sim_file *c)
{
    FILE *f = fopen(path, "r");
    c->n = f != NULL ? fread(c->p, 1, sizeof c->p, f) : 0;
    if (f != NULL)
        fclose(f);
    return c->n != 0 && c->n < sizeof c->p;
}

bool sim_is_same(const struct sim_file *a, const struct sim_file *b)
{
    return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

void sim_choose_faults(void)
{
    const uint32_t much = 1 + sim_below(sim_chance(512) ? 8 : 80);
    sim.faults = (struct sim_faults){.open = sim_chance(300) ? much : 0,
                                     .space = sim_chance(300) ? much : 0,
                                     .write = sim_chance(400) ? much : 0,
                                     .name = sim_chance(300) ? 4 * much : 0,
                                     .sync = sim_chance(300) ? 4 * much : 0,
                                     .interrupt = sim_chance(300) ? sim_below(200) : 0,
                                     .shorter = sim_chance(300) ? sim_below(300) : 0,
                                     .kill = sim_chance(400) ? 1 + sim_below(20) : 0};
    sim.free_bytes = sim_chance(200) ? (int64_t)sim_below(256 << 10) : INT64_MAX;
}

void sim_end_faults(void)
{
    sim.is_single = sim.on = false;
    sim.faults = (struct sim_faults){0};
    sim.free_bytes = INT64_MAX;
}

size_t sim_remove_left(const char *path)
{
    char pattern[420];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s.*.tmp*", path);
    if (glob(pattern, 0, NULL, &found) != 0)
        found.gl_pathc = 0;
    const size_t n = found.gl_pathc;
    for (size_t i = 0; i < n; i++)
        unlink(found.gl_pathv[i]);
    globfree(&found);
    return n;
}

static void judge_import(const char *db, enum ms_rc rc, bool killed, uint64_t problems,
                         const struct ms_err *err, const struct sim_file *old)
{
    static struct sim_file now;
    const bool same = sim_read_file(db, &now) && sim_is_same(&now, old);
    const size_t left = sim_remove_left(db); /* a killed process may leave some */
    if (!killed && rc != MS_OK && err->msg[0] == '\0')
        snprintf(wrong, sizeof wrong, "an import failed and does not say why");
    else if (!killed && rc != MS_OK && !same)
        snprintf(wrong, sizeof wrong, "an import failed and run.db is another: %s", err->msg);
    else if (!killed && rc == MS_OK && !same && problems == 0)
        snprintf(wrong, sizeof wrong, "an import succeeded and run.db is another");
    else if (!killed && left != 0)
        snprintf(wrong, sizeof wrong, "an import left its temporary file: %s", err->msg);
    else if (!same)
        report(db);
}

/* The import of the same files makes the same bytes, so whatever is there must be those; fewer only
 * where files could not be opened and the result says so. */
static void import_under_faults(const char *run, const char *db, const struct sim_file *old)
{
    static struct mstx_import_result result;
    static struct ms_err err;
    volatile enum ms_rc rc = MS_OK;
    volatile bool killed = true;
    result = (struct mstx_import_result){0};
    err = (struct ms_err){0};
    sim_choose_faults();
    sim.is_single = sim.on = true;
    if (setjmp(sim.death) == 0) {
        rc = mstx_import(run, db, &result, &err);
        killed = false;
    }
    sim_end_faults();
    judge_import(db, rc, killed, result.problems, &err, old);
}

static void import_again(const char *run, const char *db)
{
    static struct sim_file old;
    if (!sim_read_file(db, &old))
        return;
    for (int i = 0; i < AGAIN && wrong[0] == '\0'; i++) {
        import_under_faults(run, db, &old);
        struct mstx_import_result result = {0};
        struct ms_err err = {0};
        if (wrong[0] == '\0' && mstx_import(run, db, &result, &err) != MS_OK)
            snprintf(wrong, sizeof wrong, "no import after one that met faults: %s", err.msg);
    }
}

/* One of what follows an import, as each takes as long. */
static const char *after_import(const char *run, const char *db)
{
    static bool is_wrapped;
    if (!is_wrapped)
        sim_wrap_sqlite();
    is_wrapped = true;
    sim_helper_forget();
    switch (sim_below(4)) {
    case 0:
        return sim_reporting(run, db);
    case 1:
        return sim_torn_db(run, db);
    case 2:
        return sim_asking(db);
    default:
        import_again(run, db);
        return wrong[0] != '\0' ? wrong : NULL;
    }
}

const char *sim_importing(const char *run, uint64_t marks)
{
    struct mstx_import_result result = {0};
    struct ms_err err = {0};
    char db[400];
    const bool torn = sim_chance(300);
    wrong[0] = '\0';
    if (torn)
        tear_page(run);
    snprintf(db, sizeof db, "%s/run.db", run);
    const enum ms_rc rc = mstx_import(run, db, &result, &err);
    if (rc != MS_OK && err.msg[0] == '\0')
        snprintf(wrong, sizeof wrong, "an import failed and does not say why");
    else if (rc != MS_OK && marks != 0 && !torn)
        snprintf(wrong, sizeof wrong, "a run of %llu marks is not imported: %s",
                 (unsigned long long)marks, err.msg);
    else if (rc == MS_OK && !torn && result.events < marks)
        snprintf(wrong, sizeof wrong, "%llu marks are recorded, %llu events imported",
                 (unsigned long long)marks, (unsigned long long)result.events);
    else if (rc == MS_OK)
        report(db);
    if (rc == MS_OK && wrong[0] == '\0')
        return after_import(run, db);
    return wrong[0] != '\0' ? wrong : NULL;
}
