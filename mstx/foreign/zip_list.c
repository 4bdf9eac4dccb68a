/* SPDX-License-Identifier: MIT
 *
 * zip_list: see the header.
 *
 *     local header, bytes ─► ... ─► directory: an entry for each file ─► end: where that is
 */
#include "mstx/foreign/zip_list.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

enum {
    END_BYTES = 22, /* without the comment of the archive */
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MOST = 65535,
    ENCRYPTED = 1,
    STORED = 0,
    DEFLATED = 8
};

static uint32_t get2(const char *p)
{
    return (uint32_t)(unsigned char)p[0] | (uint32_t)(unsigned char)p[1] << 8;
}

static uint32_t get4(const char *p)
{
    return get2(p) | get2(p + 2) << 16;
}

bool mstx__is_zip(const char *path)
{
    return ms_str_ends(ms_str_of(path), MS_STR(".zip"));
}

/* Finds the record at the end of an archive; NULL: there is none. */
static const char *find_end(const struct ms_file *f)
{
    for (size_t back = END_BYTES; back <= f->n && back <= END_BYTES + COMMENT_MOST; back++) {
        if (memcmp(f->p + f->n - back, "PK\5\6", 4) == 0)
            return f->p + f->n - back;
    }
    return NULL;
}

/* Reads the entry at p; false when it or the bytes it names lie outside of the archive. */
static bool read_entry(const struct ms_file *f, const char *p, struct mstx_zip_member *m)
{
    const size_t left = (size_t)(f->p + f->n - p), local = left >= ENTRY_BYTES ? get4(p + 42) : 0;
    if (left < ENTRY_BYTES || memcmp(p, "PK\1\2", 4) != 0 || f->n < LOCAL_BYTES ||
        local > f->n - LOCAL_BYTES || left - ENTRY_BYTES < get2(p + 28))
        return false;
    const char *head = f->p + local;
    m->name = (struct ms_str){p + ENTRY_BYTES, get2(p + 28)};
    m->n = get4(p + 20);
    m->at = local + LOCAL_BYTES + get2(head + 26) + get2(head + 28);
    m->is_packed = get2(p + 10) == DEFLATED;
    return memcmp(head, "PK\3\4", 4) == 0 && m->at <= f->n && m->n <= f->n - m->at;
}

static bool is_readable(const char *entry, const struct mstx_zip_member *m)
{
    const uint32_t method = get2(entry + 10);
    return (get2(entry + 8) & ENCRYPTED) == 0 && (method == STORED || method == DEFLATED) &&
           m->name.n != 0 && m->name.p[m->name.n - 1] != '/';
}

static enum ms_rc each_entry(const struct ms_file *f, mstx_zip_fn fn, void *ctx, struct ms_err *err)
{
    const char *end = find_end(f);
    if (end == NULL)
        return ms_fail(err, MS_E_FORMAT, "is no zip archive, or cut off before its list of files");
    const uint32_t count = get2(end + 10), first = get4(end + 16);
    if (count == UINT16_MAX || first == UINT32_MAX)
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "the archive has 64-bit sizes (zip64), which are not read; unpack it");
    const char *p = first <= f->n ? f->p + first : f->p + f->n;
    for (uint32_t i = 0; i < count; i++) {
        struct mstx_zip_member m;
        if (!read_entry(f, p, &m))
            return ms_fail(err, MS_E_FORMAT, "file %u of the archive is damaged", i + 1);
        if (is_readable(p, &m))
            MS_TRY(fn(ctx, &m, err));
        const size_t behind = (size_t)get2(p + 28) + get2(p + 30) + get2(p + 32);
        if (behind > (size_t)(f->p + f->n - p) - ENTRY_BYTES)
            return ms_fail(err, MS_E_FORMAT, "file %u of the archive is damaged", i + 1);
        p += ENTRY_BYTES + behind;
    }
    return MS_OK;
}

enum ms_rc mstx__zip_each(const char *path, mstx_zip_fn fn, void *ctx, struct ms_err *err)
{
    struct ms_file f;
    MS_TRY(ms_file_map(&f, path, (size_t)1 << 40, err));
    const enum ms_rc rc = each_entry(&f, fn, ctx, err);
    ms_file_unmap(&f);
    return rc;
}

struct search {
    struct ms_str name;
    struct mstx_zip_member *found;
    bool is_found;
};

static enum ms_rc compare_name(void *ctx, const struct mstx_zip_member *m, struct ms_err *err)
{
    struct search *s = ctx;
    (void)err;
    if (!s->is_found && ms_str_eq(m->name, s->name)) {
        *s->found = *m;
        s->found->name = s->name;
        s->is_found = true;
    }
    return MS_OK;
}

/* Returns the length of the path of the archive in a path; 0: there is none. */
static uint32_t archive_length(const char *path)
{
    const struct ms_str whole = ms_str_of(path), end = MS_STR(".zip/");
    const int64_t at = ms_str_find_str(whole, end);
    return at > 0 ? (uint32_t)at + end.n - 1 : 0;
}

enum ms_rc mstx__zip_find(const char *path, char **archive, struct mstx_zip_member *m,
                          struct ms_err *err)
{
    const struct ms_str whole = ms_str_of(path);
    const uint32_t n = archive_length(path);
    struct search s = {.name = n != 0 ? ms_str_sub(whole, n + 1, whole.n) : MS_STR(""), .found = m};
    *archive = NULL;
    if (n == 0)
        return ms_fail(err, MS_E_NOTFOUND, "no such file");
    *archive = ms_str_dup(ms_str_sub(whole, 0, n));
    enum ms_rc rc =
        *archive != NULL ? mstx__zip_each(*archive, compare_name, &s, err) : ms_no_memory(err);
    if (rc == MS_OK && !s.is_found)
        rc = ms_fail(err, MS_E_NOTFOUND, "the archive has no such file");
    if (rc != MS_OK) {
        ms_free(*archive);
        *archive = NULL;
    }
    return rc;
}
