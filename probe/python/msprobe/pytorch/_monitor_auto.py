# SPDX-License-Identifier: MIT
"""A monitor of a PyTorch script without changes to the script: `msprobe run --monitor config.json`, or
`--invariants`, which has no file.

A model is watched from its first call in training on, under the names that it has inside of what is called. A
step ends when the first optimizer that holds one of its parameters has stepped. Each model that is called on its
own has a monitor, with a folder, of its own."""
import os
import sys
import weakref

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from msprobe import _monitor, _probe
from msprobe.pytorch import _compilers, _fast_path, _modules
from msprobe.pytorch._monitor import TrainerMon, _is_untouchable, _owned

_CALLS = 4  # a group of watched functions


class _Watched(TrainerMon):
    """The monitor of one model, which finds its optimizer."""

    def __init__(self, config, model):
        super().__init__(config, params_have_main_grad=False)
        self.config["invariants"] |= os.environ.get("MSPROBE_INVARIANTS") == "1"
        self._leader = None
        self._chunks = [weakref.ref(model)]
        self._watch_model()

    @_monitor.guarded
    def _watch_model(self):
        if not self._is_dynamic:
            self._hook()
        self._look_ahead()

    def follows(self, optimizer):
        if self._leader is None:
            model = self._chunks[0]()
            own = {id(entry[-1]) for entry in _owned(model)} if model is not None else set()
            if any(id(p) in own for group in optimizer.param_groups for p in group["params"]):
                self._leader = weakref.ref(optimizer)
        return self._leader is not None and self._leader() is optimizer


class _Watch:
    def __init__(self, config):
        self._config = config
        self._monitors = []
        self._parts = {}  # number of a module of a known model -> a weak reference
        self._is_over = False

    def monitor(self):
        return self

    @_monitor.surviving
    def called(self, module, _when=None):
        if _fast_path.is_deciding():
            _fast_path.put_back()
        known = self._parts.get(id(module))
        if known is not None and known() is module:
            return
        if module.training and not self._is_over and not _is_untouchable():
            self._meet(module)

    @_monitor.guarded
    def _meet(self, module):
        if not any(parameter.requires_grad for *_, parameter in _owned(module)):
            return
        for part in module.modules():
            self._parts[id(part)] = weakref.ref(part)
        self._monitors.append(_Watched(self._config, module))

    @_monitor.surviving
    def stepping(self, optimizer, args, kwargs):
        for one in self._monitors:
            if one.follows(optimizer):
                one._stepping(optimizer, args, kwargs)

    @_monitor.surviving
    def stepped(self, optimizer, args, kwargs):
        for one in self._monitors:
            if one.follows(optimizer):
                one._stepped(optimizer, args, kwargs)

    def _give_up(self, why):
        self._is_over = True
        _monitor.say(f"{why}; this process is not monitored")


def attach(config):
    """Monitors this process as config.json asks; a mistake in the file ends the program at once."""
    try:
        _monitor.read_config(config)
    except (OSError, ValueError) as why:
        print(f"msprobe: {why}", file=sys.stderr, flush=True)
        os._exit(2)  # a framework half imported can crash at a regular exit
    hooks = sys.modules.get("torch.optim.optimizer")
    if not hasattr(hooks, "register_optimizer_step_pre_hook"):
        _monitor.say(f"PyTorch {torch.__version__} has no hooks of all optimizers (2.0 has); the program is not "
                     "monitored")
        return
    _compilers.skip_functions()  # the model may be compiled before it is met
    watch = _Watch(config)
    hooks.register_optimizer_step_pre_hook(watch.stepping)
    hooks.register_optimizer_step_post_hook(watch.stepped)
    if _modules.VERSION < (2, 1) or os.environ.get("MSPROBE_DUMP"):  # the dump has that function
        register_module_forward_pre_hook(watch.called)
    else:  # compilers warn of hooks of all modules
        _probe.watch(torch.nn.Module.__call__, watch.called, _CALLS, _modules.BEFORE)
        _probe.watching(True, _CALLS)
