# SPDX-License-Identifier: MIT
"""The optimizer and gradient clipping as parents of the calls inside them."""
import functools

from msprobe import _probe
from msprobe._guard import guarded

_after_step = []  # functions to call after each step of an optimizer


def _call(func, args, kwargs):
    return func(*args, **kwargs)


def rooted(name, outside=False, pass_on=_call):
    """Returns around(func, args, kwargs), which passes a call on inside a root of this name.

    outside: only where no module runs; inside one, the module is the parent."""
    def around(func, args, kwargs):
        root = _probe.enter_root(name, outside) if _probe.active() else None
        try:
            return pass_on(func, args, kwargs)
        finally:
            if root is not None:
                root.done()

    return around


def inside(func, name, outside=False):
    """Wraps func in a root of this name; see rooted()."""
    around = rooted(name, outside)

    @functools.wraps(func)
    def run(*args, **kwargs):
        return around(func, args, kwargs)

    run._is_inside = True
    return run


def stepping(step):
    """Wraps the step of an optimizer in a root, and calls the registered functions afterwards."""
    inner = inside(step, "optimizer")

    @functools.wraps(step)
    def run(self, *args, **kwargs):
        result = inner(self, *args, **kwargs)
        has_stepped(self)
        return result

    run._is_inside = True
    return run


def has_stepped(optimizer):
    """Calls the registered functions."""
    for then in _after_step:
        then(optimizer)


def is_inside(func):
    """Tells whether a function is one of these wrappers."""
    return getattr(func, "_is_inside", False)


def call_after_step(then):
    """Registers a function to be called with the optimizer after each of its steps."""
    _after_step.append(guarded(then))
