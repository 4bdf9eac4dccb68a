#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records models that people use with mistakes and harmless changes; scores `msprobe compare` on them.

    score.py record FOLDER [--set NAME] [--families A,B] [--level mix] [--task statistics] [--sample]
    score.py show FOLDER [--half 1|...|12] [-v] [--families A,B] [--only L0|L1]

record makes FOLDER/FAMILY/CASE with dumps and FOLDER/truth.json; show runs compare on each pair.
Rules and thresholds are fixed on half 1 of the families of the first set; half 2 only shows them.
--set third records the families of unseen_families.py instead, as half 3, --set fourth those of
fourth_families.py, as half 4, and so on to the twelfth. Each set was scored before a rule was changed for it.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.environ.get("B", os.path.join(HERE, "..", "..", "build"))
sys.path[:0] = [HERE, os.path.join(B, "python")]

import levels
SAMPLE = {"unet", "gat"}
LATER_SETS = {"third": (3, "unseen"), "fourth": (4, "fourth"), "fifth": (5, "fifth"), "sixth": (6, "sixth"),
              "seventh": (7, "seventh"), "eighth": (8, "eighth"), "ninth": (9, "ninth"), "tenth": (10, "tenth"), "eleventh": (11, "eleventh"),
              "twelfth": (12, "twelfth")}


# ---- recording -------------------------------------------------------------------------

def cases_of(family, model):
    import changes
    for kind, found in (("fault", changes.faults), ("clean", changes.variations)):
        for change in found(family, model):
            yield kind, change


def later_cases_of(changes, family, model, index):
    """As cases_of, for the later sets, whose families take their changes in turn."""
    for kind, found in (("fault", changes.faults), ("clean", changes.variations)):
        for change in found(family, model, index):
            yield kind, change


def listed(o):
    """Each family to record, its half, and a function that lists its cases."""
    import functools
    import importlib
    import families
    if o.set == "first":
        for i, family in enumerate(families.families()):
            yield family, families.half_of(i), cases_of
        return
    half, name = LATER_SETS[o.set]
    changes = importlib.import_module(name + "_changes")
    for i, family in enumerate(importlib.import_module(name + "_families").families()):
        yield family, half, functools.partial(later_cases_of, changes, index=i)


def record_family(o, family, half, cases):
    import dumps
    root = os.path.join(o.folder, family.name)
    os.makedirs(root, exist_ok=True)
    keys = {"level": o.level, "task": o.task}
    if not dumps.record_apart(family, None, root + "/golden", **keys):
        print(f"not recorded: {family.name}")
        return []
    made = []
    for kind, change in cases(family, family.make()):
        if not dumps.record_apart(family, change.apply, f"{root}/{kind}-{change.name}", **keys):
            log = open(f"{root}/{kind}-{change.name}.log", encoding="utf-8").read()
            print(f"not recorded: {family.name} {change.name}: {log.strip().splitlines()[-1:]}")
            continue
        made.append({"family": family.name, "half": half, "kind": kind, "case": change.name,
                     "group": change.group, "why": change.why, "truth": change.truth})
    return made


def write_truth(o, made):
    with open(os.path.join(o.folder, "truth.json"), "w", encoding="utf-8") as f:
        json.dump(made, f, indent=1)


def record(o):
    try:
        import torch
        families = list(listed(o))
    except ImportError as error:
        print(f"skip models: {error}")
        return 0
    import dumps
    torch.set_num_threads(1)
    dumps.warm_up()
    made = []
    for family, half, cases in families:
        if o.families and family.name not in o.families or o.sample and family.name not in SAMPLE:
            continue
        made += record_family(o, family, half, cases)
        write_truth(o, made)  # a recording that is cut off can be scored
    print(f"recorded {len(made)} cases of {len({c['family'] for c in made})} families")
    return 0


# ---- scoring ---------------------------------------------------------------------------

def module_path(name):
    m = re.match(r"Module\.(.*)\.\w+\.(?:forward|backward|parameters_grad)(?:\.\d+)?$", name or "")
    return m.group(1) if m else None


def place(name, construct):
    parent = construct.get(name)
    parent = parent[0] if isinstance(parent, list) and parent else parent
    return module_path(name) or module_path(parent) or parent or ""


def sides_of(o, case):
    """Folders of target and golden; their construct.json; and those of level mix that they were made of."""
    names = [f"{case['family']}/{case['kind']}-{case['case']}", f"{case['family']}/golden"]
    whole = [os.path.join(o.folder, n) for n in names]
    constructs = [json.load(open(p + "/construct.json", encoding="utf-8")) for p in whole]
    return [levels.derive(o.only, o.folder, n) for n in names] if o.only else whole, constructs


def compared(folders):
    target, golden = folders
    run = subprocess.run([os.path.join(B, "msprobe"), "compare", "-tp", target, "-gp", golden, "-o",
                          target + ".out", "--format", "json"], capture_output=True, text=True)
    if not run.stdout:
        raise SystemExit(f"{target}: {run.stderr}")
    return json.loads(run.stdout)


def place_of_truth(o, case, suspects, folders, constructs):
    if o.only == "L0":
        modules = levels.modules_of_truth(case["truth"], constructs, place)
        first = levels.first_differences(folders)
    for at, s in enumerate(suspects, 1):
        names = [(s.get("target"), constructs[0]), (s.get("golden"), constructs[1])]
        if any(n and re.search(case["truth"], f"{n} @ {place(n, k)}") for n, k in names):
            return at
        if o.only == "L0" and any(n and levels.is_right_module(n, modules, first) for n, _ in names):
            return at
    return 0


def is_shown(o, case, folders):
    """What happens after backward leaves no trace in modules."""
    return o.only != "L0" or case["kind"] == "clean" or bool(levels.first_differences(folders))


def show_case(o, case, total):
    folders, constructs = sides_of(o, case)
    suspects = compared(folders)["suspects"]
    fault, half = case["kind"] == "fault", case["half"]
    if not is_shown(o, case, folders):
        total[half, "hidden", "n"] += 1
        total[half, "hidden", "first"] += bool(suspects)
        return
    at = place_of_truth(o, case, suspects, folders, constructs) if fault else len(suspects)
    total[half, case["kind"], "n"] += 1
    total[half, case["kind"], "first"] += at == 1 if fault else at > 0
    total[half, case["kind"], "five"] += 1 <= at <= 5
    if (at != 1) if fault else at:
        print(f"{half} {case['kind']} {case['family']}/{case['case']} place {at or '-'}: {case['why']}")
        for s in suspects[:3 if o.verbose else 1]:
            print(f"      {s.get('target')} | {s.get('golden')}: {s['why']}: {s['text'][:150]}")


def show(o):
    with open(os.path.join(o.folder, "truth.json"), encoding="utf-8") as f:
        cases = [c for c in json.load(f) if (not o.half or c["half"] == o.half)
                 and (not o.families or c["family"] in o.families)
                 and (not o.case or c["case"] == o.case)]
    total = collections.Counter()
    for case in cases:
        show_case(o, case, total)
    failed = 0
    for half in range(1, 13):
        n, clean = total[half, "fault", "n"], total[half, "clean", "n"]
        if n + clean == 0:
            continue
        print(f"half {half}: suspect 1 {total[half, 'fault', 'first']}/{n}, first five "
              f"{total[half, 'fault', 'five']}/{n}; clean accused {total[half, 'clean', 'first']}/{clean}"
              + (f"; in no module {total[half, 'hidden', 'n']}" if o.only == "L0" else ""))
        failed |= total[half, "fault", "first"] < o.least * n
    return int(failed)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("what", choices=("record", "show"))
    ap.add_argument("folder")
    ap.add_argument("--families", type=lambda t: t.split(","))
    ap.add_argument("--case")
    ap.add_argument("--half", type=int)
    ap.add_argument("--level", default="mix")
    ap.add_argument("--task", default="statistics")
    ap.add_argument("--set", choices=("first", *LATER_SETS), default="first")
    ap.add_argument("--sample", action="store_true", help="only two small families of plain torch")
    ap.add_argument("--least", type=float, default=0, help="least share of suspect 1 for success")
    ap.add_argument("--only", choices=("L0", "L1"), help="score what a dump of this level holds")
    ap.add_argument("-v", dest="verbose", action="store_true")
    o = ap.parse_args()
    return record(o) if o.what == "record" else show(o)


if __name__ == "__main__":
    sys.exit(main())
