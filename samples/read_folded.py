#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rows of a folded run.db without msprobe:  read_folded.py RUN.DB TABLE

TABLE is events or one of COLUMNS.  Prints each row as JSON, with numbers where msprobe has words for kinds of
operations and types.  Written after msprobe-run.db(5) alone."""
import functools, json, sqlite3, sys, zlib

KINDS = ["mark", "range", "push", "counter", "region"]
FIELDS = ["id", "arg", "size", "count", "end_tid", "args"]
COLUMNS = {
    "comm_ops": ("packed_calls", "id process rank tid comm_group seq name op lib type reduce count elem_bytes sent"
                 " received peer tag flags stream start_ns dur_ns device"),
    "joins": ("packed_joins", "comm_group seq op step ranks missing agrees bytes start_ns transfer_ns skew_ns"
              " waited_ns last_rank"),
    "replay_spans": ("packed_spans", "timeline process rank tid step kind start_ns end_ns"),
    "names": ("packed_names", "track name events total_ns min_ns max_ns first_ns last_ns unfinished"),
    "steps": ("packed_steps", "process number name start_ns end_ns"),
    "rank_steps": ("packed_rank_steps", "process rank step start_ns end_ns computing_ns communication_ns exposed_ns"
                   " overlapped_ns free_ns bubble_ns preparing_ns waiting_ns blame_ns"),
}


def signed(v):
    return (v + (1 << 63)) % (1 << 64) - (1 << 63)


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0
    def byte(self):
        self.at += 1
        return self.data[self.at - 1]
    def varint(self):
        b = self.byte()
        return b if b < 128 else b & 127 | self.varint() << 7
    def zigzag(self):
        v = self.varint()
        return v >> 1 ^ -(v & 1)
    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]
    def rest(self):
        return self.data[self.at:]
    def sums(self, n):  # numbers that are told by their differences
        values = [0]
        for _ in range(n):
            values.append(signed(values[-1] + self.zigzag()))
        return values[1:]


class Code:  # of differences, by rANS
    def __init__(self, b):
        words = b.take(2 * b.varint())
        self.words = [words[i] | words[i + 1] << 8 for i in range(0, len(words), 2)][::-1]
        self.x = self.words.pop() << 16 | self.words.pop()
        self.bits, self.at = int.from_bytes(b.rest(), "little"), 0
    def take(self, n):
        self.at += n
        return self.bits >> self.at - n & (1 << n) - 1
    def next(self, symbols):
        symbol, start, frequency = symbols[self.x & 4095]
        self.x = frequency * (self.x >> 12) + (self.x & 4095) - start
        if self.x < 1 << 16:
            self.x = self.x << 16 | self.words.pop()
        e = symbol >> 1
        u = symbol if symbol < 4 else self.take(64) if symbol == 128 else (2 | symbol & 1) << e - 1 | self.take(e - 1)
        return u >> 1 ^ -(u & 1)


class Run:
    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.text = dict(self.db.execute("SELECT id, value FROM strings"))
        self.part, self.events = map(functools.lru_cache(512), (self.read_part, self.read_events))

    def blob(self, table, key, number):
        return Bytes(self.db.execute(f"SELECT data FROM {table} WHERE {key} = ?", (number,)).fetchone()[0])

    def read_part(self, number):
        b = self.blob("fold_parts", "id", number)
        b.varint()
        b = Bytes(zlib.decompress(b.rest()))
        kind = b.byte()
        if kind == 1:
            period, has_slopes = b.varint(), b.byte()
            return b.sums(period), [b.zigzag() for _ in range(period)] if has_slopes else [0] * period
        if kind == 2:
            return b.byte(), [b.varint() for _ in range(b.varint())]
        contexts = []
        for _ in range(b.varint()):
            contexts.append([])
            for symbol, frequency in [(b.byte(), b.varint()) for _ in range(b.varint())]:
                contexts[-1] += [(symbol, len(contexts[-1]), frequency)] * frequency
        return contexts, [(b.zigzag(), b.byte()) for _ in range(b.varint())]

    def column(self, b, n, other=None):
        kind = b.byte()
        if kind == 0:
            first, step = b.zigzag(), b.zigzag()
            return [signed(first + i * step) for i in range(n)]
        if kind == 1:
            (base, slope), first, turn = self.part(b.varint()), b.zigzag(), b.varint()
            p = len(base)
            return [signed(first + base[i % p] + (turn + i // p) * slope[i % p]) for i in range(n)]
        if kind == 2:
            return list(map(b.sums(b.varint()).__getitem__, self.column(b, n)))
        if kind == 3:
            return self.numbers(b, n, other)
        if kind == 4:
            known = self.column(b, n)
            values = iter(self.column(b, sum(known)) if any(known) else [])
            return [next(values) if k else None for k in known]
        if kind == 5:
            field, cell = ("dur_ns" if b.byte() else "start_ns"), []
            for _ in range(b.varint()):
                events, first, some = self.events(b.varint())[0], b.varint(), b.varint()
                cell += [e[field] for e in events[first:first + some]]
            return cell
        if kind == 6:
            return b.sums(n)
        of, is_before = other(b.varint()), b.byte()
        of = [0, *of] if is_before else of
        return [signed(v + of[i]) for i, v in enumerate(self.column(b, n, other))]

    def numbers(self, b, n, other):
        contexts, classes = self.part(b.varint())
        quantum, from_before, rule, of = b.varint(), b.byte(), b.byte(), b.varint()
        code, v, cell = Code(Bytes(b.take(b.varint()))), 0, []
        around = [0, *other(of)] if rule else []
        for i in range(n):
            k = i % of if rule == 0 else int(around[i] != around[i + 1])
            if rule == 1:
                k = 16 * around[i] + around[i + 1] if {*around[i:i + 2]} <= {*range(16)} else 0
            centre, context = classes[min(k, len(classes) - 1)]
            v = code.next(contexts[context]) + centre + (v if from_before else 0)
            cell.append(signed(v * quantum))
        return cell

    def read_events(self, chunk):  # and the times of its points
        b = self.blob("blobs", "chunk", chunk)
        if b.byte() == 1:
            return self.plain_events(b), []
        n, (periodic, steps), (contexts, classes) = b.varint(), self.part(b.varint()), self.part(b.varint())
        leader, quantum, t = b.varint(), b.varint(), b.zigzag()
        lead = self.events(leader)[1] if leader else []
        shape, name, *fields = [self.column(b, n) for _ in range(8)]
        rows = [dict(zip(FIELDS, row), name=name[i], depth=shape[i] >> 16, kind=shape[i] >> 8 & 255,
                     flags=shape[i] & 255) for i, row in enumerate(zip(*fields))]
        code, times, begun_only, begun, seen, before = Code(b), [], [], 0, {}, None
        while begun < n or begun_only:
            step = steps[len(times) % len(steps)]
            event = begun if step < 2 else begun_only.pop(len(begun_only) + 1 - step)
            here = (name[event], shape[event], step >= 2)
            k = len(times) % len(steps) if periodic else seen.setdefault((before, here), len(seen))
            centre, context = classes[min(k, len(classes) - 1)]
            if times:
                t = (lead[len(times)] if context & 128 and leader else t) + centre + code.next(contexts[context & 127])
            times.append(t)
            before = here
            rows[event]["dur_ns"] = t * quantum - rows[event].setdefault("start_ns", t * quantum)
            begun += step < 2
            begun_only += [event] * (step == 0)
        return rows, times

    def plain_events(self, b):  # of a chunk that is not folded
        has, t, n, shapes = b.byte(), signed(int.from_bytes(b.take(8), "little")), b.varint(), b.varint()
        shapes = [(b.varint(), b.varint(), b.byte(), b.byte()) for _ in range(shapes)]
        index = [b.byte() | (b.byte() << 8 if len(shapes) > 256 else 0) for _ in range(n)]
        distances, durs = [b.varint() for _ in range(n)], [b.varint() for _ in range(n)]
        columns = [(b.sums(n) if f < 3 else [b.varint() for _ in range(n)]) if has >> f & 1 else [int(f == 3)] * n
                   for f in range(6)]
        rows = [dict(zip(FIELDS, row)) for row in zip(*columns)]
        for e, shape, distance, dur in zip(rows, index, distances, durs):
            t += distance
            e.update(zip(("name", "depth", "kind", "flags"), shapes[shape]), start_ns=t, dur_ns=dur)
        return rows

    def packed(self, table):
        packed, names = COLUMNS[table]
        for (data,) in self.db.execute(f"SELECT data FROM {packed} ORDER BY id"):
            b = Bytes(data)
            _, columns, n = b.byte(), b.byte(), b.varint()
            bodies = [b.take(size) for size in [(b.varint(), b.varint(), b.varint())[2] for _ in range(columns)]]
            cell = functools.lru_cache(None)(lambda c: self.column(Bytes(bodies[c]), n, cell))
            yield from (dict(zip(names.split(), row)) for row in zip(*map(cell, range(columns))))

    def rows(self, table):
        for row in self.packed(table) if table != "events" else ():
            yield dict(row, name=self.text.get(row["name"])) if table in ("comm_ops", "steps") else row
        levels = "SELECT track, first_chunk, chunks FROM levels WHERE shift = 0 ORDER BY track"
        for track, first, chunks in self.db.execute(levels).fetchall() if table == "events" else ():
            for e in (e for chunk in range(first, first + chunks) for e in self.events(chunk)[0]):
                yield dict(e, track=track, name=self.text.get(e["name"], ""), kind=KINDS[e["kind"]])


if __name__ == "__main__":
    for r in Run(sys.argv[1]).rows(sys.argv[2]):
        print(json.dumps(r))
