# SPDX-License-Identifier: MIT
"""Gradients that go into and out of a function or a cell: at the nodes of the graph, or by identity operators where
tensors do not refer to nodes or where the records are to be those of the official tool (`strict`)."""
from msprobe import _probe
from msprobe._guard import guarded
from msprobe._nested import tensors_of
from msprobe.mindspore import _identities, _nodes, _records
from msprobe.mindspore._records import dump_function, is_tensor, writes_to_its_arguments
from msprobe.mindspore._tensors import executor, may_have_gradient

wants_gradients = executor().requires_grad
_sees_nodes = _nodes.EXIST


def set_strict(is_strict):
    global _sees_nodes
    _sees_nodes = _nodes.EXIST and not is_strict


def settle():
    """Writes what waits for gradients: the backward is over."""
    _nodes.backward_is_over()  # ends functions, before which no gradient of a parameter is recorded
    _records.settle()


def in_turn(record):
    """Returns a hook of a parameter that records its gradient after those of the function that uses it."""
    def come(gradient):  # not a lambda: the compiler of graphs may read it
        _records.after_the_open_one(record, gradient)
    return guarded(come)


# ---- functions ----------------------------------------------------------------


@guarded
def _inputs_of(func, prefix, name, args, kwargs):
    """Returns what goes into a function; None: its gradients are not recorded."""
    tensors = tensors_of((args, kwargs), is_tensor)
    if not tensors or writes_to_its_arguments(func, prefix, name, args):
        return None
    return _nodes.Inputs(tensors if any(may_have_gradient(t) for t in tensors) else [])


def _write_primitive(name, number, of_inputs, of_results):
    """As in the official tool, there are those gradients that came, from the last argument to the first."""
    came = tuple([g for g in reversed(of_inputs) if g is not None])
    if came:
        dump_function("Primitive", name, number, came, tuple([g for g in of_results if g is not None]))


class _Record(_nodes.Later):
    """The record of a function, before which no gradient of a parameter is recorded."""

    def __init__(self, *about):
        super().__init__(*about)
        _probe.leave_calls()
        _records.open_record(self)

    def done(self):
        super().done()
        if _records.is_open(self):
            _records.settle()

    def write(self):
        """Another one begins before this is complete: it is written at the end of the backward."""


@guarded
def _watch_function(prefix, name, number, inputs, result):
    write = (_write_primitive,) if prefix == "Primitive" else (dump_function, prefix)
    record = _nodes.Later if _nodes.is_leaf(result) else _Record  # a leaf belongs to what uses it
    _nodes.watch(record, (*write, name, number), inputs, result, is_tensor)


def watched_call(func, prefix, name, number, args, kwargs):
    """Calls a function; its gradients are dumped when they arrive."""
    if not _sees_nodes:
        return _identities.watched_call(func, prefix, name, number, args, kwargs)
    inputs = _inputs_of(func, prefix, name, args, kwargs)
    result = func(*args, **kwargs)
    if inputs is not None:
        _watch_function(prefix, name, number, inputs, result)
    return result


# ---- cells --------------------------------------------------------------------


class _AtNodes:
    """Watches all cells of a model, call by call."""

    def __init__(self):
        self._open = {}  # (hook, number) -> _nodes.Inputs

    def before(self, hook, _cell, args, number):
        if wants_gradients():
            if number == 0 and len(self._open) > 4096:
                self._open.clear()  # calls that ended in exceptions
            self._open[hook, number] = _nodes.Inputs(tensors_of(args, may_have_gradient))

    def after(self, hook, _cell, result, number):
        inputs = self._open.pop((hook, number), None)
        if inputs is not None:
            about = hook.path, hook.class_name, number, True
            _nodes.watch(_probe.enter_module_backward, about, inputs, result, may_have_gradient)


def watcher():
    """Returns a watcher of the cells of a model: `backward` of msprobe._probe.Hook."""
    return _AtNodes() if _sees_nodes else _identities.Watcher()


class Border:
    """Where the gradients of one call of a cell are seen: then(of what goes in, of what comes out) is called."""

    def __init__(self, name, then, args):
        self.before = None  # the arguments to go on with; None: those that were given
        if _nodes.EXIST:
            self._then, self._inputs, self._operator = then, _nodes.Inputs(tensors_of(args, is_tensor)), None
        else:
            self._operator = _identities.backward_hook(name, lambda _cell, *gradients: then(*gradients), False)
            self.before = _identities.through(self._operator, args, is_tensor)

    def after(self, result):
        """Returns the result to go on with; None: the one that was given."""
        if self._operator is not None:
            return _identities.through(self._operator, result, is_tensor)
        _nodes.watch(_nodes.Later, (self._then,), self._inputs, result, is_tensor)
        return None
