# SPDX-License-Identifier: MIT
"""Sentences of ours on the program's standard error, which may be closed, full, replaced, or a pipe without a reader."""
import fcntl
import os
import signal
import stat
import sys

from msprobe import _probe

_PIPE = {signal.SIGPIPE}


def _identity(number):
    """Returns which file a descriptor is; None when it is closed."""
    try:
        known = os.fstat(number)
    except OSError:
        return None
    return known.st_dev, known.st_ino


_first = _identity(2)


def _is_data(number):
    """Tells whether the file is none that lines may be written to: one of the program's own that has got the number of
    standard error, and is not appended to as a log is."""
    return number == 2 and _identity(number) != _first and stat.S_ISREG(os.fstat(number).st_mode) and \
        not fcntl.fcntl(number, fcntl.F_GETFL) & os.O_APPEND


def _write(stream, line):
    """Past the stream's buffer where there is a file below it: what cannot be written would stay in the buffer, and be
    an error of the program's next line or of its end."""
    try:
        number = stream.fileno()
    except (AttributeError, OSError, ValueError):  # a stream in memory, or of the program's own
        number = None
    if number is None:
        try:
            stream.write(line)
            stream.flush()
        except Exception:
            pass  # it refuses the line
        return
    if not _is_data(number):
        os.write(number, line.encode(errors="backslashreplace"))


def say(text):
    """Writes a line; where nobody can read it, does nothing. A program may have SIGPIPE end it."""
    stream = sys.stderr
    if stream is None:
        return
    was_pending = signal.SIGPIPE in signal.sigpending()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _PIPE)
    try:
        _write(stream, f"msprobe: {text}\n")
    except Exception as why:
        if _probe.is_alien(why):
            raise
    finally:
        if not was_pending and signal.SIGPIPE in signal.sigpending():
            signal.sigtimedwait(_PIPE, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
