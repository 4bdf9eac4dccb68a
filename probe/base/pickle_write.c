/* SPDX-License-Identifier: MIT
 *
 * pickle_write: writes protocol 2; the letters are those of Python's pickletools.
 */
#include "probe/base/pickle.h"

#include <endian.h>
#include <string.h>

void ms_pickle_begin(struct ms_out *o)
{
    ms_out_write(o, "\x80\x02", 2);
}

void ms_pickle_end(struct ms_out *o)
{
    ms_out_putc(o, '.');
}

void ms_pickle_dict(struct ms_out *o)
{
    ms_out_write(o, "}(", 2);
}

void ms_pickle_dict_end(struct ms_out *o)
{
    ms_out_putc(o, 'u');
}

void ms_pickle_list(struct ms_out *o)
{
    ms_out_write(o, "](", 2);
}

void ms_pickle_list_end(struct ms_out *o)
{
    ms_out_putc(o, 'e');
}

void ms_pickle_tuple(struct ms_out *o)
{
    ms_out_putc(o, '(');
}

void ms_pickle_tuple_end(struct ms_out *o)
{
    ms_out_putc(o, 't');
}

void ms_pickle_str(struct ms_out *o, struct ms_str s)
{
    const uint32_t n = htole32(s.n);
    ms_out_putc(o, 'X');
    ms_out_write(o, &n, sizeof n);
    for (uint32_t i = 0; i < s.n;) {
        const unsigned letter = ms_utf8_len(s.p + i, s.n - i);
        if (letter != 0)
            ms_out_write(o, s.p + i, letter);
        else
            ms_out_putc(o, '?');
        i += letter != 0 ? letter : 1;
    }
}

void ms_pickle_i64(struct ms_out *o, int64_t v)
{
    const uint32_t low = htole32((uint32_t)v);
    const uint64_t all = htole64((uint64_t)v);
    if (v == (int32_t)v) {
        ms_out_putc(o, 'J');
        ms_out_write(o, &low, sizeof low);
    } else {
        ms_out_write(o, "\x8a\x08", 2); /* a long of 8 bytes */
        ms_out_write(o, &all, sizeof all);
    }
}

void ms_pickle_f64(struct ms_out *o, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = htobe64(bits);
    ms_out_putc(o, 'G');
    ms_out_write(o, &bits, sizeof bits);
}

void ms_pickle_bool(struct ms_out *o, bool v)
{
    ms_out_putc(o, v ? '\x88' : '\x89');
}

void ms_pickle_none(struct ms_out *o)
{
    ms_out_putc(o, 'N');
}
