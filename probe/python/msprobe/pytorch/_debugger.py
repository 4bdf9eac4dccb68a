# SPDX-License-Identifier: MIT
"""PrecisionDebugger of PyTorch."""
import torch

from msprobe import _probe
from msprobe._debugger import BaseDebugger
from msprobe._saved import SavedGradients
from msprobe.pytorch import _modules, _optimizer, _tensors, _wrap


def _watch_gradient(value, then):
    """For SavedGradients."""
    if not isinstance(value, torch.Tensor):
        return None
    if value.requires_grad:
        value.register_hook(then)
    return value.requires_grad


class PrecisionDebugger(BaseDebugger):
    """Dumps a training run as config.json says; arguments go before the file.

    config_path: the file; task, dump_path, level, step: as its keys."""

    framework = "pytorch"

    def _setup(self):
        level = self._info["level"]
        if level in ("L1", "mix"):
            _wrap.put_all()
        if level == "mix":
            _optimizer.watch()

    def _check_model(self, model):
        if model is not None:
            _modules.check(model)
            self._model = model
        elif getattr(self, "_model", None) is None and self._info["level"] in ("L0", "mix"):
            raise ValueError("start(model): the levels L0 and mix need the model")

    def _hook_model(self):
        if getattr(self, "_model", None) is None:
            return  # the level has become one that needs it
        backward = not self._info["forward_only"]
        with_modules = backward and _modules.has_backward(self._info["module_backward"])
        _modules.hook_model(self._model, with_modules, backward)

    def _rank(self):
        dist = torch.distributed
        return dist.get_rank() if dist.is_available() and dist.is_initialized() else None

    def _watch_grads(self, variable, name, number):
        self._grads.append(SavedGradients(variable, name, number, _watch_gradient))

    def _watch_tokens(self, model, token_range):
        first, last = _check_range(token_range)
        root = model[0] if isinstance(model, (list, tuple)) else model
        if root is None:
            raise ValueError("token_range: needs the model")
        count = iter(range(last + 2))

        def watch(_module, _args):
            number = next(count, last + 2)
            if number == first:
                _probe.start()
            elif number == last + 1:
                _probe.stop()

        root.register_forward_pre_hook(watch)

    @classmethod
    def register_custom_api(cls, module, api, api_prefix=None):
        """Dump a function of the program's own: module.api."""
        cls._get()
        _wrap.add_custom(module, api, api_prefix)

    @classmethod
    def restore_custom_api(cls, module, api):
        _wrap.remove_custom(module, api)


def _check_range(token_range):
    ok = isinstance(token_range, (list, tuple)) and len(token_range) == 2 and \
        all(isinstance(n, int) and n >= 0 for n in token_range) and token_range[0] <= token_range[1]
    if not ok:
        raise ValueError(f"token_range: expected [first, last], found {token_range!r}")
    return token_range


def module_dump(module, dump_name):
    """Dump one module, by a name of the program's own, and no functions meanwhile."""
    debugger = PrecisionDebugger._get()
    if not isinstance(module, torch.nn.Module) or not isinstance(dump_name, str):
        raise ValueError("module_dump(module, name): expected a torch.nn.Module and a text")
    _wrap.take_all()
    _modules.hook_one(module, dump_name,
                      _modules.has_backward(debugger._info["module_backward"]))


def module_dump_end():
    debugger = PrecisionDebugger._get()
    if debugger._info["level"] in ("L1", "mix"):
        _wrap.put_all()
