#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bugs of public trackers, each as a small program: does `msprobe compare` name their place?

    bench.py [-v] [--only NAME,NAME] [--sample N] [--keep FOLDER] [--level mix] [--task statistics]

Every bug trains one step as the reported program did and one as it was mended, and the dumps of the
two are compared. Ends with 1 unless suspect 1 is right in 90 of 100 and one of the first five in all.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.path.abspath(os.environ.get("B", os.path.join(HERE, "..", "..", "build")))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "models"), os.path.join(B, "python")]


# ---- recording -------------------------------------------------------------------------

def train(one, right, folder, rank, keys):
    import torch
    from msprobe.pytorch import PrecisionDebugger
    torch.set_num_threads(1)
    if one.ranks > 1:
        import torch.distributed as dist
        dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank,
                                world_size=one.ranks)
    debugger = PrecisionDebugger(config_path=folder + "/config.json")
    torch.manual_seed(3)
    one.run(right, debugger.start)
    debugger.stop()
    debugger.step()
    if one.ranks > 1:
        dist.barrier()
        dist.destroy_process_group()


def child(one, right, folder, rank, keys):
    """Trains in a process of its own, as a bug may patch torch, and a group of ranks needs several."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        with open(f"{folder}/log{rank}", "w", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            try:
                train(one, right, folder, rank, keys)
                code = 0
            except Exception:  # the parent shows the log
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(code)


def record(one, right, folder, keys):
    os.makedirs(folder)
    with open(folder + "/config.json", "w", encoding="utf-8") as f:
        json.dump({"dump_path": folder, "rank": [], "step": [], "risk_level": "ALL", **keys}, f)
    pids = [child(one, right, folder, rank, keys) for rank in range(one.ranks)]
    failed = [rank for rank, pid in enumerate(pids) if os.waitpid(pid, 0)[1]]
    if failed:
        log = open(f"{folder}/log{failed[0]}", encoding="utf-8").read()
        raise SystemExit(f"{one.name} did not train: {log}")


# ---- judging ---------------------------------------------------------------------------

def suspects_of(target, golden):
    run = subprocess.run([B + "/msprobe", "compare", "-tp", target + "/step0", "-gp", golden + "/step0",
                          "-o", target + ".out", "--format", "json"], capture_output=True, text=True)
    if not run.stdout:
        raise SystemExit(f"{target}: {run.stderr}")
    return json.loads(run.stdout)


def constructs(side):
    """The parents of nodes of all ranks: ranks of one program have nodes of one name in one place."""
    at = side + "/step0"
    return {name: parent for rank in sorted(os.listdir(at), reverse=True)
            for name, parent in json.load(open(f"{at}/{rank}/construct.json", encoding="utf-8")).items()}


def place_of_truth(one, answer, target, golden):
    from score import place
    sides = constructs(target), constructs(golden)
    suspects = answer["suspects"]
    for at, s in enumerate(suspects, 1):
        for name, construct in ((s.get("target"), sides[0]), (s.get("golden"), sides[1])):
            if name and re.search(one.truth, f"{name} @ {place(name, construct)}"):
                return at
    return 0


def all_suspects(answer):
    """Suspects of a comparison, or of all ranks of one, the worst first."""
    if "suspects" in answer:
        return answer
    return {"suspects": [s for rank in answer["ranks"] for s in rank["suspects"]]}


def judge(o, one, root):
    sides = [f"{root}/{one.name}/{side}" for side in ("wrong", "right")]
    for right, folder in enumerate(sides):
        record(one, bool(right), folder, {"level": o.level, "task": o.task})
    answer = all_suspects(suspects_of(*sides))
    at = place_of_truth(one, answer, *sides)
    result = "ok" if at == 1 else f"not ok (place {at})" if at else "not ok (not named)"
    print(f"{result} {one.name}  {one.where}: {one.why}", flush=True)
    if at != 1 or o.verbose:
        for s in answer["suspects"][:5 if o.verbose else 2]:
            print(f"           {s.get('target')} | {s.get('golden')}: {s['text'][:160]}")
    return at


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--only", type=lambda t: t.split(","))
    ap.add_argument("--sample", type=int, default=1, help="only every Nth bug")
    ap.add_argument("--keep", help="leave the dumps in this folder")
    ap.add_argument("--level", default="mix")
    ap.add_argument("--task", default="statistics")
    ap.add_argument("-v", dest="verbose", action="store_true")
    o = ap.parse_args()
    try:
        import torch  # noqa: F401
    except ImportError as error:
        print(f"skip bugs: {error}")
        return 0
    import attention, counts, experts, gathers, kernels, losses, optimizers, parallel, precision  # noqa: F401, E401
    import catalogue
    root = o.keep or tempfile.mkdtemp(prefix="msprobe-bugs-")
    try:
        places = [judge(o, one, root) for one in catalogue.BUGS[::o.sample]
                  if not o.only or one.name in o.only]
    finally:
        if not o.keep:
            shutil.rmtree(root)
    first, five = places.count(1), sum(1 <= p <= 5 for p in places)
    print(f"suspect 1 {first} of {len(places)}, first five {five} of {len(places)}")
    return int(first < 0.9 * len(places) or five < len(places))


if __name__ == "__main__":
    sys.exit(main())
