# SPDX-License-Identifier: MIT
"""Wrappers that dump the functions of MindSpore.

Each function is replaced, wherever found, by a wrapper object of the C half. The wrappers are in
place from the construction of the debugger on, since scripts keep what they have imported, except
during steps that are not collected.
"""
import functools
import weakref

from mindspore import Tensor, mint, ops

from msprobe import _probe
from msprobe._places import Places, owner_of
from msprobe.mindspore import _apis, _distributed

_METHODS = (type(lambda: None), type(str.join), type(int.__add__))
places = Places()


def wrapper(func, prefix, name):
    """Returns the wrapper of a function; binds to objects if the function does."""
    make = _probe.Op if isinstance(func, _METHODS) else _probe.Fn
    return make(func, prefix, name, 0, 0, "p" if name.startswith("dropout") else None)


def _wrap_names(module, names, prefix, make=wrapper):
    for dotted in names:
        owner, name = owner_of(module, dotted)
        func = getattr(owner, name, None) if owner is not None else None
        if callable(func) and not isinstance(func, (_probe.Op, _probe.Fn, type)):
            places.add(owner, name, func, make(func, prefix, name))


def _find_all():
    _wrap_names(ops, _apis.FUNCTIONAL, "Functional")
    _wrap_names(Tensor, _apis.TENSOR, "Tensor")
    _wrap_names(mint, _apis.MINT, "Mint")
    _wrap_names(mint.nn.functional, _apis.MINT_FUNCTIONAL, "MintFunctional")
    names = {"Distributed": _apis.DISTRIBUTED, "MintDistributed": _apis.MINT_DISTRIBUTED}
    for module, prefix, make in _distributed.modules():
        _wrap_names(module, names[prefix], prefix, make)


def put_all():
    """Puts the wrappers in place; repeated calls have no effect."""
    if not places:
        _find_all()
    places.put()
    _distributed.watch_waiting()


def take_all():
    """Restores the functions."""
    places.take()


def are_put():
    """Tells whether the wrappers are in place."""
    return places.is_put


# ---- primitives ---------------------------------------------------------------------

_primitives = []  # weak references to the watched primitives


def _watch_primitive(name, primitive):
    """Watches an operator object. Python looks up __call__ in the class, so the object gets its own
    class."""
    cls = type(primitive)
    if hasattr(cls, "_msprobe_stands_for"):
        return
    _primitives.append(weakref.ref(primitive))
    known = _probe.Fn(functools.partial(cls.__call__, primitive), "Primitive",
                      f"{name}.{cls.__name__}")
    primitive.__class__ = type(cls.__name__, (cls,), {
        "__call__": lambda self, *args: known(*args), "__module__": cls.__module__,
        "_msprobe_stands_for": cls})


def put_primitives(cells):
    """Watches the primitives that are attributes of cells."""
    for cell in cells:
        for name, primitive in getattr(cell, "_primitives", {}).items():
            if primitive is not None:
                try:
                    _watch_primitive(name, primitive)
                except TypeError as why:  # its class cannot be changed
                    _probe.note(f"the primitive {name}: {why}")


def without_primitives():
    """Restores the classes of all primitives until the returned function is called."""
    alive = [p for p in (ref() for ref in _primitives) if p is not None]
    watched = [(p, type(p)) for p in alive if hasattr(type(p), "_msprobe_stands_for")]
    for primitive, cls in watched:
        primitive.__class__ = cls._msprobe_stands_for

    def watch_again():
        for primitive, cls in watched:
            primitive.__class__ = cls

    return watch_again
