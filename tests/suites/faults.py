#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every command that writes, with a disk that breaks at the n-th call, that is full or may not be
written to, with memory that ends, and ended at some moment: it says so in words and ends with status
3, or it had no need of what broke.  What it leaves behind is whole, and no temporary file stays after
an error or an interrupt.  On a disk like another machine's everything is as on one's own.  The same
for the libraries that dump and record, whose program goes on.  Commands that only read, and the
server, have their memory ended as well.

    tests/suites/faults.py BUILD [WORD]    only what has the word in its name
"""
import collections, contextlib, errno, glob, json, os, pickletools, random, re, shutil, signal, sqlite3, subprocess, sys, tempfile, threading, time, zipfile
import urllib.error, urllib.request

BUILD = os.path.abspath(sys.argv[1])
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""
MSPROBE = os.path.join(BUILD, "msprobe")
SHIM = os.path.join(BUILD, "tests/programs/broken_disk.so")
KINDS = {"write": errno.ENOSPC, "sync": errno.EIO, "rename": errno.EACCES, "truncate": errno.ENOSPC}
# What a program that shows its trouble on the screen, or goes on, says of it.
REASONS = [os.strerror(n) for n in (*KINDS.values(), errno.EROFS)] + ["disk I/O error", "disk is full", "may not be written"]
failed = 0

# What is run: its name, the words of its command line, in which OUT is a fresh folder, the status
# it ends with when its disk breaks, and the keys of the viewer, which are written to OUT/keys.
Work = collections.namedtuple("Work", "name words status keys", defaults=[3, None])


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
    run([sys.executable, "tests/gen/capture.py", top + "/calls"]).check_returncode()
    run([MSPROBE, "import", top + "/calls"]).check_returncode()
    run([MSPROBE, "compare", "-tp", top + "/dumps/faulty", "-gp", top + "/dumps/clean", "-o", top + "/tables"]).check_returncode()
    os.makedirs(top + "/ranks")
    for rank in range(2):
        for table in glob.glob(top + "/tables/*.csv"):
            shutil.copy(table, "%s/ranks/compare_result_rank%d_20260101000000.csv" % (top, rank))
    with open(top + "/merge.yaml", "w") as f:
        f.write("api: [Functional.relu.0.forward]\ncompare_index: [MaxAbsErr]\n")
    with open(top + "/keys", "w") as f:
        f.write("jjj<Enter>t<Space>n?<Esc>r:goto nothing<Enter>q")
    run([MSPROBE, "graph_visualize", "-tp", top + "/dumps/faulty/step0", "-gp", top + "/dumps/clean/step0",
         "-o", top + "/graph"]).check_returncode()
    shutil.copy("tests/data/fuzz/graph_old/compare", top + "/old.vis")
    os.makedirs(top + "/monitor/Aug14_10-21-07-rank0-1a2b3c4d")
    with open(top + "/monitor/Aug14_10-21-07-rank0-1a2b3c4d/grad_reduced_0-1.csv", "w") as f:
        f.write("vpp_stage,name,step,norm\n0,w,0,1.5\n0,w,1,2.5\n")


def commands(top):
    """A capture is copied to OUT/run, since import writes into it."""
    target, golden = top + "/dumps/faulty", top + "/dumps/clean"
    pair = ["-tp", target, "-gp", golden]
    yield Work("compare csv", ["compare", *pair, "-o", "OUT/c"])
    yield Work("compare xlsx", ["compare", *pair, "-o", "OUT/c", "--xlsx"])
    yield Work("compare aligned", ["compare", *pair, "-o", "OUT/c", "--ext", "--align", "always", "--write_mapping"])
    yield Work("compare as msprobe 1", ["compare", *pair, "-o", "OUT/c", "--compat", "old"])
    yield Work("compare highlighted", ["compare", *pair, "-o", "OUT/c", "--compat", "old", "--highlight"])
    yield Work("compare -da", ["compare", *pair, "-o", "OUT/c", "-da"])
    yield Work("graph_visualize", ["graph_visualize", *pair, "-o", "OUT/g"])
    yield Work("graph_visualize old file", ["graph_visualize", "-tp", top + "/old.vis", "-o", "OUT/g"])
    yield Work("graph_visualize json", ["graph_visualize", "-tp", target, "-o", "OUT/g", "--file_type", "json"])
    yield Work("merge_result", ["merge_result", "-i", top + "/ranks", "-o", "OUT/m", "-config", top + "/merge.yaml"])
    yield Work("calibrate", ["calibrate", golden, target, "-o", "OUT/e/noise.json"])
    yield Work("cluster", ["cluster", "-m", "mstx_sum", "-d", top + "/run", "-o", "OUT/cl"])
    yield Work("cluster text", ["cluster", "-m", "mstx_sum", "-d", top + "/run", "-o", "OUT/cl", "--export_type", "text"])
    yield Work("overflow_check", ["overflow_check", "-i", target + "/step0", "-o", "OUT/o"])
    yield Work("parse npy", ["parse", "-d", target, "-t", "npy", "-o", "OUT/p"])
    yield Work("parse pt", ["parse", "-d", target, "-t", "pt", "-o", "OUT/p"])
    yield Work("data2db", ["data2db", "--data", target, "--db", "OUT/db"])
    yield Work("data2db monitor", ["data2db", "--data", top + "/monitor", "--db", "OUT/db"])
    yield Work("import", ["import", "OUT/run"])
    for form in "chrome", "trace-view", "perfetto", "csv", "ascend-db":
        yield Work("export " + form, ["export", top + "/run", "--format", form, "-o", "OUT/e/x." + form])
    yield Work("export flight-recorder", ["export", top + "/calls", "--format", "flight-recorder", "-o", "OUT/e/fr"])
    archives, weights = [os.path.abspath("tests/data/fuzz/config_zip/a%d.zip" % n) for n in (0, 1)], os.path.abspath("tests/data/fuzz/ckpt/a.safetensors")
    yield Work("import folded", ["import", "OUT/run", "--fold"])
    yield Work("reproduce", ["reproduce", target, "-g", golden, "-o", "OUT/rep"])
    yield Work("monitor tensorboard", ["monitor", top + "/monitor", "--csv2tb", "OUT/tb"])
    yield Work("monitor database", ["monitor", top + "/monitor", "--csv2db", "OUT/mdb"])
    yield Work("config_check archives", ["config_check", "-c", *archives, "-o", "OUT/cc"])
    yield Work("config_check checkpoints", ["config_check", "-c", weights, weights, "-o", "OUT/e/similar.json"])
    yield Work("config_check pack", ["config_check", "-d", os.path.abspath("tests/data/fuzz/hyper/a.yaml"), "-o", "OUT/e/pack.zip"])
    yield Work("stat --trace_self", ["stat", target, "--trace_self", "OUT/e/phases.json"])


def viewers():
    """The graph is copied to OUT/pair.vis.db, since a match changes it."""
    view = ["view", "--script", "OUT/keys", "--size", "250x24", "OUT/pair.vis.db"]
    yield Work("view :save-screen", view, 0, "2E:save-screen OUT/e/screen.txt<Enter>")
    yield Work("view :save-matches", view, 0, "2:save-matches<Enter>")
    yield Work("view unmatch", view, 0, "2E/relu<Enter>M")


def libraries():
    """Programs that dump and record: what breaks is told, and they do what they are there for."""
    yield Work("the dumper", [BUILD + "/samples/two_dumps", "OUT/d"], 1)
    yield Work("the recorder", [MSPROBE, "run", "-o", "OUT/new", "--", BUILD + "/samples/mstx_c"], 0)
    snapshot = [MSPROBE, "ctl", "OUT/new", "snapshot"]
    yield Work("ctl snapshot", [MSPROBE, "run", "-o", "OUT/new", "--flight", "5", "--", BUILD + "/tests/programs/app", "marks-then", "20000", *snapshot])


def readers(top):
    """What writes no file."""
    target, golden = top + "/dumps/faulty", top + "/dumps/clean"
    yield Work("stat", ["stat", target])
    yield Work("stat json", ["stat", "--format", "json", target])
    yield Work("check", ["check", target])
    yield Work("check json", ["check", target, "--format", "json"])
    yield Work("calibrate json", ["calibrate", target, golden, "--format", "json"])
    yield Work("compare json", ["compare", "-tp", target, "-gp", golden, "-o", "OUT/c", "--format", "json"])
    yield Work("compare explain", ["compare", "-tp", target, "-gp", golden, "-o", "OUT/c", "--explain", "linear"])
    yield Work("judge", ["judge", target, golden])
    yield Work("judge json", ["judge", target, golden, "--format", "json"])
    yield Work("memory", ["memory", os.path.abspath("tests/data/fuzz/memory/snapshot2")])
    yield Work("memory json", ["memory", os.path.abspath("tests/data/fuzz/memory/trace"), "--format", "json"])
    yield Work("trend", ["trend", top + "/monitor"])
    yield Work("whatif json", ["whatif", top + "/calls", "--format", "json"])
    yield Work("quantise json", ["quantise", target, "--as", "fp8", "--format", "json"])
    yield Work("check --resume", ["check", "--resume", *[os.path.abspath("tests/data/fuzz/ckpt/a.safetensors")] * 2])
    yield Work("report", ["report", top + "/run"])
    yield Work("report json", ["report", "--format", "json", top + "/run"])
    yield Work("sql", ["sql", top + "/run", "SELECT name, count(*) FROM events GROUP BY name"])
    yield Work("ctl", ["ctl", top + "/run", "status"])
    yield Work("view a run", ["view", "--script", top + "/keys", top + "/run"])
    yield Work("view two dumps", ["view", "--script", top + "/keys", target, "-gp", golden])


def broken_frames(data):
    """Perfetto's file is packets one behind the other: why the last one is not whole."""
    at = 0
    while at < len(data):
        if data[at] != 0x0A:
            return "byte %d begins no packet" % at
        length, shift, at = 0, 0, at + 1
        while at < len(data):
            length, shift, more, at = length | (data[at] & 0x7F) << shift, shift + 7, data[at] >> 7, at + 1
            if not more:
                break
        at += length
    return "" if at == len(data) else "ends inside a packet"


def broken_file(path):
    """Why this file is not whole; nothing when it is."""
    if os.path.getsize(path) == 0:
        return "is empty"
    try:
        if path.endswith((".db", ".ascend-db")):
            with contextlib.closing(sqlite3.connect("file:%s?mode=ro&immutable=1" % path, uri=True)) as db:
                said = db.execute("PRAGMA integrity_check").fetchone()[0]
                return "" if said == "ok" else said
        if path.endswith((".json", ".chrome", ".trace-view")):
            with open(path) as f:
                json.load(f)
        elif path.endswith((".xlsx", ".pt", ".zip")):
            with zipfile.ZipFile(path) as z:
                return z.testzip() or ""
        elif path.endswith((".csv", ".txt", ".yaml", ".py")):
            with open(path) as f:
                return "" if f.read().endswith("\n") else "ends inside a line"
        elif path.endswith(".perfetto"):
            with open(path, "rb") as f:
                return broken_frames(f.read())
        elif "/nccl_trace_rank_" in path:
            with open(path, "rb") as f:
                collections.deque(pickletools.genops(f), maxlen=0)
                return "goes on behind its end" if f.read(1) else ""
    except Exception as e:
        return "%s: %s" % (type(e).__name__, e)
    return ""


def files_of(out):
    """Path and name of every file, but for captures, which nothing but the recorder writes."""
    for path in glob.glob(out + "/**/*", recursive=True):
        name = os.path.relpath(path, out)
        if os.path.isfile(path) and (not name.startswith(("run/", "new/")) or name.endswith(".db")):
            yield path, name


def left_behind(out, temporary_too):
    """What must not lie there: temporary files after an error, and files that are not whole."""
    problems = []
    for path, name in files_of(out):
        temporary = ".tmp" in name or name.endswith(("-journal", "-wal", "-shm")) or name.startswith("tmp/")
        if temporary:
            problems += ["left " + name] if temporary_too else []
        elif broken_file(path):
            problems.append("%s %s" % (name, broken_file(path)))
    return problems


class Place:
    """A fresh folder for one run of a work."""

    def __init__(self, top):
        self.top, self.out = top, tempfile.mkdtemp(prefix="out", dir=top)

    def argv(self, work):
        os.makedirs(self.out + "/tmp")
        os.makedirs(self.out + "/e")
        if "OUT/run" in work.words:
            shutil.copytree(self.top + "/run", self.out + "/run", ignore=shutil.ignore_patterns("run.db"))
        if "OUT/pair.vis.db" in work.words:
            shutil.copy(glob.glob(self.top + "/graph/*.vis.db")[0], self.out + "/pair.vis.db")
        if work.keys is not None:
            with open(self.out + "/keys", "w") as f:
                f.write(work.keys.replace("OUT", self.out))
        words = [w.replace("OUT", self.out) for w in work.words]
        return words if os.path.isabs(words[0]) else [MSPROBE, *words]

    def run(self, argv, **env):
        return run(argv, TMPDIR=self.out + "/tmp", **env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.out, ignore_errors=True)


class Disk(Place):
    """The same on a small disk of its own."""

    def __enter__(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", self.out], check=True, stderr=subprocess.DEVNULL)
        with open(self.out + "/page", "w") as f:
            f.write("a disk of size 0 would have no end")
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.out], check=True)
        super().__exit__()

    def used(self):
        is_of = os.statvfs(self.out)
        return (is_of.f_blocks - is_of.f_bfree) * is_of.f_frsize

    def make(self, options):
        subprocess.run(["mount", "-o", "remount," + options, self.out], check=True)


def chosen(total):
    """Which of so many calls are made to fail: the first, the last, and some between."""
    return sorted({n for n in [0, 1, 2, total // 4, total // 2, 3 * total // 4, total - 2, total - 1] if 0 <= n < total})


def unread(out):
    """What the recorder leaves is read, however little it is, unless it had room for nothing at all."""
    problems = []
    for taken in [out + "/new", *glob.glob(out + "/new/snapshots/*")]:
        if glob.glob(taken + "/*/*/*.seg"):
            done = run([MSPROBE, "import", taken, "-o", out + "/new.db"])
            if done.returncode and "they are empty" not in done.stderr:
                problems.append("what was recorded is not read: " + done.stderr[:200])
    return problems


def noticed(done, work):
    """A status says so, or what is printed where the program goes on."""
    return done.returncode == work.status and (work.keys is None or any(r in done.stdout for r in REASONS))


def not_taken_back(out):
    """What is changed in place has a journal beside it until the change is done: a disk that breaks for
    good, or a signal, leaves it.  The next one to open the file takes back what was begun; a journal of
    nothing stays until the next change."""
    graph = out + "/pair.vis.db"
    if not os.path.exists(graph + "-journal"):
        return []
    with open(out + "/none", "w"):
        done = run([MSPROBE, "view", "--script", out + "/none", graph])
    with contextlib.closing(sqlite3.connect(graph)) as db:
        db.execute("PRAGMA user_version = %d" % db.execute("PRAGMA user_version").fetchone())
    os.remove(out + "/none")
    return ["the graph is not opened again: " + done.stderr] if done.returncode else []


def judge(done, work, out, what):
    if done.returncode not in (0, work.status):
        return ["%s: status %d: %s" % (what, done.returncode, done.stderr[:200])]
    if done.returncode and not done.stderr.strip():
        return [what + ": failed without a word"]
    if re.search(r"\.[0-9a-f]{32}\.tmp", done.stderr):
        return ["%s: names a temporary file: %s" % (what, done.stderr[:200])]
    return ["%s: %s" % (what, p) for p in not_taken_back(out) + left_behind(out, True)]


def cut_off(done, work, what):
    """JSON on standard output is whole where the status says that all is well."""
    if done.returncode or "json" not in work.words or "--format" not in work.words:
        return []
    try:
        json.loads(done.stdout)
    except ValueError as e:
        return ["%s: status 0, but %s" % (what, e)]
    return []


def break_disk(top, work):
    """Each kind of call, at chosen moments."""
    problems, broken = [], 0
    for kind, number in KINDS.items():
        with Place(top) as p:
            argv = p.argv(work)
            p.run(argv, LD_PRELOAD=SHIM, BROKEN_KIND=kind, BROKEN_COUNT=p.out + "/tmp/count")
            with open(p.out + "/tmp/count") as f:
                total = sum(int(line) for line in f)
        for n in chosen(total):
            with Place(top) as p:
                done = p.run(p.argv(work), LD_PRELOAD=SHIM, BROKEN_KIND=kind, BROKEN_AFTER=str(n), BROKEN_ERRNO=str(number))
                broken += done.returncode == work.status
                what = "%s %d of %d fails" % (kind, n + 1, total)
                problems += judge(done, work, p.out, what) + unread(p.out)
                if kind in ("write", "rename") and n == 0 and not noticed(done, work):
                    problems.append(what + ": nobody noticed")
    ok("%s: a disk that breaks is told, and what stays is whole" % work.name, problems or ([] if broken else ["no call failed"]))


def fill_disk(top, work):
    """A disk that holds nothing more, or only a part of what is to come."""
    problems = []
    with Disk(top) as p:
        argv = p.argv(work)
        before = p.used()
        p.run(argv).check_returncode()
        needs = p.used() - before
    for quarters in range(4):
        with Disk(top) as p:
            argv = p.argv(work)
            p.make("size=%d" % (p.used() + needs * quarters // 4))
            done = p.run(argv)
            what = "%d quarters of the room" % quarters
            if work.status and done.returncode == 0 and "No space left" in done.stderr:
                problems.append(what + ": status 0 beside " + done.stderr[:200])
            problems += judge(done, work, p.out, what)
            if quarters == 0 and not noticed(done, work):
                problems.append(what + ": nobody noticed")
            p.make("size=64m")
            problems += unread(p.out)
    ok("%s: a full disk is told, and what stays is whole" % work.name, problems)


def forbid_writing(top, work):
    with Disk(top) as p:
        argv = p.argv(work)
        p.make("ro")
        done = p.run(argv)
        problems = left_behind(p.out, True)
        if not (noticed(done, work) if work.keys else done.returncode in (1, 3) and "Read-only file system" in done.stderr):
            problems.append("status %d: %s%s" % (done.returncode, done.stdout[-700:] if work.keys else "", done.stderr[:200]))
    ok("%s: a disk that may only be read is told" % work.name, problems)


def made_of(out):
    """Names without their times, and sizes where every run makes the same bytes."""
    return sorted((re.sub(r"\d{6,}", "N", name), 0 if name.endswith(("db", ".xlsx", "phases.json", "pack.zip")) else os.path.getsize(path))
                  for path, name in files_of(out))


def move_far(top, work):
    """On a slow disk of another machine, which can less, the same is made."""
    with Place(top) as here, Place(top) as far:
        here.run(here.argv(work)).check_returncode()
        done = far.run(far.argv(work), LD_PRELOAD=SHIM, BROKEN_KIND="network")
        problems = ["status %d: %s" % (done.returncode, done.stderr[:200])] if done.returncode else left_behind(far.out, True)
        if made_of(here.out) != made_of(far.out):
            problems.append("%s became %s" % (made_of(here.out), made_of(far.out)))
        problems += unread(far.out)
    ok("%s: on a disk like another machine's all is the same" % work.name, problems)


def is_sanitized():
    with open(MSPROBE, "rb") as f:
        return b"__asan_init" in f.read()


def allocations():
    """Numbers of those that fail. A sanitized program takes five times as long, so it fails at every third."""
    every = sorted({*range(1, 60), *(int(60 * 1.15 ** i) for i in range(40))})
    return every[::3] if is_sanitized() else every


def end_memory(top, work):
    problems, broken = [], 0
    for n in allocations():
        with Place(top) as p:
            done = p.run(p.argv(work), MSPROBE_FAIL_ALLOC=str(n))
            broken += done.returncode == work.status
            what = "allocation %d fails" % n
            problems += judge(done, work, p.out, what) + cut_off(done, work, what)
    ok("%s: memory that ends is told, and what stays is whole" % work.name, problems or ([] if broken else ["no allocation failed"]))


ASKED = ["", "metrics", "api/about", "api/facts", "api/findings", "api/table", "api/children", "api/search?q=relu", "api/first",
         *("api/%s?name=Functional.relu.0.forward" % what for what in ("path", "node", "flow"))]


def ask(url, token):
    """The status of an answer, whatever it is."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"X-Msprobe-Token": token}), timeout=20) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code


def serve_once(argv, n):
    """The answers of one server whose n-th allocation fails; None when it said why it does not begin."""
    env = {**os.environ, "MSPROBE_FAIL_ALLOC": str(n)}
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        printed = re.search(r"(http://[^/ ]+/)#token=(\w+)", child.stdout.readline())
        if printed is None:
            said = child.communicate(timeout=20)[1].strip()
            return None if child.returncode == 3 and said else ["ended with %d: %s" % (child.returncode, said)]
        try:
            root, token = printed.groups()
            answers = [ask(root + a, token) for a in ASKED]
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


class Editor:
    """A server of the graph in a place, of which a pair is taken apart through the page's own request."""

    def __init__(self, place, **env):
        argv = place.argv(Work("edit", ["serve", "--port", "0", "OUT/pair.vis.db"]))
        self.child = subprocess.Popen(argv, env={**os.environ, **env, "TMPDIR": place.out + "/tmp"}, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)
        self.root, self.token = re.match(r"(http://[^/]+/)#token=(\w+)", self.child.stdout.readline()).groups()

    def edit(self):
        """Status and text of the answer; none of a server that has ended."""
        try:
            for what in "unmatch?target=Functional.relu.0.forward", "write?over=1":
                query = urllib.request.Request(self.root + "api/" + what, method="POST", headers={"X-Msprobe-Token": self.token})
                with urllib.request.urlopen(query, timeout=20) as answer:
                    status, text = answer.status, answer.read().decode()
            return status, text
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError:
            return 0, ""

    def end(self, how=signal.SIGTERM):
        self.child.send_signal(how)
        self.child.communicate()


def edited(path):
    """Whether the pair is apart, as the next one sees it, who may have to take back what was begun; None: damaged."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        if db.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            return None
        links = db.execute("SELECT matched_node_link FROM tb_nodes WHERE data_source = 'NPU' AND node_name = 'Functional.relu.0.forward'")
        return links.fetchone()[0] in (None, "", "[]")


def edit_once(place, what, **env):
    """A change that fails is told and changes nothing, and nothing is left of it; a change that succeeds is there."""
    editor = Editor(place, **env)
    status, text = editor.edit()
    editor.end()
    problems = ["%s: %s" % (what, p) for p in not_taken_back(place.out) + left_behind(place.out, True) if p != "left tmp/count"]
    if status not in (200, 500, 503) or status != 200 and not any(r in text for r in REASONS):
        problems.append("%s: %d %s" % (what, status, text[:200]))
    if edited(place.out + "/pair.vis.db") != (status == 200):
        problems.append("%s: answered %d, but the pair is not as it says" % (what, status))
    return status, problems


def break_edits(top):
    problems, failures = [], 0
    for kind, number in KINDS.items():
        with Place(top) as p:
            status, wrong = edit_once(p, kind, LD_PRELOAD=SHIM, BROKEN_KIND=kind, BROKEN_COUNT=p.out + "/tmp/count")
            problems += wrong
            with open(p.out + "/tmp/count") as f:
                total = sum(int(line) for line in f)
        for n in chosen(total):
            with Place(top) as p:
                status, wrong = edit_once(p, "%s %d of %d fails" % (kind, n + 1, total), LD_PRELOAD=SHIM, BROKEN_KIND=kind,
                                          BROKEN_AFTER=str(n), BROKEN_ERRNO=str(number))
                problems += wrong
                failures += status != 200
    ok("serve: an edit that the disk breaks is told and not done", problems or ([] if failures else ["no call failed"]))


def fill_edits(top):
    problems = []
    for options in "size=%d", "ro":
        with Disk(top) as p:
            editor = Editor(p)
            p.make(options % p.used() if "%" in options else options)
            status, text = editor.edit()
            editor.end()
            p.make("rw,size=64m")
            if status == 200 or not any(r in text for r in REASONS) or edited(p.out + "/pair.vis.db") is not False:
                problems.append("%s: %d %s" % (options, status, text[:200]))
    ok("serve: an edit on a disk that is full or may only be read is told and not done", problems)


def edit_lasts(top):
    with Place(top) as p:
        editor, before = Editor(p), time.monotonic()
        editor.edit()
        lasts = time.monotonic() - before
        editor.end()
    return lasts


def kill_edits(top):
    """The server ends at some moment of an edit: it is done or not done, and the file is whole."""
    problems, rng, lasts = [], random.Random("edit"), edit_lasts(top)
    for _ in range(12):
        with Place(top) as p:
            editor = Editor(p)
            timer = threading.Timer(rng.random() * lasts, editor.end, [signal.SIGKILL])
            timer.start()
            status, _ = editor.edit()
            timer.join()
            problems += not_taken_back(p.out)
            apart = edited(p.out + "/pair.vis.db")
            if apart is None or status == 200 and not apart:
                problems.append("answered %d, but %s" % (status, "damaged" if apart is None else "not done"))
    ok("serve: killed during an edit it leaves a whole file", problems)


def end_early(top, work, how, times, temporary_too):
    """Ended at random moments: files under their own names are whole; the next run succeeds."""
    problems, rng = [], random.Random(work.name)
    with Place(top) as p:
        argv = p.argv(work)
        before = time.monotonic()
        p.run(argv).check_returncode()
        lasts = time.monotonic() - before
    for _ in range(times):
        with Place(top) as p:
            argv = p.argv(work)
            # What started us may have made us ignore an interrupt, and so our children.
            with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": p.out + "/tmp"},
                                  preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as child:
                time.sleep(rng.random() * lasts)
                child.send_signal(how)
            problems += not_taken_back(p.out) + left_behind(p.out, temporary_too) + unread(p.out)
            if child.returncode not in (0, -how):
                problems.append("ended with status %d" % child.returncode)
            if p.run(argv).returncode != 0:
                problems.append("after it was ended it does not run again")
    return problems


def kill(top, work):
    ok("%s: killed at any moment it leaves whole files" % work.name, end_early(top, work, signal.SIGKILL, 8, False))


def interrupt(top, work):
    problems = [p for how in (signal.SIGINT, signal.SIGTERM) for p in end_early(top, work, how, 4, True)]
    ok("%s: interrupted at any moment it leaves nothing half-written" % work.name, problems)


def may_preload():
    """A sanitizer must come first in a process, and the broken disk would."""
    return os.path.exists(SHIM) and not is_sanitized()


def may_mount(top):
    try:
        with Disk(top):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def faults_of(top):
    """What can be done to a disk here."""
    if may_preload():
        yield from (break_disk, move_far)
    else:
        print("skip disks that break: a sanitizer must come first in a process")
    if may_mount(top):
        yield from (fill_disk, forbid_writing)
    else:
        print("skip disks that are full: nothing may be mounted here")


def main():
    with tempfile.TemporaryDirectory(prefix="msprobe-faults-") as top:
        make_inputs(top)
        on_disk = list(faults_of(top))
        for works, faults in ((commands(top), [*on_disk, end_memory, kill, interrupt]),
                              (viewers(), [*on_disk, kill, interrupt]),
                              (libraries(), [*on_disk, kill]),
                              (readers(top), [end_memory])):
            for work in works:
                for fault in faults if ONLY in work.name else ():
                    fault(top, work)
        if ONLY in "serve":
            end_memory_of_server(top)
            edits = {break_edits: break_disk in on_disk, fill_edits: fill_disk in on_disk, kill_edits: True}
            for fault in (f for f, may in edits.items() if may):
                fault(top)
    return 1 if failed else 0


sys.exit(main())
