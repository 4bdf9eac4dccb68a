#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows how often suspect 1 is right where `msprobe compare` says how sure it is.

    certainty.py FOLDER... [--only L0|L1]

FOLDERs are recordings of score.py.  Prints a line for each tenth: lists, what they say on average, and how many
are right; a list of a case without a mistake is wrong.  The last line has the Brier score, the mean square of
what was said and what was so.
"""
import argparse
import json
import os

import score


def rated(o, folder):
    """What each list of suspects says of its first, and whether that is the mistake."""
    o.folder = folder
    with open(os.path.join(folder, "truth.json"), encoding="utf-8") as f:
        cases = json.load(f)
    for case in cases:
        folders, constructs = score.sides_of(o, case)
        first = score.compared(folders)["suspects"][:1]
        if first and score.is_shown(o, case, folders):
            right = case["kind"] == "fault" and score.place_of_truth(o, case, first, folders, constructs) == 1
            yield first[0]["certainty"], right


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("folders", nargs="+")
    ap.add_argument("--only", choices=("L0", "L1"))
    o = ap.parse_args()
    found = [r for folder in o.folders for r in rated(o, folder)]
    if not found:
        raise SystemExit("no suspects in " + " ".join(o.folders))
    for tenth in range(10):
        mine = [(p, right) for p, right in found if min(int(p * 10), 9) == tenth]
        if mine:
            said, right = (sum(x) / len(mine) for x in zip(*mine))
            print(f"{10 * tenth:3d} % to {10 * tenth + 10:3d} %  {len(mine):5d} lists  "
                  f"said {100 * said:5.1f} %  right {100 * right:5.1f} %  {'#' * round(50 * right)}")
    print(f"{len(found)} lists, Brier score {sum((p - right) ** 2 for p, right in found) / len(found):.3f}")


main()
