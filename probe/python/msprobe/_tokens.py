# SPDX-License-Identifier: MIT
"""Tokens of an inference: only a range of the model's calls is collected."""
from msprobe import _probe


def _check(token_range):
    ok = isinstance(token_range, (list, tuple)) and len(token_range) == 2 and \
        all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in token_range) and \
        token_range[0] <= token_range[1]
    if not ok:
        raise ValueError(f"token_range: expected [first, last], found {token_range!r}")


class Tokens:
    """Watches one model; calls are counted from each start."""

    def __init__(self, root):
        self.root = root
        self._range, self._calls = None, 0
        root.register_forward_pre_hook(self._called)

    def restart(self, token_range):
        """Stops collecting until the first call of the range."""
        _check(token_range)
        self._range, self._calls = tuple(token_range), 0
        _probe.stop()

    def forget(self):
        """Collects all calls of the model."""
        self._range = None

    def _called(self, _module, _args):
        if self._range is None:
            return
        number, self._calls = self._calls, self._calls + 1
        if number == self._range[0]:
            _probe.start()
        elif number == self._range[1] + 1:
            _probe.stop()
