#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traces of PyTorch's profiler against figures that were counted straight from their JSON.

    kineto_figures.py MSPROBE FOLDER SCRATCH     prints each figure that differs by more than 0.1 %
"""
import json
import os
import subprocess
import sys

TRACES = ("linear_kineto", "critical_simple_add", "nccl_data", "sampled_rank-0", "sampled_rank-1",
          "trace_diff_control", "trace_diff_test")
USE = {"window_us": "window_first_to_last_gpu_event_us", "busy_us": "busy_us", "idle_us": "idle_us",
       "compute_us": "compute_us", "communication_us": "communication_us", "memory_us": "memory_us",
       "overlap_percent": "overlap_pct_of_communication",
       "exposed_communication_us": "exposed_communication_us"}
LAUNCHES = {"pairs": "runtime call and device event of one correlation",
            "longer_than_kernel": "short (call longer than device event)",
            "calls_over_50_us": "calls > 50 us",
            "delays_over_100_us": "delay (device begin - call end) > 100 us",
            "negative_delays": "negative delays", "delay_median_us": "delay median us",
            "delay_max_us": "delay max us"}
KERNEL = {"sum_us": "sum", "count": "count", "max_us": "max", "min_us": "min", "mean_us": "mean"}


class Check:
    def __init__(self):
        self.figures = self.wrong = 0

    def equal(self, what, found, expected):
        self.figures += 1
        if abs(found - expected) > max(1e-3 * abs(expected), 0.0011):
            self.wrong += 1
            print(f"{what}: {found}, expected {expected}")


def report_of(msprobe, path):
    return json.loads(subprocess.check_output([msprobe, "report", "--breakdown", "--format", "json", path]))


def check_kernels(check, name, rank, expected):
    found = {k["name"]: k for k in rank["kernels"]}
    check.equal(f"{name} kernels", len(found), expected["different"])
    check.equal(f"{name} events", sum(k["count"] for k in found.values()), expected["events"])
    for k in expected["top"]:
        for ours, theirs in KERNEL.items():
            check.equal(f"{name} {k['name'][:60]} {theirs}", found[k["name"]][ours], k[theirs])


def check_trace(check, name, report, expected):
    (rank, use), = expected["own_figures"].items()
    found = report["breakdown"]
    check.equal(f"{name} ranks", len(found), 1)
    check.equal(f"{name} rank", found[0]["rank"], int(rank))
    check.equal(f"{name} processes", report["run"]["processes"], 1)
    for ours, theirs in USE.items():
        check.equal(f"{name} {ours}", found[0][ours], use[theirs])
    for ours, theirs in LAUNCHES.items():
        check.equal(f"{name} {ours}", found[0]["launches"][ours], expected["own_launch_stats"][rank][theirs])
    steps = expected["steps"][rank]
    check.equal(f"{name} steps", len(report["steps"]), len(steps))
    for ours, theirs in zip(sorted(report["steps"], key=lambda s: s["step"]),
                            sorted(steps, key=lambda s: int(s["name"].split("#")[1]))):
        check.equal(f"{name} {theirs['name']}", ours["duration_ns"] / 1000, theirs["duration"])
    check_kernels(check, name, found[0], expected["own_kernels_all_steps"][rank])


def main():
    msprobe, folder, scratch = sys.argv[1:]
    check = Check()
    for name in TRACES:
        run = os.path.join(scratch, name)
        subprocess.check_call([msprobe, "import", f"{folder}/{name}.json.gz", "-o", run],
                              stdout=subprocess.DEVNULL)
        with open(f"{folder}/expected/{name}.json", encoding="utf-8") as f:
            check_trace(check, name, report_of(msprobe, run), json.load(f))
    print(f"{check.figures} figures, {check.wrong} differ")
    return check.wrong != 0 or check.figures < 700


if __name__ == "__main__":
    sys.exit(main())
