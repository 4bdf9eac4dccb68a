# SPDX-License-Identifier: MIT
"""Records programs on networks with one slow connection, and without; scores the slow links of `msprobe report`.

    wire_campaign.py record FOLDER   records each case once: FOLDER/NAME/run
    wire_campaign.py score FOLDER    asks `msprobe report` about every recorded case and prints the score

Cases are drawn from `--seed`: the program, the number of ranks, the usual delay, and what is slow: the delay, the rate or
the loss of packets of one link, or of all links of one host.  Every third case is clean.  `--half even` or `--half odd`
scores one half.  It needs root and /dev/net/tun.
"""
import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = (("ring", ""), ("gloo", "allreduce"), ("mpi", "allreduce"), ("gloo", "halo"), ("mpi", "halo"), ("mpi", "alltoall"),
            ("gloo", "gather"), ("mpi", "pipeline"))
KINDS = ("delay-link", "rate-link", "delay-host", "loss-link", "rate-host")
STEPS = 30

Case = collections.namedtuple("Case", "program pattern kind ranks usual_us first second slow_us rate loss bytes")


def pair_of(draw, pattern, ranks):
    """Draws a link that the pattern uses: of neighbours, but for alltoall."""
    first = draw.randrange(ranks - 1)
    if pattern == "alltoall":
        return first, draw.randrange(first + 1, ranks)
    return first, first + 1


def draw_cases(seed, count):
    draw, found = random.Random(seed), []
    for number in range(count):
        program, pattern = PROGRAMS[number % len(PROGRAMS)]
        kind = "clean" if number % 3 == 2 else KINDS[(number - number // 3) % len(KINDS)]
        ranks = draw.choice((4, 5) if pattern == "pipeline" else (3, 4, 5))  # what is usual takes three links
        usual = draw.choice((100, 200, 500, 1000, 2000))
        first, second = pair_of(draw, pattern, ranks)
        if kind.endswith("host"):
            # of a pipeline the ends have one link alone
            first, second = draw.randrange(1, ranks - 1) if pattern == "pipeline" else draw.randrange(ranks), -1
        slow = usual * draw.uniform(4, 10) + draw.uniform(2000, 6000) if kind.startswith("delay") else usual
        rate = draw.uniform(3e5, 8e5) if kind.startswith("rate") else 0
        loss = draw.uniform(4, 10) if kind.startswith("loss") else 0
        size = draw.choice((100000, 200000) if rate else (100000, 200000, 400000))
        if kind == "clean":
            first = second = -1
        found.append(Case(program, pattern, kind, ranks, usual, first, second, int(slow), int(rate), round(loss, 1), size))
    return found


def name_of(number, case):
    return "%03d-%s%s-%s-of-%d" % (number, case.program, "-" + case.pattern if case.pattern else "", case.kind, case.ranks)


def command_of(case, out, a):
    net = [str(x) for x in (case.ranks, case.usual_us, case.first, case.second, case.slow_us)]
    net.append("%d,%s" % (case.rate, case.loss))
    run = [a.msprobe, "run", "-o", out, "--"]
    if case.program == "mpi":
        hosts = ",".join("wire%d" % r for r in range(case.ranks))
        launch = ["mpirun", "--mca", "plm_rsh_agent", a.wire + " on", "--host", hosts, "-n", str(case.ranks)]
        return [a.wire, "hosts", *net, *launch, *run, a.wire_mpi, case.pattern, str(STEPS), str(case.bytes), "10000"]
    if case.program == "gloo":
        return [a.wire, "net", *net, *run, a.torch, os.path.join(HERE, "wire_torch.py"), case.pattern, str(STEPS),
                str(case.bytes // 4)]
    return [a.wire, "net", *net, *run, a.wire, "ring", str(STEPS), str(case.bytes // 2), "10000"]


def record(case, folder, a):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    env = dict(os.environ, MSTX_QUIET="2", GLOO_SOCKET_IFNAME="wire0", MASTER_PORT="29512", OMP_NUM_THREADS="1",
               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="tcp,self", OMPI_MCA_pml="ob1",
               OMPI_MCA_btl_tcp_if_include="wire0", OMPI_MCA_oob_tcp_if_include="wire0")
    with open(os.path.join(folder, "said"), "w") as said:
        job = subprocess.Popen(command_of(case, os.path.join(folder, "run"), a), env=env, stdout=said, stderr=said,
                               start_new_session=True)
        try:
            return job.wait(240) == 0
        except subprocess.TimeoutExpired:  # on a machine that has too much to do
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            return False


def record_all(cases, a):
    until = time.monotonic() + a.limit
    for number, case in cases:
        folder = os.path.join(a.folder, name_of(number, case))
        if os.path.exists(os.path.join(folder, "good")) or time.monotonic() > until:
            continue
        if record(case, folder, a):
            open(os.path.join(folder, "good"), "w").close()
        else:
            print("not recorded: %s" % os.path.basename(folder), flush=True)


def answer(folder, a):
    """Returns the slow links that the report names, as lists of ranks, and the ranks that it accuses."""
    run = os.path.join(folder, "run")
    for name in os.listdir(run):
        if name.startswith("run.db"):  # another version may have concluded otherwise
            os.remove(os.path.join(run, name))
    text = subprocess.run([a.msprobe, "report", "--format", "json", run], capture_output=True, text=True, check=True).stdout
    findings = json.loads(text)["findings"]
    links = {tuple(sorted(f["ranks"])) for f in findings if f["kind"] == "slow_link"}
    return [[list(link) for link in sorted(links)],
            [f["ranks"] for f in findings if f["kind"] in ("straggler", "fail_slow")]]


def score_all(cases, a):
    right = collections.Counter()
    total = collections.Counter()
    for number, case in cases:
        folder = os.path.join(a.folder, name_of(number, case))
        if not os.path.exists(os.path.join(folder, "good")):
            continue
        links, accused = answer(folder, a)
        wanted = [] if case.kind == "clean" else [[r for r in (case.first, case.second) if r >= 0]]
        good = links == wanted and not accused
        kinds = {"clean" if not wanted else "slow", case.kind, "%s %s" % (case.program, "clean" if not wanted else "slow")}
        for kind in kinds:
            total[kind] += 1
            right[kind] += good
        if a.verbose and not good:
            print("%-36s links %s, wanted %s, accused %s; %s" % (os.path.basename(folder), links, wanted, accused, case))
    for kind in sorted(total):
        print("%-12s %3d runs, %3d right" % (kind, total[kind], right[kind]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=("record", "score"))
    p.add_argument("folder")
    p.add_argument("--wire", default="build/tests/wire")
    p.add_argument("--wire-mpi", default="build/tests/wire_mpi")
    p.add_argument("--msprobe", default="build/msprobe")
    p.add_argument("--torch", default=sys.executable, help="Python with PyTorch")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=60)
    p.add_argument("--only", default="")
    p.add_argument("--half", choices=("even", "odd", "both"), default="both")
    p.add_argument("--limit", type=float, default=1e9)
    p.add_argument("--verbose", action="store_true")
    a = p.parse_args()
    a.wire, a.wire_mpi, a.msprobe = (os.path.abspath(path) for path in (a.wire, a.wire_mpi, a.msprobe))
    wanted = {"even": (0,), "odd": (1,), "both": (0, 1)}[a.half]
    cases = [(n, c) for n, c in enumerate(draw_cases(a.seed, a.count)) if n % 2 in wanted and a.only in name_of(n, c)]
    (record_all if a.what == "record" else score_all)(cases, a)


main()
