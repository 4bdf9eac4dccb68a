/* SPDX-License-Identifier: MIT
 *
 * Import, views and exports of a generated capture, in CPU time of one thread.
 * The limits beside them, measured in the same run: reading every record once, and
 * writing the same bytes with write().
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/foreign/to_chrome.h"
#include "mstx/foreign/to_csv.h"
#include "mstx/foreign/to_perfetto.h"
#include "probe/base/clock.h"
#include "probe/base/mem.h"
#include "tests/support/make_capture.h"

#include <fcntl.h>
#include <unistd.h>

enum { RUNS = 5 };
static const uint64_t RECORDS = 8000000;
static char run[64], db[80], seg[128], out[80];

static int by_value(const void *pa, const void *pb)
{
    const double a = *(const double *)pa, b = *(const double *)pb;
    return a < b ? -1 : a > b;
}

static void must(enum ms_rc rc, const struct ms_err *err)
{
    if (rc != MS_OK) {
        fprintf(stderr, "%s\n", err->msg);
        exit(1);
    }
}

/* Print the rate of work, of which `items` are done per run. */
static void measure(const char *name, double items, void (*work)(void))
{
    double cpu[RUNS], wall[RUNS];
    for (int i = 0; i < RUNS; i++) {
        int64_t w = ms_clock_ns(), c = ms_clock_cpu_ns();
        work();
        cpu[i] = (double)(ms_clock_cpu_ns() - c) / 1e9;
        wall[i] = (double)(ms_clock_ns() - w) / 1e9;
    }
    qsort(cpu, RUNS, sizeof *cpu, by_value);
    qsort(wall, RUNS, sizeof *wall, by_value);
    printf("%-28s %8.2f M/s  cpu min %7.1f median %7.1f ms  wall median %7.1f ms\n", name,
           items / cpu[0] / 1e6, cpu[0] * 1e3, cpu[RUNS / 2] * 1e3, wall[RUNS / 2] * 1e3);
}

static struct mstx_import_result imported;

static void do_import(void)
{
    struct ms_err err = {0};
    must(mstx_import(run, db, &imported, &err), &err);
}

static uint64_t sum;

static void do_read(void)
{
    struct ms_file f;
    struct ms_err err = {0};
    must(ms_file_map(&f, seg, (size_t)1 << 40, &err), &err);
    for (size_t i = 4096; i + 32 <= f.n; i += 32) {
        struct mstx_rec r;
        memcpy(&r, f.p + i, sizeof r);
        sum += r.ticks ^ r.id ^ r.name ^ r.arg;
    }
    ms_file_unmap(&f);
}

typedef enum ms_rc (*stream_fn)(struct mstx_tl *tl, struct ms_out *o, struct ms_err *err);

static void export_with(stream_fn fn)
{
    struct ms_err err = {0};
    struct mstx_tl *tl;
    must(mstx_tl_open(&tl, db, &err), &err);
    struct ms_out *o;
    must(ms_out_create(&o, out, &err), &err);
    ms_out_lazy(o);
    must(fn(tl, o, &err), &err);
    must(ms_out_commit(o, &err), &err);
    mstx_tl_close(tl);
}

static void do_perfetto(void)
{
    export_with(mstx_export_perfetto);
}

static void do_chrome(void)
{
    export_with(mstx_export_chrome);
}

static void do_csv(void)
{
    struct ms_err err = {0};
    struct mstx_tl *tl;
    must(mstx_tl_open(&tl, db, &err), &err);
    must(mstx_export_csv(tl, out, &err), &err);
    mstx_tl_close(tl);
}

/* As many bytes as the export before wrote. */
static void do_write(void)
{
    static char block[256 * 1024];
    struct stat st;
    if (stat(out, &st) != 0)
        exit(1);
    int fd = open(out, O_WRONLY | O_TRUNC);
    for (off_t n = 0; n < st.st_size; n += (off_t)sizeof block) {
        if (write(fd, block, sizeof block) < 0)
            exit(1);
    }
    close(fd);
}

static void measure_views(void)
{
    struct ms_err err = {0};
    struct mstx_tl *tl;
    int64_t start, end;
    must(mstx_tl_open(&tl, db, &err), &err);
    mstx_tl_span(tl, &start, &end);
    double worst = 0;
    size_t most = 0;
    for (int zoom = 0; zoom < 34; zoom++) {
        for (int i = 0; i < 8; i++) {
            mstx_events ev = {0};
            int64_t width = (end - start) >> zoom, t0 = start + (end - start) / 9 * i;
            int64_t c = ms_clock_cpu_ns();
            must(mstx_tl_view(tl, 0, t0, t0 + width, width / 2000, &ev, &err), &err);
            double ms = (double)(ms_clock_cpu_ns() - c) / 1e6;
            worst = ms > worst ? ms : worst;
            most = ev.n > most ? ev.n : most;
            ms_vec_free(&ev);
        }
    }
    printf("%-28s %8.2f ms at worst, %zu events at most, of 272 views 2000 pixels wide\n", "view",
           worst, most);
    mstx_tl_close(tl);
}

int main(void)
{
    struct maker m;
    const char *tmp = getenv("TMPDIR");
    snprintf(run, sizeof run, "%.40s/msprobe-bench-%d", tmp != NULL ? tmp : "/tmp", (int)getpid());
    snprintf(db, sizeof db, "%s/run.db", run);
    snprintf(out, sizeof out, "%s/out", run);
    maker_begin(&m, run, 0, 4242);
    maker_training(&m, 1, 4242, RECORDS);
    maker_end(&m);
    snprintf(seg, sizeof seg, "%.100s/r0001.0001.seg", m.dir);
    measure("read every record", (double)RECORDS, do_read);
    measure("import, records", (double)RECORDS, do_import);
    printf("%-28s %8.2f bytes an event\n", "run.db",
           (double)imported.bytes / (double)imported.events);
    measure_views();
    double events = (double)imported.events;
    measure("export perfetto, events", events, do_perfetto);
    measure("  its bytes by write()", events, do_write);
    measure("export chrome, events", events, do_chrome);
    measure("  its bytes by write()", events, do_write);
    measure("export csv, events", events, do_csv);
    printf("peak memory %zu MiB (checksum %llx)\n", ms_mem_peak() >> 20, (unsigned long long)sum);
    char cmd[160];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", run);
    return system(cmd) != 0;
}
