# SPDX-License-Identifier: MIT
"""A dump of a script that knows nothing of it, as `msprobe run --dump config.json` asks for.

Collecting begins at the first call of a model, and the step ends when the first
optimizer has stepped.  The names of modules begin at the model that is called;
those of a second model, at its class.
"""
import json
import os
import sys
import weakref

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from msprobe import _probe
from msprobe.pytorch import _modules, _optimizer
from msprobe.pytorch._debugger import PrecisionDebugger


class _Watch:
    """When a step begins and ends."""

    def __init__(self, debugger):
        self._debugger = debugger
        self._roots = []  # models that have been called, as weak references
        self._parts = weakref.WeakSet()  # the modules in them
        self._leader = None
        self._takes_modules = debugger._info["level"] in ("L0", "mix")
        self._began = False

    def called(self, module, _args):
        """Any module is about to run; those of a known model are none of our business."""
        if module in self._parts:
            return
        if module not in (ref() for ref in self._roots):
            self._meet(module)
        if not self._began:
            self._begin()

    def _meet(self, root):
        self._roots.append(weakref.ref(root))
        self._parts.update(m for m in root.modules() if m is not root)
        if self._takes_modules and next(root.children(), None) is not None:
            more = len([r for r in self._roots if next(r().children(), None) is not None]) > 1
            _modules.hook_model(root, _modules.has_backward(False), True,
                                type(root).__name__ + "." if more else "")

    def _begin(self):
        self._began = True
        self._debugger._find_rank()
        _probe.start()

    def stepped(self, optimizer):
        """The first optimizer that steps is the one that tells steps apart."""
        if self._leader is None or self._leader() is None:
            self._leader = weakref.ref(optimizer)
        if self._leader() is not optimizer:
            return
        PrecisionDebugger.stop()
        PrecisionDebugger.step()
        self._began = False
        if not self._roots:  # a program without modules
            self._begin()


def _dump_path(config):
    """Where the run is, for a config.json that does not say."""
    with open(config, encoding="utf-8") as f:
        try:
            known = json.load(f)
        except ValueError:
            return None  # told with its place when it is read for good
    has_one = isinstance(known, dict) and "dump_path" in known
    return None if has_one else os.environ.get("MSPROBE_DUMP_PATH")


def attach(config):
    """Dump this process as config.json says; a mistake in it ends the program at once."""
    try:
        debugger = PrecisionDebugger(config_path=config, dump_path=_dump_path(config))
    except (OSError, ValueError) as why:
        print(f"msprobe: {why}", file=sys.stderr)
        sys.exit(2)
    if debugger._info["level"] == "debug":
        print("msprobe: level debug dumps what the program saves itself", file=sys.stderr)
        return
    watch = _Watch(debugger)
    register_module_forward_pre_hook(watch.called)
    _optimizer.call_after_step(watch.stepped)
