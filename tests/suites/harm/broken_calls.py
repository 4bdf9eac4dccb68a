# SPDX-License-Identifier: MIT
"""Python functions of ours that fail once in a training, for tests of any framework."""
import os
import sys


class Calls:
    """Of Python functions below a folder by others below it, by a tracer that raises in the n-th."""

    name = "calls"

    def __init__(self, folder, spared=()):
        self.folder, self.spared, self.count = folder, spared, 0  # spared: names of functions

    def arm(self, number):
        self.count = 0

        def trace(frame, event, _arg):
            back = frame.f_back
            if event == "call" and frame.f_code.co_filename.startswith(self.folder) and back is not None \
                    and back.f_code.co_filename.startswith(self.folder) and frame.f_code.co_name not in self.spared:
                self.count += 1
                if self.count == number:
                    raise OSError(f"broken on purpose in {frame.f_code.co_name}")
        sys.settrace(trace)

    def disarm(self):
        sys.settrace(None)
        return self.count


def numbers(total):
    """Each of the first, and then further and further apart; with BREAKS=all each, with BREAKS=K/N the K-th of N parts
    of them."""
    chosen, n, wanted = [], 1, os.environ.get("BREAKS")
    if wanted:
        part, parts = [int(word) for word in (wanted if "/" in wanted else "1/1").split("/")]
        return list(range(part, total + 1, parts))
    while n <= total:
        chosen.append(n)
        n += 1 + n // 12
    return chosen
