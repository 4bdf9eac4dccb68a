# SPDX-License-Identifier: MIT
"""Records programs of which one rank makes the others wait, and scores the answers of `msprobe report`.

    campaign.py record FOLDER   records each case once: FOLDER/NAME/run and what the program printed
    campaign.py score FOLDER    asks `msprobe report` about every recorded case and prints the score
    campaign.py gain FOLDER     records cases with and without their cause in turn, and compares the predicted
                                with the measured gain

A case has a culprit and a reason, or neither.  `--set` chooses the cases: `one` culprit and some clean runs,
`more` of them in other languages and with a limit on CPU time, `rest` of the causes and programs that those lack,
`two` culprits in MPI, `pairs` of them in all programs and of causes of one rank, or `clean` runs alone, `quiet` those of
the programs that `clean` lacks.  Cases are numbered; `--half even` or `--half odd` scores one half, so that limits may be
tuned on one half and shown on the other.  `--limit SECONDS` ends a recording.
"""
import argparse
import json
import os
import random
import re
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
           "gc": "garbage_collection", "batch": "larger_batches", "throttle": "throttled"}
FELT_LEAST = 1.5  # a rank that shares its CPU is slow from this multiple of the work of the others on
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


FORTRAN = ("fallreduce", "fexchange", "fhalo", "fspread")
MIXED = ("mixed-ddp", "mixed-mpi")
MPI4PY = ("py-reduce", "py-exchange", "py-objects")
MORE_CAUSES = {"fortran": ("compute", "sleep", "bursts", "late"),
               "mpi4py": ("compute", "sleep", "write", "gc", "bursts", "late")}


def more_cases(repeats):
    """Lists cases in Fortran and mpi4py, under a limit on CPU time, and of PyTorch on three ranks."""
    found = []
    for again in range(repeats):
        for program, patterns in (("fortran", FORTRAN), ("mpi4py", MPI4PY)):
            for k, pattern in enumerate(patterns):
                for j, cause in enumerate(MORE_CAUSES[program]):
                    ranks = 2 + (k + j + again) % 3
                    found.append((program, pattern, cause, (j + again) % ranks, ranks, 2.5))
                found += [(program, pattern, "none", 0, ranks, 0) for ranks in (2, 3)]
        for k, pattern in enumerate(p for p in MPI if p != "pipeline"):
            ranks = 3 if pattern == "master" else 2 + (k + again) % 2
            found.append(("mpi", pattern, "throttle", 1 + again % (ranks - 1), ranks, 2.5))
        for k, pattern in enumerate(TORCH):
            found.append(("torch", pattern, ("compute", "sleep")[(k + again) % 2], (k + again) % 3, 3, 12))
    return found


def two_cases(repeats):
    """Lists cases of two culprits of four ranks, each with its own cause: CAUSE+CAUSE, RANK+RANK."""
    found = []
    for again in range(repeats):
        for k, pattern in enumerate(("blocking", "halo", "overlapped", "persistent", "windows")):
            for j, causes in enumerate(("compute+sleep", "compute+compute", "sleep+write", "read+compute")):
                first = (k + j + again) % 4
                found.append(("mpi", pattern, causes, "%d+%d" % (first, (first + 1 + (j + again) % 3) % 4), 4, 2.5))
    return found


def pair_cases(repeats):
    """Lists cases of two causes at once: of two of four ranks, or of one of three."""
    found = []
    for again in range(repeats):
        for program, patterns, ms, pairs in (
                ("mpi", ("blocking", "halo", "threads", "callers"), 2.5, ("compute+sleep", "bursts+read", "write+compute")),
                ("mpi4py", MPI4PY, 2.5, ("compute+sleep", "gc+read", "write+compute")),
                ("torch", ("ddp", "manual", "async", "fsdp"), 12, ("compute+sleep", "compute+loader", "layers+sleep")),
                ("mixed", MIXED, 12, ("compute+sleep", "loader+compute"))):
            for k, pattern in enumerate(patterns):
                for j, causes in enumerate(pairs):
                    apart = (k + j + again) % 3  # 0: both causes are those of one rank
                    ranks = 4 if apart else 3
                    first = (k + j + again) % ranks
                    found.append((program, pattern, causes, "%d+%d" % (first, (first + apart) % ranks), ranks, ms))
    return found


def rest_cases(repeats):
    """Lists cases of causes and programs that the other sets lack."""
    lacking = (("mpi", ("callers",), 2.5, MPI_CAUSES), ("fortran", FORTRAN, 2.5, ("write", "cpu", "throttle")),
               ("mpi4py", MPI4PY, 2.5, ("read", "cpu", "throttle")), ("torch", TORCH, 12, ("read", "late", "throttle")),
               ("mixed", MIXED, 12, (*TORCH_CAUSES, "read", "late", "throttle")))
    found = []
    for again in range(repeats):
        for program, patterns, ms, causes in lacking:
            for k, pattern in enumerate(patterns):
                for j, cause in enumerate(causes):
                    ranks = 2 + (k + j + again) % 2
                    # MPI under a launcher is rank 0's too, so a limit on CPU time is that of another rank
                    culprit = 1 + (j + again) % (ranks - 1) if cause == "throttle" else (j + again) % ranks
                    found.append((program, pattern, cause, culprit, ranks, ms))
    return found


def clean_cases(repeats):
    return [c for c in cases(repeats) if c[2] == "none"]


def quiet_cases(repeats):
    """Lists clean cases of the programs that clean_cases lacks."""
    kinds = (("mpi", ("callers",), (2, 3, 4)), ("fortran", FORTRAN, (2, 3, 4)), ("mpi4py", MPI4PY, (2, 3, 4)),
             ("torch", TORCH, (3,)), ("mixed", MIXED, (2, 3)))
    return [(program, pattern, "none", 0, ranks, 0) for _ in range(repeats) for program, patterns, counts in kinds
            for pattern in patterns for ranks in counts]


def gain_cases(repeats):
    """Lists cases whose cause can be taken away: (program, pattern, cause, culprit, ranks, milliseconds)."""
    found = []
    for again in range(repeats):
        for k, pattern in enumerate((*(p for p in MPI if p != "master"), "callers")):
            for j, cause in enumerate(("compute", "sleep", "bursts", "late")):
                ranks = 2 + (k + again) % 3
                found.append(("mpi", pattern, cause, (k + j + again) % ranks, ranks, (1, 3, 6)[(k + j + again) % 3]))
        for k, pattern in enumerate(TORCH):
            for j, cause in enumerate(("sleep", "loader", "bursts", "late")):
                if (pattern, cause) != ("pipeline", "loader"):
                    found.append(("torch", pattern, cause, (k + j + again) % 2, 2, (4, 8, 16)[(k + j + again) % 3]))
    return found


SETS = {"one": cases, "more": more_cases, "rest": rest_cases, "two": two_cases, "pairs": pair_cases,
        "clean": clean_cases, "quiet": quiet_cases}


def culprits_of(case):
    """Returns the causes of a case by culprit, each a list."""
    found = {}
    for cause, rank in zip(case[2].split("+"), str(case[3]).split("+")):
        if cause != "none":
            found.setdefault(int(rank), []).append(cause)
    return found


def name_of(number, case):
    return "%03d-%s-%s-%s-%s-of-%d" % (number, *case[:3], case[3], case[4])


def steps_of(case, a):
    return 150 if a.asleep else 60 if case[0] in ("mpi", "fortran", "mpi4py") else 40


def start_of(case, folder, a):
    """Returns the command lines of a case, one for each launcher, with the environment of each."""
    program, pattern, cause, culprit, ranks, ms = case
    run = [a.msprobe, "run", "-o", os.path.join(folder, "run"), "--"]
    if program != "mpi" and cause in ("cpu", "throttle"):
        run = [sys.executable, os.path.join(HERE, "held.py"), cause, str(culprit), *run]
    own = {"mpi": [a.wait_mpi], "fortran": [a.wait_fortran], "mpi4py": [a.mpi4py, os.path.join(HERE, "wait_mpi4py.py")]}
    mpirun = ["mpirun", "-n", str(ranks), *run]
    if program in own:
        causes, at = cause.split("+"), str(culprit).split("+")
        more = ",".join([at[0], *(x for pair in zip(causes[1:], at[1:]) for x in pair)])
        return [([*mpirun, *own[program], pattern, causes[0], more, str(ms), str(steps_of(case, a)), "3"], {})]
    python = [a.mpi4py if program == "mixed" else a.torch, os.path.join(HERE, "wait_torch.py"), pattern, cause,
              str(culprit), str(ms), str(steps_of(case, a)), str(ranks), os.path.join(folder, "meet")]
    if program == "mixed":
        return [([*mpirun, *python], {})]
    return [([*run, *python], {"RANK": str(r), "WORLD_SIZE": str(ranks)}) for r in range(ranks)]


def record(case, folder, a):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    base = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", MSTX_QUIET="2",
                OMPI_MCA_rmaps_base_oversubscribe="1", TMPDIR=folder)
    if a.asleep:
        base.update(WAIT_ASLEEP="1", OMPI_MCA_mpi_yield_when_idle="1")
    with open(os.path.join(folder, "said"), "w") as said:
        said.write("load %.1f\n" % os.getloadavg()[0])
        said.flush()
        going = [subprocess.Popen(line, stdout=said, stderr=said, cwd=folder, env=dict(base, **env))
                 for line, env in start_of(case, folder, a)]
        for p in going:
            try:
                p.wait(a.patience)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
    return all(p.returncode == 0 for p in going)


def record_all(a):
    until = time.monotonic() + a.limit
    done = 0
    numbered = list(enumerate(SETS[a.set](a.repeats)))
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
    """Returns the named ranks and their reasons, a list each, as the report gives them to this msprobe."""
    for name in os.listdir(os.path.join(folder, "run")):
        if name.startswith("run.db"):  # another version may have concluded otherwise
            os.remove(os.path.join(folder, "run", name))
    p = subprocess.run([a.msprobe, "report", "--format", "json", os.path.join(folder, "run")], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True)
    if p.returncode != 0:
        return None, p.stderr.strip()
    named = {}
    for f in json.loads(p.stdout)["findings"]:
        if f["kind"] in ("straggler", "fail_slow", "slow_link") and f["ranks"]:
            named.setdefault(f["ranks"][0], [f[key] for key in ("reason", "second_reason") if key in f])
    return named, ""


def is_felt(case, folder):
    """Tells whether a rank that shares its CPU, or may use little of it, worked much longer than the others, by its own clock.

    On a host that delays all ranks it may not: then nobody makes the others wait.
    """
    with open(os.path.join(folder, "said")) as f:
        work = {int(r): float(v) for r, v in re.findall(r"work (\d+) +([\d.]+)", f.read())}
    others = sorted(v for r, v in work.items() if r != case[3])
    return case[2] not in ("cpu", "throttle") or not others or work.get(case[3], 0) >= FELT_LEAST * others[len(others) // 2]


def is_reason(cause, reason):
    return reason == REASONS[cause] or reason in ALSO.get(cause, ())


def are_reasons(causes, reasons):
    """Tells whether each cause is among the reasons, and a single cause the first of them."""
    if len(causes) == 1:
        return bool(reasons) and is_reason(causes[0], reasons[0])
    return all(any(is_reason(cause, reason) for reason in reasons) for cause in causes)


def judge(case, named, felt):
    """Returns whether the ranks, and whether ranks and reasons, are right."""
    wanted = culprits_of(case)
    if not felt and not named:
        return True, True
    if case[2] == "none":  # on a loaded host a rank may wait for a CPU
        free = all(reasons == ["waits_for_cpu"] for reasons in named.values())
        return free, free
    right = set(named) == set(wanted)
    return right, right and all(are_reasons(causes, named[r]) for r, causes in wanted.items())


def kind_of(case, named, felt):
    if case[2] != "none":
        return "slow" if felt else "cpu without effect"
    return "clean, a rank waits for a CPU" if named and judge(case, named, felt)[0] else "clean"


def score_all(a):
    total = {}
    for number, case in enumerate(SETS[a.set](a.repeats)):
        folder = os.path.join(a.folder, name_of(number, case))
        wanted = {"even": 0, "odd": 1}.get(a.half, number % 2)
        if (a.only and a.only not in folder) or not os.path.exists(os.path.join(folder, "good")) or number % 2 != wanted:
            continue
        named, problem = answer(folder, a)
        felt = is_felt(case, folder)
        rank, reason = judge(case, named, felt) if named is not None else (False, False)
        kind = kind_of(case, named, felt)
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


def seconds_of(folder):
    """Returns how long the steps of a run took, by the program's own clock."""
    with open(os.path.join(folder, "said")) as f:
        return float(re.search(r"seconds +([\d.]+)", f.read()).group(1))


def predicted(case, folder, a):
    """Returns the gain that the report promises for the culprit as a share of these seconds, 0 when it is not named.

    The report's own share is that of the whole job, which begins before the steps.
    """
    p = subprocess.run([a.msprobe, "report", "--format", "json", os.path.join(folder, "run")], stdout=subprocess.PIPE)
    gain_ns = sum(f.get("gain_ns", 0) for f in json.loads(p.stdout)["findings"]
                  if f["kind"] in ("straggler", "fail_slow") and f["ranks"] == [case[3]])
    return 1e-9 * gain_ns * steps_of(case, a) / seconds_of(folder)


def middle(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def measure_gain(case, folder, a):
    """Records a case with and without its cause in turn; returns the medians of both gains."""
    promised, measured = [], []
    for k in range(a.pairs):
        slow, free = os.path.join(folder, "slow%d" % k), os.path.join(folder, "free%d" % k)
        if not (record(case, slow, a) and record(case[:2] + ("none",) + case[3:], free, a)):
            continue
        promised.append(predicted(case, slow, a))
        measured.append(1 - seconds_of(free) / seconds_of(slow))
    return (middle(promised), middle(measured)) if promised else None


def gain_all(a):
    until = time.monotonic() + a.limit
    near = total = 0
    for number, case in enumerate(gain_cases(a.repeats)):
        folder = os.path.join(a.folder, name_of(number, case))
        both = measure_gain(case, folder, a) if a.only in folder and time.monotonic() < until else None
        if both is None:
            continue
        total += 1
        near += abs(both[0] - both[1]) <= 0.05
        print("%-40s predicted %5.1f %%, measured %5.1f %%" % (os.path.basename(folder), 100 * both[0], 100 * both[1]),
              flush=True)
    print("%d of %d within 5 points" % (near, total))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=("record", "score", "gain"))
    p.add_argument("folder")
    p.add_argument("--msprobe", default="build/msprobe")
    p.add_argument("--wait-mpi", default="build/tests/waiting/wait_mpi")
    p.add_argument("--wait-fortran", default="build/tests/waiting/wait_fortran")
    p.add_argument("--torch", default=sys.executable)
    p.add_argument("--mpi4py", default=sys.executable, help="Python with mpi4py; for mixed programs with PyTorch too")
    p.add_argument("--set", choices=sorted(SETS), default="one")
    p.add_argument("--repeats", type=int, default=1)
    p.add_argument("--pairs", type=int, default=3)
    p.add_argument("--only", default="")
    p.add_argument("--half", choices=("even", "odd", "both"), default="both")
    p.add_argument("--asleep", action="store_true", help="work and waits are sleeping, at real-time priority (root is needed)")
    p.add_argument("--limit", type=float, default=1e9)
    p.add_argument("--patience", type=float, default=120, help="seconds after which a run is given up")
    p.add_argument("--verbose", action="store_true")
    a = p.parse_args()
    a.msprobe, a.wait_mpi = os.path.abspath(a.msprobe), os.path.abspath(a.wait_mpi)
    a.wait_fortran = os.path.abspath(a.wait_fortran)
    sys.exit({"record": record_all, "score": score_all, "gain": gain_all}[a.what](a))


main()
