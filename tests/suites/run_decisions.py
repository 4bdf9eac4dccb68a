#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What report and whatif conclude from simulated runs of every fault, as it is on record.

    run_decisions.py MSPROBE TOOL_SIM RECORDS [--update]

bench-cluster says how often a conclusion is right; here any change of one is shown, so that it is made on
purpose.  RECORDS is a folder with one text for each run: a line for each figure, to six digits.  Keys that
a record does not have yet are nobody's concern; --update writes the records anew.
"""
import difflib
import json
import os
import subprocess
import sys
import tempfile

# fault, amount, seed, ranks by tensor, pipeline and data, steps, micro batches, layers
RUNS = [("clean", 0, 3, 2, 2, 2, 20, 2, 2), ("straggler", 0.2, 3, 2, 2, 2, 20, 2, 2),
        ("straggler", 0.06, 4, 1, 4, 2, 24, 4, 1), ("fail_slow", 0.3, 5, 2, 1, 4, 30, 2, 2),
        ("slow_group", 0.5, 6, 2, 2, 2, 20, 2, 2), ("slow_pair", 1, 7, 2, 4, 1, 20, 4, 2),
        ("mismatch", 0.2, 8, 2, 2, 2, 8, 2, 2), ("missing", 0.2, 9, 2, 2, 2, 8, 2, 2),
        ("hang", 0.2, 10, 2, 2, 2, 8, 2, 2), ("straggler", 0.1, 11, 1, 1, 3, 60, 1, 2)]
REPORT = ("findings", "communication", "use")
FINDING = ("kind", "severity", "ranks", "steps", "value")
WHATIF = ("slowdown", "interval", "model_error", "recorded_seconds", "replayed_seconds", "ideal_seconds",
          "by_rank", "by_dp_rank", "by_stage", "by_tp_rank", "by_op", "by_link", "by_step")


def lines_of(value, path):
    if isinstance(value, dict):
        return [line for k, v in value.items() for line in lines_of(v, f"{path}.{k}")]
    if isinstance(value, list):
        return [line for i, v in enumerate(value) for line in lines_of(v, f"{path}.{i}")]
    return [f"{path} {value:.6g}" if isinstance(value, float) else f"{path} {value}"]


def asked(msprobe, command, folder):
    p = subprocess.run([msprobe, command, "--format", "json", folder], capture_output=True, text=True)
    return json.loads(p.stdout) if p.stdout.strip() else {}


def decisions(msprobe, tool, folder, run):
    subprocess.run([tool, folder, *map(str, run)], capture_output=True, check=True)
    report = asked(msprobe, "report", folder)
    report["findings"] = [{k: f[k] for k in FINDING if k in f} for f in report["findings"]]
    whatif = asked(msprobe, "whatif", folder)
    return [line for source, keys in ((report, REPORT), (whatif, WHATIF)) for k in keys if k in source
            for line in lines_of(source[k], k)]


def check(name, now, path):
    if not os.path.exists(path):
        print(f"not ok decisions {name}: no {path}")
        return
    with open(path, encoding="utf-8") as f:
        recorded = f.read().split("\n")[:-1]
    keys = {line.split(" ")[0] for line in recorded}
    count = {line for line in now if line.split(" ")[0] in keys or line.startswith("findings.")}
    changes = list(difflib.unified_diff(recorded, [line for line in now if line in count], "recorded", "now",
                                        lineterm="", n=0))
    print(f"not ok decisions {name}" if changes else f"ok decisions {name}")
    print("\n".join(changes[:20]), end="\n" if changes else "")


def main(msprobe, tool, records, update):
    for number, run in enumerate(RUNS):
        name = f"{number}-{run[0]}"
        with tempfile.TemporaryDirectory() as top:
            now = decisions(os.path.abspath(msprobe), os.path.abspath(tool), os.path.join(top, "run"), run)
        path = os.path.join(records, name + ".txt")
        if update:
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(now) + "\n")
        else:
            check(name, now, path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], "--update" in sys.argv[4:])
