# SPDX-License-Identifier: MIT
"""What runs inside a training and may fail: the dump ends, which is said once, and the training goes on."""
import functools

from msprobe import _probe


def guarded(func, otherwise=None):
    """Returns func with `otherwise` as its result when it fails."""
    @functools.wraps(func)
    def call(*args, **kwargs):
        try:
            return func(*args, **kwargs)
        except Exception as why:
            if _probe.is_alien(why):
                raise
            _probe.switch_off(f"{func.__name__}: {why!r}")
            return otherwise

    return call


def surely(func):
    """Calls func, which may be called twice, and once more when it fails: half of it would harm the program."""
    try:
        return func()
    except Exception as why:
        _probe.switch_off(f"{getattr(func, '__name__', func)}: {why!r}")
        return func()
