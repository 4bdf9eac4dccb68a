# SPDX-License-Identifier: MIT
"""Functions that the program registers to be dumped."""
from msprobe._places import Places

places = Places()
places.is_put = True


def add(wrapper, module, name, prefix=None):
    """Dumps module.name; wrapper makes a wrapper as for a function of the framework."""
    prefix = prefix or getattr(module, "__name__", "Custom")
    if not isinstance(prefix, str):
        raise ValueError(f"api_prefix: expected a text, found {prefix!r}")
    if not hasattr(module, name):
        raise ValueError(f"{module!r} has no {name}")
    remove(module, name)
    func = getattr(module, name)
    places.add(module, name, func, wrapper(func, prefix, name))
    places.put()


def remove(module, name):
    places.give_up(module, name)
