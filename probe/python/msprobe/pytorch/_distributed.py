# SPDX-License-Identifier: MIT
"""Communication: results lie in the arguments, and may come later.

A collective's outputs are all of its arguments after it is done; of an
asynchronous one that is when somebody waits for it.
"""
import functools
import inspect
import zlib

import torch

from msprobe import _probe

# Buffers whose content before the call (bit of the index) is nobody's business.
_MASKED_INPUT = {"recv": 1, "irecv": 1, "all_gather": 1, "scatter": 1, "reduce_scatter": 1,
                 "_reduce_scatter_base": 1, "_all_gather_base": 1, "all_to_all_single": 1,
                 "all_to_all": 1, "all_gather_into_tensor": 1, "reduce_scatter_tensor": 1,
                 "gather": 2}
_MASKED_OUTPUT = {"isend": 1}
_waiting = []  # (works that are not done, what to do then)


def _finish(call, args, kwargs, mask):
    call.output(tuple(args) + tuple(kwargs.values()), mask)
    call.done()


def _masked(name, kwargs):
    """Keyword arguments as they are described before the call."""
    if name == "irecv" and "tensor" in kwargs:
        return {**kwargs, "tensor": None}
    return kwargs


def _is_async(signature, name, args, kwargs):
    if name in ("isend", "irecv", "batch_isend_irecv"):
        return True
    if signature is None:
        return bool(kwargs.get("async_op", False))
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return bool(bound.arguments.get("async_op", False))


def wrapper(func, prefix, name):
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):
        signature = None
    mask_in, mask_out = _MASKED_INPUT.get(name, 0), _MASKED_OUTPUT.get(name, 0)

    @functools.wraps(func)
    def run(*args, **kwargs):
        call = _probe.enter(prefix, name, args, _masked(name, kwargs), mask_in)
        if call is None:
            return func(*args, **kwargs)
        try:
            work = func(*args, **kwargs)
        except BaseException:
            call.drop()
            raise
        if work is not None and _is_async(signature, name, args, kwargs):
            call.detach()
            works = list(work) if isinstance(work, (list, tuple)) else [work]
            _waiting.append((works, functools.partial(_finish, call, args, kwargs, mask_out)))
        else:
            _finish(call, args, kwargs, mask_out)
        return work

    return run


def _has_ended(work):
    for entry in _waiting:
        works, then = entry
        left = [w for w in works if w is not work]
        if len(left) == len(works):
            continue
        works[:] = left
        if not left:
            _waiting.remove(entry)
            then()
        return


def watch_waiting():
    """Somebody waits for a work: its results are there afterwards."""
    classes = {getattr(torch._C._distributed_c10d, "Work", None),
               getattr(torch.distributed, "Work", None)}
    for cls in classes - {None}:
        real = cls.wait
        if getattr(real, "_is_watched", False):
            continue

        def wait(self, *args, _real=real, **kwargs):
            result = _real(self, *args, **kwargs)
            if _waiting:
                _has_ended(self)
            return result

        wait._is_watched = True
        cls.wait = wait


# ---- values -----------------------------------------------------------------


def _ranks(group):
    dist = torch.distributed
    if group is None:
        group = dist.distributed_c10d._get_default_group()
    return dist.get_process_group_ranks(group)


def _id_of(ranks):
    return f"{zlib.crc32(str(ranks).encode()):08x}"


def _group(value):
    leaf = {"type": "torch.ProcessGroup"}
    try:
        leaf["group_ranks"] = _ranks(value)
        leaf["group_id"] = _id_of(leaf["group_ranks"])
    except Exception as why:
        _probe.note(f"the ranks of a process group: {why}")
    return leaf


def describe(value):
    """The leaf of a process group or a reduction; None for any other value.

    An operation from one rank to another is described by what is in it."""
    dist = torch.distributed
    if not dist.is_available():
        return None
    if isinstance(value, dist.ProcessGroup):
        return _group(value)
    if isinstance(value, (dist.ReduceOp, getattr(dist.ReduceOp, "RedOpType", dist.ReduceOp))):
        return {"type": "torch.distributed.ReduceOp", "value": str(value)}
    if isinstance(value, dist.P2POp):
        return _p2p(value), None
    return None


def _p2p(op):
    """An operation from one rank to another, by what is in it."""
    leaf = {"class_type": "torch.distributed.P2POp", "tensor": op.tensor, "op": op.op.__name__,
            "peer": op.peer, "tag": op.tag}
    try:
        leaf["group_id"] = _id_of(_ranks(op.group))
    except Exception as why:
        _probe.note(f"the ranks of a process group: {why}")
    return leaf
