# SPDX-License-Identifier: MIT
"""PrecisionDebugger of MindSpore, in PyNative mode."""
import mindspore
from mindspore import communication

from msprobe import _probe
from msprobe._debugger import BaseDebugger
from msprobe._saved import SavedGradients
from msprobe.mindspore import _cells, _distributed, _gradients, _optimizer, _tensors, _wrap

_tensors.tell(_gradients.watched_call)


def _watch_gradient(value, then):
    """For SavedGradients."""
    if not isinstance(value, mindspore.Tensor):
        return None
    if not _tensors.may_have_gradient(value) or not _tensors.executor().requires_grad():
        return False
    value.register_hook(then)
    return True


def runs_graphs():
    """Whether the program does not run function by function, which is what can be dumped."""
    return mindspore.get_context("mode") != mindspore.PYNATIVE_MODE


class PrecisionDebugger(BaseDebugger):
    """Dumps a training run as config.json says; arguments go before the file.

    config_path: the file; task, dump_path, level, step: as its keys."""

    framework = "mindspore"
    _functions, _optimizers, _modules = _wrap, _optimizer, _cells
    _levels_of_models = ("L0", "L1", "mix")

    def _has_backward(self):
        return not self._info["forward_only"]

    def _check_model(self, model):
        if runs_graphs():
            raise ValueError("start: graphs are not dumped; "
                             "set_context(mode=mindspore.PYNATIVE_MODE) runs them as they are")
        super()._check_model(model)

    def _hook_model(self):
        if self._model is None:
            return  # the level has become one that needs it, or needs none
        if self._info["level"] != "L1":
            _cells.hook_model(self._model, self._has_backward())
        if self._info["level"] != "L0":
            _wrap.put_primitives(_cells.all_cells(self._model))

    def _rank(self):
        return communication.get_rank() if _distributed.is_initialised() else None

    @classmethod
    def stop(cls):
        """Collect no more until the next start."""
        if not _probe.idle():
            _tensors.executor().sync()
            _gradients.settle()
            super().stop()

    forward_backward_dump_end = stop

    def _watch_grads(self, variable, name, number):
        self._grads.append(SavedGradients(variable, name, number, _watch_gradient))


module_dump = PrecisionDebugger._module_dump
module_dump_end = PrecisionDebugger._module_dump_end
