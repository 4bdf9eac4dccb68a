#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long the page waits for each of its questions about a large run, and how much it is sent.

    bench_routes.py BUILD RUN     serves RUN, an imported run directory, and asks every question about timelines

Each question is asked with the parameters that cost most: all processes, all tracks that one request may name, the
whole time of the run.  Prints the milliseconds of the first answer, the CPU time that it took, the milliseconds of the
second answer, which may come from memory, and the bytes; marks what is above 200 ms or 1 MB and then ends with
status 1.
"""
import json
import subprocess
import sys
import time
import urllib.parse
import urllib.request

BUILD, RUN = sys.argv[1:3]
MOST_S, MOST_BYTES = 0.2, 1e6
TRACKS_ASKED, PROCESSES_ASKED = 4096, 12  # limits of a request
QUERIES = {
    "grouped by name": "SELECT name, count(*), sum(dur_ns) FROM events GROUP BY name ORDER BY 3 DESC",
    "grouped by rank": "SELECT rank, count(*), sum(dur_ns) FROM events GROUP BY rank",
    "grouped by domain": "SELECT domain, count(*), avg(dur_ns), max(dur_ns) FROM events GROUP BY domain",
    "grouped by kind": "SELECT kind, count(*) FROM events GROUP BY kind",
    "counted": "SELECT count(*) FROM events",
    "sorted": "SELECT * FROM events ORDER BY dur_ns DESC LIMIT 100",
    "sorted names": "SELECT rank, name, dur_ns FROM events ORDER BY dur_ns DESC LIMIT 20",
    "calls by op": "SELECT op, count(*), sum(bytes) FROM comm_ops GROUP BY op",
    "joins by wait": "SELECT * FROM joins ORDER BY waited_ns DESC LIMIT 100",
    "all steps": "SELECT * FROM steps",
}


def ask(address, path, **params):
    """Returns the seconds of an answer, its bytes, and why it was refused, if it was."""
    base, token = address.split("/#token=")
    request = urllib.request.Request(f"{base}/api/{path}?{urllib.parse.urlencode(params)}",
                                     headers={"X-Msprobe-Token": token})
    start = time.monotonic()
    try:
        with urllib.request.urlopen(request) as reply:
            content, refused = reply.read(), ""
    except urllib.error.HTTPError as error:
        content, refused = error.read(), f"  refused: {error.read()!r} {error.code}"
    return time.monotonic() - start, content, refused


def questions(address):
    """Yields (name, path, parameters) of all questions."""
    lanes = json.loads(ask(address, "lanes")[1])
    rows = [dict(zip(lanes["fields"], lane)) for lane in lanes["lanes"]]
    tracks = [row["track"] for row in rows if "track" in row]
    processes = sorted({row["process"] for row in rows})
    some = ",".join(map(str, tracks[:TRACKS_ASKED]))
    for path in ("about", "facts", "findings", "steps", "lanes", "cluster", "alike"):
        yield path, path, {}
    last = json.loads(ask(address, "about")[1])
    length = last.get("length") or last.get("timeline", {}).get("length") or 10 ** 10
    yield "step", "step", {"process": processes[-1], "t": length // 2}
    yield f"slices of {min(len(tracks), TRACKS_ASKED)} tracks", "slices", {"tracks": some, "px": 1200}
    yield "slices of a track", "slices", {"tracks": tracks[0], "px": 16384}
    yield "busy", "busy", {"process": processes[-1], "px": 16384}
    yield "strings", "strings", {"ids": ",".join(map(str, range(1, TRACKS_ASKED)))}
    yield f"sum of {min(len(tracks), TRACKS_ASKED)} tracks", "sum", {"tracks": some}
    yield "find, none", "find", {"tracks": some, "q": "no such name"}
    yield "find, rare", "find", {"tracks": some, "q": "step 100", "t": 0}
    yield "hits", "hits", {"q": "e", "limit": 500}
    yield "hits, none", "hits", {"q": "no such name", "limit": 500}
    yield "collective of a rank", "collective", {"rank": len(processes) // 2}
    yield "critical path", "replay", {"px": 16384}
    yield "ideal timelines", "replay", {"px": 16384, "processes": ",".join(map(str, processes[:PROCESSES_ASKED]))}
    for name, query in QUERIES.items():
        yield f"query, {name}", "sql", {"q": query}


def cpu_ms(pid):
    """Returns the CPU time of a process so far, by the clock that the kernel has for each process."""
    return time.clock_gettime(~pid << 3 | 2) * 1e3


def measure(address, pid):
    """Prints a row for each question; returns how many are above the bars."""
    bad = 0
    print(f"{'question':26} {'first ms':>9} {'CPU ms':>9} {'again ms':>9} {'bytes':>9}")
    for name, path, params in list(questions(address)):
        before = cpu_ms(pid)
        first, content, refused = ask(address, path, **params)
        used = cpu_ms(pid) - before
        again = ask(address, path, **params)[0]
        over = first > MOST_S or len(content) > MOST_BYTES or refused != ""
        bad += over
        print(f"{name:26} {first * 1e3:9.1f} {used:9.1f} {again * 1e3:9.1f} {len(content):9} {'TOO MUCH' if over else ''}{refused}",
              flush=True)
    return bad


def main():
    with subprocess.Popen([f"{BUILD}/msprobe", "serve", "--port", "0", RUN], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL) as server:
        try:
            address = server.stdout.readline().strip()
            bad = measure(address, server.pid)
            with open(f"/proc/{server.pid}/status") as status:
                print("memory of the server:", next(line.split()[1] for line in status if line.startswith("VmHWM")), "KB")
        finally:
            server.terminate()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
