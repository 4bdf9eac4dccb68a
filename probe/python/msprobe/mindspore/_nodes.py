# SPDX-License-Identifier: MIT
"""Gradients that go into and out of a function or a cell, where tensors refer to the node that made them: from
MindSpore 2.9 on.  Nothing of the training is touched: see msprobe/_gradients.py."""
import sys
import threading

import mindspore
from mindspore import Tensor

from msprobe import _probe
from msprobe._gradients import NODES_MAX, Gradients
from msprobe._guard import guarded
from msprobe._nested import tensors_of
from msprobe.mindspore._tensors import may_have_gradient

_Base = next(cls for cls in Tensor.__mro__ if cls.__module__ == "mindspore._c_expression")
EXIST = hasattr(getattr(mindspore.Parameter(Tensor(0.0), name="a"), "_grad_node", None), "_unique_id")
_add, _no_grad = mindspore.ops.add, getattr(mindspore, "_no_grad", None)
if EXIST:
    _node, _output_index = _Base._grad_node.__get__, _Base._output_index.__get__

# _OfLeaf of the tensors that no function has made and that a call has given back, by (node, index of its output).
_of_leaves = {}
_open = []  # _Gradients whose first gradient has come


def backward_is_over():
    """Ends what waits for gradients that never came."""
    while _open:
        _open.pop(0).end()
    _of_leaves.clear()


def node_runs(number):
    """Ends the calls that are newer: nodes run from the newest to the oldest, so what is left in them never runs."""
    mine = [one for one in reversed(_open) if one.thread == threading.get_ident()] if _open else ()
    for one in [one for one in mine if one.began >= number and one.consumers != _NEVER]:
        one.end()


def forward_begins():
    """Ends calls of which all has come that can come; a forward may also begin within a backward."""
    for one in [one for one in _open if one.is_waiting_for_the_end()]:
        one.end()
    if any(one.consumers == _NEVER for one in _open):
        _probe.when_called(forward_begins)


_NEVER = -1  # number of nodes after which a call has ended: it ends with the backward
_LEAF = sys.maxsize  # number of a node that is no function's


class _Gradients(Gradients):
    """A call whose inputs have no gradient ends when the backward does, as in the official tool."""

    is_cut = True  # gradients of some weights alone may be asked for
    # [(places of an input, what hears of its gradients as well)]; the number of the newest node older than the call;
    # the thread of its backward
    __slots__ = ("then", "began", "thread")

    def when_over(self, _then):
        self.thread = threading.get_ident()
        _open.append(self)
        if self.consumers == _NEVER:
            _probe.when_called(forward_begins)

    def is_waiting_for_the_end(self):
        return self.to_come == 0 and self.consumers == _NEVER

    def outgoing(self, sums):
        """As in the official tool, where no input has a gradient there is one null."""
        return tuple(sums) if any(g is not None for g in sums) else tuple(sums[:1])

    def leave(self, at_once=False):
        if self in _open:
            _open.remove(self)
        sums = self.sums
        super().leave(at_once)
        for places, of_leaf in reversed(self.then) if sums else ():
            of_leaf.add([sums[place] for place in places])

    @staticmethod
    def add(a, b):
        with _no_grad():
            return _add(a, b)


class _Newest(threading.local):
    """The number of the newest node that this thread has seen: nodes of a call that begins now are newer."""

    number = -1


_newest = _Newest()


@guarded
def is_leaf(value):
    """Tells whether a value is a tensor that no function has made."""
    node = _node(value) if isinstance(value, _Base) else None
    return node is not None and node.is_leaf()


class Inputs:
    """The tensors that go into a call: where their gradients go to, and their places among the arguments."""

    __slots__ = ("places", "count", "began")

    def __init__(self, tensors):
        self.places = {}  # (node, index of its output) -> places
        self.count = len(tensors)
        self.began = _newest.number
        for place, tensor in enumerate(tensors):
            node = _node(tensor)
            if node is not None and may_have_gradient(tensor):
                self.places.setdefault((node._unique_id(), _output_index(tensor)), []).append(place)
                if not node.is_leaf():
                    self.began = max(self.began, node._sequence_nr())


def _edges(node, inputs, seen, stack):
    """Returns [(place among the node's edges, key of an input)], and whether other nodes of the call follow, which go
    to the stack."""
    edges, is_followed = [], False
    for place, (following, number) in enumerate(node.next_functions):
        if following is None:
            continue
        key = following._unique_id(), number
        if key in inputs.places:
            edges.append((place, key))
        elif not following.is_leaf() and following._sequence_nr() > inputs.began:
            is_followed = True
            if key[0] not in seen:
                seen.add(key[0])
                stack.append(following)
    return edges, is_followed


def _ends(stack, inputs):
    """Returns the nodes from those on the stack down to the inputs that have edges to an input, or are the last of
    the call, each with [(place among its edges, key of an input)]."""
    seen, found = {node._unique_id() for node in stack}, []
    while stack and len(seen) < NODES_MAX:
        node = stack.pop()
        edges, is_followed = _edges(node, inputs, seen, stack)
        if edges or not is_followed:
            found.append((node, edges))
    return found


def _with_places(edges, inputs, is_only):
    """Returns [(place among a node's edges, place of an input)].

    A tensor that is given twice to one node has a gradient for each place; otherwise the first place has their
    sum."""
    taken, placed = {}, []
    for place, key in edges:
        places = inputs.places[key]
        is_apart = is_only and sum(other == key for _, other in edges) == len(places)
        taken[key] = at = taken[key] + 1 if key in taken and is_apart else 0
        placed.append((place, places[at]))
    return placed


class _Come:
    """Hook before a node runs."""

    __slots__ = ("gradients", "wanted", "number")

    def __init__(self, gradients, wanted, number):
        self.gradients, self.wanted, self.number = gradients, wanted, number

    @guarded
    def __call__(self, gradients):
        node_runs(self.number)
        self.gradients.come(self.wanted, gradients)


class _Go:
    """Hook after a node has run."""

    __slots__ = ("gradients", "edges")

    def __init__(self, gradients, edges):
        self.gradients, self.edges = gradients, edges

    @guarded
    def __call__(self, of_inputs, _of_results):
        self.gradients.go(self.edges, of_inputs)


class _OfLeaf:
    """Hears of the gradients of a tensor that no function has made, from each call that takes it."""

    __slots__ = ("come", "calls", "sum")

    def __init__(self, come):
        self.come, self.calls, self.sum = come, 0, None

    def add(self, gradients):
        """The gradients from the places of one call; None: it has none there."""
        for gradient in [gradient for gradient in gradients if gradient is not None]:
            self.sum = gradient if self.sum is None else _probe.ask(_Gradients.add, self.sum, gradient)
        self.calls -= 1
        if self.calls == 0:
            self.come((self.sum,))


def _taken(inputs, sources):
    """Returns [(places of an input, _OfLeaf)] of those that hear of the inputs' gradients. A call that gives such a
    tensor back stands for it from now on."""
    given = {(node._unique_id(), index) for _, node, wanted in sources if node.is_leaf() for index, _ in wanted}
    found = []
    for key, places in inputs.places.items():
        known = _of_leaves.pop(key, []) if key in given else _of_leaves.get(key, [])
        found += [(places, one) for one in known if key not in given or one.calls == 0]
    for _, one in found:
        one.calls += 1
    return found


def _watch_results(gradients, sources):
    for tensor, node, wanted in sources:
        if node.is_leaf():
            come = _Come(gradients, wanted, _LEAF)
            _of_leaves.setdefault((node._unique_id(), _output_index(tensor)), []).append(_OfLeaf(come))
            continue
        _newest.number = node._sequence_nr()
        handle = node.register_prehook(_Come(gradients, wanted, _newest.number))
        handle.hook_dict_ref().move_to_end(handle.handle_id, last=False)  # the call that ends last encloses the others


def _sources(results):
    """Returns the nodes that made the results: [(a tensor of the node, node, [(number of its output, place)])]."""
    nodes = {}
    for place, tensor in enumerate(results):
        node = _node(tensor)
        if node is not None:
            nodes.setdefault(node._unique_id(), (tensor, node, []))[2].append((_output_index(tensor), place))
    return list(nodes.values())


@guarded
def watch(enter, about, inputs, result, is_wanted):
    """Has enter(*about) told of the gradients of one call: see msprobe/_gradients.py.

    inputs: an Inputs; is_wanted: which tensors of the result have a place in the record."""
    results = tensors_of(result, is_wanted)
    sources = _sources(results)
    if not sources:
        return
    through = [(place, inputs.places[node._unique_id(), index][0]) for _, node, wanted in sources
               for index, place in wanted if (node._unique_id(), index) in inputs.places]
    passed = {place for place, _ in through}
    inside = [node for _, node, wanted in sources if any(place not in passed for _, place in wanted)]
    ends = _ends(inside, inputs) if inputs.places else []
    gradients = _Gradients(enter, about, list(range(inputs.count)), list(range(len(results))), through, len(sources),
                           len(ends) if inputs.places or not inputs.count else _NEVER)
    gradients.began = inputs.began
    gradients.then = _taken(inputs, sources)
    _watch_results(gradients, sources)
    for node, edges in ends:
        node.register_hook(_Go(gradients, _with_places(edges, inputs, len(ends) == 1)))


class Later:
    """A record that is written when it is complete."""

    def __init__(self, write, *about):
        self._write, self._about, self._given = write, about, ()

    def input(self, gradients):
        self._given = gradients

    def output(self, gradients):
        self._about += (gradients, self._given)

    def done(self):
        self._write(*self._about)

    def leave(self):
        self.done()
