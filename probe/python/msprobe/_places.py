# SPDX-License-Identifier: MIT
"""Where functions of a framework are found, and what stands there meanwhile."""


def owner_of(module, dotted):
    """What a dotted name is looked up in, None if there is no such thing, and its last part."""
    *path, name = dotted.split(".")
    for part in path:
        module = getattr(module, part, None)
    return module, name


class Places:
    """They stay as they are until put(), and are as they were after take()."""

    def __init__(self):
        self._all = []  # (owner, name, what it was, is it the owner's own, what it is now)
        self.is_put = False

    def __len__(self):
        return len(self._all)

    def add(self, owner, name, was, now):
        is_own = not isinstance(owner, type) or name in vars(owner)
        self._all.append((owner, name, was, is_own, now))

    def give_up(self, owner, name):
        """The function is back for good."""
        for entry in [e for e in self._all if e[0] is owner and e[1] == name]:
            self._all.remove(entry)
            setattr(owner, name, entry[2])

    def put(self):
        self.is_put = True
        for owner, name, _, _, now in self._all:
            setattr(owner, name, now)

    def take(self):
        self.is_put = False
        for owner, name, was, is_own, _ in self._all:
            if is_own:
                setattr(owner, name, was)
            elif name in vars(owner):
                delattr(owner, name)  # it has it from its base
