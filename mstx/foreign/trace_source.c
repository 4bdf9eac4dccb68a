/* SPDX-License-Identifier: MIT
 *
 * trace_source: see the header.
 */
#include "mstx/foreign/trace_source.h"

#include "mstx/foreign/zip_list.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* JSON of traces is compressed by a factor of 10 to 30; a greater factor than GROWTH_MOST means a
 * decompression bomb. */
enum {
    GROWTH_MOST = 200,
    GROWTH_FREE = 1 << 26,
    BLOCK = 1 << 16,
    GZIP_WINDOW = 15 + 16,
    RAW_WINDOW = -15
};

struct mstx_trace_source {
    struct mstx_trace_source *below; /* gives a file in an archive; NULL: fd does */
    int fd;
    uint64_t size;                            /* bytes of the file */
    uint64_t left;                            /* bytes of the file that have not been read */
    uint64_t most;                            /* bytes that the text may have */
    uint64_t given;                           /* bytes of the text so far */
    bool is_packed, is_raw, is_ended, is_cut; /* raw: within an archive, without a head */
    z_stream z;
    unsigned char block[BLOCK]; /* bytes that were read; what z has not used */
};

/* Reads at most `room` bytes of the file; 0 at its end. */
static enum ms_rc read_file(struct mstx_trace_source *s, void *to, size_t room, size_t *n,
                            struct ms_err *err)
{
    if (s->below != NULL)
        return mstx__trace_source_read(s->below, to, room, n, err);
    const size_t want = room < s->left ? room : (size_t)s->left;
    ssize_t got;
    do {
        got = want != 0 ? read(s->fd, to, want) : 0;
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return ms_fail_sys(err, "cannot read");
    s->left = got != 0 ? s->left - (uint64_t)got : 0;
    *n = (size_t)got;
    return MS_OK;
}

static enum ms_rc fill_block(struct mstx_trace_source *s, struct ms_err *err)
{
    size_t n;
    MS_TRY(read_file(s, s->block, sizeof s->block, &n, err));
    s->z.next_in = s->block;
    s->z.avail_in = (unsigned)n;
    return MS_OK;
}

/* Goes on behind the end of a stream: a file may hold several, one after the other. */
static enum ms_rc next_stream(struct mstx_trace_source *s, struct ms_err *err)
{
    if (s->z.avail_in == 0 && !s->is_raw)
        MS_TRY(fill_block(s, err));
    s->is_ended = s->is_raw || s->z.avail_in == 0 || s->z.next_in[0] != 0x1f;
    if (!s->is_ended)
        inflateReset(&s->z);
    return MS_OK;
}

/* Unpacks at most `room` bytes, until there are some, or the end or damage is met. */
static enum ms_rc unpack(struct mstx_trace_source *s, char *to, size_t room, size_t *n,
                         struct ms_err *err)
{
    s->z.next_out = (unsigned char *)to;
    s->z.avail_out = (unsigned)room;
    while (s->z.avail_out == room && !s->is_ended) {
        if (s->z.avail_in == 0)
            MS_TRY(fill_block(s, err));
        const bool is_starved = s->z.avail_in == 0;
        const int rc = inflate(&s->z, Z_NO_FLUSH);
        if (rc == Z_MEM_ERROR)
            return ms_no_memory(err);
        if (rc == Z_STREAM_END)
            MS_TRY(next_stream(s, err));
        else if (rc != Z_OK || (is_starved && s->z.avail_out == room))
            s->is_ended = s->is_cut = true;
    }
    *n = room - s->z.avail_out;
    return MS_OK;
}

/* Gives what was read to look at it, then the rest of the file. */
static enum ms_rc read_plain(struct mstx_trace_source *s, char *to, size_t room, size_t *n,
                             struct ms_err *err)
{
    if (s->z.avail_in == 0)
        return read_file(s, to, room, n, err);
    *n = room < s->z.avail_in ? room : s->z.avail_in;
    memcpy(to, s->z.next_in, *n);
    s->z.next_in += *n;
    s->z.avail_in -= (unsigned)*n;
    return MS_OK;
}

enum ms_rc mstx__trace_source_read(struct mstx_trace_source *s, char *to, size_t room, size_t *n,
                                   struct ms_err *err)
{
    ms_assert(room != 0 && room <= UINT32_MAX);
    if (!s->is_packed)
        return read_plain(s, to, room, n, err);
    MS_TRY(unpack(s, to, room, n, err));
    s->given += *n;
    if (s->given > s->most)
        return ms_fail(err, MS_E_LIMIT, "the compressed file unpacks to more than %llu bytes",
                       (unsigned long long)s->most);
    return MS_OK;
}

uint64_t mstx__trace_source_taken(const struct mstx_trace_source *s)
{
    return s->below != NULL ? mstx__trace_source_taken(s->below) : s->size - s->left;
}

bool mstx__trace_source_is_cut(const struct mstx_trace_source *s)
{
    return s->is_cut || (s->below != NULL && s->below->is_cut);
}

/* Begins to unpack, when the file is compressed. */
static enum ms_rc look_at_start(struct mstx_trace_source *s, struct ms_err *err)
{
    MS_TRY(fill_block(s, err));
    const unsigned char *p = s->z.next_in;
    if (!s->is_raw && (s->z.avail_in < 2 || p[0] != 0x1f || p[1] != 0x8b))
        return MS_OK;
    s->is_packed = true;
    return inflateInit2(&s->z, s->is_raw ? RAW_WINDOW : GZIP_WINDOW) == Z_OK ? MS_OK
                                                                             : ms_no_memory(err);
}

static struct mstx_trace_source *new_source(struct ms_err *err)
{
    struct mstx_trace_source *s = ms_calloc(1, sizeof *s);
    if (s != NULL)
        s->fd = -1;
    else
        ms_no_memory(err);
    return s;
}

/* Opens n bytes of a file, from a place on; its size at most. */
static enum ms_rc open_part(struct mstx_trace_source *s, const char *path, uint64_t at, uint64_t n,
                            struct ms_err *err)
{
    struct stat st;
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0 || fstat(s->fd, &st) != 0 || lseek(s->fd, (off_t)at, SEEK_SET) < 0)
        return ms_fail_sys(err, "%s", path);
    s->left = st.st_size > 0 && (uint64_t)st.st_size > at ? (uint64_t)st.st_size - at : 0;
    s->size = s->left = s->left < n ? s->left : n;
    s->most = GROWTH_FREE + s->left * GROWTH_MOST;
    return MS_OK;
}

/* Opens a file within an archive, which may be compressed itself. */
static enum ms_rc open_member(struct mstx_trace_source *s, const char *path, struct ms_err *err)
{
    struct mstx_zip_member m;
    char *archive;
    s->below = new_source(err);
    if (s->below == NULL)
        return MS_E_NOMEM;
    MS_TRY(mstx__zip_find(path, &archive, &m, err));
    enum ms_rc rc = open_part(s->below, archive, m.at, m.n, err);
    ms_free(archive);
    s->below->is_raw = m.is_packed;
    s->most = s->below->most * 2;
    if (rc == MS_OK && m.is_packed)
        rc = look_at_start(s->below, err);
    return rc;
}

static bool is_in_archive(const char *path)
{
    return access(path, F_OK) != 0 && errno == ENOTDIR;
}

enum ms_rc mstx__trace_source_open(struct mstx_trace_source **out, const char *path,
                                   struct ms_err *err)
{
    struct mstx_trace_source *s = new_source(err);
    *out = NULL;
    if (s == NULL)
        return MS_E_NOMEM;
    enum ms_rc rc =
        is_in_archive(path) ? open_member(s, path, err) : open_part(s, path, 0, UINT64_MAX, err);
    if (rc == MS_OK)
        rc = look_at_start(s, err);
    if (rc == MS_OK)
        *out = s;
    else
        mstx__trace_source_close(s);
    return rc;
}

void mstx__trace_source_close(struct mstx_trace_source *s)
{
    if (s == NULL)
        return;
    mstx__trace_source_close(s->below);
    if (s->is_packed)
        inflateEnd(&s->z);
    if (s->fd >= 0)
        close(s->fd);
    ms_free(s);
}
