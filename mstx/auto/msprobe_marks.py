# SPDX-License-Identifier: MIT
"""Marks that cannot harm the program: the functions of module `mstx`, and a guard for what is around them.

An exception in here ends the marks of this process.  It is said once, on standard error unless
MSTX_QUIET=2, and the program goes on as it would without marks.
"""
import functools
import os
import sys

import mstx

_is_off = False


def _switch_off(why):
    global _is_off
    if _is_off:
        return
    _is_off = True
    if os.environ.get("MSTX_QUIET") != "2" and sys.stderr is not None:
        try:
            sys.stderr.write(f"msprobe: no further marks of the framework, the program goes on: {why!r}\n")
        except Exception:
            pass  # the program has closed it


def guarded(func, otherwise=None, is_end=False):
    """Returns func with `otherwise` as its result when it fails, and from then on.

    is_end: func ends something that has begun, so it is still called after a failure elsewhere."""

    @functools.wraps(func)
    def call(*args, **kwargs):
        if _is_off and not is_end:
            return otherwise
        try:
            return func(*args, **kwargs)
        except Exception as why:
            _switch_off(why)
            return otherwise

    return call


def _range_start(text, domain):
    return mstx.range_start(text, domain=domain)


def _range_end(opened, domain):
    mstx.range_end(opened, domain=domain)


def _mark(text, domain):
    mstx.mark(text, domain=domain)


range_start = guarded(_range_start, 0)
range_end = guarded(_range_end, is_end=True)
mark = guarded(_mark)
