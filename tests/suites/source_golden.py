# SPDX-License-Identifier: MIT
"""The recorded pairs whose true first divergence is known: is it suspect 1?

    source_golden.py MSPROBE GOLDEN
"""
import glob
import json
import os
import subprocess
import sys
import tempfile


def dump_or_root(side):
    """A dump.json where there is one alone, else the folder of them all."""
    dumps = glob.glob(f"{side}/step*/*/dump.json")
    return dumps[0] if len(dumps) == 1 else side


def wanted(truth):
    """Names that are right: of one operator that stands for several, any of them."""
    if truth.get("edits"):
        return {truth["edits"][0]["entry"]}
    first = truth.get("first_divergence")
    if not first:
        return {p[k] for p in truth["perturbations"] for k in ("target_entry", "golden_entry") if p.get(k)}
    names = {first["target_entry"]}
    for group in truth.get("groups", ()):
        if first["target_entry"] in group["mindspore"]:
            names |= set(group["mindspore"])
    return names


def suspects(msprobe, target, golden, *more):
    with tempfile.TemporaryDirectory() as out:
        run = subprocess.run([msprobe, "compare", "-tp", target, "-gp", golden, "-o", out, "--format", "json", *more],
                             capture_output=True, text=True)
    return json.loads(run.stdout)["suspects"] if run.returncode == 0 else [{"target": run.stderr, "golden": None}]


def report(name, good, why):
    print(f"ok {name}" if good else f"not ok {name}: {why}")


def main():
    msprobe, root = sys.argv[1:]
    for case in sorted(os.listdir(root)):
        folder = os.path.join(root, case)
        if os.path.exists(f"{folder}/truth.json"):
            with open(f"{folder}/truth.json") as f:
                want = wanted(json.load(f))
            golden = f"{root}/quickstart/target" if case == "quickstart_edited" else f"{folder}/golden"
            found = suspects(msprobe, dump_or_root(f"{folder}/target"), dump_or_root(golden))
            got = found[0]["target"] or found[0]["golden"] if found else None
            report(f"source {case}", got in want, f"wanted {sorted(want)}, got {got}")
        for side in ("target", "golden"):
            if os.path.isdir(f"{folder}/{side}"):
                path = dump_or_root(f"{folder}/{side}")
                found = suspects(msprobe, path, path)
                report(f"source {case} {side} against itself", not found, f"{len(found)} suspects")


main()
