# SPDX-License-Identifier: MIT
"""Places of a framework's functions, and the wrappers put there."""


def owner_of(module, dotted):
    """Returns the object in which the last part of a dotted name is looked up, or None, and that
    part."""
    *path, name = dotted.split(".")
    for part in path:
        module = getattr(module, part, None)
    return module, name


def _restore(owner, name, was, is_own):
    if is_own:
        setattr(owner, name, was)
    elif name in vars(owner):
        delattr(owner, name)  # inherited from a base class


class Places:
    """Replaces functions by wrappers with put() and restores them with take()."""

    def __init__(self):
        self._all = []  # (owner, name, what is there, whether the owner itself has it, wrapper)
        self.is_put = False

    def __len__(self):
        return len(self._all)

    def add(self, owner, name, was, now):
        """was: owner.name; what a class has there is a classmethod or a staticmethod where
        owner.name is a function."""
        is_class = isinstance(owner, type)
        is_own = name in getattr(owner, "__dict__", (name,))  # else it comes from a class
        self._all.append((owner, name, vars(owner).get(name) if is_class else was, is_own, now))

    def give_up(self, owner, name):
        """Restores a function for good."""
        for entry in [e for e in self._all if e[0] is owner and e[1] == name]:
            self._all.remove(entry)
            _restore(*entry[:4])

    def put(self):
        self.is_put = True
        for owner, name, _, _, now in self._all:
            setattr(owner, name, now)

    def take(self):
        self.is_put = False
        for entry in self._all:
            _restore(*entry[:4])
