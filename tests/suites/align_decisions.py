#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the alignment decides about one generated pair of every case, and why, as it is on record.

    align_decisions.py TOOL RECORDS [--update]

align_accuracy.py says how right the alignment is; here any change of a pair, of its confidence or of an
explanation is shown, so that it is made on purpose.  TOOL is tool_align, RECORDS a folder with one text
for each case of gen_cross_pairs.py; --update writes them anew.
"""
import difflib
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/gen"))
import gen_cross_pairs  # noqa: E402

EXPLAINED = 7  # every so manieth node of the target is explained


def run(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def decisions(tool, folder, case, seed):
    run(sys.executable, gen_cross_pairs.__file__, "--seed", str(seed), "--case", case, "--layers", "1",
        "--out", folder)
    target, golden = os.path.join(folder, "target"), os.path.join(folder, "golden")
    text = run(tool, "-v", target, golden)
    with open(os.path.join(target, "dump.json"), encoding="utf-8") as f:
        nodes = list(json.load(f)["data"])
    for node in nodes[seed % EXPLAINED::EXPLAINED]:
        text += f"--- {node}\n" + run(tool, "-e", node, target, golden)
    return text


def check(case, text, path):
    if not os.path.exists(path):
        print(f"not ok align decisions {case}: no {path}")
        return
    with open(path, encoding="utf-8") as f:
        recorded = f.read()
    if text == recorded:
        print(f"ok align decisions {case}")
        return
    print(f"not ok align decisions {case}")
    changes = difflib.unified_diff(recorded.split("\n"), text.split("\n"), "recorded", "now", lineterm="", n=0)
    print("\n".join(list(changes)[:20]))


def main(tool, records, update):
    for number, case in enumerate(gen_cross_pairs.CASES):
        with tempfile.TemporaryDirectory() as folder:
            text = decisions(os.path.abspath(tool), folder, case, 40 + number)
        path = os.path.join(records, case + ".txt")
        if update:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        else:
            check(case, text, path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--update" in sys.argv[3:])
