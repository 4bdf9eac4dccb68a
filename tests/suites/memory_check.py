#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the answers of `msprobe memory` against what PyTorch's profiler counts (see memory_runs.py).

    python3 memory_check.py MSPROBE timeline FILE      peak and kinds of a raw timeline, counted again here
    python3 memory_check.py MSPROBE profile NAME OUT   trace, snapshot and timeline of one run
    python3 memory_check.py MSPROBE run NAME DIR       a run of `msprobe run --memory`
    python3 memory_check.py MSPROBE plan DUMP BYTES PERCENT   a plan against a measured peak
"""
import gzip
import json
import subprocess
import sys

CATEGORIES = ["parameter", "optimizer state", "input", "temporary", "activation", "gradient", "temporary", "unknown"]
# what the profiler calls input or gives no category is an activation or temporary by the phases
LEAKS = {"clean": 0, "leak": 65536, "leak_third": 65536 / 3, "graph": 65536, "cache": 0, "history": 0}
SOURCE = open(__file__.replace("memory_check", "memory_runs"), encoding="utf-8").read().split("\n")
LINES = {"leak": "the line that leaks", "leak_third": "the line that leaks", "graph": "the line whose graph"}


def answer(program, *args):
    done = subprocess.run([program, *args, "--format", "json", "--most", "0"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def recount(path):
    """The greatest use of a raw timeline and its kinds, row by row."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        rows = json.load(f)
    now, best, at = {}, -1, {}
    for time, _, size, category in rows:
        now[CATEGORIES[category]] = now.get(CATEGORIES[category], 0) + size
        if time >= 0 and sum(now.values()) > best:
            best, at = sum(now.values()), dict(now)
    return max(best, 0), at


def timeline(program, path):
    best, kinds = recount(path)
    peak = answer(program, "memory", path)["devices"][0]["peak"]
    assert peak["bytes"] == best, (peak["bytes"], best)
    for kind, size in peak["kinds"].items():
        assert size == kinds.get(kind, 0), (kind, size, kinds)
    print(f"{path}: {best} bytes at the peak and all kinds are the same")


def check_leak(name, device, line_known):
    want, growth = LEAKS[name], device["growth"]
    assert growth["steps"] >= 8, growth
    got = growth["bytes_per_step"]
    if want == 0:
        assert not growth["leaks"], growth
        return
    assert 0.6 * want <= got <= 2.2 * want, (got, want)
    number = 1 + next(i for i, text in enumerate(SOURCE) if LINES[name] in text)
    said = growth["leaks"][0]["frame"]
    assert "memory_runs.py" in said and "keep" in said, said
    if line_known:
        assert f"memory_runs.py:{number} keep" == said, (said, number)


def profile(program, name, out):
    best, kinds = recount(out + ".raw.json")
    for end in (".json", ".pickle"):
        device = answer(program, "memory", out + end)["devices"][0]
        peak = device["peak"]
        assert abs(peak["bytes"] - best) <= 0.01 * best, (end, peak["bytes"], best)
        for kind in ("parameter", "optimizer state", "activation"):
            assert abs(peak["kinds"][kind] - kinds.get(kind, 0)) <= 0.05 * best, (end, kind, peak["kinds"], kinds)
        assert sum(peak["kinds"].values()) == peak["bytes"]
        check_leak(name, device, False)
    timeline(program, out + ".raw.json")


def run(program, name, folder):
    devices = answer(program, "memory", folder)["devices"]
    assert devices and devices[0]["device"].startswith("cpu"), devices
    check_leak(name, devices[0], True)
    kinds = devices[0]["peak"]["kinds"]
    assert kinds["parameter"] > 0 and kinds["optimizer state"] > 0 and kinds["activation"] > 0, kinds
    print(name, devices[0]["peak"]["bytes"], devices[0]["growth"]["bytes_per_step"])


def plan(program, dump, measured, percent):
    planned = answer(program, "dryrun", "--on", "cpu", dump)["peak"]
    off = 100 * (planned / int(measured) - 1)
    print(f"planned {planned}, measured {measured}: {off:+.1f} %")
    assert abs(off) <= float(percent), off


if __name__ == "__main__":
    {"timeline": timeline, "profile": profile, "run": run, "plan": plan}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
