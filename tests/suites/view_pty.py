#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Uses the viewer on a pseudo terminal: every screen, help, prompt, size, stop and continue.

    python3 tests/suites/view_pty.py TERM KEYS COMMAND [ARGUMENT...]

Writes KEYS one after the other, each once the answer to the one before has come, with
changes of the size and a stop in between, then q until it ends.  Its exit status is
that of the command, 1 when a signal ended it or it did not end.  For runs under
valgrind and the like, which tell of what they find by that status.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

SIZES = [(60, 200), (10, 40), (5, 20), (24, 80)]
PATIENCE = 120  # seconds for one answer: valgrind on a busy machine


def size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))


def answer(fd, first, quiet):
    """Read until nothing comes for `quiet` seconds; False at the end of the terminal."""
    wait = first
    while select.select([fd], [], [], wait)[0]:
        try:
            if not os.read(fd, 65536):
                return False
        except OSError:
            return False
        wait = quiet
    return True


def ended(pid, seconds):
    """The exit status once it has ended, else None."""
    for _ in range(int(seconds * 10)):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    return None


def main():
    term, keys, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    pid, fd = pty.fork()
    if pid == 0:
        os.environ['TERM'] = term
        os.execvp(command[0], command)
    size(fd, 24, 80)
    answer(fd, PATIENCE, 1)
    for i, key in enumerate(keys):
        os.write(fd, {'\n': b'\r'}.get(key, key.encode()))
        answer(fd, 0.7, 0.1)
        if i % 7 == 3:
            size(fd, *SIZES[i // 7 % len(SIZES)])
            answer(fd, 0.7, 0.1)
        if i == len(keys) // 2:
            os.kill(pid, signal.SIGTSTP)
            answer(fd, 1, 0.1)
            os.kill(pid, signal.SIGCONT)
            answer(fd, 0.7, 0.1)
    for _ in range(8):
        try:
            os.write(fd, b'\x1bq')
        except OSError:
            break
        if not answer(fd, 1, 0.1):
            break
    status = ended(pid, PATIENCE)
    if status is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    print(f'{term}: ' + ('it did not end' if status is None else f'ended with {status}'))
    sys.exit(status if status is not None and status >= 0 else 1)


if __name__ == '__main__':
    main()
