# SPDX-License-Identifier: MIT
"""Making two runs equal."""
import os
import random

import torch

from msprobe._seed import check
from msprobe.pytorch import _random


def _without_dropout():
    """Replaces the dropout functions by the identity."""
    functional = torch.nn.functional
    for name in ("dropout", "dropout2d", "dropout3d"):
        real = getattr(functional, name)
        if getattr(real, "_drops_nothing", False):
            continue

        def keep(input, p=0.5, training=True, inplace=False, _real=real):
            if not 0.0 <= p <= 1.0:
                raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
            return _real(input, 0.0, training, inplace)

        keep.__name__ = keep.__qualname__ = name
        keep.__module__ = functional.__name__
        keep._drops_nothing = True
        setattr(functional, name, keep)


def _deterministic():
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ["HCCL_DETERMINISTIC"] = "True"
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.enabled = False
    torch.backends.cudnn.benchmark = False


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False, is_enhanced: bool = False):
    """Seed every generator; mode: deterministic kernels; rm_dropout: no dropout.

    is_enhanced: each call that draws random numbers begins with the same state."""
    check(seed, mode=mode, rm_dropout=rm_dropout, is_enhanced=is_enhanced)
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    try:
        import numpy
        numpy.random.seed(seed)
    except ImportError:
        pass
    torch.manual_seed(seed)
    npu = getattr(torch, "npu", None)
    if npu is not None:
        npu.manual_seed_all(seed)
    if mode:
        _deterministic()
    if rm_dropout:
        _without_dropout()
    if is_enhanced:
        _random.fix_states()
