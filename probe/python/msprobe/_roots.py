# SPDX-License-Identifier: MIT
"""The optimizer and gradient clipping as parents of the calls inside them."""
import functools

from msprobe import _probe

_after_step = []  # functions to call after each step of an optimizer


def inside(func, name, outside=False):
    """Wraps func in a root of this name. outside: only where no module runs; inside one, the module
    is the parent."""
    @functools.wraps(func)
    def run(*args, **kwargs):
        root = _probe.enter_root(name, outside) if _probe.active() else None
        try:
            return func(*args, **kwargs)
        finally:
            if root is not None:
                root.done()

    run._is_inside = True
    return run


def stepping(step):
    """Wraps the step of an optimizer in a root, and calls the registered functions afterwards."""
    inner = inside(step, "optimizer")

    @functools.wraps(step)
    def run(self, *args, **kwargs):
        result = inner(self, *args, **kwargs)
        for then in _after_step:
            then(self)
        return result

    run._is_inside = True
    return run


def is_inside(func):
    """Tells whether a function is one of these wrappers."""
    return getattr(func, "_is_inside", False)


def call_after_step(then):
    """Registers a function to be called with the optimizer after each of its steps."""
    _after_step.append(then)
