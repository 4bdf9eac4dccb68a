#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the simulator with one fault after the other in the recorder, and has it find each.

    planted.py [--schedules N] [--only WORD] [--at DIR]

Faults are the lines of tests/mstx/simulate/planted.txt.  Prints "ok" and what the simulator said
first of each, or "not ok" when it finds nothing in N schedules, and last "N passed, N failed".
"""
import argparse
import os
import re
import subprocess
import sys

import tree

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = "tests/mstx/simulate/planted.txt"
TOOL = "build/tests/tool_simulate"
PART = "build/tests/mstx/simulate/recording.o"
INCLUDED = ("mstx/rt/ring.c", "mstx/rt/recorder.c")


def faults():
    with open(TABLE, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, old, new, what = [c.strip().replace("\\n", "\n") for c in line.split("::")]
                yield name, old, new, what


def simulate(copy, schedules):
    """The first thing that the simulator finds, "" when it finds nothing."""
    p = subprocess.run([TOOL, "-f", str(schedules)], cwd=copy.at, env=copy.env, capture_output=True, text=True)
    found = re.search(r"wrong: (.*)", p.stdout)
    return found.group(1) if found else "" if p.returncode == 0 else f"exit status {p.returncode}"


class Planted(tree.Changed):
    """A source with a fault, and the simulator built of it: objects before archives, so that the
    changed ones are taken.  The simulator's own object holds the files that it includes."""

    def part(self):
        """The command without -Werror: a fault may leave an argument unused."""
        return self.tree.light(self.commands[PART], "-O1")

    def build(self, text):
        if self.name.endswith(".h"):
            with open(self.path, "w", encoding="utf-8") as f:
                f.write(text)
            self.tree.make([TOOL], 1)
            return
        objects = [] if self.name in INCLUDED else [self.object]
        if not self.compile(text) or not self.shell(self.part()) or not self.shell(
                self.commands[TOOL].replace(f" -o {TOOL} ", f" -o {TOOL} {' '.join(objects)} ", 1)):
            raise SystemExit(f"{TABLE}: {self.name} does not compile")

    def put_back(self):
        """Of a header all that includes it is made anew, in archives too."""
        if self.name.endswith(".h"):
            os.remove(self.path)
            self.tree.restore(self.name)
            self.tree.make([TOOL], 1)
            return
        super().put_back()
        self.shell(self.part())
        self.shell(self.commands[TOOL])


def plant(copy, name, old, new, commands):
    with open(name, encoding="utf-8") as f:
        text = f.read()
    if old not in text:
        raise SystemExit(f"{TABLE}: {name} does not hold: {old}")
    planted = Planted(copy, name, commands)
    planted.build(text.replace(old, new or ";"))
    return planted


def main(args):
    p = argparse.ArgumentParser()
    p.add_argument("--schedules", type=int, default=40000)
    p.add_argument("--only", default="")
    p.add_argument("--at", default="build/mutants/planted")
    p.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    o = p.parse_args(args)
    os.chdir(TOP)
    copy = tree.Tree(TOP, os.path.abspath(o.at), o.cc)
    copy.contracts = ""  # the simulator has to find a fault by what is lost
    copy.copy()
    copy.make([TOOL], os.cpu_count() or 1)
    if simulate(copy, 2000):
        raise SystemExit("the simulator finds something without a fault")
    files = sorted({f[0] for f in faults()} | {"tests/mstx/simulate/recording.c"})
    commands = copy.commands(files, [TOOL])
    good = bad = 0
    for name, old, new, what in faults():
        if o.only not in f"{name} {what}":
            continue
        planted = plant(copy, name, old, new, commands)
        said = simulate(copy, o.schedules)
        good, bad = good + bool(said), bad + (not said)
        print(f"{'ok' if said else 'not ok'} {name}: {what}: {said}", flush=True)
        planted.put_back()
        if simulate(copy, 400):
            raise SystemExit(f"{name}: {what}: it is found after it was taken out")
    print(f"{good} passed, {bad} failed")
    return bad != 0 or good == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
