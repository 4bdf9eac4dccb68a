#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads what msprobe exported with readers of its own and compares it with the truth.

    check_export.py FORMAT FILE truth.json

Prints what differs; exit status 1 when something does.  Perfetto's protobuf is
decoded here from its wire format alone.
"""
import csv
import json
import re
import sqlite3
import subprocess
import sys

csv.field_size_limit(10_000_000)


def reject(word):
    raise ValueError(f'{word} is not JSON')


def strict(path):
    def no_doubles(pairs):
        keys = [k for k, _ in pairs]
        if len(keys) != len(set(keys)):
            raise ValueError(f'a key twice: {keys}')
        return dict(pairs)
    with open(path, encoding='utf-8') as f:
        return json.loads(f.read(), parse_constant=reject, object_pairs_hook=no_doubles)


def us(text):
    """Microseconds with three decimals, exactly, as ns."""
    whole, rest = str(text).split('.')
    return int(whole) * 1000 + int(rest)


def nests(slices):
    """Do the slices of one track nest?"""
    stack = []
    for start, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while stack and stack[-1] <= start:
            stack.pop()
        if stack and end > stack[-1]:
            return False
        stack.append(end)
    return True


def chrome_events(path, base, ascend):
    raw = open(path, encoding='utf-8').read()
    # ts as written: a float would lose digits
    data = json.loads(raw, parse_float=str, parse_constant=reject)
    strict(path)
    events = data if ascend else data['traceEvents']
    if not ascend and int(data['otherData']['start_unix_ns']) != base:
        raise ValueError('start of the run is wrong')
    got, tracks, names, open_async, flows = [], {}, {}, {}, {}
    for e in events:
        if e['ph'] == 'M':
            if e['name'] == 'thread_name':
                names[(e['pid'], e['tid'])] = e['args']['name']
            continue
        start = us(e['ts']) - (base if ascend else 0)
        if ascend and not isinstance(e['ts'], str):
            raise ValueError('ts is no text')
        if e['ph'] == 'X':
            end = start + us(e['dur'])
            got.append((e['name'], start, end, e['args']['domain']))
            tracks.setdefault((e['pid'], e['tid']), []).append((start, end))
        elif e['ph'] == 'i':
            got.append((e['name'], start, start, e['args']['domain']))
        elif e['ph'] == 'b':
            open_async[(e['cat'], e['id'], e['name'])] = (start, e['args']['domain'])
        elif e['ph'] == 'e':
            began, domain = open_async.pop((e['cat'], e['id'], e['name']))
            got.append((e['name'], began, start, domain))
        elif ascend and e['ph'] in 'sf':
            flows.setdefault((e['name'], e['cat'], e['id']), []).append((e['ph'], e['pid'], start))
        elif e['ph'] != 'C':
            raise ValueError(f'phase {e["ph"]}')
    for (name, cat, number), ends in flows.items():
        ends = sorted(ends, reverse=True)
        if (cat, name) != ('MsTx', f'MsTx_{number}') or [e[0] for e in ends] != ['s', 'f']:
            raise ValueError(f'flow {name}: {ends}')
        if ends[0][1] == ends[1][1] or ends[0][2] > ends[1][2]:
            raise ValueError(f'flow {name} does not lead from the host to a device')
    if ascend and len(flows) not in (0, 2):  # none when a trace was read back
        raise ValueError(f'{len(flows)} flows')
    if open_async:
        raise ValueError('async events without an end')
    for track, slices in tracks.items():
        if not nests(slices):
            raise ValueError(f'slices of {track} overlap')
    if len(names) != len({(e['pid'], e['tid']) for e in events if e['ph'] != 'M'}):
        raise ValueError('threads without a name')
    return got


def varint(b, i):
    v = shift = 0
    while True:
        v |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128:
            return v, i


def fields(b):
    i = 0
    while i < len(b):
        tag, i = varint(b, i)
        if tag & 7 == 0:
            v, i = varint(b, i)
        elif tag & 7 == 1:
            v, i = b[i:i + 8], i + 8
        elif tag & 7 == 2:
            n, i = varint(b, i)
            v, i = b[i:i + n], i + n
            if len(v) != n:
                raise ValueError('message is cut off')
        else:
            raise ValueError(f'wire type {tag & 7}')
        yield tag >> 3, v


def message(b):
    m = {}
    for k, v in fields(b):
        m.setdefault(k, []).append(v)
    return m


def perfetto_events(path, base):
    names, categories, tracks, packets, first = {}, {}, {}, [], True
    for number, data in fields(open(path, 'rb').read()):
        assert number == 1
        p = message(data)
        if 6 in p:
            clocks = {message(c)[1][0]: message(c)[2][0] for c in message(p[6][0])[1]}
            if clocks != {1: base, 6: 0}:
                raise ValueError(f'clocks {clocks}')
            continue
        if p[13][0] != (3 if first else 2):
            raise ValueError('sequence flags')
        first = False
        if 12 in p:
            m = message(p[12][0])
            for table, field in ((names, 2), (categories, 1)):
                for entry in m.get(field, []):
                    e = message(entry)
                    table[e[1][0]] = e[2][0].decode()
        if 60 in p:
            d = message(p[60][0])
            tracks[d[1][0]] = (d.get(2, [b''])[0].decode(), d.get(5, [None])[0])
        if 11 in p:
            e = message(p[11][0])
            packets.append((p[8][0], len(packets), e))
            if 10 in e and e[10][0] not in names:
                raise ValueError('a name is used before it is defined')
    got, stacks = [], {}
    for ts, _, e in sorted(packets, key=lambda x: x[:2]):
        track = e[11][0]
        if track not in tracks or tracks[track][1] not in tracks:
            raise ValueError(f'track {track} is not described')
        if e[9][0] == 1:
            stacks.setdefault(track, []).append((names[e[10][0]], ts, categories[e[3][0]]))
        elif e[9][0] == 2:
            name, start, domain = stacks[track].pop()
            got.append((name, start, ts, domain))
        elif e[9][0] == 3:
            got.append((names[e[10][0]], ts, ts, categories[e[3][0]]))
    if any(stacks.values()):
        raise ValueError('slices without an end')
    return got


def protoc_tree(path):
    """The file as protoc --decode_raw shows it: lists of (number, value or list)."""
    with open(path, 'rb') as f:
        text = subprocess.run(['protoc', '--decode_raw'], stdin=f, capture_output=True, check=True,
                              text=True).stdout
    stack = [[]]
    for line in text.splitlines():
        line = line.strip()
        if line == '}':
            stack.pop()
        elif m := re.fullmatch(r'(\d+) \{', line):
            inner = []
            stack[-1].append((int(m[1]), inner))
            stack.append(inner)
        else:
            number, value = line.split(': ', 1)
            stack[-1].append((int(number), value))
    return stack[0]


def protoc_events(path, base):
    """The same events when protoc takes the file apart: their times, types and tracks are those of
    the decoder above, packet by packet."""
    seen = []
    for number, packet in protoc_tree(path):
        assert number == 1
        p = dict(packet)
        if 11 in p:
            e = dict(p[11])
            seen.append((int(p[8]), int(e[9]), int(e[11])))
    own = []
    for _, data in fields(open(path, 'rb').read()):
        p = message(data)
        if 11 in p:
            e = message(p[11][0])
            own.append((p[8][0], e[9][0], e[11][0]))
    if seen != own:
        raise ValueError(f'protoc sees {len(seen)} track events, we {len(own)}')
    begun, ended = (sum(t == kind for _, t, _ in seen) for kind in (1, 2))
    if begun == 0 or begun != ended:
        raise ValueError(f'{begun} slices begin, {ended} end')
    return perfetto_events(path, base)


HEADER = ('Device_id,pid,tid,category,event_type,payload_type,payload_value,Start_time(us),'
          'End_time(us),message_type,message,domain,Device Start_time(us),Device End_time(us)')


def csv_events(path, base):
    with open(path, newline='', encoding='utf-8') as f:
        rows = list(csv.reader(f))
    if ','.join(rows[0]) != HEADER:
        raise ValueError('header')
    starts = [us(r[7]) for r in rows[1:]]
    if starts != sorted(starts):
        raise ValueError('rows are not by start')
    return [(r[10].removeprefix("'"), us(r[7]) - base, us(r[8]) - base, r[11]) for r in rows[1:]]


def ascend_events(path, base):
    db = sqlite3.connect(f'file:{path}?mode=ro', uri=True)
    rows = db.execute(
        'SELECT m.value, startNs - ?, endNs - ?, d.value, connectionId, globalTid, endGlobalTid,'
        ' eventType, rangeId, category FROM MSTX_EVENTS e JOIN STRING_IDS m ON m.id = e.message'
        ' JOIN STRING_IDS d ON d.id = e.domainId ORDER BY connectionId', (base, base)).fetchall()
    if [r[4] for r in rows] != list(range(4000000002, 4000000002 + len(rows))):
        raise ValueError('connection ids')
    if any(r[8:] != (4294967295, 4294967295) for r in rows):
        raise ValueError('rangeId and category')
    handed = [r for r in rows if r[0] == 'handed over']
    if handed and handed[0][5:7] != ((223 << 32) + 1024, (223 << 32) + 1025):
        raise ValueError('globalTid')
    check_device(db, base)
    return [r[:4] for r in rows]


def check_device(db, base):
    """COMMUNICATION_OP rebuilt from marks, as msprof-analyze does it."""
    rows = db.execute(
        'SELECT m.value, t.startNs - ?, t.endNs - ?, t.deviceId, t.streamId, k.value'
        ' FROM MSTX_EVENTS e JOIN TASK t ON t.connectionId = e.connectionId'
        ' JOIN STRING_IDS m ON m.id = e.message JOIN STRING_IDS k ON k.id = t.taskType'
        ' ORDER BY t.startNs', (base, base)).fetchall()
    if [r[1:] for r in rows] != [(4100, 4500, 3, 0xBEEF, 'MsTx'), (5000, 5050, 3, 0xBEEF, 'MsTx')]:
        raise ValueError(f'device side: {rows}')
    message = json.loads(rows[0][0].replace('\\"', '"'))
    op = message['opName'] + '_'
    h0 = h1 = 0
    for c in message['groupName'].encode():
        h0, h1 = (h0 * 29 + c) % 2**32, (h1 * 131 + c) % 2**32
    name = f'{op}_{str(h0 << 32 | h1)[-3:]}_0_1'
    if name != 'HcclAllReduce__491_0_1':
        raise ValueError(name)


def main(form, path, truth_path):
    truth = json.load(open(truth_path))
    want = [(e['name'], e['start'], e['end'], e['domain']) for e in truth['events']]
    if form in ('chrome', 'trace-view', 'perfetto', 'protoc'):  # tracks of streams are shown beside
        want += [(e['name'], e['start'], e['end'], e['domain']) for e in truth['device']]
    want.sort()
    base = truth['epoch']
    got = sorted({'chrome': lambda: chrome_events(path, base, False),
                  'trace-view': lambda: chrome_events(path, base, True),
                  'perfetto': lambda: perfetto_events(path, base),
                  'protoc': lambda: protoc_events(path, base),
                  'csv': lambda: csv_events(path, base),
                  'ascend-db': lambda: ascend_events(path, base)}[form]())
    missing = [e for e in want if e not in got]
    extra = [e for e in got if e not in want]
    for what, events in (('missing', missing), ('not expected', extra)):
        for e in events[:5]:
            print(f'{what}: {e[0][:60]!r} {e[1:]}')
    if len(got) != len(want):
        print(f'{len(got)} events, expected {len(want)}')
    return bool(missing or extra or len(got) != len(want))


sys.exit(main(*sys.argv[1:]))
