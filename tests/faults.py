#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every command that writes, with a disk that breaks at the n-th call, with memory that ends, and
killed at some moment: it says so in words and ends with status 3, or it had no need of what broke.
What it leaves behind is whole, and no temporary file stays after an error.  Commands that only
read, and the server, have their memory ended as well.

    tests/faults.py BUILD [WORD]    only commands with the word in their name
"""
import glob, json, os, random, re, shutil, signal, sqlite3, subprocess, sys, tempfile, time, zipfile
import urllib.error, urllib.request

BUILD = os.path.abspath(sys.argv[1])
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""
MSPROBE = os.path.join(BUILD, "msprobe")
SHIM = os.path.join(BUILD, "tests/rt/broken_disk.so")
KINDS = {"write": 28, "sync": 5, "rename": 13, "truncate": 28}
failed = 0


def ok(name, problems):
    global failed
    print(("not ok " if problems else "ok ") + name, flush=True)
    for p in problems[:5]:
        print("    " + p)
    failed += bool(problems)


def run(argv, **env):
    shared = {k: v for k, v in os.environ.items() if not k.startswith(("BROKEN_", "MSPROBE_"))}
    return subprocess.run(argv, env={**shared, **env}, capture_output=True, text=True, timeout=120)


def make_inputs(top):
    """Two small dumps and a capture, made by the samples."""
    run([BUILD + "/samples/two_dumps", top + "/dumps"]).check_returncode()
    run([MSPROBE, "run", "-o", top + "/run", "--", BUILD + "/samples/mstx_c"], RANK="0").check_returncode()
    run([MSPROBE, "import", top + "/run"]).check_returncode()
    run([MSPROBE, "compare", "-tp", top + "/dumps/faulty", "-gp", top + "/dumps/clean", "-o", top + "/tables"]).check_returncode()
    os.makedirs(top + "/ranks")
    for rank in range(2):
        for table in glob.glob(top + "/tables/*.csv"):
            shutil.copy(table, "%s/ranks/compare_result_rank%d_20260101000000.csv" % (top, rank))
    with open(top + "/merge.yaml", "w") as f:
        f.write("api: [Functional.relu.0.forward]\ncompare_index: [MaxAbsErr]\n")
    with open(top + "/keys", "w") as f:
        f.write("jjj<Enter>t<Space>n?<Esc>r:goto nothing<Enter>q")


def commands(top):
    """Name, arguments; OUT is a fresh folder.  A capture is copied there, since import writes into it."""
    target, golden = top + "/dumps/faulty", top + "/dumps/clean"
    pair = ["-tp", target, "-gp", golden]
    yield "compare csv", ["compare", *pair, "-o", "OUT/c"]
    yield "compare xlsx", ["compare", *pair, "-o", "OUT/c", "--xlsx"]
    yield "graph_visualize", ["graph_visualize", *pair, "-o", "OUT/g"]
    yield "graph_visualize json", ["graph_visualize", "-tp", target, "-o", "OUT/g", "--file_type", "json"]
    yield "merge_result", ["merge_result", "-i", top + "/ranks", "-o", "OUT/m", "-config", top + "/merge.yaml"]
    yield "calibrate", ["calibrate", golden, target, "-o", "OUT/e/noise.json"]
    yield "cluster", ["cluster", "-m", "mstx_sum", "-d", top + "/run", "-o", "OUT/cl"]
    yield "overflow_check", ["overflow_check", "-i", target + "/step0", "-o", "OUT/o"]
    yield "parse", ["parse", "-d", target, "-t", "npy", "-o", "OUT/p"]
    yield "data2db", ["data2db", "--data", target, "--db", "OUT/db"]
    yield "import", ["import", "OUT/run"]
    for form in "chrome", "perfetto", "csv", "ascend-db":
        yield "export " + form, ["export", top + "/run", "--format", form, "-o", "OUT/e/x." + form]


def readers(top):
    """Name, arguments of what writes no file."""
    target, golden = top + "/dumps/faulty", top + "/dumps/clean"
    yield "stat", ["stat", target]
    yield "stat json", ["stat", "--format", "json", target]
    yield "check", ["check", target]
    yield "compare json", ["compare", "-tp", target, "-gp", golden, "-o", "OUT/c", "--format", "json"]
    yield "compare explain", ["compare", "-tp", target, "-gp", golden, "-o", "OUT/c", "--explain", "linear"]
    yield "report", ["report", top + "/run"]
    yield "report json", ["report", "--format", "json", top + "/run"]
    yield "sql", ["sql", top + "/run", "SELECT name, count(*) FROM events GROUP BY name"]
    yield "ctl", ["ctl", top + "/run", "status"]
    yield "view a run", ["view", "--script", top + "/keys", top + "/run"]
    yield "view two dumps", ["view", "--script", top + "/keys", target, "-gp", golden]


def broken_file(path):
    """Why this file is not whole; nothing when it is."""
    if os.path.getsize(path) == 0:
        return "is empty"
    try:
        if path.endswith((".db", ".ascend-db")):
            with sqlite3.connect("file:%s?mode=ro&immutable=1" % path, uri=True) as db:
                said = db.execute("PRAGMA integrity_check").fetchone()[0]
                return "" if said == "ok" else said
        if path.endswith((".json", ".chrome")):
            with open(path) as f:
                json.load(f)
        elif path.endswith(".xlsx"):
            with zipfile.ZipFile(path) as z:
                return z.testzip() or ""
        elif path.endswith(".csv"):
            with open(path) as f:
                return "" if f.read().endswith("\n") else "ends inside a line"
    except Exception as e:
        return "%s: %s" % (type(e).__name__, e)
    return ""


def left_behind(out, temporary_too):
    """What must not lie there: temporary files after an error, and files that are not whole."""
    problems = []
    for path in glob.glob(out + "/**/*", recursive=True):
        name = os.path.relpath(path, out)
        if name.startswith("run/") and not name.endswith(".db") or not os.path.isfile(path):
            continue
        temporary = ".tmp" in name or name.endswith(("-journal", "-wal", "-shm")) or name.startswith("tmp/")
        if temporary:
            problems += ["left " + name] if temporary_too else []
        elif broken_file(path):
            problems.append("%s %s" % (name, broken_file(path)))
    return problems


class Place:
    """A fresh folder for one run of a command."""

    def __init__(self, top):
        self.top, self.out = top, tempfile.mkdtemp(prefix="out", dir=top)
        os.makedirs(self.out + "/tmp")
        os.makedirs(self.out + "/e")

    def argv(self, arguments):
        if "OUT/run" in arguments:
            shutil.copytree(self.top + "/run", self.out + "/run", ignore=shutil.ignore_patterns("run.db"))
        return [MSPROBE] + [a.replace("OUT", self.out) for a in arguments]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.out, ignore_errors=True)


def chosen(total):
    """Which of so many calls are made to fail: the first, the last, and some between."""
    return sorted({n for n in [0, 1, 2, total // 4, total // 2, 3 * total // 4, total - 2, total - 1] if 0 <= n < total})


def judge(done, out, what):
    if done.returncode not in (0, 3):
        return ["%s: status %d: %s" % (what, done.returncode, done.stderr[:200])]
    if done.returncode == 3 and not done.stderr.strip():
        return [what + ": failed without a word"]
    return ["%s: %s" % (what, p) for p in left_behind(out, True)]


def break_disk(top, name, arguments):
    """Each kind of call, at chosen moments."""
    problems, broken = [], 0
    for kind, number in KINDS.items():
        with Place(top) as p:
            run(p.argv(arguments), LD_PRELOAD=SHIM, BROKEN_KIND=kind, BROKEN_COUNT=p.out + "/tmp/count", TMPDIR=p.out + "/tmp")
            with open(p.out + "/tmp/count") as f:
                total = int(f.read())
        for n in chosen(total):
            with Place(top) as p:
                done = run(p.argv(arguments), LD_PRELOAD=SHIM, BROKEN_KIND=kind, BROKEN_AFTER=str(n),
                           BROKEN_ERRNO=str(number), TMPDIR=p.out + "/tmp")
                broken += done.returncode == 3
                what = "%s %d of %d fails" % (kind, n + 1, total)
                problems += judge(done, p.out, what)
                if kind in ("write", "rename") and n == 0 and done.returncode != 3:
                    problems.append(what + ": nobody noticed")
    ok("%s: a disk that breaks is told, and what stays is whole" % name, problems or ([] if broken else ["no call failed"]))


def end_memory(top, name, arguments):
    problems, broken = [], 0
    for n in sorted(set(list(range(1, 60)) + [int(60 * 1.15 ** i) for i in range(40)])):
        with Place(top) as p:
            done = run(p.argv(arguments), MSPROBE_FAIL_ALLOC=str(n), TMPDIR=p.out + "/tmp")
            broken += done.returncode == 3
            problems += judge(done, p.out, "allocation %d fails" % n)
    ok("%s: memory that ends is told, and what stays is whole" % name, problems or ([] if broken else ["no allocation failed"]))


ASKED = ["", "metrics", "api/about", "api/facts", "api/findings", "api/table", "api/children", "api/search?q=relu", "api/first",
         *("api/%s?name=Functional.relu.0.forward" % what for what in ("path", "node", "flow"))]


def ask(url):
    """The status of an answer, whatever it is."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code


def serve_once(argv, n):
    """The answers of one server whose n-th allocation fails; None when it said why it does not begin."""
    env = {**os.environ, "MSPROBE_FAIL_ALLOC": str(n)}
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        root = re.search(r"http://[^/ ]+/", child.stdout.readline())
        if root is None:
            said = child.communicate(timeout=20)[1].strip()
            return None if child.returncode == 3 and said else ["ended with %d: %s" % (child.returncode, said)]
        try:
            answers = [ask(root.group() + a) for a in ASKED]
            return answers + (["ended with %d" % child.returncode] if child.poll() is not None else [])
        except OSError as e:
            return [str(e)]
        finally:
            child.send_signal(signal.SIGTERM)


def end_memory_of_server(top):
    argv = [MSPROBE, "serve", "--port", "0", top + "/dumps/faulty", "--golden", top + "/dumps/clean"]
    clean = serve_once(argv, 0)
    problems = [] if clean == [200] * len(ASKED) else ["with memory: %s" % clean]
    answers = {n: serve_once(argv, n) for n in sorted({int(1.25 ** i) for i in range(48)})}
    began = [a for a in answers.values() if a is not None]
    problems += ["allocation %d fails: %s" % (n, a) for n, a in answers.items()
                 if a is not None and any(status not in (200, 500, 503) for status in a)]
    problems += [] if any(status != 200 for a in began for status in a) else ["no answer felt it"]
    ok("serve: memory that ends costs an answer, not the server", problems)


def kill(top, name, arguments):
    """Killed at random moments: files under their own names are whole; the next run succeeds."""
    problems, rng = [], random.Random(name)
    with Place(top) as p:
        before = time.monotonic()
        run(p.argv(arguments)).check_returncode()
        lasts = time.monotonic() - before
    for _ in range(8):
        with Place(top) as p:
            argv = p.argv(arguments)
            with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
                time.sleep(rng.random() * lasts)
                child.send_signal(signal.SIGKILL)
            problems += left_behind(p.out, False)
            if run(argv).returncode != 0:
                problems.append("after it was killed it does not run again")
    ok("%s: killed at any moment it leaves whole files" % name, problems)


def may_preload():
    """A sanitizer must come first in a process, and the broken disk would."""
    with open(MSPROBE, "rb") as f:
        return os.path.exists(SHIM) and b"__asan_init" not in f.read()


def main():
    if not may_preload():
        print("skip disks that break: a sanitizer must come first in a process")
    with tempfile.TemporaryDirectory(prefix="msprobe-faults-") as top:
        make_inputs(top)
        for name, arguments in commands(top):
            if ONLY not in name:
                continue
            if may_preload():
                break_disk(top, name, arguments)
            end_memory(top, name, arguments)
            kill(top, name, arguments)
        for name, arguments in readers(top):
            if ONLY in name:
                end_memory(top, name, arguments)
        if ONLY in "serve":
            end_memory_of_server(top)
    return 1 if failed else 0


sys.exit(main())
