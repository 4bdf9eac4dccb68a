# SPDX-License-Identifier: MIT
"""More random pairs for compare_oracle.py: tensors of two frameworks, of training against
inference and of ATB."""
import os

from oracle_pairs import (ATB_HEAD, KINDS, PT, Maker, array, consistent_run, files,
                          leaves, named_leaves, nudge, random_pair, save, save_tensors, write)

# ---- MSAdapter, and tensors of two frameworks ------------------------------------


def msadapter(r, top):
    """MindSpore that speaks PyTorch: its operators, with tensors and types of either."""
    checks = r.random() < 0.3
    target, golden = random_pair(r, top, framework='mindtorch', checksums=checks)
    for side, data in (('t', target), ('g', golden)):
        for leaf in [x for op in data.values() for x in leaves(op) if 'dtype' in x]:
            leaf['type'] = 'mindspore.Tensor'
            if side == 'g' and r.random() < 0.1:
                leaf['dtype'] = r.choice(PT)
        framework = 'mindtorch' if side == 't' else r.choice(['mindspore', 'pytorch'])
        write('%s/%s' % (top, side), data, framework=framework)
    return files(top, *r.choice([[], [], ['-am'], ['-cm'], ['--xlsx']]))


def to_pytorch(r, folder, data):
    """The files of a side as PyTorch writes them."""
    import numpy as np
    for name, op in data.items():
        for path, leaf in named_leaves(name, op):
            if 'dtype' not in leaf:
                continue
            leaf['type'] = 'torch.Tensor'
            leaf['dtype'] = 'torch.' + leaf['dtype'].rsplit('.', 1)[-1].lower()
            file = folder + '/dump_tensor_data/' + (leaf.get('data_name') or '')
            if not file.endswith('.npy'):
                continue
            leaf['data_name'] = leaf['data_name'][:-4] + '.pt'
            if os.path.exists(file):
                save(file[:-4] + '.pt', np.load(file), '')


def across_tensors(r, top):
    framework = r.choice(['mindspore', 'mindtorch'])
    target = Maker(r, framework=framework).run(r.randint(1, 12))
    golden = save_tensors(r, top, target, 'mindspore')
    to_pytorch(r, top + '/g', golden)
    write(top + '/t', target, 'tensor', framework=framework)
    write(top + '/g', golden, 'tensor')
    return files(top, *r.choice([[], [], ['-am'], ['-cm']]))


# ---- training against inference, with tensors and checksums ------------------------


def parts_of(name):
    """How many operators of training are this one of inference."""
    return 3 if 'qkv_proj' in name else 2 if 'gate_up' in name else 1


def save_consistent(r, folder, data, training):
    os.makedirs(folder + '/dump_tensor_data', exist_ok=True)
    for name, op in data.items():
        parts = 1 if training else parts_of(name)
        for path, leaf in named_leaves(name, op):
            rows, columns = (4, 3 * parts) if '.output.' in path else (3 * parts, 4) \
                if '.parameters.' in path else (4, 3)
            x = array(r, 'float32', [rows, columns] if r.random() < 0.9 else r.choice(
                [[rows], [rows + 1, columns], [1, rows, columns]]))
            leaf.update(dtype='torch.float32', shape=list(x.shape), data_name=path + '.pt')
            if r.random() < 0.97:
                save('%s/dump_tensor_data/%s.pt' % (folder, path), x, 'float32')


def consistent_tensors(r, top):
    backend = r.choice(['fsdp', 'megatron'])
    maker = Maker(r, plain=True)
    for side in 'tg':
        data = consistent_run(r, maker, backend, side == 't')
        save_consistent(r, '%s/%s' % (top, side), data, side == 't')
        write('%s/%s' % (top, side), data, 'tensor')
    return files(top, '--consistent_check', '--backend', backend, *r.choice([[], [], ['--xlsx']]))


def consistent_checksums(r, top):
    backend = r.choice(['fsdp', 'megatron'])
    maker = Maker(r, checksums=True)
    for side in 'tg':
        write('%s/%s' % (top, side), consistent_run(r, maker, backend, side == 't'))
    return files(top, '--consistent_check', '--backend', backend)


# ---- tensors of ATB --------------------------------------------------------------

ATB_TYPES = {0: 'float32', 1: 'float16', 2: 'int8', 3: 'int32', 9: 'int64', 12: 'bool'}


def atb_file(r, path, x, code):
    head = ['$Version=1.0', '$Object.Count=1', '$Object.Length=%d' % x.nbytes, 'format=2',
            'dtype=%d' % code, 'dims=' + ','.join(map(str, x.shape)),
            '$Object.data=0,%d' % x.nbytes, '$End=1']
    text = '\n'.join(head) + '\n'
    if r.random() < 0.03:
        text = r.choice([text.replace('$End=1\n', ''), text.replace('dims=', 'dims=x'), '',
                         text.replace('dtype=', 'dtype=4')])
    data = x.tobytes()
    with open(path, 'wb') as f:
        f.write(text.encode() + (data if r.random() < 0.97 else data[:-1]))


def atb_tensor_side(r, folder, tensors):
    """statistic.csv with the files it names; the first line says of what kind all are."""
    os.makedirs(folder)
    lines = [','.join(ATB_HEAD)]
    for i, (key, x, code) in enumerate(tensors):
        if i > 0 and r.random() < 0.08:
            continue
        name = '%s_%s_%d.bin' % (key[0].replace('/', '_'), key[2], i)
        if r.random() < 0.97:
            atb_file(r, '%s/%s' % (folder, name), x if folder[-1] == 't' else nudge(r, x), code)
        where = 'N/A' if i > 0 and r.random() < 0.03 else '/d/atb_dump_data/0_1/2/3/' + name
        lines.append(','.join(['0_12', '0', key[0], 'T', key[1], key[2], str(key[3]), 'float',
                               'nd', '2x3', '1', '2', '3', '4', where]))
    with open(folder + '/statistic.csv', 'w') as f:
        f.write('\n'.join(lines) + '\n')


def atb_tensors(r, top):
    tensors = []
    for i in range(r.randint(2, 10)):
        code = r.choice(list(ATB_TYPES))
        x = array(r, 'float32' if code in (0, 1) else 'bool' if code == 12 else 'int32',
                  r.choice([[2, 3], [5], [1], [4, 1, 2], [64]]))
        key = ('/'.join('Op%d' % r.randint(0, 3) for _ in range(2)), '%d_%d' % (i, r.randint(0, 4)),
               r.choice(['input', 'output']), r.randint(0, 2))
        x = x * 1000 if code == 1 else x  # sums of tiny float16 are far off there
        tensors.append((key, x.astype(ATB_TYPES[code]), code))
    for side in 'tg':
        atb_tensor_side(r, '%s/%s' % (top, side), tensors)
    return ['compare', '-m', 'atb', '-tp', top + '/t', '-gp', top + '/g']


KINDS.update({f.__name__: f for f in (
    msadapter, across_tensors, consistent_tensors, consistent_checksums,
    atb_tensors)})
