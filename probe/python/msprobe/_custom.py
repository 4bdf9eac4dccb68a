# SPDX-License-Identifier: MIT
"""Functions that the program registers to be dumped."""
from msprobe import _probe
from msprobe._places import Places

places = Places()
places.is_put = True
_CUSTOM = 3  # a group of watched functions
_watched = {}  # (module, name) -> the function


def add(functions, module, name, prefix=None):
    """Dumps module.name; functions: the module with those of the framework, whose watch_custom, if it
    has one, keeps module.name the same object."""
    prefix = prefix or getattr(module, "__name__", "Custom")
    if not isinstance(prefix, str):
        raise ValueError(f"api_prefix: expected a text, found {prefix!r}")
    if not hasattr(module, name):
        raise ValueError(f"{module!r} has no {name}")
    remove(module, name)
    func = getattr(module, name)
    watch = getattr(functions, "watch_custom", None)
    watched = watch(func, prefix, name, _CUSTOM) if watch else None
    if watched is not None:
        _watched[id(module), name] = watched
        _probe.watching(True, _CUSTOM, watched)
        return
    places.add(module, name, func, functions.wrapper(func, prefix, name))
    places.put()


def remove(module, name):
    func = _watched.pop((id(module), name), None)
    if func is not None:
        _probe.watching(False, _CUSTOM, func)
    places.give_up(module, name)
