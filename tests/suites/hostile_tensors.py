#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hostile_tensors.py MSPROBE FOLDER: files of tensors that attack who reads them, one by one through
`msprobe parse`, and named by dumps through `msprobe compare`.

Each is refused with the words that are due, in bounded memory, and nothing is run or written elsewhere.
"""
import io
import json
import os
import resource
import struct
import subprocess
import sys
import zipfile

MSPROBE, PLACE = sys.argv[1:3]
os.chdir(PLACE)
MEMORY = 512 << 20  # a reader of a few bytes that reserves what a header promises is over it
BAIT = os.path.abspath('bait')
FAILED = []
with open(MSPROBE, 'rb') as program:
    CODE = program.read()
SANITIZED = b'__asan_init' in CODE or b'__tsan_init' in CODE


def check(name, fine, why=''):
    print(f'ok {name}' if fine else f'not ok {name}\n{why}', flush=True)
    FAILED.extend([] if fine else [name])


# ---- .npy -----------------------------------------------------------------------


def npy(shape, descr="'<f4'", data=b'\0' * 16, version=1):
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b'\x93NUMPY' + bytes([version, 0]) + struct.pack('<H' if version == 1 else '<I', len(head)) + head + data


# ---- pickles --------------------------------------------------------------------


def number(n):
    return b'\x8a\x08' + struct.pack('<q', n)


def numbers(some):
    return b'(' + b''.join(map(number, some)) + b't'


def text(s):
    return b'X' + struct.pack('<I', len(s)) + s


def pickled(sizes=(4,), strides=(1,), offset=0, key=b'0', stored=4):
    """What torch.save writes of a tensor of float32."""
    storage = b'((' + text(b'storage') + b'ctorch\nFloatStorage\n' + text(key) + text(b'cpu') + number(stored) + b'tQ'
    return (b'\x80\x02ctorch._utils\n_rebuild_tensor_v2\n' + storage + number(offset) + numbers(sizes) + numbers(strides)
            + b'\x89ccollections\nOrderedDict\n)RtR.')


def calls(what, argument):
    return b'\x80\x02' + what + b'\n' + text(argument) + b'\x85R.'


def pt(pickle=None, data=b'\0' * 16, more=(), method=zipfile.ZIP_STORED, prefix='x'):
    to = io.BytesIO()
    with zipfile.ZipFile(to, 'w', method) as z:
        z.writestr(f'{prefix}/data.pkl', pickle or pickled(), zipfile.ZIP_STORED)
        z.writestr(f'{prefix}/data/0', data)
        for name, content in more:
            z.writestr(name, content)
    return to.getvalue()


def many_members(n):
    return pt(more=[(f'x/data/{i}', b'') for i in range(1, n)])


TOUCH = f'touch {BAIT}'.encode()
ATTACKS = {  # name: content, words; rows of a comparison are named by the stem
    'npy_negative.npy': (npy('(-4,)'), 'expected a size'),
    'npy_negative_product.npy': (npy('(-2, -2)'), 'expected a size'),
    'npy_product.npy': (npy('(4294967296, 4294967296)'), 'does not fit'),
    'npy_product_to_16.npy': (npy('(4611686018427387905, 4)'), 'does not fit'),
    'npy_huge.npy': (npy('(1099511627776,)'), 'describes'),
    'npy_many_dims.npy': (npy('(' + '1,' * 1000 + ')'), 'too many dimensions'),
    'npy_long_header.npy': (b'\x93NUMPY\2\0' + struct.pack('<I', 0xffffffff) + b"{'descr'", 'header'),
    'npy_objects.npy': (npy('(1,)', "'|O'", calls(b'cos\nsystem', TOUCH)), 'Python objects are not read'),
    'npy_deep.npy': (npy('(' * 20000), 'expected a size'),
    'system.pt': (pt(calls(b'cos\nsystem', TOUCH)), 'unsupported object os.system'),
    'posix_system.pt': (pt(calls(b'cposix\nsystem', TOUCH)), 'unsupported object posix.system'),
    'eval.pt': (pt(calls(b'cbuiltins\neval', b'1')), 'unsupported object builtins.eval'),
    'system_alone.pt': (calls(b'cos\nsystem', TOUCH), ''),
    'negative.pt': (pt(pickled((-4,))), 'negative'),
    'negative_stride.pt': (pt(pickled((4,), (-1,), 3)), 'negative'),
    'negative_offset.pt': (pt(pickled(offset=-1)), 'no offset'),
    'product.pt': (pt(pickled((1 << 32, 1 << 32), (0, 0))), 'does not fit'),
    'product_to_4.pt': (pt(pickled(((1 << 62) + 1, 4), (0, 0))), 'does not fit'),
    'expanded.pt': (pt(pickled((1 << 40,), (0,))), 'are described but'),
    'past.pt': (pt(pickled((5,))), 'reach past the end'),
    'stride.pt': (pt(pickled((2, 2), (1 << 62, 1 << 62))), 'reach past the end'),
    'many_dims.pt': (pt(pickled((1,) * 33, (1,) * 33)), '33 dimensions'),
    'more_dims.pt': (pt(pickled((1,) * 1000, (1,) * 1000)), 'more open values'),
    'key_climbs.pt': (pt(pickled(key=b'../../0'), more=[('x/data/../../0', b'\0' * 16)]), 'without key'),
    'deep.pt': (pt(b'\x80\x02' + b']' * 30000 + b'a' * 29999 + b'.'), ''),
    'memo.pt': (pt(b'\x80\x02Nr\xff\xff\xff\x7f.'), 'remembered values'),
    'doubling.pt': (pt(b'\x80\x02]q\0' + b''.join(b']q' + bytes([i]) + (b'h' + bytes([i - 1]) + b'a') * 2 for i in range(1, 60)) + b'.'), ''),
    'bomb.pt': (pt(data=b'\0' * (64 << 20), method=zipfile.ZIP_DEFLATED), 'compressed'),
    'many_members.pt': (many_members(5000), 'members in the zip archive'),
    'program.pt': (pt(more=[('x/code/a.py', b'import os')]), 'TorchScript'),
}
READ = {  # names of members are names alone: nothing is unpacked
    'climbs.pt': pt(prefix='../../climbed'),
    'absolute.pt': pt(prefix='/tmp/msprobe-climbed'),
    'beside.pt': pt(more=[('../../climbed/file', b'x')]),
}


def bounded():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def run(*args):
    limit = None if SANITIZED else bounded  # a sanitizer reserves more than any limit
    return subprocess.run([MSPROBE, *args], capture_output=True, text=True, errors='replace', timeout=300, check=False,
                          preexec_fn=limit, stdin=subprocess.DEVNULL)


def tree():
    return sorted(os.path.join(at, f) for at, _, files in os.walk('.') for f in files)


def put(name, content):
    with open(name, 'wb') as f:
        f.write(content)


def run_parse():
    os.makedirs('in')
    for name, (content, words) in ATTACKS.items():
        put(f'in/{name}', content)
        before = tree()
        q = run('parse', '-d', f'in/{name}', '-t', 'npy', '-o', 'parsed')
        new = [f for f in tree() if f not in before]
        check(f'parse-{name}', q.returncode in (1, 3) and words in q.stderr and q.stderr != '' and not new,
              f'{q.returncode} {q.stderr} {new}')
    for name, content in READ.items():
        put(f'in/{name}', content)
        before = tree()
        q = run('parse', '-d', f'in/{name}', '-t', 'npy', '-o', 'parsed')
        new = [f for f in tree() if f not in before]
        check(f'parse-{name}', q.returncode == 0 and new == [f'./parsed/{name[:-3]}.npy'], f'{q.returncode} {q.stderr} {new}')


# ---- dumps that name them ---------------------------------------------------------


def tensor(data_name):
    return {'type': 'torch.Tensor', 'dtype': 'torch.float32', 'shape': [4], 'Max': 0.0, 'Min': 0.0, 'Mean': 0.0, 'Norm': 0.0,
            'requires_grad': False, 'data_name': data_name}


def dump(place, names):
    os.makedirs(f'{place}/dump_tensor_data')
    data = {f'Torch.add.{i}.forward': {'input_args': [tensor(n)], 'input_kwargs': {}, 'output': []} for i, n in enumerate(names)}
    with open(f'{place}/dump.json', 'w', encoding='utf-8') as f:
        json.dump({'task': 'tensor', 'level': 'L1', 'framework': 'pytorch', 'data': data,
                   'dump_data_dir': os.path.abspath(f'{place}/dump_tensor_data')}, f)


def compare(names):
    q = run('compare', '-tp', 'target/dump.json', '-gp', 'golden/dump.json', '-o', 'out')
    errors = f'{len(names)} rows: 0 pass, {len(names)} error'
    return q, errors


def run_compare():
    names = list(ATTACKS)
    for place in ('target', 'golden'):
        dump(place, names)
        for name in names:
            put(f'{place}/dump_tensor_data/{name}', ATTACKS[name][0])
    q, errors = compare(names)
    check('compare-names-attacks', q.returncode == 0 and errors in q.stdout, f'{q.returncode} {q.stdout} {q.stderr}')


def run_climbing():
    """Names in a dump.json that lead out of its folder are not followed, though there is a tensor."""
    put('good.pt', pt())
    names = ['../../good.pt', os.path.abspath('good.pt'), 'a/../../../good.pt', '..\\..\\good.pt']
    for place in ('target', 'golden'):
        os.rename(place, f'{place}.attacks')
        dump(place, names)
        os.makedirs(f'{place}/dump_tensor_data/a')
    q, errors = compare(names)
    check('compare-climbs', q.returncode == 0 and errors in q.stdout, f'{q.returncode} {q.stdout} {q.stderr}')


for part in (run_parse, run_compare, run_climbing):
    part()
check('nothing-was-run', not os.path.exists(BAIT) and not os.path.exists('/tmp/msprobe-climbed'))
sys.exit(1 if FAILED else 0)
