# SPDX-License-Identifier: MIT
"""PrecisionDebugger of PyTorch."""
import torch

from msprobe import _probe
from msprobe._debugger import BaseDebugger
from msprobe._saved import SavedGradients
from msprobe.pytorch import _compilers, _modules, _optimizer, _tensors, _wrap  # noqa: F401


_HAS_RANKS = torch.distributed.is_available()


def _watch_gradient(value, then):
    """Registers a hook for SavedGradients."""
    if not isinstance(value, torch.Tensor):
        return None
    if value.requires_grad:
        value.register_hook(then)
    return value.requires_grad


class PrecisionDebugger(BaseDebugger):
    """Dumps a training run as config.json says; arguments go before the file.

    config_path: the path of config.json; without one, the arguments and defaults alone.
    task: what is dumped: statistics, tensor, structure, nan_check or overflow_check.
    dump_path: the folder of the dumps.
    level: where values are taken: L0 (modules), L1 (functions), mix (both), debug (by hand).
    step: the numbers of the steps that are dumped; an empty list: all.

    A process has one debugger: making another one returns the first."""

    framework = "pytorch"
    _functions, _optimizers, _modules = _wrap, _optimizer, _modules

    def _has_backward(self):
        """Tells whether the backward of modules is recorded. Before version 2 the official tool
        does not record it, so it is recorded only on request."""
        return _modules.VERSION >= (2, 0) or bool(self._info["module_backward"])

    def _make_loader(self, load):
        from msprobe.pytorch._load import Loader
        return Loader(load)

    def _setup(self):
        super()._setup()
        _compilers.skip_functions()
        if self._info["level"] in ("L1", "mix"):
            _wrap.find_operators(self._info["op_namespaces"])

    def _begin(self):
        """Starts the dumper; the first start searches for extensions loaded since construction."""
        collects = super()._begin()
        if collects and not self._has_begun:
            self._has_begun = True
            self._setup()
        level = self._info["level"]
        if collects and level in ("L1", "mix"):
            _modules.watch_around()  # a tracer would take what is done for a record into its graph
        if collects and level == "mix":
            _optimizer.watch()
        return collects

    _has_begun = False

    def _hook_model(self):
        model = self._model() if self._model is not None else None
        if model is None:
            return  # the model was freed, or the level needs one that was not passed
        try:
            _probe.ask(_modules.hook_model, model, self._has_backward(), not self._info["forward_only"])
        except Exception as why:
            if _probe.is_alien(why):
                raise
            _probe.switch_off(f"the hooks of a model: {why!r}")

    def _after_stop(self):
        _wrap.take_all()
        _optimizer.leave()
        _modules.unhook()

    def _rank(self):
        dist = torch.distributed
        return dist.get_rank() if _HAS_RANKS and dist.is_initialized() else None

    def _watch_grads(self, variable, name, number):
        self._grads.append(_probe.ask(SavedGradients, variable, name, number, _watch_gradient))


module_dump = PrecisionDebugger._module_dump
module_dump_end = PrecisionDebugger._module_dump_end
