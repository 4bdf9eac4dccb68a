# SPDX-License-Identifier: MIT
"""Ranges around the functional collectives: those of torch.distributed._functional_collectives, of
DTensor, and those that torch.compile generates for every collective in a compiled region.

These are operators, torch.ops._c10d_functional.* and the same for autograd, whose result must not be
read before wait_tensor has been called for it; the range lasts until then.  A call reaches an operator
by its packet or by its overload; both keep the called function in one attribute, which is replaced
here.  Tracing and fake tensors, which do not run the operator, have a mode on the stack of the
dispatcher and are not recorded.
"""
import functools

# Operator, official name, the key of its peer (its argument `src` or `dst`, a rank of the group).
OPS = (
    ("all_reduce", "HcclAllreduce", None),
    ("all_reduce_", "HcclAllreduce", None),
    ("all_reduce_coalesced", "HcclAllreduce", None),
    ("all_reduce_coalesced_", "HcclAllreduce", None),
    ("all_gather_into_tensor", "HcclAllGather", None),
    ("all_gather_into_tensor_out", "HcclAllGather", None),
    ("all_gather_into_tensor_coalesced", "HcclAllGather", None),
    ("reduce_scatter_tensor", "HcclReduceScatter", None),
    ("reduce_scatter_tensor_out", "HcclReduceScatter", None),
    ("reduce_scatter_tensor_coalesced", "HcclReduceScatter", None),
    ("all_to_all_single", "HcclAlltoAll", None),
    ("broadcast", "HcclBroadcast", "rootRank"),
    ("broadcast_", "HcclBroadcast", "rootRank"),
    ("isend", "HcclSend", "destRank"),
    ("irecv", "HcclRecv", "srcRank"),
)
WAITS = ("wait_tensor", "wait_tensors")
NAMESPACES = ("_c10d_functional", "_c10d_functional_autograd")


class Given:
    """The arguments of an operator, by the names of its schema."""

    def __init__(self, overload):
        self.names = [a.name for a in overload._schema.arguments]

    def of(self, args, kwargs):
        return {**dict(zip(self.names, args)), **kwargs}


def describer(given, row, torch, c10d, text_of):
    """Returns a function that describes a call.  `text_of` gets the arguments in the form in which the
    functions of torch.distributed have them."""
    _, official, peer_key = row

    def describe(args, kwargs):
        found = given.of(args, kwargs)
        tensor = next(found[k] for k in ("input", "inputs", "tensor") if k in found)
        first = tensor[0] if isinstance(tensor, (list, tuple)) else tensor
        if not isinstance(first, torch.Tensor) or torch._C._len_torch_dispatch_stack() > 0:
            raise TypeError("nothing is sent")
        group = found["group_name"]
        if isinstance(group, str):
            group = c10d._resolve_process_group(group)
        more = []
        if peer_key:
            peer = found["dst"] if peer_key == "destRank" else found["src"]
            more.append((peer_key, c10d.get_global_rank(group, peer)))
        share = int(found["group_size"]) if official == "HcclReduceScatter" else 1
        return text_of(official, peer_key, tensor, group, more, found.get("reduce_op"), share)

    return describe


def last_of(result):
    """Returns the tensor of a result that is waited for last."""
    return result[-1] if isinstance(result, (list, tuple)) else result


def waiting(call, pending):
    @functools.wraps(call)
    def waited(*args, **kwargs):
        return pending.wait(last_of(args[0]) if args else None, lambda: call(*args, **kwargs))

    return waited


def exchange(packet, make):
    """Replaces the function of an operator in both places that hold it."""
    for holder in (packet, packet.default):
        holder._op = make(holder._op)


def attach(torch, c10d, ranged, text_of, pending):
    """Wraps all functional collectives.  `ranged` puts a range around a call, given its describer and
    the function that keeps the range open."""
    if not hasattr(c10d, "_resolve_process_group") or not hasattr(torch._C, "_len_torch_dispatch_stack"):
        return

    def keep(result, opened):
        return pending.hold(last_of(result), opened)

    for operators in (getattr(torch.ops, name) for name in NAMESPACES):
        for row in OPS:
            packet = getattr(operators, row[0], None)
            if packet is not None:
                describe = describer(Given(packet.default), row, torch, c10d, text_of)
                exchange(packet, lambda call, describe=describe: ranged(call, describe, keep))
        for name in WAITS:
            packet = getattr(operators, name, None)
            if packet is not None:
                exchange(packet, lambda call: waiting(call, pending))
