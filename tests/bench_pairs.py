# SPDX-License-Identifier: MIT
"""How much more CPU time a command takes than another, where the machine's own noise is larger.

    bench_pairs.py SECONDS BARE RECORDED        {} in a command is the number of the run

Runs come in blocks, bare recorded recorded bare, so that what drifts evenly cancels out.  A block gives
one ratio.  Printed are the median of these with the interval that holds 95 of 100 medians of blocks drawn
again from them, and the same of the lower halves: what the machine adds it only ever adds, so the quicker
runs of both say more.  Beyond SECONDS no further block begins.
"""
import os
import random
import shlex
import statistics
import sys
import time

DRAWS = 4000


def cpu_of(command, number):
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        args = [a.replace("{}", str(number)) for a in shlex.split(command)]
        try:
            os.execvp(args[0], args)
        except OSError:
            os._exit(127)
    _, status, used = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"status {status}: {command}")
    return used.ru_utime + used.ru_stime


def lower_half(values):
    return statistics.fmean(sorted(values)[: (len(values) + 1) // 2])


def interval(blocks, figure):
    drawn = random.Random(1)
    found = sorted(figure(drawn.choices(blocks, k=len(blocks))) for _ in range(DRAWS))
    return found[DRAWS * 25 // 1000], found[DRAWS * 975 // 1000]


def median_of_ratios(blocks):
    return statistics.median((b[2] + b[3]) / (b[0] + b[1]) for b in blocks)


def ratio_of_halves(blocks):
    bare = lower_half([t for b in blocks for t in b[:2]])
    return lower_half([t for b in blocks for t in b[2:]]) / bare


def main():
    seconds, bare, recorded = float(sys.argv[1]), sys.argv[2], sys.argv[3]
    cpu_of(bare, "warm"), cpu_of(recorded, "warm")
    end, blocks, n = time.monotonic() + seconds, [], 0
    while len(blocks) < 3 or time.monotonic() < end:
        a, b = cpu_of(bare, n), cpu_of(recorded, n + 1)
        c, d = cpu_of(recorded, n + 2), cpu_of(bare, n + 3)
        blocks.append((a, d, b, c))
        n += 4
    mean = lower_half([t for b in blocks for t in b[:2]])
    text = []
    for name, figure in (("median of blocks", median_of_ratios), ("quicker halves", ratio_of_halves)):
        low, high = interval(blocks, figure)
        text.append(f"{name} {100 * figure(blocks) - 100:+.2f} % [{100 * low - 100:+.2f}, {100 * high - 100:+.2f}]")
    more = lower_half([t for b in blocks for t in b[2:]]) - mean
    print(f"{len(blocks)} blocks: {', '.join(text)}; {1000 * more:+.1f} ms to {mean:.3f} s CPU bare")


main()
