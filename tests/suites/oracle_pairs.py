# SPDX-License-Identifier: MIT
"""Random pairs of dumps for compare_oracle.py: make(KIND, SEED, FOLDER) writes a pair and says
with which words both tools are to compare it."""
import copy
import json
import os
import random
import struct

PT = ['torch.float32', 'torch.float16', 'torch.bfloat16', 'torch.int64',
      'torch.int32', 'torch.bool', 'torch.float8_e4m3fn', 'torch.complex64', 'torch.complex128',
      'torch.int8', 'torch.uint8', 'torch.qint8', 'torch.half']
MS = ['Float32', 'Float16', 'BFloat16', 'Int64', 'Int32', 'Bool', 'Int4', 'Complex64', 'Int8']
SHAPES = [[], [1], [3], [2, 3], [4, 5, 1], [1, 8], [0], [2, 1, 3, 2]]
APIS = ['Functional.linear', 'Torch.add', 'Tensor.__getitem__', 'Tensor.to', 'Torch.empty',
        'Distributed.all_reduce', 'Distributed._all_gather_base', 'Distributed.batch_isend_irecv',
        'NPU.npu_fusion_attention', 'Tensor.__setitem__', 'Torch.matmul', 'VF.dropout', 'Aten.mm']
MS_APIS = ['Mint.add', 'MintFunctional.linear', 'Functional.matmul', 'Tensor.reshape',
           'Primitive.rms_norm', 'Functional.flash_attention_score', 'Functional.softmax',
           'Tensor.view', 'Mint.split', 'Functional.relu', 'Functional.cos']
PT_OF_MS = {'Mint.add': 'Torch.add', 'MintFunctional.linear': 'Functional.linear',
            'Functional.matmul': 'Torch.matmul', 'Functional.softmax': 'Functional.softmax',
            'Functional.flash_attention_score': 'NPU.npu_fusion_attention',
            'Mint.split': 'Torch.split', 'Functional.relu': 'Functional.relu'}
MODULES = ['model.embed.Embedding', 'model.layers.0.attn.qkv.Linear', 'model.layers.0.attn.Attn',
           'model.layers.0.mlp.gate_up.Linear', 'model.layers.0.Block', 'model.layers.1.Block',
           'model.norm.RMSNorm', 'model.head.Linear', 'model.GPT']


def f32(x):
    return struct.unpack('<f', struct.pack('<f', x))[0]


class Maker:
    """Leaves, operators and runs of one task and framework, drawn by one seed."""

    def __init__(self, r, task='statistics', framework='pytorch', checksums=False, plain=False,
                 numbered=True):
        self.r, self.task, self.framework = r, task, framework
        self.checksums, self.plain = checksums, plain
        self.numbered = numbered  # gradients, which msprobe 1 does not read, nor names twice
        self.word = 'torch' if framework != 'mindspore' else 'mindspore'
        self.calls = {}

    def figure(self):
        r = self.r
        if self.plain or r.random() < 0.85:
            return f32(r.choice([r.gauss(0, 1), r.gauss(0, 1e-6), r.uniform(0, 1e5), 0.0, -0.0,
                                 1.0]))
        return r.choice([float('nan'), float('inf'), float('-inf'), None, 3, 0, True, 1e300, 1e16,
                         123456789.12345679, 5e-324, 2 ** 63, 'cpu', 'nan', 'inf', '2.5', ''])

    def tensor(self):
        r = self.r
        leaf = {'type': self.word + '.Tensor',
                'dtype': r.choice((PT if self.word == 'torch' else MS)[:4 if self.plain else None]),
                'shape': r.choice(SHAPES)}
        for key in ('Max', 'Min', 'Mean', 'Norm'):
            if r.random() < 0.98:
                leaf[key] = self.figure()
        if self.word == 'torch' or r.random() < 0.2:
            leaf['requires_grad'] = r.random() < 0.5
        if self.checksums and r.random() < 0.97:
            leaf['md5'] = '%08x' % r.getrandbits(32)
        return leaf

    def scalar(self):
        r = self.r
        value = r.choice([3, 0, -7, 2.5, 1e-8, True, False, 'mean', 'cpu', 'npu:0', 'a,b "c"',
                          'two\nlines', 'ü', '', None, 1e400, float('nan'), 10 ** 20, -2 ** 63 - 1,
                          2 ** 64 - 1, 'x' * 300, ' 7 ', 'N/A', 'nan', 'None', '1e3', '\u200b',
                          'a' + '=+-@', '\t'])
        return {'type': type(value).__name__, 'value': value}

    def special(self):
        r = self.r
        return r.choice([
            {'type': 'torch.Size', 'value': [2, 3]}, {'type': 'slice', 'value': [None, 3, None]},
            {'type': 'torch.Size', 'value': []}, {'type': 'slice', 'value': [None, None, None]},
            {'type': 'torch.Size', 'value': ['\u200b', "it's", None, True, 1e-7, {'a': []}]},
            {'type': 'slice', 'value': [0, 10, 2]}, {'type': 'ellipsis', 'value': '...'},
            {'type': 'torch.ProcessGroup', 'group_ranks': [0, 1], 'group_id': 'g'},
            {'type': 'torch.dtype', 'value': 'torch.float32'},
            {'type': 'torch.device', 'value': 'cuda:0'},
            {'type': 'function', 'value': 'f'}, {'type': 'int'}, {'type': 'x', 'dtype': 'y'},
            None, {}, []])

    def value(self, depth=0):
        r, x = self.r, self.r.random()
        if x < 0.62:
            return self.tensor()
        if x < 0.78:
            return self.scalar()
        if x < 0.86:
            return self.special()
        if depth > 2:
            return None
        if x < 0.93:
            return [self.value(depth + 1) for _ in range(r.randint(0, 3))]
        return {r.choice(['x', 'src', 'dst', 'mask', 'group', 'ab', '0', 'a.b', 'ü', 'k' * 90,
                          'input', 'output', 'group_src']): self.value(depth + 1)
                for _ in range(r.randint(0, 2))}

    def sections(self, direction, module):
        r, made = self.r, {}
        if direction == 'forward':
            made['input_args'] = [self.value() for _ in range(r.randint(0, 3))]
            made['input_kwargs'] = {k: self.value() for k in
                                    r.sample(['dim', 'src', 'dst', 'group', 'weight', 'op'],
                                             r.randint(0, 2))}
        else:
            made['input'] = [self.value() for _ in range(r.randint(0, 2))]
        if self.numbered and self.task == 'statistics' and r.random() < 0.05:  # of one name
            made.setdefault('input', [self.value() for _ in range(2)])
            made.setdefault('input_args', [self.value()])
        made['output'] = [self.value() for _ in range(r.randint(0, 2))]
        if module and r.random() < 0.5:
            made['parameters'] = {k: self.tensor() for k in ('weight', 'bias')[:r.randint(1, 2)]}
        if r.random() < 0.1:
            made['is_recompute'] = r.random() < 0.5
        return made

    def call(self, name, direction):
        n = self.calls.get((name, direction), 0)
        self.calls[name, direction] = n + 1
        return n

    def operator(self):
        r = self.r
        direction = r.choice(['forward', 'forward', 'backward'])
        if r.random() < 0.35:
            top = 'Module' if self.word == 'torch' else 'Cell'
            module = '%s.%s' % (top, r.choice(MODULES))
            if r.random() < 0.2:
                tail = r.choice(['', '.0', '.1']) if self.numbered else ''
                return module + '.parameters_grad' + tail, \
                    {k: [self.tensor()] for k in ('weight', 'bias')[:r.randint(1, 2)]}
            name = '%s.%s.%d' % (module, direction, self.call(module, direction))
            return name, self.sections(direction, True)
        api = r.choice(APIS if self.word == 'torch' else MS_APIS)
        name = '%s.%d.%s' % (api, self.call(api, direction), direction)
        return name, self.sections(direction, False)

    def run(self, size):
        return dict(self.operator() for _ in range(size))


def leaves(value):
    if isinstance(value, dict) and isinstance(value.get('type'), str):
        yield value
    elif isinstance(value, (list, dict)):
        for x in value if isinstance(value, list) else value.values():
            yield from leaves(x)


def disturb(r, maker, data, much=0.25):
    """The other side: the same run with a few leaves, sections and operators that are not."""
    other = {}
    for name, op in copy.deepcopy(data).items():
        x = r.random()
        if x < 0.06 * much * 4:
            continue
        if x < 0.1 * much * 4:
            name, op = maker.operator()
        for leaf in leaves(op):
            if r.random() < much:
                change_leaf(r, maker, leaf)
        if r.random() < 0.08 and isinstance(op.get('output'), list):
            op['output'].append(maker.value())
        other[name] = op
    if r.random() < 0.2:
        items = list(other.items())
        i, j = r.randrange(len(items) or 1), r.randrange(len(items) or 1)
        if items:
            items[i], items[j] = items[j], items[i]
        other = dict(items)
    return other


def change_leaf(r, maker, leaf):
    if 'dtype' not in leaf:
        if 'value' in leaf and not isinstance(leaf['value'], list):
            leaf.update(maker.scalar())
        return
    key = r.choice(['Max', 'Min', 'Mean', 'Norm', 'Norm', 'all', 'dtype', 'shape', 'requires_grad',
                    'md5'])
    if key == 'all':
        for k in ('Max', 'Min', 'Mean', 'Norm'):
            if isinstance(leaf.get(k), float):
                leaf[k] = f32(min(leaf[k], 1e38) * r.choice([1 + 1e-4, 1.04, 1.3, 2, -1]))
    elif key in ('dtype', 'shape'):
        leaf[key] = maker.tensor()[key]
    elif key in leaf:
        new = maker.tensor()
        if key in new:
            leaf[key] = new[key]


def stacks(r, data):
    """By groups, as msprobe 26 writes them, by names, as older ones did, or neither well."""
    made, shape = {}, r.choice(['groups'] * 5 + ['names', 'odd'])
    for name in data:
        i = len(made) + (shape == 'odd' and not made and r.random() < 0.5)
        lines = ['File /m/%d.py, line %d, in forward, \n x = "%s"' % (
            r.randint(0, 3), i, r.choice(['a', "it's", 'ü', '\u200b']))]
        if r.random() < 0.8:
            made[name if shape == 'names' else str(i)] = \
                lines if shape == 'names' else [[name], lines]
        if shape == 'odd' and r.random() < 0.3:
            made[r.choice(['0', 'x', str(len(data) + i)])] = r.choice(
                [None, 5, 'text', [], {}, [[name]], [[name], lines, 1], [name, lines]])
    return made


def write(folder, data, task='statistics', level='mix', framework='pytorch', stack=None,
          name='dump.json', **other):
    os.makedirs(folder, exist_ok=True)
    top = {'task': task, 'level': level, 'framework': framework, 'dump_data_dir': None,
           'data': data, **other}
    if framework is None:
        del top['framework']
    with open('%s/%s' % (folder, name), 'w') as f:
        json.dump(top, f, indent=1)
    if stack is not None:
        with open(folder + '/stack.json', 'w') as f:
            json.dump(stack, f)


def files(top, *more):
    return ['compare', '-tp', top + '/t/dump.json', '-gp', top + '/g/dump.json', *more]


def random_pair(r, top, size=None, framework='pytorch', checksums=False, sub='', **more):
    maker = Maker(r, framework=framework, checksums=checksums, **more)
    target = maker.run(size or r.randint(1, 25))
    if checksums:  # one that the official tool finds: it does not look into maps
        target['Torch.end.0.forward'] = {'output': [{**maker.tensor(), 'md5': '12345678'}]}
    golden = disturb(r, maker, target, r.choice([0.02, 0.15, 0.4]))
    if r.random() < 0.5:
        target, golden = golden, target
    write(top + '/t' + sub, target, framework=framework,
          stack=stacks(r, target) if r.random() < 0.5 else None)
    write(top + '/g' + sub, golden, framework=framework)
    return target, golden


def statistics(r, top):
    random_pair(r, top)
    return files(top)


def checksums(r, top):
    random_pair(r, top, checksums=True)
    return files(top)


def workbook(r, top):
    random_pair(r, top, checksums=r.random() < 0.3)
    return files(top, '--xlsx')


def mindspore(r, top):
    random_pair(r, top, framework='mindspore', checksums=r.random() < 0.3)
    return files(top, *r.choice([[], ['-am'], ['-cm']]))


# ---- tensors --------------------------------------------------------------


def array(r, dtype, shape):
    import numpy as np
    g = np.random.default_rng(r.getrandbits(32))
    x = g.normal(0, r.choice([1e-3, 1, 1, 100]), shape)
    if r.random() < 0.15 and x.size:
        x.flat[r.randrange(x.size)] = r.choice([np.nan, np.inf, -np.inf, 0])
    if r.random() < 0.1:
        x = np.zeros_like(x)
    if dtype in ('bool', 'int32', 'int64', 'uint8'):
        x = np.nan_to_num(x, posinf=3, neginf=-3) * (1 if dtype == 'bool' else 10)
        x = np.abs(x) if dtype == 'uint8' else x
        return (x > 0) if dtype == 'bool' else x.astype(dtype)
    return x.astype(np.float32 if dtype == 'bfloat16' else dtype)


def nudge(r, x):
    """Another array of the same kind that is a little different."""
    import numpy as np
    how = r.random()
    if how < 0.35 or x.size == 0:
        return x
    if how < 0.45:
        return x.reshape(-1) if r.random() < 0.5 else x[None]
    if x.dtype.kind in 'iub':
        y = x.copy()
        y.flat[r.randrange(y.size)] = 1
        return y
    g = np.random.default_rng(r.getrandbits(32))
    noise = g.normal(0, r.choice([1e-7, 1e-4, 3e-3, 0.05, 1]), x.shape)
    return (x * (1 + noise)).astype(x.dtype)


def save(path, x, dtype):
    import numpy as np
    if path.endswith('.npy'):
        np.save(path, x)
        return
    import torch
    t = torch.from_numpy(np.array(x))
    torch.save(t.to(torch.bfloat16) if dtype == 'bfloat16' else t, path)


def named_leaves(path, value):
    """(row name, leaf) as the official tools name files."""
    if isinstance(value, dict) and isinstance(value.get('type'), str):
        yield path, value
    elif isinstance(value, (list, dict)):
        for k, v in enumerate(value) if isinstance(value, list) else value.items():
            word = {'input_args': 'input', 'input_kwargs': 'input'}.get(k, k)
            yield from named_leaves('%s.%s' % (path, word), v)


def save_tensors(r, top, data, framework):
    """Two runs of `data`: the leaves get files, those of the second nudged, some of them lost."""
    kinds = ['float32', 'float32', 'float16', 'int64', 'bool', 'int32', 'float64'] + (
        ['bfloat16', 'uint8'] if framework == 'pytorch' else [])
    extension = '.pt' if framework == 'pytorch' else '.npy'
    other = copy.deepcopy(data)
    for side in 'tg':
        os.makedirs('%s/%s/dump_tensor_data' % (top, side), exist_ok=True)
    for name, op in data.items():
        for (path, leaf), (_, twin) in zip(named_leaves(name, op), named_leaves(name, other[name])):
            if 'dtype' in leaf and r.random() < 0.95:
                save_pair(r, top, path + extension, r.choice(kinds), leaf, twin)
    return other


def save_pair(r, top, file, dtype, *pair):
    x = array(r, dtype, r.choice(SHAPES + [[5, 7], [64]]))
    for side, leaf in zip('tg', pair):
        if r.random() < 0.02 and dtype == 'float32':
            dtype, x = 'float16', x.astype('float16')
        x = x if side == 't' else nudge(r, x)
        word = leaf['type'].split('.')[0]
        leaf['dtype'] = 'torch.' + dtype if word == 'torch' else dtype.capitalize()
        leaf['shape'] = list(x.shape)
        leaf['data_name'] = file
        if r.random() < 0.03:
            leaf['data_name'] = r.choice([None, '', '-1', 'absent' + os.path.splitext(file)[1]])
        if r.random() < 0.98:
            save('%s/%s/dump_tensor_data/%s' % (top, side, file), x, dtype)


def tensor_pair(r, top, framework, **more):
    maker = Maker(r, 'tensor', framework, **more)
    target = maker.run(r.randint(1, 12))
    golden = save_tensors(r, top, target, framework)
    for name in [n for n in golden if r.random() < 0.05]:
        del golden[name]
    write(top + '/t', target, 'tensor', framework=framework,
          stack=stacks(r, target) if r.random() < 0.5 else None)
    write(top + '/g', golden, 'tensor', framework=framework)


def tensors(r, top):
    tensor_pair(r, top, 'pytorch')
    return files(top, *r.choice([[], [], ['-fm'], ['--xlsx']]))


def arrays(r, top):
    tensor_pair(r, top, 'mindspore')
    return files(top)


# ---- debug.json, ranks, steps -----------------------------------------------


def debug(r, top):
    maker = Maker(r, checksums=r.random() < 0.3)
    target = {'%s.%d.debug' % (r.choice(['x', 'loss', 'a.b', 'grad_x']), i): maker.value()
              for i in range(r.randint(1, 12))}
    golden = copy.deepcopy(target)
    for name in list(golden):
        if r.random() < 0.1:
            del golden[name]
        for leaf in leaves(golden.get(name)):
            if r.random() < 0.3:
                change_leaf(r, maker, leaf)
    for side, data in (('t', target), ('g', golden)):
        write('%s/%s' % (top, side), data, level='debug', name='debug.json')
    return ['compare', '-tp', top + '/t/debug.json', '-gp', top + '/g/debug.json'] + (
        ['--xlsx'] if r.random() < 0.2 else [])


def ranks(r, top):
    numbers = sorted(r.sample([0, 1, 2, 3, 8, 10], r.randint(1, 3)))
    checks = r.random() < 0.3
    for n in numbers:
        random_pair(r, top, r.randint(1, 8), checksums=checks, sub='/rank%d' % n)
    if r.random() < 0.3:
        os.makedirs(top + '/t/logs')
    if r.random() < 0.2:
        os.unlink('%s/g/rank%d/dump.json' % (top, r.choice(numbers)))
    return ['compare', '-tp', top + '/t', '-gp', top + '/g']


def processes(r, top):
    random_pair(r, top, 6, sub='/proc1234')
    return ['compare', '-tp', top + '/t', '-gp', top + '/g']


def mixed(r, top):
    for folder in r.sample(['graph', 'pynative'], r.randint(1, 2)):
        for step in r.sample(range(3), r.randint(1, 2)):
            random_pair(r, top, r.randint(1, 6), framework='mindspore',
                        sub='/%s/step%d/rank0' % (folder, step))
    return ['compare', '-tp', top + '/t', '-gp', top + '/g']


# ---- mappings -----------------------------------------------------------------


def renamed(name):
    parts = name.split('.')
    api = '.'.join(parts[:2])
    if parts[0] == 'Cell':
        return name.replace('Cell', 'Module', 1)
    return name.replace(api, PT_OF_MS.get(api, api), 1)


def cross_pair(r, top, **more):
    maker = Maker(r, framework='mindspore', **more)
    target = maker.run(r.randint(2, 20))
    pt = Maker(r)
    golden = {}
    for name, op in copy.deepcopy(target).items():
        if r.random() < 0.1:
            continue
        for leaf in leaves(op):
            if 'dtype' in leaf:
                leaf['type'] = 'torch.Tensor'
                leaf['dtype'] = 'torch.' + leaf['dtype'].lower()
                leaf['requires_grad'] = False
                if r.random() < 0.2:
                    change_leaf(r, pt, leaf)
        golden[renamed(name) if r.random() < 0.9 else name] = op
    write(top + '/t', target, framework='mindspore')
    write(top + '/g', golden)
    return target, golden


def across(r, top):
    cross_pair(r, top)
    return files(top, *r.choice([[], ['-am'], ['-cm']]))


def yaml_text(value, indent=''):
    """A YAML block of lists and maps of plain words."""
    if isinstance(value, dict):
        return ''.join('%s%s: %s' % (indent, k,
                                     scalar_text(v, indent)) for k, v in value.items())
    return ''.join('%s- %s' % (indent, yaml_text(v, indent + '  ').lstrip()) for v in value)


def scalar_text(value, indent):
    if isinstance(value, dict):
        return '\n' + yaml_text(value, indent + '  ')
    return json.dumps(value) + '\n'


def api_mapping(r, top):
    cross_pair(r, top)
    entries = []
    for ms in r.sample(MS_APIS, r.randint(1, 5)):
        n = r.randint(0, 3)
        entries.append({'ms_api': ms, 'pt_api': PT_OF_MS.get(ms, r.choice(APIS)),
                        'ms_args': r.sample(range(4), n), 'pt_args': r.sample(range(4), n),
                        'ms_output': [0], 'pt_output': [r.choice([0, 0, 1])]})
        if r.random() < 0.2:
            entries[-1]['ms_args'] = [0]
        if r.random() < 0.3:
            entries[-1]['ms_parameters'] = entries[-1]['pt_parameters'] = ['weight']
        else:
            entries[-1].update(ms_parameters=[], pt_parameters=[])
        entries[-1].update(ms_parameters_grad=[], pt_parameters_grad=[])
    with open(top + '/map.yaml', 'w') as f:
        f.write(yaml_text(entries))
    return files(top, '-am', top + '/map.yaml')


def cell_mapping(r, top):
    framework = r.choice(['pytorch', 'mindspore'])
    if framework == 'mindspore':
        cross_pair(r, top)
    else:
        random_pair(r, top)
    words = ['Linear', 'attn', 'model', 'layers.0', 'qkv.Linear', 'mlp', 'Block', 'norm.RMSNorm']
    pairs = {r.choice(MODULES + words): r.choice(MODULES + words) for _ in range(r.randint(1, 4))}
    with open(top + '/map.yaml', 'w') as f:
        f.write(yaml_text(pairs))
    return files(top, '-cm', top + '/map.yaml')


def data_mapping(r, top):
    target, golden = random_pair(r, top)
    pairs = {}
    for a in r.sample(list(target), min(len(target), 4)):
        b = r.choice(list(golden) or [a])
        for section, i in (('input', 0), ('output', 0), ('output', 1)):
            pairs['%s.%s.%d' % (a, section, i)] = '%s.%s.%d' % (b, section, r.choice([0, i]))
    with open(top + '/map.yaml', 'w') as f:
        f.write(yaml_text(pairs or {'a': 'b'}))
    return files(top, '-dm', top + '/map.yaml')


# ---- training against inference ------------------------------------------------


def layer_modules(r, layers):
    """(training module.Class, inference module.Class) of a decoder."""
    for i in range(layers):
        yield 'input_layernorm.RMSNorm', 'input_layernorm.RMSNorm', i
        for part in ('q_proj', 'k_proj', 'v_proj'):
            yield 'self_attn.%s.Linear' % part, 'self_attn.qkv_proj.QKVParallelLinear', i
        yield 'self_attn.o_proj.Linear', 'self_attn.o_proj.RowParallelLinear', i
        for part in ('gate_proj', 'up_proj'):
            yield 'mlp.%s.Linear' % part, 'mlp.gate_up_proj.MergedLinear', i
        yield 'mlp.down_proj.Linear', 'mlp.down_proj.RowParallelLinear', i


def consistent_run(r, maker, backend, training):
    data = {}
    put = data.__setitem__

    def op_of():
        return {'input_args': [maker.tensor() for _ in range(r.choice([1, 1, 2, 3]))],
                'input_kwargs': {'x': maker.tensor()} if r.random() < 0.2 else {},
                'output': [maker.tensor() for _ in range(r.choice([1, 1, 2]))],
                **({'parameters': {'weight': maker.tensor()}} if r.random() < 0.5 else {})}

    model = 'Qwen2Model' if backend == 'fsdp' else 'GPTModel'
    embed = {'fsdp': 'Embedding', 'megatron': 'VocabParallelEmbedding'}[backend]
    prefix = 'Module._fsdp_wrapped_module.model' if backend == 'fsdp' else 'Module.module.module'
    for call in range(r.randint(1, 2)):
        if not training:
            put('Module.model.embed_tokens.VocabParallelEmbedding.forward.%d' % call, op_of())
        elif backend == 'fsdp':
            put('%s.embed_tokens.%s.forward.%d' % (prefix, embed, call), op_of())
        else:
            put('%s.embedding.word_embeddings.%s.forward.%d' % (prefix, embed, call), op_of())
        for train, infer, i in layer_modules(r, 2):
            if r.random() < 0.08:
                continue
            if not training:
                put('Module.model.layers.%d.%s.forward.%d' % (i, infer, call), op_of())
            elif backend == 'fsdp':
                wrap = '._fsdp_wrapped_module' if r.random() < 0.97 else ''
                put('%s.layers.%d%s.%s.forward.%d' % (prefix, i, wrap, train, call), op_of())
            else:
                put('%s.decoder.layers.%d.%s.forward.%d' % (
                    prefix, i, MEGATRON.get(train, train), call), op_of())
        if training and r.random() < 0.7:
            put('%s.%s.backward.%d' % (prefix, model, call), {'input': [maker.tensor()],
                                                              'output': [maker.tensor()]})
            put('%s.layers.1.mlp.X.forward.9' % prefix, op_of())
    return data


MEGATRON = {
    'self_attn.q_proj.Linear': 'self_attention.linear_qkv.ColumnParallelLinear',
    'self_attn.k_proj.Linear': 'self_attention.q_layernorm.RMSNorm',
    'self_attn.v_proj.Linear': 'self_attention.core_attention.Attention',
    'self_attn.o_proj.Linear': 'self_attention.linear_proj.RowParallelLinear',
    'mlp.gate_proj.Linear': 'mlp.linear_fc1.ColumnParallelLinear',
    'mlp.up_proj.Linear': 'mlp.router.Router',
    'mlp.down_proj.Linear': 'mlp.linear_fc2.RowParallelLinear'}


def consistent(r, top):
    backend = r.choice(['fsdp', 'megatron'])
    maker = Maker(r, plain=r.random() < 0.7)
    for side in 'tg':
        data = consistent_run(r, maker, backend, side == 't')
        write('%s/%s' % (top, side), data, stack=stacks(r, data) if r.random() < 0.5 else None)
    return files(top, '--consistent_check', '--backend', backend,
                 *r.choice([[], [], ['--xlsx']]))


# ---- the first difference of many ranks --------------------------------------------


def comm_op(r, maker, rank, size):
    api = r.choice(['all_reduce', 'broadcast', 'send', 'recv', 'isend', 'irecv', 'all_gather'])
    kwargs = {}
    if api in ('send', 'isend'):
        kwargs['dst'] = {'type': 'int', 'value': (rank + 1) % size}
    elif api in ('recv', 'irecv', 'broadcast'):
        kwargs['src'] = {'type': 'int', 'value': (rank - 1) % size if api != 'broadcast' else 0}
    if r.random() < 0.7:
        kwargs['group'] = {'type': 'torch.ProcessGroup', 'group_ranks': list(range(size)),
                           'group_id': 'g'}
    name = 'Distributed.%s.%d.forward' % (api, maker.call(api, 'forward'))
    return name, {'input_args': [maker.tensor()], 'input_kwargs': kwargs,
                  'output': [maker.tensor()]}


def first(r, top):
    size, checks = r.randint(1, 3), r.random() < 0.3
    for rank in range(size):
        maker = Maker(r, checksums=checks, plain=True)
        data = {}
        for _ in range(r.randint(2, 10)):
            name, op = comm_op(r, maker, rank, size) if r.random() < 0.35 else maker.operator()
            data[name] = op
        other = copy.deepcopy(data)
        for op in other.values():
            for leaf in leaves(op):
                if r.random() < 0.1:
                    change_leaf(r, maker, leaf)
        write('%s/t/rank%d' % (top, rank), data,
              stack=stacks(r, data) if r.random() < 0.7 else None)
        write('%s/g/rank%d' % (top, rank), other)
    return ['compare', '-tp', top + '/t', '-gp', top + '/g', '-da']


# ---- other layouts -------------------------------------------------------------------

ATB_HEAD = ['Device and PID', 'Execution Count', 'Op Name', 'Op Type', 'Op Id', 'Input/Output',
            'Index', 'Dtype', 'Format', 'Shape', 'Max', 'Min', 'Mean', 'Norm', 'Tensor Path']


def atb_side(r, folder, keys):
    os.makedirs(folder, exist_ok=True)
    lines = [','.join(ATB_HEAD)]
    for key in keys:
        if r.random() < 0.08:
            continue
        numbers = [r.choice([repr(f32(r.gauss(0, 1))), '0', 'N/A', '1.5', 'nan', 'inf', '-0.0'])
                   for _ in range(4)]
        lines.append(','.join(['0_12', '0', key[0], 'T', key[1], key[2], str(key[3]), 'float',
                               'nd', r.choice(['"2,3"', '2x3']), *numbers, 'N/A']))
    with open(folder + '/statistic.csv', 'w') as f:
        f.write('\n'.join(lines) + '\n')


def atb(r, top):
    keys = []
    for i in range(r.randint(2, 12)):
        depth = r.randint(1, 3)
        keys.append(('/'.join('Op%d' % r.randint(0, 3) for _ in range(depth)),
                     '_'.join(str(r.randint(0, 4)) for _ in range(depth + (r.random() < 0.1))),
                     r.choice(['input', 'output']), r.randint(0, 2)))
    for side in 'tg':
        atb_side(r, '%s/%s' % (top, side), keys)
    return ['compare', '-m', 'atb', '-tp', top + '/t', '-gp', top + '/g']


# ---- graph kernels ---------------------------------------------------------------

KERNEL_HEAD = ['Op Type', 'Op Name', 'Task ID', 'Stream ID', 'Timestamp', 'IO', 'Slot',
               'Data Size', 'Data Type', 'Shape', 'Max Value', 'Min Value', 'Avg Value',
               'L2Norm Value']


def kernel_keys(r):
    """(type, op, task, stream, time, input or output, slot) of each kernel that ran, by time."""
    names = ['Default_%s-op%d' % (r.choice(['Add', 'MatMul']), i) for i in range(r.randint(1, 6))]
    for time in r.sample(range(1000, 1100), r.randint(1, 12)):
        op, io = r.choice(names), r.choice(['input', 'output'])
        yield (op.split('_')[1].split('-')[0], op, '0', '0', str(time), io, str(r.randint(0, 2)))


def kernel_line(r, key, base):
    figures = [repr(f32(x * r.choice([1, 1, 1 + 1e-6, 1.01, 3]))) for x in base]
    if r.random() < 0.15:
        figures[r.randrange(4)] = r.choice(['nan', 'inf', '-inf', '0', 'null', 'False', 'True'])
    shape = r.choice(['(2,3)', '(2,3)', '(2,3)', '(4,)', ''])
    return [*key, '24', r.choice(['float32'] * 6 + ['float16']), '"%s"' % shape, *figures]


def kernel_statistics(r, folders, keys):
    bases = [[r.choice([r.gauss(0, 1), r.gauss(0, 1e4), 0.0]) for _ in range(4)] for _ in keys]
    for folder in folders:
        lines = [kernel_line(r, k, b) for k, b in zip(keys, bases) if r.random() < 0.93]
        if r.random() < 0.3:
            r.shuffle(lines)
        with open(folder + '/statistic.csv', 'w') as f:
            f.write('\n'.join(','.join(x) for x in [KERNEL_HEAD, *lines]) + '\n')


def kernel_arrays(r, folders, keys):
    for kind, op, task, stream, time, io, slot in keys:
        dtype = r.choice(['float32', 'float32', 'float16', 'float64', 'int32', 'bool'])
        x = array(r, dtype, r.choice([s for s in SHAPES if s != [0]]))
        name = '%s.%s.%s.%s.%s.%s.0.%s.DefaultFormat.npy' % (kind, op, task, stream, time, io, slot)
        for folder in folders:
            if r.random() < 0.93:
                save(folder + '/' + name, x, dtype)
            x = nudge(r, x)


def kernel_files(r, top):
    return kernels(r, top, kernel_arrays)


def kernels(r, top, write_side=kernel_statistics):
    many = r.sample(range(3), r.randint(1, 2))
    for rank in many:
        folders = ['%s/%s/rank_%d/net/0/1' % (top, side, rank) for side in 'tg']
        for folder in folders:
            os.makedirs(folder)
        write_side(r, folders, list(kernel_keys(r)))
    return ['compare', '-tp', top + '/t', '-gp', top + '/g',
            '--rank', ','.join(map(str, many)), *r.choice([[], [], ['--xlsx']])]


# ---- msprobe 1 -------------------------------------------------------------------------


def old_words(r, top, framework, *more, **entries):
    with open(top + '/compare.json', 'w') as f:
        json.dump({'is_print_compare_log': False, **entries}, f)
    return ['-f', framework, 'compare', '-i', top + '/compare.json', *more]


def old_files(r, top, framework='pytorch', *more):
    stack = os.path.exists(top + '/t/stack.json')
    entries = {'npu_path': top + '/t/dump.json', 'bench_path': top + '/g/dump.json'}
    if stack and r.random() < 0.5:
        entries['stack_path'] = top + '/t/stack.json'
        more += ('-s',) if r.random() < 0.7 else ()
    more += tuple(x for x in ('-c', '-hl') if r.random() < 0.5)
    return old_words(r, top, framework, *more, **entries)


def old_statistics(r, top):
    random_pair(r, top, numbered=False)
    return old_files(r, top)


def old_checksums(r, top):
    random_pair(r, top, numbered=False, checksums=True)
    return old_files(r, top)


def old_tensors(r, top):
    tensor_pair(r, top, 'pytorch', numbered=False)
    return old_files(r, top)


def old_mindspore(r, top):
    random_pair(r, top, numbered=False, framework='mindspore')
    return old_files(r, top, 'mindspore', *r.choice([[], ['-am'], ['-cm']]))


def old_across(r, top):
    cross_pair(r, top, numbered=False)
    return old_files(r, top, 'mindspore', *r.choice([['-am'], ['-cm'], []]))


def old_ranks(r, top):
    for n in range(r.randint(1, 3)):
        random_pair(r, top, size=r.randint(1, 8), numbered=False, sub='/rank%d' % n)
    return old_words(r, top, 'pytorch', npu_path=top + '/t', bench_path=top + '/g')


KINDS = {f.__name__: f for f in (
    statistics, checksums, workbook, mindspore, tensors, arrays, debug, ranks, processes, mixed,
    across, api_mapping, cell_mapping, data_mapping, consistent, first, atb, kernels, kernel_files,
    old_statistics, old_checksums, old_tensors, old_mindspore, old_across, old_ranks)}


def make(kind, seed, top):
    return KINDS[kind](random.Random('%s %d' % (kind, seed)), top)
