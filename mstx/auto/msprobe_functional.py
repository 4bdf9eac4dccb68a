# SPDX-License-Identifier: MIT
"""Ranges around functional collectives: torch.distributed._functional_collectives, DTensor and what
torch.compile makes of calls of torch.distributed.

All of them come to the operators of torch.ops._c10d_functional.  An operator begins the collective and
wait_tensor waits for it; the range lasts from the one to the other.  Operators keep their identity, for
tracing compares them: what is replaced is the function within, which no graph looks at.
"""
import atexit
import threading

import mstx

DOMAIN = "communication"
# Operator without what stands behind it ("_": in place, "_out", "_coalesced"): official name, the argument
# with its other rank, its key, and whether the tensors sent are of all ranks.
OPERATORS = {
    "all_reduce": ("HcclAllreduce", None, None, False),
    "broadcast": ("HcclBroadcast", "src", "rootRank", False),
    "all_gather_into_tensor": ("HcclAllGather", None, None, False),
    "reduce_scatter_tensor": ("HcclReduceScatter", None, None, True),
    "all_to_all_single": ("HcclAlltoAll", None, None, False),
    "isend": ("HcclSend", "dst", "destRank", False),
    "irecv": ("HcclRecv", "src", "srcRank", False),
}
NAMESPACES = ("_c10d_functional", "_c10d_functional_autograd")
BEHIND = ("", "_", "_out", "_coalesced", "_coalesced_")


class Open:
    """Ranges whose results nobody has waited for yet, by the memory of the result."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.ranges = {}
        self.lock = threading.Lock()
        atexit.register(self.end_all)

    @staticmethod
    def _places(result):
        return [t.untyped_storage().data_ptr()
                for t in (result if isinstance(result, (list, tuple)) else [result])]

    def _let_go(self, place):
        """Ends the range when this was its last result."""
        opened, left = self.ranges.pop(place, (0, None))
        if opened:
            left.discard(place)
            if not left:
                mstx.range_end(opened, domain=DOMAIN)

    def keep(self, result, opened):
        places = set(self._places(result))
        with self.lock:
            for place in places:
                self._let_go(place)  # waited for in C++, for its memory is used again
                self.ranges[place] = (opened, places)
        self.recorder.asynchronous(opened)

    def waits(self, result):
        for place in self._places(result):
            opened, _ = self.ranges.get(place, (0, None))
            if opened:
                self.recorder.wait(opened)

    def ended(self, result):
        with self.lock:
            for place in self._places(result):
                self._let_go(place)

    def end_all(self):
        with self.lock:
            for place in list(self.ranges):
                self._let_go(place)


def arguments_of(operator):
    return [a.name for a in operator._schema.arguments]


class Functional:
    """How a call of an operator becomes a range."""

    def __init__(self, torch, c10d, shared):
        self.c10d = c10d
        self.message, self.facts, self.count = shared.message, shared.facts, shared.count
        self.inside, self.recorder, self.is_compiling = shared.inside, shared.recorder, shared.is_compiling
        self.tensor, self.open = torch.Tensor, Open(shared.recorder)
        self.kinds = (torch.Tensor, torch.nn.Parameter)

    def is_real(self, tensors):
        """Tensors that only stand for some while a program is traced belong to classes of their own."""
        listed = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        return bool(listed) and all(type(t) in self.kinds and t.device.type == "cpu" for t in listed)

    def group_of(self, name):
        return name if not isinstance(name, str) else self.c10d._resolve_process_group(name)

    def describe(self, kind, given):
        official, peer, key, of_all = kind
        tensors = given.get("input", given.get("inputs", given.get("tensor")))
        group = self.group_of(given["group_name"])
        more = []
        if peer in given:
            more.append((key, self.c10d.get_global_rank(group, int(given[peer]))))
        if "reduce_op" in given:
            more.append(("reduceOp", str(given["reduce_op"]).rsplit(".", 1)[-1].lower()))
        facts = self.facts(group)
        share = int(given["group_size"]) if of_all else 1
        text = self.message(official, tensors, isinstance(tensors, (list, tuple)), facts, more, share)
        return text, self.count(key, facts)

    def begin(self, kind, names, args, kwargs):
        if getattr(self.inside, "call", False) or self.is_compiling():
            return 0
        try:
            given = dict(zip(names, args), **kwargs)
            if not self.is_real(args[0] if args else given[names[0]]):
                return 0
            text, number = self.describe(kind, given)
            opened = mstx.range_start(text, domain=DOMAIN)
            if opened:
                self.recorder.call(opened, number)
            return opened
        except Exception:
            return 0  # odd arguments: the call itself will say what is wrong

    def begins(self, call, kind, names):
        def marked(*args, **kwargs):
            opened = self.begin(kind, names, args, kwargs)
            if not opened:
                return call(*args, **kwargs)
            self.inside.call = True
            result = None
            try:
                result = call(*args, **kwargs)
            finally:
                self.inside.call = False
                if result is None or not self.keep(result, opened):
                    mstx.range_end(opened, domain=DOMAIN)
            return result

        return marked

    def keep(self, result, opened):
        try:
            self.open.keep(result, opened)
        except Exception:
            return False
        return True

    def waits(self, call):
        def waited(tensor, *args, **kwargs):
            is_open = bool(self.open.ranges) and self.is_real(tensor) and not self.is_compiling()
            if is_open:
                self.open.waits(tensor)
            try:
                return call(tensor, *args, **kwargs)
            finally:
                if is_open:
                    self.open.ended(tensor)

        return waited


def replace(packet, make):
    """The functions within an operator and its overload; both are called, each by itself."""
    overload = packet.default
    for holder in (packet, overload):
        holder._op = make(holder._op, arguments_of(overload))


def attach(torch, c10d, shared):
    functional = Functional(torch, c10d, shared)
    for space in NAMESPACES:
        operators = getattr(torch.ops, space)
        for name, kind in OPERATORS.items():
            for behind in BEHIND:
                packet = getattr(operators, name + behind, None)
                if packet is not None:
                    replace(packet, lambda call, names, kind=kind: functional.begins(call, kind, names))
        for name in ("wait_tensor", "wait_tensors"):
            packet = getattr(operators, name, None)
            if packet is not None:
                replace(packet, lambda call, _: functional.waits(call))
