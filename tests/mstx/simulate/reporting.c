/* SPDX-License-Identifier: MIT
 *
 * reporting: what is written of a run.db: each format of an export, and tables of a comparison, while
 * the disk fills or fails, calls are cut short and the writer is killed.  The file is the one of before
 * or a whole new one, and a failure is told.  A run.db with a torn page is told or does no harm.
 */
#include "tests/mstx/simulate/recording.h"

#include "compare/write/sheet.h"
#include "mstx/conclude/run_report.h"
#include "mstx/foreign/export_run.h"
#include "tests/mstx/simulate/seam.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS_MAX = 400 };
static char wrong[1200];

/* ---- files ------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *p, size_t n)
{
    FILE *f = fopen(path, "w");
    if (f == NULL || fwrite(p, 1, n, f) != n)
        snprintf(wrong, sizeof wrong, "the simulator cannot write %s", path);
    if (f != NULL)
        fclose(f);
}

/* ---- writers ------------------------------------------------------------------------------ */

/* What is written: a run in one of the formats that are one file, or rows. */
struct task {
    const char *db; /* NULL: rows */
    enum mstx_export_format format;
    uint64_t rows; /* their seed */
};

static enum ms_rc write_run(const struct task *t, const char *path, struct ms_err *err)
{
    struct mstx_tl *tl = NULL;
    enum ms_rc rc = mstx_tl_open(&tl, t->db, err);
    if (rc == MS_OK)
        rc = mstx_export_run(tl, t->format, path, err);
    mstx_tl_close(tl);
    return rc;
}

static enum ms_rc write_rows(const struct task *t, const char *path, struct ms_err *err)
{
    static const char *const names[] = {"name", "value", NULL};
    struct cmp__sheet s;
    uint64_t r = t->rows;
    char text[40];
    MS_TRY(cmp__sheet_open(&s, path, false, err));
    cmp__sheet_names(&s, names);
    cmp__sheet_end_row(&s);
    for (uint64_t n = r % ROWS_MAX; n-- > 0; r = r * 6364136223846793005u + 1) {
        snprintf(text, sizeof text, "=cell \"%llx\",\n", (unsigned long long)r);
        cmp__sheet_text(&s, ms_str_of(text));
        cmp__sheet_number(&s, (double)r);
        cmp__sheet_end_row(&s);
    }
    return cmp__sheet_close(&s, MS_OK);
}

static enum ms_rc write_task(const struct task *t, const char *path, struct ms_err *err)
{
    return t->db != NULL ? write_run(t, path, err) : write_rows(t, path, err);
}

/* ---- under faults ---------------------------------------------------------------------------- */

static const char before[] = "what was there before";

static void judge(const char *path, enum ms_rc rc, bool killed, const struct ms_err *err,
                  const struct sim_file *whole)
{
    static struct sim_file now;
    const bool read = sim_read_file(path, &now);
    const bool is_new = read && sim_is_same(&now, whole);
    const bool is_old =
        read && now.n == sizeof before - 1 && memcmp(now.p, before, sizeof before - 1) == 0;
    const size_t left = sim_remove_left(path);
    if (!is_new && !is_old)
        snprintf(wrong, sizeof wrong, "half of %s is there: %s", path, err->msg);
    else if (!killed && rc == MS_OK && !is_new)
        snprintf(wrong, sizeof wrong, "%s is said to be written and is not", path);
    else if (!killed && rc != MS_OK && err->msg[0] == '\0')
        snprintf(wrong, sizeof wrong, "%s is not written and nothing says why", path);
    else if (!killed && left != 0)
        snprintf(wrong, sizeof wrong, "a temporary file is left beside %s: %s", path, err->msg);
}

static void under_faults(const struct task *t, const char *path, const struct sim_file *whole)
{
    static struct ms_err err;
    volatile enum ms_rc rc = MS_OK;
    volatile bool killed = true;
    err = (struct ms_err){0};
    write_file(path, before, sizeof before - 1);
    sim_choose_faults();
    if (sim_chance(256)) /* what is written is read from a disk, too */
        sim.faults.read = 1 + sim_below(128);
    sim.is_single = sim.on = true;
    if (setjmp(sim.death) == 0) {
        rc = write_task(t, path, &err);
        killed = false;
    }
    sim_end_faults();
    judge(path, rc, killed, &err, whole);
}

static void play_task(const struct task *t, const char *path)
{
    static struct sim_file whole;
    struct ms_err err = {0};
    if (write_task(t, path, &err) != MS_OK)
        snprintf(wrong, sizeof wrong, "%s is not written: %s", path, err.msg);
    else if (sim_read_file(path, &whole))
        under_faults(t, path, &whole);
}

const char *sim_reporting(const char *run, const char *db)
{
    static const enum mstx_export_format formats[] = {MSTX_EXPORT_CHROME, MSTX_EXPORT_TRACE_VIEW,
                                                      MSTX_EXPORT_PERFETTO, MSTX_EXPORT_CSV};
    char path[400];
    wrong[0] = '\0';
    snprintf(path, sizeof path, "%s/written", run);
    for (size_t i = 0; i < sizeof formats / sizeof *formats && wrong[0] == '\0'; i++)
        play_task(&(struct task){.db = db, .format = formats[i]}, path);
    return wrong[0] != '\0' ? wrong : NULL;
}

const char *sim_table(uint64_t seed, const char *dir)
{
    char path[400];
    wrong[0] = '\0';
    sim_reset(seed);
    mkdir(dir, 0755);
    snprintf(path, sizeof path, "%s/table.csv", dir);
    play_task(&(struct task){.rows = sim_random()}, path);
    sim_remove(dir);
    return wrong[0] != '\0' ? wrong : NULL;
}

/* ---- torn pages ------------------------------------------------------------------------------ */

/* A page is zeros, that of elsewhere, or what a worn disk made of it. */
static void tear(struct sim_file *c)
{
    enum { PAGE = 4096 };
    const uint32_t pages = (uint32_t)(c->n / PAGE);
    char *page = c->p + (size_t)PAGE * sim_below(pages);
    if (sim_chance(300))
        memset(page, 0, PAGE);
    else if (sim_chance(400))
        memmove(page, c->p + (size_t)PAGE * sim_below(pages), PAGE);
    else
        for (uint32_t i = 1 + sim_below(8); i > 0; i--)
            page[sim_below(PAGE)] ^= (char)(1 + sim_below(255));
}

/* Reads all that a report reads; it succeeds or says why not. */
static void report_torn(const char *db)
{
    struct ms_err err = {0};
    struct ms_buf text = {.max = 1 << 22};
    struct mstx_report r = {0};
    struct mstx_tl *tl = NULL;
    enum ms_rc rc = mstx_tl_open(&tl, db, &err);
    if (rc == MS_OK)
        rc = mstx_report_read(tl, true, &r, &err);
    if (rc == MS_OK)
        mstx_report_text(tl, &r, "the run", 0, &text);
    if (rc != MS_OK && err.msg[0] == '\0')
        snprintf(wrong, sizeof wrong, "a torn run.db is not read and nothing says why");
    mstx_report_free(&r);
    mstx_tl_close(tl);
    ms_buf_free(&text);
}

const char *sim_torn_db(const char *run, const char *db)
{
    static struct sim_file whole, torn;
    char path[400];
    wrong[0] = '\0';
    snprintf(path, sizeof path, "%s/torn.db", run);
    if (!sim_read_file(db, &whole))
        return NULL;
    for (int i = 0; i < 4 && wrong[0] == '\0'; i++) {
        torn.n = whole.n;
        memcpy(torn.p, whole.p, whole.n);
        tear(&torn);
        write_file(path, torn.p, torn.n);
        report_torn(path);
    }
    return wrong[0] != '\0' ? wrong : NULL;
}
