# SPDX-License-Identifier: MIT
"""The optimizer and gradient clipping as parents of what is called in them."""
import functools

from msprobe import _probe


def inside(func, name):
    """func, within a root of this name."""
    @functools.wraps(func)
    def run(*args, **kwargs):
        root = _probe.enter_root(name) if _probe.active() else None
        try:
            return func(*args, **kwargs)
        finally:
            if root is not None:
                root.done()

    run._is_inside = True
    return run
