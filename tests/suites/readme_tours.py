# SPDX-License-Identifier: MIT
"""Runs the command lines of README and compares what they print with what stands there.

    readme_tours.py BUILD

Lines of fenced blocks that begin with "$ build/" or "$ mpirun ... build/" are run, in the order of the page.  Each line below one, up to the next, must be printed in that order; numbers may differ, "…" stands for lines or
words left out, and a sentence may be wrapped.  Prints "ok LINE" or "not ok LINE".
"""
import re
import shutil
import subprocess
import sys


def blocks(text):
    return re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M)


def plain(text):
    """Text in which a number is N and any space is one."""
    text = re.sub(r"\d[\d,.]*(e[-+]?\d+)?", "N", text)
    return re.sub(r"\s+", " ", re.sub(r"N (ns|us|ms|s|B|kB|MB|GB)\b", "N U", text)).strip()


def missing(wanted, said):
    """The first part of the wanted text that is not said, in order."""
    at, whole = 0, plain(said)
    for part in re.split("…", "\n".join(wanted)):
        part = plain(part)
        found = whole.find(part, at)
        if found < 0:
            return part
        at = found + len(part)
    return None


def run_block(block, build):
    """[(command, why it is not as the page says)] of a block."""
    lines, found = block.split("\n"), []
    starts = [i for i, line in enumerate(lines) if re.match(r"\$ (mpirun .*)?build/", line)]
    for i, end in zip(starts, starts[1:] + [len(lines)]):
        below = [line for line in lines[i + 1:end] if not line.startswith("$ ")]
        command = lines[i][2:].replace("build/", build + "/")
        said = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        lacks = missing(below, said.stdout + said.stderr)
        why = None if said.returncode == 0 and lacks is None else (
            f"status {said.returncode}; not said: {lacks!r}\n" + "\n".join("    | " + l for l in (said.stdout + said.stderr).split("\n")[:12]))
        found.append((lines[i][2:], why))
    return found


def main():
    build, rc, ran = sys.argv[1], 0, 0
    with open("README.md", encoding="utf-8") as f:
        text = f.read()
    for block in blocks(text):
        if not re.search(r"^\$ (mpirun .*)?build/", block, re.M):
            continue
        if "$ mpirun" in block and not shutil.which("mpirun"):
            print("skip README's run of ranks: no mpirun here")
            ran += 3
            continue
        for _ in range(3):  # a loaded machine may add a finding, or take one away
            found = run_block(block, build)
            if all(why is None for _, why in found):
                break
        for command, why in found:
            print(f"{'ok' if why is None else 'not ok'} {command}")
            if why is not None:
                print("    " + why)
                rc = 1
        ran += len(found)
    if ran < 6:
        print(f"not ok README has only {ran} commands")
        rc = 1
    return rc


if __name__ == "__main__":
    sys.exit(main())
