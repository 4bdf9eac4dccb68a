#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Places in a C file where one token, call or condition can be changed, and the changes.

A mutant is a file with one change inside a function.  Left alone is what changes nothing that a
caller sees: contracts (ms_assert, compiled out), sizes of local arrays and of blocks (larger ones
hold as much), named limits of a function (`enum { MOST = 64 };`, as those outside of functions:
bounds of work that a benchmark tuned), the 0 of an empty initializer, lines of the log, advice to
the kernel, and the 1 of a comparator (its sign counts).
"""
import re
from collections import namedtuple

# lines: those of the statement, as a compiler may count a line of it and not that of the change
Mutant = namedtuple("Mutant", "file kind at end new line text lines")

TOKEN = re.compile(r"""
    (?P<skip>//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
  | (?P<number>0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[uUlLfF]*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark>->|\+\+|--|<<=|>>=|\.\.\.|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]])
""", re.X | re.S | re.M)

BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
COMPARISON = {"==": "!=", "!=": "==", "<": ">", ">": "<", "&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<",
              "&": "|", "|": "&", "++": "--", "--": "++", "+=": "-=", "-=": "+="}
EITHER_SIDE = {"+", "-", "*", "&"}  # one operand: a sign, a pointer, an address
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "case", "goto", "do", "else",
            "static_assert", "ms_assert", "assert", "_Alignas", "defined", "__attribute__"}
# Either order of their arguments is the same, or another hash that is as good.
COMMUTES = {"strcmp", "strncmp", "strcasecmp", "memcmp", "ms_str_eq", "MS_MIN", "MS_MAX", "fmax", "fmin",
            "ms_hash_mix", "ms_calloc", "calloc"}
ADVICE = {"madvise", "posix_fadvise", "malloc_trim", "__builtin_prefetch", "__builtin_expect",
          "ms_file_release", "ms_file_release_part", "mstx__deps_trim"}
CONTRACTS = ADVICE | {"ms_log", "ms_log_write", "ms_assert", "assert", "static_assert", "_Alignas", "__attribute__"}
# A larger block holds as much.
ALLOCATORS = {"ms_alloc", "ms_calloc", "ms_realloc", "ms_arena_alloc", "ms_arena_calloc", "ms_vec_reserve", "ms_buf_room",
              "malloc", "calloc", "realloc"}
BOUND_OF_BUFFER = re.compile(r"\bms_buf \w+ = \{\.max = [^}]*\}")
LOCAL_ARRAY = re.compile(r"^\s*(?:static |const |_Alignas\([\w ]+\) |unsigned |struct )*\w+ \**\w+\[[^\]]*\]")


class Source:
    """Tokens of a file, and which of them stand in the body of a function."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.tokens = [(m.lastgroup, m.group(), m.start(), m.end())
                       for m in TOKEN.finditer(text) if m.lastgroup != "skip" or m.group()[0] in "\"'"]
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.partner = self._partners()
        self.inside = self._bodies()
        self.sizes = self._within(ALLOCATORS)

    def _partners(self):
        stack, partner = [], {}
        for i, (_, t, _, _) in enumerate(self.tokens):
            if t in ("(", "[", "{"):
                stack.append(i)
            elif t in (")", "]", "}") and stack:
                j = stack.pop()
                partner[i], partner[j] = j, i
        return partner

    def _bodies(self):
        inside, i, depth = set(), 0, 0
        while i < len(self.tokens):
            t = self.tokens[i][1]
            if t == "{" and depth == 0 and i > 0 and self.tokens[i - 1][1] == ")":
                inside.update(range(i, self.partner.get(i, i)))
                i = self.partner.get(i, i)
            elif t in CONTRACTS:
                i = self.partner.get(i + 1, i)
            i += 1
        return inside - self._contracts()

    def _within(self, names):
        """Tokens of the arguments of calls of these names."""
        found = set()
        for i, (_, t, _, _) in enumerate(self.tokens):
            if t in names and i + 1 in self.partner:
                found.update(range(i, self.partner[i + 1] + 1))
        return found

    def _contracts(self):
        found = set()
        for i, (_, t, _, _) in enumerate(self.tokens):
            bracket = "(" if t in CONTRACTS else "{" if t == "enum" else None
            if bracket and i + 1 in self.partner and self.tokens[i + 1][1] == bracket:
                found.update(range(i, self.partner[i + 1] + 1))
        return found

    def line_of(self, at):
        lo, hi = 0, len(self.lines)
        while lo + 1 < hi:
            mid = (lo + hi) // 2
            lo, hi = (mid, hi) if self.starts[mid] <= at else (lo, mid)
        return lo + 1

    def mutant(self, kind, at, end, new, text=None):
        line = self.line_of(at)
        last = self.line_of(max(at, end - 1))
        begin, stop = self.starts[line - 1], self.starts[last] - 1
        changed = text or self.text[begin:at] + new + self.text[end:stop]
        return Mutant(self.name, kind, at, end, new, line, " ".join(changed.split()), self.statement(at))

    def statement(self, at):
        begin = max(self.text.rfind(c, 0, at) for c in ";{}") + 1
        begin += len(self.text[begin:at]) - len(self.text[begin:at].lstrip())
        end = min((e for e in (self.text.find(c, at) for c in ";{}") if e >= 0), default=at)
        return range(self.line_of(begin), self.line_of(end) + 1)

    def apply(self, m):
        return self.text[:m.at] + m.new + self.text[m.end:]


def has_operand(token):
    return token[0] in ("number", "word", "skip") and token[1] not in KEYWORDS or token[1] in (")", "]")


def is_length_of_text(s, i):
    """`n < 0` of n = snprintf(...): no text here is empty, so 0 does not happen."""
    near = "\n".join(s.lines[max(0, s.line_of(s.tokens[i][2]) - 5):s.line_of(s.tokens[i][2])])
    name = re.escape(s.tokens[i - 1][1])
    return s.tokens[i + 1][1] == "0" and re.search(rf"\b{name} = v?snprintf\(", near) is not None


# The first size of what grows by itself: one more or less is another moment of growth.
FIRST_SIZE = re.compile(r"(?:cap|capacity|room) != 0 \? (?:2 \* [\w.>-]+|[\w.>-]+ \* 2) : \d+")
OPERAND = r"([\w.>\[\]-]+(?: [-+] [\w.>\[\]-]+)?)"
CHOICE = re.compile(rf"{OPERAND} [<>]=? {OPERAND} \? (?:\1 : \2|\2 : \1)(?![\w.\[-])")


def is_choice_of_operands(s, i):
    """`a < b ? a : b`: of two equal ones either is the less."""
    line = s.line_of(s.tokens[i][2])
    at = s.tokens[i][2] - s.starts[line - 1]
    return any(m.start() < at < m.end() for m in CHOICE.finditer(s.lines[line - 1]))


def of_operators(s, i):
    _, t, at, end = s.tokens[i]
    binary = has_operand(s.tokens[i - 1])
    if t in EITHER_SIDE and not binary:
        return
    if t in BOUNDARY and not is_length_of_text(s, i) and not is_choice_of_operands(s, i):
        yield s.mutant("boundary", at, end, BOUNDARY[t])
    if t in COMPARISON:
        yield s.mutant("comparison", at, end, COMPARISON[t])
    if t in ARITHMETIC:
        yield s.mutant("arithmetic", at, end, ARITHMETIC[t])


def of_constants(s, i):
    kind, t, at, end = s.tokens[i]
    line = s.lines[s.line_of(at) - 1]
    if kind != "number" or i in s.sizes or any(size.search(line) for size in (LOCAL_ARRAY, FIRST_SIZE, BOUND_OF_BUFFER)):
        return
    if t == "1" and (s.text.endswith("? -1 : ", 0, at) or
                     s.text.endswith("? ", 0, at) and s.text.startswith(" : -1", end)):
        return  # of a comparator
    if s.text.endswith("= {", 0, at) and s.text.startswith("}", end):
        return  # the empty initializer: the number stands for no member
    if s.tokens[i - 1][1] == "<" and is_length_of_text(s, i - 1):
        return
    if s.tokens[i - 1][1] == "-" and not has_operand(s.tokens[i - 2]):
        yield s.mutant("constant", at, end, f"(-{t})")  # a comparator may return -2 as well as -1
        return
    number = re.match(r"0[xX][0-9a-fA-F]+|\d+", t).group()
    tail = t[len(number):]
    if re.fullmatch(r"[uUlL]*", tail):
        octal = re.fullmatch(r"0[0-7]+", number)
        new = f"0{int(number, 8) + 1:o}" if octal else str(int(number, 0) + 1)
        yield s.mutant("constant", at, end, new + tail)
    else:
        yield s.mutant("constant", at, end, f"({t} * 2)")


def of_conditions(s, i):
    if s.tokens[i][1] == "if" and i + 1 in s.partner:
        at, end = s.tokens[i + 1][3], s.tokens[s.partner[i + 1]][2]
        yield s.mutant("negated", at, end, f"!({s.text[at:end]})")


def arguments(s, opened):
    """Where each argument of the call whose bracket is token `opened` begins and ends."""
    found, i, begin = [], opened + 1, s.tokens[opened][3]
    while i < s.partner[opened]:
        if s.tokens[i][1] in ("(", "[", "{"):
            i = s.partner[i]
        elif s.tokens[i][1] == ",":
            found.append((begin, s.tokens[i][2]))
            begin = s.tokens[i][3]
        i += 1
    return found + [(begin, s.tokens[s.partner[opened]][2])]


def of_calls(s, i):
    kind, t, at, _ = s.tokens[i]
    if kind != "word" or t in KEYWORDS or s.tokens[i + 1][1] != "(" or i + 1 not in s.partner:
        return
    close = s.partner[i + 1]
    if s.tokens[i - 1][1] in (";", "{", "}", ")", "else") and s.tokens[close + 1][1] == ";":
        end = s.tokens[close][3]
        yield s.mutant("removed call", at, end, "(void)0", s.text[at:end])
    args = arguments(s, i + 1)
    if len(args) >= 2:
        (a, b), (c, d) = args[0], args[1]
        one, two = s.text[a:b].strip(), s.text[c:d].strip()
        if one != two and t not in COMMUTES:
            yield s.mutant("swapped", a, d, f"{two}, {one}")


def mutants_of(name, text):
    s = Source(name, text)
    found = []
    for i in sorted(s.inside):
        for make in (of_operators, of_constants, of_conditions, of_calls):
            found.extend(make(s, i))
    return s, found
