# SPDX-License-Identifier: MIT
"""Python runs this file when it starts under `msprobe run`, which puts its folder in front of
PYTHONPATH.  On `import torch`, `import mindspore` and `import mpi4py` it adds marks (see msprobe_torch,
msprobe_mindspore and msprobe_collections) and, on request, dumps tensors (see msprobe/_auto).  It also runs
the sitecustomize that the program would have without msprobe.  PyTorch or MindSpore is dumped,
whichever is imported first.

Errors of the hooks never reach the program: functions that cannot be marked stay as they are.
MSTX_TORCH=0 switches marks off, MSPROBE_DUMP names the config.json of a dump, MSPROBE_MONITOR that of a monitor; with
MSPROBE_INVARIANTS=1 what holds in every training is watched.
"""
import importlib
import os
import sys


class ImportWatch:
    """A finder in front of all others, which delegates to them and calls `loaded` after a package has
    been loaded."""

    def __init__(self, package, loaded):
        self._package, self._loaded = package, loaded

    def find_spec(self, name, path=None, target=None):
        if name != self._package:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if finder is not self and find else None
            if spec is not None:
                self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader):
        try:
            load = loader.exec_module

            def exec_module(module):
                del loader.exec_module
                load(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self._loaded(module)

            loader.exec_module = exec_module
        except Exception:
            pass  # an unusual loader: the package is loaded without changes


def dump(adapter):
    """Starts the dump, once, for the framework that is imported first."""
    global config
    path, config = config, None
    if not path:
        return
    try:
        auto = importlib.import_module(f"msprobe.{adapter}._auto")
    except ImportError as why:
        print(f"msprobe: no dump: {why}", file=sys.stderr)
        return
    auto.attach(path)


def monitor():
    """Starts the monitor of PyTorch."""
    if not monitored and not watched:
        return
    try:
        auto = importlib.import_module("msprobe.pytorch._monitor_auto")
    except ImportError as why:
        print(f"msprobe: no monitor: {why}", file=sys.stderr)
        return
    auto.attach(monitored)


def torch_is_loaded(torch):
    try:
        import msprobe_settings

        msprobe_settings.watch(torch)
    except Exception:
        pass
    try:
        if has_marks:
            import msprobe_torch

            msprobe_torch.attach(torch)
    except Exception:
        pass
    dump("pytorch")
    monitor()


def mpi4py_is_loaded(_):
    try:
        import msprobe_collections

        msprobe_collections.attach("python")
    except Exception:
        pass


def mindspore_is_loaded(mindspore):
    try:
        import msprobe_mindspore

        msprobe_mindspore.attach(mindspore, has_marks)
    except Exception:
        pass
    dump("mindspore")


def run_the_other():
    """Runs the next sitecustomize on the path; its exceptions reach the program."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    behind = [p for p in sys.path if os.path.abspath(p) != here]
    spec = PathFinder.find_spec("sitecustomize", behind)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


has_marks = os.environ.get("MSTX_TORCH") != "0"
config = os.environ.get("MSPROBE_DUMP")
monitored = os.environ.get("MSPROBE_MONITOR")
watched = os.environ.get("MSPROBE_INVARIANTS") == "1"
if has_marks or config or monitored or watched:
    sys.meta_path.insert(0, ImportWatch("torch", torch_is_loaded))
if has_marks:
    sys.meta_path.insert(0, ImportWatch("mpi4py", mpi4py_is_loaded))
sys.meta_path.insert(0, ImportWatch("mindspore", mindspore_is_loaded))
run_the_other()
