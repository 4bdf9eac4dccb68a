# SPDX-License-Identifier: MIT
"""Runs a command, of which one rank gets little of the CPU.

    held.py CAUSE RANK COMMAND...

The process is one rank of a launcher.  Rank RANK shares one CPU with programs that do nothing but compute (cpu), or is
in a control group that may use 15 % of a CPU (throttle; root is needed); the other ranks run as they would.
"""
import os
import signal
import subprocess
import sys

HOGS, PERIOD, QUOTA = 2, 10000, 1500  # programs; microseconds
ROOT = "/sys/fs/cgroup/cpu" if os.path.exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") else "/sys/fs/cgroup"
LIMITS = {"cpu.cfs_period_us": PERIOD, "cpu.cfs_quota_us": QUOTA} if ROOT.endswith("cpu") else {"cpu.max": "%d %d" % (QUOTA, PERIOD)}


def write(path, text):
    with open(path, "w") as f:
        f.write(str(text))


def run_throttled(command):
    box = os.path.join(ROOT, "waiting.%d" % os.getpid())
    os.mkdir(box)
    try:
        for name, value in LIMITS.items():
            write(os.path.join(box, name), value)
        return subprocess.call(command, preexec_fn=lambda: write(os.path.join(box, "cgroup.procs"), 0))
    finally:
        os.rmdir(box)


def run_beside(command, rank):
    cpu = {rank % os.cpu_count()}
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, cpu))
            for _ in range(HOGS)]
    try:
        return subprocess.call(command, preexec_fn=lambda: os.sched_setaffinity(0, cpu))
    finally:
        for hog in hogs:
            hog.send_signal(signal.SIGKILL)
            hog.wait()


def main():
    cause, culprit, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    rank = int(os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"])
    if rank != culprit or cause not in ("cpu", "throttle"):
        os.execvp(command[0], command)
    sys.exit(run_throttled(command) if cause == "throttle" else run_beside(command, rank))


main()
