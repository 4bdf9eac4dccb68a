#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `msprobe monitor` makes of a monitor's files, beside what the official tool makes of them.

    after.py MSPROBE MONITORED FOLDER     MONITORED: a folder that a monitor wrote, with alarms"""
import glob
import importlib.util
import json
import os
import random
import resource
import subprocess
import sys
import time

MSPROBE, MONITORED, FOLDER = sys.argv[1:]
failed = []


def check(name, is_right, what=""):
    print(f"ok {name}" if is_right else f"not ok {name}\n    {str(what)[:800]}", flush=True)
    if not is_right:
        failed.append(name)


def run(*args):
    return subprocess.run([MSPROBE, "monitor", *map(str, args)], capture_output=True, text=True, check=False)


def read(path):
    with open(path, "rb") as file:
        return file.read()


# ---- alarms -------------------------------------------------------------------


def write_alarms(folder, ranks, each, seed):
    draw = random.Random(seed)
    kinds = ["actv", "actv_grad", "acc_grad", "post_grad", "exp_avg", "exp_avg_sq", "param_origin"]
    for rank in range(ranks):
        alarms = {}
        for n in range(each):
            tag = f"0:layers.{draw.randrange(40)}.wéight/rank{rank}/{draw.choice(kinds)}"
            step, call = draw.randrange(50), n
            alarms[f"{tag}_step_{step}_call_{call}"] = {
                "rank": rank, "step": step, "micro_step": draw.randrange(2), "pp_stage": rank % 3, "vpp_stage": n % 2,
                "call_id": call * ranks + rank, "tag_name": tag, "message": f"Rule \"{n}\" \\ at {step}",
                "group_mates": list(range(ranks)) if n % 5 else []}
        os.makedirs(f"{folder}/rank{rank}", exist_ok=True)
        with open(f"{folder}/rank{rank}/anomaly.json", "w", encoding="utf-8") as file:
            json.dump(alarms, file, indent=1)


def official_alarms(folder, out, *args):
    """Runs the official sorter; returns its seconds."""
    code = ("import sys, time; from msprobe.core.monitor import anomaly_processor as a; b = time.time(); "
            "a._anomaly_analyse(); print('SECONDS', time.time() - b)")
    done = subprocess.run([sys.executable, "-c", code, "-d", folder, "-o", out, *map(str, args)], capture_output=True,
                          text=True, check=True)
    return float(done.stdout.split("SECONDS")[1])


def alarms_beside():
    small, large = os.path.join(FOLDER, "small"), os.path.join(FOLDER, "large")
    write_alarms(small, 5, 40, 1)
    write_alarms(large, 4, 5000, 2)
    for name, folder, args in (("small", small, ("-k", 1000)), ("first_eight", small, ()),
                               ("of_two_steps", small, ("-s", "[3, 7]", "-k", 30)), ("large", large, ("-k", 100000))):
        out = os.path.join(FOLDER, "sorted", name)
        for one in ("ours", "theirs"):
            os.makedirs(os.path.join(out, one))
        began, cpu = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
        said = run("-d", folder, "-o", f"{out}/ours", *args)
        took, now = time.time() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = now.ru_utime + now.ru_stime - cpu.ru_utime - cpu.ru_stime
        theirs = official_alarms(folder, f"{out}/theirs", *args)
        check(f"alarms_equal_the_official_{name}", said.returncode == 0 and
              read(f"{out}/ours/anomaly_analyse.json") == read(f"{out}/theirs/anomaly_analyse.json"), said.stderr)
    print(f"# 20,000 alarms: {1000 * took:.0f} ms, {1000 * cpu:.0f} of CPU, with reading, writing and the process; "
          f"official {1000 * theirs:.0f} ms, without its process")


# ---- TensorBoard ---------------------------------------------------------------


def curves(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    found = {}
    for path in glob.glob(f"{folder}/rank*/*/events.out.tfevents.*"):
        events = EventAccumulator(os.path.dirname(path), size_guidance={"scalars": 0})
        events.Reload()
        where = os.path.relpath(os.path.dirname(path), folder)
        for tag in events.Tags()["scalars"]:
            found[where, tag] = [(e.step, repr(e.value)) for e in events.Scalars(tag)]
    return found


def tensorboard_beside():
    ours, theirs = os.path.join(FOLDER, "tb_ours"), os.path.join(FOLDER, "tb_theirs")
    said = run(MONITORED, "--csv2tb", ours)
    subprocess.run([sys.executable, "-c", "import sys; from msprobe.pytorch.monitor import csv2tb; "
                    "csv2tb.csv2tensorboard_by_step(sys.argv[1], output_dirpath=sys.argv[2])", MONITORED, theirs],
                   check=True, capture_output=True)
    mine, other = curves(ours), curves(theirs)
    check("event_files_equal_the_official", said.returncode == 0 and len(other) > 20 and mine == other,
          (said.stderr, len(mine), len(other), [(k, mine.get(k), other[k]) for k in other if mine.get(k) != other[k]][:3]))


def database():
    out = os.path.join(FOLDER, "db")
    said = run(MONITORED, "--csv2db", out)
    check("a_database_is_written", said.returncode == 0 and os.path.exists(f"{out}/monitor_data.trend.db"), said.stderr)


def mistakes():
    check("an_empty_folder_is_said", run(FOLDER).returncode == 3)
    check("a_wrong_list_of_steps_is_said", "option --step" in run("-d", FOLDER, "-s", "3").stderr)
    broken = os.path.join(FOLDER, "broken")
    write_alarms(broken, 2, 3, 3)
    with open(f"{broken}/rank1/anomaly.json", "a", encoding="utf-8") as file:
        file.write("x")
    said = run("-d", broken)
    check("a_broken_file_is_said_and_the_others_count", said.returncode == 0 and "rank1/anomaly.json: line" in
          said.stderr and said.stdout.count("Rule") == 3, said)


def is_here(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


os.makedirs(FOLDER, exist_ok=True)
mistakes()
database()
if is_here("msprobe.core.monitor"):
    alarms_beside()
    tensorboard_beside()
else:
    print("skip monitor_after: the official tool is not installed beside this Python")
sys.exit(bool(failed))
