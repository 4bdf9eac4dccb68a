# SPDX-License-Identifier: MIT
"""Marks of a MindSpore program under `msprobe run`.

The program's own marks, by mindspore.profiler.mstx, which the framework drops unless the device is
Ascend and its profiler is installed.  In domain `mindspore`, marks that the program does not make:

    dataset          range   waiting for the next batch of a dataset
    optimizer_step   range   an optimizer that runs function by function
    save_checkpoint  range   mindspore.save_checkpoint
    step             mark    begin of a training step: at the first batch or when a profiler with a
                             schedule starts, then after each step of the first optimizer, or of
                             the profiler where optimizers run in graphs

The wrapped functions return and raise the same as before.
"""
import functools
import importlib
import weakref

import mstx
from msprobe_marks import guarded
from msprobe_marks import mark as mark_loop
from msprobe_marks import range_end as end_range
from msprobe_marks import range_start as begin_range

DOMAIN = "mindspore"


# ---- marks of the program ---------------------------------------------------------------------


def _official(domain):
    """Converts the name of a domain: the framework's "default" is the domain without a name."""
    return None if domain == "default" else domain



def mark(message, stream=None, domain="default"):
    if message and isinstance(message, str) and domain and isinstance(domain, str):
        mstx.mark(message, domain=_official(domain))


def range_start(message, stream=None, domain="default"):
    if not (message and isinstance(message, str) and domain and isinstance(domain, str)):
        return 0
    return mstx.range_start(message, domain=_official(domain))


def range_end(range_id, domain="default"):
    if isinstance(range_id, int) and range_id > 0 and domain and isinstance(domain, str):
        mstx.range_end(range_id, domain=_official(domain))


def attach_marks(mindspore):
    """Replaces the framework's functions by ours, except on Ascend, where the framework's call the
    functions of the ABI; elsewhere they have no effect."""
    cls = importlib.import_module("mindspore.profiler").mstx

    def chosen(ours, own):
        safe = guarded(ours, 0 if ours is range_start else None)

        @functools.wraps(own)
        def call(*args, **kwargs):
            on_device = cls.enable and mindspore.get_context("device_target") == "Ascend"
            return (own if on_device else safe)(*args, **kwargs)

        return call

    for ours in (mark, range_start, range_end):
        setattr(cls, ours.__name__, staticmethod(chosen(ours, getattr(cls, ours.__name__))))


# ---- marks of the loop ------------------------------------------------------------------------


def ranged(text, call):
    """Returns `call` with a range around it."""

    @functools.wraps(call)
    def marked(*args, **kwargs):
        opened = begin_range(text, DOMAIN)
        try:
            return call(*args, **kwargs)
        finally:
            end_range(opened, DOMAIN)

    return marked


class Steps:
    """Marks training steps: those of the first optimizer or profiler that ends one."""

    def __init__(self):
        self._begun, self._leader = False, None
        self.begin, self.ended = guarded(self._begin), guarded(self._ended)

    def _begin(self):
        if not self._begun:
            self._next()

    def _ended(self, leader):
        if self._leader is None or self._leader() is None:
            self._leader = weakref.ref(leader)
        if self._leader() is leader:
            self._next()

    def _next(self):
        self._begun = True
        mark_loop("step", DOMAIN)


def attach_optimizers(mindspore, steps):
    """Wraps the call of an optimizer, which is its step; in a graph the call is never made."""
    bases = [mindspore.nn.Optimizer]
    optim = getattr(getattr(mindspore, "experimental", None), "optim", None)
    if optim is not None:
        bases.append(optim.Optimizer)
    for base in bases:
        call = base.__call__
        whole = ranged("optimizer_step", call)

        def marked(self, *args, _whole=whole, **kwargs):
            steps.begin()
            done = _whole(self, *args, **kwargs)
            steps.ended(self)
            return done

        base.__call__ = functools.wraps(call)(marked)


def attach_profilers(_mindspore, steps):
    """Wraps the methods by which a program tells the profiler where a step begins and ends.

    The framework's two classes name the flag of a schedule, without which there are no steps,
    each in its own way."""
    def first(self):
        if getattr(self, "record_steps", False) or getattr(self, "_record_steps", False):
            steps.begin()

    def after(call, then):
        @functools.wraps(call)
        def marked(self, *args, **kwargs):
            done = call(self, *args, **kwargs)
            then(self)
            return done
        return marked

    module = importlib.import_module("mindspore.profiler")
    for kind in {getattr(module, name) for name in ("Profiler", "profile") if hasattr(module, name)}:
        kind.start, kind.step = after(kind.start, first), after(kind.step, steps.ended)


def attach_datasets(_mindspore, steps):
    iterators = importlib.import_module("mindspore.dataset.engine.iterators").Iterator
    following = ranged("dataset", iterators.__next__)

    @functools.wraps(iterators.__next__)
    def marked(self):
        steps.begin()
        return following(self)

    iterators.__next__ = marked


def attach_saving(mindspore):
    serialization = importlib.import_module("mindspore.train.serialization")
    whole = ranged("save_checkpoint", serialization.save_checkpoint)
    mindspore.save_checkpoint = serialization.save_checkpoint = whole
    for name in ("mindspore.train", "mindspore.train.callback._checkpoint"):
        module = importlib.import_module(name)
        if hasattr(module, "save_checkpoint"):
            module.save_checkpoint = whole


def attach(mindspore, has_loop=True):
    """Attaches each part separately, since another version of the framework may lack one.  has_loop:
    also adds marks that the program does not make itself."""
    steps = Steps()
    of_loop = (
        lambda framework: attach_optimizers(framework, steps),
        lambda framework: attach_profilers(framework, steps),
        lambda framework: attach_datasets(framework, steps),
        attach_saving,
    )
    for part in (attach_marks, *(of_loop if has_loop else ())):
        try:
            part(mindspore)
        except Exception as missing:
            mark_loop(f"mindspore is marked in part: {missing}", DOMAIN)
