# SPDX-License-Identifier: MIT
"""Functions of the program's own, dumped because it says so."""

_originals = {}  # (id of the module, name) -> what it was


def add(wrapper, module, name, prefix=None):
    """Dump module.name; wrapper makes what stands for a function of a framework."""
    prefix = prefix or getattr(module, "__name__", "Custom")
    if not isinstance(prefix, str):
        raise ValueError(f"api_prefix: expected a text, found {prefix!r}")
    if not hasattr(module, name):
        raise ValueError(f"{module!r} has no {name}")
    func = _originals.setdefault((id(module), name), getattr(module, name))
    setattr(module, name, wrapper(func, prefix, name))


def remove(module, name):
    func = _originals.pop((id(module), name), None)
    if func is not None:
        setattr(module, name, func)
