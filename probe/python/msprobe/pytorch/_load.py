# SPDX-License-Identifier: MIT
"""Inputs of modules from an earlier dump in place of those of this run: the section "load" of config.json.

A module then computes on what it got in the other run, so that a difference behind it is its own.
"""
import glob
import logging
import os
import re

import torch

_ENTRY = re.compile(r"^Module\..+\.forward\.\d+$")
_log = logging.getLogger("msprobe")


class Loader:
    """Replaces tensors among the arguments of the modules that config.json names."""

    def __init__(self, load):
        """Takes the section; raises ValueError for a wrong one, as a dump does for its settings."""
        self.path, self.modules = load.get("path"), load.get("modules")
        self.steps, self.ranks = load.get("step") or [], load.get("rank") or []
        self.dumps_too = load.get("dump_after_load", False)
        if not isinstance(self.modules, list) or not self.modules:
            raise ValueError("load.modules: expected a list of names Module.PATH.CLASS.forward.N")
        for name in self.modules:
            if not isinstance(name, str) or not _ENTRY.match(name):
                raise ValueError(f"load.modules: expected a name Module.PATH.CLASS.forward.N, found {name!r}")
        if len(set(self.modules)) != len(self.modules):
            raise ValueError("load.modules: a name is there twice")
        if not self.path or not os.path.isdir(self.path):
            raise ValueError(f"load.path: no folder {self.path!r}")
        if not isinstance(self.dumps_too, bool):
            raise ValueError("load.dump_after_load: expected true or false")
        self._wanted = set(self.modules)
        self._calls, self._cache, self._hooked = {}, {}, set()
        self._folder = None  # of the other run's tensors at this step and rank; None: nothing is replaced

    def attach(self, model):
        """Hooks the named modules of a model, or of a list of its chunks, once."""
        roots = list(model) if isinstance(model, (list, tuple)) else [model]
        for i, root in enumerate(roots):
            number = f"{i}." if isinstance(model, (list, tuple)) else ""
            for path, module in root.named_modules():
                dot = "." if path else ""
                prefix = f"Module.{number}{path}{dot}{type(module).__name__}.forward."
                if prefix not in self._hooked and any(n.startswith(prefix) for n in self._wanted):
                    self._hooked.add(prefix)
                    self._hook(module, prefix)

    def _hook(self, module, prefix):
        def replace(_, args, kwargs):
            if self._folder is None:
                return None
            number = self._calls.get(prefix, 0)
            self._calls[prefix] = number + 1
            if prefix + str(number) not in self._wanted:
                return None
            return self._replaced(prefix + str(number), args, kwargs)

        module.register_forward_pre_hook(replace, with_kwargs=True)

    def _replaced(self, name, args, kwargs):
        args = tuple(self._tensor(f"{name}.input.{i}", v) for i, v in enumerate(args))
        return args, {k: self._tensor(f"{name}.kwargs.{k}", v) for k, v in kwargs.items()}

    def _tensor(self, name, given):
        """The tensor of the other run, or the given value when there is none."""
        if not isinstance(given, torch.Tensor):
            return given
        if name not in self._cache:
            path = os.path.join(self._folder, name + ".pt")
            try:
                loaded = torch.load(path, map_location=given.device, weights_only=True)
            except Exception as why:
                _log.warning("load: %s is not read, the value of this run stays: %s", path, why)
                return given
            if loaded.shape != given.shape or loaded.dtype != given.dtype:
                _log.warning("load: %s is %s %s, the module gets %s %s", name, loaded.dtype, list(loaded.shape),
                             given.dtype, list(given.shape))
            if given.requires_grad and not loaded.requires_grad:
                loaded.requires_grad_(True)
            self._cache[name] = loaded
        return self._cache[name]

    def start(self, step, rank):
        """Finds the folder of this step and rank; without one of either, nothing is replaced."""
        self._folder = None
        self._cache.clear()
        if (self.steps and step not in self.steps) or (self.ranks and rank not in self.ranks):
            return
        of_step = os.path.join(self.path, f"step{step}")
        found = [os.path.join(of_step, f"rank{rank}")] if rank is not None else sorted(glob.glob(of_step + "/proc*"))
        if not found:
            _log.warning("load: no folder proc* in %s", of_step)
            return
        self._folder = os.path.join(found[0], "dump_tensor_data")

    def step(self):
        self._calls.clear()
