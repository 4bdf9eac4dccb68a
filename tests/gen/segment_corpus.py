#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the seeds of tests/mstx/read/fuzz_segment.c.

    python3 tests/gen/segment_corpus.py tests/data/fuzz/segment

A seed is four bytes (flags and where to cut) and the bodies of strings.seg, ring 1 and
ring 2; each is small and about one thing.
"""
import os
import struct
import sys

T = 1_000_000_000


def text(number, kind, domain, key, value):
    size = 24 + (len(value) + 8) // 8 * 8
    return struct.pack('<IIHHIQ', size, number, kind, domain, len(value), key) + value + bytes(
        size - 24 - len(value))


def rec(kind, ticks, ident=0, name=1, domain=0, arg=0, flags=0):
    return struct.pack('<QQIHBBQ', T + ticks, ident, name, domain, kind, flags, arg)


def seed(strings, ring1, ring2=b'', flags=1):
    n = len(strings) + len(ring1) + len(ring2)
    # The pieces are cut in 256ths: pad until the cuts fall where they should.
    a = next(k for k in range(256) if n * k // 256 >= len(strings)) if strings else 0
    cut = n * a // 256
    strings += bytes(cut - len(strings))
    body = strings + ring1 + ring2
    rest = len(body) - cut
    b = next((k for k in range(256) if rest * k // 256 >= len(ring1)), 255) if ring2 else 255
    return bytes([flags, a, b, 0]) + body


def main(folder):
    os.makedirs(folder, exist_ok=True)
    names = text(1, 1, 0, 0, b'alpha') + text(2, 1, 0, 0, b'step 7') + text(3, 2, 1, 0, b'NCCL')
    schema = struct.pack('<IIQII', 1, 2, 16, 0, 0) + struct.pack(
        '<QQQIIQQQII', 18, 0, 0, 0, 1, 5, 8, 4, 16, 2)
    enum = struct.pack('<IIQII', 0, 1, 4, 0, 0) + struct.pack('<QQQII', 2, 0, 0, 0, 1)
    rich = names + text(4, 6, 1, 1 << 24, schema) + text(5, 7, 1, (1 << 24) + 1, enum) + text(
        6, 3, 1, 5, b'io') + text(7, 8, 0, 0, b'cmdline=/bin/x y') + text(8, 9, 0, 4, b'note')
    attr = struct.pack('<QIIIHBBII', 7, 5, 0xFF00FF, 1, 0, 64, 0, 7, 0)
    payload = struct.pack('<QQIHBBQ', 1 << 24, 24, 0, 1, 65, 1, 24) + struct.pack(
        '<16sIHBB8s', b'0123456789abcdef', 24, 1, 66, 0, b'01234567')
    memory = struct.pack('<QQIHBBII', 0x1000, 64, 3, 0, 67, 0, 1, 0)
    by_pointer = struct.pack('<QQIHBBII', 0x1000, 64, 3, 0, 67, 0, 1, 1)
    seeds = {
        'empty': seed(b'', b''),
        'mark': seed(names, rec(1, 5)),
        'range': seed(names, rec(2, 5, 1) + rec(3, 9, 1, arg=T + 5)),
        'push_pop': seed(names, rec(4, 1, 0) + rec(4, 2, 1, 2) + rec(5, 3, 1, 2, arg=T + 2)
                         + rec(5, 4, 0, arg=T + 1)),
        'unfinished': seed(names, rec(2, 5, 1) + rec(1, 50)),
        'start_lost': seed(names, rec(3, 9, 1, arg=T + 5)),
        'other_thread': seed(names, rec(2, 5, 1) * 3, rec(3, 9, 1, arg=T + 5, flags=4) * 3),
        'id_again': seed(names, rec(2, 5, 1) + rec(2, 6, 1) + rec(3, 9, 1, arg=T + 5)),
        'backwards': seed(names, rec(1, 900) + rec(1, 5) + rec(1, 3)),
        'end_before_begin': seed(names, rec(2, 500, 1) + rec(3, 9, 1, arg=T + 500)),
        'ticks_zero': seed(names, struct.pack('<QQIHBBQ', 0, 1, 1, 0, 2, 0, 0) * 2),
        'ticks_huge': seed(names, struct.pack('<QQIHBBQ', 2**64 - 1, 1, 1, 0, 1, 0, 0)),
        'stream': seed(names, rec(2, 5, 1, arg=0xBEEF, flags=2) + rec(3, 9, 1, arg=T + 5)),
        'domain': seed(names, rec(1, 5, domain=1) + rec(1, 6, domain=65535)),
        'no_text': seed(names, rec(1, 5, name=0) + rec(1, 6, name=0xFFFFFFFF)),
        'attr': seed(rich, rec(1, 5, domain=1, flags=1) + attr),
        'payload': seed(rich, rec(4, 5, domain=1, flags=1) + payload),
        'payload_cut': seed(rich, rec(4, 5, domain=1, flags=1) + payload[:32]),
        'cont_alone': seed(rich, attr + payload),
        'more_at_end': seed(names, rec(1, 5, flags=1)),
        'counter': seed(names, rec(9, 5, arg=7) + rec(9, 6, arg=2**63, flags=8)),
        'counter_nan': seed(names, rec(9, 5, arg=0x7FF8000000000000, flags=8) * 2),
        'heap': seed(names, rec(16, 1, 1, flags=1) + memory + rec(18, 2, 2, arg=1, flags=1) + memory
                     + rec(19, 3, 2) + rec(17, 4, 1)),
        'heap_ends_all': seed(names, rec(16, 1, 1, flags=1) + memory + rec(18, 2, 2, arg=1, flags=1)
                              + memory + rec(17, 4, 1) + rec(19, 5, 2)),
        'by_pointer': seed(names, rec(18, 2, 2, flags=1) + memory + rec(19, 3, flags=1)
                           + by_pointer),
        'heap_bare': seed(names, rec(16, 1, 1) + rec(18, 2, 2) + rec(19, 3, 9) + rec(17, 4, 8)),
        'device': seed(names, rec(8, 1, 0xBEEF, 2, arg=1) + rec(2, 5, 4, arg=0xBEEF, flags=2) + rec(3, 9,
                       4, arg=T + 5), rec(7, 20, 4, arg=6 * T) + rec(7, 21, 4, arg=5 * T)),
        'thread': seed(names, rec(1, 1) + rec(25, 2, 99) + rec(1, 3)),
        'calib': seed(names, rec(10, 1, 6 * T, 30, arg=7 * T) + rec(10, T, 7 * T, 30, arg=8 * T)),
        'unknown': seed(names, rec(33, 1) + rec(200, 2)),
        'text_size_0': seed(struct.pack('<IIHHIQ', 0, 1, 1, 0, 5, 0) + bytes(8), rec(1, 1)),
        'text_size_odd': seed(struct.pack('<IIHHIQ', 33, 1, 1, 0, 5, 0) + bytes(16), rec(1, 1)),
        'text_len_huge': seed(struct.pack('<IIHHIQ', 32, 1, 1, 0, 2**32 - 1, 0) + bytes(8),
                              rec(1, 1)),
        'text_id_gap': seed(text(2, 1, 0, 0, b'two'), rec(1, 1, name=2)),
        'schema_count': seed(names + text(4, 6, 1, 1 << 24, struct.pack('<IIQII', 1, 2**32 - 1, 8,
                                                                        0, 0)),
                             rec(4, 5, domain=1, flags=1) + payload),
        'schema_of_itself': seed(names + text(4, 6, 1, 1 << 24, struct.pack('<IIQII', 1, 1, 8, 0, 0)
                                              + struct.pack('<QQQII', 1 << 24, 0, 0, 0, 1)),
                                 rec(4, 5, domain=1, flags=1) + payload),
        'steps': seed(names, b''.join(rec(2, 100 * i, 1, 2) + rec(3, 100 * i + 90, 1, 2,
                                                                  arg=T + 100 * i)
                                      for i in range(20))),
        'whole_files': bytes([0, 85, 128, 0]) + b'MSTXSEG1' + bytes(200),
    }
    for name, data in seeds.items():
        with open(f'{folder}/{name}', 'wb') as f:
            f.write(data)


main(sys.argv[1])
