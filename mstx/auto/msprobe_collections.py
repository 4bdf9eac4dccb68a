# SPDX-License-Identifier: MIT
"""Marks what Python does for itself in a parallel program:

    garbage_collection  range  a collection of all generations
"""
import gc
import threading

import msprobe_distributed
from msprobe_marks import guarded, range_end, range_start

_attached = []


def attach(domain):
    """Marks collections of all generations, in the domain of the first package that asks for it; those of
    young generations take only microseconds."""
    if _attached:
        return
    opened = threading.local()
    sample_use = guarded(msprobe_distributed.Recorder().sample_use)

    def told(phase, info):
        if info["generation"] == 2:
            sample_use()
        if info["generation"] == 2 and phase == "start":
            opened.range = range_start("garbage_collection", domain)
        elif info["generation"] == 2 and getattr(opened, "range", None) is not None:
            range_end(opened.range, domain)
            opened.range = None

    _attached.append(guarded(told, is_end=True))
    gc.callbacks.append(_attached[0])
