/* SPDX-License-Identifier: MIT
 *
 * zip: the directory of a zip archive in memory: that of a .pt, or of a workbook.
 */
#ifndef PROBE_BASE_ZIP_H
#define PROBE_BASE_ZIP_H

#include "probe/base/str.h"

enum { PROBE_ZIP_MEMBERS = 64 };

struct probe_zip_member {
    struct ms_str name;
    const char *data;
    size_t size;       /* of data, which is as the archive has it */
    uint64_t unpacked; /* bytes when it is not compressed; as the archive claims */
    uint32_t crc;      /* of those; 0: the writer stored none */
    uint16_t method;   /* 0: not compressed */
    size_t begin, end; /* header and data, as offsets in the file */
};
struct probe_zip {
    uint32_t n;
    struct probe_zip_member member[PROBE_ZIP_MEMBERS];
};

/* Read the central directory of an archive of at most `most` members, no more than
 * PROBE_ZIP_MEMBERS; they lie apart from each other and inside the file. */
enum ms_rc probe_zip_read(struct probe_zip *z, const char *p, size_t n, uint32_t most,
                          struct ms_err *err) MS_MUST_USE;
/* The member called prefix + rest, or NULL. */
const struct probe_zip_member *probe_zip_find(const struct probe_zip *z, struct ms_str prefix,
                                              const char *rest);

#endif
