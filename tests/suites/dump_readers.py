# SPDX-License-Identifier: MIT
"""Fresh dumps of ours, of C and of PyTorch, read by the official tool and by torch.load.

    dump_readers.py BUILD OFFICIAL       prints "ok NAME" or "not ok NAME"
    ONLY=mix_md5                         dumps with this in their name

Its compare of a dump with itself must find each row equal, graph_visualize and data2db must make their
databases, and every .pt must load, weights only, as dump.json describes it.
"""
import csv
import glob
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile

RANKS = STEPS = 2
LIMIT = 240  # seconds for a command of the official tool
KINDS = {f"{level}_{name}": {"level": level, **keys}
         for level in ("L0", "L1", "mix")
         for name, keys in (("statistics", {}), ("tensor", {"task": "tensor"}),
                            ("md5", {"statistics": {"summary_mode": "md5"}}))}
KINDS["debug"] = {"level": "debug"}
KINDS["debug_tensor"] = {"level": "debug", "task": "tensor"}


# ---- making them ------------------------------------------------------------------


def train(rank, config):
    """One rank of a training, as main() starts it."""
    import torch
    sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))
    import bench_torch
    from msprobe.pytorch import PrecisionDebugger
    torch.manual_seed(3)
    debugger = PrecisionDebugger(config_path=config)
    model, data, loss_of = bench_torch.gpt(torch, 16, 8, 2)
    for _ in range(STEPS):
        debugger.start(model=model, rank_id=rank)
        out = model(data)
        debugger.save({"out": [out], "n": 3}, "result")
        loss_of(out).backward()
        debugger.stop()
        debugger.step()


def write_config(folder, name, keys):
    config = os.path.join(folder, f"{name}.json")
    with open(config, "w", encoding="utf-8") as f:
        json.dump({"task": "statistics", "dump_path": os.path.join(folder, name), "rank": [],
                   "step": [], "risk_level": "ALL", **keys}, f)
    return config


def in_torch(build, folder):
    """The dumps, the commands that make them, and what those need of the environment."""
    for kind, keys in KINDS.items():
        config = write_config(folder, f"torch_{kind}", keys)
        for rank in range(RANKS):
            yield (f"torch_{kind}",
                   [sys.executable, "-W", "ignore", __file__, "--train", str(rank), config],
                   {"PYTHONPATH": os.path.join(build, "python"), "OMP_NUM_THREADS": "1"})


def in_c(build, folder):
    engine = os.path.join(build, "samples", "eval_callback")
    for kind in (kind for kind in KINDS if kind.startswith("L1")):
        config = write_config(folder, f"c_{kind}", KINDS[kind])
        for rank in range(RANKS):
            yield f"c_{kind}", [engine, config], {"RANK": str(rank)}
    program = os.path.join(build, "samples", "train_mpi")
    for task in ("statistics", "tensor") if os.path.exists(program) else ():
        yield (f"mpi_{task}",
               ["mpirun", "-n", str(RANKS), program, "--steps", str(STEPS), "--quiet", "--layers", "1",
                "--task", task, "--dump", os.path.join(folder, f"mpi_{task}")], {})


# ---- reading them, with the official package on the path -----------------------------


def official(*args):
    """A command of the official tool, in a process that has it loaded; it must not fail."""
    from msprobe.msprobe import main as command
    with tempfile.TemporaryFile("w+") as said:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            signal.alarm(LIMIT)  # it has children of its own to wait for
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            sys.argv = ["msprobe", *args]
            try:
                command()
                sys.stdout.flush()
                os._exit(0)
            except SystemExit as end:
                os._exit(1 if end.code else 0)
            finally:
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        said.seek(0)
        assert status == 0, f"{args[0]}: status {status}: {said.read()[-600:]}"


def compare(dump, out):
    """Every row of every rank and step is equal to itself."""
    if "debug" in dump:  # these are compared file by file
        pairs = [f"{dump}/step{s}/rank{r}/debug.json" for s in range(STEPS) for r in range(RANKS)]
    else:
        pairs = [f"{dump}/step{s}" for s in range(STEPS)]
    for i, path in enumerate(pairs):  # tables are named by the second
        official("compare", "-tp", path, "-gp", path, "-o", f"{out}/{i}")
    tables = glob.glob(f"{out}/**/*compare_result*.csv", recursive=True)
    assert len(tables) == RANKS * STEPS, f"{len(tables)} tables"
    for table in tables:
        with open(table, encoding="utf-8-sig", newline="") as f:
            rows = list(csv.DictReader(f))
        assert rows, f"{table} is empty"
        unequal = [row for row in rows if row["Result"] not in ("pass", "N/A", "Pass")]
        assert not unequal, unequal[0]


def graph(dump, out):
    official("graph_visualize", "-tp", dump, "-o", f"{out}/alone")
    official("graph_visualize", "-tp", dump, "-gp", dump, "-o", f"{out}/pair")
    made = glob.glob(f"{out}/*/*.vis.db")
    assert len(made) == 2, made
    for path in made:
        with sqlite3.connect(path) as db:
            found = db.execute("select count(distinct rank), count(distinct step) from tb_nodes")
            assert found.fetchone() == (RANKS, STEPS), path


def trend(dump, out):
    official("data2db", "--db", out, "--data", dump, "--micro_step", "false")
    with sqlite3.connect(glob.glob(f"{out}/*.trend.db")[0]) as db:
        found = db.execute("select count(distinct rank), count(distinct step) from trend_data")
        assert found.fetchone() == (RANKS, STEPS)


def leaves(value):
    if isinstance(value, dict) and "data_name" in value:
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)


def load(dump, _out):
    import torch
    count = 0
    for path in glob.glob(f"{dump}/step*/rank*/d*.json"):
        with open(path, encoding="utf-8") as f:
            data = json.load(f)["data"]
        for leaf in leaves(data):
            name = os.path.join(os.path.dirname(path), "dump_tensor_data", leaf["data_name"])
            t = torch.load(name, weights_only=True)
            assert [str(t.dtype), list(t.shape)] == [leaf["dtype"], leaf["shape"]], name
            if leaf["Max"] is not None:
                assert t.max().item() == leaf["Max"] or leaf["Max"] != leaf["Max"], name
            count += 1
    assert count == len(glob.glob(f"{dump}/step*/rank*/dump_tensor_data/*")) > 0, count


def readers_of(name):
    yield "compare", compare
    if "L1" not in name and "debug" not in name:  # others have no construct.json to make one of
        yield "graph_visualize", graph
    if not name.startswith("c_") and "debug" not in name and "md5" not in name:
        yield "data2db", trend
    if "tensor" in name:
        yield "torch_load", load


def read(folder):
    good = True
    for dump in sorted(d for d in glob.glob(f"{folder}/*") if os.path.isdir(d)):
        name = os.path.basename(dump)
        for reader, func in readers_of(name):
            title, why = f"{reader}_takes_{name}", ""
            try:
                func(dump, tempfile.mkdtemp(dir=folder, prefix=".out"))
            except Exception as e:
                why = f"{type(e).__name__}: {str(e)[-600:]}"
            print(f"not ok {title}\n    {why}" if why else f"ok {title}", flush=True)
            good = good and not why
    return good


def main():
    if sys.argv[1] == "--train":
        train(int(sys.argv[2]), sys.argv[3])
        return 0
    if sys.argv[1] == "--read":
        return 0 if read(sys.argv[2]) else 1
    build, package = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        only = os.environ.get("ONLY", "")
        for name, command, env in (*in_torch(build, folder), *in_c(build, folder)):
            if only not in name:
                continue
            got = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
            if got.returncode != 0:
                print(f"not ok {' '.join(command[-2:])} makes a dump\n    {got.stderr[-600:]}")
                return 1
        return subprocess.call([sys.executable, "-W", "ignore", __file__, "--read", folder],
                               env={**os.environ, "PYTHONPATH": package})


if __name__ == "__main__":
    sys.exit(main())
