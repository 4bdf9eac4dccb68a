# SPDX-License-Identifier: MIT
"""What programs do to the places where hooks live: dicts of modules, nodes of parameters, classes."""
import copy
import gc
import weakref
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

from harness import way

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of(width=4):
    return nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(model, step):
    return model(X).pow(2).mean() * (step + 1)


def count_hooks(model):
    return [(len(m._forward_pre_hooks), len(m._forward_hooks), len(m._backward_hooks)) for m in model.modules()]


@way
def dicts_of_hooks_replaced_in_the_middle(run):
    """As programs strip a module of all hooks."""
    model = model_of()
    model[0].register_forward_hook(lambda *_: run.note("hook", 0))

    def loss(model, step):
        if step == 1:
            for module in model.modules():
                module._forward_hooks = OrderedDict()
                module._forward_pre_hooks = OrderedDict()
        return loss_of(model, step)
    run.train(model, loss, steps=4)
    run.note("hooks", count_hooks(model))


@way
def hooks_registered_in_the_middle_of_a_step(run):
    model, seen = model_of(), []

    def loss(model, step):
        first = loss_of(model, step)
        handle = model[step].register_forward_hook(lambda *_: seen.append(("after", step)))
        model[step].register_forward_pre_hook(lambda *_: seen.append(("before", step)))
        second = loss_of(model, step)
        if step == 1:
            handle.remove()
        return first + second + loss_of(model, step)
    run.train(model, loss)
    run.note("seen", seen)
    run.note("hooks", count_hooks(model))


@way
def one_module_in_two_parents_and_two_models(run):
    shared = nn.Linear(4, 4)
    one, two = nn.Sequential(shared, nn.ReLU()), nn.Sequential(nn.Sequential(shared), shared)
    for i in range(4):
        with run.dump(two if i % 2 else one):
            loss = (one(X) + two(X)).sum()
            loss.backward()
        run.note("loss", loss)
        run.note("gradient", shared.weight.grad)
    run.note("hooks", count_hooks(two))


@way
def parameters_frozen_between_use_and_backward(run):
    model = model_of()
    for i in range(3):
        with run.dump(model):
            loss = loss_of(model, i)
            if i == 1:
                model[0].weight.requires_grad_(False)
            loss.backward()
        run.note("gradients", [p.grad for p in model.parameters()])
        model[0].weight.requires_grad_(True)


@way
def a_parameter_that_moves_to_another_module(run):
    model = model_of()

    def loss(model, step):
        if step == 1:
            weight = model[0].weight
            del model[0].weight
            model[0].other = nn.Linear(4, 8)
            model[0].other.weight = weight
            model[0].weight = nn.Parameter(weight.detach() * 2)
        return loss_of(model, step) + (model[0].other(X).sum() if step else 0)
    run.train(model, loss)


@way
def metadata_and_hooks_of_accumulators(run):
    """Nodes that accumulate gradients belong to the program: what it stores there is what it finds."""
    model, seen = model_of(), []

    def loss(model, step):
        nodes = [p.expand_as(p).grad_fn.next_functions[0][0] for p in model.parameters()]
        for i, node in enumerate(nodes):
            node.metadata["mine"] = (step, i)
            node.register_hook(lambda *_given, i=i: seen.append((step, i)))
        value = loss_of(model, step) + loss_of(model, step)
        again = [p.expand_as(p).grad_fn.next_functions[0][0] for p in model.parameters()]
        seen.append([a is b and a.metadata["mine"] for a, b in zip(nodes, again)])
        return value
    run.train(model, loss)
    run.note("seen", seen)


@way
def nodes_and_graphs_go_after_a_step_without_backward(run):
    model = model_of()
    for i in range(3):
        with run.dump(model):
            out = model(X)
            gone = weakref.ref(out)
            del out
        gc.collect()
        run.note("is gone", gone() is None)
        run.note("gradients", [p.grad for p in model.parameters()])


@way
def shallow_copies_within_a_step(run):
    """A shallow copy shares its dicts of hooks with the module."""
    model = model_of()

    def loss(model, step):
        twin = copy.copy(model[0])
        return loss_of(model, step) + F.mse_loss(twin(X), twin(X) * 0 + step)
    run.train(model, loss)
    twin = copy.copy(model[0])
    run.note("twin", twin(X))
    run.note("hooks", count_hooks(twin))


@way
def a_module_that_becomes_another_class(run):
    class Scaled(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 3

    model = model_of()

    def loss(model, step):
        model[0].__class__ = Scaled if step == 1 else nn.Linear
        return loss_of(model, step)
    run.train(model, loss)


@way
def functions_that_do_not_materialise_gradients(run):
    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            count = torch.tensor([3])
            ctx.mark_non_differentiable(count)
            out = x * y
            ctx.save_for_backward(x, y, out)
            return out, x + 1, count

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, first, second, _count):
            x, y, _ = ctx.saved_tensors
            run.note("given", (first is None, second is None))
            return first * y if first is not None else None, first * x if first is not None else None

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, x):
            return Pair.apply(self.a(x), self.b(x))
    model = Net()
    run.train(model, lambda model, step: model(X)[0].sum())


@way
def averaged_weights_and_their_statistics(run):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    mean = torch.optim.swa_utils.AveragedModel(model)
    schedule = torch.optim.swa_utils.SWALR(opt, swa_lr=0.01, anneal_epochs=2)
    for i in range(3):
        with run.dump(model):
            opt.zero_grad()
            loss_of(model, i).backward()
            opt.step()
            mean.update_parameters(model)
            schedule.step()
            torch.optim.swa_utils.update_bn([X, X * 2], mean)
        run.note("rate", schedule.get_last_lr())
    run.note_model(model)
    run.note("mean", mean.state_dict())


@way(needs=(2, 0))
def registrations_are_told_to_the_program(run):
    module = torch.nn.modules.module
    seen = []
    handles = [module.register_module_parameter_registration_hook(lambda _m, name, _p: seen.append(name)),
               module.register_module_buffer_registration_hook(lambda _m, name, _b: seen.append(name)),
               module.register_module_module_registration_hook(lambda _m, name, _s: seen.append(name))]
    model = model_of()
    run.train(model, loss_of)
    model.register_buffer("late", torch.ones(1))
    for handle in handles:
        handle.remove()
    run.note("seen", seen)


@way(needs=(2, 1))
def saved_tensors_that_may_be_changed(run):
    model = model_of()
    for _ in range(3):
        with run.dump(model), torch.autograd.graph.allow_mutation_on_saved_tensors():
            hidden = model[0](X)
            out = hidden.sin().sum()
            hidden.mul_(2)
            out.backward()
        run.note("gradient", model[0].weight.grad)


@way(needs=(2, 0))
def backward_in_one_thread_for_all_devices(run):
    model = model_of()

    def backward(loss):
        with torch.autograd.grad_mode.set_multithreading_enabled(False):
            torch.autograd.backward([loss, loss * 2], [None, torch.tensor(0.5)], retain_graph=True)
            loss.backward()
    run.train(model, loss_of, backward=backward)


@way
def gradients_taken_away_in_hooks(run):
    model = model_of()
    for p in model.parameters():
        p.register_hook(lambda g: g.clone().mul_(2) if g.dim() > 1 else None)
    kept = []

    def backward(loss):
        loss.backward()
        for p in model.parameters():
            kept.append(p.grad)
            p.grad = None if p.dim() == 1 else p.grad.t().contiguous().t()
    run.train(model, loss_of, backward=backward)
    run.note("kept", kept)


@way
def dicts_keyed_by_modules_and_parameters(run):
    model = model_of()
    modules = weakref.WeakKeyDictionary({m: i for i, m in enumerate(model.modules())})
    parameters = {p: i for i, p in enumerate(model.parameters())}

    def loss(model, step):
        run.note("kept", (len(modules), sum(parameters[p] for p in model.parameters())))
        run.note("state", sorted(vars(model[0])))
        return loss_of(model, step)
    run.train(model, loss)
