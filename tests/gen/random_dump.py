#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two dumps with every kind of leaf, values that are no numbers, other sides, shapes and types,
nested arguments, recomputed backwards, parameters and their gradients:
random_dump.py SEED statistics|md5 DIR."""
import json
import os
import random
import sys

NUMBERS = [0.0, -0.0, 1.0, -1.0, 3, 0, -7, 1e-5, 1e16, 123456789.12345679, 0.26045331358909607,
           2.5e-310, 1e300, -1e300, float('nan'), float('inf'), float('-inf'), None, 2**53 + 1,
           5e-324, 99999999999999990000, True, False]
TYPES = ['float32', 'float16', 'bfloat16', 'float64', 'int64', 'int32', 'bool', 'float8_e4m3fn',
         'complex64', 'uint8']
TEXTS = ['sum', 'npu:0', 'cuda:1', 'cpu', 'a,b', 'q"q', '', "it's", 'é中']
APIS = ['Torch.add', 'Functional.linear', 'Tensor.to', 'Torch.empty', 'Tensor.__setitem__',
        'Distributed.all_to_all_single', 'Distributed.batch_isend_irecv', 'Functional.qkv',
        'NPU.gate_up', 'Aten.mm']
STATISTICS = ('Max', 'Min', 'Mean', 'Norm')


class Maker:
    def __init__(self, seed, md5):
        self.r, self.md5 = random.Random(seed), md5

    def number(self):
        return self.r.choice(NUMBERS) if self.r.random() < .5 else self.r.uniform(-3, 3)

    def digest(self):
        return f'{self.r.getrandbits(32):08x}'

    def tensor(self):
        r = self.r
        kind = r.choice(TYPES) if r.random() < .2 else 'float32'
        t = {'type': 'torch.Tensor', 'dtype': f'torch.{kind}',
             'shape': [r.randint(0, 4) for _ in range(r.randint(0, 3))]}
        if r.random() < .95:
            t.update((s, self.number()) for s in STATISTICS)
        if r.random() < .8:
            t['requires_grad'] = r.random() < .5
        if self.md5:
            t['md5'] = self.digest()
        return t

    def scalar(self):
        r = self.r
        return r.choice([
            {'type': 'int', 'value': r.choice([0, 3, -1, 2**40])},
            {'type': 'float', 'value': r.choice([0.5, 1e-5, 1e20, float('nan'), -0.0, 3.0])},
            {'type': 'bool', 'value': r.random() < .5}, {'type': 'str', 'value': r.choice(TEXTS)},
            {'type': 'torch.Size', 'value': [1, 2]}, {'type': 'slice', 'value': [None, 1, 2]},
            {'type': 'ellipsis', 'value': '...'}, {'type': 'NoneType', 'value': None},
            {'type': 'torch.ProcessGroup', 'group_ranks': [0, 1], 'group_id': 'x'},
            {'type': 'torch.dtype', 'value': 'torch.float32'}, None, [], {}])

    def leaf(self, depth=0):
        r, kind = self.r, self.r.random()
        if kind < .55:
            return self.tensor()
        if kind < .85 or depth > 2:
            return self.scalar()
        if kind < .9:
            return {'class_type': 'torch.distributed.P2POp', 'op': 'isend', 'peer': r.randint(0, 3),
                    'tag': 0, 'group_id': 'g', 'tensor': self.tensor()}
        nested = [self.leaf(depth + 1), self.leaf(depth + 1)]
        return nested if kind < .95 else dict(zip('ab', nested))

    def leaves(self):
        return [self.leaf() for _ in range(self.r.randint(0, 3))]

    def record(self, name):
        if name.endswith('parameters_grad'):
            return {'weight': [self.tensor()], 'bias': [self.tensor()]}
        if 'backward' in name:
            return {'input': self.leaves(), 'output': self.leaves()}
        words = self.r.sample(['x', 'src', 'dst', 'group', 'group_src', 'alpha'], 2)
        d = {'input_args': self.leaves(), 'input_kwargs': {w: self.leaf() for w in words},
             'output': self.leaves()}
        if name.startswith('Module'):
            d['parameters'] = {'weight': self.tensor(), 'bias': self.tensor()}
        return d

    def names(self):
        r, count, names = self.r, {}, []
        for _ in range(40):
            api = r.choice(APIS)
            count[api] = count.get(api, -1) + 1
            names.append(f'{api}.{count[api]}.forward')
            if r.random() < .5:
                names.append(f'{api}.{r.randint(0, 5)}.backward')
            if r.random() < .4:
                layer = r.choice(['fc', 'fc', 'output.dense'])
                module = f'Module.layers.{r.randint(0, 2)}.{layer}.Linear'
                count[module] = count.get(module, -1) + 1
                names += [f'{module}.forward.{count[module]}',
                          f'{module}.backward.{r.randint(0, 3)}', f'{module}.parameters_grad']
        return list(dict.fromkeys(names))

    def changed(self, x):
        """The other side of a leaf."""
        r = self.r
        if isinstance(x, list):
            return [self.changed(v) for v in x]
        if not isinstance(x, dict):
            return x
        y = {k: self.changed(v) for k, v in x.items()}
        if 'type' in y and r.random() < .3:
            y.update((s, self.number()) for s in STATISTICS if s in y and r.random() < .6)
            if isinstance(y.get('value'), (int, float)):
                y['value'] = r.choice([1, 2.0, True, 7])
            if 'md5' in y:
                y['md5'] = self.digest()
            if 'dtype' in y and r.random() < .2:
                y['dtype'] = 'torch.' + r.choice(TYPES)
            if 'shape' in y and r.random() < .2:
                y['shape'] = y['shape'][::-1] or [7]
            if 'requires_grad' in y and r.random() < .3:
                y['requires_grad'] = not y['requires_grad']
        return y

    def golden(self, target):
        r, golden = self.r, {}
        for name, record in target.items():
            kind = r.random()
            if kind < .06:
                continue
            name = name.replace('fc', 'fd') if kind < .1 else name
            golden[name] = self.changed(record) if r.random() < .6 else record
            if r.random() < .05:
                golden[f'Torch.extra.{len(golden)}.forward'] = self.record('Torch.extra')
        return golden


def write_pair(seed, md5, folder):
    m = Maker(seed, md5)
    target = {n: m.record(n) for n in m.names()}
    for side, data in (('target', target), ('golden', m.golden(target))):
        place = os.path.join(folder, side, 'step0', 'rank0')
        os.makedirs(place)
        with open(place + '/dump.json', 'w', encoding='utf-8') as f:
            json.dump({'task': 'statistics', 'level': 'mix', 'framework': 'pytorch',
                       'dump_data_dir': None, 'data': data}, f)
        if seed % 2:
            with open(place + '/stack.json', 'w', encoding='utf-8') as f:
                json.dump({str(i): [[n], [f'File a{i}.py, line 1, in f, \n x=1']]
                           for i, n in enumerate(data)}, f)


if __name__ == '__main__':
    write_pair(int(sys.argv[1]), sys.argv[2] == 'md5', sys.argv[3])
