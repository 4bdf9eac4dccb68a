"""hostile.py MSPROBE FOLDER: pairs that are wrong in one way each, with the exit status and the words that are due."""
import csv
import glob
import json
import os
import resource
import signal
import subprocess
import sys
import time

MSPROBE, PLACE = sys.argv[1:3]
os.chdir(PLACE)


def tensor(top, **more):
    return {'type': 'torch.Tensor', 'dtype': 'torch.float32', 'shape': [2, 3], 'Max': top, 'Min': -1.0, 'Mean': 0.5,
            'Norm': 2.0, 'requires_grad': True, **more}


def op(inputs, outputs, **kwargs):
    return {'input_args': inputs, 'input_kwargs': kwargs, 'output': outputs}


def dump(place, data, task='statistics', framework='pytorch', raw=None):
    os.makedirs(place, exist_ok=True)
    text = raw if raw is not None else json.dumps({'task': task, 'level': 'L1', 'framework': framework,
                                                   'dump_data_dir': None, 'data': data}).encode()
    with open(os.path.join(place, b'dump.json' if isinstance(place, bytes) else 'dump.json'), 'wb') as f:
        f.write(text)


def make():
    plain = {'Torch.add.0.forward': op([tensor(1.0)], [tensor(2.0)])}
    twice = [f'"Torch.add.0.forward":{json.dumps(op([], [tensor(x)]))}' for x in (1, 2)]
    nested = '[' * 100000 + ']' * 100000
    head = '{"task":"statistics","level":"L1","framework":"pytorch","data":'
    dump('plain', plain)
    dump('md5', {'Torch.add.0.forward': op([tensor(1.0, md5='aa')], [tensor(2.0, md5='bb')])})
    dump('tensor', {'Torch.add.0.forward': op([tensor(1.0, data_name='x.pt')], [tensor(2.0, data_name='y.pt')])}, 'tensor')
    dump('structure', plain, 'structure')
    dump('tensorflow', plain, framework='tensorflow')
    dump('empty', {})
    dump('null', None)
    dump('zero', None, raw=b'')
    dump('cut', None, raw=json.dumps({'task': 'statistics', 'data': plain}).encode()[:-40])
    dump('deep', None, raw=f'{head}{{"a.b.0.forward":{{"input_args":{nested}}}}}}}'.encode())
    dump('noise', None, raw=bytes(range(255, 0, -1)) * 20)
    dump('latin', None, raw=f'{head}{{"T'.encode() + b'\xff\xfe.a.0.forward":{}}}')
    dump('twice', None, raw=f'{head}{{{",".join(twice)}}}}}'.encode())
    dump('formula', {'=cmd|calc.0.forward': op([tensor(1.0, dtype='@SUM(A1)')], [tensor(2.0)],
                                               x={'type': 'str', 'value': '=1+1'})})
    dump('shape', {'Torch.add.0.forward': op([tensor(1.0, shape=[3, 2], dtype='torch.int64')], [tensor(2.0, shape=[7])])})
    dump('odd', {'Torch.add.0.forward': {'input_args': [tensor('x'), tensor(None), tensor([1]), tensor({}), tensor(True)],
                                         'input_kwargs': {'a': 5, 'b': [[]]}, 'output': 'text'}, 'x': 5, '': {}})
    dump('huge', {'Torch.add.0.forward': op([tensor(1e308, shape=[10**18] * 9)], [tensor(2.0, shape=[-1, 2**70])])})
    for name in NAMES:
        dump(name, plain)
    for side, ranks in (('t', (0, 1, 3)), ('g', (0, 7))):
        for rank in ranks:
            dump(f'ranks_{side}/rank{rank}', plain)
    for side in 'tg':
        dump(f'torn_{side}/rank0', plain)
    dump('torn_t/rank1', plain)
    dump('torn_g/rank1', None, raw=b'{"task": nonsense')
    os.mkfifo('fifo')
    os.makedirs('folder/dump.json')
    dump('many', {f'Torch.add.{i}.forward': op([tensor(i)], [tensor(2.0)]) for i in range(60000)})
    with open('unknown.yaml', 'w', encoding='utf-8') as f:
        f.write('Torch.ad.0.forward.input.0: Torch.add.0.forward.input.0\n')
    with open('broken.yaml', 'w', encoding='utf-8') as f:
        f.write('a: [b\n')


NAMES = [b'sp ace', b'q\'u"ote', b'new\nline', b'semi;$(x)', b'=formula', b'tab\t', b'not utf-8 \xff\xfe', '中文'.encode()]


def compare(target, golden, *more, limit=None):
    before = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    return subprocess.run([MSPROBE, 'compare', '-tp', target, '-gp', golden, '-o', 'out', *more], capture_output=True,
                          text=True, errors='replace', timeout=300, preexec_fn=before, check=False, restore_signals=False, stdin=subprocess.DEVNULL)


def check(name, fine, why=''):
    print(f'ok {name}' if fine else f'not ok {name}')
    if not fine:
        print(why)
    FAILED.extend([] if fine else [name])


FAILED = []
CASES = [  # target, golden, status, words
    ('plain', 'md5', 2, 'both sides must be dumped alike'),
    ('plain', 'tensor', 2, 'both sides must be dumped alike'),
    ('structure', 'structure', 3, 'has no values; use graph_visualize'),
    ('plain', 'tensorflow', 3, "dumps of 'tensorflow' cannot be compared"),
    ('plain', 'empty', 0, 'has nothing in it that could be compared'),
    ('empty', 'empty', 0, 'nothing was compared'),
    ('plain', 'null', 3, '"data" is not an object'),
    ('plain', 'zero', 0, 'cut off; complete records read: 0'),
    ('plain', 'cut', 0, 'cut off; complete records read: 0'),
    ('deep', 'plain', 3, 'nested deeper than 512 levels'),
    ('noise', 'plain', 3, 'expected a value'),
    ('latin', 'latin', 3, 'invalid UTF-8 in a string'),
    ('twice', 'twice', 0, "'Torch.add.0.forward' appears twice"),
    ('plain', 'shape', 0, 'has another shape: [2,3] here and [3,2] on the golden side'),
    ('odd', 'odd', 0, 'rows:'),
    ('huge', 'huge', 0, '2 rows: 2 pass'),
    ('tensor', 'tensor', 0, '2 rows: 0 pass, 2 error'),
    ('nowhere', 'plain', 3, 'No such file or directory'),
]


def run_cases():
    for target, golden, status, words in CASES:
        q = compare(f'{target}/dump.json', f'{golden}/dump.json')
        check(f'compare-{target}-{golden}', q.returncode == status and words in q.stdout + q.stderr,
              f'{q.returncode} {q.stdout} {q.stderr}')
    for path, words in (('fifo', 'is not a regular file'), ('/dev/zero', 'is not a regular file'),
                        ('folder/dump.json', 'no dump in this directory'), ('/dev', 'no dump in this directory')):
        q = compare(path, 'plain/dump.json')
        check(f'{path.strip("/").replace("/", "-")}-is-no-dump', q.returncode == 3 and words in q.stderr, q.stderr)


def rows():
    found = []
    for path in glob.glob('out/*.csv'):
        with open(path, encoding='utf-8', newline='') as f:
            found += list(csv.DictReader(f))
        os.unlink(path)
    return found


def run_names():
    for place in NAMES:
        rows()
        q = compare(os.path.join(b'.', place, b'dump.json'), os.path.join(b'.', place, b'dump.json'))
        check(f'path-{NAMES.index(place)}-is-read', q.returncode == 0 and len(rows()) == 2, q.stderr)
    rows()
    q = compare('formula/dump.json', 'formula/dump.json')
    cells = [cell for row in rows() for cell in row.values()]
    check('no-cell-is-a-formula', q.returncode == 0 and cells and not [c for c in cells if c and c[0] in '=+@'], str(cells))
    rows()
    compare('plain/dump.json', 'tensorflow/../shape/dump.json')
    check('rows-that-differ-are-errors', [r['Result'] for r in rows()] == ['error', 'error'])
    compare('plain/dump.json', 'empty/dump.json')
    check('rows-without-a-partner-stay', [r['Bench Name'] for r in rows()] == ['N/A', 'N/A'])
    compare('tensor/dump.json', 'tensor/dump.json')
    check('files-that-are-missing-are-told', all('file' in r['Err_message'] for r in rows()))


def run_ranks():
    q = compare('ranks_t', 'ranks_g')
    check('ranks-without-a-partner-are-named', q.returncode == 0 and q.stderr.count('has no counterpart') == 3, q.stderr)
    rows()
    q = compare('torn_t', 'torn_g')
    check('a-broken-rank-stops-no-other', 'rank1' in q.stdout + q.stderr and len(glob.glob('out/*rank0*.csv')) == 1,
          q.stdout + q.stderr)
    rows()


def run_mappings():
    for words, path, status in (('Torch.ad.0.forward.input.0', 'unknown.yaml', 0), ('line 2', 'broken.yaml', 3),
                                ('is not a regular file', 'fifo', 3), ('is a directory', 'plain', 3)):
        q = compare('plain/dump.json', 'plain/dump.json', '-dm', path)
        check(f'mapping-{path}', q.returncode == status and words in q.stdout + q.stderr, q.stdout + q.stderr)
    q = compare('plain/dump.json', 'plain/dump.json', '-dm', 'unknown.yaml')
    check('an-unknown-name-has-its-nearest', 'Torch.add.0.forward.input.0' in q.stdout, q.stdout)


def run_places():
    for place, words in (('plain/dump.json', 'cannot make the directory'), ('/proc/x', 'cannot make the directory'),
                         ('o' * 300, 'File name too long')):
        q = compare('plain/dump.json', 'plain/dump.json', '-o', place)
        check(f'no-output-below-{place[:6].strip("/").replace("/", "-")}', q.returncode == 3 and words in q.stderr, q.stderr)
    for more in ((), ('--xlsx',)):
        rows()
        q = compare('many/dump.json', 'many/dump.json', *more, limit=50000)
        left = [f for f in os.listdir('out') if not f.endswith('.csv') or os.path.getsize('out/' + f) > 0]
        check(f'a-full-disk-is-told{"".join(more)}', q.returncode == 3 and 'File too large' in q.stderr and not left, f'{q.returncode} {q.stderr} {left}')


def run_signals():
    """Ended at any moment, nothing half-written is there: a table is whole or it is not."""
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        left = []
        for i in range(10):
            folder = f'sig{sig}.{i}'
            p = subprocess.Popen([MSPROBE, 'compare', '-tp', 'many/dump.json', '-gp', 'many/dump.json', '-o', folder,
                                  *(['--xlsx'] if i % 2 else [])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.02 * i)
            p.send_signal(sig)
            p.wait()
            for name in os.listdir(folder) if os.path.isdir(folder) else []:
                whole = name.endswith('.xlsx') or sum(1 for _ in open(f'{folder}/{name}', encoding='utf-8')) == 120001
                if not whole or not name.endswith(('.csv', '.xlsx')):
                    left.append(f'{folder}/{name}')
        check(f'{sig.name}-leaves-nothing-half-written', not left or (sig == signal.SIGKILL and not NAMELESS), str(left))


def has_nameless():
    try:
        os.close(os.open('.', os.O_TMPFILE | os.O_WRONLY))
        return True
    except OSError:
        return False


NAMELESS = has_nameless()
make()
for part in (run_cases, run_names, run_ranks, run_mappings, run_places, run_signals):
    part()
sys.exit(1 if FAILED else 0)
