/* SPDX-License-Identifier: MIT
 *
 * trace_text: see the header.
 */
#define ZLIB_CONST /* zlib only reads its input */
#include "mstx/foreign/trace_text.h"

#include "probe/base/mem.h"
#include "probe/base/vec.h"

#include <string.h>
#include <zlib.h>

/* JSON of traces is compressed by a factor of 10 to 30; a greater factor than GROWTH_MOST means a
 * decompression bomb. */
enum { GROWTH_MOST = 200, GROWTH_FREE = 1 << 26, BLOCK = 1 << 20, GZIP_WINDOW = 15 + 16 };

static bool is_gzip(const struct ms_file *f)
{
    return f->n > 2 && memcmp(f->p, "\x1f\x8b", 2) == 0;
}

/* Unpacks until the end of the stream, the end of the input, or damage. */
static enum ms_rc unpack_stream(struct mstx_trace_text *t, z_stream *z, struct ms_err *err)
{
    const size_t most = (size_t)GROWTH_FREE + t->file.n * GROWTH_MOST;
    size_t room = 0;
    for (;;) {
        if (t->n == room && room >= most)
            return ms_fail(err, MS_E_LIMIT, "the compressed file unpacks to more than %zu bytes",
                           most);
        if (t->n == room && !ms_vec_grow(&t->unpacked, &room, room + BLOCK, 1))
            return ms_no_memory(err);
        const size_t left = room - t->n < BLOCK ? room - t->n : BLOCK;
        z->next_out = (unsigned char *)t->unpacked + t->n;
        z->avail_out = (unsigned)left;
        const int rc = inflate(z, Z_NO_FLUSH);
        t->n += left - z->avail_out;
        if (rc != Z_OK)
            return MS_OK;
    }
}

static enum ms_rc unpack(struct mstx_trace_text *t, struct ms_err *err)
{
    z_stream z = {0};
    if (t->file.n > UINT32_MAX)
        return ms_fail(err, MS_E_LIMIT,
                       "the compressed file is larger than 4 GiB; unpack it first");
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return ms_no_memory(err);
    z.next_in = (const unsigned char *)t->file.p;
    z.avail_in = (unsigned)t->file.n;
    const enum ms_rc rc = unpack_stream(t, &z, err);
    inflateEnd(&z);
    t->p = t->unpacked;
    return rc;
}

void mstx__trace_text_close(struct mstx_trace_text *t)
{
    ms_free(t->unpacked);
    ms_file_unmap(&t->file);
    *t = (struct mstx_trace_text){0};
}

enum ms_rc mstx__trace_text_open(struct mstx_trace_text *t, const char *path, struct ms_err *err)
{
    *t = (struct mstx_trace_text){0};
    MS_TRY(ms_file_map(&t->file, path, (size_t)1 << 40, err));
    t->p = t->file.p;
    t->n = t->file.n;
    if (!is_gzip(&t->file))
        return MS_OK;
    t->n = 0;
    enum ms_rc rc = unpack(t, err);
    if (rc != MS_OK) {
        ms_err_wrap(err, "%s", path);
        mstx__trace_text_close(t);
    }
    return rc;
}

/* Unpacks the first bytes of a compressed file. */
static size_t unpack_head(const struct ms_file *f, char *to, size_t room)
{
    z_stream z = {0};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return 0;
    z.next_in = (const unsigned char *)f->p;
    z.avail_in = f->n < UINT32_MAX ? (unsigned)f->n : UINT32_MAX;
    z.next_out = (unsigned char *)to;
    z.avail_out = (unsigned)room;
    inflate(&z, Z_SYNC_FLUSH);
    inflateEnd(&z);
    return room - z.avail_out;
}

size_t mstx__trace_text_head(const char *path, char *to, size_t room)
{
    struct ms_file f;
    if (ms_file_map(&f, path, (size_t)1 << 40, NULL) != MS_OK)
        return 0;
    size_t n = f.n < room ? f.n : room;
    if (is_gzip(&f))
        n = unpack_head(&f, to, room);
    else
        memcpy(to, f.p, n);
    ms_file_unmap(&f);
    return n;
}
