# SPDX-License-Identifier: MIT
"""The official tool and ours on the same dumps.

    suite_trend.py MSPROBE GOLDEN SCRATCH

Trend databases must hold the same tables, rows and tags, and results of the
overflow check must be the same bytes.
"""
import glob
import os
import re
import sqlite3
import subprocess
import sys

from msprobe.core.compare.data2db import DBImporter
from msprobe.overflow_check.analyzer import OverFlowCheck

TARGETS = "JOIN monitoring_targets USING (target_id) JOIN monitoring_metrics USING (metric_id)"
failed = False


def report(name, good, detail=""):
    global failed
    print(("ok " if good else "not ok ") + name)
    if not good:
        failed = True
        print(detail)


def contents(path):
    """All that a reader can see, without the numbers that ids happen to have."""
    db = sqlite3.connect(path)
    ask = lambda sql: db.execute(sql).fetchall()
    spaces = lambda sql: re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", sql))
    stats = ",".join(row[1] for row in ask("PRAGMA table_info(trend_data)")[4:])
    return {
        "schema": sorted((n, spaces(s)) for n, s in ask(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")),
        "rows": sorted(ask("SELECT rank, step, target_name, vpp_stage, micro_step, metric_name, "
                           f"{stats} FROM trend_data {TARGETS}"), key=repr),
        "targets": sorted(ask("SELECT target_name, vpp_stage, micro_step FROM monitoring_targets")),
        "metrics": ask("SELECT * FROM monitoring_metrics ORDER BY 1"),
        "tags": sorted(ask("SELECT tag_name, category, metric_name, target_name, micro_step "
                           "FROM tag_target_mapping JOIN monitoring_tags USING (tag_id) "
                           + TARGETS)),
        "global": ask("SELECT * FROM global_stats ORDER BY rowid DESC LIMIT 1"),
    }


def compare_trend(msprobe, name, data, scratch, micro_step):
    theirs, ours = os.path.join(scratch, "theirs"), os.path.join(scratch, "ours")
    DBImporter(theirs, data, "dump", None, micro_step, 1).import_data()
    subprocess.run([msprobe, "data2db", "--db", ours, "--data", data, "--format", "dump",
                    "--micro_step", micro_step], check=True, capture_output=True)
    a, b = (contents(os.path.join(d, "dump_data.trend.db")) for d in (ours, theirs))
    wrong = [key for key in a if a[key] != b[key]]
    report(f"trend {name}, micro_step {micro_step}", not wrong, wrong)


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def compare_overflow(msprobe, name, step, scratch):
    results = []
    for who in ("theirs", "ours"):
        out = os.path.join(scratch, f"{who}-{name}")
        if who == "theirs":
            OverFlowCheck(step, out).analyze()
        else:
            subprocess.run([msprobe, "overflow_check", "-i", step, "-o", out], check=True,
                           capture_output=True)
        files = glob.glob(os.path.join(out, "anomaly_analyze_*.json"))
        results.append([read_bytes(f) for f in files])
    report(f"overflow {name}", results[0] == results[1], results)


def main(msprobe, golden, scratch):
    for data in sorted(glob.glob(os.path.join(golden, "*", "target"))):
        name = os.path.basename(os.path.dirname(data))
        for micro_step in ("true", "false"):
            compare_trend(msprobe, name, data, scratch, micro_step)
        step = os.path.join(data, "step0")
        with open(glob.glob(os.path.join(step, "*", "dump.json"))[0], encoding="utf-8") as f:
            if '"framework": "pytorch"' in f.read(4096):  # the official check knows no other
                compare_overflow(msprobe, name, step, scratch)


main(*sys.argv[1:4])
sys.exit(failed)
