# SPDX-License-Identifier: MIT
"""What commands print with --format json has the forms of msprobe-json(5).

    json_forms.py BUILD SCRATCH

Reads the forms from the page, runs each command on small inputs, and on dumps of ../shared where they are, and checks
that every key is there, none is unknown, and each value has one of its types.  Prints "ok COMMAND" or "not ok".
"""
import contextlib
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time

PAGE = "probe/cli/msprobe-json.5"
TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z]+|[{}\[\]:,|?])')


class Reader:
    """Reads a form: ("object", {key: (form, is_optional)}), ("map", form), ("list", form), ("one", [forms]), or a word."""

    def __init__(self, text):
        self.tokens, self.at = TOKEN.findall(text), 0

    def take(self, wanted=None):
        token = self.tokens[self.at]
        assert wanted is None or token == wanted, f"{wanted} expected, {token} found at token {self.at}"
        self.at += 1
        return token

    def next_is(self, word):
        return self.at < len(self.tokens) and self.tokens[self.at] == word

    def form(self):
        choices = [self.single()]
        while self.next_is("|"):
            self.take()
            choices.append(self.single())
        return choices[0] if len(choices) == 1 else ("one", choices)

    def single(self):
        token = self.take()
        if token == "[":
            inner = self.form()
            self.take("]")
            return ("list", inner)
        if token != "{":
            return token
        if self.next_is("TEXT"):
            self.take()
            self.take(":")
            inner = self.form()
            self.take("}")
            return ("map", inner)
        members = {}
        while not self.next_is("}"):
            key = json.loads(self.take())
            is_optional = self.next_is("?")
            if is_optional:
                self.take()
            self.take(":")
            members[key] = (self.form(), is_optional)
            if self.next_is(","):
                self.take()
        self.take("}")
        return ("object", members)


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


WORDS = {"N": lambda v: isinstance(v, int) and not isinstance(v, bool), "X": is_number, "ANY": lambda v: True,
         "TEXT": lambda v: isinstance(v, str), "BOOL": lambda v: isinstance(v, bool), "null": lambda v: v is None}


def faults(form, value, where=""):
    """What of a value is not as its form says."""
    if isinstance(form, str):
        fits = value == json.loads(form) if form[0] == '"' else WORDS[form](value)
        return [] if fits else [f"{where}: {json.dumps(value)[:60]} is not {form}"]
    kind, inner = form
    if kind == "one":
        found = [faults(f, value, where) for f in inner]
        return min(found, key=len)
    if kind == "list":
        if not isinstance(value, list):
            return [f"{where}: is no list"]
        return [f for i, v in enumerate(value) for f in faults(inner, v, f"{where}[{i}]")]
    if not isinstance(value, dict):
        return [f"{where}: is no object"]
    if kind == "map":
        return [f for k, v in value.items() for f in faults(inner, v, f"{where}.{k}")]
    found = [f"{where}.{k}: is missing" for k, (_, is_optional) in inner.items() if not is_optional and k not in value]
    found += [f"{where}.{k}: is not in the page" for k in value if k not in inner]
    return found + [f for k, v in value.items() if k in inner for f in faults(inner[k][0], v, f"{where}.{k}")]


def with_parts(text):
    """The form, with the parts that it names, "SIDE = {...}" behind it, in their places."""
    form, *parts = re.split(r"^([A-Z]+) = ", text, flags=re.M)
    for name, part in zip(parts[::2], parts[1::2]):
        form = re.sub(rf"\b{name}\b", lambda _, part=part: part, form)
    return form


def forms_of(page):
    text = open(page, encoding="utf-8").read()
    return {m[1]: Reader(with_parts(m[2])).form() for m in re.finditer(r"^\.SS (\S+)\n.*?^\.EX\n(.*?)^\.EE\n", text, re.S | re.M)}


def write_npy(path, values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}".ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        f.write(struct.pack(f"<{len(values)}f", *values))


def write_relu(folder, results):
    """Writes a tensor dump of one operator."""
    data = os.path.join(folder, "dump_tensor_data")
    os.makedirs(data)
    def recorded(what, values):
        name = f"Functional.relu.0.forward.{what}.0.npy"
        write_npy(os.path.join(data, name), values)
        return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [len(values)], "Max": max(values), "Min": min(values),
                "Mean": sum(values) / len(values), "Norm": sum(v * v for v in values) ** 0.5, "requires_grad": False,
                "data_name": name}
    call = {"input_args": [recorded("input", [-1.0, 0.0, 2.0, 3.0])], "input_kwargs": {},
            "output": [recorded("output", results)]}
    with open(folder + "/dump.json", "w", encoding="utf-8") as f:
        json.dump({"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": data,
                   "data": {"Functional.relu.0.forward": call}}, f)
    for name, content in (("construct", {"Functional.relu.0.forward": None}), ("stack", {})):
        with open(f"{folder}/{name}.json", "w", encoding="utf-8") as f:
            json.dump(content, f)


@contextlib.contextmanager
def recording(build, top):
    """A run whose program goes on until it is no longer needed."""
    run = os.path.join(top, "live")
    go_on = os.path.join(top, "go_on")
    script = "import mstx, os, sys, time\nwhile os.path.exists(sys.argv[1]):\n    mstx.mark('x')\n    time.sleep(0.01)\n"
    with open(go_on, "w", encoding="utf-8"):
        pass
    with subprocess.Popen([build + "/msprobe", "run", "-o", run, "--", sys.executable, "-c", script, go_on],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as program:
        try:
            for _ in range(200):
                if glob.glob(run + "/**/control", recursive=True):
                    break
                time.sleep(0.05)
            yield run
        finally:
            os.remove(go_on)
            program.wait(timeout=30)


def cases(build, top):
    """(form, words of the command)."""
    run = os.path.join(top, "run")
    subprocess.run([build + "/tests/tool_sim", run, "straggler", "0.05", "7"], check=True, stdout=subprocess.DEVNULL)
    dump = os.path.join(top, "dump", "step0", "rank0")
    os.makedirs(dump)
    value = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0}
    with open(dump + "/dump.json", "w", encoding="utf-8") as f:
        json.dump({"task": "statistics", "level": "L0", "framework": "pytorch", "dump_data_dir": None, "data": {
            "Module.a.Linear.forward.0": {"input_args": [value], "input_kwargs": {}, "output": [dict(value, Max="nan")]}}}, f)
    with open(dump + "/construct.json", "w", encoding="utf-8") as f:
        json.dump({"Module.a.Linear.forward.0": None}, f)
    with open(dump + "/stack.json", "w", encoding="utf-8") as f:
        json.dump({}, f)
    npy = os.path.join(top, "one.npy")
    write_npy(npy, [0.0] * 4)
    right, wrong = (os.path.join(top, side, "step0", "rank0") for side in ("right", "wrong"))
    write_relu(right, [0.0, 0.0, 2.0, 3.0])
    write_relu(wrong, [0.0, 0.0, 2.0, 3.5])
    out, whole = os.path.join(top, "out"), os.path.join(top, "dump")
    yield "stat", ["stat", whole]
    yield "parse", ["parse", "-d", npy, "-o", out]
    yield "overflow_check", ["overflow_check", "-i", whole, "-o", out]
    yield "compare", ["compare", "-tp", whole, "-gp", whole, "-o", out]
    yield "compare_explain", ["compare", "-tp", whole, "-gp", whole, "-o", out, "--explain", "Module.a.Linear.forward.0"]
    two = os.path.join(top, "two", "step0")
    for rank in ("rank0", "rank1"):
        shutil.copytree(dump, os.path.join(two, rank))
    subprocess.run([build + "/msprobe", "compare", "-tp", two, "-gp", two, "-o", os.path.join(top, "tables")], check=True, stdout=subprocess.DEVNULL)
    config = os.path.join(top, "merge.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("api:\n  - Module.a.Linear.forward.0\n")
    yield "merge_result", ["merge_result", "-i", os.path.join(top, "tables"), "-o", out, "-config", config]
    yield "data2db", ["data2db", "--db", out + "_trend", "--data", whole, "--json"]
    yield "trend", ["trend", whole]
    alarms = os.path.join(top, "alarms", "rank0")
    os.makedirs(alarms)
    shutil.copyfile("tests/data/fuzz/anomaly/three", alarms + "/anomaly.json")
    yield "monitor", ["monitor", "-d", os.path.dirname(alarms)]
    yield "check", ["check", whole]
    ckpt = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "fuzz", "ckpt")
    first, second = os.path.join(ckpt, "wrapped.pt"), os.path.join(ckpt, "flat5.pt")
    yield "check_resume", ["check", "--resume", first, second]
    yield "check_resume", ["check", "--resume", first, first]
    yield "quantise", ["quantise", first, "--as", "mxfp4"]
    yield "quantise_against", ["quantise", first, "--against", first]
    yield "judge", ["judge", wrong, right, "--all"]
    yield "reproduce", ["reproduce", wrong, "Functional.relu.0.forward", "-o", out + "_bug"]
    # Programs that "train" by laying a dump where msprobe run asks for one.
    copies = [f'cp -r {top}/{side}/step0 "$(dirname "$MSPROBE_DUMP")"' for side in ("right", "wrong")]
    yield "bisect", ["bisect", "--good", copies[0], "--bad", copies[1], "-o", out + "_found"]
    yield "bisect", ["bisect", "--good", copies[0], "--bad", copies[0], "-o", out + "_same"]
    pack = os.path.join(top, "pack.zip")
    yield "config_check", ["config_check", "-d", "-o", pack]
    yield "config_check", ["config_check", "-c", pack, pack, "-o", out + "_config"]
    yield "config_check", ["config_check", "-c", second, second, "-o", out + ".json"]
    yield "config_check", ["config_check", "-c", first, second, "-o", out + ".json"]
    again = shutil.copytree(whole, os.path.join(top, "again"))
    yield "calibrate", ["calibrate", whole, again]
    yield "graph_visualize", ["graph_visualize", "-tp", whole, "-o", out]
    yield "graph_visualize", ["graph_visualize", "-tp", whole, "-gp", whole, "-o", out]
    yield "import", ["import", run]
    yield "export", ["export", "-f", "chrome", "-o", out + ".trace.json", run, "--json"]
    yield "report", ["report", run]
    yield "report", ["report", "--breakdown", "--flops", "1e9", "--peak", "1e12", run]
    yield "cluster", ["cluster", "-d", run, "-o", out]
    for form in ("timeline", "trace", "snapshot4"):
        yield "memory", ["memory", os.path.realpath("tests/data/fuzz/memory/" + form)]
    yield "dryrun", ["dryrun", "--device_memory", "1k", os.path.realpath("tests/data/fuzz/dryrun/step")]
    yield "dryrun", ["dryrun", "--device_memory", "1g", os.path.realpath("tests/data/fuzz/dryrun/step")]
    yield "sql", ["sql", run, "SELECT rank, pid, 1.5 AS x, NULL AS n FROM processes LIMIT 3"]
    with recording(build, top) as live:
        for action in ("status", "snapshot"):
            yield "ctl", ["ctl", live, action]
    yield "doctor", ["doctor", "--python", "/nowhere"]
    yield "version", ["version"]
    yield "selftest", ["selftest"]
    golden = os.path.realpath("../shared/golden")
    for name in sorted(os.listdir(golden)) if os.path.isdir(golden) else []:
        target, base = os.path.join(golden, name, "target"), os.path.join(golden, name, "golden")
        if not os.path.isdir(target) or not os.path.isdir(base):
            continue
        yield "stat", ["stat", target]
        yield "check", ["check", target]
        yield "compare", ["compare", "-tp", target, "-gp", base, "-o", out]
        yield "compare", ["compare", "-tp", target, "-gp", base, "-o", out, "--ext"]
        yield "graph_visualize", ["graph_visualize", "-tp", target, "-gp", base, "-o", out]
        yield "overflow_check", ["overflow_check", "-i", target, "-o", out]
    trace = os.path.realpath("../shared/traces/straggler_st/timeline-ST.json.gz")
    if os.path.exists(trace):
        trace = shutil.copy(trace, top)  # what is made of it lies beside it
        yield "whatif", ["whatif", trace]
        yield "report", ["report", trace]


def main():
    build, top = os.path.abspath(sys.argv[1]), sys.argv[2]
    forms, seen, rc = forms_of(PAGE), {}, 0
    for name, words in cases(build, top):
        ask = [] if "--json" in words else ["--format", "json"]
        said = subprocess.run([build + "/msprobe", words[0], *ask, *words[1:]], capture_output=True, text=True, check=False)
        if not said.stdout.strip() and said.returncode in (2, 3) and said.stderr.strip():
            continue  # a dump of structure cannot be compared, and that is said
        try:
            found = faults(forms[name], json.loads(said.stdout))
        except ValueError as why:
            found = [f"no JSON: {why} {said.stdout[:80]!r} {said.stderr[:200]!r}"]
        seen.setdefault(name, []).extend(f"{' '.join(words)[-80:]}: {f}" for f in found[:3])
    for name in forms:
        good = seen.get(name) == []
        if name not in seen and name == "whatif":
            print("skip whatif: no ../shared/traces")
            continue
        print(f"{'ok' if good else 'not ok'} {name}")
        for f in seen.get(name, ["no case ran"])[:6]:
            print(f"    {f}")
        rc = rc if good else 1
    return rc


if __name__ == "__main__":
    sys.exit(main())
