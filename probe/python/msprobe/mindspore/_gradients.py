# SPDX-License-Identifier: MIT
"""Gradients that go into and out of a function or a cell.

A result of MindSpore does not know what made it, so inputs and results go
through an operator of the framework's own that changes nothing and tells what
comes back.
"""
from collections import OrderedDict

import mindspore
from mindspore.ops.operations import _inner_ops

from msprobe import _probe
from msprobe._nested import as_tuple, tensors_of, with_tensors
from msprobe.mindspore._tensors import executor, is_host, may_have_gradient

_TAKES_TUPLE = tuple(int(n) for n in mindspore.__version__.split(".")[:2]) >= (2, 7)
_wants_gradients = executor().requires_grad


def _operator(name, then, is_before):
    """One that calls a function; the program's graph keeps both."""
    hooks = OrderedDict(then=then)
    operator = _inner_ops.CellBackwardHook(name, None, hooks)
    operator.msprobe_hooks = hooks  # the operator itself only has a weak reference
    if is_before:
        operator.register_backward_pre_hook()
    else:
        operator.register_backward_hook()
    return operator


def _through(operator, value, is_wanted=may_have_gradient, step=1):
    """step: -1 to have the last tensor's gradient come first."""
    tensors = tuple(tensors_of(value, is_wanted))[::step]
    if not tensors:
        return value
    others = operator(tensors) if _TAKES_TUPLE else as_tuple(operator(*tensors))
    return with_tensors(value, iter(others[::step]), is_wanted)


def _is_tensor(value):
    return isinstance(value, mindspore.Tensor)


def _has_tensors(value):
    return bool(tensors_of(value, may_have_gradient))


# ---- functions ----------------------------------------------------------------


def _writes_to_its_arguments(name, args):
    """Another tensor in the place of one that is written to could be noticed.

    What stands behind += and its like makes new tensors on the CPU."""
    if name.startswith("__i") and name != "__invert__":
        return not all(is_host(t) for t in args if _is_tensor(t))
    return name == "__setitem__" or (name.endswith("_") and not name.startswith("__"))


def _that_are(gradients):
    return tuple(g for g in gradients if g is not None)


def watched_call(func, prefix, name, number, args, kwargs):
    """Call a function; its gradients are dumped when they have come.

    The official tool lists those of a primitive as they come: the last argument's first, and none
    of what has none."""
    if _writes_to_its_arguments(name, args) or not _has_tensors((args, kwargs)):
        return func(*args, **kwargs)
    listed, step = (_that_are, -1) if prefix == "Primitive" else (tuple, 1)

    def come(_cell, grad_input, grad_output):
        call = _probe.enter_backward(prefix, name, number)
        if call is not None:
            call.input(listed(as_tuple(grad_output)))
            call.output(listed(as_tuple(grad_input)))
            call.done()

    operator = _operator(f"{prefix}.{name}.{number}", come, False)
    args, kwargs = _through(operator, (args, kwargs), _is_tensor, step)
    return _through(operator, func(*args, **kwargs))


# ---- cells --------------------------------------------------------------------


class _CellCall:
    """One call of a cell."""

    def __init__(self, hook, number):
        self.hook, self.number, self.call, self.inner = hook, number, None, None

    def enter(self, _cell, _grad_output):
        hook = self.hook
        self.call = _probe.enter_module_backward(hook.path, hook.class_name, self.number, True)

    def leave(self, _cell, grad_input, grad_output):
        call, self.call = self.call, None
        if call is not None:
            call.input(as_tuple(grad_output))
            call.output(as_tuple(grad_input))
            call.done()

    def enter_and_leave(self, cell, grad_output):
        """Of one whose inputs have no gradient."""
        self.enter(cell, grad_output)
        self.leave(cell, (), grad_output)

    def name(self):
        return f"{self.hook.path}.{self.number}"


class Watcher:
    """Of all cells of a model, call by call: `backward` of msprobe._probe.Hook."""

    def __init__(self):
        self._open = {}  # (hook, number) -> call

    def before(self, hook, cell, args, number):
        if not _wants_gradients():
            return None
        if number == 0 and len(self._open) > 4096:
            self._open.clear()  # calls that ended in exceptions
        one = self._open[hook, number] = _CellCall(hook, number)
        if not _has_tensors(args):
            return None
        one.inner = _operator(one.name(), one.leave, False)
        return _through(one.inner, args)

    def after(self, hook, cell, result, number):
        one = self._open.pop((hook, number), None)
        if one is None:
            return None
        if one.inner is not None:
            result = _through(one.inner, result)
        then = one.enter_and_leave if one.inner is None else one.enter
        return _through(_operator(one.name(), then, True), result)
