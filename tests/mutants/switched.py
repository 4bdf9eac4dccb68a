#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles all mutants of some files at once; MUTANT=N in the environment of a program chooses one.

A function with mutants becomes several: f__m0 as it was, f__m7 with the change of mutant 7.  The name f
itself belongs to a few instructions that jump to one of them, whatever the arguments are.  So a room is
compiled and its tests are linked once, and a mutant costs the time that its tests take to run.
"""
import contextlib
import platform
import re
import subprocess
from collections import namedtuple

import tree

VARIABLE = "MUTANT"
COPY = "__attribute__((used, noinline, noclone)) "
# Such a function is part of its callers or runs by itself, so nothing jumps to it.
UNSPLIT = re.compile(r"always_inline|constructor|destructor|\bmain\b")
JUMPS = '__asm__(".text\\n{scope}.type {f},@function\\n{f}:\\n\\tendbr64\\n\\tmovl {chosen}(%rip), %r11d\\n{each}\\tjmp {f}__m0\\n.size {f},.-{f}\\n");'
JUMP = "\\tcmpl ${n}, %r11d\\n je {f}__m{n}\\n"
CHOOSE = """
#include <stdlib.h>
__attribute__((constructor(101))) static void choose_{chosen}(void)
{{
    const char *number = getenv("{variable}");
    {chosen} = number != NULL ? atoi(number) : 0;
}}
"""
Function = namedtuple("Function", "name begin name_at body end")


def functions(s):
    """Every function that is defined at the top level of a source: offsets in its text."""
    found, i, after = [], 0, 0
    while i < len(s.tokens):
        t = s.tokens[i][1]
        if t == "{" and i in s.partner:
            close = s.partner[i]
            if s.tokens[i - 1][1] == ")" and s.tokens[s.partner[i - 1] - 1][0] == "word":
                name = s.tokens[s.partner[i - 1] - 1]
                found.append(Function(name[1], s.tokens[after][2], name[2], s.tokens[i][2], s.tokens[close][3]))
                after = close + 1
            i = close
        elif t in (";", "}"):
            after = i + 1
        i += 1
    return found


def can_switch():
    return platform.machine() == "x86_64"


def copied(text, f, number, m=None):
    """The function under another name, with the change of a mutant."""
    head = text[f.begin:f.name_at] + f"{f.name}__m{number}" + text[f.name_at + len(f.name):f.body]
    body = text[f.body:f.end] if m is None else text[f.body:m.at] + m.new + text[m.end:f.end]
    return COPY + re.sub(r"\binline\b", "", head) + body


def dispatched(text, f, numbered, chosen):
    """The lines that take the place of a function; the mutant of each line, None where there is none."""
    head = re.sub(r"\binline\b", "", text[f.begin:f.body])
    scope = "" if re.search(r"\bstatic\b", head) else f".globl {f.name}\\n"
    parts = [(None, head.rstrip() + ";"), (None, copied(text, f, 0))]
    parts += [(n, copied(text, f, n, m)) for n, m in numbered]
    each = "".join(JUMP.format(n=n, f=f.name) for n, _ in numbered)
    parts.append((None, JUMPS.format(scope=scope, f=f.name, each=each, chosen=chosen)))
    return [(n, line) for n, part in parts for line in part.split("\n")]


def text_of(source, numbered):
    """The source with these mutants {number: mutant} to choose from, the mutant of each of its lines, and
    those that no function can hold."""
    text, at, left = source.text, 0, dict(numbered)
    chosen = "mutant_of_" + re.sub(r"\W", "_", source.name)
    pieces = [(None, f"static int {chosen} __attribute__((used));")]
    for f in functions(source):
        mine = [(n, m) for n, m in numbered.items() if f.body <= m.at and m.end <= f.end]
        if not mine or UNSPLIT.search(text[f.begin:f.body]):
            continue
        pieces += [(None, line) for line in text[at:f.begin].split("\n")]
        pieces += dispatched(text, f, mine, chosen)
        at = f.end
        for n, _ in mine:
            del left[n]
    pieces += [(None, line) for line in (text[at:] + CHOOSE.format(variable=VARIABLE, chosen=chosen)).split("\n")]
    return "\n".join(line for _, line in pieces), [n for n, _ in pieces], left


class Switched:
    """The files of a room with their mutants compiled in."""

    def __init__(self, copy, sources, targets):
        self.copy, self.files, self.linked = copy, [], {}
        self.commands = copy.commands(sources, targets)
        self.own = {f"build/{f[:-2]}.o" for f in sources}
        self.number, self.env = 0, {}

    def add(self, source, mutants):
        """Compiles a file with these mutants; {mutant: number} of those that it holds, and those for which
        the file has to be changed by itself.  What is no valid program is in neither."""
        numbered = {self.number + 1 + i: m for i, m in enumerate(mutants)}
        self.number += len(mutants)
        changed = tree.Changed(self.copy, source.name, self.commands)
        text, owners, alone = text_of(source, numbered)
        while len(numbered) > len(alone):
            bad = self.errors(changed, text, owners)
            if not bad:
                self.files.append(changed)
                return self.different(changed, {n: m for n, m in numbered.items() if n not in alone}), [*alone.values()]
            if None in bad:  # not of one mutant
                alone = numbered
                break
            numbered = {n: m for n, m in numbered.items() if n not in bad}
            text, owners, alone = text_of(source, numbered)
        changed.put_source_back()
        return {}, [*alone.values()]

    def errors(self, changed, text, owners):
        """Mutants with an error of the compiler, None among them for one elsewhere; empty when it compiles."""
        with open(changed.path, "w", encoding="utf-8") as f:
            f.write(text)
        p = subprocess.run(changed.strict(), shell=True, cwd=self.copy.at, env=self.copy.env, capture_output=True,
                           text=True)
        if p.returncode == 0:
            return set()
        at = re.findall(rf"{re.escape(changed.name)}:(\d+):\d+: error", p.stderr)
        return {owners[int(n) - 1] for n in at} or {None}

    def different(self, changed, numbered):
        """{mutant: number}, without those that the compiler makes the same code of as of the original, and
        those in code of another processor, of which it makes none."""
        code = code_of(self.copy, changed.object)
        return {m: n for n, m in numbered.items() if n in code and code[n][1] != code.get((code[n][0], 0))}

    def place(self):
        """Puts the objects where programs find them, and compiles tests that include a source."""
        names = {changed.object for changed in self.files}
        for output, command in self.commands.items():
            held = [w for w in command.split() if w in names]
            if output.endswith(".o") and output not in self.own:
                self.copy.must(self.copy.light(command, "-O1"))
            elif output.endswith(".a") and held:
                self.copy.must(f"ar r {output} {' '.join(held)}")
            elif ".so" in output and held:
                self.copy.must(command)

    def choose(self, number):
        self.env = {VARIABLE: str(number)}

    def link(self, test, more=""):
        """Links a test once for all mutants."""
        if self.linked.get(test) != more:
            command = self.commands.get(f"build/tests/{test}")
            if command is not None:
                self.copy.must(f"{command} -Wl,-S{more}")
            self.linked[test] = more
        return True

    def link_programs(self, tools):
        if "" not in self.linked:
            self.linked[""] = self.files[0].link_programs(tools)
        return self.linked[""]

    @contextlib.contextmanager
    def as_it_was(self):
        kept, self.env = self.env, {}
        try:
            yield
        finally:
            self.env = kept

    def put_back(self):
        for changed in self.files:
            changed.put_source_back()
        self.place()


def code_of(copy, name):
    """{mutant: (function, code)} and {(function, 0): code} of an object: instructions without addresses."""
    out = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", "--no-addresses", name], cwd=copy.at,
                         capture_output=True, text=True).stdout
    found = {}
    for piece in re.split(r"\n(?=<)", out):
        head = re.match(r"<(\w+)__m(\d+)>:\n", piece)
        if head:
            function, number = head.group(1), int(head.group(2))
            code = re.sub(rf"\b{function}__m{number}\b", function, piece[head.end():]).strip()
            found[(function, 0) if number == 0 else number] = code if number == 0 else (function, code)
    return found
