# SPDX-License-Identifier: MIT
"""A dump of a MindSpore script without changes to the script: see msprobe/_auto.py.

Cells of the framework that wrap a model for its loss or for a whole step are skipped: the model is
the cell that they call.
"""
import functools

from mindspore import nn

from msprobe import _auto, _probe
from msprobe._guard import guarded
from msprobe._places import Places
from msprobe.mindspore import _cells, _graph_dump, _graphs, _optimizer, _wrap
from msprobe.mindspore._debugger import PrecisionDebugger, runs_graphs

_places = Places()


def _is_around_a_model(cell):
    return type(cell).__module__.startswith("mindspore.nn.wrap.") or \
        any(base.__module__.startswith("mindspore.nn.wrap.") for base in type(cell).__mro__)


class _Watch(_auto.Watch):
    def _parts_of(self, root):
        return (cell for _, cell in root.cells_and_names() if cell is not root)

    def _hook_model(self, root, prefix):
        _cells.hook_model(root, self._debugger._has_backward(), prefix)
        if self._debugger._info["level"] == "mix":
            _wrap.put_primitives(_cells.all_cells(root))

    def _begin(self):
        super()._begin()
        if self._debugger._info["level"] in ("L0", "mix") and _probe.active():
            _cells.hook_known()

    def called(self, cell):
        if runs_graphs():
            self._debugger._dump_graphs()
        elif isinstance(cell, tuple(_optimizer.bases())):
            self._add_parts(self._parts_of(cell))
        elif not _is_around_a_model(cell):
            super().called(cell)


def attach(config):
    """Dumps this process as config.json configures."""
    if _graph_dump.is_asked_for(config):
        _auto.make(config, PrecisionDebugger)
        return
    watch = _auto.watch(config, PrecisionDebugger, _Watch)
    if watch is None:
        return
    call, called = nn.Cell.__call__, guarded(watch.called)

    @functools.wraps(call)
    def run(self, *args, **kwargs):
        called(self)
        return call(self, *args, **kwargs)

    _places.add(nn.Cell, "__call__", call, run)
    _places.put()
    _graphs.hand_back_too(_places)
