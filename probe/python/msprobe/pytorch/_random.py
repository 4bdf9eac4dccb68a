# SPDX-License-Identifier: MIT
"""Functions that draw random numbers: lists their calls in a file, and gives each the same state.

A program asks for this with random_save() or seed_all(is_enhanced=True); until then the functions are
untouched.
"""
import csv
import functools
import os
import random
import sys
import threading
import time
import traceback

import torch

from msprobe import _say

_TORCH = ("bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like",
          "randn", "randn_like", "randperm")
_TENSOR = ("bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial", "normal_",
           "random_", "uniform_")
_NO_DRAWS = ("seed", "getstate", "setstate", "get_state", "set_state", "__init__")


def _methods_of(module, generator):
    """Names of a module's functions that are methods of its one generator."""
    return [name for name, value in vars(module).items()
            if getattr(value, "__self__", None) is generator and name not in _NO_DRAWS
            and not name.startswith("_")]


def _sources():
    """(prefix, owner, names of functions)"""
    yield "python_random", random, _methods_of(random, random._inst)
    try:
        import numpy
        yield "numpy_random", numpy.random, (
            *_methods_of(numpy.random, numpy.random.mtrand._rand), "ranf", "sample")
    except ImportError:
        pass
    yield "torch_random", torch, _TORCH
    yield "tensor_random", torch.Tensor, _TENSOR


def _devices():
    return [device for device in (getattr(torch, "cuda", None), getattr(torch, "npu", None))
            if device is not None and device.is_available()]


class _State:
    """The state of every generator at the time of construction."""

    def __init__(self):
        self._python, self._torch = random.getstate(), torch.get_rng_state()
        self._devices = [(device, device.get_rng_state_all()) for device in _devices()]
        numpy = sys.modules.get("numpy")
        self._numpy = (numpy.random, numpy.random.get_state()) if numpy else None

    def restore(self):
        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        for device, state in self._devices:
            device.set_rng_state_all(state)
        if self._numpy:
            self._numpy[0].set_state(self._numpy[1])


def _rank():
    group = torch.distributed
    return group.get_rank() if group.is_available() and group.is_initialized() else None


class _CallList:
    """A file random_rankR_TIME.csv with a row for each call. The rank may become known later."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self._folder, self._counts, self._rank = folder, {}, _rank()
        self._time = time.strftime("%Y%m%d%H%M%S")
        self._lock = threading.Lock()
        self._path = self._named(f"proc{os.getpid()}" if self._rank is None else f"rank{self._rank}")
        self._append(["api_name", "stack"])

    def _named(self, who):
        return os.path.join(self._folder, f"random_{who}_{self._time}.csv")

    def _append(self, row):
        with open(self._path, "a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerow(row)

    def _find_rank(self):
        if self._rank is None and _rank() is not None:
            self._rank = _rank()
            path = self._named(f"rank{self._rank}")
            os.rename(self._path, path)
            self._path = path

    def add(self, name):
        frames = [frame for frame in traceback.extract_stack() if frame.filename != __file__]
        lines = [f"File {f.filename}, line {f.lineno}, in {f.name}, \n {f.line} \n" for f in reversed(frames)]
        with self._lock:
            self._find_rank()
            number = self._counts.get(name, 0)
            self._counts[name] = number + 1
            self._append([f"{name}.{number}", "".join(lines)])


_lists = []  # at most one _CallList
_states = []  # at most one _State
_replaced = []  # (owner, name) of each function that stands behind a wrapper


def _end_list(why):
    _lists.clear()
    _say.say(f"random_save: {why!r}; no more calls are listed")


def _watched(function, name):
    @functools.wraps(function)
    def draw(*args, **kwargs):
        for state in _states:
            state.restore()
        result = function(*args, **kwargs)
        for state in _states:
            state.restore()
        for calls in _lists[:]:
            try:
                calls.add(name)
            except Exception as why:  # the training goes on
                _end_list(why)
        return result

    return draw


def _watch_all():
    if _replaced:
        return
    for prefix, owner, names in _sources():
        for name in names:
            if hasattr(owner, name):
                setattr(owner, name, _watched(getattr(owner, name), f"{prefix}.{name}"))
                _replaced.append((owner, name))


def fix_states():
    """Have each call that draws random numbers begin with the state of now."""
    if not _states:
        _states.append(_State())
    _watch_all()


def random_save(output_path: str = "./output"):
    """List each call that draws random numbers, with its stack, in output_path/random_rankR_TIME.csv.

    Without a process group the file is random_procPID_TIME.csv until there is one."""
    if not isinstance(output_path, str):
        raise ValueError(f"output_path: expected a text, found {output_path!r}")
    if not _lists:
        _lists.append(_CallList(output_path))
    _watch_all()
