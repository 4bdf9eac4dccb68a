#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fold_corpus.py FOLDED.DB OUT: the parts, chunks and a blob of each packed table of a small folded database, as an input of
the fuzz target fold (tests/mstx/rundb/fuzz_fold.c)."""
import sqlite3
import struct
import sys
import zlib


def varint(data):
    v = shift = at = 0
    while True:
        v |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return v, at


db, out = sqlite3.connect(sys.argv[1]), open(sys.argv[2], "wb")
for _, data in db.execute("SELECT id, data FROM fold_parts ORDER BY id"):
    text = zlib.decompress(data[varint(data)[1]:])
    out.write(struct.pack("<BH", 0, len(text)) + text)
for (data,) in db.execute("SELECT data FROM blobs ORDER BY chunk"):
    out.write(struct.pack("<BH", 1, len(data)) + data)
for table in "calls", "joins", "spans", "names", "steps", "rank_steps":
    for (data,) in db.execute(f"SELECT data FROM packed_{table} ORDER BY id LIMIT 2"):
        out.write(struct.pack("<BH", 2, len(data)) + data)
