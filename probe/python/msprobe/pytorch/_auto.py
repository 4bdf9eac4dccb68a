# SPDX-License-Identifier: MIT
"""A dump of a PyTorch script without changes to the script: see msprobe/_auto.py."""
from torch.nn.modules.module import register_module_forward_pre_hook

from msprobe import _auto, _probe
from msprobe.pytorch import _modules
from msprobe.pytorch._debugger import PrecisionDebugger


class _Watch(_auto.Watch):
    def _parts_of(self, root):
        return (module for module in root.modules() if module is not root)

    def _hook_model(self, root, prefix):
        with_gradients = not self._debugger._info["forward_only"]
        _modules.hook_model(root, self._debugger._has_backward(), with_gradients, prefix)

    def _begin(self):
        super()._begin()
        if self._debugger._info["level"] in ("L0", "mix") and _probe.active():
            _modules.hook_known(not self._debugger._info["forward_only"])


def attach(config):
    """Dumps this process as config.json configures."""
    watch = _auto.watch(config, PrecisionDebugger, _Watch)
    if watch is not None:
        register_module_forward_pre_hook(lambda module, _args: watch.called(module))
