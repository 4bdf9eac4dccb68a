# SPDX-License-Identifier: MIT
"""More random pairs for compare_oracle.py: trees of modules with what they call, the classes and
frames that a layer mapping goes by, and such mappings; tensors of two frameworks, of training
against inference and of ATB; results of ranks to be merged."""
import copy
import json
import os

from oracle_pairs import (ATB_HEAD, KINDS, PT, Maker, array, change_leaf, consistent_run, files,
                          leaves, named_leaves, nudge, random_pair, save, save_tensors, write,
                          yaml_text)

CHILDREN = ['attn', 'mlp', 'norm', 'fc1', 'fc2', 'layers', 'experts', 'core', 'Sequential', 'dropout2']
CLASSES = ['ParallelTransformer', 'Block', 'Attn', 'Dense', 'Linear', 'Norm', 'MLP', 'layers', 'attn']
CALLS = ['add', 'linear', 'matmul', 'softmax', 'split', 'relu', 'backward', 'flash_attention_score']
FRAMES = ['File /usr/site-packages/torch/nn/functional.py, line 3, in linear, \n return x',
          'File /usr/site-packages/mindspore/ops/f.py, line 9, in dense, \n return y',
          'File /p/package/mindspore/nn/cell.py, line 7, in construct, \n self(x)',
          'File /usr/site-packages/torch/nn/modules/module.py, line 5, in _call_impl, \n f(x)',
          'File /usr/site-packages/torch/m.py, line 5, in __call__, \n f(x)',
          'File /usr/site-packages/torch/MindSpeed/m.py, line 6, in fused, \n f(x)',
          'File /x/msprobe/site-packages/torch/a.py, line 6, in wrapped, \n f(x)',
          'File /m/model.py, line 20, in forward, \n y = f(x)',
          'File /m/model.py, line 21, in construct, \n y = f(x)',
          'File /m/util.py, line 2, in helper, \n Template(x)',
          'Template File /m/t.py, line 1, in t, \n x']


class Model:
    """One side: modules in a tree, each with a class, and what they call, in the order it ran."""

    def __init__(self, r, framework):
        self.r, self.maker = r, Maker(r, framework=framework, plain=r.random() < 0.5)
        self.top = 'Cell' if framework == 'mindspore' else 'Module'
        self.prefixes = ['Functional', 'Tensor', 'Mint', 'Primitive', 'Jit'] if self.top == 'Cell' \
            else ['Functional', 'Tensor', 'Torch', 'NPU']
        self.data, self.construct, self.calls, self.ran = {}, {}, {}, []

    def number(self, name):
        self.calls[name] = self.calls.get(name, -1) + 1
        return self.calls[name]

    def put(self, name, parent, direction, module):
        self.construct[name] = parent
        self.data[name] = self.maker.sections(direction, module)

    def module(self, path, cls, parent, depth):
        r = self.r
        place = '%s.%s.%s' % (self.top, path, cls)
        name = '%s.forward.%d' % (place, self.number(place))
        for _ in range(r.randint(0, 3)):
            if depth < 4 and r.random() < 0.6:
                child = r.choice(CHILDREN)
                if child in ('layers', 'experts'):
                    child += r.choice(['.%d', '.%d', '.%d', '.x%d', '.block']).replace(
                        '%d', str(r.randint(0, 13)))
                self.module('%s.%s' % (path, child), r.choice(CLASSES), name, depth + 1)
            else:
                self.operator(name)
        self.put(name, parent, 'forward', True)
        self.ran.append((name, parent))
        if r.random() < 0.3:
            number = r.choice(['', '.0', '.1'])
            self.data[place + '.parameters_grad' + number] = {'weight': [self.maker.tensor()]}

    def operator(self, parent):
        r = self.r
        api = '%s.%s' % (r.choice(self.prefixes), r.choice(CALLS))
        name = '%s.%d.forward' % (api, self.number(api))
        self.put(name, parent, 'forward', False)
        self.ran.append((name, parent))

    def backward(self):
        def turned(name):
            if not name:
                return name
            head, tail = name.rsplit('.', 2)[0], name.rsplit('.', 2)[1:]
            return '.'.join([head] + [t.replace('forward', 'backward') for t in tail])
        for name, parent in reversed(self.ran):
            if self.r.random() < 0.6:
                self.put(turned(name), turned(parent), 'backward', False)

    def run(self):
        r = self.r
        for _ in range(r.randint(1, 3)):
            self.operator(None)
        for _ in range(r.randint(1, 2)):
            self.module(r.choice(['model', 'net.model', '0.module']), r.choice(CLASSES), None, 0)
        self.backward()
        if r.random() < 0.2:
            items = list(self.data.items())
            r.shuffle(items)
            self.data = dict(items)
        return self


def stack_of(r, data, grouped):
    """Frames of the operators; msprobe 26 writes names and lines, msprobe 1 a list by name."""
    made = {}
    for name in data:
        if r.random() < 0.8:
            lines = [r.choice(FRAMES) for _ in range(r.randint(0, 5))]
            made[str(len(made)) if grouped else name] = [[name], lines] if grouped else lines
    return made


def renamed_model(r, model, framework, words):
    """The same run as the other side has it: other prefixes, some children and classes."""
    top = {'mindspore': 'Cell'}.get(framework, 'Module')

    def name_of(name):
        if not name:
            return name
        parts = name.split('.')
        parts[0] = top if parts[0] in ('Cell', 'Module') else parts[0]
        tail = 2 if parts[0] == top else len(parts)
        return '.'.join([parts[0]] + [words.get(p, p) for p in parts[1:-tail]] + parts[-tail:]) \
            if tail == 2 else name
    data = {}
    for name, op in copy.deepcopy(model.data).items():
        if r.random() < 0.08:
            continue
        for leaf in leaves(op):
            if r.random() < 0.2:
                change_leaf(r, model.maker, leaf)
        data[name_of(name)] = op
    return data, {name_of(k): name_of(v) for k, v in model.construct.items()}


def mapping_of(r, model, words):
    """Rules by class: those of the names that differ, cut and joined, and some of nothing."""
    rules = {}
    top = r.choice(['TopLayer', 'Cell'])  # of a file with both the official tool forgets one
    for _ in range(r.randint(1, 5)):
        cls = r.choice(CLASSES + [top, top, 'Unknown'])
        lines = rules.setdefault(cls, {})
        for _ in range(r.randint(1, 3)):
            key = '.'.join(r.choice(CHILDREN + CALLS + ['model', '0', '1']) for _ in range(
                r.choice([1, 1, 1, 2, 3])))
            value = '.'.join(words.get(p, p) for p in key.split('.'))
            key = '"%s"' % key if key.isdigit() else key
            lines[key] = r.choice([value, value, value + '(x)', r.choice(CHILDREN), 'a.b', 'N/A'])
    return rules


def write_side(r, folder, data, construct, framework):
    write(folder, data, framework=framework, stack=stack_of(r, data, r.random() < 0.5))
    with open(folder + '/construct.json', 'w') as f:
        json.dump(construct, f, indent=1)


def layer_mapping(r, top):
    target, golden = r.choice([('mindspore', 'pytorch'), ('mindspore', 'pytorch'),
                               ('mindspore', 'mindspore'), ('mindtorch', 'pytorch'),
                               ('mindtorch', 'mindspore'), ('pytorch', 'pytorch')])
    model = Model(r, target).run()
    words = {a: r.choice(CHILDREN) for a in r.sample(CHILDREN + ['model'], r.randint(0, 3))}
    data, construct = renamed_model(r, model, golden, words)
    write_side(r, top + '/t', model.data, model.construct, target)
    write_side(r, top + '/g', data, construct, golden)
    with open(top + '/map.yaml', 'w') as f:
        f.write(yaml_text(mapping_of(r, model, words)))
    return files(top, '-lm', *([top + '/map.yaml'] if r.random() < 0.85 else []))



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


# ---- results of ranks, merged ------------------------------------------------------

FIGURES = {
    'statistics': ['Max diff', 'Min diff', 'Mean diff', 'L2norm diff', 'MaxRelativeErr',
                   'MinRelativeErr', 'MeanRelativeErr', 'NormRelativeErr'],
    'tensor': ['Cosine', 'EucDist', 'MaxAbsErr', 'MaxRelativeErr', 'One Thousandth Err Ratio',
               'Five Thousandths Err Ratio']}
BASIC = ['NPU Name', 'Bench Name', 'NPU Dtype', 'Bench Dtype', 'NPU Tensor Shape',
         'Bench Tensor Shape', 'NPU Requires_grad', 'Bench Requires_grad']
VALUES = ['%s %s' % (side, word) for side in ('NPU', 'Bench')
          for word in ('max', 'min', 'mean', 'l2norm')]


def merge_row(r, name, task):
    def figure():
        return r.choice([r.gauss(0, 1), 0.0, 3, 'N/A', 'unsupported', 'Nan', '0.5%', 1e-20, '12.5'])
    # no whole numbers: in a column of numbers alone 2 is 2.0 for pandas, which ours does not ask
    value = [r.choice([r.gauss(0, 1), 'tp-0-1', 'N/A', None]) for _ in VALUES]
    tail = [r.random() < 0.5, 'pass', '[]'] + (["['a.pt', 'b.pt']"] if task == 'tensor' else [])
    return [name, name] + ['torch.float32'] * 2 + ['[2, 3]'] * 2 + ['True'] * 2 + [
        figure() for _ in FIGURES[task]] + value + tail


def merged(r, top):
    """Workbooks of ranks with some rows each, and what to show of them."""
    import pandas
    os.makedirs(top + '/in')
    task = r.choice(list(FIGURES))
    columns = BASIC + FIGURES[task] + VALUES + ['Requires_grad Consistent', 'Result', 'Err_message']
    columns += ['Data_name'] if task == 'tensor' else []
    apis = ['Distributed.all_reduce.%d.forward' % i for i in range(3)] + [
        'Torch.add.0.forward', 'Torch.add.0.backward', 'Module.m.Linear.forward.0']
    for rank in r.sample([0, 1, 2, 7, 10, 11], r.randint(2, 4)):
        names = ['%s.%s.%d' % (a, io, i) for a in apis if r.random() < 0.8
                 for io in ('input', 'output') for i in range(r.randint(0, 2))]
        rows = [merge_row(r, name, task) for name in names]
        suffix = r.choice(['rank%d', 'rank%d', 'rank%d-rank%d']).replace('%d', str(rank))
        pandas.DataFrame(rows, columns=columns).to_excel(
            '%s/in/compare_result_%s_20260101000000.xlsx' % (top, suffix), index=False)
    shown = r.sample(FIGURES[task] + ['Requires_grad Consistent'], r.randint(1, 3))
    config = {'api': ['Distributed.all_reduce'] + r.sample(apis + ['Torch.none'], r.randint(0, 3)),
              'compare_index': r.choice([shown, shown, [], None, ['Nonsense']])}
    with open(top + '/config.yaml', 'w') as f:
        json.dump(config, f)
    return ['merge_result', '-i', top + '/in', '-config', top + '/config.yaml']


KINDS.update({f.__name__: f for f in (
    layer_mapping, msadapter, across_tensors, consistent_tensors, consistent_checksums,
    atb_tensors, merged)})
