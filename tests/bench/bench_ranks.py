#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How commands grow with the number of ranks.

    bench_ranks.py BUILD [MOST [LEAST]]     from LEAST (64) to MOST (512) ranks, doubling

Makes a run of each size with tool_sim, 20,000 records a rank up to 4,096 ranks and fewer above, and prints
for each command CPU seconds, memory and bytes written, and how the seconds grew since half as many ranks.
Recipes that need what only profilers record and that fail on a run are left out.  All ranks are on one host, since
whatif asks for clocks that were compared.
A growth above 2.1 is marked, as are an import that takes more than 256 MB and a recipe that takes more than 1 GB;
each ends the program with status 1.  Small times say nothing about growth, so that those below a second are not
judged.  RECORDS=N makes runs of another length.
"""
import os
import shutil
import subprocess
import sys
import tempfile

BUILD = sys.argv[1]
MOST = int(sys.argv[2]) if len(sys.argv) > 2 else 512
LEAST = int(sys.argv[3]) if len(sys.argv) > 3 else 64
RECORDS = int(os.environ.get("RECORDS", "20000"))
RECORDS_OF_STEP = 128  # of a rank, with 4 micro-batches and 8 layers on 8 stages or fewer
GROWTH, JUDGED_FROM_S = 2.1, 1.0
IMPORT_MB, RECIPE_MB = 256, 1000
RECIPES = ["slow_rank", "hccl_sum", "slow_link", "communication_group_map", "all", "communication_time",
           "communication_matrix", "cluster_time_summary", "communication_time_sum", "communication_matrix_sum", "computational_op_masking",
           "module_statistic", "operator_mfu", "mstx_sum"]


def measure(*command):
    """Runs a command; returns its CPU seconds and its memory in megabytes."""
    with open(os.devnull, "w") as null:
        process = subprocess.Popen(command, stdout=null, stderr=null)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names)


def make_run(where, ranks):
    """Makes a run of 8 tensor ranks and 4 stages, as far as there are ranks; returns its records."""
    tensor = min(8, ranks)
    stages = min(4, ranks // tensor)
    steps = max(2, min(RECORDS, RECORDS * 4096 // ranks) // RECORDS_OF_STEP)
    said = subprocess.run([f"{BUILD}/tests/tool_sim", where, "straggler", "0.2", "7", str(tensor), str(stages),
                           str(ranks // tensor // stages), str(steps), "4", "8", str(ranks)],
                          check=True, capture_output=True, text=True).stdout.split()
    return int(said[said.index("records") + 1])


def most_megabytes(command):
    """Returns the bar for the memory of a command."""
    return IMPORT_MB if command.startswith("import") else RECIPE_MB


def measure_run(scratch, ranks):
    """Yields (command, CPU seconds, megabytes, bytes written) for a run of that many ranks."""
    run, out, tool = f"{scratch}/run", f"{scratch}/out", f"{BUILD}/msprobe"
    records = make_run(run, ranks)
    print(f"{ranks} ranks, {records} records, {size_of(run)} bytes", flush=True)
    for words in (["--summary"], ["--threads", "1"], []):
        used = measure(tool, "import", *words, run)
        yield (" ".join(["import", *words]), *used, size_of(f"{run}/run.db"))
    for command in (["report", run], ["whatif", run], ["sql", run, "SELECT count(*), sum(bytes) FROM comm_ops"]):
        yield (command[0], *measure(tool, *command), 0)
    for recipe in RECIPES:
        used = measure(tool, "cluster", "-m", recipe, "-d", run, "-o", out)
        yield (recipe, *used, size_of(out))
        shutil.rmtree(out)
    shutil.rmtree(run)


def main():
    before, bad = {}, 0
    ranks = LEAST
    with tempfile.TemporaryDirectory(prefix="msprobe-ranks-") as scratch:
        while ranks <= MOST:
            print(f"{'command':24} {'CPU s':>9} {'MB':>8} {'bytes':>12}  growth")
            for command, seconds, megabytes, written in measure_run(scratch, ranks):
                growth = seconds / before[command] if command in before else None
                judged = growth is not None and before[command] >= JUDGED_FROM_S
                over = (judged and growth > GROWTH) or megabytes > most_megabytes(command)
                said = ("" if growth is None else f"{growth:7.2f}") + (" TOO MUCH" if over else "")
                print(f"{command:24} {seconds:9.2f} {megabytes:8.0f} {written:12} {said}", flush=True)
                before[command] = seconds
                bad += over
            ranks *= 2
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
