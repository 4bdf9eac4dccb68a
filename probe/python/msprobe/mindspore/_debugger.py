# SPDX-License-Identifier: MIT
"""PrecisionDebugger of MindSpore, in PyNative mode."""
import mindspore
from mindspore import communication, nn

from msprobe import _probe
from msprobe._debugger import BaseDebugger
from msprobe._roots import inside
from msprobe._saved import SavedGradients
from msprobe.mindspore import _cells, _distributed, _gradients, _tensors, _wrap

_tensors.tell(_gradients.watched_call)


def _watch_gradient(value, then):
    """For SavedGradients."""
    if not isinstance(value, mindspore.Tensor):
        return None
    if not _tensors.may_have_gradient(value) or not _tensors.executor().requires_grad():
        return False
    value.register_hook(then)
    return True


def _optimizers():
    """Their base classes; calling one is a step."""
    yield nn.Optimizer
    experimental = getattr(mindspore, "experimental", None)
    optim = getattr(experimental, "optim", None)
    if optim is not None:
        yield optim.Optimizer


class PrecisionDebugger(BaseDebugger):
    """Dumps a training run as config.json says; arguments go before the file.

    config_path: the file; task, dump_path, level, step: as its keys."""

    framework = "mindspore"

    def _setup(self):
        level = self._info["level"]
        if level in ("L1", "mix"):
            _wrap.put_all()
        if level == "mix":
            for cls in _optimizers():
                if not getattr(cls.__call__, "_is_inside", False):
                    cls.__call__ = inside(cls.__call__, "optimizer")

    def _check_model(self, model):
        if mindspore.get_context("mode") != mindspore.PYNATIVE_MODE:
            raise ValueError("start: graphs are not dumped; "
                             "set_context(mode=mindspore.PYNATIVE_MODE) runs them as they are")
        if model is not None:
            _cells.check(model)
            self._model = model
        elif getattr(self, "_model", None) is None and self._info["level"] in ("L0", "mix"):
            raise ValueError("start(model): the levels L0 and mix need the model")

    def _hook_model(self):
        if getattr(self, "_model", None) is not None:
            _cells.hook_model(self._model, not self._info["forward_only"])
            if self._info["level"] == "mix":
                _wrap.put_primitives(_cells.all_cells(self._model))

    def _rank(self):
        return communication.get_rank() if _distributed.is_initialised() else None

    @classmethod
    def stop(cls):
        """Collect no more until the next start."""
        _tensors.executor().sync()
        super().stop()

    forward_backward_dump_end = stop

    def _watch_grads(self, variable, name, number):
        self._grads.append(SavedGradients(variable, name, number, _watch_gradient))
