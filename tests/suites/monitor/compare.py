#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the csv files and the alarms of two monitors value by value.

    compare.py OURS THEIRS [mindspore]     folders with a folder for each program

Both round to `ndigits` = 6 decimals what they computed in float64. They add in another order, so that a figure
may fall on the other side of a rounding boundary: values are equal when they differ by at most one unit of the
last decimal, or by 1e-12 of their magnitude. Names, steps, shapes, dtypes, counts and the order of lines are
compared as texts.

With MindSpore the official monitor adds in float32, so figures may differ by 1e-6 of their size. Its lines of
optimizer states lack the stage, so that the first figure stands before the step, and they have the state's name
before the parameter's; they are put right before they are compared."""
import csv
import json
import os
import re
import sys

UNIT = 1.000001e-6
IS_MINDSPORE = "mindspore" in sys.argv[3:]
RELATIVE = 1e-6 if IS_MINDSPORE else 1e-12

# Lines that differ, and why: (program, file, name).
KNOWN = {
    # Results that the module itself uses further: their gradient is here the whole, there that of the part outside
    # of the module, which only a node in the program's graph can tell apart.
    ("vae", "actv_grad", ".output_1"), ("vae", "actv_grad", ".output_2"),
}


def folders(path):
    """Returns {rank: folder} of one program."""
    found = {}
    for name in sorted(os.listdir(path)):
        match = re.match(r"[\w-]{0,20}-rank(\d+)-", name)
        if match:
            found[match.group(1)] = os.path.join(path, name)
    return dict(sorted(found.items()))


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def put_right(rows):
    """Returns MindSpore's lines of optimizer states with a stage and the parameter's name."""
    return [row if row[0] == "vpp_stage" or row[0].isdigit() else
            ["0", re.sub(r"^exp_avg(_sq)?\.", "", row[0]), row[2], row[1], *row[3:]] for row in rows]


def equal(a, b):
    if a == b:
        return True
    try:
        x, y = float(a), float(b)
    except ValueError:
        return False
    return "." in a and "." in b and abs(x - y) <= max(UNIT, RELATIVE * max(abs(x), abs(y)))


def differences(ours, theirs, known):
    """Yields (where, our text, their text); not of the names in `known`."""
    if len(ours) != len(theirs):
        yield "number of lines", len(ours), len(theirs)
    for n, (a, b) in enumerate(zip(ours, theirs), 1):
        if b[1] in known and a[1] == b[1]:
            continue
        if len(a) != len(b):
            yield f"line {n}: number of columns", a, b
        for column, x, y in zip(theirs[0], a, b):
            if not equal(x, y):
                yield f"line {n} {b[:4]} {column}", x, y


def alarm_texts(path, name):
    path = os.path.join(path, name, "anomaly_detected")
    found = {}
    for rank in sorted(os.listdir(path)) if os.path.isdir(path) else []:
        with open(os.path.join(path, rank, "anomaly.json"), encoding="utf-8") as file:
            found[rank] = json.load(file)
    return found


NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


def same_sentence(a, b):
    """Compares sentences; the numbers in them, which are not rounded, may differ by 1e-12 of their size."""
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b))
    return NUMBER.sub("#", a) == NUMBER.sub("#", b) and \
        all(abs(float(p) - float(q)) <= RELATIVE * max(1, abs(float(q))) for p, q in pairs)


def without_calls(alarms):
    """Returns alarms by their keys without the number of the call: the official tool hears of the gradient of an
    input when a node of its own runs, later than we do."""
    return {re.sub(r"_call_-?\d+$", "", key): {**value, "call_id": 0} for key, value in alarms.items()}


def alarm_differences(a, b):
    """Yields what differs between two files of alarms, in the order of their keys."""
    a, b = without_calls(a), without_calls(b)
    for n, (key, other) in enumerate(zip(a, b)):
        if key != other:
            yield f"alarm {n} is {key}, theirs {other}"
            return
        x, y = a[key], b[key]
        if {**x, "message": 0} != {**y, "message": 0} or not same_sentence(x["message"], y["message"]):
            yield f"alarm {n}: {x}, theirs {y}"
    if len(a) != len(b):
        yield f"{len(a)} alarms, theirs {len(b)}"


def compare_program(name, ours, theirs):
    """Returns (files, values, complaints)."""
    a, b = folders(os.path.join(ours, name)), folders(os.path.join(theirs, name))
    complaints = [] if list(a) == list(b) and a else [f"folders of ranks {list(a)}, theirs {list(b)}"]
    files = values = 0
    for rank in a if not complaints else ():
        mine = {f for f in os.listdir(a[rank]) if f.endswith(".csv")}
        other = {f for f in os.listdir(b[rank]) if f.endswith(".csv")}
        complaints += [f"rank {rank}: {f} only of one" for f in sorted(mine ^ other)]
        for f in sorted(mine & other):
            x, y = rows_of(os.path.join(a[rank], f)), rows_of(os.path.join(b[rank], f))
            y = put_right(y) if IS_MINDSPORE else y
            known = {n for p, kind, n in KNOWN if p == name and f.startswith(kind + "_")}
            files += 1
            values += sum(map(len, y))
            complaints += [f"rank {rank}: {f}: {where}: {p}, theirs {q}" for where, p, q in differences(x, y, known)]
    mine, other = alarm_texts(ours, name), alarm_texts(theirs, name)
    if mine.keys() != other.keys():
        complaints.append(f"alarms of ranks {list(mine)}, theirs {list(other)}")
    for rank in mine.keys() & other.keys():
        complaints += [f"rank {rank}: {text}" for text in alarm_differences(mine[rank], other[rank])]
        values += sum(map(len, other[rank].values()))
    return files, values, complaints


def main(ours, theirs):
    bad = 0
    for name in sorted(os.listdir(theirs)):
        files, values, complaints = compare_program(name, ours, theirs)
        if complaints or not files:
            bad = 1
            print(f"not ok csv_equals_the_official_{name}: {len(complaints)} differences in {files} files")
            print("\n".join(complaints[:6]))
        else:
            print(f"ok csv_equals_the_official_{name} # {files} files, {values} values")
    return bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
