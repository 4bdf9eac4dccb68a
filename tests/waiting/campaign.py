# SPDX-License-Identifier: MIT
"""Records programs of which one rank makes the others wait, and scores the answers of `msprobe report`.

    campaign.py record FOLDER   records each case once: FOLDER/NAME/run and what the program printed
    campaign.py score FOLDER    asks `msprobe report` about every recorded case and prints the score

A case has a culprit and a reason, or neither.  Cases are numbered; `--half even` or `--half odd` scores one
half, so that limits may be tuned on one half and shown on the other.  `--limit SECONDS` ends a recording.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MPI = ("blocking", "halo", "overlapped", "persistent", "pipeline", "master", "windows", "threads")
TORCH = ("ddp", "manual", "async", "tensor", "pipeline", "fsdp")
# the reason that a report must give, by the cause of a program
REASONS = {"compute": "computes", "bursts": "computes", "late": "computes", "layers": "computes", "sleep": "off_cpu",
           "read": "off_cpu", "write": "writes", "cpu": "waits_for_cpu", "loader": "dataloader",
           "gc": "garbage_collection", "batch": "larger_batches"}
ALSO = {"batch": {"computes"}, "layers": {"larger_batches"}, "write": {"save_checkpoint"}, "read": {"reads"}}
MPI_CAUSES = ("compute", "sleep", "write", "read", "bursts", "late", "cpu")
TORCH_CAUSES = ("compute", "sleep", "loader", "gc", "batch", "layers", "write", "bursts", "cpu")


def cases(repeats):
    """Lists cases: (program, pattern, cause, culprit, ranks, milliseconds)."""
    found = []
    for again in range(repeats):
        for k, pattern in enumerate(MPI):
            for j, cause in enumerate(MPI_CAUSES):
                ranks = 2 + (k + j + again) % 3
                ranks = max(ranks, 3) if pattern == "master" else ranks
                culprit = (j + again) % ranks
                culprit = max(culprit, 1) if pattern == "master" else culprit
                if cause == "cpu" and pattern == "pipeline":
                    continue  # in a pipeline of few stages all ranks share the CPU already
                found.append(("mpi", pattern, cause, culprit, ranks, 2.5))
            for ranks in (2, 3, 4):
                found.append(("mpi", pattern, "none", 0, max(ranks, 3) if pattern == "master" else ranks, 0))
        for k, pattern in enumerate(TORCH):
            for j, cause in enumerate(TORCH_CAUSES):
                if (pattern, cause) in (("pipeline", "batch"), ("tensor", "batch"), ("pipeline", "loader")):
                    continue  # only the first stage has a loader, and the batches of stages are equal
                found.append(("torch", pattern, cause, (j + again) % 2, 2, 12))
            found.append(("torch", pattern, "none", 0, 2, 0))
    return found


def name_of(number, case):
    return "%03d-%s-%s-%s-%d-of-%d" % (number, *case[:3], case[3], case[4])


def start_of(case, folder, a, cause=None):
    """Returns the command lines of a case, one for each launcher, with the environment of each."""
    program, pattern, named, culprit, ranks, ms = case
    cause = cause or named
    run = [a.msprobe, "run", "-o", os.path.join(folder, "run"), "--"]
    if program == "mpi":
        line = ["mpirun", "-n", str(ranks), *run, a.wait_mpi, pattern, cause, str(culprit), str(ms), "60", "3"]
        return [(line, {})]
    meet = os.path.join(folder, "meet")
    line = [*run, a.torch, os.path.join(HERE, "wait_torch.py"), pattern, cause, str(culprit), str(ms), "40",
            str(ranks), meet]
    return [(line, {"RANK": str(r), "WORLD_SIZE": str(ranks)}) for r in range(ranks)]


def record(case, folder, a):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    base = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", MSTX_QUIET="2",
                OMPI_MCA_rmaps_base_oversubscribe="1", TMPDIR=folder)
    with open(os.path.join(folder, "said"), "w") as said:
        going = [subprocess.Popen(line, stdout=said, stderr=said, cwd=folder, env=dict(base, **env))
                 for line, env in start_of(case, folder, a)]
        for p in going:
            try:
                p.wait(120)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
    return all(p.returncode == 0 for p in going)


def record_all(a):
    until = time.monotonic() + a.limit
    done = 0
    numbered = list(enumerate(cases(a.repeats)))
    random.Random(1).shuffle(numbered)  # a recording that ends early has some of everything
    for number, case in numbered:
        folder = os.path.join(a.folder, name_of(number, case))
        if (a.only and a.only not in folder) or os.path.exists(os.path.join(folder, "good")):
            continue
        if time.monotonic() > until:
            break
        if record(case, folder, a):
            open(os.path.join(folder, "good"), "w").close()
            done += 1
    print("%d cases recorded" % done)


def answer(folder, a):
    """Returns the named ranks and their reasons, as the report gives them."""
    p = subprocess.run([a.msprobe, "report", "--format", "json", os.path.join(folder, "run")], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True)
    if p.returncode != 0:
        return None, p.stderr.strip()
    named = {}
    for f in json.loads(p.stdout)["findings"]:
        if f["kind"] in ("straggler", "fail_slow", "slow_link") and f["ranks"]:
            named.setdefault(f["ranks"][0], f.get("reason", ""))
    return named, ""


def judge(case, named):
    """Returns whether the rank, and whether rank and reason, are right."""
    _, _, cause, culprit, _, _ = case
    if cause == "none":
        return not named, not named
    right = list(named) == [culprit]
    return right, right and (named[culprit] == REASONS[cause] or named[culprit] in ALSO.get(cause, ()))


def score_all(a):
    total = {}
    for number, case in enumerate(cases(a.repeats)):
        folder = os.path.join(a.folder, name_of(number, case))
        wanted = {"even": 0, "odd": 1}.get(a.half, number % 2)
        if (a.only and a.only not in folder) or not os.path.exists(os.path.join(folder, "good")) or number % 2 != wanted:
            continue
        named, problem = answer(folder, a)
        rank, reason = judge(case, named) if named is not None else (False, False)
        kind = "clean" if case[2] == "none" else "slow"
        for key in (kind, "%s %s" % (case[0], kind), "%s %s %s" % (case[0], kind, case[2]), "%s %s %s" % (case[0], kind, case[1])):
            t = total.setdefault(key, [0, 0, 0])
            t[0] += 1
            t[1] += rank
            t[2] += reason
        if a.verbose and not reason:
            print("%-40s said %s %s" % (os.path.basename(folder), named, problem))
    for key in sorted(total):
        print("%-28s %3d runs, rank right %3d, rank and reason right %3d" % (key, *total[key]))
    return 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=("record", "score"))
    p.add_argument("folder")
    p.add_argument("--msprobe", default="build/msprobe")
    p.add_argument("--wait-mpi", default="build/tests/waiting/wait_mpi")
    p.add_argument("--torch", default=sys.executable)
    p.add_argument("--repeats", type=int, default=1)
    p.add_argument("--only", default="")
    p.add_argument("--half", choices=("even", "odd", "both"), default="both")
    p.add_argument("--limit", type=float, default=1e9)
    p.add_argument("--verbose", action="store_true")
    a = p.parse_args()
    a.msprobe, a.wait_mpi = os.path.abspath(a.msprobe), os.path.abspath(a.wait_mpi)
    sys.exit(record_all(a) if a.what == "record" else score_all(a))


main()
