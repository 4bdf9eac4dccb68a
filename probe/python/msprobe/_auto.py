# SPDX-License-Identifier: MIT
"""A dump of a script without changes to the script: `msprobe run --dump config.json`.

Collecting begins at the first call of a model, and the step ends when the first optimizer has
stepped. The names of modules begin at the called model; those of a second model begin at its
class.
"""
import functools
import json
import os
import sys
import weakref

from msprobe._roots import call_after_step


def _forget(parts, number, reference):
    if parts.get(number) is reference:
        del parts[number]


class Watch:
    """Decides when a step begins and ends; subclasses find a framework's models."""

    def __init__(self, debugger):
        self._debugger = debugger
        self._roots = []  # weak references to the models called so far
        self._parts = {}  # number of a module of theirs -> a weak reference; the program says what is equal
        self._leader = None
        self._hooked = 0  # number of models with submodules
        self._began = False

    # ---- overridden by a framework ----------------------------------------

    def _parts_of(self, root):
        """Returns all modules below a model."""

    def _hook_model(self, root, prefix):
        """Hooks the modules of a model."""

    # ---- calls and steps --------------------------------------------------

    def called(self, module):
        """Called before any module runs; modules of a known model are skipped."""
        known = self._parts.get(id(module))
        if known is not None and known() is module:
            return
        if not any(ref() is module for ref in self._roots):
            self._meet(module)
        if not self._began:
            self._begin()

    def _meet(self, root):
        self._roots.append(weakref.ref(root))
        parts = list(self._parts_of(root))
        self._add_parts(parts)
        if parts and self._debugger._info["level"] in ("L0", "mix"):
            self._hook_model(root, type(root).__name__ + "." if self._hooked else "")
            self._hooked += 1

    def _add_parts(self, modules):
        """Remembers modules until they are freed."""
        for module in modules:
            self._parts[id(module)] = weakref.ref(module, functools.partial(_forget, self._parts, id(module)))

    def _begin(self):
        self._began = True
        self._debugger._find_rank()
        self._debugger._begin()

    def stepped(self, optimizer):
        """Ends the step; the first optimizer that steps marks the steps."""
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
    """Returns the dump path of the run if config.json does not set one."""
    with open(config, encoding="utf-8") as f:
        try:
            known = json.load(f)
        except ValueError:
            return None  # the error is reported when the file is read in full
    has_one = isinstance(known, dict) and "dump_path" in known
    return None if has_one else os.environ.get("MSPROBE_DUMP_PATH")


def make(config, make_debugger):
    """Makes the debugger for a config.json; an error in the file ends the program at once."""
    try:
        return make_debugger(config_path=config, dump_path=_dump_path(config))
    except (OSError, ValueError) as why:
        print(f"msprobe: {why}", file=sys.stderr, flush=True)
        os._exit(2)  # a framework half imported can crash at a regular exit


def watch(config, make_debugger, make_watch):
    """Dumps this process as config.json configures; None when nothing is to be watched."""
    debugger = make(config, make_debugger)
    if debugger._info["level"] == "debug":
        print("msprobe: level debug dumps what the program saves itself", file=sys.stderr)
        return None
    one = make_watch(debugger)
    debugger._optimizers.watch()
    call_after_step(one.stepped)
    return one
