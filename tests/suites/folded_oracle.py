#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""folded_oracle.py MSPROBE RUN.DB: the rows of a folded database as samples/read_folded.py reads them and as
msprobe's SQL gives them are the same."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "samples"))
import read_folded  # noqa: E402

MSPROBE, PATH = sys.argv[1:]
# by table: the columns that both have in the same form
SAME = {
    "events": "track name kind start_ns dur_ns depth id",
    "comm_ops": "id process rank tid comm_group seq name count elem_bytes flags stream start_ns device tag",
    "joins": "comm_group seq step ranks missing agrees bytes start_ns transfer_ns skew_ns waited_ns last_rank",
    "replay_spans": "timeline process rank tid step start_ns end_ns",
    "names": read_folded.COLUMNS["names"][1],
    "steps": read_folded.COLUMNS["steps"][1],
    "rank_steps": read_folded.COLUMNS["rank_steps"][1],
}


def asked(table, columns):
    sql = f"SELECT {', '.join(columns)} FROM {table}"
    out = subprocess.run([MSPROBE, "sql", "--format", "json", PATH, sql], check=True, capture_output=True).stdout
    return [tuple(row[c] for c in columns) for row in json.loads(out)]


def main():
    run, bad = read_folded.Run(PATH), 0
    for table, columns in SAME.items():
        columns = columns.split()
        ours = [tuple(row[c] for c in columns) for row in run.rows(table)]
        theirs = asked(table, columns)
        first = next((pair for pair in zip(ours, theirs) if pair[0] != pair[1]), None)
        good = len(ours) == len(theirs) and first is None
        bad += not good
        print(f"{'same' if good else 'DIFFERENT'} {table}: {len(ours)} rows", "" if good else f"{len(theirs)}: {first}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
