# SPDX-License-Identifier: MIT
"""Ranges of the domain `communication` around the calls of torch.distributed, whatever backend is
below (gloo in C++ offers no other place), with the message that Ascend's frameworks give to theirs.

The range covers the call; with async_op=True that is its beginning alone.  Backends that mark by
themselves (hccl) are left to do so.
"""
import functools
import sys

import mstx

DOMAIN = "communication"
TYPES = {
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8",
    "float16": "fp16", "float32": "fp32", "float64": "fp64", "bfloat16": "bfp16",
}
# Function, official name, where its tensor is among the arguments, where the peer, and its key.
CALLS = (
    ("all_reduce", "HcclAllreduce", "tensor", 0, None, None),
    ("broadcast", "HcclBroadcast", "tensor", 0, None, None),
    ("reduce", "HcclReduce", "tensor", 0, None, None),
    ("all_gather", "HcclAllGather", "tensor", 1, None, None),
    ("all_gather_into_tensor", "HcclAllGather", "input_tensor", 1, None, None),
    ("_all_gather_base", "HcclAllGather", "input_tensor", 1, None, None),
    ("gather", "HcclGather", "tensor", 0, None, None),
    ("scatter", "HcclScatter", "tensor", 0, None, None),
    ("reduce_scatter", "HcclReduceScatter", "output", 0, None, None),
    ("reduce_scatter_tensor", "HcclReduceScatter", "output", 0, None, None),
    ("_reduce_scatter_base", "HcclReduceScatter", "output", 0, None, None),
    ("all_to_all_single", "HcclAlltoAll", "input", 1, None, None),
    ("all_to_all", "HcclAlltoAll", "input_tensor_list", 1, None, None),
    ("send", "HcclSend", "tensor", 0, "dst", "destRank"),
    ("isend", "HcclSend", "tensor", 0, "dst", "destRank"),
    ("recv", "HcclRecv", "tensor", 0, "src", "srcRank"),
    ("irecv", "HcclRecv", "tensor", 0, "src", "srcRank"),
    ("barrier", "HcclBarrier", None, None, None, None),
)


def names_of_groups(c10d):
    """The name of a group, the same on all of its ranks."""

    def name(group):
        known = getattr(c10d, "_pg_names", None)
        if known is None:
            known = getattr(getattr(c10d, "_world", None), "pg_names", {})
        if group is None:
            group = getattr(getattr(c10d, "GroupMember", None), "WORLD", None)
        return known.get(group) or "default_pg"

    return name


def message(official, tensor, group, peer_key, peer):
    first = tensor[0] if isinstance(tensor, (list, tuple)) and tensor else tensor
    count = first.numel() if hasattr(first, "numel") else 0
    kind = TYPES.get(str(getattr(first, "dtype", "")).replace("torch.", ""), "na")
    parts = [("count", count), ("dataType", kind), ("groupName", group), ("opName", official),
             ("streamId", 0)]
    if peer_key is not None and peer is not None:
        parts.append((peer_key, peer))
    quote = '\\"'
    return "{" + ",".join(f"{quote}{k}{quote}: {quote}{v}{quote}" for k, v in parts) + "}"


def ranged(call, row, name_of):
    _, official, key, place, peer, peer_key = row

    def text(args, kwargs):
        tensor = kwargs.get(key, args[place] if key and len(args) > place else None) if key else None
        group = kwargs.get("group")
        other = kwargs.get(peer, args[1] if peer and len(args) > 1 else None) if peer else None
        return message(official, tensor, name_of(group), peer_key, other)

    @functools.wraps(call)
    def marked(*args, **kwargs):
        try:
            opened = mstx.range_start(text(args, kwargs), domain=DOMAIN)
        except Exception:
            opened = 0  # odd arguments: the call itself will say what is wrong
        try:
            return call(*args, **kwargs)
        finally:
            if opened:
                mstx.range_end(opened, domain=DOMAIN)

    return marked


def attach(torch):
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        return
    c10d = sys.modules.get("torch.distributed.distributed_c10d", distributed)
    name_of = names_of_groups(c10d)
    for row in CALLS:
        call = getattr(c10d, row[0], None)
        if call is None:
            continue
        marked = ranged(call, row, name_of)
        for module in (c10d, distributed):
            if getattr(module, row[0], None) is call:
                setattr(module, row[0], marked)
