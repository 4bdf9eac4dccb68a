# SPDX-License-Identifier: MIT
"""A training with a dump computes the same, bit by bit, as one without.

    mindspore_unchanged.py BUILD [WORD]   prints "ok NAME" or "not ok NAME"
    LEVELS="mix L0"  TASKS="statistics"   only these
    DRAW=TEXT                             of each way one case, drawn by this text; without it, all

Every way of mindspore_ways.py, mindspore_ways_odd.py, mindspore_ways_more.py, mindspore_ways_deep.py and
mindspore_ways_graph.py, times levels and tasks, times a program that calls the debugger and one that knows nothing of
it (`msprobe run --dump`); and under the monitor.  What is compared: losses, gradients, parameters, what every
generator of random numbers gives afterwards, and what is said: nothing that is not said without us, but by msprobe.

The framework's threads do not survive a fork, and are not there before the first operator: one
process imports everything and becomes all the programs.
"""
import hashlib
import json
import os
import re
import sys
import tempfile
import traceback
import weakref
import zlib

BUILD = os.path.abspath(sys.argv[1])
WORD = sys.argv[2] if len(sys.argv) > 2 else ""
DRAW = os.environ.get("DRAW", "")
CASES = [("L0", "statistics"), ("L1", "statistics"), ("mix", "statistics"), ("mix", "tensor"),
         ("debug", "tensor"), ("L2", "tensor")]
PROGRAMS = ("calls", "run")
MONITOR = ("monitor", "csv", "monitor")  # level, task and program of a training under the monitor
SECONDS = 150
# Ways that differ with a MindSpore whose tensors do not refer to the nodes of the graph: there tensors and their
# gradients pass through an operator at the border of a call, which adds first what comes from within.
OF_OLD_VERSIONS = ("cells_called_by_other_names", "a_penalty_of_gradients_within_the_loss",
                   "cells_that_know_their_tensors_by_identity", "products_with_the_hessian",
                   "a_penalty_on_the_gradients_of_weights", "gradients_of_everything_and_sensitivities",
                   "cells_that_return_what_they_were_given", "cells_that_give_and_take_parameters",
                   "cells_that_return_views", "written_in_place_after_and_before_a_cell",
                   "cells_that_write_into_their_inputs", "own_gradients_of_several_results",
                   "layers_that_yield_their_results", "a_cell_that_feeds_on_itself", "hooks_at_the_nodes_themselves")


class Steps:
    """The steps of a training, with a debugger or with none."""

    def __init__(self, debugger=None):
        self._debugger = debugger

    def begin(self, model):
        if self._debugger is not None:
            self._debugger.start(model)

    def end(self):
        if self._debugger is not None:
            self._debugger.stop()
            self._debugger.step()

    def save(self, value, name):
        if self._debugger is not None:
            self._debugger.save(value, name)


class MonitoredSteps(Steps):
    """The steps of a training under the monitor, whose optimizer is a cell that does nothing."""

    def __init__(self, config):
        super().__init__()
        self._config, self._models = config, []

    def begin(self, model):
        from mindspore import nn
        from msprobe.mindspore import TrainerMon
        known = next((one for one in self._models if one[0]() is model), None)
        if known is None:
            known = weakref.ref(model), nn.Identity(), TrainerMon(self._config)
            known[2].set_monitor(model, known[1])
            self._models.append(known)
        self._optimizer = known[1]

    def end(self):
        self._optimizer(0)


# ---- in a child ---------------------------------------------------------------------------------


def flat(value):
    """Bytes of a number, a tensor, or what holds them."""
    if isinstance(value, (list, tuple)):
        return b"".join(flat(item) for item in value)
    if hasattr(value, "asnumpy"):
        array = value.asnumpy()
        return str((array.dtype, array.shape)).encode() + array.tobytes()
    return repr(value).encode()


def generators():
    """What comes next from each generator."""
    import random

    import mindspore
    import numpy as np
    from mindspore import mint, ops
    yield mindspore.get_rng_state() if hasattr(mindspore, "get_rng_state") else 0
    yield ops.standard_normal((3,))
    yield ops.rand(3)
    yield float(np.random.rand())
    yield random.random()


def digests(name, steps):
    """Of each number, in their order."""
    import random

    import mindspore
    import numpy as np
    from mindspore_ways import WAYS
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    mindspore.set_seed(11)
    np.random.seed(12)
    random.seed(13)
    found = [hashlib.sha1(flat(value)).hexdigest()[:12] for value in WAYS[name](steps)]
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    return found + [hashlib.sha1(flat(value)).hexdigest()[:12] for value in generators()]


def become(name, folder, config, program):
    """Trains, and says what came out; config None: without a dump."""
    steps = Steps()
    os.chdir(folder)
    if config is not None:
        with open("config.json", "w", encoding="utf-8") as f:
            json.dump(config, f)
    if program == "monitor":
        steps = MonitoredSteps("config.json")
    elif config is not None:
        from msprobe.mindspore import PrecisionDebugger
        if program == "run":
            from msprobe.mindspore import _auto
            _auto.attach("config.json")
        else:
            steps = Steps(PrecisionDebugger(config_path="config.json"))
    found = digests(name, steps)
    if program in PROGRAMS:
        from msprobe.mindspore import PrecisionDebugger
        PrecisionDebugger._instance._last_words()
    return found


def child(*what):
    """The result of one process, None if it failed, and what it said."""
    folder = what[1]
    pid = os.fork()
    if pid == 0:
        import signal
        signal.alarm(SECONDS)
        log = os.open(os.path.join(folder, "log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            found = become(*what)
            with open(os.path.join(folder, "found"), "w", encoding="utf-8") as f:
                json.dump(found, f)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as f:
        said = f.read()
    try:
        with open(os.path.join(folder, "found"), encoding="utf-8") as f:
            return json.load(f), said
    except OSError:
        return None, f"status {status}\n{said}"


# ---- beside each other ------------------------------------------------------------------------


def run_case(*case):
    with tempfile.TemporaryDirectory(prefix="msprobe-mindspore-") as folder:
        name, config, program = case
        found, said = child(name, folder, config, program)
        records = 0
        for where, _, files in os.walk(folder):
            for file in files:
                records += file.endswith(".npy") and "rank_0" in where
                if file.endswith(".csv"):
                    with open(os.path.join(where, file), encoding="utf-8") as f:
                        records += len(f.readlines()) - 1
                if file in ("dump.json", "debug.json"):
                    with open(os.path.join(where, file), encoding="utf-8") as f:
                        records += len(json.load(f)["data"])
    return found, said, records


def more_said(said, without):
    """What is said, but not without us nor by msprobe: its first lines without their numbers."""
    known, lines = ({re.sub(r"\d+", "N", line): line for line in text.splitlines()} for text in (without, said))
    return [line for key, line in lines.items() if key not in known and not key.startswith("msprobe")][:4]


def report(name, without, found, said, records, more):
    """Prints how a case went; tells whether it computed the same, and said no more."""
    is_same = found == without and not more
    print(f"{'ok' if is_same else 'not ok'} {name} ({records} records)", flush=True)
    if found is not None:
        print("".join(f"    it says: {line}\n" for line in more), end="")
    if found is None:
        print("\n".join("    " + line for line in said.splitlines()[-8:]))
    elif found != without:
        first = next((i for i, (a, b) in enumerate(zip(without, found)) if a != b), -1)
        print(f"    {sum(a != b for a, b in zip(without, found))} of {len(without)} numbers "
              f"differ, the first at {first}")
    return is_same


def is_apt(name, level, program):
    """What is saved by hand the program says; kernels are those of graphs."""
    if level == "debug":
        return name.startswith("saved_by_hand") and program == "calls"
    return level != "L2" or name.startswith(("jit", "graph"))


def cases(name):
    levels, tasks = (os.environ.get(key, "").split() for key in ("LEVELS", "TASKS"))
    if not levels or MONITOR[0] in levels:
        yield MONITOR
    for level, task in CASES:
        if (not levels or level in levels) and (not tasks or task in tasks):
            for program in PROGRAMS:
                if is_apt(name, level, program):
                    yield level, task, program


def chosen(name):
    """The cases of a way that are run."""
    known = list(cases(name))
    if DRAW and known:
        known = [known[zlib.crc32(f"{DRAW} {name}".encode()) % len(known)]]
    return known


def config_of(level, task):
    if level == MONITOR[0]:
        return {"targets": {}, "format": task, "ops": ["norm", "mean"], "xy_distribution": True, "all_xy": True,
                "wg_distribution": True, "mv_distribution": True, "param_distribution": True}
    return {"level": level, "task": task, "dump_path": "out"}


def skip(name, said):
    print(f"skip unchanged_{name}: it is not the same twice, or does not run here"
          + "".join("\n    " + line for line in said.splitlines()[-3:]), flush=True)


def check_way(name):
    """Runs the chosen cases of a way; tells whether all computed the same. What differs from a dump may differ
    from itself, so only then the way runs without one again."""
    wanted = chosen(name)
    without, usual, _ = run_case(name, None, "") if wanted else ([], "", 0)
    if without is None:
        skip(name, usual)
        return True
    results = {f"unchanged_{name}_{program}_{level}_{task}": run_case(name, config_of(level, task), program)
               for level, task, program in wanted}
    if any(found != without for found, _, _ in results.values()) and run_case(name, None, "")[0] != without:
        skip(name, "")
        return True
    from msprobe.mindspore import _nodes
    if name in OF_OLD_VERSIONS and not _nodes.EXIST:
        skip(name, "")
        return True
    return all([report(title, without, *result, more_said(result[1], usual)) for title, result in results.items()])


def main():
    import mindspore  # noqa: F401 what a child needs
    import mindspore_ways_deep  # noqa: F401 registers its ways
    import mindspore_ways_graph  # noqa: F401 registers its ways
    import mindspore_ways_more  # noqa: F401 registers its ways
    import mindspore_ways_odd  # noqa: F401 registers its ways
    from mindspore_ways import WAYS
    from msprobe import mindspore as _adapter  # noqa: F401
    ways = [name for name in WAYS if WORD in name]
    return 0 if all([check_way(name) for name in ways]) else 1


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(BUILD, "python"))
    sys.exit(main())
