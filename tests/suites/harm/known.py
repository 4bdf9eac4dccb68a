# SPDX-License-Identifier: MIT
"""Ways that are known to differ: known.txt has a line "NAME: what is changed" for each."""
import os


def load():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known.txt")
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f if line.strip() and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


KNOWN = load()
