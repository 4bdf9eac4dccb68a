"""hostile.py MSPROBE FOLDER: pairs that are wrong in one way each, with the exit status and the words that are due."""
import csv
import glob
import json
import os
import resource
import shutil
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
    make_spellings(plain)
    make_devices(plain)
    for name in NAMES:
        dump(name, plain)
    for side, ranks in (('t', (0, 1, 3)), ('g', (0, 7))):
        for rank in ranks:
            dump(f'ranks_{side}/rank{rank}', plain)
    for side in 'tg':
        dump(f'torn_{side}/rank0', plain)
    dump('torn_t/rank1', plain)
    dump('torn_g/rank1', None, raw=b'{"task": nonsense')
    dump('uneven/rank0', plain)
    dump('uneven/rank1', {f'Torch.add.{i}.forward': op([tensor(i)], [tensor(2.0)]) for i in range(9000)})
    os.mkfifo('fifo')
    os.makedirs('folder/dump.json')
    dump('many', {f'Torch.add.{i}.forward': op([tensor(i)], [tensor(2.0)]) for i in range(60000)})
    with open('unknown.yaml', 'w', encoding='utf-8') as f:
        f.write('Torch.ad.0.forward.input.0: Torch.add.0.forward.input.0\n')
    with open('broken.yaml', 'w', encoding='utf-8') as f:
        f.write('a: [b\n')


def make_spellings(plain):
    """The same dump as other programs might have left it."""
    body = json.dumps({'task': 'statistics', 'level': 'L1', 'framework': 'pytorch', 'data': plain}).encode()
    odd = body.replace(b'"Max": 1.0', b'"Max": 1e999').replace(b'"Min": -1.0', b'"Min": -0')
    for name, raw in (('nothing', b'{}'), ('list', b'[]'), ('trailing', body + b' x'), ('mark', b'\xef\xbb\xbf' + body),
                      ('windows', json.dumps(json.loads(body), indent=1).replace('\n', '\r\n').encode()),
                      ('wide', body.decode().encode('utf-16')), ('hex', body.replace(b'"Max": 1.0', b'"Max": 0x1')),
                      ('literals', odd.replace(b'0.5', b'NaN').replace(b'"Norm": 2.0', b'"Norm": -Infinity'))):
        dump(name, None, raw=raw)
    dump('sparse', None, raw=b'')
    os.truncate('sparse/dump.json', 100 << 30)


def make_devices(plain):
    """Files that are none, in place of every file there is."""
    for kind, put in (('loop', lambda p: os.symlink(os.path.basename(p), p)), ('zero', lambda p: os.symlink('/dev/zero', p)),
                      ('pipe', os.mkfifo), ('dir', os.makedirs), ('cut', lambda p: open(p, 'wb').write(b'PK\3\4 cut')),
                      ('empty', lambda p: open(p, 'wb').close()),
                      ('hole', lambda p: open(p, 'wb').truncate(100 << 30))):
        os.makedirs(f'file_{kind}')
        put(f'file_{kind}/dump.json')
        dump(f'stack_{kind}', plain)
        put(f'stack_{kind}/stack.json')
        dump(f'tensor_{kind}', {'Torch.add.0.forward': op([tensor(1.0, data_name='x.pt')], [tensor(2.0, data_name='y.pt')])},
             'tensor')
        os.makedirs(f'tensor_{kind}/dump_tensor_data')
        put(f'tensor_{kind}/dump_tensor_data/x.pt')


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
    ('plain', 'empty', 3, 'has nothing in it that could be compared'),
    ('empty', 'empty', 3, 'nothing was compared'),
    ('plain', 'null', 3, '"data" is not an object'),
    ('plain', 'zero', 3, 'empty file'),
    ('plain', 'cut', 3, 'cut off; complete records read: 0'),
    ('deep', 'plain', 3, 'nested deeper than 512 levels'),
    ('noise', 'plain', 3, 'expected a value'),
    ('latin', 'latin', 3, 'invalid UTF-8 in a string'),
    ('twice', 'twice', 0, "'Torch.add.0.forward' appears twice"),
    ('plain', 'shape', 0, 'has another shape: [2,3] on the target side and [3,2] on the golden side'),
    ('odd', 'odd', 0, 'rows:'),
    ('huge', 'huge', 0, '2 rows: 2 pass'),
    ('tensor', 'tensor', 0, '2 rows: 0 pass, 2 error'),
    ('nowhere', 'plain', 3, 'No such file or directory'),
    ('nothing', 'plain', 3, 'no key "data"'),
    ('list', 'plain', 3, 'expected an object with the key "data"'),
    ('trailing', 'plain', 3, 'text after the end of the value'),
    ('mark', 'plain', 3, 'a byte order mark stands before the JSON'),
    ('wide', 'plain', 3, 'line 1, byte 0: expected a value'),
    ('hex', 'plain', 3, "expected ',' or '}' after a value"),
    ('windows', 'plain', 0, '2 rows: 2 pass'),
    ('literals', 'literals', 0, '2 rows: 2 pass'),
    ('sparse', 'plain', 3, 'more than the 10737418240 allowed'),
    ('file_loop', 'plain', 3, 'Too many levels of symbolic links'),
    ('file_zero', 'plain', 3, 'is not a regular file'),
    ('file_pipe', 'plain', 3, 'is not a regular file'),
    *((f'stack_{kind}', 'plain', 0, '2 rows: 2 pass') for kind in ('loop', 'zero', 'pipe', 'dir')),
    *((f'tensor_{kind}', f'tensor_{kind}', 0, '2 rows: 0 pass, 2 error')
      for kind in ('loop', 'zero', 'pipe', 'dir', 'cut', 'empty', 'hole')),
]
WORDS = [  # what stands behind msprobe compare, and the words that are due
    ((), 'missing option --target_path'),
    (('-tp', 'plain'), 'missing option --golden_path'),
    (('-tp', 'plain', '-gp', 'plain', '--nonsense'), "unknown option '--nonsense'"),
    (('-tp', 'plain', '-gp', 'plain', 'more'), "unexpected argument 'more'"),
    (('-tp', 'plain', '-gp'), 'needs a value'),
    (('-tp', 'plain', '-gp', 'plain', '--compat', 'new'), 'cur'),
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


def run_words():
    for words, due in WORDS:
        q = subprocess.run([MSPROBE, 'compare', *words], capture_output=True, text=True, check=False, timeout=60)
        check('usage ' + ' '.join(words), q.returncode == 2 and due in q.stderr, q.stderr)


def where_it_stands(p):
    """Ends a program that does not end, and says what each of its threads waited for."""
    threads = []
    for task in sorted(glob.glob(f'/proc/{p.pid}/task/*')):
        for what in 'comm', 'stat', 'wchan', 'syscall':
            try:
                with open(f'{task}/{what}') as f:
                    threads.append(f.read().strip())
            except OSError as e:
                threads.append(str(e))
    stacks = shutil.which('gdb') and subprocess.run(
        ['gdb', '-p', str(p.pid), '-batch', '-ex', 'thread apply all bt 14'], capture_output=True, text=True).stdout
    p.kill()
    return '\n'.join([f'{p.args} did not end', *threads, stacks or 'no gdb here', p.communicate()[1]])


def run_shrinking():
    """A file that becomes shorter while it is read ends with words, or was read before."""
    with open('many/dump.json', 'rb') as f:
        body = f.read()
    os.makedirs('shrinking')
    ours = os.environ.get('ASAN_OPTIONS', '') + ':handle_sigbus=0'  # which is how the program learns of it
    for i in range(12):
        with open('shrinking/dump.json', 'wb') as f:
            f.write(body)
        p = subprocess.Popen([MSPROBE, 'compare', '-tp', 'shrinking/dump.json', '-gp', 'many/dump.json', '-o', 'out'],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env=dict(os.environ, ASAN_OPTIONS=ours))
        time.sleep(0.01 * i)
        os.truncate('shrinking/dump.json', (4096, len(body) // 2)[i % 2])
        try:
            said = p.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            said = where_it_stands(p)
        check(f'shrinking-{i}-is-told', p.returncode == 0 or (p.returncode == 3 and said), f'{p.returncode} {said}')
    rows()


def run_within():
    q = compare('plain', 'plain', '-o', 'plain/inside')
    again = compare('plain', 'plain', '-o', 'plain/inside')
    check('output-inside-the-input', q.returncode == again.returncode == 0 and '2 rows: 2 pass' in again.stdout, again.stderr)


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
    q = compare('uneven', 'uneven', limit=1 << 20)
    written = rows()
    check('a-table-that-does-not-fit-is-a-failure', q.returncode == 3 and 'File too large' in q.stderr and len(written) == 2,
          f'{q.returncode} {len(written)} {q.stdout} {q.stderr}')


def run_mappings():
    for words, path, status in (('Torch.ad.0.forward.input.0', 'unknown.yaml', 0), ('line 2', 'broken.yaml', 3),
                                ('is not a regular file', 'fifo', 3), ('is a directory', 'plain', 3)):
        q = compare('plain/dump.json', 'plain/dump.json', '-dm', path)
        check(f'mapping-{path}', q.returncode == status and words in q.stdout + q.stderr, q.stdout + q.stderr)
    q = compare('plain/dump.json', 'plain/dump.json', '-dm', 'unknown.yaml')
    check('an-unknown-name-has-its-nearest', 'Torch.add.0.forward.input.0' in q.stdout, q.stdout)


# option, what its file says, exit status, words
MAPPINGS = [(o, text, 3, words) for o in ('-lm', '-cm', '-am', '-dm') for text, words in (
    ('a: [b', 'line 2'), ('a: {b: c: d}', 'line 1'), ('', 'is empty'), ('- [x]', 'expected'), ('just words', 'expected'))] + [
    ('-lm', 'Block: 5', 3, 'name: name'), ('-cm', 'a: [b, c]', 3, 'expected'), ('-am', '- ms_api: x', 3, 'ms_api and pt_api'),
    ('-am', '- {ms_api: a, pt_api: b, ms_args: 3}', 3, 'a list of positions or names'),
    ('-am', '- {ms_api: a, pt_api: b, mt_args: [3]}', 3, "unknown key 'mt_args'"),
    ('-lm', 'Blck: {fc: fc}', 0, "the target has no class 'Blck'; did you mean 'Block'?"),
    ('-lm', 'Block: {fcc: fc}', 0, "the target has no layer 'fcc'; did you mean 'fc'?"),
    ('-lm', 'Block: {fc: fcc}', 0, "the golden side has no layer 'fcc'; did you mean 'fc'?"),
    ('-cm', 'fcc.Dense: fc.Dense', 0, "the target has no module 'fcc.Dense'; did you mean"),
    ('-am', '- {ms_api: Torch.ad, pt_api: Torch.add}', 0, "the target has no operator 'Torch.ad'; did you mean 'Torch.add'?"),
    ('-dm', 'Torch.ad.0.forward.input.0: Torch.add.0.forward.input.0', 0, "did you mean 'Torch.add.0.forward.input.0'?")]


def run_mapping_files():
    block, dense = 'Module.net.Block.forward.0', 'Module.net.fc.Dense.forward.0'
    dump('mapped', {dense: op([tensor(1.0)], [tensor(2.0)]), block: op([tensor(1.0)], [tensor(2.0)]),
                    'Torch.add.0.forward': op([tensor(1.0)], [tensor(2.0)])}, framework='mindspore')
    for name, what in (('construct', {block: None, dense: block, 'Torch.add.0.forward': block}),
                       ('stack', {'Torch.add.0.forward': ['File a.py, line 1, in forward, \n x']})):
        with open(f'mapped/{name}.json', 'w', encoding='utf-8') as f:
            json.dump(what, f)
    for option, text, status, words in MAPPINGS:
        with open('map.yaml', 'w', encoding='utf-8') as f:
            f.write(text + '\n')
        q = compare('mapped/dump.json', 'mapped/dump.json', option, 'map.yaml')
        said = q.stdout + q.stderr
        fine = q.returncode == status and words in said and (status != 0 or ' rows: ' in said)
        check(f'{option} {text}', fine, f'{q.returncode} {words!r} {said}')
    for path in glob.glob('out/*.yaml'):
        os.unlink(path)
    rows()


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
for part in (run_cases, run_words, run_names, run_within, run_shrinking, run_ranks, run_mappings, run_mapping_files, run_places, run_signals):
    part()
sys.exit(1 if FAILED else 0)
