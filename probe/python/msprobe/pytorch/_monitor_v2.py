# SPDX-License-Identifier: MIT
"""Hooks of PyTorch for the monitor of the second generation: see msprobe/core/monitor_v2.py."""
import torch

from msprobe import _monitor
from msprobe._nested import is_a
from msprobe.pytorch import _modules
from msprobe.pytorch._monitor import _all_states, _Hook, _is_untouchable, _main_gradient, _owned, _Parameter, _places, _ranks

_Tensor = torch.Tensor


def rank():
    return _ranks(None)[0]


def _chunks(model):
    if isinstance(model, (list, tuple)):
        return [(f"{i}:", m) for i, m in enumerate(model) if m is not None]
    return [("", model)] if model is not None else []


class _Before(_Hook):
    __slots__ = ()

    @_monitor.surviving
    def __call__(self, module, args, kwargs=None):
        hooks = self.monitor()
        if hooks is not None and not _is_untouchable():
            hooks.before(self, args, kwargs or {})


class _After(_Hook):
    __slots__ = ("first",)

    @_monitor.surviving
    def __call__(self, module, args, *kwargs_and_result):
        hooks = self.monitor()
        if hooks is not None and not _is_untouchable():
            hooks.after(self, kwargs_and_result[-1])


class _Backward:
    """What is told of the gradients of one call: see _modules._Gradients."""

    __slots__ = ("hooks", "name", "given")

    def __init__(self, hooks, name):
        self.hooks, self.name, self.given = hooks, name, ()

    def input(self, gradients):
        self.given = gradients

    def output(self, gradients):
        self.hooks.went_back(self.name, gradients, self.given)

    def done(self):
        pass

    def leave(self):
        return False


class Hooks:
    """All hooks of one monitor."""

    def __init__(self, owner, rows):
        self._owner, self._rows = owner, rows
        self._handles, self._nodes, self._parameters = [], [], []
        self._optimizer, self._micro_steps, self._counts = None, 1, {}

    @property
    def _is_over(self):
        return self._owner._is_over

    def _give_up(self, why):
        self._owner._give_up(why)

    def put(self, model, optimizer, context, ends_steps):
        if self._handles:
            return
        self._optimizer = optimizer
        chunks = _chunks(model)
        self._parameters = [_Parameter(module, key, prefix + name, False) for prefix, chunk in chunks
                            for name, module, key, _p in _owned(chunk)]
        if "module" in self._rows:
            self._hook_modules(chunks)
        if "weight_grad" in self._rows and optimizer is not None:
            self._hook_gradients(context)
        if optimizer is not None:
            self._handles += [optimizer.register_step_pre_hook(self._stepping),
                              optimizer.register_step_post_hook(self._stepped)]
            self._ends_steps = ends_steps

    _ends_steps = False

    def take(self):
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._nodes.clear()

    # ---- modules ------------------------------------------------------------------

    def _hook_modules(self, chunks):
        targets = self._rows["module"].config.get("targets", [])
        for prefix, chunk in chunks:
            for path, module in chunk.named_modules():
                name = prefix + path
                if targets and not any(word in name for word in targets):
                    continue
                after = _After(self, name, None)
                after.first = _Before(self, name, None)
                self._handles += [module.register_forward_pre_hook(after.first, with_kwargs=True),
                                  module.register_forward_hook(after)]

    def _put_all(self, name, values, scope, first=0):
        if is_a(values, _Tensor):
            values = (values,)
        for value in values if is_a(values, (list, tuple)) else ():
            if is_a(value, _Tensor):
                self._rows["module"].put(f"{name}.{first}", scope, value)
                first += 1
        return first

    @_monitor.guarded
    def before(self, hook, args, kwargs):
        if self._owner.is_due():
            number = self._put_all(f"{hook.name}.input", args, "forward")
            self._put_all(f"{hook.name}.input", tuple(kwargs.values()), "forward", number)
        if torch.is_grad_enabled():
            tensors, places = _places(args)
            edges = {_modules._edge(t): i for i, t in enumerate(tensors)}
            hook.open.append((edges, places, _modules._sequence and _modules._sequence()))
        else:
            hook.open.append(None)

    @_monitor.guarded
    def after(self, hook, result):
        if self._owner.is_due():
            self._put_all(f"{hook.name}.output", result, "forward")
        began = hook.first.open.pop() if hook.first.open else None
        if began is None:
            return
        results, places_out = _places(result if is_a(result, tuple) else (result,))
        if results:
            edges, places, number = began
            _modules.watch_call(_Backward, (self, hook.name), edges, places, results, places_out, number)

    @_monitor.guarded
    def went_back(self, name, of_inputs, of_results):
        if self._owner.is_due():
            self._put_all(f"{name}.grad_input", of_inputs, "backward")
            self._put_all(f"{name}.grad_output", of_results, "backward")

    # ---- gradients, parameters, states ------------------------------------------------

    def _hook_gradients(self, context):
        config = self._rows["weight_grad"].config
        for where, key in ((config, "micro_batch_number"), (config, "grad_acc_steps"),
                           (context, "micro_batch_number"), (context, "grad_acc_steps")):
            if isinstance(where.get(key), int) and where[key] > 0:
                self._micro_steps = where[key]
                break
        for one in self._parameters:
            parameter = one.get()
            if parameter.requires_grad and parameter.is_leaf:
                self._counts[one.name] = 0
                self._handles.append(self._hook_node(parameter, one))

    def _hook_node(self, parameter, one):
        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            return parameter.register_post_accumulate_grad_hook(lambda p: self._accumulated(one, p))
        with torch.enable_grad():
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        self._nodes.append(node)
        return node.register_hook(lambda *_: self._accumulated(one, one.get()))

    @_monitor.guarded
    def _accumulated(self, one, parameter):
        each = self._rows["weight_grad"].config.get("monitor_mbs_grad", False) is True
        count = self._counts[one.name] + 1
        self._counts[one.name] = 0 if count >= self._micro_steps else count
        if self._owner.is_due() and (each or count >= self._micro_steps):
            gradient = _main_gradient(parameter)
            if gradient is not None:
                self._rows["weight_grad"].put(one.name, "unreduced", gradient, count if each else self._micro_steps)

    @_monitor.guarded
    def _stepping(self, _optimizer, _args, _kwargs):
        if not self._owner.is_due():
            return
        if "weight_grad" in self._rows:
            for one in self._parameters:
                gradient = _main_gradient(one.get())
                if gradient is not None:
                    self._rows["weight_grad"].put(one.name, "reduced", gradient, self._micro_steps)
        self._put_parameters("param_origin")

    @_monitor.guarded
    def _stepped(self, _optimizer, _args, _kwargs):
        if self._owner.is_due():
            self._put_parameters("param_updated")
        if self._ends_steps:
            self._owner.step(from_optimizer=True)

    def _put_parameters(self, scope):
        rows = self._rows.get("param")
        if rows is None or not rows.config.get("param_distribution", True):
            return
        for one in self._parameters:
            parameter = one.get()
            if parameter is not None and parameter.numel() != 0:
                rows.put(one.name, scope, parameter)

    def states(self):
        """Puts the optimizer's states, at the end of a step."""
        rows = self._rows.get("optimizer")
        if rows is None or self._optimizer is None or not self._owner._is_wanted(self._owner.current_step - 1) or \
                not rows.config.get("mv_distribution", True):
            return
        states = _all_states(self._optimizer)
        for key in ("exp_avg", "exp_avg_sq"):
            for one in self._parameters:
                state = states(one.get())
                if state and state.get(key) is not None:
                    rows.put(f"{one.name}.{key}", key, state[key])
