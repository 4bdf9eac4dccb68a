# SPDX-License-Identifier: MIT
"""What of ours can fail in a training fails once: each allocation, each write, each Python call.  The
training goes on to the same bits, and what failed is told, on the screen at most once.

    breaks.py BUILD [WORD]     only the kinds and levels with the word in their name
    BREAKS=all                 each, 31,000 for a version of PyTorch, and not a sample: an hour of a processor;
                               BREAKS=3/20 the third of twenty parts of them
    msprobe run -o DIR -- breaks.py BUILD marks    the marks of `msprobe run` instead, with MSTX_TORCH=0, as
                               each case attaches them by itself

Prints "ok NAME" or "not ok NAME".  A case is a child of this process, which has imported PyTorch.
"""
import ctypes
import glob
import json
import os
import pickle
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""
HERE = os.path.dirname(os.path.abspath(__file__))
OURS = os.path.join(BUILD, "python", "msprobe") + os.sep
MARKS = os.path.join(BUILD, "python", "auto") + os.sep
sys.path[:0] = [HERE, os.path.join(BUILD, "python")]
import gc  # noqa: E402
import io  # noqa: E402

import torch  # noqa: E402

from broken_calls import Calls, numbers  # noqa: E402
from harness import VERSION, run_way  # noqa: E402
from known import KNOWN  # noqa: E402
from main import attach_monitor, load_lazily, wait_limited  # noqa: E402

nn = torch.nn
ARE_MARKS = ONLY == "marks"
CONFIGS = ({"level": "mix", "task": "tensor"}, {"level": "L1", "task": "statistics"}, {"level": "L0", "task": "statistics"})
MONITOR = {"level": "monitor", "task": "csv"}


def training(run):
    """Modules with more than one tensor, functions, an optimizer, and a step that raises."""
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, scale=None):
            if x.shape[0] == 5:
                raise KeyError("on purpose")
            return self.fc(x) * scale, {"x": x.relu()}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.two, self.b = nn.Linear(4, 4), Two(), nn.Linear(4, 1)

        def forward(self, x):
            y, more = self.two(self.a(x), scale=x.abs())
            return self.b(y.softmax(-1) + more["x"]).sum()

    model, x = Net(), torch.randn(3, 4)
    run.train(model, lambda m, i: m(x), optimizer=torch.optim.Adam)
    run.start(model)
    run.raises("raised", lambda: model(torch.randn(5, 4)))
    run.stop()
    run.step()
    run.train(model, lambda m, i: m(x), steps=1)


def marked_training(run):
    """All that is marked: a loader, an optimizer, checkpoints, collections of garbage, and communication."""
    import torch.distributed as dist
    store = dist.FileStore(os.path.abspath("store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    rows = torch.utils.data.TensorDataset(torch.linspace(-1, 1, 24).view(6, 4))
    for i, (x,) in enumerate(torch.utils.data.DataLoader(rows, batch_size=2)):
        opt.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        opt.step()
        dist.all_reduce(loss.detach(), async_op=True).wait()
        parts = [torch.empty(4)]
        dist.all_gather(parts, x[0])
        run.note(f"loss {i}", (loss, parts))
        gc.collect()
    run.raises("raised", lambda: dist.broadcast(x, "no"))
    kept = io.BytesIO()
    torch.save(opt.state_dict(), kept)
    run.note("saved", len(kept.getvalue()))
    run.note_model(model)


# ---- what fails ---------------------------------------------------------------------------


class Nothing:
    """Counts nothing and breaks nothing."""

    def arm(self, number):
        pass

    def disarm(self):
        return 0


class Allocations:
    """Of the C half, by the counter that its own tests use."""

    name = "allocations"

    def __init__(self):
        path = glob.glob(OURS + "_probe*.so")[0]
        told = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        self.places = {line.split()[2]: int(line.split()[0], 16) for line in told.splitlines() if " ms_mem_" in line}

    def _function(self, name, result, *types):
        from msprobe import _probe
        with open("/proc/self/maps", encoding="ascii") as f:
            base = next(int(line.split("-")[0], 16) for line in f if _probe.__file__ in line)
        return ctypes.CFUNCTYPE(result, *types)(base + self.places[name])

    def arm(self, number):
        self.calls = self._function("ms_mem_calls", ctypes.c_uint64)
        self.fail_at = self._function("ms_mem_fail_at", None, ctypes.c_uint64)
        self.before = self.calls()
        self.fail_at(number or 0)

    def disarm(self):
        self.fail_at(0)
        return self.calls() - self.before


class Writes:
    """Of files, by a library that stands before libc's; all from the n-th on fail."""

    name = "writes"

    def arm(self, number):
        os.environ.update(BROKEN_KIND="write", BROKEN_ERRNO="28", BROKEN_AFTER=str(number - 1 if number else 1 << 30))

    def disarm(self):
        os.environ["BROKEN_KIND"] = "none"
        return 24  # a training of four steps writes more often


class CallsOfMarks(Calls):
    """Spared are what carries a call of the program, and the guard itself: they have nothing of their own
    that can fail. The reduction of gradients is part of the training."""

    name = "calls_of_marks"

    def __init__(self):
        super().__init__(MARKS, ("marked", "marked_step", "waited", "call", "wait", "reduce", "sharers",
                                 "until_done", "<lambda>"))


class Marks:
    """The functions of module mstx, the n-th call of which raises."""

    name = "marks"

    def arm(self, number):
        import mstx
        self.count = 0

        def failing(func):
            def call(*args, **kwargs):
                self.count += 1
                if self.count == number:
                    raise MemoryError("broken on purpose")
                return func(*args, **kwargs)
            return call
        for name in ("mark", "range_start", "range_end"):
            setattr(mstx, name, failing(getattr(mstx, name)))

    def disarm(self):
        return self.count


# ---- one case --------------------------------------------------------------------------------


def debugger_maker(config, kind, number):
    """What breaks begins to when the debugger has been made: a mistake in its configuration may be raised."""
    def make():
        from msprobe.pytorch import PrecisionDebugger
        with open("config.json", "w", encoding="utf-8") as f:
            json.dump({**config, "rank": [], "step": [], "dump_path": "dump"}, f)
        debugger = PrecisionDebugger(config_path="config.json")
        kind.arm(number)
        return debugger
    return make


def monitor_attacher(kind, number):
    def attach():
        attach_monitor()
        kind.arm(number)
    return attach


def child(config, kind, number, said, answer):
    for fd in (1, 2):
        os.dup2(said, fd)
    if ARE_MARKS:
        if config:
            sys.path.insert(0, MARKS)
            import msprobe_torch
            msprobe_torch.attach(torch)
            kind.arm(number)
        result = run_way(marked_training)
    elif config is MONITOR:
        result = run_way(training, None, monitor_attacher(kind, number))
    else:
        result = run_way(training, config and debugger_maker(config, kind, number))
    with os.fdopen(answer, "wb") as f:
        pickle.dump((*result, kind.disarm()), f)
    os._exit(0)


def run_case(config, kind, number):
    """(status, facts, raised, calls, what was said, notes) of a training."""
    with tempfile.TemporaryDirectory(prefix="msprobe-breaks-") as folder:
        said, answer = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.chdir(folder)
            child(config, kind, number, said[1], answer[1])
        os.close(said[1])
        os.close(answer[1])
        with os.fdopen(said[0], errors="replace") as f, os.fdopen(answer[0], "rb") as g:
            data = g.read()
            text = f.read()
        status = wait_limited(pid)
        notes = "".join(open(p, encoding="utf-8", errors="replace").read()
                        for p in glob.glob(folder + "/dump/**/dump_error_info.log", recursive=True))
    facts, raised, calls = pickle.loads(data) if data else (None, None, 0)
    return status, facts, raised, calls, text, notes


def judge(plain, case, usual):
    """What is wrong with a training in which something failed, as texts."""
    status, facts, raised, _calls, text, _notes = case
    if status != 0 or facts is None:
        return [f"status {status} {text[-200:]}"]
    if raised is not None:
        return [f"raised {raised}"]
    problems = [f"{label}: {str(fact)[:80]}, without us {str(known)[:80]}"
                for (label, fact), (_, known) in zip(facts, plain[1]) if fact != known]
    told = [line for line in text.splitlines() if ("msprobe" in line or "goes on" in line) and line not in usual
            and "the calls of modules are in" not in line]  # a line that names its folder
    if len(told) > 1:
        problems.append(f"told {len(told)} times: {told[:2]}")
    return problems


def name_of(kind, config):
    return f"breaks_{kind.name}_{config['level']}_{config['task']}"


def break_all(kind, config, plain):
    """A line of output for one kind of failure at one level."""
    clean = run_case(config, kind, None)
    problems = [f"nothing fails: {p}" for p in judge(plain, clean, [])]
    told = 0
    for n in numbers(clean[3]):
        case = run_case(config, kind, n)
        found = judge(plain, case, clean[4])
        problems += [f"number {n} of {clean[3]} fails: {p}" for p in found[:1]]
        told += case[4] != clean[4] or case[5] != clean[5]
    if not told:
        problems.append("no failure was told")
    name = name_of(kind, config)
    if problems and name in KNOWN:
        print(f"known {name}: {KNOWN[name]}", flush=True)
        return True
    print(("not ok " if problems else "ok ") + name)
    print("".join(f"    {p[:300]}\n" for p in problems[:12]), end="", flush=True)
    return not problems


def main_of_marks():
    import mstx
    if mstx.get_tool_id() == 0:
        print("skip breaks_marks: nobody records")
        return 0
    config = {"level": "run", "task": "marks"}
    plain = run_case(None, Nothing(), None)
    good = [break_all(kind, config, plain) for kind in (Marks(), CallsOfMarks())]
    return 0 if all(good) else 1


def main():
    load_lazily()
    if ARE_MARKS:
        return main_of_marks()
    import msprobe.pytorch  # noqa: F401  for all children
    plain = run_case(None, Nothing(), None)
    kinds = [Allocations(), Calls(OURS)]
    if "broken_disk" in os.environ.get("LD_PRELOAD", ""):
        kinds.append(Writes())
    else:
        print("skip breaks_writes: the broken disk is not preloaded")
    configs = CONFIGS + ((MONITOR,) if VERSION >= (2, 0) else ())  # before, there is no monitor
    good = [break_all(kind, config, plain) for kind in kinds for config in configs if ONLY in name_of(kind, config)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
