#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the terminal viewer on a pseudo terminal.

    python3 tests/bench/bench_view.py PATH

Prints the time from exec to the first screen, resident memory after it and after all
keys, the time from a key to the last byte of the screen (median, p99, most), and bytes
sent against cells changed, of all keys and of each kind.  Cells are counted by a second
run without a terminal that saves the screen after every key, so the count does not come
from what is measured.

A cell that changes alone needs a move and a letter, and a block takes three bytes in
UTF-8, so a kind of keys that scatters single cells cannot come down to two bytes a
cell.  "At least" is what one who paints the rows from the top to the bottom cannot do
without: the cheapest letters, repetitions, moves and clearing that cover what has
changed, whatever pen they need, and the shortest order where the colour changes from
one changed cell to the next.  Below it lies only what moves rows, whole or in part.
"""
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

MSPROBE = os.environ.get('B', 'build') + '/msprobe'
W, H = 80, 24
TREE = ['2'] + ['j', 'j', 'l', 'j', 'l', 'j', 'j', 'k', 'E', '}', '}', '{', 'F', 'u', 'h', 'l'] + ['j'] * 40 + \
    ['\x1b[6~'] * 10 + ['G', 'g'] + list('/relu') + ['\n', 'n', 'n', 'N', 'i', 'q', 'S', 'q', 'v', 'v', 'v']
TIME = ['3', 'j', 'j', 'j'] + ['w'] * 12 + ['d'] * 6 + ['a'] * 6 + ['s'] * 6 + ['.'] * 10 + [','] * 5 + \
    ['}', '{'] + ['l'] * 20 + ['\n', '0', '4', 'j', 'j', '\t', '\t']
NAMES = {'\n': '<Enter>', '\t': '<Tab>', '\x1b[6~': '<PageDown>', '<': '<lt>'}


def start(path):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM='xterm-256color', LC_ALL='C.UTF-8')
        os.execv(MSPROBE, [MSPROBE, 'view', path])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', H, W, 0, 0))
    return pid, fd


def read_until_quiet(fd, quiet, first=5.0):
    """Bytes until none comes for `quiet` seconds, and when the last came."""
    data, last, wait = b'', None, first
    while select.select([fd], [], [], wait)[0]:
        try:
            got = os.read(fd, 65536)
        except OSError:
            break
        data, last, wait = data + got, time.perf_counter(), quiet
    return data, last


def rss_kb(pid, what='VmRSS'):
    with open(f'/proc/{pid}/status') as f:
        return next(int(l.split()[1]) for l in f if l.startswith(what))


def cpu_ms(pid):
    """What it has computed so far: unlike time on the clock, the same on a busy machine."""
    with open(f'/proc/{pid}/schedstat') as f:
        return int(f.read().split()[0]) / 1e6


def typed(path, keys):
    """The screen in the middle of typing, or with a page on it: nothing tells its colours."""
    with tempfile.NamedTemporaryFile('w', encoding='utf-8') as f:
        f.write('\n'.join(NAMES.get(k, k) for k in keys) + '\n')
        f.flush()
        lines = subprocess.run([MSPROBE, 'view', '--script', f.name, '--size', f'{W}x{H}', path], check=True,
                               capture_output=True, encoding='utf-8',
                               env=dict(os.environ, LC_ALL='C.UTF-8')).stdout.split('\n')
    return [(c, None) for l in lines[:H] for c in l.ljust(W)[:W]]


def differs(a, b):
    return a[0] != b[0] or (a[1] != b[1] and None not in (a[1], b[1]))


def frames(path, keys):
    """The screen before and after every key, as lists of cells."""
    with tempfile.TemporaryDirectory() as d:
        script = os.path.join(d, 'keys')
        with open(script, 'w') as f:
            f.write(f':save-looks {d}/0<Enter>\n')
            typing = False
            pending = []
            for i, k in enumerate(keys):
                f.write(NAMES.get(k, k) + '\n')
                typing = k == '/' or (typing and k != '\n')
                pending.append(i + 1)
                if not typing and k not in ('i', 'S'):  # a page takes ':' for itself
                    f.write(f':save-looks {d}/{i + 1}<Enter>\n')
                    f.write('<Tick>\n')
        subprocess.run([MSPROBE, 'view', '--script', script, '--size', f'{W}x{H}', path], check=True,
                       stdout=subprocess.DEVNULL, env=dict(os.environ, LC_ALL='C.UTF-8'))
        out = []
        for i in range(len(keys) + 1):
            try:
                lines = open(f'{d}/{i}', encoding='utf-8').read().split('\n')[:2 * H]
            except FileNotFoundError:
                out.append(typed(path, keys[:i]))
                continue
            text = ''.join(l.ljust(W)[:W] for l in lines[0::2])
            look = ''.join(l.ljust(W)[:W] for l in lines[1::2])
            out.append(list(zip(text, look)))
        return out


def letter(cell):
    """Bytes of a cell.  A full one may be a space."""
    return 1 if cell[0] == '█' else len(cell[0].encode())


def order(n):
    """Bytes of "ESC [ n x", where 1 may be left out."""
    return 3 if n == 1 else 3 + len(str(n))


def ahead(x, z):
    """To column z from x on its left: an order, or tabulators and then steps back or letters."""
    best = min(z - x, order(z - x)) if z > x else 0
    stop = z // 8 * 8
    if stop > x:
        best = min(best, stop // 8 - x // 8 + min(z - stop, order(max(z - stop, 1))))
    return min(best, (stop + 8) // 8 - x // 8 + stop + 8 - z) if z > x and stop + 8 < W else best


def move(y, x, to_y, to_x):
    down = to_y - y
    along = ahead(x, to_x) if to_x >= x else min(x - to_x, order(x - to_x))
    return min(len(f'\x1b[{to_y + 1};{to_x + 1}H'), down + along, 1 + down + ahead(0, to_x))


def row_least(changed, cells):
    """The cheapest way from the first changed column of a row behind the last, and where it ends."""
    first, last = changed.index(True), W - changed[::-1].index(True)
    cost = {first: 0}
    for x in range(first, last):
        if x not in cost:
            continue
        ways = [(x + 1, letter(cells[x]))]
        if not changed[x]:
            z = changed.index(True, x)
            ways.append((z, ahead(x, z)))
        end = x
        while end < W and cells[end] == cells[x]:
            end += 1
        if letter(cells[x]) == 1 and end - x > 1:
            ways += [(z, 1 + order(z - x - 1)) for z in range(x + 2, min(end, last) + 1)]
        if cells[x][0] == ' ' and end == W:
            ways.append((last, 3))
        for z, n in ways:
            cost[z] = min(cost.get(z, 1 << 30), cost[x] + n)
    return first, last, cost[last]


def colours(cells):
    """Bytes of at least one order for every change of colour; spaces have that of their neighbours.  Of two
    full cells one may be a block and the other a space: two bytes more."""
    seen = [(l.lower(), c == '█' or (c == ' ' and l.isupper())) for c, l in cells if l is not None and l != ' ']
    return sum(2 if a[1] and b[1] else 5 for a, b in zip(seen, seen[1:]) if a[0] != b[0])


def least(before, after):
    total, at = 0, None
    changed = [differs(a, b) for a, b in zip(before, after)]
    for y in range(H):
        row = slice(y * W, (y + 1) * W)
        if any(changed[row]):
            first, last, n = row_least(changed[row], after[row])
            total += n + (move(*at, y, first) if at else 0)
            at = (y, last)
    return total + colours(b for b, c in zip(after, changed) if c)


KINDS = {'screens': '1234\t', 'pan': 'da', 'zoom': 'ws0', 'cursor': 'l', 'slice, step': '.,}{F', 'row': 'jk',
         'page': '\x1b[6~gG', 'fold': 'lhEuc\n', 'layout': 'v', 'search': '/nN', 'item, stack': 'iSq'}


def kind_of(key, tree):
    """What a key does on the tree or on the timeline."""
    if not tree and key == '\n':
        return 'fold'
    names = [k for k, v in KINDS.items() if key in v and (tree or k not in ('layout', 'search')) and
             not (tree and k in ('pan', 'zoom', 'cursor'))]
    return names[0] if names else 'search'


def print_bytes(keys, shots, sent, tree):
    kinds, all_of = {}, [0, 0, 0, 0]
    for i, key in enumerate(keys):
        cells = sum(differs(a, b) for a, b in zip(shots[i], shots[i + 1]))
        for sums in (all_of, kinds.setdefault(kind_of(key, tree), [0, 0, 0, 0])):
            for n, v in enumerate((1, sent[i], cells, least(shots[i], shots[i + 1]))):
                sums[n] += v
    for name, (n, sent_bytes, cells, bound) in [*sorted(kinds.items()), ('all', all_of)]:
        print(f'bytes  {name:12} {sent_bytes:7} for {cells:6} changed cells of {n:3} keys: {sent_bytes / max(cells, 1):5.2f} '
              f'a cell, at least {bound / max(cells, 1):.2f}')


def main():
    path = sys.argv[1]
    keys = TREE if path.endswith('.vis.db') else TIME
    begin = time.perf_counter()
    pid, fd = start(path)
    _, last = read_until_quiet(fd, 0.3)
    print(f'first screen  {1000 * (last - begin):8.1f} ms, {rss_kb(pid) / 1000:.1f} MB resident')
    times, sent, cpu = [], [], []
    for k in keys:
        at, computed = time.perf_counter(), cpu_ms(pid)
        os.write(fd, k.replace('\n', '\r').encode())
        data, last = read_until_quiet(fd, 0.02, 1.0)
        sent.append(len(data))
        cpu.append((cpu_ms(pid) - computed, k))
        if last is not None:
            times.append((1000 * (last - at), k))
    print(f'after keys    {rss_kb(pid) / 1000:8.1f} MB resident, most {rss_kb(pid, "VmHWM") / 1000:.1f} MB')
    os.write(fd, b'qqqq')
    read_until_quiet(fd, 0.2, 1.0)
    os.close(fd)
    os.waitpid(pid, 0)
    times.sort()
    n = len(times)
    print(f'key to screen {times[n // 2][0]:8.2f} ms median, {times[min(n - 1, n * 99 // 100)][0]:.2f} p99, '
          f'slowest {", ".join(f"{NAMES.get(k, k)} {t:.1f}" for t, k in times[-4:])}; {n} keys')
    cpu.sort()
    print(f'computed      {cpu[len(cpu) // 2][0]:8.2f} ms a key median, {cpu[len(cpu) * 99 // 100][0]:.2f} p99, '
          f'most {", ".join(f"{NAMES.get(k, k)} {t:.1f}" for t, k in cpu[-8:])}')
    shots = frames(path, keys)
    print_bytes(keys, shots, sent, keys is TREE)


if __name__ == '__main__':
    main()
