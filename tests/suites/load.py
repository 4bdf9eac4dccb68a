#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many clients, slow readers, many ranks, long names, many findings, and a run that is followed for a day:
each is answered, and memory stays within the bound that is printed beside it.

    load.py BUILD SCRATCH [full] [PART ...]     without `full` a sample of each; without a part all of them
"""
import http.client
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time

BUILD, SCRATCH = os.path.abspath(sys.argv[1]), sys.argv[2]
FULL = "full" in sys.argv[3:]
MSPROBE, MB = BUILD + "/msprobe", 1 << 20
# Of a full run, and of the sample.  TENSOR, PIPELINE, DATA: their product is the number of ranks.
CLIENTS, REQUESTS, SLOW = (200, 100000, 50) if FULL else (20, 2000, 5)
TENSOR, PIPELINE, DATA = (8, 10, 125) if FULL else (4, 4, 8)
NAMES, NAME_BYTES = (10000 if FULL else 1000), 10000
FINDINGS = 1000000 if FULL else 20000
# Marks of a day at a hundred a second, and looks at them.
MARKS, LOOKS = (8640000, 48) if FULL else (360000, 12)
REFRESH_S = 1.1  # more than REFRESH_NS of web/api/readers.c
# Most memory of one process in MB, and what it may grow between the middle and the end of a load.
SERVER_MB, COMMAND_MB, GROWTH_MB = 1024, 3072, 24
FOLLOWS_MB = 32  # of a server between two imports of a run that goes on; 15 to 19 were seen
SECONDS_MOST = 600
failed = False


def check(name, good, got=""):
    global failed
    failed |= not good
    print(f"ok {name}" if good else f"not ok {name}: {got!s:.400}", flush=True)


def command(name, *argv):
    """Runs msprobe and tells what it took; its output."""
    start = time.monotonic()
    with open(SCRATCH + "/out", "w+", encoding="utf-8") as out:
        p = subprocess.Popen([MSPROBE, *argv], stdout=out, stderr=subprocess.STDOUT)
        watch = threading.Timer(SECONDS_MOST, p.kill)
        watch.start()
        _, status, used = os.wait4(p.pid, 0)
        watch.cancel()
        p.returncode = status
        out.seek(0)
        text = out.read()
    print(f"# {name}: {time.monotonic() - start:.1f} s, {used.ru_maxrss // 1024} MB", flush=True)
    check(name, status == 0, text[-300:])
    check(f"{name} takes at most {COMMAND_MB} MB", used.ru_maxrss // 1024 <= COMMAND_MB, used.ru_maxrss // 1024)
    return text


class Server:
    def __init__(self, path):
        self.child = subprocess.Popen([MSPROBE, "serve", "--port", "0", path], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)
        line = ""
        while "http://" not in line:
            line = self.child.stdout.readline()
            if not line:
                raise SystemExit("not ok the server starts")
        port, self.token = re.search(r":(\d+)/#token=(\w+)", line.split("http://")[1]).groups()
        self.port = int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MOST)

    def ask(self, query, c=None):
        """Status and body of one question."""
        mine = c or self.connect()
        mine.request("GET", "/api/" + query, headers={"X-Msprobe-Token": self.token})
        r = mine.getresponse()
        body = r.read()
        if c is None:
            mine.close()
        return r.status, body

    def memory(self, field="VmRSS"):
        """In MB."""
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as f:
            return int(re.search(field + r":\s+(\d+)", f.read()).group(1)) / 1024

    def files(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))


def bounded(name, server):
    most = server.memory("VmHWM")
    print(f"# {name}: at most {most:.0f} MB, now {server.memory():.0f} MB", flush=True)
    check(f"{name}: the server takes at most {SERVER_MB} MB", most <= SERVER_MB, most)


# ---- clients ----------------------------------------------------------------------

QUESTIONS = ["about", "findings", "steps", "step?n=1", "lanes?limit=50", "cluster", "find?q=reduce", "nothing-of-that-name"]


def slow_reader(server, until):
    """Asks for the largest answers and takes a few bytes now and then."""
    taken = 0
    while not until.is_set():
        try:
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                s.connect(("127.0.0.1", server.port))
                s.sendall(f"GET /api/lanes HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                          f"X-Msprobe-Token: {server.token}\r\n\r\n".encode())
                s.settimeout(1)
                while not until.wait(0.2) and s.recv(64):
                    taken += 1
        except OSError:
            until.wait(0.2)
    return taken


def client(server, share, statuses, lock):
    c, mine = server.connect(), {}
    for i in range(share):
        try:
            got = server.ask(QUESTIONS[i % len(QUESTIONS)], c)[0]
        except (OSError, http.client.HTTPException) as e:
            got = type(e).__name__
            c.close()
            c = server.connect()
        mine[got] = mine.get(got, 0) + 1
    with lock:
        for k, n in mine.items():
            statuses[k] = statuses.get(k, 0) + n


def half(server, count):
    """So many requests by all clients; the statuses."""
    statuses, lock = {}, threading.Lock()
    threads = [threading.Thread(target=client, args=(server, count // CLIENTS, statuses, lock)) for _ in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return statuses


def clients():
    run, ranks = SCRATCH + "/ranks", TENSOR * PIPELINE * DATA
    subprocess.run([BUILD + "/tests/tool_sim", run, "straggler", "0.3", "1", str(TENSOR), str(PIPELINE), str(DATA), "2", "1", "1"],
                   check=True, stdout=subprocess.DEVNULL)
    command(f"an import of {ranks} ranks", "import", run)
    command(f"a report of {ranks} ranks", "report", run)
    with Server(run) as server:
        until, start = threading.Event(), time.monotonic()
        slow = [threading.Thread(target=slow_reader, args=(server, until)) for _ in range(SLOW)]
        for t in slow:
            t.start()
        first = half(server, REQUESTS // 2)
        middle = server.memory()
        second = half(server, REQUESTS // 2)
        took, end = time.monotonic() - start, server.memory()
        until.set()
        for t in slow:
            t.join()
        asked = REQUESTS // 2 // CLIENTS * CLIENTS * 2
        wanted = {200: asked * 7 // 8, 404: asked // 8}
        got = {k: first.get(k, 0) + second.get(k, 0) for k in {*first, *second}}
        print(f"# {asked} requests of {CLIENTS} clients beside {SLOW} slow readers: {took:.1f} s, {asked / took:.0f} a second")
        check("each request is answered, slow readers or not", set(got) == set(wanted) and sum(got.values()) == asked, got)
        check(f"memory grows by at most {GROWTH_MB} MB in the second half", end <= middle + GROWTH_MB, (middle, end))
        bounded(f"{CLIENTS} clients", server)


# ---- long names, many findings ---------------------------------------------------------

def names():
    path = SCRATCH + "/names.json"
    with open(path, "w", encoding="utf-8") as f:
        f.write('{"traceEvents":[\n')
        for i in range(NAMES):
            name = (f"name{i}." * (NAME_BYTES // 4))[:NAME_BYTES]
            f.write(json.dumps({"name": name, "ph": "X", "ts": i * 10, "dur": 5, "pid": 1, "tid": 1}) + ("\n" if i + 1 == NAMES else ",\n"))
        f.write("]}\n")
    command(f"an import of {NAMES} names of {NAME_BYTES} bytes", "import", path)
    text = command("their report", "report", path)
    check("the report is for people", len(text) < MB, len(text))
    with Server(path) as server:
        for q in ["about", "find?q=name77", "lanes", "strings?ids=1,2,3"]:
            status, body = server.ask(q)
            check(f"names: {q}", status == 200, (status, body[:200]))
            check(f"names: {q} is at most 64 MB", len(body) <= 64 * MB, len(body))
        bounded("long names", server)


def findings():
    run = SCRATCH + "/found"
    subprocess.run([BUILD + "/tests/tool_sim", run, "clean", "0", "1", "1", "1", "2", "4"], check=True, stdout=subprocess.DEVNULL)
    command("an import of a small run", "import", run)
    db = sqlite3.connect(run + "/run.db")
    db.executemany("INSERT INTO findings(kind, severity, ranks, first_step, last_step, value, text, place, from_ns, to_ns)"
                   " VALUES('slow_step', 'warning', ?, 1, 1, 2.0, ?, '', 0, 0)",
                   ((str(i % 2), f"step {i} took twice as long") for i in range(FINDINGS)))
    db.commit()
    db.close()
    text = command(f"a report of {FINDINGS} findings", "report", run + "/run.db")
    told = re.search(r"[\d,]+ (more )?findings", text)
    print(f"# it has {len(text.splitlines())} lines" + (f" and says '{told.group(0)}'" if told else ""))
    check("many findings make one screen", f"... {FINDINGS - 3:,} more (warning" in text and len(text.splitlines()) < 45,
          len(text.splitlines()))
    command("the same for programs", "report", "--format", "json", run + "/run.db")
    with open(SCRATCH + "/keys", "w", encoding="ascii") as f:
        f.write("q")
    command("the same in the terminal", "view", "--script", SCRATCH + "/keys", run + "/run.db")
    with Server(run + "/run.db") as server:
        status, body = server.ask("findings")
        print(f"# the page is told {len(body)} bytes of findings, status {status}")
        told = json.loads(body)
        check("the page lists the first findings and says how many there are", status == 200 and len(told) == 2001 and
              told[-1]["text"].startswith(f"{FINDINGS - 2000:,} more findings"), (status, body[-300:]))
        c = server.connect()
        c.request("GET", "/metrics", headers={"X-Msprobe-Token": server.token})
        counted = c.getresponse().read().decode()
        check("monitoring counts all findings", f'msprobe_findings{{severity="warning"}} {FINDINGS}' in counted, counted[-400:])
        check("the server goes on", server.ask("about")[0] == 200)
        bounded("findings", server)


# ---- a day -------------------------------------------------------------------------------

# Marks as fast as it can, a share at each line it reads; the recorder keeps the last seconds.
MARKER = """
import mstx, sys
for line in sys.stdin:
    for i in range(int(line)):
        mstx.mark('step %d' % (i % 50))
    print('done', flush=True)
"""


def day():
    """A flight recorder that is followed by the page: as many marks as a day brings, at once."""
    if not os.path.exists(BUILD + "/python/mstx.so"):
        print("skip a day: the Python module is not built")
        return
    run = SCRATCH + "/day"
    marker = subprocess.Popen([MSPROBE, "run", "-o", run, "--flight", "1", "--max_size", "64m", "--", sys.executable, "-c", MARKER],
                              env={**os.environ, "PYTHONPATH": BUILD + "/python"}, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def mark():
        marker.stdin.write(f"{MARKS // LOOKS}\n")
        marker.stdin.flush()
        return marker.stdout.readline() == "done\n"
    sizes, good, statuses, seen = [], mark(), set(), set()
    start = time.monotonic()
    with Server(run) as server:
        for _ in range(LOOKS - 1):
            good &= mark()
            time.sleep(REFRESH_S)
            answers = [server.ask(q) for q in ("about", "lanes", "findings")]
            statuses |= {status for status, _ in answers}
            seen.add(answers[0][1])
            sizes.append((server.memory(), server.files(), sum(e.stat().st_size for e in os.scandir(run) if e.is_file()) / MB))
        took = time.monotonic() - start
        print("# MB of the server at each look: " + " ".join(f"{s[0]:.0f}" for s in sizes))
        print("# MB of run.db at each look: " + " ".join(f"{s[2]:.0f}" for s in sizes))
        middle, end = [[min(s[k] for s in part) for k in range(3)] for part in (sizes[LOOKS // 3:LOOKS * 2 // 3], sizes[-LOOKS // 3:])]
        print(f"# {MARKS} marks, {LOOKS} looks, {took:.1f} s: the server has {middle[0]:.0f} MB and {middle[1]} files in the middle, "
              f"{end[0]:.0f} MB and {end[1]} files at the end; run.db {middle[2]:.1f} and {end[2]:.1f} MB")
        check("the program marks as long as it is asked", good)
        check("each look is answered", statuses == {200}, statuses)
        check("most looks show another moment", len(seen) > LOOKS // 2, len(seen))
        check("the server that follows does not grow", end[0] <= middle[0] * 1.05 + 4, (middle, end))
        check(f"between two imports it has at most {FOLLOWS_MB} MB", max(s[0] for s in sizes) <= FOLLOWS_MB, sizes)
        check("its open files do not grow", end[1] <= middle[1] + 1, (middle, end))
        check("what it imports does not grow", end[2] <= middle[2] * 1.5 + 4, (middle, end))
        bounded("a day", server)
    marker.stdin.close()
    marker.wait()


PARTS = {part.__name__: part for part in (clients, names, findings, day)}
for asked in [a for a in sys.argv[3:] if a != "full"] or PARTS:
    PARTS[asked]()
sys.exit(failed)
