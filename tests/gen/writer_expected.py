#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/data/writer/: what the dump of tests/probe/write/test_writer.c must be, to the byte.

    python3 tests/gen/writer_expected.py

Statistics and digests are worked out here from the rules of the format, with
nothing but the standard library, and laid out by Python's own json.dump.
"""
import json
import math
import os
import struct
import sys
import zlib

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "writer")
MINDSPORE = {"float32": "Float32", "bfloat16": "BFloat16", "float16": "Float16", "float64": "Float64",
             "int64": "Int64", "uint8": "UInt8", "bool": "Bool"}
CODE = {"float32": "f", "float16": "e", "float64": "d", "int64": "q", "uint8": "B", "bool": "?"}


def bf16_bits(v):
    bits = struct.unpack("<I", struct.pack("<f", v))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def raw(dtype, values):
    if dtype == "bfloat16":
        return b"".join(struct.pack("<H", bf16_bits(v)) for v in values)
    return struct.pack("<%d%s" % (len(values), CODE[dtype]), *values)


def rounded(dtype, v):
    if dtype == "bfloat16":
        return struct.unpack("<f", struct.pack("<I", bf16_bits(v) << 16))[0]
    return struct.unpack("<" + CODE[dtype], struct.pack("<" + CODE[dtype], v))[0]


class Dump:
    def __init__(self, task, summary, level, framework, all_numbers):
        self.task, self.summary, self.level = task, summary, level
        self.framework, self.all_numbers = framework, all_numbers
        self.ms = framework == "mindspore"

    def stats(self, dtype, shape, v):
        if not v:
            return [None] * 4
        if dtype == "bool":
            return [any(v), all(v), None, None]
        if not shape:
            return [v[0]] * 4
        mean, norm = sum(v) / len(v), math.sqrt(sum(x * x for x in v))
        if dtype in ("float32", "float16", "bfloat16"):
            return [max(v), min(v), rounded(dtype, mean), rounded(dtype, norm)]
        return [max(v), min(v)] + ([mean, norm] if self.all_numbers else [None, None])

    def xor(self, dtype, shape, v):
        if not v:
            return None
        if not shape and dtype.startswith(("float", "bfloat")):
            return v[0]
        data = raw(dtype, v)
        data += b"\0" * (-len(data) % 8)
        word = 0
        for (w,) in struct.iter_unpack("<Q", data):
            word ^= w
        return "0x%016x" % word

    def tensor(self, item, dtype, shape, v, requires_grad=False):
        leaf = {"type": "mindspore.Tensor" if self.ms else "torch.Tensor",
                "dtype": MINDSPORE[dtype] if self.ms else "torch." + dtype, "shape": shape}
        if self.summary == "xor":
            leaf["md5"] = self.xor(dtype, shape, v)
        else:
            leaf.update(zip(("Max", "Min", "Mean", "Norm"), self.stats(dtype, shape, v)))
        if not self.ms:
            leaf["requires_grad"] = requires_grad
        if self.summary == "md5":
            leaf["md5"] = "%08x" % zlib.crc32(raw(dtype, v))
        if self.task == "tensor" and v:
            leaf["data_name"] = item + (".npy" if self.ms else ".pt")
        return leaf

    def data(self):
        t = self.tensor
        if self.task == "structure":
            return {}
        if self.level == "debug":
            return {"var.0.debug": {"a": [t("var.0.debug.a.0", "float32", [2], [0.5, -2.0])],
                                    "b": value("int", 3)}}
        f, m = "Functional.linear.0.forward", "Module.fc.Linear.forward.0"
        b, g = "Functional.linear.0.backward", "Module.fc.Linear.parameters_grad.0"
        return {
            f: {"input_args": [t(f + ".input.0", "float32", [2, 3], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], True), None,
                               value("int", -3),
                               [t(f + ".input.3.0", "float32", [0, 4], []),
                                t(f + ".input.3.1", "float32", [], [2.5])]],
                "input_kwargs": {"inplace": value("bool", False), "eps": value("float", 1e-05),
                                 "mode": value("str", "\u00e9 \"q\"\n"),
                                 "deep": {"inf": value("float", -math.inf), "empty": []}},
                "output": [t(f + ".output.0", "bfloat16", [3], [1.0, 1.0, 1.0])]},
            m: {"input_args": [], "input_kwargs": {},
                "output": [t(m + ".output.0", "int64", [3], [1, 2, 3])],
                "parameters": {"weight": t(m + ".parameters.weight", "float16", [2], [0.5, 3.0])}},
            b: {"input": [t(b + ".input.0", "float64", [2], [1.0, 2.0])],
                "output": [t(b + ".output.0", "uint8", [2], [255, 0]),
                           t(b + ".output.1", "bool", [3], [False, False, True])]},
            g: {"weight": [t(g + ".weight", "float32", [2, 2], [1.0, 3.0, 2.0, 4.0])]},
        }

    def write(self, name):
        head = {"task": self.task, "level": self.level, "framework": self.framework,
                "dump_data_dir": "@DIR@" if self.task == "tensor" else None, "data": self.data()}
        with open(os.path.join(TOP, name + ".json"), "w", encoding="ascii", newline="\n") as f:
            json.dump(head, f, indent=1)


def value(kind, v):
    return {"type": kind, "value": v}


def main():
    os.makedirs(TOP, exist_ok=True)
    for task, summary, level, framework, extra in (
            ("statistics", "statistics", "mix", "pytorch", ""),
            ("statistics", "statistics", "mix", "pytorch", "all_numbers"),
            ("statistics", "md5", "L0", "pytorch", ""),
            ("statistics", "xor", "L1", "pytorch", ""),
            ("statistics", "statistics", "L1", "mindspore", ""),
            ("statistics", "statistics", "L0", "mindtorch", ""),
            ("statistics", "statistics", "debug", "pytorch", ""),
            ("tensor", "statistics", "mix", "pytorch", ""),
            ("tensor", "md5", "L0", "mindspore", ""),
            ("structure", "statistics", "mix", "pytorch", "")):
        words = [task, summary, level, framework] + ([extra] if extra else [])
        Dump(task, summary, level, framework, bool(extra)).write("_".join(words))
    f, m = "Functional.linear.0.forward", "Module.fc.Linear.forward.0"
    for name, value_ in (
            ("construct", {f: m, m: None, "Functional.linear.0.backward": None}),
            ("stack", {"0": [[f, "Functional.relu.0.forward"],
                             ["File /w/net.py, line 10, in forward, \n return s.fc(x)", "File b"]],
                       "1": [[m], ["File \u00e9"]]})):
        with open(os.path.join(TOP, name + ".json"), "w", encoding="ascii", newline="\n") as out:
            json.dump(value_, out, indent=1)


sys.exit(main())
