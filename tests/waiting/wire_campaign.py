# SPDX-License-Identifier: MIT
"""Records programs on networks with one slow connection, and without; scores the slow links of `msprobe report`.

    python3 tests/waiting/wire_campaign.py FOLDER --wire build/tests/wire [--repeats N] [--torch PYTHON]
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess

# name, usual delay in us, slow ranks (-1, -1: none; B -1: all connections of A), their delay in us, bytes a second
CASES = [
    ("clean", 200, -1, -1, 200, 0), ("clean far", 3000, -1, -1, 3000, 0),
    ("delay 0-1", 200, 0, 1, 6000, 0), ("delay 2-3", 200, 2, 3, 12000, 0), ("delay of 1", 200, 1, -1, 8000, 0),
    ("rate 1-2", 200, 1, 2, 200, 2e6), ("rate of 3", 200, 3, -1, 200, 1.5e6), ("delay far 0-3", 1000, 0, 3, 15000, 0),
]


def record(args, case, out, program):
    _, usual, a, b, slow, rate = case
    shutil.rmtree(out, ignore_errors=True)
    command = [args.wire, "net", "4", str(usual), str(a), str(b), str(slow), str(rate), args.msprobe, "run", "-o", out, "--"]
    env = dict(os.environ, MSTX_QUIET="2", GLOO_SOCKET_IFNAME="wire0", MASTER_PORT="29512", OMP_NUM_THREADS="1")
    job = subprocess.Popen(command + program, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return job.wait(240) == 0
    except subprocess.TimeoutExpired: # on a machine that has too much to do
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        return False


def links(args, out):
    """Returns the slow links that the report names, as pairs of ranks."""
    text = subprocess.run([args.msprobe, "report", "--format", "json", out], capture_output=True, text=True, check=True).stdout
    said = [f["text"] for f in json.loads(text)["findings"] if f["kind"] == "slow_link"]
    return [tuple(([int(r) for r in re.findall(r"rank (\d+)", t)] + [-1])[:2]) for t in said], said


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--wire", default="build/tests/wire")
    p.add_argument("--msprobe", default="build/msprobe")
    p.add_argument("--torch", help="Python with PyTorch: gloo as well")
    p.add_argument("--repeats", type=int, default=1)
    args = p.parse_args()
    programs = {"ring": [args.wire, "ring", "40", "200000", "10000"]}
    if args.torch:
        programs["gloo"] = [args.torch, os.path.join(os.path.dirname(__file__), "wire_torch.py"), "30", "50000"]
    right = {}
    for repeat in range(args.repeats):
        for case in CASES:
            for name, program in programs.items():
                out = os.path.join(args.folder, "%s-%s-%d" % (name, case[0].replace(" ", "_"), repeat))
                if not record(args, case, out, program):
                    print("not recorded: %s %s" % (name, case[0]), flush=True)
                    continue
                got, texts = links(args, out)
                want = [] if case[2] < 0 else [(case[2], case[3])]
                key = (name, "slow" if want else "clean")
                good, n = right.get(key, (0, 0))
                right[key] = (good + (got == want), n + 1)
                print("%s %s %s: %s" % ("ok" if got == want else "NOT", name, case[0], "; ".join(texts)), flush=True)
    for key, (good, n) in right.items():
        print("%s %s: %d of %d right" % (*key, good, n))


main()
