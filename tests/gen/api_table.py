#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write compare/api_table.c from a ms_pt_api_map.yaml: tests/gen/api_table.py MAP > compare/api_table.c"""
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
    print('''/* SPDX-License-Identifier: MIT
 *
 * api_table: MindSpore names and their PyTorch twins, as the official tool has
 * them.  Made by tests/gen/api_table.py; sorted by the first column.
 */
#include "compare/cmp_int.h"

/* clang-format off */
const struct cmp__api_twin cmp__api_twins[] = {''')
    for ms, pt in table:
        print(f'    {{"{ms}", "{pt}"}},')
    print('''};
/* clang-format on */
const size_t cmp__api_twin_count = sizeof cmp__api_twins / sizeof *cmp__api_twins;''')


main()
