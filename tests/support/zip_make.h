/* SPDX-License-Identifier: MIT
 *
 * zip_make: a zip archive of members that are stored as they are, for tests of what
 * reads such archives.
 */
#ifndef TESTS_SUPPORT_ZIP_MAKE_H
#define TESTS_SUPPORT_ZIP_MAKE_H

#include "probe/base/str.h"

struct zip_make {
    struct ms_buf file, directory;
    unsigned n;
};

static inline void zip_le(struct ms_buf *b, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        ms_buf_putc(b, (char)(v >> (8 * i)));
}

/* The part that a local header and an entry of the directory share. */
static inline void zip_fields(struct ms_buf *b, const char *name, size_t size)
{
    zip_le(b, 20, 2); /* version */
    zip_le(b, 0, 2);  /* flags */
    zip_le(b, 0, 2);  /* stored */
    zip_le(b, 0, 4);  /* time */
    zip_le(b, 0, 4);  /* CRC: none */
    zip_le(b, size, 4);
    zip_le(b, size, 4);
    zip_le(b, strlen(name), 2);
    zip_le(b, 0, 2); /* extra */
}

static inline void zip_add(struct zip_make *z, const char *name, const void *p, size_t n)
{
    size_t begin = z->file.n;
    z->file.max = z->directory.max = (size_t)1 << 24;
    ms_buf_puts(&z->file, "PK\x03\x04");
    zip_fields(&z->file, name, n);
    ms_buf_puts(&z->file, name);
    ms_buf_put(&z->file, p, n);
    ms_buf_puts(&z->directory, "PK\x01\x02");
    zip_le(&z->directory, 20, 2);
    zip_fields(&z->directory, name, n);
    zip_le(&z->directory, 0, 2); /* comment */
    zip_le(&z->directory, 0, 2); /* disk */
    zip_le(&z->directory, 0, 6); /* attributes */
    zip_le(&z->directory, begin, 4);
    ms_buf_puts(&z->directory, name);
    z->n++;
}

/* The archive; free it with zip_free. */
static inline struct ms_str zip_end(struct zip_make *z)
{
    size_t at = z->file.n;
    ms_buf_str(&z->file, ms_buf_slice(&z->directory));
    ms_buf_puts(&z->file, "PK\x05\x06");
    zip_le(&z->file, 0, 4);
    zip_le(&z->file, z->n, 2);
    zip_le(&z->file, z->n, 2);
    zip_le(&z->file, z->directory.n, 4);
    zip_le(&z->file, at, 4);
    zip_le(&z->file, 0, 2);
    return ms_buf_slice(&z->file);
}

static inline void zip_free(struct zip_make *z)
{
    ms_buf_free(&z->file);
    ms_buf_free(&z->directory);
}

#endif
