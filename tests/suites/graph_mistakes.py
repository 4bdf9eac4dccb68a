# SPDX-License-Identifier: MIT
"""Mistakes planted in networks that MindSpore compiles to graphs, sought by `msprobe compare`.

    graph_mistakes.py BUILD [sample|all|first|second|third|fourth|fifth|sixth|seventh|eighth|
                            ninth|tenth|eleventh|twelfth] [WORD]
                                                     prints "ok NAME" or "not ok NAME"
        TORCH_PYTHON=FILE    a Python with torch; without it, only MindSpore's own runs are compared
        GRAPHS_ALONE=1       functions are not compared with PyTorch, which saves half of the runs

Each network runs as a graph, as functions, and in PyTorch. Of equal networks, and of networks that compute
the same in another way, no suspect may be named; of a network with a mistake suspect 1 must be an operator
that shows the mistake, in the cell that holds it, or that cell. `first` to `twelfth` are the sets:
rules were chosen on each set after it had been measured, and then measured on the next.
`sample` takes every 22nd mistake of the first two sets and compares with functions alone.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import graph_runs

BUILD = os.path.abspath(sys.argv[1])
PART = sys.argv[2] if len(sys.argv) > 2 else "sample"
WORD = sys.argv[3] if len(sys.argv) > 3 else ""
TORCH = os.environ.get("TORCH_PYTHON", "")
LEAST = 0.95
SAMPLE = slice(1, None, 22)
HERE = os.path.dirname(os.path.abspath(__file__))
PAIRS = [("graph", "functions")]
if TORCH and PART != "sample":
    PAIRS += [("graph", "torch")] + [("functions", "torch")] * ("GRAPHS_ALONE" not in os.environ)
failed = 0


def ok(name, problem):
    global failed
    print(("not ok " if problem else "ok ") + name + (f"\n    {problem}" if problem else ""), flush=True)
    failed += bool(problem)


def folder_of(top, way, network, mistake):
    return os.path.join(top, f"{network}-{mistake}-{way}")


def dump_all(top):
    """Runs every network and mistake that is compared, unless its dump is there."""
    wanted = {}
    runs = [*equal_runs(), *((graph_runs.MISTAKES[mistake][0], mistake) for mistake in chosen())]
    for network, mistake in runs:
        for target, golden in PAIRS:
            wanted[target, network, mistake] = wanted[golden, network, "none"] = True
    for framework, python in (("torch", TORCH), ("mindspore", sys.executable)):
        lines = [" ".join((*run, folder_of(top, *run))) for run in wanted
                 if (run[0] == "torch") == (framework == "torch")
                 and not os.path.isdir(folder_of(top, *run))]
        if lines:
            env = {**os.environ, "PYTHONPATH": os.path.join(BUILD, "python"), "GRAPH_FRAMEWORK": framework}
            end = subprocess.run([python, os.path.join(HERE, "graph_runs.py")], env=env, input="\n".join(lines),
                                 stdout=subprocess.PIPE, text=True, timeout=7200, check=True)
            ok(f"{len(lines)} runs of {framework} are dumped", end.stdout)


def first_suspect(top, target, golden):
    """Returns suspect 1 as a line, "no suspect", or what is said instead of an answer."""
    words = [os.path.join(BUILD, "msprobe"), "compare", "-tp", target, "-gp", golden,
             "-o", os.path.join(top, "out"), "--format", "json"]
    end = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    try:
        suspects = json.loads(end.stdout)["suspects"]
    except (ValueError, KeyError):
        return "\n".join((end.stdout + end.stderr).splitlines()[-3:])
    if not suspects:
        return "no suspect"
    one = suspects[0]
    return f"suspect 1  {one['target']}  in {one['module'] or '-'}  for {one['golden'] or '-'}"


def names_operator(node, operators):
    """Tells whether an operator's node has one of these names."""
    name = re.sub(r"\.\d+\.(forward|backward)$", "", node).split(".")[-1].strip("_")
    return re.search(operators, name, re.I) is not None


def is_right(line, mistake):
    """Tells whether suspect 1 shows the mistake, in the cell that holds it: it, or the operator whose
    place it takes, as a graph runs several kernels for one function."""
    _, cell, operators = graph_runs.MISTAKES[mistake]
    cell = "" if cell == "optimizer" else cell
    found = re.match(r"suspect 1  (\S+)  in (\S+)  for (\S+)", line)
    if not found:
        return False
    node, where = found[1].replace("._backbone.", "."), found[2].replace("-", "")
    # A loop of the framework gives the debugger the cell of the loss, which holds the network.
    where = re.sub(r"^(_backbone|_loss_fn)\b\.?", "", where)
    module = re.match(r"(?:Cell|Module)\.(.*)\.(\w+)\.(?:forward|backward|parameters_grad)\.", node)
    if module:  # the cell itself, or a cell in it that is named as an operator is
        path = module[1]
        inner = path.rpartition(".")[2] if path.rpartition(".")[0] == cell else ""
        return path == cell or re.fullmatch(operators, inner, re.I) is not None
    leaf = where[len(cell):].strip(".") if where.startswith(cell) else None
    by_name = names_operator(node, operators) or names_operator(found[3], operators)
    return (where == cell and by_name) or bool(leaf) and re.fullmatch(operators, leaf, re.I) is not None


def chosen():
    known = {**graph_runs.SETS["first"], **graph_runs.SETS["second"]} if PART == "sample" else \
        graph_runs.SETS.get(PART, graph_runs.MISTAKES)
    names = sorted(name for name in known if WORD in name)
    return names[SAMPLE] if PART == "sample" else names


def equal_runs():
    """(network, variation) that compute the same."""
    used = {graph_runs.MISTAKES[mistake][0] for mistake in chosen()}
    for network in (name for name in graph_runs.NETWORKS if name in used):
        yield network, "none"
        if PART != "sample":
            yield from ((network, name) for name in graph_runs.SAME if graph_runs.SAME[name] == network)


def clean(top):
    for network, variation in equal_runs():
        for target, golden in PAIRS:
            line = first_suspect(top, folder_of(top, target, network, variation),
                                 folder_of(top, golden, network, "none"))
            ok(f"{network} ({variation}) as {target} against {golden} has no suspect",
               "" if line.startswith("no suspect") else line)


def planted(top):
    """Counts the mistakes found for each pair."""
    names = chosen()
    right = dict.fromkeys(PAIRS, 0)
    for mistake in names:
        network = graph_runs.MISTAKES[mistake][0]
        for target, golden in PAIRS:
            line = first_suspect(top, folder_of(top, target, network, mistake),
                                 folder_of(top, golden, network, "none"))
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
        dump_all(top)
        clean(top)
        planted(top)
    sys.exit(failed != 0)


main()
