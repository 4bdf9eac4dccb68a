# SPDX-License-Identifier: MIT
"""Windows of the timeline, drawn by chance: no two ticks of a ruler have one label.

    view_ticks.py PROGRAM RUN [WINDOWS]

Prints each ruler that has, and exits with 1.
"""
import random
import re
import subprocess
import sys
import tempfile


def ruler_of(program, run, keys, size):
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as script:
        script.write(keys)
        script.flush()
        rows = subprocess.run([program, "view", "--script", script.name, "--size", size, run], capture_output=True, text=True, check=True).stdout.split("\n")
    return next(row for row in rows if " wide" in row)


def main():
    program, run = sys.argv[1:3]
    rng, found = random.Random("ticks"), 0
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 60):
        keys = "3" + "".join(rng.choice("wwwwdal.}s") for _ in range(rng.randrange(1, 60)))
        ruler = ruler_of(program, run, keys, f"{rng.choice([60, 80, 120, 200])}x24")
        labels = [label.strip() for label in ruler.split("│")[1:] if not re.search("…|^ *$", label)]
        if len(set(labels)) != len(labels):
            print(f"{keys}: {labels}")
            found = 1
    return found


if __name__ == "__main__":
    sys.exit(main())
