#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How right the pairs in the table of `msprobe compare` are, by a generator and a
scorer that are not ours: ../shared/tools.

    python3 tests/gen/align_csv.py [--pairs 100] [--first 1000] [--show 0.97] [--jobs 2]

Every pair is drawn: one of the four styles, 1 to 8 layers, noise, and a fault
somewhere or none.  The table is written with default options; its names go to
score.py.  Prints means and the worst pair.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

# Means and worst pair that the table is held to.
LIMITS = {"pair_precision": (0.99, 0.97), "group_recall": (0.99, 0.97), "anchor_recall": (0.93, 0),
          "module_precision": (0.99, 0.97), "module_recall": (0.99, 0.97)}
KEYS = ("pair_precision", "group_recall", "anchor_recall", "module_precision", "module_recall")
FAULTS = ("", "scale@{}:0.05", "scale@{}:0.1", "scale@{}:0.3", "scale@{}:0.5", "nan@{}")
# A random op ("?"), or one of a layer that every style has.
SITES = ("?", "L{}.norm1", "L{}.rope_q", "L{}.core", "L{}.proj", "L{}.norm2", "L{}.act", "L{}.down", "L{}.add2")


def make(args, seed, folder):
    rng = random.Random(seed)
    layers = rng.choice((1, 1, 2, 2, 3, 4, 6, 8))
    common = ["--cross", "--layers", str(layers), "--seed", str(seed), "--variant", str(seed % 4),
              "--noise", f"{10 ** rng.uniform(-9, -2):.3g}", "--out", folder]
    common += args.option
    fault = rng.choice(FAULTS)
    if fault:
        common += ["--perturb", fault.format(rng.choice(SITES).format(rng.randrange(layers)))]
    subprocess.run([sys.executable, os.path.join(args.tools, "gen_dump.py"), *common], check=True,
                   stdout=subprocess.DEVNULL)
    return f"{layers} layers {fault}"


def run(args, seed):
    with tempfile.TemporaryDirectory() as folder:
        what = make(args, seed, folder)
        sides = [os.path.join(folder, s, "step0/rank0/dump.json") for s in ("target", "golden")]
        out = os.path.join(folder, "out")
        subprocess.run([args.program, "compare", "-tp", sides[0], "-gp", sides[1], "-o", out], check=True,
                       stdout=subprocess.DEVNULL)
        table = glob.glob(os.path.join(out, "*.csv"))[0]
        score = subprocess.run([sys.executable, os.path.join(args.tools, "score.py"), "align",
                                os.path.join(folder, "truth.json"), table], capture_output=True, text=True, check=True)
        return seed, what, json.loads(score.stdout)


def fair(key, values):
    mean, worst = LIMITS[key]
    return sum(values) / len(values) >= mean and min(values) >= worst


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pairs", type=int, default=100)
    p.add_argument("--first", type=int, default=1000)
    p.add_argument("--show", type=float, default=0, help="print pairs with a figure below this")
    p.add_argument("--check", action="store_true", help="print ok or not ok")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--program", default=os.path.join(os.environ.get("B", "build"), "msprobe"))
    p.add_argument("--tools", default="../shared/tools")
    p.add_argument("--option", action="append", default=[], help="more options for gen_dump.py, one each")
    args = p.parse_args()
    if not os.path.isdir(args.tools):
        print(f"skip align csv: no {args.tools}")
        return
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(lambda k: run(args, args.first + k), range(args.pairs)))
    for seed, what, s in rows:
        if min(s[k] for k in KEYS if s[k] is not None and k != "anchor_recall") < args.show:
            print(seed, what, s)
    if args.check:
        good = all(fair(k, [s[k] for _, _, s in rows if s[k] is not None]) for k in KEYS)
        print(f"{'ok' if good else 'not ok'} align table of compare, {args.pairs} pairs")
        return
    print(f"compare csv, seeds {args.first}..{args.first + args.pairs - 1}: mean (worst)")
    for k in KEYS:
        values = [s[k] for _, _, s in rows if s[k] is not None]
        print(f"  {k:18s} {sum(values) / len(values):.4f} ({min(values):.3f})")


if __name__ == "__main__":
    main()
