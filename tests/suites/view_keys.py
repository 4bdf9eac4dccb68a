#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the keys and commands that the viewer's help lists with those of its manual page.

    python3 tests/suites/view_keys.py MSPROBE MANPAGE GRAPH RUN

Both ways: what one has and the other lacks, or says in other words, is printed, and
the exit status is 1.
"""
import os
import re
import subprocess
import sys
import tempfile

SCREENS = [('1 Findings', 'graph', '?', []), ('2 Tree', 'graph', '2?', []), ('3 Timeline', 'run', '3?', []),
           ('4 Report', 'run', '4?', []), ('5 Live', 'run', '5?', ['--live'])]
ESCAPES = {r'\(ua': '↑', r'\(da': '↓', r'\(<-': '←', r'\(->': '→', r'\-': '-', r'\e': '\\', r'\&': '', r'\(ga': '`'}


def of_help(msprobe, path, keys, options):
    """{section: {keys: text}}; sections are those of the screen, 'anywhere' and 'commands'."""
    with tempfile.NamedTemporaryFile('w') as f:
        f.write(keys)
        f.flush()
        out = subprocess.run([msprobe, 'view', '--script', f.name, '--size', '160x200', *options, path], check=True,
                             capture_output=True, encoding='utf-8', env=dict(os.environ, LC_ALL='C.UTF-8')).stdout
    found, section = {}, None
    for line in out.split('\n')[2:-3]:
        if re.match(r' \S', line):
            section = line.strip()
            found[section] = {}
        elif section == 'commands' and line.strip():
            m = re.match(r'   (:\S+) +((?:PLACE|rank N|FILE|QUERY)? *)(\S.*)$', line)
            found[section][f'{m.group(1)} {m.group(2).strip()}'.strip()] = m.group(3)
        elif line.strip():
            keys, text = line[3:20].strip(), line[20:].strip()
            found[section][keys] = text
    return found


def plain(text):
    for escape, letter in ESCAPES.items():
        text = text.replace(escape, letter)
    return re.sub(r'\\f[BIRP]', '', text)


def of_man(path):
    """{heading: {keys: text}} of all .TP entries below .SS and .SH headings."""
    found, heading, tag = {}, '', None
    lines = open(path, encoding='utf-8').read().split('\n')
    for i, line in enumerate(lines):
        m = re.match(r'\.S[SH] "?([^"]*)"?$', line)
        if m:
            heading, tag = m.group(1), None
        elif line == '.TP':
            m = re.match(r'\.(BI|B|BR|IR) (.*)', lines[i + 1])
            words = re.findall(r'"([^"]*)"|(\S+)', m.group(2))
            words = [a or b for a, b in words]
            tag = plain(('' if m.group(1) in ('BI', 'BR', 'IR') else ' ').join(words))
            found.setdefault(heading, {})[tag] = ''
        elif tag is not None and line and not line.startswith('.') and i > 0:
            found[heading][tag] = (found[heading][tag] + ' ' + plain(line)).strip()
        elif line.startswith(('.PP', '.RE')):
            tag = None
    return found


def compare(where, said, written):
    wrong = [f'{where}: "{k}" is in the help alone' for k in said if k not in written]
    wrong += [f'{where}: "{k}" is in the manual alone' for k in written if k not in said]
    wrong += [f'{where}: "{k}" is "{said[k]}" in the help, "{written[k]}" in the manual'
              for k in said if k in written and said[k] != written[k].rstrip('.')]
    return wrong


def main():
    msprobe, page, graph, run = sys.argv[1:]
    man, wrong = of_man(page), []
    for name, path, keys, options in SCREENS:
        found = of_help(msprobe, graph if path == 'graph' else run, keys, options)
        anywhere, commands = found.pop('anywhere'), found.pop('commands')
        wrong += compare(name, {k: t for part in found.values() for k, t in part.items()}, man.get(name, {}))
    wrong += compare('anywhere', anywhere, man.get('Everywhere', {}))
    wrong += compare('commands', commands, man.get('COMMANDS', {}))
    print('\n'.join(wrong))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
