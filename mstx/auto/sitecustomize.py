# SPDX-License-Identifier: MIT
"""Python runs this file when it starts under `msprobe run`, which puts its folder in front of
PYTHONPATH.  It waits for `import torch`, has torch marked then (see msprobe_torch) and, when it is
asked, dumped (see msprobe/pytorch/_auto), and runs the sitecustomize that the program would have
had without us.

Nothing here may fail: what cannot be marked is not marked.  MSTX_TORCH=0 switches marks off,
MSPROBE_DUMP names the config.json of a dump.
"""
import os
import sys


class TorchWatch:
    """A finder in front of all others.  It finds nothing by itself: it lets the others find
    torch and adds to the end of its loading."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
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
                self._loaded(module)

            loader.exec_module = exec_module
        except Exception:
            pass  # a loader of its own kind: torch is loaded without marks

    def _loaded(self, torch):
        try:
            sys.meta_path.remove(self)
            if has_marks:
                import msprobe_torch

                msprobe_torch.attach(torch)
        except Exception:
            pass
        if config:
            self._dump()

    def _dump(self):
        try:
            from msprobe.pytorch import _auto
        except ImportError as why:
            print(f"msprobe: no dump: {why}", file=sys.stderr)
            return
        _auto.attach(config)


def run_the_other():
    """The sitecustomize behind this one; what it raises is the program's to see."""
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
if has_marks or config:
    sys.meta_path.insert(0, TorchWatch())
run_the_other()
