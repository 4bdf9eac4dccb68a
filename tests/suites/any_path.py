# SPDX-License-Identifier: MIT
"""Every command on every kind of path: what it says helps, or it has done what it was asked for.

    any_path.py BUILD [--show] [--command NAME] [--path NAME] [--part K/N:WORD]

A path is a dump, a run, a table, a trace, a thing of another program, or nothing at all. Each command must end within a
minute with status 0 and something done (said or written), or with a sentence on stderr that begins with the
command, names the path or what is missing, and holds neither "Assertion", "NULL", "(null)" nor an empty reason.
Prints "ok COMMAND: PATH" or "not ok COMMAND: PATH".  --show prints each sentence.  --part K/N:WORD: the K-th of N
parts of all pairs, which WORD deals.
"""
import argparse
import gzip
import json
import os
import pickle
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import zlib

from odd_paths import make_odd

LIMIT = 60


def words_of():
    """Commands by name: their words, with PATH for the path, GOOD for a dump and OUT for a folder to write into."""
    return {
        "stat": ["stat", "PATH"],
        "stat --format json": ["stat", "--format", "json", "PATH"],
        "parse": ["parse", "-d", "PATH", "-o", "OUT"],
        "overflow_check": ["overflow_check", "-i", "PATH", "-o", "OUT"],
        "data2db": ["data2db", "--db", "OUT", "--data", "PATH"],
        "run --dump": ["run", "-o", "OUT", "--dump", "PATH", "--", "true"],
        "run": ["run", "-o", "OUT", "--", "PATH"],
        "ctl": ["ctl", "PATH", "status"],
        "import": ["import", "-o", "OUT/r.db", "PATH"],
        "no command": ["PATH"],
        "report": ["report", "PATH"],
        "report --format json": ["report", "--format", "json", "PATH"],
        "report --against": ["report", "RUN", "--against", "PATH"],
        "report against itself": ["report", "PATH", "--against", "PATH"],
        "whatif": ["whatif", "PATH"],
        "cluster": ["cluster", "-d", "PATH", "-o", "OUT"],
        "export chrome": ["export", "-f", "chrome", "-o", "OUT/x.json", "PATH"],
        "export ascend": ["export", "-f", "ascend", "-o", "OUT/x.db", "PATH"],
        "sql": ["sql", "PATH", "SELECT 1"],
        "compare": ["compare", "-tp", "PATH", "-gp", "GOOD", "-o", "OUT"],
        "compare golden": ["compare", "-tp", "GOOD", "-gp", "PATH", "-o", "OUT"],
        "compare both": ["compare", "-tp", "PATH", "-gp", "PATH", "-o", "OUT"],
        "check": ["check", "PATH"],
        "calibrate": ["calibrate", "PATH", "PATH"],
        "merge_result": ["merge_result", "-i", "PATH", "-o", "OUT", "-config", "CONFIG"],
        "merge_result config": ["merge_result", "-i", "GOOD", "-o", "OUT", "-config", "PATH"],
        "graph_visualize": ["graph_visualize", "-tp", "PATH", "-o", "OUT"],
        "graph_visualize pair": ["graph_visualize", "-tp", "PATH", "-gp", "GOOD", "-o", "OUT"],
        "graph_visualize golden": ["graph_visualize", "-tp", "GOOD", "-gp", "PATH", "-o", "OUT"],
        "view": ["view", "PATH"],
        "serve": ["serve", "--port", "0", "PATH"],
        "serve pair": ["serve", "--port", "0", "PATH", "GOOD"],
        "export perfetto": ["export", "-f", "perfetto", "-o", "OUT/x.perfetto", "PATH"],
        "export csv": ["export", "-f", "csv", "-o", "OUT/x.csv", "PATH"],
        "judge": ["judge", "PATH", "GOOD"],
        "judge golden": ["judge", "GOOD", "PATH"],
        "reproduce": ["reproduce", "PATH", "Module.net.fc.Linear.forward.0", "-o", "OUT/r"],
        "memory": ["memory", "PATH"],
        "memory against": ["memory", "PATH", "--against", "PATH"],
        "dryrun": ["dryrun", "--device_memory", "1g", "PATH"],
        "quantise": ["quantise", "PATH", "--as", "mxfp4"],
        "quantise against": ["quantise", "PATH", "--against", "GOOD"],
        "trend": ["trend", "PATH"],
        "monitor": ["monitor", "PATH"],
        "config_check": ["config_check", "-c", "PATH", "PATH", "-o", "OUT/c"],
        "check resume": ["check", "--resume", "PATH", "PATH"],
        "view script": ["view", "--script", "PATH", "GOOD"],
    }


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(data, bytes) else "w") as f:
        f.write(data)
    return path


def small_dump(top):
    """A dump of two modules, as the tools write one."""
    step = os.path.join(top, "step0", "rank")
    value = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 4], "Max": 1.0, "Min": -1.0, "Mean": 0.1,
             "Norm": 2.0, "requires_grad": False}
    record = {"input_args": [value], "input_kwargs": {}, "output": [value]}
    write(os.path.join(step, "dump.json"), json.dumps({
        "task": "statistics", "level": "L0", "framework": "pytorch", "dump_data_dir": None,
        "data": {"Module.net.fc.Linear.forward.0": record, "Module.net.act.ReLU.forward.0": record}}))
    write(os.path.join(step, "stack.json"), json.dumps({"0": [["Module.net.fc.Linear.forward.0"], ["a.py"]]}))
    write(os.path.join(step, "construct.json"), json.dumps({
        "Module.net.fc.Linear.forward.0": "Module.net.Net.forward.0",
        "Module.net.act.ReLU.forward.0": "Module.net.Net.forward.0", "Module.net.Net.forward.0": None}))
    return top


def npy(top):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
    head += " " * (117 - len(head)) + "\n"
    return write(os.path.join(top, "one.npy"), b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(16))


def database(path, *statements):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    db = sqlite3.connect(path)
    for s in statements:
        db.execute(s)
    db.commit()
    db.close()
    return path


MEMORY = ("start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,actual_peak_memory,file_name,line_num,type,tag,is_persistent,is_small\n"
          "1,9,0x1000,0,0,4096,4096,net.py,3,kWeight,Dense,1,0\n")


def chrome(events=True):
    rows = [{"ph": "X", "name": f"op{i}", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5} for i in range(20)]
    return json.dumps({"traceEvents": rows if events else [], "distributedInfo": {"rank": 0}})


def quiet(*words, **more):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=120, check=False, **more)


def make_paths(build, top):
    """Kinds of paths by name."""
    tool = build + "/msprobe"
    at = lambda *names: os.path.join(top, *names)  # noqa: E731
    dump = small_dump(at("dump"))
    other = small_dump(at("dump_b"))
    quiet(build + "/tests/tool_sim", at("run"), "straggler", "0.05", "7")
    shutil.copytree(at("run"), at("run_imported"))
    quiet(tool, "import", at("run_imported"))
    shutil.copyfile(at("run_imported", "run.db"), at("alone.db"))
    os.makedirs(at("tables"))
    quiet(tool, "compare", "-tp", dump, "-gp", other, "-o", at("tables"))
    quiet(tool, "graph_visualize", "-tp", dump, "-o", at("graphs"))
    quiet(tool, "data2db", "--db", at("trends"), "--data", dump)
    os.makedirs(at("empty"))
    os.makedirs(at("many"))
    for name in ("dump", "run_imported", "graphs"):
        shutil.copytree(at(name), at("many", name))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(at("socket"))
    os.mkfifo(at("fifo"))
    os.symlink(at("gone"), at("dangling"))
    os.symlink(at("circle"), at("circle"))
    table = next((os.path.join(at("tables"), n) for n in sorted(os.listdir(at("tables"))) if n.endswith((".csv", ".xlsx"))), at("none.csv"))
    graph = next((os.path.join(at("graphs"), n) for n in sorted(os.listdir(at("graphs"))) if n.endswith(".vis.db")), at("none.vis.db"))
    trend = next((os.path.join(at("trends"), n) for n in sorted(os.listdir(at("trends"))) if n.endswith(".db")), at("none.trend.db"))
    step = os.path.join(dump, "step0")
    return {
        "missing": at("nowhere"), "missing below a file": write(at("plain.txt"), "words\n") + "/x",
        "empty name": "", "long name": "n" * 5000, "odd name": at("tab\there\x1b[31m"),
        "empty folder": at("empty"), "folder of runs": at("many"), "root": "/",
        "empty file": write(at("empty.json"), ""), "text": at("plain.txt"), "script": write(at("train.py"), "print(1)\n"),
        "bytes": write(at("noise.bin"), bytes(range(256)) * 40), "dangling link": at("dangling"), "circle of links": at("circle"),
        "fifo": at("fifo"), "socket": at("socket"), "device": "/dev/null", "zeros without end": "/dev/zero",
        "dump": dump, "step of a dump": step, "rank of a dump": step + "/rank",
        "dump.json": step + "/rank/dump.json", "construct.json": step + "/rank/construct.json", "stack.json": step + "/rank/stack.json",
        "half a dump.json": write(at("half", "dump.json"), '{"task": "statistics", "data": {"Module.a'),
        "dump without records": write(at("none", "dump.json"), '{"task": "statistics", "level": "L0", "data": {}}') and at("none"),
        "npy": npy(top), "half a zip": write(at("half.pt"), b"PK\x03\x04" + bytes(40)), "half a gzip": write(at("half.json.gz"), gzip.compress(chrome().encode())[:60]),
        "run": at("run"), "run with run.db": at("run_imported"), "run.db": at("alone.db"), "rank of a run": at("run", sorted(os.listdir(at("run")))[0]),
        "trace": write(at("trace.json"), chrome()), "trace.json.gz": write(at("trace.json.gz"), gzip.compress(chrome().encode())),
        "trace without events": write(at("no_events.json"), chrome(False)), "json": write(at("config.json"), '{"task": "statistics", "level": "L1"}'),
        "json list": write(at("list.json"), "[1, 2, 3]"),
        "memory table": write(at("memory_block.csv"), MEMORY), "pickle": write(at("snapshot.pickle"), pickle.dumps({"segments": [], "device_traces": []})),
        "half a pickle": write(at("half.pickle"), pickle.dumps({"segments": [{"blocks": [1] * 300}]})[:100]),
        "graph": graph, "table": table, "folder of tables": at("tables"), "trend": trend,
        "database of others": database(at("others.db"), "CREATE TABLE t(a)", "INSERT INTO t VALUES (1)"), "empty database": database(at("nothing.db"), "PRAGMA user_version = 1"),
    }


def faults(name, words, path, result, wrote):
    """What is wrong with how a command ended."""
    said = result.stderr.decode(errors="replace")
    printed = result.stdout.decode(errors="replace")
    found = []
    if result.returncode < 0:
        found.append(f"signal {-result.returncode}")
    for bad in ("Assertion", "NULL", "(null)", "runtime error", "Traceback", "[ERROR]"):
        if bad in said or (bad in printed and not printed.startswith("{")):
            found.append(f"says {bad}")
    if re.search(r":\s*$", said.strip().splitlines()[0] if said.strip() else ""):
        found.append("an empty reason")
    if "\x1b" in said + printed:
        found.append("an escape sequence of a name")
    if result.returncode == 0 and not printed.strip() and not wrote and "nothing" not in said:
        found.append("status 0, and nothing was done")
    if words[0] == "serve" and printed.startswith("http://"):
        return found  # it answers until it is ended
    if result.returncode not in (0, 1) and not (said + printed).strip():
        found.append("no sentence")
    if result.returncode not in (0, 1) and said.strip() and not said.startswith("msprobe"):
        found.append("another's words")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--command", default="")
    parser.add_argument("--path", default="")
    parser.add_argument("--part", default="1/1:")
    options = parser.parse_args()
    share, _, word = options.part.partition(":")
    mine, parts = map(int, share.split("/"))
    rc = 0
    with tempfile.TemporaryDirectory(prefix="msprobe-any-path-") as top:
        here = os.path.join(top, "here")
        os.makedirs(os.path.join(top, "made"))
        paths = make_paths(options.build, os.path.join(top, "made"))
        paths.update(make_odd(os.path.join(top, "odd"), paths))
        config = write(os.path.join(top, "merge.yaml"), "api:\n  - Module.net.fc.Linear.forward.0\n")
        os.makedirs(here)
        for name, words in words_of().items():
            if options.command and options.command != name:
                continue
            for kind, path in paths.items():
                if options.path and options.path != kind or zlib.crc32(f"{word} {name} {kind}".encode()) % parts != mine - 1:
                    continue
                out = os.path.join(here, "out")
                shutil.rmtree(out, ignore_errors=True)
                os.makedirs(out)
                known = {"PATH": path, "GOOD": paths["dump"], "RUN": paths["run with run.db"], "CONFIG": config}
                line = [options.build + "/msprobe"] + [known.get(w, w.replace("OUT", out)) for w in words]
                env = dict(os.environ, TERM="xterm", CLICOLOR="1", CLICOLOR_FORCE="1", MSPROBE_LOG="")
                try:
                    result = subprocess.run(["timeout", "-s", "INT", "30" if kind == "root" else "2"] + line if words[0] == "serve" else line,
                                            stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, env=env, cwd=here, check=False)
                    found = faults(name, words, path, result, os.path.isdir(out) and bool(os.listdir(out)))
                except subprocess.TimeoutExpired:
                    result, found = None, ["no end"]
                good = not found
                print(f"{'ok' if good else 'not ok'} {name}: {kind}")
                rc = rc if good else 1
                for f in found:
                    print(f"    {f}")
                if result is not None and (options.show or found):
                    print(f"    status {result.returncode}; {result.stdout.decode(errors='replace')[:160]!r}")
                    for l in result.stderr.decode(errors="replace").splitlines()[:4]:
                        print(f"    | {l[:260]}")
    return rc


if __name__ == "__main__":
    sys.exit(main())
