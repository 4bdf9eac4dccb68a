# SPDX-License-Identifier: MIT
"""Marks what Python does for itself in a parallel program:

    garbage_collection  range  a collection of all generations
"""
import gc

import mstx

_attached = []


def attach(domain):
    """Marks collections of all generations, in the domain of the first package that asks for it; those of
    young generations take only microseconds."""
    if not _attached:
        _attached.append(mstx._collection_of(domain))
        gc.callbacks.extend(_attached)
