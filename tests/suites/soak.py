#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records, imports and looks at runs again and again, beside one server of the page and one recorded
program that never end, the second stopped, started and asked for snapshots: neither may grow in memory
or open files, and nothing may fail.

    tests/suites/soak.py BUILD [ITERATIONS [SIZES]]    SIZES: a CSV file of the sizes after every round
"""
import glob, http.client, os, re, shutil, signal, subprocess, sys, tempfile, time

ITERATIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
SIZES = sys.argv[3] if len(sys.argv) > 3 else os.devnull
QUERIES = ["about", "findings", "steps", "step?n=3", "lanes", "cluster", "find?q=forward",
           "sql?q=select+count(*)+from+events", "nothing-of-that-name", "step?n=x"]
FOREVER = "import mstx, time\nwhile True:\n    mstx.mark('soak')\n    time.sleep(0.0005)\n"
WARM = max(ITERATIONS // 2, 5)      # caches fill first
USED = ["msprobe", "libms*.so*", "dropin", "python", "samples/mstx_c"]
BUILD = tempfile.mkdtemp(prefix="msprobe-soak-build-")
MSPROBE = BUILD + "/msprobe"


def copy_build(build):
    """What is built anew meanwhile would be another program in every round, or half of one."""
    for path in (p for pattern in USED for p in glob.glob(pattern, root_dir=build)):
        os.makedirs(os.path.dirname(os.path.join(BUILD, path)), exist_ok=True)
        copy = shutil.copytree if os.path.isdir(os.path.join(build, path)) else shutil.copy2
        copy(os.path.join(build, path), os.path.join(BUILD, path))


class Server:
    """`msprobe serve` on a run."""

    def __init__(self, path):
        self.child = subprocess.Popen([MSPROBE, "serve", "--port", "0", path], stdout=subprocess.PIPE, text=True)
        line = ""
        while "http://" not in line:
            line = self.child.stdout.readline()
            if not line:
                sys.exit("not ok the server starts")
        port, self.token = re.search(r":(\d+)/#token=(\w+)", line.split("http://")[1]).groups()
        self.port = int(port)

    def ask(self, query):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        c.request("GET", "/api/" + query, headers={"X-Msprobe-Token": self.token})
        status = c.getresponse().status
        c.close()
        return status


class Recorded:
    """A program that marks for ever, of which the last second is kept."""

    def __init__(self, path):
        self.path = path
        self.child = subprocess.Popen([MSPROBE, "run", "-o", path, "--flight", "1", "--", sys.executable, "-c", FOREVER],
                                      env={**os.environ, "PYTHONPATH": BUILD + "/python"}, stderr=subprocess.DEVNULL)
        while not self.asked("status"):
            if self.child.poll() is not None:
                sys.exit("not ok the recorded program starts")
            time.sleep(0.05)
        with open("/proc/%d/task/%d/children" % (self.child.pid, self.child.pid)) as f:
            self.pid = int(f.read())

    def asked(self, *words):
        return subprocess.run([MSPROBE, "ctl", self.path, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def once(self, snapshot):
        shutil.rmtree(snapshot, ignore_errors=True)
        return all([self.asked("snapshot", "-o", snapshot), self.asked("stop"), self.asked("start")])

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        self.child.wait()


def size_of(pid, files):
    """Resident kB and open files, once there are no more than `files`: a connection that was just
    answered is closed when the server comes to it."""
    with open("/proc/%d/status" % pid) as f:
        resident = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
    end = time.monotonic() + 5
    while (found := len(os.listdir("/proc/%d/fd" % pid))) > files and time.monotonic() < end:
        time.sleep(0.05)
    return resident, found


def once(top, i, server):
    run = "%s/run%d" % (top, i % 3)
    shutil.rmtree(run, ignore_errors=True)
    for argv in ["run", "-o", run, "--", BUILD + "/samples/mstx_c"], ["import", run]:
        subprocess.run([MSPROBE, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, text=True)
    return [server.ask(q) for q in QUERIES]


def grows(name, sizes):
    """What is wrong with the sizes of one process, the smallest of a few taken early and at the end."""
    early, late = ([min(s[k] for s in part) for k in (0, 1)] for part in (sizes[WARM - 5:WARM], sizes[-5:]))
    print("%d iterations; the %s: %d kB and %d files after %d, %d kB and %d files at the end" %
          (ITERATIONS, name, *early, WARM, *late))
    return {"the %s's memory does not grow" % name: late[0] <= early[0] * 1.05 + 1024,
            "nor do the open files of the %s" % name: late[1] <= early[1]}


def keep(sizes, f):
    """A line for this round."""
    f.write(",".join(str(n) for _, taken in sizes.values() for n in taken[-1]) + "\n")
    f.flush()


def main():
    with tempfile.TemporaryDirectory(prefix="msprobe-soak-") as top, open(SIZES, "w") as table:
        table.write("server_kB,server_files,program_kB,program_files\n")
        subprocess.run([MSPROBE, "run", "-o", top + "/seen", "--", BUILD + "/samples/mstx_c"],
                       stdout=subprocess.DEVNULL, check=True)
        subprocess.run([MSPROBE, "import", top + "/seen"], stdout=subprocess.DEVNULL, check=True)
        server, program, replies, answered = Server(top + "/seen"), Recorded(top + "/long"), set(), []
        sizes = {"server": (server.child.pid, []), "recorded program": (program.pid, [])}
        try:
            for i in range(ITERATIONS):
                replies.add(tuple(once(top, i, server)))
                answered.append(program.once(top + "/snapshot"))
                for pid, taken in sizes.values():
                    taken.append(size_of(pid, min((s[1] for s in taken), default=1000)))
                keep(sizes, table)
        finally:
            program.end()
            server.child.terminate()
            status = server.child.wait()
    good = {"every iteration gives the same replies": len(replies) == 1 and 200 in next(iter(replies)),
            "the recorded program always answers": all(answered),
            "the server ends when it is told to": status == 0}
    for name, (_, taken) in sizes.items():
        good.update(grows(name, taken))
    for name, right in good.items():
        print(("ok " if right else "not ok ") + name)
    if len(replies) != 1:
        print("    %s" % list(replies)[:4])
    return 0 if all(good.values()) else 1


try:
    copy_build(sys.argv[1])
    sys.exit(main())
finally:
    shutil.rmtree(BUILD)
