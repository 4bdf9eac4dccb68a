# SPDX-License-Identifier: MIT
"""What is known to differ: known.txt has a line "NAME: what is changed" for each way, "NAME MODE: ..." for some
modes of it, and "stderr TEXT: why" for lines with this text."""
import os

_STDERR = "stderr "


def load():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known.txt")
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f if line.strip() and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


_ALL = load()
KNOWN = {name: why for name, why in _ALL.items() if not name.startswith(_STDERR)}
KNOWN_LINES = [name[len(_STDERR):] for name in _ALL if name.startswith(_STDERR)]
