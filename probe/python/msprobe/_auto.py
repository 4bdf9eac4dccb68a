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

from msprobe._roots import call_after_step


class Watch:
    """When a step begins and ends; a framework says what its models are."""

    def __init__(self, debugger):
        self._debugger = debugger
        self._roots = []  # models that have been called, as weak references
        self._parts = weakref.WeakSet()  # the modules in them
        self._leader = None
        self._hooked = 0  # models with modules in them
        self._began = False

    # ---- what a framework adds -------------------------------------------

    def _parts_of(self, root):
        """All modules below a model."""

    def _hook_model(self, root, prefix):
        """Hooks of its modules."""

    # ---- calls and steps --------------------------------------------------

    def called(self, module):
        """Any module is about to run; those of a known model are none of our business."""
        if module in self._parts:
            return
        if not any(ref() is module for ref in self._roots):
            self._meet(module)
        if not self._began:
            self._begin()

    def _meet(self, root):
        self._roots.append(weakref.ref(root))
        parts = list(self._parts_of(root))
        self._parts.update(parts)
        if parts and self._debugger._info["level"] in ("L0", "mix"):
            self._hook_model(root, type(root).__name__ + "." if self._hooked else "")
            self._hooked += 1

    def _begin(self):
        self._began = True
        self._debugger._find_rank()
        self._debugger._begin()

    def stepped(self, optimizer):
        """The first optimizer that steps is the one that tells steps apart."""
        if self._leader is None or self._leader() is None:
            self._leader = weakref.ref(optimizer)
        if self._leader() is not optimizer:
            return
        self._debugger.stop()
        self._debugger.step()
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


def make(config, make_debugger):
    """The debugger of a config.json; a mistake in it ends the program at once."""
    try:
        return make_debugger(config_path=config, dump_path=_dump_path(config))
    except (OSError, ValueError) as why:
        print(f"msprobe: {why}", file=sys.stderr, flush=True)
        os._exit(2)  # a framework whose import fails half-way may crash at a proper exit


def watch(config, make_debugger, make_watch):
    """Dump this process as config.json says; None where there is nothing to watch."""
    debugger = make(config, make_debugger)
    if debugger._info["level"] == "debug":
        print("msprobe: level debug dumps what the program saves itself", file=sys.stderr)
        return None
    one = make_watch(debugger)
    debugger._optimizers.watch()
    call_after_step(one.stepped)
    return one
