#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the recorded csv comparisons of golden cases as cur and as strict, and explain
every cell that differs by one of the repairs that the manual lists: repairs.py
MSPROBE GOLDEN, or of N random pairs: repairs.py MSPROBE --random N.  Prints "ok CASE: 120 cells by repairs 1 2 9", or "not ok CASE" and the first
cells that no repair explains."""
import collections
import csv
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(sys.path[0]), 'gen'))
import random_dump  # noqa: E402
from parity import number, slack, unpack  # noqa: E402

FREE = {'empty', 'empty_like', 'numpy', 'to', '__setitem__', 'empty_with_format',
        'new_empty_strided', 'new_empty', 'empty_strided'}
MESSAGES = {'unmatched: The bench has': 1, 'parameter of NPU does not match': 1, 'data file of NPU': 3, 'Only one of NPU': 3,
            'NaN or inf stand': 4, 'One Thousandth': 10, 'norm relative error': 9,
            'NormRelativeErr of output': 9}

METRICS = ('Cosine', 'EucDist', 'MaxAbsErr', 'MaxRelativeErr', 'One Thousandth Err Ratio',
           'Five Thousandths Err Ratio')
BY_OUTPUTS = ('One Thousandth', 'norm relative error', 'NormRelativeErr of output', 'scalar parameters')


def in_a_module_named_output(row):
    return '.output.' in re.split(r'\.(?:forward|backward)\.', row['NPU Name'])[0] + '.'


def is_complex(row):
    return all('complex' in row[side].lower() for side in ('NPU Dtype', 'Bench Dtype'))


def explain_messages(row, strict, md5):
    """Repairs behind messages that only one of the two has."""
    have, want = set(json.loads(row['Err_message'])), set(json.loads(strict['Err_message']))
    alone = any('unmatched' in m for m in have)
    if row['NPU Name'].split('.')[1] in FREE and len(have) == alone:
        yield 26
        return
    for message in have ^ want:
        if in_a_module_named_output(row) and any(w in message for w in BY_OUTPUTS):
            yield 34
            continue
        if is_complex(row) and any(row.get(m) != strict.get(m) for m in METRICS):
            yield 35
            continue
        known = [n for part, n in MESSAGES.items() if part in message]
        attribute = any(w in message for w in ('dtype', 'Required_Grad', 'shape', 'scalar'))
        if known:
            yield known[0]
        elif alone and message in have and 'nan/inf/-inf' in message:
            yield 1
        elif md5 and attribute:
            yield 14
        elif message in want and attribute:
            yield 6
        elif 'dtype' in message and any(w in row['Bench Name'] for w in ('qkv', 'gate_up')):
            yield 8
        else:
            yield None


GOLDEN_STATS = ('Bench max', 'Bench min', 'Bench mean', 'Bench l2norm')
MAPPINGS = ('-am', '-cm', '-lm', '-dm')



def explain_metric(column, row, strict):
    """Why a figure of two tensors differs: complex numbers, NaN and inf, one element, or a file's
    format."""
    if is_complex(row):
        return 35
    if row[column] == 'N/A':
        return 4
    if row['Cosine'] == strict['Cosine'] == 'unsupported' and column.startswith('Max'):
        return 18
    return 21 if all(strict[m] == 'unsupported' for m in METRICS) else None


def explain_cell(column, row, strict, md5):
    a, b = number(row[column]), number(strict[column])
    if column in METRICS and 'Cosine' in row:
        yield explain_metric(column, row, strict)
    elif column in ('Result', 'Err_message'):
        yield from explain_messages(row, strict, md5)
    elif 'NPU max' in row and ('diff' in column or 'RelativeErr' in column):
        close = a is not None and b is not None and abs(a - b) <= max(
            slack(column, row), 1e-9 * max(abs(a), abs(b)))
        yield 13 if close else None
    elif column in GOLDEN_STATS and a is not None and a == b:
        yield 33
    else:
        yield None


def other_partner(row, strict, command):
    """Why a row has another golden row beside it."""
    if '-fm' in command or '--fuzzy_match' in command:
        return 5
    if '-lm' in command and '.backward' not in row['NPU Name']:
        return 17 if row['NPU Dtype'].startswith('torch') else 32
    if any(o in command for o in MAPPINGS):
        return 11
    if 'parameters_grad' in row['NPU Name']:
        return 12
    if strict['Bench Name'] == 'N/A' and row['NPU Dtype'] != row['Bench Dtype']:
        return 7
    return None


def explain_row(row, strict, command):
    md5 = 'NPU MD5' in row
    if row['Bench Name'] != strict['Bench Name']:
        yield 'Bench Name', other_partner(row, strict, command)
        return
    for column in row:
        if row[column] != strict[column]:
            for n in explain_cell(column, row, strict, md5):
                yield column, n


def run(exe, folder, command, compat):
    with tempfile.TemporaryDirectory(dir=folder) as out:
        words = [out if w == 'out' else w for w in command[1:]]
        exact = [] if any(o in command for o in MAPPINGS) else ['--align=exact']
        subprocess.run([exe] + words + exact + [f'--compat={compat}'], cwd=folder,
                       capture_output=True, check=False)
        rows = collections.defaultdict(list)
        for path in sorted(glob.glob(out + '/*.csv')):
            with open(path, newline='') as f:
                for row in csv.DictReader(f):
                    name = os.path.basename(path).rsplit('_', 1)[0]
                    rows[name, row['NPU Name']].append(row)
        return rows


def differences(exe, folder, command):
    cur, strict = (run(exe, folder, command, c) for c in ('cur', 'strict'))
    for key, rows in cur.items():
        if key[1] == 'N/A':
            yield from ((key, 'row', 2) for _ in rows)
            continue
        others = strict.get(key, [])
        if len(others) != len(rows):
            yield key, 'rows', 5 if '-fm' in command else 12 if 'parameters_grad' in key[1] else None
            continue
        for row, other in zip(rows, others):
            yield from ((key, column, n) for column, n in explain_row(row, other, command))
    yield from ((key, 'row that only strict has', None) for key in strict if key not in cur)


def tell(case, found):
    """Say which repairs explain the differences found; 1 when something is left over."""
    unexplained = [d for d in found if d[2] is None]
    by = sorted({d[2] for d in found} - {None})
    if not unexplained:
        print(f'ok {case}: {len(found)} differences by repairs', *by)
        return 0
    print(f'not ok {case}: {len(unexplained)} of {len(found)} differences are no repair')
    for key, column, _ in unexplained[:4]:
        print('   ', key, column)
    return 1


def check_random(exe, n):
    found = collections.defaultdict(list)
    pair = 'msprobe compare -tp target/step0 -gp golden/step0 -o out'
    for seed in range(n):
        mode = ('statistics', 'md5')[seed % 2]
        with tempfile.TemporaryDirectory() as top:
            folder = os.path.join(top, 'case')
            random_dump.write_pair(seed, mode == 'md5', folder)
            for more in ('', ' -cm'):
                for d in differences(exe, folder, (pair + more).split()):
                    found[mode].append(((f'seed {seed}{more}',) + d[0],) + d[1:])
    return 1 if sum(tell(f'{n // 2} random pairs of {m}', f) for m, f in found.items()) else 0


def main():
    if sys.argv[2] == '--random':
        return check_random(os.path.abspath(sys.argv[1]), int(sys.argv[3]))
    exe, golden = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    bad = 0
    for meta in sorted(glob.glob(golden + '/*/case.json')):
        case = os.path.basename(os.path.dirname(meta))
        with open(meta) as f:
            commands = [shlex.split(r['command']) for r in json.load(f)['runs']]
        commands = [c for c in commands if c[1] == 'compare' and '-da' not in c and '--xlsx' not in c]
        with tempfile.TemporaryDirectory() as top:
            folder = os.path.join(top, 'case')
            unpack(os.path.dirname(meta), folder)
            found = [d for c in commands for d in differences(exe, folder, c)]
        if commands:
            bad += tell(case, found)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
