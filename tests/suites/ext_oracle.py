"""ext_oracle.py MSPROBE FOLDER: the columns of --ext over random tensors of every type, beside numpy's figures."""
import csv
import glob
import json
import os
import subprocess
import sys

import numpy as np

MSPROBE, PLACE = sys.argv[1:3]
TYPES = ('float16', 'float32', 'float64', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'bool')
LAYOUTS = ('small', 'scaled', 'noise', 'equal', 'zeros', 'sparse')


def pair(kind, how, r):
    """A golden tensor of this type, and one that differs from it in this way."""
    shape = tuple(r.integers(2, 40, size=r.integers(1, 4)))
    golden = r.standard_normal(shape) * (1 if np.dtype(kind).kind == 'f' else 40)
    noise = r.standard_normal(shape)
    target = {'small': golden * (1 + 1e-4 * noise), 'scaled': golden * 3, 'noise': golden + noise,
              'equal': golden, 'zeros': np.where(r.random(shape) < .3, 0, golden),
              'sparse': np.where(r.random(shape) < .02, golden + 5, golden)}[how]
    if kind == 'bool':
        return golden > 0, target > 0
    if np.dtype(kind).kind in 'iu':
        info = np.iinfo(kind)
        golden, target = (np.clip(np.rint(x), info.min, info.max) for x in (golden, target))
    return golden.astype(kind), target.astype(kind)


def steps(x):
    """Numbers in the order of their bits: neighbours differ by one."""
    if x.dtype.kind != 'f':
        return x.astype(object)
    bits = x.view(f'i{x.dtype.itemsize}').astype(object)
    least = -(1 << (8 * x.dtype.itemsize - 1))
    return np.where(bits < 0, least - bits, bits)


def expected(golden, target):
    g, t = golden.ravel().astype(np.longdouble), target.ravel().astype(np.longdouble)
    d = t - g
    norm = np.sqrt((g * g).sum())
    rel = float(np.sqrt((d * d).sum()) / norm) if norm else None
    far = abs(steps(target.ravel()) - steps(golden.ravel()))
    return {'RelL2': rel, 'SQNR dB': -20 * np.log10(rel) if rel else None, 'Mean ULP': float(np.mean(far.astype(float))),
            'Max ULP': float(max(far)), 'Bit-equal ratio': float(np.mean(t == g)),
            'Bias': float(abs(d.sum()) / abs(d).sum()) if d.any() else None,
            'Scale': float((t * g).sum() / (g * g).sum()) if norm else None}


def write(seed):
    r = np.random.default_rng(seed)
    data = {'target': {}, 'golden': {}}
    want = {}
    for side in data:
        os.makedirs(f'{PLACE}/{side}/dump_tensor_data', exist_ok=True)
    for kind in TYPES:
        for how in LAYOUTS:
            op = f'Tensor.{how}.{TYPES.index(kind)}.forward'
            both = dict(zip(('golden', 'target'), pair(kind, how, r)))
            want[f'{op}.output.0'] = kind, expected(both['golden'], both['target'])
            for side, x in both.items():
                np.save(f'{PLACE}/{side}/dump_tensor_data/{op}.output.0.npy', x)
                leaf = {'type': 'mindspore.Tensor', 'dtype': kind.capitalize().replace('Uint', 'UInt'), 'shape': list(x.shape),
                        'Max': float(x.max()), 'Min': float(x.min()), 'Mean': float(x.mean()), 'Norm': 1.0,
                        'data_name': f'{op}.output.0.npy'}
                data[side][op] = {'input_args': [], 'input_kwargs': {}, 'output': [leaf]}
    for side, ops in data.items():
        with open(f'{PLACE}/{side}/dump.json', 'w', encoding='utf-8') as f:
            json.dump({'task': 'tensor', 'level': 'L1', 'framework': 'mindspore',
                       'dump_data_dir': f'{PLACE}/{side}/dump_tensor_data', 'data': ops}, f)
    return want


def differs(name, have, want):
    if want is None:
        return False  # not a number for either: how it is written is the tables' business
    try:
        got = float(have)
    except ValueError:
        return True
    return abs(got - want) > 1e-9 * max(1e-3, abs(want), 1 if name == 'Bias' else 0)


def run(seed):
    want = write(seed)
    q = subprocess.run([MSPROBE, 'compare', '-tp', f'{PLACE}/target/dump.json', '-gp', f'{PLACE}/golden/dump.json',
                        '--ext', '-o', f'{PLACE}/out'], capture_output=True, text=True, check=False)
    wrong = [] if q.returncode == 0 else [q.stderr]
    for path in glob.glob(f'{PLACE}/out/compare_result*.csv'):
        with open(path, encoding='utf-8', newline='') as f:
            table = {row['NPU Name']: row for row in csv.DictReader(f)}
        os.unlink(path)
        for name, (kind, figures) in want.items():
            row = table.get(name, {})
            wrong += [f'{kind} {name} {column}: {row.get(column)!r}, not {value!r}'
                      for column, value in figures.items() if differs(column, row.get(column, ''), value)]
    print(f'ok columns-of-ext-equal-numpy-{seed}' if not wrong else f'not ok columns-of-ext-equal-numpy-{seed}')
    print('\n'.join(wrong[:20]), end='\n' if wrong else '')
    return not wrong


sys.exit(0 if all([run(seed) for seed in (1, 2, 3)]) else 1)
