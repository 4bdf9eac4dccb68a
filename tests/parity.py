#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the recorded compare commands of golden cases and hold every cell against
the recorded output: parity.py MSPROBE GOLDEN.  Prints "ok NAME" or "not ok NAME"
and where it differs.  Numbers are equal within 1e-12 of the larger one, since sums
of products were taken in another order; everything else is equal as text."""
import csv
import glob
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile


def same_text(want, have):
    if want == have:
        return True
    try:
        x, y = float(want.rstrip('%')), float(have.rstrip('%'))
    except ValueError:
        return False
    return abs(x - y) <= 1e-12 * max(abs(x), abs(y))


def csv_difference(want, have):
    with open(want, newline='') as f, open(have, newline='') as g:
        w, h = list(csv.reader(f)), list(csv.reader(g))
    for i, (a, b) in enumerate(zip(w, h)):
        for name, x, y in zip(w[0], a, b):
            if not same_text(x, y):
                return f'line {i + 1}, {name}: expected {x!r}, got {y!r}'
        if len(a) != len(b):
            return f'line {i + 1}: expected {len(a)} cells, got {len(b)}'
    return '' if len(w) == len(h) else f'expected {len(w)} lines, got {len(h)}'


def json_difference(want, have, path=''):
    if type(want) is not type(have):
        return f'{path}: expected {want!r}, got {have!r}'
    if isinstance(want, dict):
        if list(want) != list(have):
            return f'{path}: other keys'
        pairs = [(k, want[k], have[k]) for k in want]
    elif isinstance(want, list):
        if len(want) != len(have):
            return f'{path}: expected {len(want)} items, got {len(have)}'
        pairs = list(zip(range(len(want)), want, have))
    else:
        both_nan = want != want and have != have
        fine = both_nan or want == have or same_text(str(want), str(have))
        return '' if fine else f'{path}: expected {want!r}, got {have!r}'
    return next((d for k, w, h in pairs if (d := json_difference(w, h, f'{path}/{k}'))), '')


def difference(want, have):
    if want.endswith('.csv'):
        return csv_difference(want, have)
    if want.endswith('.json'):
        with open(want) as f, open(have) as g:
            return json_difference(json.load(f), json.load(g))
    with open(want) as f, open(have) as g:
        return '' if f.read() == g.read() else 'other text'


def unpack(case, to):
    shutil.copytree(case, to)
    golden = os.path.join(to, 'golden')
    if not os.path.isdir(golden):  # a case that shares its golden side with another
        shutil.copytree(os.path.join(os.path.dirname(case), 'quickstart', 'target'), golden)
    for path in glob.glob(to + '/**/*.gz', recursive=True):
        with gzip.open(path) as f, open(path[:-3], 'wb') as out:
            shutil.copyfileobj(f, out)


def found_for(name, out):
    """The file that stands for expected output `name`, by its kind and rank."""
    rank = next((p[4:] for p in name.split('.') if p.startswith('rank')), None)
    if 'diff_analyze' in name:
        pattern = 'diff_analyze_*.json'
    elif 'data_mapping' in name:
        pattern = 'data_mapping*.yaml'
    else:
        pattern = f'compare_result_*rank{rank}_*' if rank else 'compare_result*'
        pattern += os.path.splitext(name)[1]
    files = glob.glob(os.path.join(out, pattern))
    return files[0] if len(files) == 1 else None


def check_run(exe, folder, case, run):
    out = os.path.join(folder, 'parity_out')
    shutil.rmtree(out, ignore_errors=True)
    words = ['parity_out' if w == 'out' else w for w in shlex.split(run['command'])[1:]]
    q = subprocess.run([exe] + words + ['--compat=strict'], cwd=folder, capture_output=True,
                       text=True)
    outputs = [o[:-3] if o.endswith('.gz') else o for o in run['outputs']]
    bad = 0
    for name in outputs:
        have = found_for(name, out)
        why = difference(os.path.join(folder, 'expected', name), have) if have else \
            f'no such file written, exit {q.returncode}: {q.stderr.strip()}'
        print(f'ok {case}/{name}' if not why else f'not ok {case}/{name}\n    {why}')
        bad += bool(why)
    analyzed = any('diff_analyze' in o for o in outputs)
    if outputs and not analyzed and glob.glob(os.path.join(out, 'diff_analyze*')):
        print(f'not ok {case}: names a first difference where the official tool has none')
        bad += 1
    return bad


def main():
    exe, golden = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    bad = 0
    for meta in sorted(glob.glob(golden + '/*/case.json')):
        case = os.path.dirname(meta)
        with open(meta) as f:
            runs = [r for r in json.load(f)['runs'] if shlex.split(r['command'])[1] == 'compare'
                    and r['exit_status'] == 0 and r['outputs']]
        if not runs:
            continue
        with tempfile.TemporaryDirectory() as top:
            folder = os.path.join(top, 'case')
            unpack(case, folder)
            for run in runs:
                bad += check_run(exe, folder, os.path.basename(case), run)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
