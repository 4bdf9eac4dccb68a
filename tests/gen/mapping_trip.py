#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What --write_mapping writes, given back in every form: the same pairs and the same suspect 1?

    python3 tests/gen/mapping_trip.py [--pairs 20] [--first 3000] [--check] [TARGET GOLDEN ...]

Pairs of two frameworks with one fault are drawn as in align_csv.py, or dumps are named.  A data
mapping goes back as -dm and --pins, a layer mapping as -lm; -cm and -am, which say less, are given
without a file.  What a mapping pairs must be a pair of the alignment; a layer mapping cannot say all
of them, since it speaks of the n-th operator of a place.
"""
import argparse
import csv
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile

PROGRAM = os.path.join(os.environ.get("B", "build"), "msprobe")
SITES = ("L{}.norm1", "L{}.rope_q", "L{}.core", "L{}.proj", "L{}.norm2", "L{}.act", "L{}.down", "L{}.add2")
FORMS = {"-dm": "data", "--pins": "data", "-lm": "layer", "-cm": None, "-am": None}
SHARE = {"-dm": 1.0, "--pins": 1.0, "-lm": 0.4, "-cm": 0, "-am": 0}
ROW = re.compile(r"\.(?:input|output|parameters)\.\S*$|(\.parameters_grad)(?:\.\S+)?$")


def compare(sides, out, *options):
    said = subprocess.run([PROGRAM, "compare", "-tp", sides[0], "-gp", sides[1], "-o", out, "--format", "json", *options],
                          capture_output=True, text=True)
    if said.returncode:
        raise SystemExit(f"{options}: {said.stderr}")
    return json.loads(said.stdout)["suspects"]


def first(suspects):
    return (suspects[0]["target"], suspects[0]["golden"]) if suspects else None


def node(row):
    return ROW.sub(lambda m: m.group(1) or "", row)


def pairs(out):
    """Nodes that have rows with a partner."""
    with open(glob.glob(out + "/**/compare_result*.csv", recursive=True)[0], newline="") as f:
        rows = [(r["NPU Name"], r["Bench Name"]) for r in csv.DictReader(f)]
    return {(node(t), node(g)) for t, g in rows if "N/A" not in (t, g)}


def aligned(sides):
    """All pairs, those too whose rows have nothing in common."""
    tool = os.path.join(os.path.dirname(PROGRAM), "tests/tool_align")
    text = subprocess.run([tool, *(os.path.dirname(s) for s in sides)], capture_output=True, text=True, check=True).stdout
    return {tuple(node(name) for name in reversed(line.split(","))) for line in text.splitlines()[1:]}


def trip(sides, folder):
    """Problems of one pair of dumps, and the share of nodes that each form pairs."""
    found = first(compare(sides, folder + "/auto", "--write_mapping"))
    known, shares, problems = aligned(sides), {}, []
    best = {t for t, _ in pairs(folder + "/auto")}
    with open(sides[0]) as f:
        mindspore = json.load(f)["framework"] == "mindspore"
    for form, kind in FORMS.items():
        if form in ("-am", "-cm") and not mindspore:  # they translate its names alone
            continue
        file = glob.glob(f"{folder}/auto/**/{kind}_mapping*.yaml", recursive=True) if kind else []
        out = folder + "/" + form.strip("-")
        again = first(compare(sides, out, form, *file))
        if again != found:
            problems.append(f"{form}: suspect 1 is {again}, was {found}")
        if not kind:
            continue
        these = pairs(out)
        shares[form] = len({t for t, _ in these}) / max(1, len(best))
        problems += [f"{form}: {p} is no pair" for p in sorted(these - known)[:3] if p[0] != p[1]]
        if shares[form] < SHARE[form]:
            problems.append(f"{form}: {shares[form]:.2f} of the nodes")
    return problems, shares


def make(tools, seed, folder):
    rng = random.Random(seed)
    layers = rng.choice((1, 2, 3, 5))
    fault = rng.choice(("scale@{}:0.1", "scale@{}:0.5")).format(rng.choice(SITES).format(rng.randrange(layers)))
    subprocess.run([sys.executable, os.path.join(tools, "gen_dump.py"), "--cross", "--layers", str(layers), "--seed", str(seed),
                    "--variant", str(seed % 4), "--noise", f"{10 ** rng.uniform(-9, -4):.3g}", "--perturb", fault,
                    "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return [os.path.join(folder, s, "step0/rank0/dump.json") for s in ("target", "golden")]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pairs", type=int, default=20)
    p.add_argument("--first", type=int, default=3000)
    p.add_argument("--check", action="store_true", help="print ok or not ok")
    p.add_argument("--tools", default="../shared/tools")
    p.add_argument("dumps", nargs="*", help="dump.json of targets and golden sides in turn")
    o = p.parse_args()
    if not o.dumps and not os.path.isdir(o.tools):
        print(f"skip align mappings given back: no {o.tools}")
        return
    wrong, shares = [], []
    for k in range(len(o.dumps) // 2 or o.pairs):
        with tempfile.TemporaryDirectory() as folder:
            sides = o.dumps[2 * k:2 * k + 2] or make(o.tools, o.first + k, folder + "/made")
            problems, share = trip(sides, folder)
        wrong += [f"{sides[0] if o.dumps else o.first + k} {line}" for line in problems]
        shares.append(share)
    if o.check:
        print("not ok align mappings given back" if wrong else "ok align mappings given back")
    for line in wrong:
        print("    " + line)
    if not o.check:
        for form in shares[0]:
            print(f"{form} pairs {sum(s[form] for s in shares) / len(shares):.3f} of the nodes, at worst {min(s[form] for s in shares):.3f}")


if __name__ == "__main__":
    main()
