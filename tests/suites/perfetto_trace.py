#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A Perfetto trace as other tools write it: names by number, defaults of a sequence, a clock that counts
from event to event, a state that is cleared, counters, flows and annotations.  perfetto_trace.py FILE"""
import struct
import sys


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def num(field, n):
    return varint(field << 3) + varint(n & (1 << 64) - 1)


def fixed(field, data):
    return varint(field << 3 | 1) + data


def sub(field, *parts):
    body = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def packet(*parts, sequence=1):
    return sub(1, *parts, num(10, sequence))


def event(stamp, kind, *parts, sequence=1):
    return packet(num(8, stamp), sub(11, num(9, kind), *parts), sequence=sequence)


BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
trace = packet(sub(6, sub(1, num(1, 6), num(2, 5000)), sub(1, num(1, 1), num(2, 1700000000000005000)),
                   sub(1, num(1, 64), num(2, 5), num(3, 1), num(4, 1000))))
trace += packet(sub(60, num(1, 10), sub(3, num(1, 42), sub(6, "rank 3 trainer"))))
trace += packet(sub(60, num(1, 11), num(5, 10), sub(4, num(1, 42), num(2, 43), sub(5, "loop"))))
trace += packet(sub(60, num(1, 12), num(5, 10), sub(2, "memory"), sub(8)))
trace += packet(num(13, 1), sub(59, num(58, 64), sub(11, num(11, 11))),
                sub(12, sub(2, num(1, 7), sub(2, "forward")), sub(1, num(1, 1), sub(2, "model")),
                    sub(3, num(1, 2), sub(2, "size"))))
trace += event(1, BEGIN, num(10, 7), num(3, 1), sub(4, num(1, 2), num(4, -5)), fixed(47, struct.pack("<Q", 99)))
trace += event(2, END)                                       # 6000 and 8000 of the clock of the snapshot
trace += event(0, INSTANT, sub(23, "here"), sub(4, sub(10, "why"), sub(6, 'a "b"')),
               fixed(48, struct.pack("<Q", 99)))
trace += event(1, COUNTER, num(11, 12), num(30, 77))
trace += packet(num(13, 1), sub(12, sub(2, num(1, 7), sub(2, "backward"))))  # number 7 means another name now
trace += event(1, BEGIN, num(11, 11), num(10, 7)) + event(1, END, num(11, 11))
# Another sequence, on the clock of the system; its track has no descriptor.
trace += event(20000, BEGIN, num(11, 77), sub(23, "alone"), sequence=2)
trace += event(21000, END, num(11, 77), sequence=2) + event(22000, END, num(11, 77), sequence=2)
open(sys.argv[1], "wb").write(trace)
