# SPDX-License-Identifier: MIT
"""Databases that somebody made to do harm: each is opened by the viewers and asked in every way.

    strangers.py MSPROBE FOLDER     a folder of tests/web/page/make_inputs.py
"""
import glob
import hashlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

MSPROBE, TOP = sys.argv[1:]
SECONDS = 20  # far more than any of it takes: what is looked for is what never ends
MAGIC = bytes([0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7])
failed = False


def check(name, problems):
    global failed
    failed |= bool(problems)
    print(f"not ok {name}: {str(problems)[:400]}" if problems else f"ok {name}", flush=True)


# ---- what is opened, and how ------------------------------------------------------------

def make_graph():
    out = f"{TOP}/made"
    subprocess.run([MSPROBE, "graph_visualize", "-tp", f"{TOP}/t", "-gp", f"{TOP}/g", "-o", out], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return glob.glob(out + "/*.vis.db")[0]


def make_run():
    subprocess.run([MSPROBE, "report", f"{TOP}/run.json"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for place in [f"{TOP}/run.json.run.db", f"{TOP}/run.db", *glob.glob(f"{TOP}/*.db")]:
        if os.path.exists(place):
            return place
    sys.exit("not ok a run is made")


def snapshot(folder):
    return {name: hashlib.sha256(open(os.path.join(folder, name), "rb").read()).hexdigest() for name in sorted(os.listdir(folder))}


def command(argv):
    """What is wrong with how a command ended."""
    try:
        done = subprocess.run([MSPROBE, *argv], capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return [f"{argv[0]} does not end"]
    return [] if done.returncode in (0, 1, 2, 3) else [f"{argv[0]} ended with {done.returncode}: {done.stderr[-200:]}"]


def no_json(constant):
    raise OSError(f"{constant} is no JSON: a browser cannot read it")


def ask(root, token, path, post):
    query = urllib.request.Request(root + "api/" + path, method="POST" if post else "GET", headers={"X-Msprobe-Token": token})
    try:
        with urllib.request.urlopen(query, timeout=SECONDS) as answer:
            body = answer.read()
            if answer.headers["Content-Type"] == "application/json":
                return json.loads(body, parse_constant=no_json)
    except urllib.error.HTTPError as e:
        e.read()
    return None


QUESTIONS = ["about", "facts", "findings", "children", "search?q=o", "search?q=state:E", "next?state=error&from=-1", "matrix?name=NAME",
             "node?name=NAME", "path?name=NAME", "strip", "first", "flow?name=NAME", "table", "histogram?metric=Max%20diff", "steps", "lanes", "cluster",
             "slices?from=0&to=1000000000&tracks=0", "find?q=o", "sql?graph=1&q=SELECT%20*%20FROM%20tb_nodes"]
CHANGES = ["unmatch?target=NAME", "match?target=NAME&partner=NAME", "unmatch?target=MODULE&below=1", "match?target=MODULE&partner=MODULE&below=1", "undo"]
NAME, MODULE = "Functional.softmax.3.forward", "DefaultModel"


def serve(path, changes):
    child = subprocess.Popen([MSPROBE, "serve", "--port", "0", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    problems = []
    try:
        found = re.match(r"(http://[^/]+/)#token=(\w+)", child.stdout.readline())
        if found is None:
            return [] if child.wait(SECONDS) == 3 else [f"serve ended with {child.returncode}"]
        for post, list_ in ((False, QUESTIONS), (True, CHANGES if changes else [])):
            for q in list_:
                try:
                    ask(*found.groups(), q.replace("NAME", NAME).replace("MODULE", MODULE), post)
                except (OSError, urllib.error.URLError) as e:
                    problems.append(f"{q}: {e}")
        if child.poll() is not None:
            problems.append(f"the server ended with {child.returncode}")
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            problems.append("the server does not end")
            child.kill()
    return problems


KEYS = "2E/o<Enter>nnNN<Tab>jjjkmM4<Tab><Tab>3++jjj1jj2EGgsss:sql SELECT * FROM tb_nodes<Enter>qq"


def open_all(path, changes=True):
    """Whatever is wrong with how the database is opened; and its folder must stay as it is."""
    folder = os.path.dirname(path)
    before = snapshot(folder)
    with open(f"{TOP}/keys", "w", encoding="utf-8") as f:
        f.write(KEYS)
    problems = command(["view", "--script", f"{TOP}/keys", path]) + serve(path, changes) + command(["report", path])
    problems += command(["sql", "--box", "10", path, "SELECT * FROM sqlite_master"])
    after = snapshot(folder)
    return problems + ([] if after == before else [f"the folder changed: {sorted(set(before.items()) ^ set(after.items()))}"])


class Place:
    """A folder of its own with a copy of a database, and a bait."""

    def __init__(self, source):
        self.folder = f"{TOP}/place"
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder)
        self.path = f"{self.folder}/{os.path.basename(source)}"
        shutil.copy(source, self.path)
        self.bait = f"{self.folder}/thesis.txt"
        with open(self.bait, "w", encoding="utf-8") as f:
            f.write("precious")

    def change(self, *statements):
        with sqlite3.connect(self.path) as db:
            db.execute("PRAGMA writable_schema = ON")
            for s in statements:
                db.execute(*s) if isinstance(s, tuple) else db.execute(s)
        db.close()


# ---- beside the database ------------------------------------------------------------------

def leave_journal(place, name):
    """As a writer does that is killed in the middle of a change of several databases."""
    code = ("import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None); db.execute('PRAGMA cache_size = 2');"
            "db.execute('BEGIN'); t = db.execute(\"SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1\").fetchone()[0];"
            "db.execute('CREATE TABLE filler AS WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM x LIMIT 3000)"
            " SELECT a, hex(randomblob(500)) b FROM x'); os._exit(0)")
    subprocess.run([sys.executable, "-c", code, place.path], check=True)
    journal = place.path + "-journal"
    raw = name.encode()
    with open(journal, "ab") as f:
        f.write(struct.pack(">I", 1) + raw + struct.pack(">II", len(raw), sum(raw) & 0xFFFFFFFF) + MAGIC)


def beside(what, source):
    place = Place(source)
    leave_journal(place, place.bait)
    check(f"{what}: a journal that names another file deletes nothing", open_all(place.path))
    place = Place(source)
    code = ("import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('PRAGMA journal_mode = WAL');"
            "db.execute('CREATE TABLE filler(x)'); db.commit(); os._exit(0)")
    subprocess.run([sys.executable, "-c", code, place.path], check=True)
    check(f"{what}: a WAL that was left behind stays", open_all(place.path))
    for end in "-journal", "-wal", "-shm":
        place = Place(source)
        os.symlink("/dev/zero", place.path + end)
        problems = command(["report", place.path]) + command(["sql", "--box", "1", place.path, "SELECT 1"])
        check(f"{what}: a link to a device as {end} holds nothing up", problems)


# ---- in the database ------------------------------------------------------------------------

WILD = [None, "", "x" * 1000000, b"\x00\xff" * 50, -1, 0, 2 ** 63 - 1, -2 ** 63, 1e308, float("inf"), "[" * 3000, '{"a":' * 600, "[1, 2", "%s%n", "\x1b[31m"]


def wild_values(what, source, rounds):
    """Any column holds anything: rows of every table, a few columns at a time."""
    rng, problems = random.Random(what), []
    with sqlite3.connect(source) as db:
        tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        columns = [(t, c[1]) for t in tables for c in db.execute(f"PRAGMA table_info({t})")]
    for n in range(rounds):
        place = Place(source)
        with sqlite3.connect(place.path) as db:
            for t, c in rng.sample(columns, 3):
                try:
                    db.execute(f"UPDATE OR IGNORE {t} SET {c} = ? WHERE rowid % ? = 0", (rng.choice(WILD), rng.choice([1, 2, 7])))
                except sqlite3.Error:
                    pass
        db.close()
        problems += [f"round {n}: {p}" for p in open_all(place.path)]
    check(f"{what}: {rounds} databases with wild values are read, in part, or refused", problems)


def damaged_pages(what, source, rounds):
    rng, problems = random.Random(what), []
    for n in range(rounds):
        place = Place(source)
        with open(place.path, "r+b") as f:
            size = f.seek(0, 2)
            for _ in range(rng.choice([1, 20, 300])):
                f.seek(rng.randrange(16, size))
                f.write(bytes([rng.randrange(256)]))
            if n % 4 == 3:
                f.truncate(rng.randrange(100, size))
        problems += [f"round {n}: {p}" for p in open_all(place.path)]
    check(f"{what}: {rounds} damaged databases are read, in part, or refused", problems)


def parents(source):
    for name, statements in {
            "a node in itself": ["UPDATE tb_nodes SET up_node = node_name"],
            "two nodes in each other": ["UPDATE tb_nodes SET up_node = 'DefaultModel' WHERE node_name LIKE 'Module%'",
                                        ("UPDATE tb_nodes SET up_node = ? WHERE node_name = 'DefaultModel'", (NAME,)),
                                        ("UPDATE tb_nodes SET up_node = 'DefaultModel' WHERE node_name = ?", (NAME,))],
            "children that are their parents": ["UPDATE tb_nodes SET sub_nodes = '[\"DefaultModel\"]'", "UPDATE tb_nodes SET up_node = 'DefaultModel'"]}.items():
        for tables in True, False:
            place = Place(source)
            place.change(*statements, *([] if tables else ["DELETE FROM x_meta"]))
            check(f"cycles: {name}{'' if tables else ', without our tables'}", open_all(place.path))


def infinities(source):
    """Numbers that JSON does not have."""
    place, problems = Place(source), []
    with sqlite3.connect(place.path) as db:
        for t, c in [(t, c[1]) for t in ("findings", "processes", "meta") for c in db.execute(f"PRAGMA table_info({t})")
                     if c[2] in ("REAL", "FLOAT", "DOUBLE")]:
            db.execute(f"UPDATE {t} SET {c} = 9e999")
            problems.append((t, c))
    db.close()
    check(f"infinities in {', '.join(f'{t}.{c}' for t, c in problems)} reach a browser", open_all(place.path) if problems else ["no such column"])


def dashed(source):
    """A name that looks like an option; statements are asked by another process, which must not take it for one."""
    place = Place(source)
    os.rename(place.path, f"{place.folder}/-v.vis.db")
    child = subprocess.Popen([MSPROBE, "serve", "--port", "0", "--", "-v.vis.db"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                             cwd=place.folder)
    found = re.match(r"(http://[^/]+/)#token=(\w+)", child.stdout.readline())
    got = ask(*found.groups(), "sql?graph=1&q=SELECT%207", False)
    child.send_signal(signal.SIGTERM)
    child.wait(5)
    check("a file whose name begins with a dash is asked", [] if got and got["rows"] == [[7]] else got)


def code_in_tables(source):
    """A generated column is a function that is called for whoever reads the table."""
    place = Place(source)
    with sqlite3.connect(place.path) as db:
        sql, = db.execute("SELECT sql FROM sqlite_master WHERE name = 'tb_nodes'").fetchone()
    slow = sql.replace("node_type TEXT", "node_type TEXT AS (" + "||".join(f"printf('%{10000000 + i}d', 1)" for i in range(40)) + ")")
    place.change(("UPDATE sqlite_master SET sql = ? WHERE name = 'tb_nodes'", (slow,)))
    check("a column that is computed is not read", (["the table is as it was"] if slow == sql else []) + open_all(place.path))


def multiply(path, table):
    """Makes a table of five pages of pages, each of which names the next one a hundred times, of the table's last leaf."""
    fan, levels = 100, 5
    with sqlite3.connect(path) as db:
        root, = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        size, = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with open(path, "r+b") as f:
        pages = bytearray(f.read())
        leaf = root
        while pages[(leaf - 1) * size] == 5:
            leaf, = struct.unpack_from(">I", pages, (leaf - 1) * size + 8)
        pages += pages[(leaf - 1) * size:leaf * size]
        child = len(pages) // size
        for level in range(levels):
            page = bytearray(size)
            struct.pack_into(">BHHHBI", page, 0, 5, 0, fan, size - 6 * fan, 0, child)
            for k in range(fan):
                struct.pack_into(">H", page, 12 + 2 * k, size - 6 * (k + 1))
                struct.pack_into(">IBB", page, size - 6 * (k + 1), child, 0x81, 0)
            if level == levels - 1:
                pages[(root - 1) * size:root * size] = page
            pages += page
            child = len(pages) // size
        struct.pack_into(">I", pages, 28, child)
        f.seek(0)
        f.write(pages)


def endless_trees(what, source):
    """Two pages that are the parents of one: what reads the table never ends."""
    with sqlite3.connect(source) as db:
        tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'")
                  if db.execute(f"SELECT count(*) FROM {r[0]}").fetchone()[0] > 0]
    db.close()
    for table in tables:
        place = Place(source)
        multiply(place.path, table)
        check(f"{what}: {table} whose pages multiply is refused", open_all(place.path))


def thousands_of_tables(source):
    place = Place(source)
    place.change("CREATE TABLE spare(a)", "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 50000) INSERT INTO sqlite_master "
                 "SELECT 'table', 't' || x, 't' || x, rootpage, 'CREATE TABLE t' || x || '(a)' FROM n, sqlite_master WHERE name = 'spare'")
    check("fifty thousand tables hold nothing up", open_all(place.path))


def schemas(source):
    endless = "WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM x) SELECT a FROM x"
    place = Place(source)
    with sqlite3.connect(place.path) as db:
        names = ", ".join(f"a AS {c[1]}" for c in db.execute("PRAGMA table_info(tb_nodes)"))
        db.execute("ALTER TABLE tb_nodes RENAME TO hidden")
        db.execute(f"CREATE VIEW tb_nodes AS SELECT {names} FROM ({endless})")
    db.close()
    check("a view in place of a table is not run", open_all(place.path))
    place = Place(source)
    place.change("CREATE TRIGGER t AFTER UPDATE ON tb_nodes BEGIN DELETE FROM tb_nodes; END")
    check("a trigger is not run", open_all(place.path))
    place = Place(source)
    place.change("CREATE TABLE wide(" + ", ".join(f"c{i}" for i in range(1900)) + ")")
    check("a table of 1900 columns is no harm", open_all(place.path))


# ---- folders that others can write ---------------------------------------------------------------

def report(path, tmp):
    done = subprocess.run([MSPROBE, "report", path], capture_output=True, text=True, timeout=SECONDS, env={**os.environ, "TMPDIR": tmp}, check=False)
    return done.returncode, done.stderr


def foreseen(trace):
    """Where no run.db fits beside a trace it lies under $TMPDIR, in a folder that somebody else may have made first."""
    place = Place(trace)
    tmp, bait, path = f"{place.folder}/tmp", f"{place.folder}/bait", f"{place.folder}/{'t' * 250}"
    os.mkdir(tmp)
    os.mkdir(bait)
    os.rename(place.path, path)
    problems = [] if report(path, tmp)[0] == 0 else ["it is not read"]
    made, = os.listdir(tmp)
    if os.stat(f"{tmp}/{made}").st_mode & 0o77:
        problems.append("others can look into it")
    shutil.rmtree(f"{tmp}/{made}")
    os.symlink(bait, f"{tmp}/{made}")
    status, said = report(path, tmp)
    if status != 3 or "not a directory of this user" not in said or os.listdir(bait):
        problems.append(f"a link is followed: {status} {said} {os.listdir(bait)}")
    check("a folder under TMPDIR that somebody else made is not used", problems)


def links(trace, source):
    """Names that nobody gave lead elsewhere: run.db and its like beside what is read."""
    place, problems = Place(trace), []
    os.symlink(place.bait, f"{place.path}.run.db")
    done = subprocess.run([MSPROBE, "import", place.path], capture_output=True, text=True, timeout=SECONDS, check=False)
    problems += [] if done.returncode == 3 and "is a link" in done.stderr else [f"import: {done.returncode} {done.stderr}"]
    status, said = report(place.path, place.folder)
    problems += [] if status == 0 else [f"report: {status} {said}"]
    done = subprocess.run([MSPROBE, "import", place.path, "-o", f"{place.folder}/mine.db"], capture_output=True, text=True, timeout=SECONDS, check=False)
    problems += [] if done.returncode == 0 else [f"import -o: {done.returncode} {done.stderr}"]
    problems += bait_taken(place)
    place = Place(trace)
    os.symlink(place.folder, f"{place.folder}/cluster_analysis_output")
    done = subprocess.run([MSPROBE, "cluster", "-m", "mstx_sum", "-d", place.folder], capture_output=True, text=True, timeout=SECONDS, check=False)
    problems += [] if done.returncode == 3 and "is a link" in done.stderr else [f"cluster: {done.returncode} {done.stderr}"]
    place = Place(source)
    name = place.path[:-len(".vis.db")]
    for beside_it in f"{name}.edited.vis.db", f"{name}_0_0.vis.config":
        os.symlink(place.bait, beside_it)
    with open(f"{TOP}/keys", "w", encoding="utf-8") as f:
        f.write(f"2E/{NAME}<Enter>M:write<Enter>:save-matches<Enter>")
    shown = subprocess.run([MSPROBE, "view", "--script", f"{TOP}/keys", "--size", "250x24", place.path], capture_output=True, text=True, timeout=SECONDS, check=False).stdout
    problems += [] if "is a link" in shown else [f"view: {shown}"]
    check("a link at a name that nobody gave is not followed", problems + bait_taken(place))


def bait_taken(place):
    with open(place.bait, encoding="latin-1") as f:
        return [] if f.read() == "precious" else ["a file of the user was written over"]


def selftest():
    """Links under every name that a temporary file could have been foreseen to get."""
    place, problems = Place(run), []
    tmp = f"{place.folder}/tmp"
    os.mkdir(tmp)
    child = subprocess.Popen(["sh", "-c", f'ln -s "{place.bait}" "{tmp}/msprobe-selftest-$$.db"; exec "$0" selftest', MSPROBE],
                             env={**os.environ, "TMPDIR": tmp}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    problems += [] if child.wait(60) == 0 else [f"it ended with {child.returncode}"]
    check("selftest follows no link in a shared folder", problems + bait_taken(place))


def versions(source):
    problems = []
    for version in "2", "3", "99", "abc":
        place = Place(source)
        place.change(("UPDATE meta SET value = ? WHERE key = 'version'", (version,)))
        status, said = report(place.path, TOP)
        if status != 3 or f"has format version {version}; this msprobe reads version" not in said:
            problems.append((version, status, said))
    check("a run.db of another version says so under any name", problems)


# ---- what is written only when asked ----------------------------------------------------------

def changes_last_when_written(source):
    place = Place(source)
    before = snapshot(place.folder)
    child = subprocess.Popen([MSPROBE, "serve", "--port", "0", place.path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    root, token = re.match(r"(http://[^/]+/)#token=(\w+)", child.stdout.readline()).groups()
    problems = []

    def parted(path):
        with sqlite3.connect(path) as db:
            return db.execute("SELECT matched_node_link FROM tb_nodes WHERE data_source = 'NPU' AND node_name = ?", (NAME,)).fetchone()[0] in ("", "[]", None)
    ask(root, token, f"unmatch?target={NAME}", True)
    problems += [] if snapshot(place.folder) == before else ["a change was written without being asked for"]
    ask(root, token, "write", True)
    copy = place.path[:-len(".vis.db")] + ".edited.vis.db"
    problems += [] if os.path.exists(copy) and parted(copy) and not parted(place.path) else ["the copy does not hold the change"]
    ask(root, token, f"unmatch?target={MODULE}&below=1", True)
    ask(root, token, "write?over=1", True)
    problems += [] if parted(place.path) else ["the file itself does not hold the change"]
    child.send_signal(signal.SIGTERM)
    child.wait(5)
    check("changes by hand last when they are written, and where", problems)


graph, run = make_graph(), make_run()
check("a database that is as it should be", open_all(Place(graph).path))
changes_last_when_written(graph)
for what_, source_ in ("graph", graph), ("run", run):
    beside(what_, source_)
    endless_trees(what_, source_)
parents(graph)
schemas(graph)
thousands_of_tables(graph)
code_in_tables(graph)
infinities(run)
versions(run)
foreseen(f"{TOP}/run.json")
links(f"{TOP}/run.json", graph)
selftest()
dashed(graph)
for what_, source_ in ("graph", graph), ("run", run):
    wild_values(what_, source_, 12)
    damaged_pages(what_, source_, 12)
sys.exit(failed)
