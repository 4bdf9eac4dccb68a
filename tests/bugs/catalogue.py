# SPDX-License-Identifier: MIT
"""The list of bugs: each is a function that trains one step, rightly or as the reported program did.

    @bug("owner/name#number", "what was wrong", truth=within("layers.0.attn"))
    def its_name(right, start): ...

It calls start(model) before the step, as a user calls debugger.start. A bug of several ranks runs in
that many processes of torch.distributed. The truth says which suspects name the place of the mistake,
written from the source of the program: a regular expression over "NODE @ MODULE".
"""
import re

BUGS = []


class Bug:
    def __init__(self, name, where, why, truth, ranks, run):
        self.name, self.where, self.why, self.truth = name, where, why, truth
        self.ranks, self.run = ranks, run


def bug(where, why, truth, ranks=1):
    def add(run):
        BUGS.append(Bug(run.__name__, where, why, truth, ranks, run))
        return run
    return add


def within(path, ops=r"\w+", direction="forward"):
    """Operators of the module at this path or of modules in it, and these modules."""
    at = re.escape(path) + r"(?:\.\S+)?"
    return rf"^(?:[A-Za-z]+\.(?:{ops})\.\d+\.{direction}|Module\.\S+\.{direction}(?:\.\d+)?) @ {at}$"


def outside(ops, direction="forward"):
    """Operators of the model's own forward, of the loss or of the step, by their names."""
    return rf"^[A-Za-z]+\.(?:{ops})\.\d+\.{direction} @ "


def either(*truths):
    return "|".join(f"(?:{t})" for t in truths)
