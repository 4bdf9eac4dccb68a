# SPDX-License-Identifier: MIT
"""The optimizer and gradient clipping as parents of what is called in them."""
import functools

from msprobe import _probe

_after_step = []  # functions to call when an optimizer has stepped


def inside(func, name, outside=False):
    """func, within a root of this name; outside: not where a module runs, which holds it then."""
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
    """The step of an optimizer: a root, and those who wait for it hear of its end."""
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
    """Whether it is what one of these gave."""
    return getattr(func, "_is_inside", False)


def call_after_step(then):
    """Have a function called with the optimizer after each of its steps."""
    _after_step.append(then)
