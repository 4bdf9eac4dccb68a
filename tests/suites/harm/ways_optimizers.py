# SPDX-License-Identifier: MIT
"""Optimizers, schedules, mixed precision and clipping."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

from harness import VERSION, way

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of(width=4):
    return nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Linear(8, 1))


def loss_of(model, step):
    return F.mse_loss(model(X), X.sum(1, keepdim=True) * (step + 1))


@way
def optimizers_of_all_kinds(run):
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adamax, torch.optim.NAdam, torch.optim.RAdam,
                 torch.optim.Adagrad, torch.optim.Adadelta, torch.optim.RMSprop, torch.optim.Rprop, torch.optim.ASGD):
        run.train(model_of(), loss_of, optimizer=make, lr=0.01, steps=2)


@way
def optimizers_over_lists_and_fused(run):
    kinds = [{"foreach": True}, {"foreach": False}] + ([{"fused": True}] if VERSION >= (2, 4) else [])
    for kind in kinds:
        run.train(model_of(), loss_of, optimizer=lambda p, lr: torch.optim.AdamW(p, lr=lr, **kind))


@way
def differentiable_and_capturable_optimizers(run):
    run.train(model_of(), loss_of, optimizer=lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, nesterov=True, weight_decay=0.1))
    run.train(model_of(), loss_of, optimizer=lambda p, lr: torch.optim.Adam(p, lr=lr, amsgrad=True, maximize=True))


@way
def lbfgs_with_a_closure(run):
    model = model_of()
    opt = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = loss_of(model, 0)
        loss.backward()
        return loss
    for _ in range(2):
        with run.dump(model):
            run.note("loss", opt.step(closure))
    run.note_model(model)
    run.note("state", opt.state_dict())


@way
def closures_for_first_order_optimizers(run):
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure():
        opt.zero_grad()
        loss = loss_of(model, 0)
        loss.backward()
        return loss
    for _ in range(3):
        with run.dump(model):
            run.note("loss", opt.step(closure))
    run.note_model(model)


@way
def groups_of_parameters_and_schedules(run):
    model = model_of()
    opt = torch.optim.AdamW([{"params": model[0].parameters(), "lr": 0.1, "weight_decay": 0.0}, {"params": model[2].parameters()}], lr=0.01)
    rates = [torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=10), torch.optim.lr_scheduler.LambdaLR(opt, lambda e: 0.9 ** e)]
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0)
    for i in range(4):
        with run.dump(model):
            opt.zero_grad()
            loss = loss_of(model, i)
            loss.backward()
            opt.step()
            for rate in rates:
                rate.step()
            plateau.step(loss)
        run.note("rates", [g["lr"] for g in opt.param_groups])
    run.note_model(model)
    run.note("schedule", rates[0].state_dict())


@way
def warm_restarts_and_chained_schedules(run):
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    s = torch.optim.lr_scheduler
    rate = s.SequentialLR(opt, [s.LinearLR(opt, 0.1, total_iters=2), s.CosineAnnealingWarmRestarts(opt, 2)], [2])
    for i in range(5):
        with run.dump(model):
            opt.zero_grad()
            loss_of(model, i).backward()
            opt.step()
            rate.step()
        run.note("rate", rate.get_last_lr())
    run.note_model(model)


@way
def a_schedule_before_the_first_step_warns(run):
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    rate = torch.optim.lr_scheduler.StepLR(opt, 1)
    with run.dump(model):
        loss_of(model, 0).backward()
        rate.step()
        opt.step()
    run.note("rate", rate.get_last_lr())


@way
def an_optimizer_of_ones_own(run):
    class Lion(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    m = self.state[p].setdefault("m", torch.zeros_like(p))
                    p.add_((m * 0.9 + p.grad * 0.1).sign(), alpha=-group["lr"])
                    m.mul_(0.99).add_(p.grad, alpha=0.01)
            return "done"

    run.train(model_of(), loss_of, optimizer=Lion, lr=0.01)
    model = model_of()
    opt = Lion(model.parameters(), 0.1)
    loss_of(model, 0).backward()
    run.note("returned", opt.step())
    run.note("names", (type(opt).step.__name__, opt.__class__.__name__, repr(opt)))


@way
def an_optimizer_that_wraps_another(run):
    class Sharpness(torch.optim.Optimizer):
        def __init__(self, params, lr):
            self.base = torch.optim.SGD(params, lr=lr)
            super().__init__(self.base.param_groups, self.base.defaults)

        def step(self, closure=None):
            with torch.no_grad():
                for g in self.param_groups:
                    for p in g["params"]:
                        p.add_(p.grad, alpha=0.05)
            closure()
            with torch.no_grad():
                for g in self.param_groups:
                    for p in g["params"]:
                        p.sub_(p.grad, alpha=0.05)
            self.base.step()

    model = model_of()
    opt = Sharpness(list(model.parameters()), 0.1)
    for i in range(3):
        with run.dump(model):
            opt.zero_grad()
            loss_of(model, i).backward()
            opt.step(lambda: loss_of(model, i).backward())
    run.note_model(model)


@way
def hooks_of_optimizers(run):
    model = model_of()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    seen = []
    if hasattr(opt, "register_step_pre_hook"):
        opt.register_step_pre_hook(lambda o, a, k: seen.append("pre"))
        opt.register_step_post_hook(lambda o, a, k: seen.append("post"))
    for i in range(3):
        with run.dump(model):
            opt.zero_grad()
            loss_of(model, i).backward()
            opt.step()
    run.note("seen", seen)
    run.note_model(model)


@way
def states_of_optimizers_saved_and_loaded(run):
    model = model_of()
    opt = run.train(model, loss_of, optimizer=torch.optim.Adam)
    saved, weights = copy.deepcopy(opt.state_dict()), copy.deepcopy(model.state_dict())
    run.train(model, loss_of, optimizer=torch.optim.Adam)
    model.load_state_dict(weights)
    again = torch.optim.Adam(model.parameters())
    again.load_state_dict(saved)
    with run.dump(model):
        loss_of(model, 5).backward()
        again.step()
    run.note_model(model)
    run.note("state", again.state_dict())


@way
def clipping_of_norms_and_values(run):
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(3):
        with run.dump(model):
            opt.zero_grad()
            (loss_of(model, i) * 100).backward()
            run.note("norm", torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5, norm_type=2 if i else float("inf")))
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)
            opt.step()
    run.note_model(model)


@way
def parameters_as_one_vector(run):
    from torch.nn.utils import parameters_to_vector, vector_to_parameters
    model = model_of()
    with run.dump(model):
        loss_of(model, 0).backward()
        v = parameters_to_vector(model.parameters())
        vector_to_parameters(v * 0.5, model.parameters())
        loss_of(model, 1).backward()
    run.note("vector", v)
    run.note_model(model)


@way
def mixed_precision_on_the_processor(run):
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1))

    def loss(m, i):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = m(X)
            run.note("dtype", y.dtype)
            with torch.autocast("cpu", enabled=False):
                return y.float().pow(2).sum()
    run.train(model, loss)


@way
def functions_of_ones_own_in_mixed_precision(run):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    model = nn.Sequential(nn.Linear(4, 8))

    def loss(m, i):
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
            return Double.apply(m(X)).float().sum()
    run.train(model, loss)


@way
def a_scaler_of_gradients(run):
    scaler = torch.cuda.amp.GradScaler(enabled=False) if VERSION < (2, 3) else torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        with run.dump(model):
            opt.zero_grad()
            scaler.scale(loss_of(model, i) * (float("inf") if i == 2 else 1)).backward()
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
        run.note("scale", scaler.get_scale())
    run.note_model(model)


@way
def master_weights_of_full_precision(run):
    model = model_of().to(torch.bfloat16)
    master = [p.detach().float().clone().requires_grad_() for p in model.parameters()]
    opt = torch.optim.AdamW(master, lr=0.01)
    for i in range(3):
        with run.dump(model):
            model.zero_grad()
            F.mse_loss(model(X.bfloat16()).float(), X.sum(1, keepdim=True)).backward()
            for m, p in zip(master, model.parameters()):
                m.grad = p.grad.float()
            opt.step()
            with torch.no_grad():
                for m, p in zip(master, model.parameters()):
                    p.copy_(m)
    run.note_model(model)
    run.note("master", master)


@way
def learning_of_a_learning_rate(run):
    model = nn.Sequential(nn.Linear(4, 1))
    rate = torch.tensor(0.1, requires_grad=True)
    with run.dump(model):
        w = model[0].weight
        (g,) = torch.autograd.grad((X @ w.t()).pow(2).mean(), w, create_graph=True)
        fast = w - rate * g
        (X @ fast.t()).pow(2).mean().backward()
    run.note("rate", rate.grad)
    run.note_model(model)


@way
def model_agnostic_meta_learning(run):
    model = model_of()
    call = torch.func.functional_call if VERSION >= (2, 0) else torch.nn.utils.stateless.functional_call
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        with run.dump(model):
            opt.zero_grad()
            fast = dict(model.named_parameters())
            for _ in range(2):
                loss = call(model, fast, (X,)).pow(2).mean()
                got = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
                fast = {k: p - 0.1 * g for (k, p), g in zip(fast.items(), got)}
            outer = call(model, fast, (X * 2,)).pow(2).mean()
            outer.backward()
            opt.step()
        run.note("loss", outer)
    run.note_model(model)


@way
def two_optimizers_for_one_model(run):
    model = model_of()
    a, b = torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.Adam(model[2].parameters(), lr=0.1)
    for i in range(4):
        with run.dump(model):
            for opt in (a, b):
                opt.zero_grad()
            loss_of(model, i).backward()
            (a if i % 2 else b).step()
    run.note_model(model)
    run.note("states", [a.state_dict(), b.state_dict()])


@way
def zero_grad_in_all_forms(run):
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        with run.dump(model):
            if i % 2:
                model.zero_grad(set_to_none=False)
            else:
                opt.zero_grad(set_to_none=True)
            loss_of(model, i).backward()
            before = [id(p.grad) for p in model.parameters()]
            loss_of(model, i).backward()
            run.note("same gradients", before == [id(p.grad) for p in model.parameters()])
            opt.step()
    run.note_model(model)
