/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a segment file that is moved from its stage or copied into a snapshot: what
 * arrives is a whole segment that holds what was there, or nothing does and the file stays.
 *
 * The first byte says what is copied and whether a good header, with head, part, capacity and
 * state from the next 32 bytes, comes before the rest.
 */
#include "mstx/format/stage.h"
#include "tests/support/make_capture.h"

#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STRINGS = 4, GOOD_HEAD = 8, FIELDS = 32, FILE_MAX = 1 << 20 };
static char from[64], to[64];

static void make_folders(void)
{
    const char *tmp = getenv("TMPDIR");
    tmp = tmp != NULL ? tmp : "/tmp";
    snprintf(from, sizeof from, "%.30s/msprobe-stage-%d", tmp, (int)getpid());
    snprintf(to, sizeof to, "%.30s/msprobe-target-%d", tmp, (int)getpid());
    mkdir(from, 0777);
    mkdir(to, 0777);
}

static void remove_folders(const char *name)
{
    char path[128];
    const char *const folders[] = {from, to};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        unlink(path);
        int rc = rmdir(folders[i]);
        assert(rc == 0); /* no temporary name is left */
    }
}

static void write_source(const char *name, uint8_t how, const uint8_t *p, size_t n)
{
    char path[128];
    struct maker m = {.pid = 77};
    struct mstx_seg h;
    snprintf(path, sizeof path, "%s/%s", from, name);
    FILE *f = fopen(path, "wb");
    assert(f != NULL);
    if ((how & GOOD_HEAD) != 0 && n >= FIELDS) {
        maker_head(&h, &m, (how & STRINGS) != 0 ? MSTX_KIND_STRINGS : MSTX_KIND_RING);
        memcpy(&h.head, p, 8);
        memcpy(&h.part, p + 8, 8);
        memcpy(&h.capacity, p + 16, 8);
        memcpy(&h.state, p + 24, 4);
        fwrite(&h, sizeof h, 1, f);
        p += FIELDS;
        n -= FIELDS;
    }
    fwrite(p, 1, n, f);
    fclose(f);
}

static size_t slurp(const char *folder, const char *name, uint8_t *bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    size_t n = f != NULL ? fread(bytes, 1, FILE_MAX, f) : 0;
    if (f != NULL)
        fclose(f);
    return n;
}

/* Its header is sound, it is as long as the header says, and the records are those of before. */
static void check_copy(const uint8_t *copy, size_t n, const uint8_t *source, size_t ns)
{
    struct mstx_seg h;
    assert(n >= sizeof h && n <= ns);
    memcpy(&h, copy, sizeof h);
    assert(mstx_seg_check(copy, n, h.kind) == MSTX_SEG_GOOD);
    assert(h.part != 0 && h.head == h.capacity);
    assert(n == sizeof h + h.head * h.record_size);
    assert(memcmp(copy + sizeof h, source + sizeof h, n - sizeof h) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t source[FILE_MAX], copy[FILE_MAX];
    if (size < 1 || size > FILE_MAX / 2)
        return 0;
    const char *name = (data[0] & STRINGS) != 0 ? MSTX_STRINGS : "r0001.0001.seg";
    const enum mstx_stage_what what = data[0] % 4 == 3 ? MSTX_STAGE_ALL : data[0] % 4;
    make_folders();
    write_source(name, data[0], data + 1, size - 1);
    size_t before = slurp(from, name, source);
    int dir = open(from, O_RDONLY | O_DIRECTORY);
    assert(dir >= 0);
    int rc = mstx_stage_copy(dir, to, what);
    close(dir);
    size_t arrived = slurp(to, name, copy);
    if (arrived != 0)
        check_copy(copy, arrived, source, before);
    if ((rc != 0 && arrived == 0) || what == MSTX_STAGE_SNAPSHOT) /* nothing is lost */
        assert(slurp(from, name, copy) == before);
    remove_folders(name);
    return 0;
}
