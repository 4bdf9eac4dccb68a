# SPDX-License-Identifier: MIT
"""Marks of a training loop in PyTorch that its program does not make itself, in domain `torch`:

    dataloader       range   waiting for the next batch of a DataLoader
    optimizer_step   range   the step of an optimizer
    save_checkpoint  range   torch.save
    garbage_collection  range  a collection of all generations by Python
    step             mark    begin of a training step: at the first batch, then after each step of
                             the first optimizer
    batch elements   counter the size of the first tensor of a batch

The wrapped functions return and raise the same as before.
"""
import contextlib
import functools
import sys
import threading
import weakref

import msprobe_collections
import msprobe_distributed
from msprobe_marks import guarded, mark, range_end, range_start

DOMAIN = "torch"
recorder = msprobe_distributed.Recorder()
sample_use = guarded(recorder.sample_use)
is_compiling = guarded(msprobe_distributed.is_compiling, True)  # after a failure: nothing is marked


def ranged(text, call):
    """Returns `call` with a range around it."""

    @functools.wraps(call)
    def marked(*args, **kwargs):
        if is_compiling():
            return call(*args, **kwargs)
        sample_use()
        opened = range_start(text, DOMAIN)
        try:
            return call(*args, **kwargs)
        finally:
            sample_use()
            range_end(opened, DOMAIN)

    return marked


class Steps:
    """Marks training steps: those of the first optimizer, as a program may have several."""

    def __init__(self):
        self.begun = False
        self.leader = None
        self.inside = threading.local()
        self.begin, self.ended = guarded(self._begin), guarded(self._ended)

    def _begin(self):
        if not self.begun:
            self._next()

    def _ended(self, optimizer):
        if self.leader is None or self.leader() is None:
            self.leader = weakref.ref(optimizer)
        if self.leader() is optimizer:
            self._next()

    def _next(self):
        self.begun = True
        mark("step", DOMAIN)

    def marked(self, step):
        """Wraps the step of an optimizer class; a step that calls its base class counts once."""
        within = self.inside
        whole = ranged("optimizer_step", step)

        @functools.wraps(step)
        def marked_step(optimizer, *args, **kwargs):
            if getattr(within, "step", False) or is_compiling():
                return step(optimizer, *args, **kwargs)
            within.step = True
            try:
                self.begin()
                done = whole(optimizer, *args, **kwargs)
            finally:
                within.step = False
            self.ended(optimizer)
            return done

        marked_step.has_msprobe_marks = True
        return marked_step


def attach_optimizers(torch, steps):
    """Wraps each optimizer class when its first object is made."""
    base = torch.optim.Optimizer
    init = base.__init__

    @guarded
    def attach_to(kind):
        if not getattr(kind.step, "has_msprobe_marks", False):
            kind.step = steps.marked(kind.step)

    @functools.wraps(init)
    def marked_init(self, *args, **kwargs):
        init(self, *args, **kwargs)
        attach_to(type(self))

    base.__init__ = marked_init


def elements(batch, kind):
    """Returns the number of elements of the first tensor in a batch, 0 when there is none.  Only plain
    containers are looked into: others may act when they are read."""
    parts = list(batch.values()) if type(batch) is dict else batch
    for part in parts if type(parts) in (list, tuple) else (parts,):
        if type(part) is kind:
            return part.numel()
    return 0


def attach_loaders(torch, steps):
    batches = torch.utils.data.dataloader._BaseDataLoaderIter
    following = ranged("dataloader", batches.__next__)

    unseen = getattr(getattr(torch, "_C", None), "DisableTorchFunction", contextlib.nullcontext)
    kind = getattr(torch, "Tensor", None)

    @guarded
    def count_batch(batch):
        with unseen():  # modes of the program see no read of ours
            recorder.count("batch elements", elements(batch, kind))

    @functools.wraps(batches.__next__)
    def marked_next(self):
        steps.begin()
        batch = following(self)
        count_batch(batch)
        return batch

    batches.__next__ = marked_next


def attach_saving(torch):
    save = torch.save
    whole = ranged("save_checkpoint", save)

    @functools.wraps(save)
    def marked_save(*args, **kwargs):
        saved = args[0] if args else kwargs.get("obj")
        pickled = type(saved).__name__.endswith("Storage")  # pickle saves tensors one by one
        return (save if pickled else whole)(*args, **kwargs)

    torch.save = torch.serialization.save = marked_save


def attach(torch):
    """Attaches each part separately, since another version of torch may lack one."""
    steps = Steps()
    for part in (
        lambda: attach_optimizers(torch, steps),
        lambda: attach_loaders(torch, steps),
        lambda: attach_saving(torch),
        lambda: msprobe_collections.attach(DOMAIN),
        lambda: msprobe_distributed.attach(torch),
    ):
        try:
            part()
        except Exception as missing:
            mark(f"torch {torch.__version__} is marked in part: {missing}", DOMAIN)
