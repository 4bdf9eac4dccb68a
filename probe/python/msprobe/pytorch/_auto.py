# SPDX-License-Identifier: MIT
"""A dump of a PyTorch script without changes to the script: see msprobe/_auto.py."""
import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from msprobe import _auto, _probe
from msprobe.pytorch import _compilers, _fast_path, _modules, _optimizer
from msprobe.pytorch._debugger import PrecisionDebugger


_CALLS = 3  # a group of watched functions


class _Watch(_auto.Watch):
    def called(self, module, _when=None):
        if _fast_path.is_deciding():
            _fast_path.put_back()
        # not a compiler's own module around the model, nor one whose base class the program has not initialised
        if not _modules.is_read() and "_modules" in object.__getattribute__(module, "__dict__"):
            super().called(module)

    def _parts_of(self, root):
        return (module for module in root.modules() if module is not root)

    def _hook_model(self, root, prefix):
        with_gradients = not self._debugger._info["forward_only"]
        _probe.ask(_modules.hook_model, root, self._debugger._has_backward(), with_gradients, prefix)

    def _begin(self):
        super()._begin()
        if self._debugger._info["level"] in ("L0", "mix") and _probe.active():
            _probe.ask(_modules.hook_known, not self._debugger._info["forward_only"])


def attach(config):
    """Dumps this process as config.json configures."""
    watch = _auto.watch(config, PrecisionDebugger, _Watch)
    if watch is None:
        return
    _compilers.skip_functions()  # the first step may begin inside compiled code
    _optimizer.watch_for_good()
    if _modules.VERSION < (2, 1):  # where the function is watched for exceptions
        register_module_forward_pre_hook(lambda module, _args: watch.called(module))
    else:  # compilers warn of hooks of all modules
        _probe.watch(torch.nn.Module.__call__, watch.called, _CALLS, _modules.BEFORE)
        _probe.watching(True, _CALLS)
    _modules.watch_for_good()  # after the watch of calls, which a function can have one of
