# SPDX-License-Identifier: MIT
"""Gradients that go into and out of a function or a cell, by operators of their own.

Before version 2.9 a result does not refer to the function that made it, so inputs and results pass through an identity
operator of the framework, which reports the gradients on their way back.  The official tool does so in all versions.
It changes the training: gradients are added up in another order, and some are computed that are not needed otherwise.
"""
from collections import OrderedDict

import mindspore
from mindspore.ops.operations import _inner_ops

from msprobe import _probe
from msprobe._guard import guarded
from msprobe._nested import as_tuple, tensors_of, with_tensors
from msprobe.mindspore._records import (dump_function, is_open, is_tensor, open_record, settle,
                                        writes_to_its_arguments)
from msprobe.mindspore._tensors import executor, may_have_gradient

_TAKES_TUPLE = tuple(int(n) for n in mindspore.__version__.split(".")[:2]) >= (2, 7)
wants_gradients = executor().requires_grad
_HookBackward = mindspore.ops.HookBackward


def backward_hook(name, then, is_before):
    """Returns an identity operator that calls a function in backward; the graph keeps both."""
    hooks = OrderedDict(then=guarded(then))
    operator = _inner_ops.CellBackwardHook(name, None, hooks)
    operator.msprobe_hooks = hooks  # the operator itself only has a weak reference
    if is_before:
        operator.register_backward_pre_hook()
    else:
        operator.register_backward_hook()
    return operator


def through(operator, value, is_wanted=may_have_gradient):
    tensors = tuple(tensors_of(value, is_wanted))
    if not tensors:
        return value
    others = operator(tensors) if _TAKES_TUPLE else as_tuple(operator(*tensors))
    return with_tensors(value, iter(others), is_wanted)


def _has_tensors(value):
    return bool(tensors_of(value, may_have_gradient))


# ---- functions ----------------------------------------------------------------


def watched_call(func, prefix, name, number, args, kwargs):
    """Calls a function; its gradients are dumped when they arrive.

    What stands around the call may fail: then the function gets the program's own arguments, or the
    program its own result."""
    plan = _plan(func, prefix, name, number, args, kwargs)
    if plan is None:
        return func(*args, **kwargs)
    (args, kwargs), give = plan
    result = func(*args, **kwargs)
    given = _given(give, result)
    return result if given is None else given[0]


@guarded
def _given(give, result):
    return (give(result),)


@guarded
def _plan(func, prefix, name, number, args, kwargs):
    """Returns the arguments to call a function with, and what its result goes through; None: it is
    called as it is."""
    if writes_to_its_arguments(func, prefix, name, args):
        return None
    if not tensors_of((args, kwargs), is_tensor):
        return None
    has_gradients = _has_tensors((args, kwargs))
    if prefix == "Primitive":
        one = _Primitive(name, number)
        return (one.take((args, kwargs)), one.give) if has_gradients else None

    def come(_cell, grad_input, grad_output):
        settle()
        dump_function(prefix, name, number, as_tuple(grad_input), as_tuple(grad_output))

    if not has_gradients:
        operator = backward_hook(f"{prefix}.{name}.{number}", lambda cell, out: come(cell, (), out), True)
        return (args, kwargs), lambda result: through(operator, result)
    operator = backward_hook(f"{prefix}.{name}.{number}", come, False)
    return through(operator, (args, kwargs), is_tensor), lambda result: through(operator, result, is_tensor)


# ---- primitives ---------------------------------------------------------------


class _Primitive:
    """One call of a primitive.

    As in the official tool, gradients arrive one by one, from the last argument to the first, and
    only for arguments that have one: with one operator around all arguments the framework would
    compute every gradient, needed or not. The number of gradients is not known, so the record
    stays open until some other gradient arrives."""

    def __init__(self, name, number):
        self.name, self.number = name, number
        self._inputs, self._outputs, self._hooked = [], [], 0

    def take(self, arguments):
        """Returns the arguments with hooks on their gradients."""
        self._hooked = len(tensors_of(arguments, is_tensor))
        return self._each(arguments, is_tensor, self._take)

    def give(self, result):
        return self._each(result, may_have_gradient, self._give)

    @staticmethod
    def _each(value, is_wanted, then):
        tensors = tensors_of(value, is_wanted)
        hook = guarded(then)
        return with_tensors(value, (_HookBackward(hook)(t) for t in tensors), is_wanted)

    def _give(self, gradient):
        if not is_open(self):
            settle()
        self._outputs.extend(as_tuple(gradient))

    def _take(self, gradient):
        if not self._outputs:
            settle()
            return  # the record has been written
        open_record(self)
        self._inputs.extend(as_tuple(gradient))
        if len(self._inputs) >= self._hooked:
            settle()

    def write(self):
        dump_function("Primitive", self.name, self.number, tuple(self._inputs), tuple(self._outputs))
        self._inputs, self._outputs = [], []


# ---- cells --------------------------------------------------------------------


class _CellCall:
    """One call of a cell."""

    def __init__(self, hook, number):
        self.hook, self.number, self.call, self.inner = hook, number, None, None

    def enter(self, _cell, _grad_output):
        settle()
        hook = self.hook
        self.call = _probe.enter_module_backward(hook.path, hook.class_name, self.number, True)

    def leave(self, _cell, grad_input, grad_output):
        settle()
        call, self.call = self.call, None
        if call is not None:
            call.input(as_tuple(grad_output))
            call.output(as_tuple(grad_input))
            call.done()

    def enter_and_leave(self, cell, grad_output):
        """Records a cell whose inputs have no gradient."""
        self.enter(cell, grad_output)
        self.leave(cell, (), grad_output)

    def name(self):
        return f"{self.hook.path}.{self.number}"


class Watcher:
    """Watches all cells of a model, call by call: `backward` of msprobe._probe.Hook."""

    def __init__(self):
        self._open = {}  # (hook, number) -> call

    def before(self, hook, cell, args, number):
        if not wants_gradients():
            return None
        if number == 0 and len(self._open) > 4096:
            self._open.clear()  # calls that ended in exceptions
        one = self._open[hook, number] = _CellCall(hook, number)
        if not _has_tensors(args):
            return None
        one.inner = backward_hook(one.name(), one.leave, False)
        return through(one.inner, args)

    def after(self, hook, cell, result, number):
        one = self._open.pop((hook, number), None)
        if one is None:
            return None
        if one.inner is not None:
            result = through(one.inner, result)
        then = one.enter_and_leave if one.inner is None else one.enter
        return through(backward_hook(one.name(), then, True), result)
