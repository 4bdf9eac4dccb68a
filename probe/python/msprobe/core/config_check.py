# SPDX-License-Identifier: MIT
"""Collecting the configuration of a training from inside it: the names of the official tool.

    from msprobe.core.config_check import ConfigChecker

    ConfigChecker.apply_patches(fmk="pytorch")      # before the program draws random numbers
    ConfigChecker(model=model, shell_path=["train.sh"], output_zip_path="config.zip", fmk="pytorch")

The members env, pip and hyperparameters come from the program `msprobe config_check -d`; statistics of the
weights and of each step's inputs, and the calls of random functions, are added while the model runs. Two
archives are compared by `msprobe config_check -c` or ConfigChecker.compare.
"""
import fcntl
import functools
import inspect
import json
import logging
import os
import shutil
import subprocess
import zipfile

__all__ = ["ConfigChecker"]

_log = logging.getLogger("msprobe")
_calls = {}  # name of a random function: [{"count": n, "stack": [frame, ..]}]
_arguments = []  # what Megatron's get_args returned first


def _program():
    """The program msprobe: beside this package as it was built or installed, or in PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    for up in ("../../..", "../../../../bin", "../../../../../bin"):
        path = os.path.normpath(os.path.join(here, up, "msprobe"))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which("msprobe")


def _run(*args):
    program = _program()
    if program is None:
        raise RuntimeError("the program msprobe is neither beside the Python package nor in PATH")
    done = subprocess.run([program, "config_check", *args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


# ---- what differs between the frameworks -------------------------------------------------------------


class _Torch:
    def __init__(self):
        import torch
        self.lib = torch

    def rank(self):
        distributed = self.lib.distributed
        return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0

    def is_model(self, model):
        return isinstance(model, self.lib.nn.Module)

    def is_tensor(self, value):
        return isinstance(value, self.lib.Tensor)

    def features(self, tensor):
        tensor = tensor.detach()
        if not tensor.is_floating_point() or tensor.dtype == self.lib.float64:
            tensor = tensor.float()
        return {"max": float(tensor.max()), "min": float(tensor.min()), "mean": float(tensor.mean()),
                "norm": float(tensor.norm())}

    def parameters(self, model):
        return [(name, p.float()) for name, p in model.named_parameters()]

    def watch(self, model, hook):
        model.register_forward_pre_hook(hook, with_kwargs=True)

    def random_functions(self):
        torch = self.lib
        for name in ("rand", "randint", "randn", "rand_like", "randint_like", "randn_like", "manual_seed"):
            yield torch, name, f"torch.{name}"
        for name in ("exponential_", "geometric_", "log_normal_", "cauchy_"):
            yield torch.Tensor, name, f"torch.Tensor.{name}"


class _MindSpore:
    def __init__(self):
        import mindspore
        self.lib = mindspore

    def rank(self):
        comm = self.lib.communication
        return comm.get_rank() if comm.GlobalComm.INITED else 0

    def is_model(self, model):
        return isinstance(model, self.lib.nn.Cell)

    def is_tensor(self, value):
        return isinstance(value, self.lib.Tensor)

    def features(self, tensor):
        return {name: float(getattr(tensor, name)().asnumpy()) for name in ("max", "min", "mean", "norm")}

    def parameters(self, model):
        return [(name, p.float()) for name, p in model.parameters_and_names()]

    def watch(self, model, hook):
        construct = model.construct

        @functools.wraps(construct)
        def run(*args, **kwargs):
            hook(model, args, kwargs)
            return construct(*args, **kwargs)

        model.construct = run

    def random_functions(self):
        ops = self.lib.ops
        for name in ("rand", "randint", "randn"):
            yield ops, name, f"mindspore.ops.{name}"
        yield self.lib, "set_seed", "mindspore.manual_seed"


def _framework(fmk):
    if fmk == "pytorch":
        return _Torch()
    if fmk == "mindspore":
        return _MindSpore()
    raise ValueError(f"fmk: expected 'pytorch' or 'mindspore', found {fmk!r}")


# ---- random functions -----------------------------------------------------------------------------------


def _stack(frame):
    out = []
    while frame is not None:
        info = inspect.getframeinfo(frame)
        code = info.code_context[0].strip() if info.code_context else ""
        out.append(f"File {os.path.abspath(info.filename)}, line {info.lineno}, in {info.function}, {code}")
        frame = frame.f_back
    return out[::-1]


def _counted(func, name):
    """func, which also counts its calls by their stack; a failure to count changes nothing."""
    @functools.wraps(func)
    def call(*args, **kwargs):
        try:
            stack = _stack(inspect.currentframe().f_back)
            for entry in _calls.setdefault(name, []):
                if entry["stack"] == stack:
                    entry["count"] += 1
                    break
            else:
                _calls[name].append({"count": 1, "stack": stack})
        except Exception as why:  # of ours, in somebody's training
            _log.warning("config_check: %s not counted: %r", name, why)
        return func(*args, **kwargs)

    call._msprobe_counted = True
    return call


def _patch(owner, name, shown):
    func = getattr(owner, name, None)
    if func is not None and not hasattr(func, "_msprobe_counted"):
        setattr(owner, name, _counted(func, shown))


def _patch_numpy():
    try:
        import numpy
    except ImportError:
        return
    for name in ("rand", "randint", "choice", "normal"):
        _patch(numpy.random, name, f"np.random.{name}")


def _patch_megatron():
    try:
        from megatron import training
        get_args = training.get_args
    except (ImportError, AttributeError):
        return

    @functools.wraps(get_args)
    def remembered(*args, **kwargs):
        result = get_args(*args, **kwargs)
        if not _arguments:
            _arguments.append(result)
        return result

    training.get_args = remembered


# ---- the archive ----------------------------------------------------------------------------------------


def _add(path, name, text):
    """Adds a member; ranks that share the archive wait for each other."""
    with open(path, "ab+") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        with zipfile.ZipFile(path, "a") as z:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(info, text)
        fcntl.flock(f, fcntl.LOCK_UN)


class ConfigChecker:
    """Collects the configuration of a training into an archive."""

    step = 0

    def __init__(self, model=None, shell_path=None, output_zip_path="./config_check_pack.zip", fmk="pytorch"):
        """model: also collect its weights and inputs at each call, and the random calls before the first.
        shell_path: a list of .sh and .yaml files with hyperparameters."""
        if not isinstance(output_zip_path, str) or not output_zip_path.endswith(".zip"):
            raise ValueError("output_zip_path: expected a text that ends in .zip")
        if shell_path is not None and not isinstance(shell_path, (list, tuple)):
            raise ValueError("shell_path: expected a list of files")
        self._fmk = _framework(fmk) if model is not None else None
        self._model = model[0] if isinstance(model, list) and model else model
        if self._model is not None and not self._fmk.is_model(self._model):
            raise ValueError("model: expected a Module or Cell, or a list of them")
        self._path = os.path.realpath(output_zip_path)
        self._wrote_random = False
        if self._fmk is None or self._fmk.rank() == 0:
            _run("-d", *[os.fspath(p) for p in shell_path or []], "-o", self._path)
            if _arguments:
                _add(self._path, "hyperparameters/hyperparameters_dynamic.json",
                     json.dumps(vars(_arguments[0]), default=lambda x: None, indent=4))
        if self._model is not None:
            self._fmk.watch(self._model, self._before_call)

    @staticmethod
    def apply_patches(fmk="pytorch"):
        """Count the calls of random functions by their stacks, and remember Megatron's arguments."""
        import random
        _patch_megatron()
        for name in ("random", "randint", "uniform", "choice"):
            _patch(random, name, f"random.{name}")
        _patch_numpy()
        for owner, name, shown in _framework(fmk).random_functions():
            _patch(owner, name, shown)

    @staticmethod
    def compare(bench_zip_path, cmp_zip_path, output_path):
        """Compare two archives; output_path gets result.xlsx."""
        _run("-c", bench_zip_path, cmp_zip_path, "-o", output_path)

    def _before_call(self, model, args, kwargs=None):
        """A failure of ours ends the collection, not the training."""
        if self._model is None:
            return
        try:
            self._collect(model, args, kwargs or {})
        except Exception as why:
            self._model = None
            _log.warning("config_check: nothing more is collected: %r", why)

    def _collect(self, model, args, kwargs):
        rank = self._fmk.rank()
        place = f"step{ConfigChecker.step}/rank{rank}"
        inputs = {"args": self._described(args), "kwargs": self._described(kwargs)}
        _add(self._path, f"dataset/{place}/dataset.json", json.dumps(inputs, indent=4))
        weights = {name: self._fmk.features(p) for name, p in self._fmk.parameters(model)}
        _add(self._path, f"weights/{place}/weight.json", json.dumps(weights, indent=4))
        if not self._wrote_random:
            _add(self._path, f"random/rank{rank}.json", json.dumps(_calls, indent=4))
            self._wrote_random = True
        ConfigChecker.step += 1

    def _described(self, value, depth=50):
        if self._fmk.is_tensor(value):
            return self._fmk.features(value)
        if depth and isinstance(value, (tuple, list)):
            return {i: self._described(v, depth - 1) for i, v in enumerate(value)}
        if depth and isinstance(value, dict):
            return {k: self._described(v, depth - 1) for k, v in value.items()}
        return ""
