# SPDX-License-Identifier: MIT
"""PrecisionDebugger of MindSpore."""
import os

import mindspore
from mindspore import communication

from msprobe import _probe, _say
from msprobe._debugger import BaseDebugger, unharmed
from msprobe._saved import SavedGradients
from msprobe.mindspore import (_cells, _distributed, _gradients, _graph_dump, _graphs,
                               _optimizer, _strict, _tensors, _wrap)

_tensors.tell(_gradients.watched_call)


_hooks = []  # hooks of parameters, which outlive the step


def _watch_gradient(value, then):
    """Registers a hook for SavedGradients. A parameter gets a gradient at each use, also after
    saving."""
    if not isinstance(value, mindspore.Tensor):
        return None
    if isinstance(value, mindspore.Parameter):
        if value.requires_grad:
            _hooks.append(value.register_hook(then))
        return value.requires_grad
    if not _tensors.may_have_gradient(value) or not _tensors.executor().requires_grad():
        return False
    value.register_hook(then)
    return True


def runs_graphs():
    """Tells whether the program runs compiled graphs instead of single functions."""
    return mindspore.get_context("mode") != mindspore.PYNATIVE_MODE


def _task_of(task, level):
    """Returns the task of the dump; a dry run of the framework computes no values, so its structure
    is dumped, except what the program saves by hand."""
    if level == "debug" or not os.environ.get("MS_SIMULATION_LEVEL", "").strip():
        return task
    _say.say("MS_SIMULATION_LEVEL is set: a dry run computes no values, so only its structure is dumped")
    return "structure"


class PrecisionDebugger(BaseDebugger):
    """Dumps a training run as config.json says; arguments go before the file.

    config_path: the path of config.json; without one, the arguments and defaults alone.
    task: what is dumped: statistics, tensor, structure, nan_check or overflow_check.
    dump_path: the folder of the dumps.
    level: where values are taken: L0 (cells), L1 (functions), mix (both), L2 (kernels), debug (by hand).
    step: the numbers of the steps that are dumped; an empty list: all.

    A process has one debugger: making another one returns the first."""

    framework = "mindspore"
    _functions, _optimizers, _modules = _wrap, _optimizer, _cells
    _levels_of_models = ("L0", "L1", "mix")
    _graph_folder = None  # where the framework dumps graphs
    _has_frames = False  # of cells before those of functions are known
    _given = ()  # arguments of the constructor

    def __init__(self, config_path: str = None, task: str = None, dump_path: str = None,
                 level: str = None, step: list = None):
        if self._is_open:
            return
        self._given = config_path, task, dump_path, step
        if not _graph_dump.is_asked_for(config_path, level):
            known = level or _graph_dump.read_config(config_path).get("level")
            super().__init__(config_path, _task_of(task, known), dump_path, level, step)
            return
        try:
            self._graph_folder = _graph_dump.drive(*self._given)
        except BaseException:
            BaseDebugger._forget(type(self))
            raise
        self._info, self._grads, self._tokens = {"level": _graph_dump.LEVEL}, [], None
        self._is_open = True

    def _dump_graphs(self):
        """Has the framework dump its graphs, as the program runs graphs."""
        if self._graph_folder is None:
            self._graph_folder = _graph_dump.drive_or_note(*self._given)
            _graphs.tell_no_more()
            _say.say(f"the program runs graphs; mindspore dumps them to {self._graph_folder}")

    def _dumps_graphs_alone(self):
        return self._info["level"] == _graph_dump.LEVEL

    @classmethod
    @unharmed
    def start(cls, model=None, token_range: list = None, rank_id: int = None, scheduled_tokens=None):
        """Begin to collect, when the step and the rank are among those chosen.

        model: the model, or a list of its chunks; the levels L0 and mix need it.
        token_range: two numbers; only calls of the model from the first to the second are collected.
        rank_id: the rank of this process, if the framework does not know it.
        What runs in graphs the framework dumps."""
        self = cls._get()
        if self._dumps_graphs_alone():
            _graphs.name_kernels_by_cells(model)
        elif runs_graphs() and self._info["level"] != "debug":
            _graphs.name_kernels_by_cells(model)
            self._dump_graphs()
        else:
            if self._info["strict"] and not self._has_frames:
                self._find_frames()
            super().start(model, token_range, rank_id, scheduled_tokens)

    def _find_frames(self):
        self._has_frames = True
        _probe.set_call_frames(_probe.hidden(_strict.frames_before_a_function))

    def _setup(self):
        super()._setup()
        _gradients.set_strict(self._info["strict"])
        _graphs.watch()

    def _has_backward(self):
        return not self._info["forward_only"]

    def _hook_model(self):
        model = self._model() if self._model is not None else None
        if model is None:
            return  # the model was freed, or the level needs one that was not passed
        if self._info["level"] != "L1":
            _cells.hook_model(model, self._has_backward())
        if self._info["level"] != "L0":
            _wrap.put_primitives(_cells.all_cells(model))

    def _after_stop(self):
        _cells.unhook()

    def _rank(self):
        return communication.get_rank() if _distributed.is_initialised() else None

    @classmethod
    @unharmed
    def stop(cls):
        """Collect no more until the next start."""
        _graphs.end_traces()
        if not _probe.idle() or cls._get()._is_put:
            _tensors.executor().sync()
            _gradients.settle()
            super().stop()

    forward_backward_dump_end = stop

    @classmethod
    @unharmed
    def step(cls):
        """The step is over: its files are finished, calls are counted from 0."""
        if not cls._get()._dumps_graphs_alone():
            _gradients.settle()
            super().step()

    def _save_grads(self):
        super()._save_grads()
        while _hooks:
            _hooks.pop().remove()

    def _watch_grads(self, variable, name, number):
        self._grads.append(SavedGradients(variable, name, number, _watch_gradient))


module_dump = PrecisionDebugger._module_dump
module_dump_end = PrecisionDebugger._module_dump_end
