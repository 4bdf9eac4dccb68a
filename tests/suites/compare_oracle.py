#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random pairs of dumps, compared by the official tool and by ours as strict.

    compare_oracle.py MSPROBE OFFICIAL [KIND... [FIRST LAST]]

OFFICIAL is a folder with the package msprobe of mindstudio-probe, which this Python can run.
Each KIND of oracle_pairs.py and oracle_models.py is tried with seeds FIRST to LAST, and every file
that one of the two writes must be written by the other too, with the same cells (see parity.py).
The official tool is loaded once and runs in children, so a pair takes a tenth of a second.  A pair
that it gives up on is counted apart: ours says something useful there.  KEEP=folder keeps those and the
pairs that differ.  Left out is what version 26.2 does otherwise than 26.0 (it pairs float64 with
float32), and trees of files."""
import collections
import glob
import importlib
import importlib.abc
import importlib.machinery
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest.mock

import oracle_models  # noqa: F401  adds its kinds
import oracle_pairs
import parity
import workbook_look

TIME = re.compile(r'_\d{14}(?=[._])|(?<=diff_analyze)_\d{15,}')


# Workbooks of the official tool in which figures are text, which are numbers in ours.
NUMBERS_AS_TEXT = ('atb', 'multi_ranks')


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for packages that the official tool names and comparing does not need."""
    TOPS = ('einops', 'google', 'mindspore', 'onnx', 'onnxruntime')

    def find_spec(self, name, path=None, target=None):
        top = name.split('.')[0]
        return importlib.machinery.ModuleSpec(name, self, is_package=True) \
            if top in self.TOPS else None

    def create_module(self, spec):
        module = unittest.mock.MagicMock()
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


def load_official(folder):
    """The official main(), without what needs MindSpore or an accelerator."""
    sys.path.insert(0, folder)
    glob.glob = lambda *words, find=glob.glob, **more: sorted(find(*words, **more))
    sys.meta_path.append(Absent())
    import msprobe
    mindspore = types.ModuleType('msprobe.mindspore')
    mindspore.__path__ = [os.path.join(os.path.dirname(msprobe.__file__), 'mindspore')]
    sys.modules['msprobe.mindspore'] = mindspore
    from msprobe.msprobe import main
    for name in ('core.compare.find_first.analyzer', 'mindspore.compare.distributed_compare',
                 'mindspore.compare.ms_compare', 'pytorch.compare.pt_compare'):
        importlib.import_module('msprobe.' + name)  # once, before there are children
    return main


def kinds_of(folder):
    """What the version can be asked: msprobe 1 has other options."""
    cur = os.path.exists(os.path.join(folder, 'msprobe/core/compare/auto_compare.py'))
    return [k for k in oracle_pairs.KINDS if k.startswith('old_') != cur]


def run_official(main, words, log):
    """Exit status of the official tool, run in a child."""
    child = os.fork()
    if child == 0:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.argv = ['msprobe'] + words
        status = 1
        try:
            main()
            status = 0
        except SystemExit as e:
            status = e.code or 0
        except BaseException:
            import traceback
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def made_in(out):
    """Files below a folder by their names without the time."""
    files = [f for f in glob.glob(out + '/**', recursive=True) if os.path.isfile(f)]
    return {TIME.sub('', os.path.relpath(f, out)): f for f in files}


def pair_difference(theirs, ours):
    a, b = made_in(theirs), made_in(ours)
    for name in sorted(set(a) | set(b)):
        if name not in b or name not in a:
            who = 'ours' if name in b else 'the official tool'
            return '%s is written by %s alone' % (name, who)
        why = parity.difference(a[name], b[name])
        if not why and name.endswith('.xlsx') and not name.startswith(NUMBERS_AS_TEXT):
            why = workbook_look.difference(a[name], b[name])
        if why:
            return '%s: %s' % (name, why)
    return ''


def check(exe, main, kind, seed, top):
    """'' where both wrote the same, what differs, or None where the official tool gave up."""
    words = oracle_pairs.make(kind, seed, top)
    theirs = run_official(main, words + ['-o', top + '/theirs'], top + '/log')
    strict = ['--compat=strict'] if words[0] == 'compare' else []
    ours = subprocess.run([exe] + words + ['-o', top + '/ours'] + strict,
                          capture_output=True, text=True, timeout=60)
    if ours.returncode not in (0, 2, 3):
        return 'ours ended with %d: %s' % (ours.returncode, ours.stderr[-300:])
    if theirs != 0:
        return None
    if ours.returncode != 0 and made_in(top + '/theirs'):
        return 'ours gave up: ' + ours.stderr[-300:]
    return pair_difference(top + '/theirs', top + '/ours')


def try_kind(exe, main, kind, first, last, keep):
    count = collections.Counter()
    for seed in range(first, last + 1):
        top = tempfile.mkdtemp(prefix='msprobe-oracle-')
        try:
            why = check(exe, main, kind, seed, top)
            if why:
                print('    %s %d: %s' % (kind, seed, why), flush=True)
            count['gave up' if why is None else 'differ' if why else 'equal'] += 1
            if keep and (why or why is None):
                shutil.copytree(top, '%s/%s.%d%s' % (keep, kind, seed, '' if why else '.gaveup'))
        finally:
            shutil.rmtree(top)
    wrong = count['differ'] > 0 or count['equal'] == 0
    print('%s official %s: seeds %d to %d, %d equal, %d differ, the official tool gave up on %d' % (
        'not ok' if wrong else 'ok', kind, first, last, count['equal'], count['differ'],
        count['gave up']), flush=True)
    return wrong


def main():
    exe, official = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ''
    if not os.path.isdir(os.path.join(official, 'msprobe')):
        print('skip pairs of the official tool: no official package (OFFICIAL=folder)')
        return 0
    words = sys.argv[3:]
    numbers = [int(words.pop(-1)) for _ in range(2)][::-1] if words[-1:] and words[-1].isdigit() \
        else [1, 20]
    official_main = load_official(official)
    return max(try_kind(exe, official_main, kind, *numbers, os.environ.get('KEEP'))
               for kind in words or kinds_of(official))


if __name__ == '__main__':
    sys.exit(main())
