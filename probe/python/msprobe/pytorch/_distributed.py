# SPDX-License-Identifier: MIT
"""Communication of PyTorch: works that can be waited for, and related values."""
import torch

from msprobe import _communication
from msprobe._communication import wrapper

__all__ = ["wrapper", "watch_waiting", "describe"]


def watch_waiting():
    classes = {getattr(torch._C._distributed_c10d, "Work", None),
               getattr(torch.distributed, "Work", None)}
    for cls in classes - {None}:
        _communication.watch_waiting(cls)


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
