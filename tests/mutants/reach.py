#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which test runs which line: a test that never runs a changed line cannot notice the change.

The sources of a room are compiled with coverage once, each of its tests runs once with a
directory of its own for the counts, and gcov reads them.
"""
import bisect
import glob
import json
import os
import shutil
import subprocess

COVERAGE = "--coverage -fprofile-abs-path"


class Reach:
    """For each file the lines that can run, and for each test the lines that it ran."""

    def __init__(self):
        self.lines, self.ran, self.silent = {}, {}, set()

    def add(self, test, name, counts):
        self.lines.setdefault(name, set()).update(counts)
        self.ran.setdefault((test, name), set()).update(n for n, c in counts.items() if c > 0)

    def finish(self, tree, tests):
        """A test without any counts (it ends in _exit, or by a signal) counts as running all that it holds."""
        self.silent = {t for t in tests if not any(k[0] == t for k in self.ran) and holds_counts(tree, t)}
        self.lines = {name: sorted(lines) for name, lines in self.lines.items()}

    def is_run(self, name, line):
        return any(self.runs(test, name, line) for test in {t for t, _ in self.ran})

    def runs(self, test, name, line):
        """gcov counts a statement at its first line; a declaration belongs to what stands before it."""
        lines = self.lines.get(name)
        if test in self.silent or not lines:
            return True
        before = lines[max(0, bisect.bisect_right(lines, line) - 1)]
        return before in self.ran.get((test, name), ())

    def saved(self):
        return {"lines": self.lines, "silent": sorted(self.silent),
                "ran": [[test, name, sorted(lines)] for (test, name), lines in self.ran.items()]}

    def load(self, saved):
        self.lines, self.silent = saved["lines"], set(saved["silent"])
        self.ran = {(test, name): set(lines) for test, name, lines in saved["ran"]}


def build(tree, files, commands):
    """Compiles `files` with coverage and links what holds them; everything else stays."""
    wanted = {f"build/{f[:-2]}.o" for f in files}
    for output, command in commands.items():
        if output in wanted:
            tree.must(tree.light(command, "-O0") + " " + COVERAGE)
    for output, command in commands.items():
        if output.endswith(".o") and output not in wanted:  # a test that includes one of the files
            tree.must(tree.light(command, "-O0") + " " + COVERAGE)
        elif output.endswith(".a"):
            held = [w for w in command.split() if w in wanted]
            if held:
                tree.must(f"ar r {output} {' '.join(held)}")
    for output, command in commands.items():
        if not output.endswith((".o", ".a")):
            tree.must(f"{command} --coverage")


def read(tree, test, into, reach, files):
    """Adds the counts that one run left below `into`."""
    for counts in glob.glob(into + "/**/*.gcda", recursive=True):
        notes = counts[len(into):-5] + ".gcno"
        if not os.path.exists(notes):
            continue
        shutil.copy(notes, counts[:-5] + ".gcno")
        out = subprocess.run(["gcov", "--json-format", "--stdout", counts], cwd=tree.at,
                             capture_output=True, text=True).stdout
        for line in filter(None, out.split("\n")):
            for f in json.loads(line)["files"]:
                name = os.path.relpath(f["file"], tree.at)
                if name in files:
                    reach.add(test, name, {one["line_number"]: one["count"] for one in f["lines"]})


def holds_counts(tree, test):
    with open(os.path.join(tree.at, "build/tests", test), "rb") as f:
        return b".gcda" in f.read()


def is_program(output):
    """A program is linked again for each change, so nobody runs it as it was left here."""
    return not output.endswith((".o", ".a", ".so"))


def measure(tree, files, tests, commands, seconds):
    """Reach of the tests that pass; their processor time goes into `seconds`."""
    reach, top = Reach(), tree.at + "-counts"
    tree.will_cover([o for o in commands if not is_program(o)])
    build(tree, files, commands)
    for test in tests:
        into = os.path.join(top, test)
        shutil.rmtree(into, ignore_errors=True)
        status, took = tree.try_unchanged(test, {"GCOV_PREFIX": into})
        if status == 0:
            seconds[test] = took
            read(tree, test, into, reach, set(files))
    shutil.rmtree(top, ignore_errors=True)
    tree.remove_covered()
    reach.finish(tree, seconds)
    return reach
