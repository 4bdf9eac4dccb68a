/* SPDX-License-Identifier: MIT
 *
 * Any bytes as the files of a capture: the import ends, what it writes can be
 * read, and every event lies within the times of its track.
 *
 * An input is cut in three: strings.seg, ring 1 and ring 2.  Its first four bytes
 * say where.  So that most inputs get past the header, a bit of the first byte puts a
 * good one in front of each piece.
 */
#include "mstx/conclude/run_ready.h"
#include "probe/base/mem.h"
#include "probe/base/vec.h"
#include "tests/support/make_capture.h"

#include <assert.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char run[64], db[80];

static void make_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(run, sizeof run, "%.30s/msprobe-fuzz-%d", tmp != NULL ? tmp : "/tmp", (int)getpid());
    snprintf(db, sizeof db, "%s/run.db", run);
    mkdir(run, 0777);
}

static void remove_folder(void)
{
    char path[96];
    const char *const names[] = {MSTX_STRINGS, "r0001.0001.seg", "r0002.0001.seg", "run.db"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", run, names[i]);
        unlink(path);
    }
    rmdir(run);
}

static void write_piece(const char *name, uint32_t ring, bool good_head, const uint8_t *p, size_t n)
{
    char path[96];
    struct maker m = {.pid = 77};
    struct mstx_seg h;
    snprintf(path, sizeof path, "%s/%s", run, name);
    FILE *f = fopen(path, "wb");
    assert(f != NULL);
    if (good_head) {
        maker_head(&h, &m, ring == 0 ? MSTX_KIND_STRINGS : MSTX_KIND_RING);
        h.ring = ring;
        h.tid = 77 + ring;
        h.capacity = 1 << 20;
        h.head = ring == 0 ? n : n / MSTX_REC_SIZE;
        fwrite(&h, sizeof h, 1, f);
    }
    fwrite(p, 1, n, f);
    fclose(f);
}

static void check_database(void)
{
    struct mstx_tl *tl;
    struct ms_err err = {0};
    enum ms_rc rc = mstx_tl_open(&tl, db, &err);
    assert(rc == MS_OK);
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        mstx_events all = {0}, joined = {0};
        uint64_t count = 0;
        rc = mstx_tl_view(tl, i, INT64_MIN, INT64_MAX, 0, &all, &err);
        assert(rc == MS_OK && all.n == t->events);
        for (size_t k = 0; k < all.n; k++) {
            assert(all.p[k].start_ns >= t->start_ns);
            assert(all.p[k].start_ns + all.p[k].dur_ns <= t->end_ns);
            assert(k == 0 || all.p[k - 1].start_ns <= all.p[k].start_ns);
        }
        rc = mstx_tl_view(tl, i, INT64_MIN, INT64_MAX, INT64_MAX, &joined, &err);
        assert(rc == MS_OK);
        for (size_t k = 0; k < joined.n; k++)
            count += joined.p[k].count;
        assert(count == t->events);
        ms_vec_free(&all);
        ms_vec_free(&joined);
    }
    mstx_tl_close(tl);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4)
        return 0;
    const uint8_t *p = data + 4;
    size_t n = size - 4;
    size_t a = n * data[1] / 256, b = a + (n - a) * data[2] / 256;
    bool good = (data[0] & 1) != 0;
    make_folder();
    write_piece(MSTX_STRINGS, 0, good, p, a);
    write_piece("r0001.0001.seg", 1, good, p + a, b - a);
    write_piece("r0002.0001.seg", 2, good, p + b, n - b);
    struct mstx_import_result r;
    struct ms_err err = {0};
    if (mstx_import(run, db, &r, &err) == MS_OK)
        check_database();
    else
        assert(err.rc != MS_OK && err.msg[0] != '\0');
    remove_folder();
    return 0;
}
