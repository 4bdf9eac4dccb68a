# SPDX-License-Identifier: MIT
"""The training monitor of MindSpore: figures of activations, gradients, optimizer states and parameters.

    from msprobe.mindspore import TrainerMon

    monitor = TrainerMon("monitor.json", params_have_main_grad=False)
    monitor.set_monitor(net, optimizer, grad_acc_steps=1)

Tensors are looked at when they pass the hooks that MindSpore has for cells and parameters; while a graph is
compiled, the hooks are not there. See probe/python/msprobe/_monitor.py."""
import json
import weakref

import mindspore
from mindspore import communication, nn

from msprobe import _monitor
from msprobe._monitor import (ACTV, ACTV_GRAD, EXP_AVG, EXP_AVG_SQ, GRAD_REDUCED, GRAD_UNREDUCED, PARAM_ORIGIN,
                              PARAM_UPDATED, guarded, say, squashed, surviving)
from msprobe._nested import as_tuple
from msprobe.mindspore import _behind, _cells, _distributed, _gradients, _graphs, _tensors

_Tensor = mindspore.Tensor
# Waits for the operators that run, and raises what one of them raised: an error of the program, which reading a
# tensor would swallow.
_wait = _tensors.executor().sync
_LEFT_OUT = {"mg_direction": "figures of directions", "recording_l2_features": "features of modules",
             "stack_info": "callers of modules", "cc_enable": "figures of communication",
             "invariants": "rules that must hold"}


def _rank():
    return communication.get_rank() if _distributed.is_initialised() else 0


def _nobody():
    """Stands for the monitor in the hooks of a copied cell."""


class _Hook:
    """The hooks of one cell, parameter or optimizer, without effect when the monitor is gone and in copies."""

    def __init__(self, monitor, name):
        self.monitor, self.name, self.number, self.micro = weakref.ref(monitor), name, None, 0
        self.borders = []  # of the calls that run, where their gradients are seen

    def __deepcopy__(self, _memo):
        return _copied()

    def __reduce__(self):
        return _copied, ()

    @surviving
    def after_forward(self, cell, args, *kwargs_and_result):
        monitor = self.monitor()
        if monitor is not None and monitor._due:
            _wait()
            kwargs = kwargs_and_result[0] if len(kwargs_and_result) > 1 else {}
            monitor._after(self, cell, args, kwargs, kwargs_and_result[-1])

    @surviving
    def before_call(self, _cell, args, *_kwargs):
        monitor = self.monitor()
        is_watched = monitor is not None and monitor._due and _gradients.wants_gradients()
        border = monitor._border(self, args) if is_watched else None
        self.borders.append(border)
        others = border.before if border is not None else None
        return (others, *_kwargs) if others is not None and _kwargs else others

    @surviving
    def after_call(self, _cell, _args, *kwargs_and_result):
        border = self.borders.pop() if self.borders else None
        return None if border is None else border.after(kwargs_and_result[-1])

    @surviving
    def after_backward(self, of_inputs, of_results):
        monitor = self.monitor()
        if monitor is not None and monitor._due:
            _wait()
            monitor._went_back(self, as_tuple(of_inputs), as_tuple(of_results))

    @surviving
    def with_gradient(self, gradient):
        monitor = self.monitor()
        if monitor is not None:
            if monitor._due:
                _wait()
            monitor._accumulated(self, gradient)

    @surviving
    def before_step(self, _optimizer, args, *_kwargs):
        monitor = self.monitor()
        if monitor is not None:
            if monitor._due:
                _wait()
            monitor._stepping(args)

    @surviving
    def after_step(self, _optimizer, _args, *_kwargs_and_result):
        monitor = self.monitor()
        if monitor is not None:
            if monitor._due:
                _wait()
            monitor._stepped()
            if monitor._is_over:
                monitor._take_gradient_hooks()


def _copied():
    hook = _Hook.__new__(_Hook)
    hook.monitor, hook.name, hook.number, hook.micro, hook.borders = _nobody, "", None, 0, []
    return hook


def _tensors_in(values):
    return [v for v in values if isinstance(v, _Tensor)]


class _Parameter:
    """A watched parameter."""

    __slots__ = ("reference", "name", "is_duplicate")

    def __init__(self, parameter, name, is_duplicate):
        self.reference, self.name, self.is_duplicate = weakref.ref(parameter), name, is_duplicate

    def get(self):
        return self.reference()


class TrainerMon(_monitor.BaseMonitor):
    """The official monitor: figures of a training, step by step, as config_file_path asks."""

    _tensor_type = _Tensor

    def __init__(self, config_file_path, process_group=None, params_have_main_grad=True) -> None:
        self._handles = []  # of hooks of cells that a new config replaces
        self._step_handles = []  # of the optimizer, for good
        self._cells = []  # those with hooks, the optimizer first
        self._gradients = []  # [parameter, hook, handle]
        self._parameters, self._chunks = [], []
        self._cells_called = 0
        self._optimizer = None
        self._micro_steps = 1
        self._dp_group = self._tp_group = None
        self.process_group, self.params_have_main_grad = process_group, params_have_main_grad
        super().__init__(config_file_path, _rank(), 0, [0])
        self._squash = json.loads(self._text).get("squash_name", True)  # as the official monitor of MindSpore
        for key, what in _LEFT_OUT.items():
            if self.config[key]:
                say(f"{key}: there are no {what} for MindSpore; the others are written")

    # ---- the official interface -------------------------------------------------

    def set_monitor(self, model, optimizer, grad_acc_steps=1, tp_group=None, dp_group=None, start_iteration=0):
        """Watches a cell, or the list of its chunks, and its optimizer. grad_acc_steps: backwards in a step."""
        self._micro_steps = grad_acc_steps if isinstance(grad_acc_steps, int) and grad_acc_steps > 0 else 1
        self._step = start_iteration if isinstance(start_iteration, int) and start_iteration >= 0 else 0
        self._dp_group, self._tp_group = dp_group, tp_group
        self._set_up(model, optimizer)

    # ---- hooks --------------------------------------------------------------------

    @guarded
    def _set_up(self, model, optimizer):
        self._chunks = [weakref.ref(m) for m in (model if isinstance(model, (list, tuple)) else [model])]
        if mindspore.get_context("mode") != mindspore.PYNATIVE_MODE:
            say("the program runs graphs (GRAPH_MODE), in which nothing can be watched; use level L2 of the dump")
            self._is_over = True
            return
        _graphs.watch()
        _cells.watchers.add(self)
        self._hook_steps(optimizer)
        if not self._is_dynamic:
            self._hook()
        self._look_ahead()

    def _make_board(self):
        say("format tensorboard: not for MindSpore; csv is written instead")

    def _hook(self):
        self._find_parameters()
        if self._writer is None:
            return
        if self.config["wg_distribution"]:
            for one in self._parameters:
                self._gradients.append([one, _Hook(self, one.name).with_gradient, None])
            self._put_gradient_hooks()
        self._hook_cells()

    def _put_gradient_hooks(self):
        for each in self._gradients:
            parameter = each[0].get()
            if parameter is not None and each[2] is None:
                each[2] = parameter.register_hook(each[1])

    def _take_gradient_hooks(self):
        for each in self._gradients:
            if each[2] is not None:
                each[2].remove()
                each[2] = None

    def _unhook(self):
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for table in self._tables():
            _behind.give_back(table)
        if not self._is_over:  # else one of them may be running, whose removal MindSpore does not survive
            self._take_gradient_hooks()
            self._gradients.clear()
        del self._cells[1:]
        if self._writer is not None:
            self._writer.drop()

    def _tables(self):
        cells = [cell for cell in (ref() for ref in self._cells) if cell is not None]
        return [table for cell in cells for table in (cell._forward_pre_hook, cell._forward_hook)]

    def without_hooks(self):
        """Removes all hooks, which a compiler would take for parts of the program, until the returned function is
        called."""
        back = [_cells.without(table) for table in self._tables()]
        self._take_gradient_hooks()

        def put_all():
            for put in filter(None, back):
                put()
            self._put_gradient_hooks()

        return put_all

    def _models(self):
        return [(f"{stage}:", m) for stage, m in enumerate(ref() for ref in self._chunks) if m is not None]

    def _is_target(self, name, prefix):
        return not self.config["targets"] or super()._is_target(name, prefix)

    def _find_parameters(self):
        self._parameters, names = [], set()
        for prefix, model in self._models():
            for name, parameter in model.parameters_and_names():
                if not parameter.requires_grad or not self._is_target(name, prefix):
                    continue
                known = prefix + squashed(name, self._squash)
                known = prefix + name if known in names else known
                names.add(known)
                self._parameters.append(_Parameter(parameter, known, self._is_duplicate(parameter)))

    def _is_duplicate(self, parameter):
        """Tells whether another rank writes the gradient, which is the same there."""
        rank_in = mindspore.mint.distributed.get_rank
        if self._tp_group and not (getattr(parameter, "tensor_model_parallel", False) or
                                   rank_in(group=self._tp_group) == 0):
            return True
        return bool(self._dp_group) and rank_in(group=self._dp_group) != 0

    def _hook_cells(self):
        if not (self.config["xy_distribution"] or self.config["print_struct"]):
            return
        targets = {t if ":" in t else prefix + t for t in self.config["targets"] for prefix, _ in self._models()}
        names = set()
        for prefix, model in self._models():
            for path, cell in model.cells_and_names():
                name = self._target_of(path, prefix, targets)
                if name:
                    name = prefix + path if name in names else name  # whose short name another cell has
                    names.add(name)
                    self._hook_cell(cell, name)
        if not names:
            say(f"targets: no cell has one of the names {sorted(targets)}")

    def _hook_cell(self, cell, name):
        self._cells.append(weakref.ref(cell))
        if not self.config["backward_only"]:
            self._handles.append(_behind.register_after(cell, _Hook(self, name).after_forward))
        if not self.config["forward_only"]:
            hook = _Hook(self, name)
            self._handles += [_behind.register_before(cell, hook.before_call),
                              _behind.register_after(cell, hook.after_call)]

    def _hook_steps(self, optimizer):
        cell = optimizer if isinstance(optimizer, nn.Cell) else getattr(optimizer, "optimizer", None)
        if not isinstance(cell, nn.Cell):
            raise TypeError(f"expected an optimizer of MindSpore, found {type(optimizer).__name__}")
        self._optimizer, hook = weakref.ref(cell), _Hook(self, "")
        self._cells.append(self._optimizer)
        self._step_handles = [_behind.register_before(cell, hook.before_step),
                              _behind.register_after(cell, hook.after_step)]

    # ---- activations ----------------------------------------------------------------

    @guarded
    def _border(self, hook, args):
        return _gradients.Border(hook.name, hook.after_backward, args)

    @guarded
    def _after(self, hook, cell, args, kwargs, result):
        if hook.number is None:
            hook.number = self._cells_called
            self._cells_called += 1
        inputs = _tensors_in(args) + _tensors_in(kwargs.values())
        if self.config["print_struct"]:
            self._struct.setdefault(hook.name, {}).update(input=self._shapes(inputs), output=self._shapes(result))
        elif cell.training:
            self._put_side(ACTV, hook.number, f"{hook.name}.input", hook.micro, inputs)
            results = _tensors_in(result) if isinstance(result, tuple) else result
            self._put_side(ACTV, hook.number, f"{hook.name}.output", hook.micro, results)
            hook.micro = (hook.micro + 1) % self._micro_steps

    @guarded
    def _went_back(self, hook, of_inputs, of_results):
        if self.config["print_struct"]:
            self._struct.setdefault(hook.name, {}).update(input_grad=self._shapes(of_inputs),
                                                          output_grad=self._shapes(of_results))
            return
        self._put_side(ACTV_GRAD, 0, f"{hook.name}.input", hook.micro, _tensors_in(of_inputs))
        self._put_side(ACTV_GRAD, 0, f"{hook.name}.output", hook.micro, of_results)
        hook.micro = (hook.micro + 1) % self._micro_steps

    # ---- gradients, states, parameters ---------------------------------------------------

    @guarded
    def _accumulated(self, hook, gradient):
        is_last = hook.micro + 1 == self._micro_steps
        name = f"{hook.name}:{hook.micro}" if self.config["monitor_mbs_grad"] else hook.name
        hook.micro = (hook.micro + 1) % self._micro_steps
        if self._due and (is_last or self.config["monitor_mbs_grad"]):
            self._writer.put(GRAD_UNREDUCED, 0, name, gradient)

    @guarded
    def _stepping(self, args):
        """Called before the optimizer steps: the backward is over."""
        _gradients.settle()
        if not self._due:
            return
        if self.config["wg_distribution"]:
            self._put_gradients(args)
        if self.config["mv_distribution"]:
            self._put_states()
        if self.config["param_distribution"]:
            self._put_parameters(PARAM_ORIGIN)

    @guarded
    def _stepped(self):
        """Called after the optimizer has stepped, which ends the step."""
        if self._due and self.config["param_distribution"]:
            self._put_parameters(PARAM_UPDATED)
        if self._due and self.config["print_struct"]:
            self._write_struct()
        self._end_step()

    def _given_gradients(self, args):
        """Returns {id of a parameter: gradient} of what the optimizer is called with."""
        given = args[0] if args and isinstance(args[0], (tuple, list)) else ()
        mine = getattr(self._optimizer(), "parameters", ())
        return {id(p): g for p, g in zip(mine, given) if isinstance(g, _Tensor)} if len(mine) == len(given) else {}

    def _put_gradients(self, args):
        given = self._given_gradients(args)
        for one in self._parameters:
            parameter = one.get()
            if parameter is None or one.is_duplicate:
                continue
            gradient = getattr(parameter, "main_grad", None)
            gradient = getattr(parameter, "grad", None) if gradient is None else gradient
            gradient = given.get(id(parameter)) if gradient is None else gradient
            if gradient is not None:
                self._writer.put(GRAD_REDUCED, 0, one.name, gradient)

    def _put_states(self):
        """Takes the states by the names that mint's optimizers give them: exp_avg.NAME and exp_avg_sq.NAME; amsgrad
        has max_exp_avg_sq.NAME as well."""
        names = {p.name: one.name for one in self._parameters for p in [one.get()] if p is not None}
        for name, state in self._optimizer().parameters_and_names():
            kind, _, of = name.partition(".")
            known = names.get(of, f"0:{of}")
            if kind == "max_exp_avg_sq":
                stage, _, known = known.partition(":")
                known = f"{stage}:{kind}.{known}"
            if kind.endswith("exp_avg_sq"):
                self._writer.put(EXP_AVG_SQ, 0, known, state)
            elif kind == "exp_avg":
                self._writer.put(EXP_AVG, 0, known, state)

    def _put_parameters(self, metric):
        for one in self._parameters:
            parameter = one.get()
            if parameter is not None and parameter.size != 0:
                self._writer.put(metric, 0, one.name, parameter)
