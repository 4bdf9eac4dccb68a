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

    __slots__ = ("key", "theirs", "hook", "more")

    def __init__(self, key, theirs, hook, more):
        self.key, self.theirs, self.hook = key, theirs, hook
        self.more = more  # the keywords of the call, in a tuple, where the program's hook is not given them

    @guarded
    def leave(self, table):
        if table.get(self.key) is self:
            table[self.key] = self.theirs


class _BothBefore(_Both):
    TABLE = "_forward_pre_hook"

    def __call__(self, cell, *given):
        self.leave(getattr(cell, self.TABLE))
        came = self.theirs(cell, *given)
        if came is not None:
            if len(given) == 1:
                given = (came if isinstance(came, tuple) else (came,),)
            elif isinstance(came, tuple) and len(came) == 2:
                given = came
            else:
                return came  # MindSpore refuses it in its own words
        ours = self.hook(cell, *given, *self.more)
        if ours is None:
            return came
        return ours[0] if self.more else ours


class _BothAfter(_Both):
    TABLE = "_forward_hook"

    def __call__(self, cell, args, *given):
        self.leave(getattr(cell, self.TABLE))
        came = self.theirs(cell, args, *given)
        result = given[-1] if came is None else came
        ours = self.hook(cell, args, *given[:-1], *self.more, result)
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
        return self._stand_in_for_the_last(cell, table, given[1:2] if TAKES_KWARGS else ())

    @guarded
    def _stand_in_for_the_last(self, cell, table, kwargs):
        key, theirs = next(reversed(table.items()))
        if any(one.hook is self.hook for one in _stand_ins(theirs)):
            return
        takes_kwargs = TAKES_KWARGS and key in getattr(cell, self.both.TABLE + "_with_kwargs")
        table[key] = self.both(key, theirs, self.hook, () if takes_kwargs else kwargs)


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
