/* SPDX-License-Identifier: MIT
 *
 * writing: schedules of the writers of files: see recording.h.
 */
#include "tests/mstx/simulate/recording.h"

#include "probe/base/io.h"
#include "tests/mstx/simulate/seam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OLD = 1, BYTES_MAX = 20000 };

static struct {
    char path[300], wrong[600];
    size_t wanted; /* bytes of the new file */
    bool had, published;
} w;

/* What byte `at` of the file is: the old file differs from the new one everywhere. */
static char byte_of(size_t at, bool old)
{
    return (char)((at * 7 + (old ? 1 : 0)) % 251);
}

static void fill(char *to, size_t from, size_t n, bool old)
{
    for (size_t i = 0; i < n; i++)
        to[i] = byte_of(from + i, old);
}

static void write_old(void)
{
    char bytes[100];
    fill(bytes, 0, sizeof bytes, true);
    FILE *f = fopen(w.path, "w");
    if (f != NULL) {
        fwrite(bytes, 1, sizeof bytes, f);
        fclose(f);
    }
}

static enum ms_rc write_new(struct ms_err *err)
{
    static char bytes[BYTES_MAX];
    struct ms_out *o;
    MS_TRY(ms_out_create(&o, w.path, err));
    for (size_t at = 0; at < w.wanted;) {
        size_t n = 1 + sim_below(BYTES_MAX / 4);
        n = n < w.wanted - at ? n : w.wanted - at;
        fill(bytes, at, n, false);
        ms_out_write(o, bytes, n);
        at += n;
        if (sim_chance(100) && ms_out_flush(o, err) != MS_OK) {
            ms_out_abort(o);
            return MS_E_IO;
        }
    }
    if (sim_chance(100)) {
        ms_out_abort(o);
        return ms_fail(err, MS_E_ARG, "given up");
    }
    return ms_out_commit(o, err);
}

/* Is the file whole, and the one it says? */
static bool holds(bool old)
{
    static char bytes[BYTES_MAX + 1];
    FILE *f = fopen(w.path, "r");
    if (f == NULL)
        return old && !w.had;
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    bool same = n == (old ? w.had ? 100 : SIZE_MAX : w.wanted);
    for (size_t i = 0; same && i < n; i++)
        same = bytes[i] == byte_of(i, old);
    return same;
}

static void verify(enum ms_rc rc, const struct ms_err *err, bool killed)
{
    const char *what = NULL;
    if (killed)
        what = holds(true) || holds(false) ? NULL : "a killed writer left half a file";
    else if (rc == MS_OK)
        what = holds(false) ? NULL : "a file was published and is not whole";
    else if (!holds(true) && !holds(false))
        what = "a writer failed and left half a file";
    else if (err->msg[0] == '\0')
        what = "a writer failed and does not say why";
    if (what != NULL)
        snprintf(w.wrong, sizeof w.wrong, "%s: %s", what, err->msg);
}

const char *sim_writing(uint64_t seed, const char *dir)
{
    struct ms_err err = {0};
    volatile enum ms_rc rc = MS_OK;
    volatile bool killed = true;
    sim_reset(seed);
    w.wrong[0] = '\0';
    w.wanted = sim_below(BYTES_MAX);
    w.had = sim_chance(512);
    mkdir(dir, 0755);
    snprintf(w.path, sizeof w.path, "%s/file", dir);
    if (w.had)
        write_old();
    const uint32_t much = sim_chance(300) ? 0 : sim_below(200);
    sim.faults = (struct sim_faults){.open = much / 4,
                                     .write = much / 4,
                                     .name = much,
                                     .sync = much,
                                     .interrupt = sim_below(200),
                                     .shorter = sim_below(400),
                                     .kill = sim_chance(300) ? sim_below(200) : 0};
    sim.free_bytes = sim_chance(200) ? (int64_t)sim_below(BYTES_MAX) : INT64_MAX;
    sim.on = true;
    if (setjmp(sim.death) == 0) {
        rc = write_new(&err);
        killed = false;
    }
    sim.on = false;
    verify(rc, &err, killed);
    sim_remove(dir);
    return w.wrong[0] != '\0' ? w.wrong : NULL;
}
