# SPDX-License-Identifier: MIT
"""Gradients that go into and out of a function or a cell.

A result of MindSpore does not refer to the function that made it, so inputs and results pass
through an identity operator of the framework, which reports the gradients on their way back.
"""
from collections import OrderedDict

import mindspore
from mindspore.ops.operations import _inner_ops
from mindspore.ops.signature import sig_rw

from msprobe import _probe
from msprobe._guard import guarded
from msprobe._nested import as_tuple, tensors_of, with_tensors
from msprobe.mindspore._tensors import executor, is_host, may_have_gradient

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


def _is_tensor(value):
    return isinstance(value, mindspore.Tensor)


def _has_tensors(value):
    return bool(tensors_of(value, may_have_gradient))


# ---- functions ----------------------------------------------------------------


def _writes_to_a_parameter(func, prefix, name):
    """Tells whether a function of ops, or an operator object by its signature, writes to a Parameter."""
    if prefix == "Primitive":
        operator = (getattr(func, "args", None) or (None,))[0]
        return any(getattr(s, "rw", None) == sig_rw.RW_WRITE for s in getattr(operator, "__mindspore_signature__", ()))
    return prefix == "Functional" and (
        name in ("assign", "assign_add", "assign_sub", "index_add") or name.startswith("inplace_") or
        name.startswith("scatter_") and name != "scatter_nd")


def _writes_to_its_arguments(name, args):
    """Tells whether a function writes to its arguments: passing copies would change the program.

    The operators behind += and the like make new tensors on the CPU."""
    if name.startswith("__i") and name != "__invert__":
        return not all(is_host(t) for t in args if _is_tensor(t))
    return name == "__setitem__" or (name.endswith("_") and not name.startswith("__"))


def _dump(prefix, name, number, grad_input, grad_output):
    call = _probe.enter_backward(prefix, name, number)
    if call is not None:
        call.input(grad_output)
        call.output(grad_input)
        call.done()


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
    if _writes_to_a_parameter(func, prefix, name) or _writes_to_its_arguments(name, args):
        return None
    if not tensors_of((args, kwargs), _is_tensor):
        return None
    has_gradients = _has_tensors((args, kwargs))
    if prefix == "Primitive":
        one = _Primitive(name, number)
        return (one.take((args, kwargs)), one.give) if has_gradients else None

    def come(_cell, grad_input, grad_output):
        settle()
        _dump(prefix, name, number, as_tuple(grad_input), as_tuple(grad_output))

    if not has_gradients:
        operator = backward_hook(f"{prefix}.{name}.{number}", lambda cell, out: come(cell, (), out), True)
        return (args, kwargs), lambda result: through(operator, result)
    operator = backward_hook(f"{prefix}.{name}.{number}", come, False)
    return through(operator, (args, kwargs), _is_tensor), lambda result: through(operator, result, _is_tensor)


# ---- primitives ---------------------------------------------------------------


class _Primitive:
    """One call of a primitive.

    As in the official tool, gradients arrive one by one, from the last argument to the first, and
    only for arguments that have one: with one operator around all arguments the framework would
    compute every gradient, needed or not. The number of gradients is not known, so the record
    stays open until some other gradient arrives."""

    _last = None  # the primitive whose gradients are arriving
    _then = []  # (function, gradient) to call after its last gradient

    def __init__(self, name, number):
        self.name, self.number = name, number
        self._inputs, self._outputs, self._hooked = [], [], 0

    def take(self, arguments):
        """Returns the arguments with hooks on their gradients."""
        self._hooked = len(tensors_of(arguments, _is_tensor))
        return self._each(arguments, _is_tensor, self._take)

    def give(self, result):
        return self._each(result, may_have_gradient, self._give)

    @staticmethod
    def _each(value, is_wanted, then):
        tensors = tensors_of(value, is_wanted)
        hook = guarded(then)
        return with_tensors(value, (_HookBackward(hook)(t) for t in tensors), is_wanted)

    def _give(self, gradient):
        if _Primitive._last is not self:
            settle()
        self._outputs.extend(as_tuple(gradient))

    def _take(self, gradient):
        if _Primitive._last is not self:
            settle()
        if not self._outputs:
            return  # the record has been written
        _Primitive._last = self
        self._inputs.extend(as_tuple(gradient))
        if len(self._inputs) >= self._hooked:
            settle()

    def write(self):
        _dump("Primitive", self.name, self.number, tuple(self._inputs), tuple(self._outputs))
        self._inputs, self._outputs = [], []


def settle():
    """Writes the open record: some other gradient has arrived, or the backward is over."""
    last, _Primitive._last = _Primitive._last, None
    then, _Primitive._then = _Primitive._then, []
    if last is not None:
        last.write()
    for record, gradient in then:
        record(gradient)


def in_turn(record):
    """Returns a hook that records a parameter's gradient after those of the open primitive.

    The gradient of a parameter arrives between two gradients of the primitive that uses the
    parameter."""
    def come(gradient):
        if _Primitive._last is None:
            record(gradient)
        else:
            _Primitive._then.append((record, gradient))
    return guarded(come)


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
