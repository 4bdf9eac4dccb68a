#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the recorded compare commands of golden cases and hold every cell against
the recorded output: parity.py MSPROBE GOLDEN.  Prints "ok NAME" or "not ok NAME"
and where it differs.  Numbers are equal within 1e-12 of the larger one, since sums
of products were taken in another order; differences of statistics within 1e-12 of
what they are differences of; everything else is equal as text.  Cases of msprobe 1
(msprobe -f pytorch compare) are run as they are written, all others as strict."""
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
import xml.etree.ElementTree
import zipfile

STATISTIC = {'Max': 'max', 'Min': 'min', 'Mean': 'mean', 'L2norm': 'l2norm', 'Norm': 'l2norm'}
STATISTIC_WORDS = ('max', 'min', 'mean', 'l2norm')


def number(text):
    try:
        return float(text.rstrip('%'))
    except ValueError:
        return None


def slack(column, row):
    """What digits that pandas has lost make of a difference of statistics, or of its ratio."""
    word = next((w for w in STATISTIC if column.startswith(w)), None)
    if word is None or f'NPU {STATISTIC[word]}' not in row or not column.endswith(('diff', 'Err')):
        return 0
    npu, bench = (abs(number(row[f'{side} {STATISTIC[word]}']) or 0) for side in ('NPU', 'Bench'))
    lost = 1e-12 * max(npu, bench)
    return lost if 'diff' in column else 100 * lost / bench if bench else 0


def same_text(want, have):
    if want == have:
        return True
    try:
        x, y = float(want.rstrip('%')), float(have.rstrip('%'))
    except ValueError:
        return False
    return abs(x - y) <= 1e-12 * max(abs(x), abs(y))


def sums_of_type(column, row):
    if 'Golden Mean' in row:
        return column.endswith(('Mean', 'Norm'))
    return 'Cosine' in row and 'NPU Requires_grad' not in row and column in [
        f'{side} {word}' for side in ('NPU', 'Bench') for word in STATISTIC_WORDS]


def same_cell(column, want, have, row):
    if same_text(want, have):
        return True
    x, y = number(want), number(have)
    if x is None or y is None:
        return False
    # figures of tensors of ATB and of kernels are taken in the type of the tensor there
    own = 0.01 * max(abs(x), abs(y)) if sums_of_type(column, row) else 0
    return abs(x - y) <= max(slack(column, row), own)


def csv_table(path):
    with open(path, newline='') as f:
        return list(csv.reader(f))


def cell_text(cell, shared):
    ns = '{http://schemas.openxmlformats.org/spreadsheetml/2006/main}'
    if cell.get('t') == 's':
        return shared[int(cell.find(ns + 'v').text)]
    if cell.get('t') == 'inlineStr':
        return ''.join(t.text or '' for t in cell.iter(ns + 't'))
    value = cell.find(ns + 'v')
    if cell.get('t') == 'b':
        return str(value.text == '1')
    return '' if value is None else value.text


def sheets_of(path):
    with zipfile.ZipFile(path) as book:
        return sum(name.startswith('xl/worksheets/sheet') for name in book.namelist())


def xlsx_table(path, number=1):
    """The cells of a sheet as text, with empty ones where the file leaves them out."""
    ns = '{http://schemas.openxmlformats.org/spreadsheetml/2006/main}'
    rows = []
    with zipfile.ZipFile(path) as book:
        shared = []
        if 'xl/sharedStrings.xml' in book.namelist():
            root = xml.etree.ElementTree.fromstring(book.read('xl/sharedStrings.xml'))
            shared = [''.join(t.text or '' for t in si.iter(ns + 't')) for si in root]
        sheet = xml.etree.ElementTree.fromstring(book.read(f'xl/worksheets/sheet{number}.xml'))
    for row in sheet.iter(ns + 'row'):
        cells = []
        for cell in row:
            column = 0
            for letter in cell.get('r').rstrip('0123456789'):
                column = column * 26 + ord(letter) - ord('A') + 1
            cells += [''] * (column - 1 - len(cells)) + [cell_text(cell, shared)]
        rows.append(cells)
    return [r + [''] * (len(rows[0]) - len(r)) for r in rows]


def spelled_whole(text):
    return text.removeprefix('-').removesuffix('%').isdigit()


def spelling_difference(w, h):
    """Where one table of text has 3 and the other 3.0; files of kernels are shown as doubles."""
    if 'NPU Requires_grad' not in w[0]:
        return ''
    return next((f'line {i + 1}, {name}: expected {x!r}, got {y!r}'
                 for i, (a, b) in enumerate(zip(w, h)) for name, x, y in zip(w[0], a, b)
                 if spelled_whole(x) != spelled_whole(y) and number(x) is not None), '')


def table_difference(w, h):
    for i, (a, b) in enumerate(zip(w, h)):
        for name, x, y in zip(w[0], a, b):
            row = dict(zip(w[0], a))
            if not same_cell(name, x, y, row) and not repaired(name, x, y, row):
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


def repaired(column, want, have, row):
    """What msprobe 1 says up to sixteen times we say once, a row without a partner is not pass, a
    NaN is red, as it was meant to be, and zeros of float16 are equal, not NaN."""
    nan = 'maximum or minimum is nan, -inf, or inf'
    zero = next((h + '. ' for h in have.split('. ') if '0-d tensor' in h), None)
    if column == 'Result':  # of a row without a partner
        return (want, have, row['Bench Name']) == ('pass', 'N/A', 'N/A')
    if column == 'Err_message' and zero and want.count(zero) == 16:
        once, reasons = have.replace(zero, '').partition('\n')[::2]
        said, seen = want.replace(zero, '').partition('\n')[::2]
        return reasons == seen and said in (once, once * 4)
    if row.get('NPU Dtype') == 'torch.float16' and 'Accuracy Reached or Not' in row:
        return column in ('MaxRelativeErr', 'Err_message') or column.endswith('Err Ratio')
    return column == 'Err_message' and nan in have and 'Nan' in (row.get('NPU max'),
                                                                 row.get('NPU min'))


def difference(want, have):
    if want.endswith('.csv'):
        w, h = csv_table(want), csv_table(have)
        return table_difference(w, h) or spelling_difference(w, h)
    if want.endswith('.xlsx'):
        tables = ((xlsx_table(want, i), xlsx_table(have, i)) for i in range(
            1, min(sheets_of(want), sheets_of(have)) + 1))
        return next((d for w, h in tables if (d := table_difference(w, h))), '')
    if 'advisor' in want:  # the advice itself is in words of our own
        with open(want) as f, open(have) as g:
            same = f.read().split('Expert')[0] == g.read().split('Expert')[0]
        return '' if same else 'another line or node'
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
    elif 'advisor' in name:
        pattern = 'advisor*.txt'
    elif 'data_mapping' in name:
        pattern = 'data_mapping*.yaml'
    else:
        pattern = f'*compare_result_*rank{rank}_*' if rank else '*compare_result*'
        pattern += os.path.splitext(name)[1]
    files = glob.glob(os.path.join(out, pattern))
    return files[0] if len(files) == 1 else None


def check_run(exe, folder, case, run):
    out = os.path.join(folder, 'parity_out')
    shutil.rmtree(out, ignore_errors=True)
    words = ['parity_out' if w == 'out' else w for w in shlex.split(run['command'])[1:]]
    strict = [] if words[0] == '-f' else ['--compat=strict']
    q = subprocess.run([exe] + words + strict, cwd=folder, capture_output=True, text=True)
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
            runs = [r for r in json.load(f)['runs'] if 'compare' in shlex.split(r['command'])[1:4]
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
