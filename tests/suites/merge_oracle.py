#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ranks put together again, row for row as the official tool does it.

    merge_oracle.py MSPROBE OFFICIAL

OFFICIAL is a folder with the package msprobe of mindstudio-probe that this Python
can import.  Dumps of a model that is cut over tensor and pipeline parallel ranks
are made here, with the names that Megatron gives; both tools build a graph of
them, and every row of every table must be the same.
"""
import glob
import json
import os
import random
import sqlite3
import struct
import subprocess
import sys
import tempfile

CASES = [
    {"tp": 2}, {"tp": 4, "layers": 1}, {"pp": 2}, {"tp": 2, "pp": 2}, {"pp": 2, "vpp": 2},
    {"tp": 2, "pp": 2, "vpp": 2}, {"tp": 2, "dp": 2}, {"tp": 2, "nan": True},
    {"tp": 2, "pp": 2, "groups": False},
]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Rank:
    """One rank's construct, records and stacks.  Values that have the same key are the same on
    every rank; a key with the rank in it makes a part of a tensor."""

    def __init__(self, rank, d, p, t, case):
        self.rank, self.d, self.p, self.t = rank, d, p, t
        self.tp, self.dp, self.pp = case.get("tp", 1), case.get("dp", 1), case.get("pp", 1)
        self.vpp, self.layers = case.get("vpp", 1), case.get("layers", 2)
        self.construct, self.data, self.stack, self.calls = {}, {}, {}, {}
        ranks = [i + self.tp * (d + self.dp * p) for i in range(self.tp)]
        group = {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": "g%d%d" % (d, p)}
        self.group = {"group": group} if case.get("groups", True) else {}

    def value(self, *key):
        r = random.Random(repr(key))
        most, least, mean, norm = r.random() * 3, -r.random() * 3, r.random(), r.random() * 10
        return {"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4, 8],
                "Max": f32(most), "Min": f32(least), "Mean": f32(mean), "Norm": f32(norm),
                "requires_grad": True}

    def api(self, name, parent, ins, outs, kwargs=None):
        n = self.calls.get(name, 0)
        self.calls[name] = n + 1
        full = "%s.%d.forward" % (name, n)
        self.construct[full] = parent
        self.data[full] = {"input_args": ins, "input_kwargs": kwargs or {}, "output": outs}
        self.stack[full] = ["File /m/f.py, line %d, in forward, \n x" % len(name)]

    def module(self, name, parent, ins, outs, parameters=None):
        self.construct[name] = parent
        if ".backward." in name:
            self.data[name] = {"input": ins, "output": outs}
            return
        self.data[name] = {"input_args": ins, "input_kwargs": {}, "output": outs}
        if parameters:
            self.data[name]["parameters"] = parameters
        self.stack[name] = ["File /m/%s.py, line 3, in forward, \n m" % name.split(".")[1]]

    def prefix(self, chunk):
        return "Module.%d.module" % chunk if self.vpp > 1 else "Module.module"

    def layer_number(self, chunk, layer):
        return (self.p * self.vpp + chunk) * self.layers + layer

    def forward_layer(self, chunk, layer, block):
        v, d, t, g = self.value, self.d, self.t, self.layer_number(chunk, layer)
        top = "%s.decoder.layers.%d" % (self.prefix(chunk), layer)
        whole, attention = top + ".TransformerLayer.forward.0", top + ".attn.Attention.forward.0"
        column = top + ".attn.qkv.ColumnParallelLinear.forward.0"
        row = top + ".attn.proj.RowParallelLinear.forward.0"
        self.module(whole, block, [v("in", d, g)], [v("out", d, g)])
        self.module(attention, whole, [v("in", d, g)], [v("attn", d, g)])
        self.module(column, attention, [v("in", d, g)], [v("qkv", d, g, t)],
                    {"weight": [v("w1", g, t)]})
        self.api("Torch.matmul", column, [v("in", d, g), v("w1", g, t)], [v("qkv", d, g, t)])
        self.api("Torch.softmax", attention, [v("qkv", d, g, t)], [v("sm", d, g, t)],
                 {"dim": {"type": "int", "value": -1}})
        self.api("Torch.add", attention, [v("same", d, g)], [v("same", d, g)])
        self.module(row, attention, [v("sm", d, g, t)], [v("attn", d, g)],
                    {"weight": [v("w2", g, t)], "bias": [v("b2", g)]})
        self.api("Torch.matmul", row, [v("sm", d, g, t), v("w2", g, t)], [v("part", d, g, t)])
        self.api("Distributed.all_reduce", row, [v("part", d, g, t)], [v("attn", d, g)],
                 self.group)
        self.module(top + ".norm.Norm.forward.0", whole, [v("attn", d, g)], [v("out", d, g)])

    def backward_layer(self, chunk, layer, block):
        v, d, t, g = self.value, self.d, self.t, self.layer_number(chunk, layer)
        top = "%s.decoder.layers.%d" % (self.prefix(chunk), layer)
        whole, attention = top + ".TransformerLayer.backward.0", top + ".attn.Attention.backward.0"
        column = top + ".attn.qkv.ColumnParallelLinear.backward.0"
        self.module(whole, block, [v("gout", d, g)], [v("gin", d, g)])
        self.module(attention, whole, [v("gattn", d, g)], [v("gin2", d, g)])
        self.module(column, attention, [v("gqkv", d, g, t)], [v("gx", d, g)])
        matmul = "Torch.matmul.%d.backward" % (2 * (chunk * self.layers + layer))
        self.construct[matmul] = column
        self.data[matmul] = {"input": [v("gqkv", d, g, t)],
                             "output": [v("gpart", d, g, t), v("gw", d, g, t)]}
        self.api("Distributed.all_reduce", column, [v("gpart", d, g, t)], [v("gx", d, g)],
                 self.group)
        if layer == 0:
            self.data[top + ".attn.proj.RowParallelLinear.parameters_grad"] = {
                "weight": [v("gp", g, t)]}

    def neighbour(self, name, argument, ranks, parent, outs):
        self.api(name, parent, [self.value(self.rank, name)], outs,
                 {argument: {"type": "int", "value": self.rank + ranks}, **self.group})

    def forward_chunk(self, chunk):
        v, d, p = self.value, self.d, self.p
        prefix = self.prefix(chunk)
        top, block = prefix + ".GPT.forward.0", prefix + ".decoder.TransformerBlock.forward.0"
        self.module(top, None, [v("tokens", chunk)], [v("logits", d, p, chunk)])
        if p == 0 and chunk == 0:
            self.module(prefix + ".embedding.Emb.forward.0", top, [v("tokens", chunk)],
                        [v("emb", d, self.t)], {"weight": [v("we", d, self.t)]})
        self.module(block, top, [v("block in", d)], [v("block out", d, p, chunk)])
        if p > 0:
            self.neighbour("Distributed.irecv", "src", -self.tp * self.dp, top, [])
        for layer in range(self.layers):
            self.forward_layer(chunk, layer, block)
        if p == self.pp - 1 and chunk == self.vpp - 1:
            self.module(prefix + ".decoder.final.Norm.forward.0", block, [v("fin", d)],
                        [v("fout", d)])
            self.module(prefix + ".output.Head.forward.0", top, [v("fout", d)],
                        [v("head", d, self.t)])

    def backward_chunk(self, chunk):
        v, d, p = self.value, self.d, self.p
        top = self.prefix(chunk) + ".GPT.backward.0"
        block = self.prefix(chunk) + ".decoder.TransformerBlock.backward.0"
        self.module(top, None, [v("gtop", d, p, chunk)], [v("gtopin", d)])
        self.module(block, top, [v("gblock", d, p, chunk)], [v("gblock in", d)])
        for layer in reversed(range(self.layers)):
            self.backward_layer(chunk, layer, block)

    def run(self):
        v = self.value
        self.api("Torch.ones", None, [], [v(self.rank, "ones")])
        self.api("Torch.relu", None, [v(self.rank, "ones")], [v(self.rank, "relu")])
        for chunk in range(self.vpp):
            self.forward_chunk(chunk)
        if self.pp > 1:
            step = self.tp * self.dp if self.p < self.pp - 1 else -self.tp * self.dp
            self.neighbour("Distributed.isend", "dst", step, None, [])
        self.api("Torch.mul", None, [v(self.rank, "a")], [v(self.rank, "b")])
        for chunk in reversed(range(self.vpp)):
            self.backward_chunk(chunk)
        self.construct["optimizer"] = None
        self.data["optimizer"] = {"input_args": [], "output": []}
        self.api("Torch.sum", "optimizer", [v(self.rank, "c")], [v(self.rank, "d")])

    def write(self, top):
        where = "%s/step0/rank%d" % (top, self.rank)
        os.makedirs(where)
        grouped = {}
        for name, lines in self.stack.items():
            grouped.setdefault(tuple(lines), []).append(name)
        files = {
            "construct.json": self.construct,
            "dump.json": {"task": "statistics", "level": "mix", "framework": "pytorch",
                          "dump_data_dir": None, "data": self.data},
            "stack.json": {str(i): [n, list(k)] for i, (k, n) in enumerate(grouped.items())}}
        for name, what in files.items():
            with open("%s/%s" % (where, name), "w") as f:
                json.dump(what, f, indent=1)


def make_dumps(top, case):
    tp, dp, pp = case.get("tp", 1), case.get("dp", 1), case.get("pp", 1)
    for p in range(pp):
        for d in range(dp):
            for t in range(tp):
                rank = Rank(t + tp * (d + dp * p), d, p, t, case)
                rank.run()
                if case.get("nan") and rank.rank == 1:
                    name = next(n for n in rank.data if "softmax" in n)
                    rank.data[name]["output"][0]["Max"] = float("nan")
                rank.write(top)
    return tp * dp * pp


def plain(value):
    """JSON as what it means."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.dumps(json.loads(value), sort_keys=True)
        except ValueError:
            pass
    return value


def rows_of(db, table):
    c = sqlite3.connect("file:%s?mode=ro&immutable=1" % db, uri=True)
    cursor = c.execute("SELECT * FROM " + table)
    names = [x[0] for x in cursor.description]
    rows = [{k: plain(v) for k, v in zip(names, row) if k != "dump_data_dir"} for row in cursor]
    c.close()
    return {row["id"]: row for row in rows}


def differences(official, ours):
    for table in ("tb_nodes", "tb_stack", "tb_config"):
        a, b = rows_of(official, table), rows_of(ours, table)
        for key in list(a) + [k for k in b if k not in a]:
            if key not in a or key not in b:
                yield "%s %s only in one" % (table, key)
                continue
            for column in a[key]:
                if a[key][column] != b[key][column]:
                    yield "%s %s %s: official %.200s, ours %.200s" % (
                        table, key, column, a[key][column], b[key][column])


def run(command, out, env):
    p = subprocess.run(command + ["-o", out], capture_output=True, text=True, timeout=300, env=env)
    made = glob.glob(out + "/*.vis.db")
    return made[0] if made else None, p.stdout + p.stderr


def check(msprobe, official, case):
    options = ["--tp", str(case.get("tp", 1)), "--pp", str(case.get("pp", 1))]
    if case.get("vpp", 1) > 1:
        options += ["--vpp", str(case["vpp"])]
    with tempfile.TemporaryDirectory(prefix="msprobe-merge-") as top:
        size = make_dumps(top + "/in", case)
        args = ["graph_visualize", "-tp", top + "/in", "--rank_size", str(size)] + options
        env = dict(os.environ, PYTHONPATH=official)
        theirs, said = run([sys.executable, "-m", "msprobe.msprobe"] + args, top + "/a", env)
        if theirs is None:
            return "the official tool made nothing: " + said[-300:]
        ours, said = run([msprobe] + args + ["--compat=strict"], top + "/b", os.environ)
        return next(differences(theirs, ours), None) if ours else said[-300:]


def main():
    msprobe, official = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    if not os.path.isdir(os.path.join(official, "msprobe")):
        print("skip merges of the official tool: no official package (OFFICIAL=folder)")
        return 0
    wrong = 0
    for case in CASES:
        name = " ".join("%s=%s" % x for x in case.items())
        problem = check(msprobe, official, case)
        print("not ok merge %s: %s" % (name, problem) if problem else "ok merge " + name)
        wrong += problem is not None
    return wrong != 0


sys.exit(main())
