/* SPDX-License-Identifier: MIT
 *
 * importing: what a recorder left is imported and reported; a torn page of it is told or does no harm.
 */
#include "tests/mstx/simulate/recording.h"

#include "mstx/conclude/run_ready.h"
#include "mstx/conclude/run_report.h"
#include "tests/mstx/simulate/seam.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
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
        mstx_report_text(tl, &r, "the run", 10, &text);
        if (text.bad != MS_OK || text.n == 0)
            snprintf(wrong, sizeof wrong, "a report is empty");
    }
    mstx_report_free(&r);
    mstx_tl_close(tl);
    ms_buf_free(&text);
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
    return wrong[0] != '\0' ? wrong : NULL;
}
