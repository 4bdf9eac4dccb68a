# SPDX-License-Identifier: MIT
"""Gradients of one call of a module or a function, seen at the nodes of the graph that stand at its border.

Nothing of the training is replaced: arguments, results and their containers stay the same objects, and no node is
added to the graph.  Gradients into a call are seen before the nodes of its results run; gradients out of it, after
the nodes inside it that have an edge to one of its inputs.
"""
from msprobe import _probe

NODES_MAX = 100000  # in the graph of one call; a larger graph is not searched
ONE = [0]  # the places of a single tensor


def _placed(gradients, places):
    return tuple([None if p is None else gradients[p] for p in places])


class Gradients:
    """Gradients of one call, from the first that arrives to the last that leaves.

    A framework derives from this: add(a, b) is a sum that is not part of the training, when_over(then) calls a
    function when the backward is over, is_cut says whether nodes inside a call may never run."""

    is_cut = False
    __slots__ = ("enter", "about", "places_in", "places_out", "through", "sources", "consumers",
                 "given", "sums", "to_come", "to_leave", "call")

    def __init__(self, enter, about, places_in, places_out, through, sources, consumers):
        self.enter, self.about = enter, about  # makes what is told of the gradients, and its arguments
        self.places_in, self.places_out = places_in, places_out
        self.through = through  # (result, input) that are the same tensor
        self.sources, self.consumers = self.to_come, self.to_leave = sources, consumers  # numbers of nodes
        self.given = self.sums = self.call = None

    def come(self, wanted, gradients):
        """Records gradients of results before their node runs."""
        if self.to_come == self.sources:
            self.call = self.enter(*self.about)
            if (self.is_cut or self.sources > 1) and self.call is not None:
                self.when_over(self.end)  # a result without use has no gradient
        if self.given is None:
            self.given = [None] * len(self.places_out)
        for number, index in wanted:
            self.given[index] = gradients[number]
        self.to_come -= 1
        if self.to_come == 0 and self.consumers == 0:
            self.leave(at_once=True)

    def go(self, edges, gradients):
        """Adds up gradients of inputs after a node with edges to them has run."""
        if self.sums is None:
            self.sums = [None] * len(self.places_in)
        for place, index in edges:
            gradient = gradients[place] if place < len(gradients) else None
            if gradient is not None:
                known = self.sums[index]
                self.sums[index] = gradient if known is None else _probe.ask(self.add, known, gradient)
        self.to_leave -= 1
        if self.to_leave == 0:
            self.leave()

    def end(self):
        """Writes the record at the end of the backward."""
        if self.call is not None:
            try:
                self.leave(at_once=True)
            except Exception as why:
                if _probe.is_alien(why):
                    raise
                _probe.note(f"the backward of a module is left out: {why}")

    def outgoing(self, sums):
        return tuple(sums) if self.places_in is ONE else _placed(sums, self.places_in)

    def leave(self, at_once=False):
        call, given = self.call, self.given
        sums = self.sums or [None] * len(self.places_in)
        self.to_come, self.to_leave = self.sources, self.consumers
        self.given = self.sums = self.call = None
        if call is None:
            return
        for result, of_input in self.through:
            sums[of_input] = given[result] if sums[of_input] is None else sums[of_input]
        call.input(tuple(given) if self.places_out is ONE else _placed(given, self.places_out))
        call.output(self.outgoing(sums))
        if at_once:
            call.done()
        elif call.leave():
            self.when_over(_probe.leave_calls)
