# SPDX-License-Identifier: MIT
"""Hooks of the cells of a model, and of their parameters' gradients."""
import inspect
import weakref

from mindspore import nn
from mindspore.common.hook_handle import HookHandle

from msprobe import _probe
from msprobe.mindspore import _behind
from msprobe.mindspore._behind import TAKES_KWARGS, WITH_KWARGS
from msprobe.mindspore._gradients import in_turn, watcher

_CAN_BE_CALLED_ALWAYS = "always_call" in inspect.signature(nn.Cell.register_forward_hook).parameters
_ALWAYS_CALLED = {"always_call": True} if _CAN_BE_CALLED_ALWAYS else {}
_CONTAINERS = ("CellList", "CellDict")  # they are never called

_hooked = []  # (weak references to a model or its chunks, its cells: _Hooked); no model is kept alive
_watched = {}  # (path, name) -> the parameters that have a hook, as weak references
watchers = weakref.WeakSet()  # others with hooks, which their without_hooks() removes


def check(model):
    models = model if isinstance(model, (list, tuple)) else [model]
    if not models or not all(isinstance(m, nn.Cell) for m in models):
        raise ValueError("model: expected a mindspore.nn.Cell or a list of them, as the levels L0 "
                         f"and mix need; found {type(model).__name__}")


def _chunks(models):
    return [models] if isinstance(models, nn.Cell) else list(models)


def _is_of(references, models):
    chunks = _chunks(models)
    return len(chunks) == len(references) and all(r() is chunk for r, chunk in zip(references, chunks))


def _named(models, prefix):
    """Yields (path, cell) of all cells below the models; chunks of a list by their number."""
    if isinstance(models, nn.Cell):
        chunks = [(prefix, models)]
    else:
        chunks = [(f"{i}.", model) for i, model in enumerate(models)]
    for prefix, model in chunks:
        for name, cell in model.cells_and_names():
            if cell is not model and type(cell).__name__ not in _CONTAINERS:
                yield prefix + name, cell


def all_cells(models):
    """Returns all cells of the models, the models included."""
    return [cell for model in _chunks(models) for _, cell in model.cells_and_names()]


def _register_after(cell, after):
    """Registers a hook before the program's own hooks.

    The usual way is not available for a cell with a custom backward."""
    handle = cell.register_forward_hook(_behind.stand_in, **WITH_KWARGS, **_ALWAYS_CALLED)
    if not hasattr(handle, "handle_id"):
        names = ("_forward_hook_with_kwargs", "_forward_hook_always_called")
        extra = [getattr(cell, name) for name in names if hasattr(cell, name)]
        words = {"extra_dict": extra if len(extra) > 1 else extra[0]} if extra else {}
        handle = HookHandle(cell._forward_hook, **words)
        for flags in extra:
            flags[handle.handle_id] = True
    cell._forward_hook[handle.handle_id] = after
    cell._forward_hook.move_to_end(handle.handle_id, last=False)
    return handle


def _hook_cell(cell, path, watcher):
    """Registers both hooks; returns the hook object and the handles that remove them."""
    hook = _probe.Hook(path, type(cell).__name__, TAKES_KWARGS)
    hook.backward = watcher
    return hook, (_behind.register_before(cell, hook), _register_after(cell, hook.after))


_TABLES = ("_forward_pre_hook", "_forward_hook", "_forward_pre_hook_with_kwargs", "_forward_hook_with_kwargs",
           "_forward_hook_always_called")


class _Hooked:
    """A cell of a model; its hooks are in its tables while calls are collected."""

    __slots__ = ("path", "cell", "hook", "entries", "is_put")

    def __init__(self, path, cell, watcher):
        self.path, self.cell = path, weakref.ref(cell)
        self.hook, handles = _hook_cell(cell, path, watcher)
        keys = [handle.handle_id for handle in handles]
        self.entries = [(name, key, getattr(cell, name)[key]) for name in _TABLES for key in keys
                        if key in getattr(cell, name, ())]
        self.is_put = True

    def put(self):
        cell = self.cell()
        if self.is_put or cell is None:
            return
        self.is_put = True
        for name, key, value in self.entries:
            table = getattr(cell, name)
            if name == "_forward_pre_hook":
                _behind.put_before(cell, key, self.hook)
                continue
            table[key] = value
            if name == "_forward_hook":
                table.move_to_end(key, last=False)

    def take(self):
        self.is_put = False
        cell = self.cell()
        if cell is None:
            return
        _behind.give_back(cell._forward_pre_hook)
        for name, key, _ in self.entries:
            getattr(cell, name).pop(key, None)


def _watch_parameters(cell, path, hook):
    params = [(n, p) for n, p in cell._params.items() if p is not None and p.requires_grad]
    new = [(i, n, p) for i, (n, p) in enumerate(params) if not any(r() is p for r in _watched.get((path, n), ()))]
    grads = _probe.Grads(hook, len(params)) if new else None
    for index, name, parameter in new:
        alive = [reference for reference in _watched.get((path, name), ()) if reference() is not None]
        _watched[path, name] = [*alive, weakref.ref(parameter)]
        parameter.register_hook(in_turn(_probe.Grad(grads, index, name, None, None)))


def hook_model(model, with_gradients, prefix=""):
    """Hooks a model until collecting stops; its parameters are checked at each call, since they can be replaced.

    The structure has backwards of cells even when no gradients are dumped."""
    _hooked[:] = [(references, cells) for references, cells in _hooked if any(r() is not None for r in references)]
    known = next((cells for references, cells in _hooked if _is_of(references, model)), None)
    if known is None:
        watches = watcher()
        known = [_Hooked(path, cell, watches) for path, cell in _named(model, prefix)]
        _hooked.append(([weakref.ref(chunk) for chunk in _chunks(model)], known))
    for one in known:
        one.put()
        cell = one.cell()
        if with_gradients and cell is not None and cell._params:
            _watch_parameters(cell, one.path, one.hook)


def hook_known():
    """Hooks all known models again, for a step that begins without start(model)."""
    for _, known in _hooked:
        for one in known:
            one.put()


def unhook():
    """Removes the hooks of all cells after collecting has stopped."""
    for _, known in _hooked:
        for one in known:
            one.take()


_dumped, _alone = [], []  # handles of hooks set by module_dump, and their cells


def hook_one(cell, name, with_gradients):
    """Hooks a cell under a name given by the program; a cell of a known model keeps its name."""
    if not isinstance(cell, nn.Cell):
        raise ValueError(f"module_dump: expected a mindspore.nn.Cell, found {type(cell).__name__}")
    if any(cell is one.cell() for _, known in _hooked for one in known if one.is_put):
        return
    hook, handles = _hook_cell(cell, name, watcher())
    _dumped.extend(handles)
    _alone.append(cell)
    if with_gradients:
        _watch_parameters(cell, name, hook)


def unhook_one():
    while _dumped:
        _dumped.pop().remove()
    _alone.clear()


# ---- while a graph is compiled --------------------------------------------------------------


def _is_ours(hook):
    module = type(hook).__module__ if not hasattr(hook, "__self__") else hook.__self__.__module__
    return isinstance(hook, (_probe.Hook, _probe.After)) or str(module).startswith("msprobe.")


def without(hooks):
    """Removes the hooks of msprobe from a table of a cell; returns the function that restores their order, or
    None."""
    _behind.give_back(hooks)
    known = list(hooks.items())
    ours = [key for key, hook in known if _is_ours(hook)]
    for key in ours:
        del hooks[key]

    def put():
        hooks.clear()
        hooks.update(known)

    return put if ours else None


def without_hooks():
    """Removes the hooks of msprobe from all cells until the returned function is called."""
    models = [model for references, _ in _hooked for model in (r() for r in references) if model is not None]
    cells = {id(cell): cell for cell in all_cells(models)}
    cells.update((id(cell), cell) for cell in _alone)
    dicts = [d for cell in cells.values() for d in (cell._forward_pre_hook, cell._forward_hook)]
    back = [put for put in map(without, dicts) if put is not None]
    back += [watcher.without_hooks() for watcher in watchers]

    def put_all():
        for put in back:
            put()

    return put_all
