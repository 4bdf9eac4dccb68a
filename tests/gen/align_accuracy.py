#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often the alignment is right: make bench-align.

Generates pairs of every case of gen_cross_pairs.py, aligns them without a mapping
and prints precision (pairs whose entries compute the same thing), group recall
(things computed on both sides that have a right pair), and the same for modules.
Limits of the aligner were set with the seeds of the first table and are reported
with those of the second.

    python3 tests/gen/align_accuracy.py [--pairs 20] [--tool build/tests/tool_align]
                                        [--case NAME] [--model NAME] [--show] [--tuning] [--speed]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import gen_cross_models as models
import gen_cross_pairs as gen

# Pair precision, group recall, module precision and recall that no case may fall below.
LIMITS = (0.97, 0.97, 0.97, 0.97)
SEEDS = (("set with seeds", 1000), ("reported with seeds", 500000))


def align(tool, folder):
    out = subprocess.run([tool, os.path.join(folder, "target"), os.path.join(folder, "golden")],
                         capture_output=True, text=True, check=True).stdout
    return [tuple(line.split(",")) for line in out.splitlines()[1:]]


def where(groups):
    """Group by name, for either side."""
    return [{name: i for i, group in enumerate(groups) for name in group[side]} for side in (0, 1)]


def score(truth, pairs):
    """Precision and recall of ops, then of modules; what was wrong and what is missing."""
    groups = truth["groups"]
    of = where(groups)
    idle = where(truth["idle"])
    ops = [p for p in pairs if not p[0].startswith("Module.")]
    mods = [p for p in pairs if p[0].startswith("Module.") and ".forward." in p[0]]
    found = [p for p in ops if p[0] in of[0] and of[0][p[0]] == of[1].get(p[1])]
    hit = {of[0][p[0]] for p in found}
    right = found + [p for p in ops if p not in found and p[0] in idle[0] and idle[0][p[0]] == idle[1].get(p[1])]
    true_mods = {tuple(p) for p in truth["modules"]}
    right_mods = [p for p in mods if p in true_mods]
    wanted = {p[0] for p in true_mods}
    figures = (len(right) / max(1, len(ops)), len(hit) / max(1, len(groups)),
               len(right_mods) / max(1, len(mods)), len({p[0] for p in right_mods}) / max(1, len(wanted)))
    lost = sorted(wanted - {p[0] for p in right_mods})
    wrong = sorted(set(ops) - set(right)) + sorted(set(mods) - set(right_mods))
    missing = [g for i, g in enumerate(groups) if i not in hit]
    return figures, wrong, missing + [[[name], [""]] for name in lost]


def generate(seed, case, folder, model):
    if model:
        opts = models.options(seed, case, folder, model)
        return opts, models.make(opts)
    opts = gen.options(seed, case, folder)
    return opts, gen.make(opts)


def run_case(args, case, first, model=None):
    rows, seconds = [], 0.0
    for k in range(args.pairs):
        with tempfile.TemporaryDirectory() as folder:
            opts, runs = generate(first + k, case, folder, model)
            gen.write(opts, runs)
            start = time.perf_counter()
            pairs = align(args.tool, folder)
            seconds += time.perf_counter() - start
            figures, wrong, missing = score(gen.truth(runs), pairs)
            rows.append(figures)
            if args.show and (wrong or missing):
                print(case, first + k, "wrong", wrong[:6], "missing", [(g[0][-1], g[1][-1]) for g in missing[:6]])
                keys = [{n: k for k, v in r.group.items() for n in v} for r in runs]
                print("  ", [(keys[0].get(a), keys[1].get(b)) for a, b in wrong])
    return rows, seconds


def print_table(args, title, first, cases, model=None):
    print(f"\n{model + ', ' if model else ''}{title} {first}..{first + args.pairs - 1}: mean (worst) of {args.pairs} pairs a case")
    print(f"{'case':12s} {'pair precision':>16s} {'group recall':>16s} {'module precision':>17s} {'module recall':>16s}"
          f" {'ms a pair':>10s}")
    for case in cases:
        rows, seconds = run_case(args, case, first, model)
        cells = [f"{sum(c) / len(c):.4f} ({min(c):.3f})" for c in zip(*rows)]
        print(f"{case:12s} {cells[0]:>16s} {cells[1]:>16s} {cells[2]:>17s} {cells[3]:>16s}"
              f" {1000 * seconds / len(rows):10.1f}")
        sys.stdout.flush()


def report(name, figures):
    good = all(f >= limit for f, limit in zip(figures, LIMITS))
    print(f"{'ok' if good else 'not ok'} align {name}", "" if good else " ".join(f"{f:.3f}" for f in figures))


def check_recorded(tool, folder):
    """A pair that was recorded, with what goes together in its truth.json."""
    with open(os.path.join(folder, "truth.json")) as f:
        truth = json.load(f)
    names = {"groups": [[g["pytorch"], g["mindspore"]] for g in truth["groups"]], "idle": [],
             "modules": [m for m in truth["modules"] if ".forward." in m[0]]}
    out = subprocess.run([tool, *(os.path.join(folder, side, "step0/rank0") for side in ("target", "golden"))],
                         capture_output=True, text=True, check=True).stdout
    figures, _, _ = score(names, [tuple(line.split(",")) for line in out.splitlines()[1:]])
    report(os.path.basename(folder), figures)


def print_speed(args):
    """Time and memory of large pairs, beyond reading the files; cells tell whether work grows with
    the product of both sizes."""
    print("\nspeed: time of aligning by all processors, least of 3 runs")
    for case, layers in (("plain", 150), ("plain", 600), ("fault", 600), ("values", 600)):
        with tempfile.TemporaryDirectory() as folder:
            runs = gen.make(opts := gen.options(77, case, folder, layers))
            gen.write(opts, runs)
            lines = [figures(args.tool, folder) for _ in range(3)]
            best = min(lines, key=lambda s: float(s.split(" s,")[0].split()[-1]))  # wall time, two or more threads
            print(f"  {case:8s} {len(runs[0].data):7d} + {len(runs[1].data):7d} entries: {best}")
            sys.stdout.flush()


def compare_cpu(folder):
    """Processor time of `msprobe compare` of a pair, with the search for suspects."""
    program = os.path.join(os.environ.get("B", "build"), "msprobe")
    with subprocess.Popen([program, "compare", "-tp", folder + "/target", "-gp", folder + "/golden", "-o",
                           folder + "/out"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = status
    if status != 0:
        raise SystemExit(f"msprobe compare: status {status}")
    return used.ru_utime + used.ru_stime


def print_growth():
    """Work that grows with the product of both sizes takes sixteen times as long at four times the size."""
    print("\ngrowth: processor time of comparing four times as many layers, suspects included; least of 3 runs")
    for case in ("plain", "values", "fault"):
        took = []
        for layers in (75, 300):
            with tempfile.TemporaryDirectory() as folder:
                opts = gen.options(77, case, folder, layers)
                gen.write(opts, gen.make(opts))
                took.append(min(compare_cpu(folder) for _ in range(3)))
        print(f"  {case:8s} {took[0]:.2f} s -> {took[1]:.2f} s, {took[1] / took[0]:.1f} times")
        sys.stdout.flush()


def figures(tool, folder):
    return subprocess.run([tool, "-s", os.path.join(folder, "target"), os.path.join(folder, "golden")],
                          capture_output=True, text=True, check=True).stdout.strip()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pairs", type=int, default=20)
    p.add_argument("--tool", default=os.path.join(os.environ.get("B", "build"), "tests/tool_align"))
    p.add_argument("--case", choices=gen.CASES)
    p.add_argument("--model", choices=["decoder", *models.MODELS, "all"], help="one model, or all but the decoder")
    p.add_argument("--show", action="store_true", help="print what was wrong or missing")
    p.add_argument("--tuning", action="store_true", help="the first table alone")
    p.add_argument("--check", action="store_true", help="print ok or not ok for every case")
    p.add_argument("--recorded", help="check a recorded pair")
    p.add_argument("--speed", action="store_true", help="measure large pairs as well")
    args = p.parse_args()
    cases = [args.case] if args.case else gen.CASES
    if args.recorded:
        return check_recorded(args.tool, args.recorded)
    if args.check:
        for case in cases:
            rows, _ = run_case(args, case, SEEDS[0][1])
            report(case, [sum(c) / len(c) for c in zip(*rows)])
        for model in models.MODELS:
            for case in ("plain", "values", "fault"):
                rows, _ = run_case(args, case, SEEDS[0][1], model)
                report(f"{model} {case}", [sum(c) / len(c) for c in zip(*rows)])
        return None
    for title, first in SEEDS[:1] if args.tuning else SEEDS:
        if args.model in (None, "decoder"):
            print_table(args, title, first, cases)
        for model in models.MODELS if args.model in (None, "all") else {args.model} - {"decoder"}:
            print_table(args, title, first, [c for c in models.CASES if c in cases], model)
    if args.speed:
        print_speed(args)
        print_growth()
    return None


if __name__ == "__main__":
    main()
