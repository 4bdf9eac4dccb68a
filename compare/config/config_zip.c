/* SPDX-License-Identifier: MIT
 *
 * config_zip: members are deflated, as the official tool writes them.
 */
#include "compare/config/config_zip.h"

#include "probe/base/crc.h"
#include "probe/base/mem.h"

#include <sys/stat.h>
#include <zlib.h>

enum { STORED = 0, DEFLATED = 8, RAW = -15, LEVEL = 6, MEMORY = 8, MAX_NAME = 1024 };

/* ---- what is refused --------------------------------------------------------------------- */

/* A name is a path of plain parts below the folder it is unpacked in. */
static bool is_safe(struct ms_str name)
{
    struct ms_str rest = name, part;
    if (name.n == 0 || name.n > MAX_NAME || name.p[0] == '/' ||
        memchr(name.p, '\0', name.n) != NULL || memchr(name.p, '\\', name.n) != NULL ||
        (name.n > 1 && name.p[1] == ':'))
        return false;
    while (ms_str_split(&rest, '/', &part)) {
        if (ms_str_is(part, "..") || ms_str_is(part, ".") || (part.n == 0 && rest.p != NULL))
            return false;
    }
    return true;
}

static enum ms_rc check_member(const struct probe_zip_member *m, struct ms_err *err)
{
    char shown[MS_STR_SHOWN];
    const char *name = ms_str_shown(shown, m->name);
    if (!is_safe(m->name))
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)m->begin,
                          "member %s would be written outside of the folder", name);
    if (S_ISLNK(m->mode))
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)m->begin, "member %s is a link", name);
    if (m->method != STORED && m->method != DEFLATED)
        return ms_fail_at(err, MS_E_UNSUPPORTED, 0, (int64_t)m->begin,
                          "member %s is packed by method %u, which is not known", name, m->method);
    if (m->unpacked > CFG_ZIP_MEMBER_MAX)
        return ms_fail_at(err, MS_E_LIMIT, 0, (int64_t)m->begin,
                          "member %s has %llu bytes unpacked, more than the %llu that are read",
                          name, (unsigned long long)m->unpacked,
                          (unsigned long long)CFG_ZIP_MEMBER_MAX);
    return MS_OK;
}

static enum ms_rc check_members(const struct cfg_zip *z, struct ms_err *err)
{
    uint64_t total = 0;
    for (size_t i = 0; i < z->zip.members.n; i++) {
        MS_TRY(check_member(&z->zip.members.p[i], err));
        total += z->zip.members.p[i].unpacked;
        if (total > CFG_ZIP_TOTAL_MAX)
            return ms_fail(err, MS_E_LIMIT, "more than %llu bytes unpacked",
                           (unsigned long long)CFG_ZIP_TOTAL_MAX);
    }
    return MS_OK;
}

/* ---- reading ------------------------------------------------------------------------------ */

enum ms_rc cfg_zip_parse(struct cfg_zip *z, const char *name, const char *p, size_t n,
                         struct ms_err *err)
{
    z->path = name;
    enum ms_rc rc = probe_zip_large_read(&z->zip, p, n, CFG_ZIP_MEMBERS_MAX, err);
    if (rc == MS_OK)
        rc = check_members(z, err);
    return rc == MS_OK ? MS_OK : ms_err_wrap(err, "%s", name);
}

enum ms_rc cfg_zip_open(struct cfg_zip *z, const char *path, struct ms_err *err)
{
    *z = (struct cfg_zip){0};
    MS_TRY(ms_file_map(&z->file, path, CFG_ZIP_TOTAL_MAX, err));
    const enum ms_rc rc = cfg_zip_parse(z, path, z->file.p, z->file.n, err);
    if (rc != MS_OK)
        cfg_zip_close(z);
    return rc;
}

void cfg_zip_close(struct cfg_zip *z)
{
    probe_zip_large_free(&z->zip);
    if (z->file.p != NULL)
        ms_file_unmap(&z->file);
    *z = (struct cfg_zip){0};
}

static void *zlib_alloc(void *of, unsigned n, unsigned size)
{
    (void)of;
    return ms_calloc(n, size);
}

static void zlib_free(void *of, void *p)
{
    (void)of;
    ms_free(p);
}

/* Sets zlib's input, which zlib does not write to but declares without const. */
static void set_input(z_stream *s, const char *p, size_t n)
{
    memcpy(&s->next_in, &p, sizeof s->next_in);
    s->avail_in = (uInt)n;
}

static bool inflate_member(const struct probe_zip_member *m, char *to)
{
    z_stream s = {.zalloc = zlib_alloc, .zfree = zlib_free};
    if (m->size > UINT32_MAX || inflateInit2(&s, RAW) != Z_OK)
        return false;
    set_input(&s, m->data, m->size);
    s.next_out = (Bytef *)to;
    s.avail_out = (uInt)m->unpacked + 1; /* one byte more would be seen */
    const int got = inflate(&s, Z_FINISH);
    const bool whole = got == Z_STREAM_END && s.total_out == m->unpacked;
    (void)inflateEnd(&s);
    return whole;
}

enum ms_rc cfg_zip_text(const struct cfg_zip *z, const struct probe_zip_member *m,
                        struct ms_arena *a, struct ms_str *text, struct ms_err *err)
{
    char *to = ms_arena_text(a, (size_t)m->unpacked + 1), shown[MS_STR_SHOWN];
    if (to == NULL)
        return ms_arena_fail(a, err);
    bool whole = true;
    if (m->method == STORED)
        memcpy(to, m->data, (size_t)m->unpacked);
    else
        whole = inflate_member(m, to);
    *text = (struct ms_str){to, (uint32_t)m->unpacked};
    if (whole && ms_crc32(0, to, (size_t)m->unpacked) == m->crc)
        return MS_OK;
    return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)m->begin, "%s: member %s is damaged", z->path,
                      ms_str_shown(shown, m->name));
}

static enum ms_rc extract_member(const struct cfg_zip *z, const struct probe_zip_member *m,
                                 const char *dir, struct ms_err *err)
{
    struct ms_arena *a = ms_arena_new((size_t)m->unpacked + 65536);
    struct ms_buf path = {.max = 1 << 16};
    struct ms_out *out = NULL;
    struct ms_str text;
    if (a == NULL)
        return ms_no_memory(err);
    ms_buf_printf(&path, "%s/%.*s", dir, MS_STR_ARG(m->name));
    enum ms_rc rc = cfg_zip_text(z, m, a, &text, err);
    (void)ms_buf_z(&path);
    if (rc == MS_OK)
        rc = ms_buf_check(&path, err);
    if (rc == MS_OK)
        rc = ms_want_no_link(ms_buf_z(&path), err);
    if (rc == MS_OK)
        rc = ms_out_create(&out, ms_buf_z(&path), err);
    if (rc == MS_OK) {
        ms_out_lazy(out);
        ms_out_str(out, text);
        rc = ms_out_commit(out, err);
    }
    ms_buf_free(&path);
    ms_arena_free(a);
    return rc;
}

enum ms_rc cfg_zip_extract(const struct cfg_zip *z, const char *dir, struct ms_err *err)
{
    MS_TRY(ms_mkdirs(dir, err));
    for (size_t i = 0; i < z->zip.members.n; i++) {
        const struct probe_zip_member *m = &z->zip.members.p[i];
        if (!ms_str_ends(m->name, MS_STR("/")))
            MS_TRY(extract_member(z, m, dir, err));
    }
    return MS_OK;
}

/* ---- writing ------------------------------------------------------------------------------ */

static void put16(struct ms_buf *b, unsigned v)
{
    const char bytes[2] = {(char)(v & 255), (char)(v >> 8 & 255)};
    ms_buf_put(b, bytes, 2);
}

static void put32(struct ms_buf *b, uint32_t v)
{
    put16(b, v & 65535);
    put16(b, v >> 16);
}

/* Appends what the local header and the directory's entry have in common. */
static void put_sizes(struct ms_buf *b, uint32_t crc, size_t packed, struct ms_str text,
                      struct ms_str name)
{
    enum { VERSION = 20, UTF8 = 1 << 11, MIDNIGHT = 0, FIRST_DAY = 33 };
    put16(b, VERSION);
    put16(b, UTF8);
    put16(b, DEFLATED);
    put16(b, MIDNIGHT);
    put16(b, FIRST_DAY); /* 1 January 1980: equal inputs give equal bytes */
    put32(b, crc);
    put32(b, (uint32_t)packed);
    put32(b, text.n);
    put16(b, name.n);
    put16(b, 0);
}

static enum ms_rc deflate_text(struct ms_str text, struct ms_buf *to, struct ms_err *err)
{
    z_stream s = {.zalloc = zlib_alloc, .zfree = zlib_free};
    if (deflateInit2(&s, LEVEL, Z_DEFLATED, RAW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return ms_no_memory(err);
    const size_t most = deflateBound(&s, text.n);
    char *room = ms_buf_room(to, most);
    enum ms_rc rc = room != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK) {
        set_input(&s, text.p, text.n);
        s.next_out = (Bytef *)room;
        s.avail_out = (uInt)most;
        rc = deflate(&s, Z_FINISH) == Z_STREAM_END ? MS_OK : ms_no_memory(err);
        to->n += s.total_out;
    }
    (void)deflateEnd(&s);
    return rc;
}

enum ms_rc cfg_zip_create(struct cfg_zip_out *z, const char *path, struct ms_err *err)
{
    *z = (struct cfg_zip_out){.directory = {.max = 64 << 20}};
    return ms_out_create(&z->out, path, err);
}

/* Adds the entry of a member that begins at byte `at`. */
static void put_entry(struct cfg_zip_out *z, uint32_t at, uint32_t crc, size_t packed,
                      struct ms_str text, struct ms_str name)
{
    ms_buf_put(&z->directory, "PK\1\2\24\3", 6); /* made by Unix */
    put_sizes(&z->directory, crc, packed, text, name);
    put16(&z->directory, 0); /* comment */
    put16(&z->directory, 0); /* disk */
    put16(&z->directory, 0);
    put32(&z->directory, (uint32_t)(S_IFREG | 0600) << 16);
    put32(&z->directory, at);
    ms_buf_str(&z->directory, name);
    z->members++;
}

enum ms_rc cfg_zip_add(struct cfg_zip_out *z, const char *name, struct ms_str text,
                       struct ms_err *err)
{
    struct ms_buf packed = {.max = (size_t)1 << 31}, head = {.max = 1 << 16};
    const uint32_t crc = ms_crc32(0, text.p, text.n), at = (uint32_t)ms_out_size(z->out);
    const struct ms_str called = ms_str_of(name);
    enum ms_rc rc = deflate_text(text, &packed, err);
    ms_buf_put(&head, "PK\3\4", 4);
    put_sizes(&head, crc, packed.n, text, called);
    if (rc == MS_OK)
        rc = ms_buf_check(&head, err);
    if (rc == MS_OK) {
        ms_out_write(z->out, head.p, head.n);
        ms_out_str(z->out, called);
        ms_out_write(z->out, packed.p, packed.n);
        put_entry(z, at, crc, packed.n, text, called);
        rc = ms_buf_check(&z->directory, err);
    }
    ms_buf_free(&packed);
    ms_buf_free(&head);
    return rc;
}

enum ms_rc cfg_zip_finish(struct cfg_zip_out *z, enum ms_rc rc, struct ms_err *err)
{
    struct ms_buf end = {.max = 64};
    const uint32_t at = (uint32_t)ms_out_size(z->out);
    ms_out_write(z->out, z->directory.p, z->directory.n);
    ms_buf_put(&end, "PK\5\6\0\0\0\0", 8);
    put16(&end, z->members);
    put16(&end, z->members);
    put32(&end, (uint32_t)z->directory.n);
    put32(&end, at);
    put16(&end, 0);
    if (rc == MS_OK)
        rc = ms_buf_check(&end, err);
    ms_out_write(z->out, end.p, end.n);
    ms_buf_free(&end);
    ms_buf_free(&z->directory);
    if (rc == MS_OK)
        return ms_out_commit(z->out, err);
    ms_out_abort(z->out);
    return rc;
}
