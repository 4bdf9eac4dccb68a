# SPDX-License-Identifier: MIT
"""What marks cost from Python over a call of a C extension that does next to nothing: prints
nanoseconds of a mark, of a range (two calls) and of a mark in a domain."""
import time

import mstx

N = 20000


def cost(call, runs=15):
    best = 1e9
    for _ in range(runs):
        t = time.thread_time_ns()
        call(range(N))
        best = min(best, (time.thread_time_ns() - t) / N)
        time.sleep(0.002)
    return best


def empty(n, call=mstx.get_tool_id):
    for _ in n:
        call()


def mark(n, call=mstx.mark):
    for _ in n:
        call("forward_step_block")


def in_domain(n, call=mstx.mark):
    for _ in n:
        call("forward_step_block", domain="checks")


def ranges(n, start=mstx.range_start, end=mstx.range_end):
    for _ in n:
        end(start("forward_step_block"))


base = cost(empty)
print("%.1f %.1f %.1f" % (cost(mark) - base, cost(ranges) - 2 * base, cost(in_domain) - base))
