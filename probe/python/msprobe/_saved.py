# SPDX-License-Identifier: MIT
"""Gradients of a value that the program has saved by hand."""
from msprobe import _probe
from msprobe._values import items_of


class _Place:
    def __init__(self, key):
        self.key = key


class SavedGradients:
    """Collects gradients; writes them when all have arrived, or when the step ends.

    watch(tensor, then) registers a function to be called with the gradient of a tensor and returns
    True; False for a tensor without a gradient; None for any other value."""

    def __init__(self, variable, name, number, watch):
        self._name, self._number = name, number
        # A gradient may arrive while the others are still being registered: one more is left until
        # then.
        self._grads, self._left, self._watch = {}, 1, watch
        self._shape = self._look_into(variable)
        self._arrived()

    def _look_into(self, value):
        key = len(self._grads)
        self._grads[key] = None
        self._left += 1
        is_watched = self._watch(value, lambda grad: self._come(key, grad))
        if is_watched:
            return _Place(key)
        del self._grads[key]
        self._left -= 1
        if is_watched is None and isinstance(value, (list, tuple)):
            return [self._look_into(item) for item in items_of(value) or ()]
        if is_watched is None and isinstance(value, dict):
            return {key: self._look_into(item) for key, item in dict.items(value)}
        return None

    def _come(self, key, grad):
        if self._grads.get(key) is None and self._name is not None:
            self._grads[key] = grad
            self._arrived()

    def _arrived(self):
        self._left -= 1
        if self._left == 0:
            self.write()

    def _filled(self, value):
        if isinstance(value, _Place):
            return self._grads[value.key]
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in dict.items(value)}
        return None

    def write(self):
        if self._name is not None:
            _probe.save(self._name, self._filled(self._shape), True, self._number)
            self._name = None
            self._grads.clear()
