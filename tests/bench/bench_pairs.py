# SPDX-License-Identifier: MIT
"""How much more CPU time a command takes than another, where the machine's own noise is larger.

    bench_pairs.py SECONDS BARE RECORDED        {} in a command is the number of the run

Both run beside each other, so that whatever the machine does to one it does to the other: runs one after
the other differ by tens of percent where a machine is shared.  Between these pairs run pairs of two bare
ones, which say how much of a difference means nothing.  Printed are the medians of the ratios, each with
the interval that holds 95 of 100 medians of pairs drawn again.  Beyond SECONDS no further pair begins.
"""
import os
import random
import shlex
import statistics
import sys
import time

DRAWS = 4000


def start(command, number):
    pid = os.fork()
    if pid != 0:
        return pid
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    args = [a.replace("{}", str(number)) for a in shlex.split(command)]
    try:
        os.execvp(args[0], args)
    except OSError:
        os._exit(127)


def cpu_beside(first, second, number):
    """Seconds of CPU that each of two commands takes; the second is started first every other time."""
    commands = {0: first, 1: second}
    running = {start(commands[which], number + which): which for which in ((0, 1) if number % 4 else (1, 0))}
    seconds = {}
    while running:
        pid, status, used = os.wait3(0)
        which = running.pop(pid)
        if status != 0:
            sys.exit(f"status {status}: {commands[which]}")
        seconds[which] = used.ru_utime + used.ru_stime
    return seconds[0], seconds[1]


def found(pairs):
    ratios = [b / a for a, b in pairs]
    drawn = random.Random(1)
    medians = sorted(statistics.median(drawn.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    shown = [statistics.median(ratios), medians[DRAWS * 25 // 1000], medians[DRAWS * 975 // 1000]]
    return "{:+.2f} % [{:+.2f}, {:+.2f}]".format(*(100 * x - 100 for x in shown))


def main():
    seconds, bare, recorded = float(sys.argv[1]), sys.argv[2], sys.argv[3]
    cpu_beside(bare, recorded, 0)
    end, alike, pairs, n = time.monotonic() + seconds, [], [], 2
    while len(pairs) < 5 or time.monotonic() < end:
        alike.append(cpu_beside(bare, bare, n))
        pairs.append(cpu_beside(bare, recorded, n + 2))
        pairs.append(cpu_beside(bare, recorded, n + 4))
        n += 6
    mean = statistics.median(a for a, _ in pairs)
    more = statistics.median(b - a for a, b in pairs)
    print(f"{len(pairs)} pairs: {found(pairs)}, bare beside bare {found(alike)}; "
          f"{1000 * more:+.1f} ms to {mean:.3f} s CPU bare")


main()
