#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a small capture from the description in mstx/format/capture.h, without its code.

    python3 tests/gen/capture.py RUN > truth.json

Two ranks, three threads; nested, overlapping, unfinished and foreign-ended ranges,
marks, counters, and names that are hard to quote.  The events that must come out
are printed as JSON: process, tid, domain, kind, name, start, end (ns from EPOCH),
flags.
"""
import json
import os
import struct
import sys

EPOCH = 1717575960208126869
TICKS = 7_000_000_000
MARK, BEGIN, END, PUSH, POP, DEVICE, STREAM_NAME, COUNTER = 1, 2, 3, 4, 5, 7, 8, 9
STREAM, OTHER = 2, 4
MONO = 100_000_000_000  # CLOCK_MONOTONIC at EPOCH
COMM = (r'{\"count\": \"25701386\",\"dataType\": \"fp16\",\"groupName\": \"group_name_43\",'
        r'\"opName\": \"HcclAllReduce\",\"streamId\": \"32\"}')
HARD = ['=cmd|calc', 'comma, and "quote"', 'new\nline', 'é 漢 😀', 'x' * 100_000, 'back\\slash']


def header(kind, pid, tid, rank, ring, part, count, capacity):
    h = bytearray(4096)
    struct.pack_into('<8sIHHIII', h, 0, b'MSTXSEG1', 0x01020304, 1, 0, 4096,
                     32 if kind == 1 else 1, kind)
    struct.pack_into('<IIIIiiiII', h, 28, ring, pid, tid, 1, rank, 2, rank, 1, 0)
    struct.pack_into('<QqQ16sQQQQQ', h, 64, 2_000_000_000, EPOCH, 1, b'0123456789abcdef', 1, part,
                     capacity, 0, TICKS)
    # 2 GHz: half a nanosecond a tick
    struct.pack_into('<QqqQ', h, 144, TICKS, 100_000_000_000, EPOCH, 30)
    struct.pack_into('<64s32s', h, 176, b'node7', b'capture.py')
    struct.pack_into('<QQI', h, 1024, count, 3 if rank == 1 and ring == 1 else 0, 3)
    struct.pack_into('<QqqQ', h, 1088, TICKS + 20_000_000_000, 110_000_000_000,
                     EPOCH + 10_000_000_000, 30)
    return bytes(h)


class Process:
    def __init__(self, run, rank, pid):
        self.dir = f'{run}/rank_{rank}/node7.{pid}.0000000{rank}'
        os.makedirs(self.dir)
        self.rank, self.pid, self.texts, self.ids, self.domains = rank, pid, b'', {}, 0
        self.entry(8, 0, 0, 'cmdline=/usr/bin/python3 train.py')

    def entry(self, kind, domain, key, text):
        data = text.encode()
        size = 24 + (len(data) + 8) // 8 * 8
        number = len(self.ids) + 1
        self.ids[(kind, domain, key, text)] = number
        self.texts += struct.pack('<IIHHIQ', size, number, kind, domain, len(data), key)
        self.texts += data + bytes(size - 24 - len(data))
        return number

    def text(self, text):
        return self.ids.get((1, 0, 0, text)) or self.entry(1, 0, 0, text)

    def domain(self, name):
        self.domains += 1
        self.entry(2, self.domains, 0, name)
        return self.domains

    def ring(self, ring, tid, records):
        body = b''.join(records)
        with open(f'{self.dir}/r{ring:04}.0001.seg', 'wb') as f:
            f.write(header(1, self.pid, tid, self.rank, ring, 1, len(body) // 32,
                           len(body) // 32 + 50) + body + bytes(50 * 32))

    def close(self):
        n = len(self.texts)
        with open(f'{self.dir}/strings.seg', 'wb') as f:
            f.write(header(2, self.pid, self.pid, self.rank, 0, 1, n, n + 64) + self.texts
                    + bytes(64))


def rec(kind, t, ident=0, name=0, domain=0, arg=0, flags=0):
    return struct.pack('<QQIHBBQ', TICKS + 2 * t, ident, name, domain, kind, flags, arg)


def at(t):
    return TICKS + 2 * t


def main(run):
    truth = []

    def expect(pid, tid, domain, kind, name, start, end, flags=0, end_tid=0):
        truth.append(dict(pid=pid, tid=tid, domain=domain, kind=kind, name=name, start=start,
                          end=end, flags=flags, end_tid=end_tid))

    p = Process(run, 0, 223)
    dom = p.domain('communication')
    t = p.text
    records = [rec(BEGIN, 0, 1, t('step 1'))]
    expect(223, 1024, 'default', 'range', 'step 1', 0, 5000)
    records += [rec(PUSH, 100, 0, t('forward')), rec(PUSH, 200, 1, t('layer')),
                rec(POP, 300, 1, t('layer'), arg=at(200)),
                rec(POP, 900, 0, t('forward'), arg=at(100))]
    expect(223, 1024, 'default', 'push', 'forward', 100, 900)
    expect(223, 1024, 'default', 'push', 'layer', 200, 300)
    for i, hard in enumerate(HARD):
        records.append(rec(MARK, 1000 + i, 0, t(hard)))
        expect(223, 1024, 'default', 'mark', hard, 1000 + i, 1000 + i)
    records += [rec(BEGIN, 2000, 2, t('a')), rec(BEGIN, 2500, 3, t('b')),
                rec(END, 3000, 2, t('a'), arg=at(2000)), rec(END, 3500, 3, t('b'), arg=at(2500))]
    expect(223, 1024, 'default', 'range', 'a', 2000, 3000)
    expect(223, 1024, 'default', 'range', 'b', 2500, 3500)
    records += [rec(BEGIN, 4000, 4, t(COMM), dom, 0xBEEF, STREAM),
                rec(END, 4600, 4, t(COMM), dom, at(4000)),
                rec(BEGIN, 4700, 4, t('again'), dom, 0xBEEF, STREAM),
                rec(END, 4800, 4, t('again'), dom, at(4700))]
    expect(223, 1024, 'communication', 'range', COMM, 4000, 4600)
    expect(223, 1024, 'communication', 'range', 'again', 4700, 4800)
    records += [rec(END, 5000, 1, t('step 1'), arg=at(0)), rec(BEGIN, 5100, 5, t('handed over')),
                rec(BEGIN, 5200, 6, t('open'))]
    expect(223, 1024, 'default', 'range', 'handed over', 5100, 5600, 2, 1025)
    expect(223, 1024, 'default', 'range', 'open', 5200, 6000, 1)
    p.ring(1, 1024, records)
    p.ring(2, 1025, [rec(END, 5600, 5, t('handed over'), arg=at(5100), flags=OTHER),
                     rec(COUNTER, 5700, 0, t('queue'), arg=12), rec(MARK, 6000, 0, t('last'))])
    expect(223, 1025, 'default', 'mark', 'last', 6000, 6000)
    # The device reached the two uses of range 4 later; the poller saw them out of order.
    p.ring(3, 1026, [rec(STREAM_NAME, 3900, 0xBEEF, t('compute'), arg=0xBEEF << 32 | 3)] +
           [rec(DEVICE, begin, 4, end, dom, MONO + ns)
            for begin, end, ns in ((4000, 1, 4500), (4000, 0, 4100), (4700, 1, 5050), (4700, 0, 5000))])
    p.close()

    q = Process(run, 1, 224)
    records = []
    for i in range(9):
        records += [rec(BEGIN, 100 + 10_000 * i, 1, q.text(f'step {i}')),
                    rec(END, 100 + 10_000 * i + (30_000 if i == 8 else 9_000), 1,
                        q.text(f'step {i}'), arg=at(100 + 10_000 * i))]
        expect(224, 2000, 'default', 'range', f'step {i}', 100 + 10_000 * i,
               100 + 10_000 * i + (30_000 if i == 8 else 9_000))
    q.ring(1, 2000, records)
    q.close()
    device = [dict(name=COMM, start=4100, end=4500, domain='communication'),
              dict(name='again', start=5000, end=5050, domain='communication')]
    json.dump(dict(epoch=EPOCH, events=truth, device=device), sys.stdout)


main(sys.argv[1])
