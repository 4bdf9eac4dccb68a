/* SPDX-License-Identifier: MIT
 *
 * ptmake: .pt files made byte by byte, so that each part can be wrong.
 */
#ifndef TESTS_SUPPORT_PTMAKE_H
#define TESTS_SUPPORT_PTMAKE_H

#include "probe/base/crc.h"
#include "probe/base/str.h"

/* A byte string that may hold NUL: PK("\x80\x02N.") */
#define PK(lit) ((struct ms_str){(lit), sizeof(lit) - 1})

struct zip_part {
    const char *name;
    const char *p;
    size_t n;
    /* What the directory says instead of the truth, when not 0. */
    uint32_t method, flags, crc_xor, begin_add, size_add, packed_add;
    bool zip64;            /* sizes and offset in an extra field */
    const char *real_name; /* in the local header */
};

static inline void le(struct ms_buf *b, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        ms_buf_putc(b, i < 8 ? (char)(v >> (8 * i)) : 0);
}

static inline void zip_local(struct ms_buf *b, const struct zip_part *m)
{
    const char *name = m->real_name != NULL ? m->real_name : m->name;
    le(b, 0x04034b50, 4);
    le(b, 0, 22);
    le(b, strlen(name), 2);
    le(b, 3, 2);
    ms_buf_puts(b, name);
    ms_buf_puts(b, "xyz");
    ms_buf_put(b, m->p, m->n);
}

static inline void zip_entry(struct ms_buf *b, const struct zip_part *m, uint64_t begin)
{
    const uint64_t size = m->n + m->size_add, packed = size + m->packed_add;
    le(b, 0x02014b50, 4);
    le(b, 0, 4);
    le(b, m->flags, 2);
    le(b, m->method, 2);
    le(b, 0, 4);
    le(b, ms_crc32(0, m->p, m->n) ^ m->crc_xor, 4);
    le(b, m->zip64 ? UINT32_MAX : packed, 4);
    le(b, m->zip64 ? UINT32_MAX : size, 4);
    le(b, strlen(m->name), 2);
    le(b, m->zip64 ? 34 : 0, 2);
    le(b, 0, 10);
    le(b, m->zip64 ? UINT32_MAX : begin + m->begin_add, 4);
    ms_buf_puts(b, m->name);
    if (m->zip64) {
        /* Another field first: it has to be stepped over. */
        le(b, 0x5555, 2);
        le(b, 2, 2);
        le(b, 0, 2);
        le(b, 1, 2);
        le(b, 24, 2);
        le(b, size, 8);
        le(b, packed, 8);
        le(b, begin + m->begin_add, 8);
    }
}

/* The whole archive; `count` is what the end record says. */
static inline void zip_make(struct ms_buf *b, const struct zip_part *part, size_t n, size_t count)
{
    uint64_t begin[64];
    for (size_t i = 0; i < n; i++) {
        begin[i] = b->n;
        zip_local(b, &part[i]);
    }
    const uint64_t directory = b->n;
    for (size_t i = 0; i < n; i++)
        zip_entry(b, &part[i], begin[i]);
    const uint64_t size = b->n - directory;
    le(b, 0x06054b50, 4);
    le(b, 0, 4);
    le(b, count, 2);
    le(b, count, 2);
    le(b, size, 4);
    le(b, directory, 4);
    le(b, 0, 2);
}

/* A .pt with this pickle and this storage 0. */
static inline void pt_make(struct ms_buf *b, struct ms_str pickle, const void *data, size_t n)
{
    const struct zip_part part[] = {{.name = "x/data.pkl", .p = pickle.p, .n = pickle.n},
                                    {.name = "x/data/0", .p = data, .n = n}};
    zip_make(b, part, 2, 2);
}

/* Pieces of a pickle: the start of a tensor of storage class `type` with `count` (one byte), what
 * torch writes after the sizes and strides. */
#define PKL_STORAGE(type, count)                                                                   \
    "((X\x07\0\0\0storagectorch\n" type "\nX\x01\0\0\0"                                            \
    "0X\x03\0\0\0cpuK" count "tQ"
#define PKL_V2                                                                                     \
    "\x80\x02"                                                                                     \
    "ctorch._utils\n_rebuild_tensor_v2\n"
#define PKL_TAIL                                                                                   \
    "\x89"                                                                                         \
    "ccollections\nOrderedDict\n)Rt"
#define PKL_F32_2x4                                                                                \
    PKL_V2 PKL_STORAGE("FloatStorage", "\x08") "K\0K\x02K\x04\x86K\x04K\x01\x86" PKL_TAIL "R."

#endif
