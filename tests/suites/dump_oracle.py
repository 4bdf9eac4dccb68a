#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what tool_rows reads with a reader of its own.

    python3 tests/suites/dump_oracle.py TOOL FILE...

The files are dump.json, construct.json and stack.json.  This reader is Python's
json and the rules of the format, nothing of the library.  A line for each file:
"ok NAME" or "not ok NAME" and the first difference.
"""
import json
import os
import re
import subprocess
import sys

SECTIONS = ("input_args", "input_kwargs", "input", "output", "parameters")
WORD = {"input_args": "input", "input_kwargs": "input", "input": "input", "output": "output",
        "parameters": "parameters"}
STATS = ("Max", "Min", "Mean", "Norm")


class Number(str):
    """A number as written, so that 1 and 1.0 differ and no digit is lost."""


DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Number)


def values(text):
    """The JSON values of a text, each on a line or more."""
    at = 0
    while at < len(text):
        value, at = DECODER.raw_decode(text, at)
        yield value
        at += 1


def is_leaf(v):
    return isinstance(v, dict) and (isinstance(v.get("type"), str) or "class_type" in v)


def leaves(value, path, index=True):
    """(path, leaf) of every leaf, depth first; None is one."""
    if value is None or is_leaf(value):
        yield path, value
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from leaves(v, path + [str(i)] if index else path, index)
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from leaves(v, path + [k], index)
    else:
        yield path, value


def kind_of(name):
    part = name.split(".")
    if part[-1] in ("forward", "backward") and part[-2:-1] and part[-2].isdigit():
        return "api", part[-1]
    if part[-1].isdigit() and part[-2] in ("forward", "backward"):
        return "module", part[-2]
    if "parameters_grad" in part[-2:]:
        return "parameters_grad", "backward"
    if re.search(r"\.\d+\.debug$", name):
        return "debug", ""
    return "other", ""


def rows_of(name, record, level):
    kind = kind_of(name)[0]
    if kind == "parameters_grad":
        found = [("parameters_grad", p, v) for p, v in leaves(record, [], index=False)]
    elif kind == "debug" or level == "debug":
        found = [("debug", p, v) for p, v in leaves(record, [])]
    else:
        found = [(s, [WORD[s]] + p, v) for s in SECTIONS if s in record
                 for p, v in leaves(record[s], [])]
    for section, path, leaf in found:
        yield row(".".join([name] + path), section, leaf if isinstance(leaf, dict) else {})


def row(name, section, leaf):
    if leaf.get("data_name"):
        name = leaf["data_name"].rsplit(".", 1)[0]
    return ["row", name, section, leaf.get("type", leaf.get("class_type", "")),
            leaf.get("dtype", ""), leaf.get("shape")] + [leaf.get(s) for s in STATS] + [
                leaf.get("requires_grad"), leaf.get("md5") or ""]


def mode_of(head, rows):
    if head["task"] in ("tensor", "structure"):
        return head["task"]
    return "md5" if any(r[0] == "row" and r[-1] for r in rows) else "statistics"


def read_dump(doc):
    out = []
    for name, record in doc["data"].items():
        rows = list(rows_of(name, record, doc.get("level")))
        out.append(["record", name, *kind_of(name), Number(len(rows))])
        out += rows
    return [["dump", doc["task"], doc["level"], doc["framework"], mode_of(doc, out)]] + out


def read_tree(doc):
    special = "megatron_micro_step_number"
    out = {}
    for child, parent in doc.items():
        if child != special:
            pair = parent if isinstance(parent, list) else [parent, Number(0)]
            out[child] = ["node", child, pair[0] or None, pair[1]]
    return sorted(out.values())


def read_stacks(doc):
    out = {}
    for key, value in doc.items():
        if doc.get("0"):
            out.update((name, value[1]) for name in value[0])
        else:
            out[key] = value
    return [["stack", name, frames] for name, frames in sorted(out.items())]


READERS = {"construct.json": read_tree, "stack.json": read_stacks}


def first_difference(want, got):
    if got[-1:] and got[-1][0] == "error":
        return got[-1][1]
    for i, (a, b) in enumerate(zip(want, got)):
        if a != b:
            return "line %d: expected %s, got %s" % (i, a, b)
    return None if len(want) == len(got) else "%d lines, expected %d" % (len(got), len(want))


def check(tool, path):
    base = os.path.basename(path)
    with open(path, encoding="utf-8") as f:
        want = READERS.get(base, read_dump)(DECODER.decode(f.read()))
    run = subprocess.run([tool, path], capture_output=True, text=True)
    got = list(values(run.stdout))
    if base in READERS:
        got.sort()
    return first_difference(want, got) or (run.stderr if run.returncode else None)


def main():
    bad = 0
    for path in sys.argv[2:]:
        name = "/".join(path.split("/")[-5:])
        why = check(sys.argv[1], path)
        print("ok " + name if why is None else "not ok %s\n%s" % (name, why))
        bad += why is not None
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
