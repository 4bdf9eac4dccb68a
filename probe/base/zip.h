/* SPDX-License-Identifier: MIT
 *
 * zip: reads the directory of a zip archive in memory: a .pt or a workbook.
 */
#ifndef PROBE_BASE_ZIP_H
#define PROBE_BASE_ZIP_H

#include "probe/base/map.h"
#include "probe/base/str.h"
#include "probe/base/vec.h"

enum { PROBE_ZIP_MEMBERS = 64 };

struct probe_zip_member {
    struct ms_str name;
    const char *data;
    size_t size;       /* of data, which is stored as in the archive */
    uint64_t unpacked; /* uncompressed size that the archive states */
    uint32_t crc;      /* of the uncompressed data; 0: none stored */
    uint16_t method;   /* 0: not compressed */
    uint16_t mode;     /* type and permissions on Unix; 0: not stated */
    size_t begin, end; /* offsets of header and data in the file */
};
struct probe_zip {
    uint32_t n;
    struct probe_zip_member member[PROBE_ZIP_MEMBERS];
};

/* Reads the central directory of an archive of at most `most` members, no more than
 * PROBE_ZIP_MEMBERS. Checks that members do not overlap and are inside the file. */
enum ms_rc probe_zip_read(struct probe_zip *z, const char *p, size_t n, uint32_t most,
                          struct ms_err *err) MS_MUST_USE;
/* Returns the member named prefix + rest, or NULL. */
const struct probe_zip_member *probe_zip_find(const struct probe_zip *z, struct ms_str prefix,
                                              const char *rest);

/* An archive of any number of members: a checkpoint, which has one for each storage. */
struct probe_zip_large {
    MS_VEC(struct probe_zip_member) members;
    struct ms_map names; /* of the members, with their index */
};
/* Reads the central directory of an archive of at most `most` members, with the same checks. z is
 * zeroed before; the caller frees it in any case. */
enum ms_rc probe_zip_large_read(struct probe_zip_large *z, const char *p, size_t n, uint32_t most,
                                struct ms_err *err) MS_MUST_USE;
void probe_zip_large_free(struct probe_zip_large *z);
/* Returns the member of a name, or NULL. */
const struct probe_zip_member *probe_zip_large_find(const struct probe_zip_large *z,
                                                    struct ms_str name);

#endif
