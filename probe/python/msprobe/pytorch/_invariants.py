# SPDX-License-Identifier: MIT
"""What holds in every training that is right, watched while one runs.

    optimizer      every parameter that gets a gradient is held by an optimizer
    still          a step changes the parameters that have a gradient
    outside        parameters change in steps only, where they did so in the first steps
    stale          a step's gradient begins at zero: zero_grad() was called
    finite         the gradient is finite
    zero           the gradient is not all zero
    dtype          dtypes of parameters and gradients stay
    autocast       the optimizer steps outside of autocast
    mode           a model with dropout or batch statistics trains in training mode, evaluates in evaluation mode
    scheduler      a scheduler of the learning rate steps at most once a step
    tied           parameters that are one stay one; an embedding and a head that begin equal are one
    batch          the batch is not that of the steps before, where others have differed
    replicas       the ranks of a data parallel training have equal parameters, and different batches

A few elements of each tensor are looked at. Ranks are compared through files beside the monitor's: there is no
communication. Each breach is said once for each kind and layer, on standard error and in invariants/rankN.jsonl."""
import gc
import json
import os
import weakref

import torch

from msprobe import _monitor, _probe
from msprobe._nested import is_a

_SETTLED = 3  # steps after which the habits of a program are known
_DROPPING = (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._BatchNorm)
_HINTS = {
    "optimizer": "look at what the optimizer was given: it was made before the layer, or for another model",
    "still": "look at the learning rate, the parameter groups, and whether the layer is part of the optimizer's model",
    "outside": "look for code that writes to parameters between steps: loading, clamping, a second optimizer",
    "stale": "call optimizer.zero_grad() before backward",
    "finite": "look at the loss and the layer's inputs in this step",
    "zero": "look whether the loss depends on the model: detach(), no_grad(), a constant loss",
    "dtype": "look for a cast of the model or of its gradients",
    "autocast": "leave the autocast context before optimizer.step()",
    "mode": "call model.train() before training and model.eval() before evaluation",
    "scheduler": "look for a second scheduler.step() in the loop, or in a library's loop",
    "tied": "tie the weights again after the model was changed or loaded",
    "batch": "look at the data loader: the same batch comes again",
    "replicas": "look whether the model is called through its wrapper, and whether every gradient is reduced",
    "same_data": "look at the sampler and the seeds of the ranks",
}


class _Incoming:
    """Hook of a parameter, called with a gradient before it is added up."""

    __slots__ = ("of", "one")

    def __init__(self, of, one):
        self.of, self.one = weakref.ref(of), one

    def monitor(self):
        of = self.of()
        return of._monitor() if of is not None else None

    @_monitor.surviving
    def __call__(self, _gradient):
        of = self.of()
        if of is not None:
            of.incoming(self.one)


class _Known:
    """What is known of one parameter."""

    __slots__ = ("parameter", "dtype", "is_fresh", "is_stale", "after", "still", "is_held", "has_gradient")

    def __init__(self, parameter):
        self.parameter = parameter  # a _Parameter of the monitor
        self.dtype = self.after = None
        self.is_fresh, self.is_stale = True, False  # no gradient since the last step; has one from before it
        self.still, self.is_held, self.has_gradient = 0, False, False


class Invariants:
    """Watches the training of one model; the monitor tells what happens, and calls nothing when it is over."""

    def __init__(self, monitor, model, parameters):
        self._monitor, self._model = weakref.ref(monitor), weakref.ref(model)
        self._known = [_Known(p) for p in parameters]
        self._said = set()
        self._steps = 0
        self._batches, self._batch, self._same = [], None, 0
        self._outside = 0  # steps before which parameters had changed, while habits are learnt
        self._schedulers = []
        self._tied = self._tied_names(model)
        self._drops = any(isinstance(m, _DROPPING) and getattr(m, "p", 1) != 0 for m in model.modules())
        self._held = set()
        self._file = None
        self._others = {}
        self._is_replica = type(model).__name__ == "DistributedDataParallel"
        self.handles = []
        for one in self._smallest():
            tensor = one.parameter.get()
            if tensor is not None and tensor.is_leaf:
                self.handles.append(tensor.register_hook(_Incoming(self, one)))
        self._check_twins(model)

    def _smallest(self):
        """The parameters whose gradients are watched as they come: those that cost least."""
        sized = [(one.parameter.get().numel(), i, one) for i, one in enumerate(self._known)]
        return [one for _n, _i, one in sorted(sized)[:4]]

    # ---- saying ------------------------------------------------------------------

    def _breach(self, kind, where, what):
        if (kind, where) in self._said or len(self._said) > 100:
            return
        self._said.add((kind, where))
        monitor = self._monitor()
        text = f"step {monitor._step}, rank {monitor._rank}: {where + ': ' if where else ''}{what}; {_HINTS[kind]}"
        _monitor.say(text)
        self._append({"kind": kind, "step": monitor._step, "rank": monitor._rank, "where": where, "text": text})

    def _append(self, record):
        monitor = self._monitor()
        if self._file is None:
            folder = os.path.join(_monitor.output_base(), "invariants")
            os.makedirs(folder, exist_ok=True)
            self._file = os.path.join(folder, f"rank{monitor._rank}.jsonl")
        with open(self._file, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    # ---- the model's calls ---------------------------------------------------------

    def called(self, module, args):
        """Called before the model runs."""
        if not torch.is_grad_enabled():
            if module.training and self._drops and self._steps:
                self._breach("mode", "", "the model is evaluated in training mode, with dropout or batch statistics")
            return
        if not module.training and self._drops and self._steps:
            self._breach("mode", "", "the model trains in evaluation mode, without dropout or batch statistics")
        hashes = [_probe.sample(a) for a in args if is_a(a, torch.Tensor)]
        if hashes and self._batch is None:
            self._batch = tuple(h[0] for h in hashes if h is not None)

    def incoming(self, one):
        """A gradient arrives at a parameter whose old one is still there."""
        parameter = one.parameter.get()
        if parameter is None:
            return
        old = parameter.grad
        if old is None:
            one.is_stale = False
        elif one.is_fresh:
            seen = _probe.sample(old)
            one.is_stale = seen is not None and seen[1] != 0
        one.is_fresh = False

    # ---- steps -----------------------------------------------------------------------

    def stepping(self, optimizer):
        if _is_autocast():
            self._breach("autocast", "", "the optimizer steps under autocast")
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        self._held |= held
        before, any_gradient, any_nonzero, changed = [], False, False, None
        for one in self._known:
            parameter = one.parameter.get()
            if parameter is None:
                continue
            seen = _probe.sample(parameter)
            gradient = parameter.grad
            one.has_gradient = one.has_gradient or gradient is not None
            if seen is not None and one.after is not None and seen[0] != one.after and changed is None:
                changed = one
            grown = _probe.sample(gradient) if gradient is not None and id(parameter) in held else None
            if grown is not None:
                any_gradient, any_nonzero = True, any_nonzero or grown[1] != 0
                self._check_gradient(one, parameter, gradient, grown)
            before.append((one, seen, grown))
        if any_gradient and not any_nonzero and not self._is_any_nonzero(held):
            self._breach("zero", "", "the gradient of every parameter is zero")
        self._check_outside(changed)
        self._check_held()
        return before

    def _is_any_nonzero(self, held):
        for one in self._known:
            parameter = one.parameter.get()
            if parameter is not None and id(parameter) in held and parameter.grad is not None and \
                    bool(parameter.grad.detach().any()):
                return True
        return False

    def _check_gradient(self, one, parameter, gradient, grown):
        name = one.parameter.name
        if not grown[2]:
            self._breach("finite", name, "its gradient has an infinity or a NaN")
        if one.is_stale:
            self._breach("stale", name, "its gradient still holds that of the step before")
        dtype = parameter.dtype, gradient.dtype
        if one.dtype not in (None, dtype):
            self._breach("dtype", name, f"its dtype and its gradient's were {one.dtype}, now {dtype}")
        one.dtype = dtype

    def _check_outside(self, changed):
        if changed is None:
            return
        if self._steps <= _SETTLED:
            self._outside += 1
        elif self._outside == 0:
            self._breach("outside", changed.parameter.name, "it has changed since the last step")

    def _check_held(self):
        """Waits for the optimizers of all parts of the model."""
        if self._steps != _SETTLED:
            return
        for other in gc.get_objects():
            if issubclass(type(other), torch.optim.Optimizer):  # isinstance() would ask proxies of the program
                self._held |= {id(p) for group in other.param_groups for p in group["params"]}
        for one in self._known:
            parameter = one.parameter.get()
            if parameter is not None and one.has_gradient and id(parameter) not in self._held:
                self._breach("optimizer", one.parameter.name, "it gets gradients, and no optimizer holds it")

    def stepped(self, optimizer, before):
        moved = [group["lr"] for group in optimizer.param_groups if isinstance(group.get("lr"), (int, float))]
        has_rate = not moved or max(moved) > 0
        for one, was, grown in before:
            parameter = one.parameter.get()
            if parameter is None:
                continue
            now = _probe.sample(parameter)
            one.after = now[0] if now is not None else None
            one.is_fresh = True
            if grown is not None and grown[1] != 0 and grown[2] and was is not None and now is not None and has_rate:
                one.still = one.still + 1 if was[0] == now[0] else 0
                if one.still == _SETTLED:
                    self._breach("still", one.parameter.name, f"{_SETTLED} steps have not changed it, and it has a "
                                 "gradient")
        self._check_tied()
        self._check_batch()
        self._check_schedulers(optimizer)
        if self._is_replica:
            self._compare_ranks()
        self._batch = None
        self._steps += 1

    # ---- weights that are one -----------------------------------------------------------

    @staticmethod
    def _tied_names(model):
        names = {}
        for path, module in model.named_modules():
            for key, parameter in dict.items(module._parameters):
                if parameter is not None:
                    names.setdefault(id(parameter), []).append((path, key))
        return [places for places in names.values() if len(places) > 1]

    def _check_tied(self):
        model = self._model()
        for places in self._tied:
            found = {id(dict.get(model.get_submodule(path)._parameters, key)) for path, key in places}
            if len(found) > 1:
                self._breach("tied", " and ".join(f"{path}.{key}" for path, key in places), "they were one parameter")

    @staticmethod
    def _weights(model, kind):
        """Returns the weights that are parameters: to ask a module for one that it computes would compute it."""
        found = [(name, dict.get(module._parameters, "weight")) for name, module in model.named_modules()
                 if isinstance(module, kind)]
        return [(name, weight) for name, weight in found if weight is not None]

    def _check_twins(self, model):
        """An embedding and a head with equal weights that are two parameters were one before."""
        tables, heads = self._weights(model, torch.nn.Embedding), self._weights(model, torch.nn.Linear)
        for a, table in tables:
            for b, head in heads:
                if table is head or table.shape != head.shape or not (table.requires_grad and head.requires_grad):
                    continue
                first, second = _probe.sample(table), _probe.sample(head)
                if first is not None and first == second and first[1] > 1:
                    self._breach("tied", f"{a}.weight and {b}.weight", "they begin equal, and are two parameters")

    # ---- data, learning rate, ranks --------------------------------------------------------

    def _check_batch(self):
        if not self._batch:
            return
        self._same = self._same + 1 if self._batches and self._batches[-1] == self._batch else 0
        has_differed = len(set(self._batches)) > _SETTLED
        if self._same == _SETTLED and has_differed:
            self._breach("batch", "", f"the batch is that of the {_SETTLED} steps before")
        self._batches = (self._batches + [self._batch])[-64:] if self._same == 0 else self._batches

    def _check_schedulers(self, optimizer):
        if self._steps == 1:
            kind = getattr(torch.optim.lr_scheduler, "LRScheduler", torch.optim.lr_scheduler._LRScheduler)
            self._schedulers = [[weakref.ref(o), o.last_epoch] for o in gc.get_objects() if issubclass(type(o), kind) and
                                getattr(o, "optimizer", None) is optimizer]
            return
        for entry in self._schedulers:
            scheduler = entry[0]()
            if scheduler is not None and getattr(scheduler, "optimizer", None) is optimizer:
                by = scheduler.last_epoch - entry[1]
                entry[1] = scheduler.last_epoch
                if by > 1:
                    self._breach("scheduler", type(scheduler).__name__, f"it stepped {by} times within one step")

    def _compare_ranks(self):
        """Writes what this rank has, and reads what the others have written of an earlier step."""
        monitor = self._monitor()
        mine = [self._steps, hash(tuple(one.after or 0 for one in self._known)), list(self._batch or ())]
        folder = os.path.join(_monitor.output_base(), "invariants")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"replica{monitor._rank}.txt"), "a", encoding="utf-8") as file:
            file.write(json.dumps(mine) + "\n")
        self._others.setdefault(monitor._rank, {})[self._steps] = mine
        if monitor._rank != min(monitor._mates):
            return
        for rank in monitor._mates:
            if rank != monitor._rank:
                self._read_rank(folder, rank)

    def _read_rank(self, folder, rank):
        try:
            with open(os.path.join(folder, f"replica{rank}.txt"), encoding="utf-8") as file:
                lines = [line for line in file.read().split("\n")[:-1] if line][-8:]
        except OSError:
            return
        own = self._others[self._monitor()._rank]
        same = 0
        for line in lines:
            step, parameters, batch = json.loads(line)
            mine = own.get(step)
            if mine is None:
                continue
            if mine[1] != parameters:
                self._breach("replicas", f"rank {rank}", f"its parameters differ from rank {self._monitor()._rank}'s "
                             f"after step {step}")
            same = same + 1 if batch and mine[2] == batch else 0
        if same >= _SETTLED:
            self._breach("same_data", f"rank {rank}", f"its batches are rank {self._monitor()._rank}'s")


def _is_autocast():
    asked = torch.is_autocast_enabled()
    cpu = getattr(torch, "is_autocast_cpu_enabled", None)
    try:
        return asked or torch.is_autocast_enabled("cpu")
    except TypeError:
        return asked or bool(cpu and cpu())
