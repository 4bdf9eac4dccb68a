# SPDX-License-Identifier: MIT
"""Communication of PyTorch: works that can be waited for, and related values."""
import functools

import torch

from msprobe import _communication, _probe
from msprobe._communication import wrapper

__all__ = ["recorder", "wrapper", "watch_waiting", "describe"]

recorder = functools.partial(_communication.recorder, pass_on=_probe.past)


def _wait(func, args, kwargs):
    result = _probe.past(func, args, kwargs)
    _communication.has_ended(args[0])
    return result


def watch_waiting():
    """Watches the wait() of works."""
    work = torch._C._distributed_c10d.Work
    _probe.watch(getattr(work.wait, "__func__", work.wait), _wait)


def _ranks(group):
    dist = torch.distributed
    if group is None:
        group = dist.distributed_c10d._get_default_group()
    return dist.get_process_group_ranks(group)


def describe(value):
    """Returns the leaf of a process group or a reduction; None for any other value.

    A point-to-point operation is described by its fields."""
    dist = torch.distributed
    if not dist.is_available():
        return None
    if isinstance(value, dist.ProcessGroup):
        return _communication.describe_group("torch.ProcessGroup", _ranks, value)
    if isinstance(value, (dist.ReduceOp, getattr(dist.ReduceOp, "RedOpType", dist.ReduceOp))):
        return {"type": "torch.distributed.ReduceOp", "value": str(value)}
    if isinstance(value, dist.P2POp):
        return _communication.describe_p2p("torch.distributed.P2POp", _ranks, value), None
    return None
