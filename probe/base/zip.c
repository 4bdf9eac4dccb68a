/* SPDX-License-Identifier: MIT
 *
 * zip: local headers in a .pt hold no sizes (a data descriptor follows the bytes), so an archive is
 * read from its end:
 *
 *     local header, name, extra, data, descriptor     one for each member
 *     central directory                               one entry for each member
 *     zip64 end record, zip64 locator                 optional
 *     end record
 *
 * Every offset and length is an input and is checked before it becomes a
 * pointer.
 */
#include "probe/base/zip.h"

#include "probe/base/le.h"

#include <stdlib.h>

enum {
    LOCAL_SIZE = 30,
    CENTRAL_SIZE = 46,
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    MAX_COMMENT = 65535,
    FLAG_ENCRYPTED = 1,
    EXTRA_ZIP64 = 1
};
#define LOCAL_SIGN   0x04034b50U
#define CENTRAL_SIGN 0x02014b50U
#define END_SIGN     0x06054b50U
#define END64_SIGN   0x06064b50U
#define LOCATOR_SIGN 0x07064b50U

/* Position of the central directory. */
struct directory {
    uint64_t at, size, members;
    uint64_t limit; /* the end records begin here */
};

static enum ms_rc report_bad(struct ms_err *err, uint64_t at, const char *what)
{
    return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)at, "%s in the zip archive", what);
}

/* Finds the end record. A comment may follow, which must end with the file. */
static enum ms_rc find_end(const char *p, size_t n, size_t *end, struct ms_err *err)
{
    if (n < END_SIZE)
        return report_bad(err, n, "no end record");
    const size_t first = n - END_SIZE, last = first < MAX_COMMENT ? 0 : first - MAX_COMMENT;
    for (size_t at = first;; at--) {
        if (probe__le32(p + at) == END_SIGN && probe__le16(p + at + 20) == first - at) {
            *end = at;
            return MS_OK;
        }
        if (at == last)
            break;
    }
    report_bad(err, n, "no end record");
    ms_err_hint(err, "the file is cut short");
    return MS_E_FORMAT;
}

/* Reads the 64-bit end record, if there is one, in place of the 32-bit one. */
static enum ms_rc read_end64(struct directory *d, const char *p, size_t end, struct ms_err *err)
{
    if (end < LOCATOR_SIZE || probe__le32(p + end - LOCATOR_SIZE) != LOCATOR_SIGN)
        return MS_OK;
    const size_t locator = end - LOCATOR_SIZE;
    const uint64_t at = probe__le64(p + locator + 8);
    if (locator < END64_SIZE || at > locator - END64_SIZE || probe__le32(p + at) != END64_SIGN)
        return report_bad(err, locator, "a wrong zip64 locator");
    *d = (struct directory){.at = probe__le64(p + at + 48),
                            .size = probe__le64(p + at + 40),
                            .members = probe__le64(p + at + 32),
                            .limit = at};
    return MS_OK;
}

static enum ms_rc find_directory(struct directory *d, const char *p, size_t n, uint32_t most,
                                 struct ms_err *err)
{
    size_t end = 0;
    MS_TRY(find_end(p, n, &end, err));
    *d = (struct directory){.at = probe__le32(p + end + 16),
                            .size = probe__le32(p + end + 12),
                            .members = probe__le16(p + end + 10),
                            .limit = end};
    MS_TRY(read_end64(d, p, end, err));
    if (d->at > d->limit || d->size > d->limit - d->at)
        return report_bad(err, end, "a directory outside the file");
    if (d->members <= most)
        return MS_OK;
    return ms_fail_at(err, MS_E_LIMIT, 0, (int64_t)end,
                      "%llu members in the zip archive; at most %u are expected",
                      (unsigned long long)d->members, most);
}

/* Reads the values of a central entry that overflow 32 bits from its extra field, which has them in
 * this order. */
static enum ms_rc read_extra64(const char *extra, size_t n, uint64_t at, uint64_t *const value[3],
                               struct ms_err *err)
{
    size_t need = 0;
    for (int i = 0; i < 3; i++)
        need += *value[i] == UINT32_MAX ? 8 : 0;
    if (need == 0)
        return MS_OK;
    for (size_t k = 0; n - k >= 4;) {
        const size_t size = probe__le16(extra + k + 2);
        if (size > n - k - 4)
            break;
        if (probe__le16(extra + k) == EXTRA_ZIP64 && size >= need) {
            const char *v = extra + k + 4;
            for (int i = 0; i < 3; i++) {
                if (*value[i] != UINT32_MAX)
                    continue;
                *value[i] = probe__le64(v);
                v += 8;
            }
            return MS_OK;
        }
        k += 4 + size;
    }
    return report_bad(err, at, "a member without its zip64 sizes");
}

/* Finds the data behind the local header, which must name the same member. */
static enum ms_rc locate_member(struct probe_zip_member *m, const char *p, uint64_t limit,
                                struct ms_err *err)
{
    if (m->begin > limit || limit - m->begin < LOCAL_SIZE ||
        probe__le32(p + m->begin) != LOCAL_SIGN)
        return report_bad(err, m->begin, "a member without a header");
    const char *local = p + m->begin;
    const uint64_t head = LOCAL_SIZE + (uint64_t)probe__le16(local + 26) + probe__le16(local + 28);
    if (head > limit - m->begin || m->size > limit - m->begin - head)
        return report_bad(err, m->begin, "a member that reaches past the end");
    if (!ms_str_eq((struct ms_str){local + LOCAL_SIZE, probe__le16(local + 26)}, m->name))
        return report_bad(err, m->begin, "a member with two names");
    m->data = local + head;
    m->end = m->begin + head + m->size;
    return MS_OK;
}

/* Reads one entry of the directory, of which n bytes are left; *used is the length of the entry. */
static enum ms_rc read_entry(struct probe_zip_member *m, const char *p, uint64_t at, uint64_t n,
                             uint64_t limit, uint64_t *used, struct ms_err *err)
{
    const char *e = p + at;
    if (n < CENTRAL_SIZE || probe__le32(e) != CENTRAL_SIGN)
        return report_bad(err, at, "a wrong directory entry");
    const size_t name_n = probe__le16(e + 28), extra_n = probe__le16(e + 30);
    *used = CENTRAL_SIZE + name_n + extra_n + probe__le16(e + 32);
    if (*used > n)
        return report_bad(err, at, "a directory entry that reaches past the end");
    if ((probe__le16(e + 8) & FLAG_ENCRYPTED) != 0)
        return ms_fail_at(err, MS_E_UNSUPPORTED, 0, (int64_t)at, "the zip archive is encrypted");
    uint64_t packed = probe__le32(e + 20), size = probe__le32(e + 24), begin = probe__le32(e + 42);
    MS_TRY(read_extra64(e + CENTRAL_SIZE + name_n, extra_n, at,
                        (uint64_t *const[3]){&size, &packed, &begin}, err));
    const uint16_t method = probe__le16(e + 10);
    if (packed != size && method == 0)
        return report_bad(err, at, "a member with two sizes");
    *m = (struct probe_zip_member){.name = {e + CENTRAL_SIZE, (uint32_t)name_n},
                                   .size = packed,
                                   .unpacked = size,
                                   .crc = probe__le32(e + 16),
                                   .method = method,
                                   .mode = probe__le16(e + 40),
                                   .begin = begin};
    return locate_member(m, p, limit, err);
}

/* Checks that the new member m overlaps no earlier member and has a name of its own. */
static enum ms_rc check_apart(const struct probe_zip *z, const struct probe_zip_member *m,
                              struct ms_err *err)
{
    for (uint32_t i = 0; i < z->n; i++) {
        const struct probe_zip_member *o = &z->member[i];
        if (m->begin < o->end && o->begin < m->end)
            return report_bad(err, m->begin, "members that overlap");
        if (ms_str_eq(m->name, o->name))
            return report_bad(err, m->begin, "a name twice");
    }
    return MS_OK;
}

enum ms_rc probe_zip_read(struct probe_zip *z, const char *p, size_t n, uint32_t most,
                          struct ms_err *err)
{
    struct directory d;
    z->n = 0;
    MS_TRY(find_directory(&d, p, n, most, err));
    uint64_t at = d.at, left = d.size;
    for (uint64_t i = 0; i < d.members; i++) {
        struct probe_zip_member *m = &z->member[z->n];
        uint64_t used = 0;
        MS_TRY(read_entry(m, p, at, left, d.at, &used, err));
        MS_TRY(check_apart(z, m, err));
        z->n++;
        at += used;
        left -= used;
    }
    return left == 0 ? MS_OK : report_bad(err, at, "something after the last directory entry");
}

const struct probe_zip_member *probe_zip_find(const struct probe_zip *z, struct ms_str prefix,
                                              const char *rest)
{
    const struct ms_str tail = ms_str_of(rest);
    for (uint32_t i = 0; i < z->n; i++) {
        const struct ms_str name = z->member[i].name;
        if (name.n == prefix.n + tail.n && ms_str_starts(name, prefix) && ms_str_ends(name, tail))
            return &z->member[i];
    }
    return NULL;
}

/* ---- archives of many members ---------------------------------------------- */

static int compare_begin(const void *a, const void *b)
{
    const struct probe_zip_member *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Sorts the members by place and checks that none overlaps the next. */
static enum ms_rc check_order(struct probe_zip_large *z, struct ms_err *err)
{
    if (z->members.n != 0)
        qsort(z->members.p, z->members.n, sizeof *z->members.p, compare_begin);
    for (size_t i = 1; i < z->members.n; i++) {
        if (z->members.p[i].begin < z->members.p[i - 1].end)
            return report_bad(err, z->members.p[i].begin, "members that overlap");
    }
    for (size_t i = 0; i < z->members.n; i++) {
        bool added;
        if (ms_map_put(&z->names, z->members.p[i].name, &added) == MS_MAP_NONE)
            return ms_no_memory(err);
        if (!added)
            return report_bad(err, z->members.p[i].begin, "a name twice");
    }
    return MS_OK;
}

enum ms_rc probe_zip_large_read(struct probe_zip_large *z, const char *p, size_t n, uint32_t most,
                                struct ms_err *err)
{
    struct directory d;
    MS_TRY(find_directory(&d, p, n, most, err));
    uint64_t at = d.at, left = d.size;
    for (uint64_t i = 0; i < d.members; i++) {
        struct probe_zip_member *m = ms_vec_push(&z->members);
        uint64_t used = 0;
        if (m == NULL)
            return ms_no_memory(err);
        MS_TRY(read_entry(m, p, at, left, d.at, &used, err));
        at += used;
        left -= used;
    }
    if (left != 0)
        return report_bad(err, at, "something after the last directory entry");
    return check_order(z, err);
}

void probe_zip_large_free(struct probe_zip_large *z)
{
    ms_vec_free(&z->members);
    ms_map_free(&z->names);
}

const struct probe_zip_member *probe_zip_large_find(const struct probe_zip_large *z,
                                                    struct ms_str name)
{
    const uint32_t i = ms_map_get(&z->names, name);
    return i != MS_MAP_NONE ? &z->members.p[i] : NULL;
}
