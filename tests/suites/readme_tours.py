# SPDX-License-Identifier: MIT
"""Runs the command lines of README and compares what they print with what stands there.

    readme_tours.py BUILD

Lines of fenced blocks that begin with "build/" or "mpirun ... build/", with "$ " before them or without, are run, in the
order of the page.  Each line below one, up to the next, must be printed in that order; numbers may differ, "…" stands for
lines or words left out, and a sentence may be wrapped.  A program of Python needs PyTorch, and so does what reads its dump.
No command of a fenced block may be one that a new user cannot paste: it begins with "build/", or is one of make, pip or a
compiler.  Prints "ok LINE" or "not ok LINE".
"""
import importlib.util
import re
import shlex
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


COMMAND = re.compile(r"^(?:\$ )?((?:mpirun .*)?build/.*)")
# What commands need that a machine may lack, and the commands by what they name.
NEEDS = {"PyTorch": r"train_torch|demo/port", "mpirun": r"mpirun|demo/(faulty|slow|run|traces|job)|train_mpi"}


def lacked():
    """Names of what this machine lacks."""
    here = {"PyTorch": importlib.util.find_spec("torch"), "mpirun": shutil.which("mpirun")}
    return [name for name, found in here.items() if not found]


def run_block(block, build, lacks):
    """[(command, why it is not as the page says)] of a block."""
    lines, found = block.split("\n"), []
    starts = [i for i, line in enumerate(lines) if COMMAND.match(line)]
    for i, end in zip(starts, starts[1:] + [len(lines)]):
        below = [line for line in lines[i + 1:end] if not line.startswith("$ ")]
        name = COMMAND.match(lines[i])[1]
        without = next((need for need in lacks if re.search(NEEDS[need], name)), None)
        if without:
            found.append((name, f"skip {without}"))
            continue
        command = name.replace("build/", build + "/").replace("python3 ", shlex.quote(sys.executable) + " ")
        said = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        unsaid = missing(below, said.stdout + said.stderr)
        ends_well = said.returncode == 0 or said.returncode == 1 and "--gate" in name
        why = None if ends_well and unsaid is None else (
            f"status {said.returncode}; not said: {unsaid!r}\n" + "\n".join("    | " + l for l in (said.stdout + said.stderr).split("\n")[:12]))
        found.append((name, why))
    return found


def strangers(text):
    """Lines of shell blocks that a new user cannot paste, because they name what README has not made."""
    lines = [line for block in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M) for line in block.split("\n") if line]
    return [line for line in lines if not re.match(r"(mpirun .*)?build/|(sudo )?make |pip install build/|cc samples/", line)]


def show(command, why):
    """Prints how a command of README ended, and tells whether that is well."""
    if why is not None and why.startswith("skip "):
        print(f"skip {command}: no {why[5:]} here")
        return True
    print(f"{'ok' if why is None else 'not ok'} {command}")
    if why is not None:
        print("    " + why)
    return why is None


def main():
    build, rc, ran, lacks = sys.argv[1], 0, 0, lacked()
    with open("README.md", encoding="utf-8") as f:
        text = f.read()
    for line in strangers(text):
        print(f"not ok {line}\n    a new user cannot paste it")
        rc = 1
    for block in blocks(text):
        for _ in range(3):  # a loaded machine may add a finding, or take one away
            found = run_block(block, build, lacks)
            if all(why is None or why.startswith("skip ") for _, why in found):
                break
        rc = rc if all([show(command, why) for command, why in found]) else 1
        ran += len(found)
    if ran < 12:
        print(f"not ok README has only {ran} commands")
        rc = 1
    return rc


if __name__ == "__main__":
    sys.exit(main())
