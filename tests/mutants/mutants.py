#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Changes one thing at a time in the sources and looks whether a test notices.

    mutants.py [-n COUNT] [--seed N] [--rooms NAME,...] [--seconds N] [--sanitizers] [--suites] [--at DIR]
    mutants.py --only FILE:LINE                 every mutant of that line
    mutants.py --again LOG [--tests NAME,...]   what lived in an earlier run, of which LOG is the output; only
                                                by these tests, as those that were written for it
    mutants.py -n 45 --sample 3                 three rooms, drawn by the seed
    mutants.py --unreached --rooms NAME         lines that no test runs: each of their mutants lives

Prints a line for each mutant, "killed" with the test that noticed or "survived", and last
"N passed, N failed": passed is the mutants that were noticed or that are equal to the
original for the reason that tests/data/mutants.known gives.  A line of that file is

    FILE :: KIND :: THE CHANGED LINE :: reason

Exit status 1 when fewer than --least in 100, by default 95, are noticed or known.
"""
import argparse
import fnmatch
import glob
import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter, namedtuple

import kinds
import reach
import switched
import tree

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KNOWN = os.path.join(TOP, "tests/data/mutants.known")
# Threads as coroutines on one stack each are nothing that a sanitizer can follow.
# A call of these names gives back what nobody looks at again: only a search for leaks notices that it is removed, or
# that its loop or condition is another one.
GIVES_BACK = re.compile(r"(free|close|clear|drop|release|destroy|reset)\w*\(")
LINES_OF_LOOP = 2
LEAK_SEARCH = " -fsanitize=leak"  # needs no other code, only another link
SUITE_SECONDS = 300
NOT_SANITIZED = ("tool_simulate", "test_jread_large")
Room = namedtuple("Room", "name sources tests suites")


def rows_of(path, mark):
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                yield [c.strip() for c in line.split(mark)]


def rooms():
    for name, sources, tests, suites in rows_of(os.path.join(TOP, "tests/mutants/rooms.txt"), "|"):
        files = sorted({os.path.relpath(f, TOP) for s in sources.split()
                        for f in glob.glob(os.path.join(TOP, s))})
        yield Room(name, files, tests.split(), suites.split())


def known():
    return {(f, k, t) for f, k, t, _ in rows_of(KNOWN, "::")} if os.path.exists(KNOWN) else set()


def source_of(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as f:
        return kinds.Source(name, f.read())


def mutants_in(room):
    for name in room.sources:
        with open(os.path.join(TOP, name), encoding="utf-8") as f:
            yield from kinds.mutants_of(name, f.read())[1]


def draw(room, count, chance):
    """`count` mutants of a room in random order, kinds in turn; the rest replaces what does not compile."""
    found = {}
    for m in mutants_in(room):
        found.setdefault(m.kind, []).append(m)
    for of_kind in found.values():
        chance.shuffle(of_kind)
    order = []
    while any(found.values()):
        for kind in sorted(found):
            if found[kind]:
                order.append(found[kind].pop())
    return order[:count], order[count:count * 2]


def gives_back(m):
    """Whether the change is of a call that gives something back, or of the lines before one."""
    lines = source_of(m.file).lines[m.line - 1:m.line + LINES_OF_LOOP]
    return GIVES_BACK.search(m.text if m.kind == "removed call" else "\n".join(lines)) is not None


class Trial:
    """Mutants of one room against its tests."""

    def __init__(self, copy, room, options, left_out=()):
        self.copy, self.room, self.options = copy, room, options
        self.tests = [t for t in copy.tests_of(room.tests) if t not in left_out and options.is_asked(t)]
        self.seconds, self.reach, self.suites, self.noticed = {}, reach.Reach(), [], Counter()
        self.leaks, self.apart = {}, {}  # whether a test leaks, or passes apart, without a change
        self.tools = sorted({t for s in room.suites for t in copy.tools_of(s)})

    def build(self):
        extra = ["build/libmstx.so"] if self.room.name == "ring" else []
        extra += ["all"] + [f"build/tests/{t}" for t in self.tools] if self.has_suites() else []
        self.targets = [f"build/tests/{t}" for t in self.tests] + extra
        self.copy.make(self.targets, self.options.jobs)
        if not self.recall():
            self.measure(extra)
        for test in set(self.tests) - set(self.seconds):
            print(f"left out: {test} fails without a change, or is slow", flush=True)
        self.tests = [t for t in self.tests if t in self.seconds]

    def measure(self, extra):
        sources, asked = self.room.sources, list(self.tests)
        commands = self.copy.commands(sources, self.targets)
        self.reach = reach.measure(self.copy, sources, self.tests, commands, self.seconds)
        self.copy.make([o for o in commands if not reach.is_program(o)] + extra, self.options.jobs)
        with open(self.memory() + ".new", "w", encoding="utf-8") as f:
            json.dump({"of": self.copy.fingerprint(), "tests": asked, "seconds": self.seconds,
                       "manner": self.copy.manner, "reach": self.reach.saved()}, f)
        os.replace(self.memory() + ".new", self.memory())

    def memory(self):
        return f"{self.copy.at}-reach-{self.room.name}.json"

    def recall(self):
        """What an earlier run measured, if no source has changed since."""
        if not os.path.exists(self.memory()):
            return False
        with open(self.memory(), encoding="utf-8") as f:
            kept = json.load(f)
        if kept["of"] != self.copy.fingerprint() or kept["tests"] != self.tests:
            return False
        self.seconds = kept["seconds"]
        self.copy.manner.update(kept["manner"])
        self.reach.load(kept["reach"])
        return True

    def has_suites(self):
        return self.options.suites and self.room.suites and self.copy.flags is tree.FLAGS

    def order(self, m):
        """The tests that run the changed line, fastest first; one with the name of the file may be slower,
        and one that noticed other changes of the file."""
        stem = os.path.basename(m.file)[:-2]
        near = {t: t.split("_", 1)[1] in (stem, stem.split("_")[0]) for t in self.tests}
        return sorted((t for t in self.tests if any(self.reach.runs(t, m.file, n) for n in m.lines)),
                      key=lambda t: self.seconds[t] / (4 if near[t] else 1) / (1 + self.noticed[m.file, t]))

    def killer(self, changed, m):
        """The test that fails, "" when none does."""
        return self.failing_suite(changed) if self.suites else self.failing_test(changed, m)

    def failing_test(self, changed, m):
        for test in self.order(m):
            if not changed.link(test):
                return "linker"
            if self.fails(test, changed):
                self.noticed[m.file, test] += 1
                return test
        return (self.leaking_test(changed, m) if gives_back(m) else "") or self.failing_apart(changed, m)

    def fails(self, test, changed, more=()):
        processor = int(3 + 4 * self.seconds[test])
        status, _ = self.copy.try_test(test, 15 + 4 * processor, processor, {**dict(more), **changed.env})
        return status != 0

    def failing_apart(self, changed, m):
        """A test that fails as `make check` runs it: each of its parts in a process, whose first file gets
        descriptor 0."""
        for test in self.order(m) if m.kind == "boundary" else ():
            if test not in self.apart:  # without the change it must pass
                with changed.as_it_was():
                    self.apart[test] = changed.link(test) and not self.fails(test, changed, tree.APART)
            if self.apart[test] and changed.link(test) and self.fails(test, changed, tree.APART):
                return test + ", each part in a process"
        return ""

    def leaking_test(self, changed, m):
        for test in self.order(m):
            if test in NOT_SANITIZED or self.leaks.get(test, False):
                continue
            if test not in self.leaks:  # the same link without the change must pass
                self.leaks[test] = not self.passes_unchanged(changed, test, LEAK_SEARCH)
            if self.leaks[test] or not changed.link(test, LEAK_SEARCH):
                continue
            status, _ = self.copy.try_test(test, 120, int(10 + 8 * self.seconds[test]),
                                           {**tree.UNCHECKED, **changed.env})
            if status != 0:
                return test + ", which leaks"
        return ""

    def passes_unchanged(self, changed, test, more):
        with changed.as_it_was():
            return changed.link(test, more) and self.copy.try_test(test, 120, 60, tree.UNCHECKED)[0] == 0

    def use_suites(self):
        """From now on mutants meet the suites that pass without a change, the fastest first."""
        took = {}
        for suite in self.room.suites:
            began = time.monotonic()
            if self.copy.try_suite(suite, SUITE_SECONDS):
                took[suite] = time.monotonic() - began
            else:
                print(f"left out: suite_{suite} fails without a change", flush=True)
        self.suites = sorted(took, key=took.get)

    def failing_suite(self, changed):
        if not changed.link_programs(self.tools):
            return "linker"
        for suite in self.suites:
            if not self.copy.try_suite(suite, SUITE_SECONDS, changed.env):
                return f"suite_{suite}"
        return ""

    def try_one(self, changed, source, m):
        """"": survived, None: no valid program, else who noticed."""
        if not changed.compile(source.apply(m)):
            return None
        if not self.suites and not self.order(m):
            return ""
        if not changed.place():
            return None
        return self.killer(changed, m)

    def of_room(self, mutants):
        """(mutant, who noticed) of each; all that can be compiled into one program are."""
        if not switched.can_switch() or len(mutants) < 2:
            yield from self.one_by_one(mutants)
            return
        room = switched.Switched(self.copy, self.room.sources, self.targets)
        numbers, alone = {}, []
        for name, some in grouped(mutants).items():
            if f"build/{name[:-2]}.o" not in room.commands:
                alone += some  # which says so
                continue
            held, rest = room.add(source_of(name), some)
            numbers.update(held)
            alone += rest
        try:
            if numbers:
                room.place()
            for m in mutants:
                if m in numbers:
                    room.choose(numbers[m])
                    yield m, self.killer(room, m) if self.suites or self.order(m) else ""
                elif m not in alone:
                    yield m, None
        finally:
            if numbers:
                room.put_back()
        yield from self.one_by_one(alone)

    def one_by_one(self, mutants):
        for name, some in grouped(mutants).items():
            yield from self.of_file(name, some)

    def of_file(self, name, mutants):
        source = source_of(name)
        changed = tree.Changed(self.copy, name, self.copy.commands([name], self.targets))
        if changed.object not in changed.commands:
            print(f"left out: {name} is in no test of room {self.room.name}", flush=True)
            return
        try:
            for m in mutants:
                yield m, self.try_one(changed, source, m)
        finally:
            changed.put_back()


class Tally:
    def __init__(self, least):
        self.least, self.known, self.counts, self.lived = least, known(), Counter(), []

    def add(self, m, who, how=""):
        word = "killed"
        if who == "":
            same = (m.file, m.kind, m.text) in self.known
            word = "known" if same else "survived"
            self.lived += [] if same else [m]
        self.counts[word] += 1
        tail = f" by {who}" if who else how
        print(f"{word:8} {m.file}:{m.line} {m.kind}: {m.text}{tail}", flush=True)

    def finish(self):
        good = self.counts["killed"] + self.counts["known"]
        every = good + len(self.lived)
        for m in self.lived:
            print(f"lives {m.file} :: {m.kind} :: {m.text}    (line {m.line})")
        print(f"{every} mutants: {self.counts['killed']} noticed, {self.counts['known']} known to be "
              f"equal, {len(self.lived)} not noticed; {100 * good / max(every, 1):.1f} % caught")
        enough = every > 0 and 100 * good >= self.least * every
        print(f"{good} passed, {0 if enough else len(self.lived)} failed")
        return 0 if enough else 1


def grouped(mutants):
    by_file = {}
    for m in mutants:
        by_file.setdefault(m.file, []).append(m)
    return by_file


def try_again(trial, lived, tally, how):
    """The mutants that live this time too."""
    noticed = set()
    for m, who in trial.of_room(lived):
        if who:
            tally.add(m, who + how)
            noticed.add(m)
    return [m for m in lived if m not in noticed]


def try_lived(plain, sanitized, lived, tally):
    """What no test notices is tried under sanitizers, then with suites, which take longest."""
    if lived and sanitized:
        again = Trial(sanitized, plain.room, plain.options, NOT_SANITIZED)
        again.build()
        lived = try_again(again, lived, tally, " under sanitizers")
    if lived and plain.has_suites():
        plain.use_suites()
        lived = try_again(plain, lived, tally, "") if plain.suites else lived
    for m in lived:
        tally.add(m, "", "" if plain.order(m) else " (no test runs this line)")


def try_room(trial, sanitized, mutants, spare, tally, until):
    """Spare mutants replace those that are no valid program."""
    lived = []
    while mutants and time.monotonic() < until:
        invalid = 0
        for m, who in trial.of_room(mutants):
            if who is None:
                invalid += 1
            elif who:
                tally.add(m, who)
            else:
                lived.append(m)
            if time.monotonic() >= until:
                break
        mutants, spare = spare[:invalid], spare[invalid:]
    try_lived(trial, sanitized, lived, tally)


def lived_in(log):
    """File, kind and changed line of what lived in an earlier run."""
    with open(log, encoding="utf-8") as f:
        found = (re.match(r"lives (\S+) :: (.*?) :: (.*?)(?:    \(line \d+\))?$", line) for line in f)
        return {m.groups() for m in found if m}


def chosen_mutants(room, options, count, chance):
    """The mutants of a room that the options ask for, and those that replace invalid ones."""
    if options.again:
        wanted = lived_in(options.again)
        return [m for m in mutants_in(room) if (m.file, m.kind, m.text) in wanted], []
    if options.only:
        return [m for m in mutants_in(room) if fnmatch.fnmatch(f"{m.file}:{m.line}", options.only)], []
    return draw(room, count, chance)


def campaign(options):
    chance = random.Random(options.seed)
    wanted = options.rooms.split(",") if options.rooms else None
    chosen = [r for r in rooms() if wanted is None or r.name in wanted]
    if options.sample:
        chosen = chance.sample(chosen, min(options.sample, len(chosen)))
    copy = tree.Tree(TOP, os.path.abspath(options.at), options.cc)
    copy.copy()
    sanitized = tree.Tree(TOP, os.path.abspath(options.at) + "-asan", options.cc, tree.SANITIZERS)
    if options.sanitizers:
        sanitized.copy()
    if options.unreached:
        for room in chosen:
            list_unreached(copy, room, options)
        return 0
    tally, until = Tally(options.least), time.monotonic() + options.seconds
    for room in chosen:
        mutants, spare = chosen_mutants(room, options, -(-options.count // len(chosen)), chance)
        if not mutants or time.monotonic() >= until:
            continue
        trial = Trial(copy, room, options)
        began = time.monotonic()
        trial.build()
        until += time.monotonic() - began  # the limit is on changes alone
        print(f"# {room.name}: {len(mutants)} mutants, {len(trial.tests)} tests, "
              f"{sum(trial.seconds.values()):.1f} s", flush=True)
        try_room(trial, sanitized if options.sanitizers else None, mutants, spare, tally, until)
    return tally.finish()


def list_unreached(copy, room, options):
    trial = Trial(copy, room, options)
    trial.build()
    print(f"# {room.name}: may run anything: {' '.join(sorted(trial.reach.silent)) or 'none'}", flush=True)
    for name in room.sources:
        with open(os.path.join(TOP, name), encoding="utf-8") as f:
            source, found = kinds.mutants_of(name, f.read())
        at = Counter(m.line for m in found if not any(trial.reach.is_run(name, n) for n in m.lines))
        for line in sorted(at):
            print(f"{name}:{line}: {at[line]} of {source.lines[line - 1].strip()}", flush=True)
        print(f"{name}: {sum(at.values())} of {len(found)} changes are in lines that no test runs", flush=True)


def options_of(args):
    p = argparse.ArgumentParser()
    p.add_argument("-n", dest="count", type=int, default=600)
    p.add_argument("--seed", type=int, default=28)
    p.add_argument("--rooms")
    p.add_argument("--sample", type=int, default=0, help="so many rooms, drawn by the seed")
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--least", type=float, default=95, help="of a hundred")
    p.add_argument("--suites", action="store_true")
    p.add_argument("--sanitizers", action="store_true", help="what lives is tried under sanitizers")
    p.add_argument("--only", help="FILE:LINE, a pattern")
    p.add_argument("--again", help="the output of an earlier run")
    p.add_argument("--tests", help="only these of a room")
    p.add_argument("--unreached", action="store_true", help="lists lines that no test runs")
    p.add_argument("--at", default="build/mutants/tree")
    p.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = p.parse_args(args)
    asked = options.tests.split(",") if options.tests else None
    options.is_asked = lambda test: asked is None or test in asked
    return options


if __name__ == "__main__":
    os.chdir(TOP)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what runs is ended and put back
    signal.signal(signal.SIGHUP, lambda *_: None)  # of kill(getppid(), 0) with another number
    sys.exit(campaign(options_of(sys.argv[1:])))
