# SPDX-License-Identifier: MIT
"""Hooks of cells behind those of the program.

MindSpore walks through a table of hooks itself and raises when the table changes under way, unless the last hook
changes it: there a hook of the program may remove itself. So nothing of msprobe stands behind it. Where the program
has hooks, that of msprobe stands in front of them and takes, for one call, the place of the last one, which it calls."""
import inspect

from mindspore import nn

from msprobe._guard import guarded

TAKES_KWARGS = "with_kwargs" in inspect.signature(nn.Cell.register_forward_hook).parameters
WITH_KWARGS = {"with_kwargs": True} if TAKES_KWARGS else {}


class _Both:
    """Stands in the place of the program's last hook: calls it, and then that of msprobe."""

    __slots__ = ("key", "theirs", "hook", "flags")

    def __init__(self, key, theirs, hook, flags):
        self.key, self.theirs, self.hook = key, theirs, hook
        self.flags = flags  # of hooks that take keywords, where the program's is none of them

    @guarded
    def leave(self, table):
        if table.get(self.key) is self:
            table[self.key] = self.theirs
        if self.flags is not None:
            self.flags.pop(self.key, None)


class _BothBefore(_Both):
    TABLE = "_forward_pre_hook"

    def __call__(self, cell, *given):
        self.leave(getattr(cell, self.TABLE))
        came = self.theirs(cell, *(given[:1] if self.flags is not None else given))
        if came is not None:
            if TAKES_KWARGS and self.flags is None:
                if not isinstance(came, tuple) or len(came) != 2:
                    return came  # MindSpore refuses it in its own words
                given = came
            else:
                given = (came if isinstance(came, tuple) else (came,), *given[1:])
        ours = self.hook(cell, *given)
        if ours is not None or came is None:
            return ours
        return given if TAKES_KWARGS else given[0]


class _BothAfter(_Both):
    TABLE = "_forward_hook"

    def __call__(self, cell, *given):
        self.leave(getattr(cell, self.TABLE))
        came = self.theirs(cell, *((given[0], given[-1]) if self.flags is not None else given))
        ours = self.hook(cell, *(given if came is None else (*given[:-1], came)))
        return came if ours is None else ours


def _stand_ins(value):
    while isinstance(value, _Both):
        yield value
        value = value.theirs


class _InFront:
    """Stands in front of the program's hooks."""

    __slots__ = ("hook", "both")

    def __init__(self, hook, both):
        self.hook, self.both = hook, both

    def __call__(self, cell, *given):
        table = getattr(cell, self.both.TABLE)
        if next(reversed(table.values())) is self:
            return self.hook(cell, *given)
        return self._stand_in_for_the_last(cell, table)

    @guarded
    def _stand_in_for_the_last(self, cell, table):
        key, theirs = next(reversed(table.items()))
        if any(one.hook is self.hook for one in _stand_ins(theirs)):
            return
        flags = getattr(cell, self.both.TABLE + "_with_kwargs") if TAKES_KWARGS else None
        is_other = flags is not None and key not in flags
        table[key] = self.both(key, theirs, self.hook, flags if is_other else None)
        if is_other:
            flags[key] = True


def _put(table, key, hook, both):
    table.pop(key, None)
    if table:
        table[key] = _InFront(hook, both)
        table.move_to_end(key, last=False)
    else:
        table[key] = hook


def put_before(cell, key, hook):
    """Puts a hook into the table of those before the construct."""
    _put(cell._forward_pre_hook, key, hook, _BothBefore)


def give_back(table):
    """Gives the program's hooks their places again, which a call that raised has left to others."""
    for value in list(table.values()):
        for one in _stand_ins(value):
            one.leave(table)


def stand_in(*_args):
    """Stands for a hook object while it is registered: some versions accept functions alone."""


def register_before(cell, hook):
    """Registers a hook before the construct; returns the handle that removes it."""
    handle = cell.register_forward_pre_hook(stand_in, **WITH_KWARGS)
    put_before(cell, handle.handle_id, hook)
    return handle


def register_after(cell, hook):
    """Registers a hook after the construct; returns the handle that removes it."""
    handle = cell.register_forward_hook(stand_in, **WITH_KWARGS)
    if hasattr(handle, "handle_id"):  # a cell with a backward of its own takes none
        _put(cell._forward_hook, handle.handle_id, hook, _BothAfter)
    return handle
