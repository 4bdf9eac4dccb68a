#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the rows of compare/pair/api_twins.txt from a ms_pt_api_map.yaml: tests/gen/api_table.py MAP"""
import re
import sys


def names_of(text):
    return [n.strip() for n in text.split(',') if n.strip()]


def twins(text):
    """The file's own small layout is read with patterns, so that no YAML package is needed."""
    section = text[text.index('\nsame_name:'):text.index('\nrenamed:')]
    for ms, pt, names in re.findall(r'- ms: (\S+)\s+pt: (\S+)\s+names: \[(.*?)\]', section, re.S):
        for name in names_of(names):
            yield f'{ms}.{name}', f'{pt}.{name}'
    renamed = text[text.index('\nrenamed:'):text.index('\ndump_prefix:')]
    yield from re.findall(r'\{ms: ([^,]+), pt: ([^}]+)\}', renamed)


def main():
    table = sorted(dict(twins(open(sys.argv[1]).read())).items())
    for ms, pt in table:
        print(ms, pt)


main()
