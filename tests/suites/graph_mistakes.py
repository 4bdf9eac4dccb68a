# SPDX-License-Identifier: MIT
"""Mistakes planted in networks that MindSpore compiles to graphs, sought by `msprobe compare`.

    graph_mistakes.py BUILD [sample|all|half0|half1] [WORD]      prints "ok NAME" or "not ok NAME"
        TORCH_PYTHON=FILE    a Python with torch; without it, only MindSpore's own runs are compared

Each network runs as a graph, as functions, and in PyTorch. Of equal networks no suspect may be named;
of a network with a mistake suspect 1 must be an operator that shows the mistake, in the cell that
holds it, or that cell. `sample` takes every 13th mistake and compares with functions alone;
half0 and half1 are the two halves: thresholds are chosen on one and
measured on the other.
"""
import os
import re
import subprocess
import sys
import tempfile

import graph_networks

BUILD = os.path.abspath(sys.argv[1])
PART = sys.argv[2] if len(sys.argv) > 2 else "sample"
WORD = sys.argv[3] if len(sys.argv) > 3 else ""
TORCH = os.environ.get("TORCH_PYTHON", "")
LEAST = 0.95
SAMPLE = slice(1, None, 13)
HERE = os.path.dirname(os.path.abspath(__file__))
PAIRS = [("graph", "functions")]
if TORCH and PART != "sample":
    PAIRS += [("graph", "torch"), ("functions", "torch")]
failed = 0


def ok(name, problem):
    global failed
    print(("not ok " if problem else "ok ") + name + (f"\n    {problem}" if problem else ""), flush=True)
    failed += bool(problem)


def dump(top, way, network, mistake):
    """Runs a network once; returns the folder of its dump."""
    folder = os.path.join(top, f"{network}-{mistake}-{way}")
    if not os.path.isdir(folder):
        python = TORCH if way == "torch" else sys.executable
        words = [python, os.path.join(HERE, "graph_networks.py"),
                 "torch" if way == "torch" else "mindspore", way, network, mistake, folder]
        subprocess.run(words, env={**os.environ, "PYTHONPATH": os.path.join(BUILD, "python")},
                       capture_output=True, text=True, timeout=200, check=True)
    return folder


def first_suspect(top, target, golden):
    """Returns the line of suspect 1, or what is said without one."""
    words = [os.path.join(BUILD, "msprobe"), "compare", "-tp", target, "-gp", golden,
             "-o", os.path.join(top, "out")]
    end = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    found = re.findall(r"^(?:suspect 1|no suspect).*$", end.stdout, re.M)
    return found[0] if found else "\n".join((end.stdout + end.stderr).splitlines()[-3:])


def is_right(line, mistake):
    """Tells whether suspect 1 shows the mistake, in the cell that holds it."""
    _, cell, operators = graph_networks.MISTAKES[mistake]
    found = re.match(r"suspect 1  +(\S+)(?:  in (\S+))?", line)
    if not found:
        return False
    node, where = found[1], found[2] or ""
    module = re.match(r"(?:Cell|Module)\.(.*)\.(\w+)\.(?:forward|backward|parameters_grad)\.", node)
    if module:  # the cell itself, or a cell in it that is named as an operator is
        path = module[1]
        inner = path.rpartition(".")[2] if path.rpartition(".")[0] == cell else ""
        return path == cell or re.fullmatch(operators, inner, re.I) is not None
    operator = re.sub(r"\.\d+\.(forward|backward)$", "", node).split(".")[-1].strip("_")
    leaf = where[len(cell):].strip(".") if where.startswith(cell) else None
    by_name = re.search(operators, operator, re.I) is not None
    return (where == cell and by_name) or bool(leaf) and re.fullmatch(operators, leaf, re.I) is not None


def chosen():
    names = sorted(name for name in graph_networks.MISTAKES if WORD in name)
    if PART == "sample":
        return names[SAMPLE]
    return names[int(PART[-1])::2] if PART.startswith("half") else names


def clean(top):
    used = {graph_networks.MISTAKES[mistake][0] for mistake in chosen()}
    for network in (name for name in graph_networks.NETWORKS if name in used):
        for target, golden in PAIRS:
            line = first_suspect(top, dump(top, target, network, "none"), dump(top, golden, network, "none"))
            ok(f"{network} as {target} against {golden} has no suspect",
               "" if line.startswith("no suspect") else line)


def planted(top):
    """Counts the mistakes found for each pair."""
    names = chosen()
    right = dict.fromkeys(PAIRS, 0)
    for mistake in names:
        network = graph_networks.MISTAKES[mistake][0]
        for target, golden in PAIRS:
            line = first_suspect(top, dump(top, target, network, mistake), dump(top, golden, network, "none"))
            if is_right(line, mistake):
                right[target, golden] += 1
            else:
                print(f"# missed {mistake} ({target} against {golden}): {line}", flush=True)
    for (target, golden), count in right.items():
        enough = count >= LEAST * len(names)
        ok(f"{count} of {len(names)} mistakes of {target} against {golden} are suspect 1",
           "" if enough else f"at least {LEAST:.0%} must be")


def main():
    with tempfile.TemporaryDirectory(prefix="msprobe-mistakes-") as folder:
        top = os.environ.get("KEEP", folder)
        clean(top)
        planted(top)
    sys.exit(failed != 0)


main()
