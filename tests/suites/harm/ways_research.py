# SPDX-License-Identifier: MIT
"""Loops and layers as research code and training libraries write them: optimizers that ask twice, gradients that
are edited, weights that are made or come and go, graphs within graphs, caches by identity."""
import asyncio
import collections
import contextlib
import copy
import functools
import gc
import random
import sys
import types
import weakref

import torch
from torch import nn
from torch.nn import functional as F

from harness import way

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of(width=4):
    return nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(model, _step):
    return model(X).pow(2).mean()


class Sharp(torch.optim.Optimizer):
    """Sharpness-aware minimisation: a closure is called again at the worst place near by."""

    def __init__(self, params, lr, rho=0.05):
        super().__init__(params, {"rho": rho})
        self.base = torch.optim.SGD(self.param_groups, lr=lr, momentum=0.9)
        self.param_groups = self.base.param_groups

    def step(self, closure):
        closure = torch.enable_grad()(closure)
        with torch.no_grad():
            loss = closure()
            norm = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]).norm() + 1e-12
            moved = [(p, p.grad * (0.05 / norm)) for g in self.param_groups for p in g["params"]]
            for p, by in moved:
                p.add_(by)
            closure()
            for p, by in moved:
                p.sub_(by)
            self.base.step()
        return loss


@way
def sharpness_aware_steps_with_a_closure(run):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    opt = Sharp(model.parameters(), 0.05)
    for step in range(3):
        calls = []

        def closure():
            opt.zero_grad()
            model[1].momentum = 0.1 if not calls else 0
            calls.append(1)
            loss = loss_of(model, step)
            loss.backward()
            return loss
        with run.dump(model):
            run.note("loss", opt.step(closure))
    run.note_model(model)


@way
def gradients_of_tasks_that_are_projected(run):
    """PCGrad: one graph, a gradient for each task, conflicts are taken out."""
    trunk, heads = nn.Linear(4, 8), nn.ModuleList([nn.Linear(8, 1) for _ in range(3)])
    model = nn.ModuleList([trunk, heads])
    shared = list(trunk.parameters())
    for _ in range(3):
        with run.dump(model):
            h = torch.tanh(trunk(X))
            losses = [head(h).pow(2).mean() * (i + 1) for i, head in enumerate(heads)]
            grads = [torch.autograd.grad(loss, shared, retain_graph=True) for loss in losses]
            flat = [torch.cat([g.flatten() for g in gs]) for gs in grads]
            for i, one in enumerate(flat):
                for j in random.sample(range(3), 3):
                    dot = one @ flat[j]
                    if i != j and dot < 0:
                        one -= dot / flat[j].pow(2).sum() * flat[j]
            sum(losses).backward(inputs=list(heads.parameters()))
            offset, total = 0, sum(flat)
            for p in shared:
                p.grad = total[offset:offset + p.numel()].view_as(p).clone()
                offset += p.numel()
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-0.1)
        run.note("losses", losses)
    run.note_model(model)


@way(needs=(2, 0))
def weights_made_by_another_network(run):
    from torch.func import functional_call

    class Hyper(nn.Module):
        def __init__(self):
            super().__init__()
            self.target = nn.Linear(4, 3)
            self.code, self.make = nn.Parameter(torch.randn(5)), nn.Linear(5, 15)
            self.target.requires_grad_(False)

        def forward(self, x):
            made = self.make(torch.tanh(self.code))
            weights = {"weight": made[:12].view(3, 4), "bias": made[12:]}
            y = functional_call(self.target, weights, (x,))
            return y + F.conv1d(x.unsqueeze(1), made[:3].view(1, 1, 3)).squeeze(1).sum(1, keepdim=True)
    run.train(Hyper(), loss_of)


@way
def copies_of_a_layer_made_in_forward(run):
    class Momentum(nn.Module):
        def __init__(self):
            super().__init__()
            self.online, self.slow = nn.Linear(4, 4), None

        def forward(self, x):
            if self.slow is None:
                object.__setattr__(self, "slow", copy.deepcopy(self.online).requires_grad_(False))
            with torch.no_grad():
                for a, b in zip(self.slow.parameters(), self.online.parameters()):
                    a.lerp_(b, 0.1)
                wanted = self.slow(x)
            again = copy.deepcopy(self)
            run.note("copy", again.online(x))
            run.note("shallow", copy.copy(self.online)(x))
            return F.cosine_similarity(self.online(x), wanted + 0.1, dim=-1)
    run.train(Momentum(), loss_of)


@way
def an_equilibrium_whose_hook_removes_itself(run):
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.hook = nn.Linear(4, 4), None

        def f(self, z, x):
            return torch.tanh(self.inner(z) * 0.5 + x)

        def forward(self, x):
            with torch.no_grad():
                z = torch.zeros_like(x)
                for _ in range(8):
                    z = self.f(z, x)
            z = self.f(z, x)
            if not z.requires_grad:
                return z
            z0 = z.clone().detach().requires_grad_()
            f0 = self.f(z0, x)

            def backward_hook(grad):
                if self.hook is not None:
                    self.hook.remove()
                    self.hook = None
                g = grad
                for _ in range(6):
                    g = torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
                return g
            self.hook = z.register_hook(backward_hook)
            return z
    run.train(nn.Sequential(nn.Linear(4, 4), Fixed(), nn.Linear(4, 2)), loss_of)


class Adjoint(torch.autograd.Function):
    """Steps of an equation, taken back with graphs of their own in backward."""

    @staticmethod
    def forward(ctx, x, func, *params):
        ctx.func = func
        with torch.no_grad():
            for _ in range(4):
                x = x + 0.25 * func(x)
        ctx.save_for_backward(x, *params)
        return x

    @staticmethod
    def backward(ctx, grad):
        x, *params = ctx.saved_tensors
        sums = [torch.zeros_like(p) for p in params]
        for _ in range(4):
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                y = ctx.func(x)
                dx, *dp = torch.autograd.grad(y, (x, *params), grad * 0.25)
            x, grad = x.detach() - 0.25 * y.detach(), grad + dx
            for s, d in zip(sums, dp):
                s += d
        return (grad, None, *sums)


@way
def an_equation_and_its_adjoint(run):
    func = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
    model = nn.ModuleList([nn.Linear(4, 4), func])
    run.train(model, lambda m, _: Adjoint.apply(m[0](X), func, *func.parameters()).pow(2).mean())


class Reversed(torch.autograd.Function):
    """A block whose input is freed after forward, and made again from its output."""

    @staticmethod
    def forward(ctx, x1, x2, f, g):
        ctx.blocks = f, g
        with torch.no_grad():
            y1 = x1 + f(x2)
            y2 = x2 + g(y1)
        ctx.save_for_backward(y1.detach(), y2.detach())
        return y1, y2

    @staticmethod
    def backward(ctx, d1, d2):
        (f, g), (y1, y2) = ctx.blocks, ctx.saved_tensors
        with torch.enable_grad():
            y1 = y1.detach().requires_grad_()
            out = g(y1)
        out.backward(d2)
        with torch.no_grad():
            x2, d1 = y2 - out, d1 + y1.grad
        with torch.enable_grad():
            x2.requires_grad_()
            out = f(x2)
        out.backward(d1)
        return d1, d2 + x2.grad, None, None


@way
def reversible_blocks_that_free_their_inputs(run):
    blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)])
    model = nn.ModuleList([nn.Linear(4, 8), blocks])

    def loss(model, _step):
        a, b = model[0](X).chunk(2, dim=-1)
        for i in range(0, 4, 2):
            c, d = Reversed.apply(a, b, blocks[i], blocks[i + 1])
            a, b = c, d
        return (a * b).sum()
    run.train(model, loss)


@way
def states_kept_on_a_module_over_cut_steps(run):
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.out = nn.LSTMCell(4, 5), nn.Linear(5, 2)
            self.register_buffer("steps", torch.zeros((), dtype=torch.long), persistent=False)
            self.state = None

        def forward(self, x):
            self.steps += 1
            self.state = self.cell(x, self.state)
            return self.out(self.state[0])

        def cut(self):
            self.state = tuple(s.detach() for s in self.state)

    def loss(model, step):
        total = sum(model(X * t).pow(2).mean() for t in range(1, 4))
        model.cut()
        return total
    model = Keeps()
    run.train(model, loss, steps=4)
    run.note("state", model.state)


@way
def gradients_of_each_sample_by_hooks(run):
    """As private training does: activations are taken before, gradients after, and taken off the module."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    for m in (model[0], model[2]):
        m.register_forward_hook(lambda m, args, _: m.__dict__.setdefault("seen", []).append(args[0].detach())
                                if m.training else None)

        def collect(m, _grads, outs):
            a = m.seen.pop()
            if not m.seen:
                del m.seen
            m.weight.grad_sample = torch.einsum("ni,nj->nij", outs[0] * len(a), a)
        m.register_full_backward_hook(collect)

    def loss(model, _step):
        return model(X).pow(2).mean() + model(X * 0.5).sum() * 0.1
    run.train(model, loss)
    run.note("each", [m.weight.grad_sample for m in (model[0], model[2])])
    run.note("left", [sorted(k for k in vars(m) if not k.startswith("_")) for m in model])


@way
def a_forward_redirected_by_a_strategy(run):
    """As Lightning calls training_step through the wrapper of a module: forward is another for one call."""
    class Lit(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = model_of()

        def training_step(self, x):
            return self.net(x).pow(2).mean() + self.net(x * 2).mean()

        def forward(self, x):
            return self.net(x)

    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, *args):
            return self.module(*args)

    def redirected(wrapper, module, *args):
        original = module.forward

        def call_training_step(*args):
            module.forward = original
            out = module.training_step(*args)
            return out
        module.forward = call_training_step
        out = wrapper(*args)
        run.note("forward", module.__dict__["forward"] == original)
        del module.__dict__["forward"]
        return out
    model = Wrapper(Lit())
    run.train(model, lambda m, _: redirected(m, m.module, X))


@way
def forwards_wrapped_by_a_launcher(run):
    """As accelerate prepares a model: autocast and a conversion around forward, and off again."""
    def convert(func):
        @functools.wraps(func)
        def call(*args, **kwargs):
            return func(*args, **kwargs).float()
        return call
    model = model_of()
    model._original_forward = model.forward
    inner = model.forward.__func__
    wrapped = torch.autocast("cpu", dtype=torch.bfloat16)(inner)
    model.forward = types.MethodType(wrapped, model)
    model.forward = types.MethodType(convert(model.forward.__func__), model)

    def loss(model, step):
        if step == 2:
            forward = model.forward
            while hasattr(forward, "__wrapped__"):
                forward = forward.__wrapped__
            model.forward = types.MethodType(forward.__get__(model).__func__, model)
        return loss_of(model, step)
    run.train(model, loss)


@way(needs=(2, 0))
def weights_that_are_there_within_forward_only(run):
    """As offloading hooks do: parameters live elsewhere, and are on meta before and after."""
    model = model_of()
    kept = {k: v.detach().clone() for k, v in model.state_dict().items()}

    def place(module, prefix, source):
        for name, p in list(module._parameters.items()):
            value = source[prefix + name] if source else p.detach().to("meta")
            module._parameters[name] = nn.Parameter(value, requires_grad=False)
    for prefix, module in (("0.", model[0]), ("2.", model[2])):
        old = module.forward

        def forward(*args, module=module, prefix=prefix, old=old):
            place(module, prefix, kept)
            out = old(*args)
            place(module, prefix, None)
            return out
        module.forward = functools.update_wrapper(forward, old)
        place(module, prefix, None)
    for step in range(3):
        with run.dump(model), torch.no_grad():
            run.note("loss", loss_of(model, step))
        run.note("where", [p.device.type for p in model.parameters()])


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, before):
        ctx.before = before
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        ctx.before()
        return grad, None


@way
def parameters_gathered_and_released_by_hooks(run):
    """As a third stage of sharding: empty outside of forward and backward; gathered by hooks and by a Function."""
    model = model_of()
    full = {}

    def gather(module):
        for p in module._parameters.values():
            p.data = full[p].clone()

    def release(module):
        for p in module._parameters.values():
            p.data = torch.empty(0)
    for module in (model[0], model[2]):
        for p in module._parameters.values():
            full[p] = p.detach().clone()
            p.ds_shape = p.shape
        release(module)
        module.register_forward_pre_hook(lambda m, args: gather(m))

        def after(m, args, out):
            release(m)
            return Gather.apply(out, lambda: gather(m)) if out.requires_grad else out
        module.register_forward_hook(after)
    for step in range(3):
        with run.dump(model):
            for p in model.parameters():
                p.grad = None
            loss = loss_of(model, step)
            loss.backward()
            for module in (model[0], model[2]):
                for p in module._parameters.values():
                    full[p] -= 0.1 * p.grad
                release(module)
        run.note("loss", loss)
        run.note("full", list(full.values()))


@way
def the_order_in_which_tensors_die(run):
    """Weak references tell when each activation goes, between the calls of the modules."""
    events = []

    def loss(model, step):
        def watch(m, _args, out):
            name = type(m).__name__
            events.append(name)
            weakref.finalize(out, events.append, f"{name} {step} gone")
        handles = [m.register_forward_hook(watch) for m in model]
        with torch.no_grad() if step == 1 else contextlib.nullcontext():
            x = X
            for m in model:
                x = m(x)
                x = F.softplus(x)
                events.append("next")
        for h in handles:
            h.remove()
        events.append("backward")
        x = x.sum()
        return x if step != 1 else x + model[0].bias.sum()
    gc.disable()
    try:
        run.train(model_of(), loss)
    finally:
        gc.enable()
    run.note("events", events)


@way
def a_cache_by_identity_that_forgets_the_dead(run):
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.known, self.hits = nn.Linear(4, 4), {}, []

        def forward(self, x):
            key = id(x)
            self.hits.append(key in self.known)
            if key not in self.known:
                self.known[key] = weakref.ref(x, lambda _: self.known.pop(key, None))
            return torch.tanh(self.linear(x))

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = Cache()

        def forward(self, x):
            y = self.cache(x)
            return self.cache(y) + self.cache(y) + self.cache(x)
    gc.disable()
    model = Twice()
    run.train(model, loss_of)
    run.note("hits", model.cache.hits)
    run.note("left", len(model.cache.known))
    gc.enable()


class Steals(torch.autograd.Function):
    """Tells how many hold what comes in, and gives a gradient that the accumulator may take as it is."""
    told = []

    @staticmethod
    def forward(ctx, w):
        Steals.told.append(("forward", sys.getrefcount(w)))
        return w * 2

    @staticmethod
    def backward(ctx, grad):
        Steals.told.append(("backward", sys.getrefcount(grad)))
        out = torch.full_like(grad, 3.0)
        Steals.told.append(out.data_ptr())
        return out


@way
def how_many_hold_a_tensor_decides_what_is_done(run):
    """A gradient that nobody else holds becomes .grad as it is; a program may ask as well before it writes in place."""
    class Asks(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.seen = nn.Parameter(torch.ones(6, 4)), []

        def forward(self, x):
            self.seen.append(sys.getrefcount(x))
            return F.relu(x * Steals.apply(self.w))
    asks = Asks()
    model = nn.Sequential(nn.Linear(4, 4), asks)
    asks.w.register_hook(lambda g: asks.seen.append(("hook", sys.getrefcount(g))))
    taken = []
    for _ in range(3):
        Steals.told.clear()
        with run.dump(model):
            asks.w.grad = None
            y = model(X)
            y.sum().backward()
        taken.append(asks.w.grad.data_ptr() == Steals.told[-1])
        run.note("told", Steals.told[:-1])
    run.note("taken", taken)
    run.note("seen", asks.seen)
    run.note("model", sys.getrefcount(model))


@way
def rollouts_replay_and_a_slow_target(run):
    policy, value = model_of(), nn.Linear(4, 1)
    target = copy.deepcopy(value)
    model = nn.ModuleList([policy, value])
    memory = collections.deque(maxlen=8)

    def loss(model, step):
        with torch.inference_mode():
            for x in X:
                action = torch.distributions.Categorical(logits=policy(x)).sample()
                memory.append((x.clone(), action.item(), float(target(x))))
        batch = random.sample(list(memory), 4)
        x, a = torch.stack([b[0] for b in batch]), torch.tensor([b[1] for b in batch])
        dist = torch.distributions.Categorical(logits=policy(x.clone()))
        gain = torch.tensor([b[2] for b in batch]) - value(x.clone()).squeeze(-1)
        target.load_state_dict({k: v.lerp(value.state_dict()[k], 0.1) for k, v in target.state_dict().items()})
        return (-dist.log_prob(a) * gain.detach() - 0.01 * dist.entropy()).mean() + F.smooth_l1_loss(gain, gain * 0)
    run.train(model, loss)
    run.note("target", list(target.parameters()))


@way
def codes_of_a_book_that_learns_in_forward(run):
    """A straight-through estimate, and buffers that are averaged in place in forward."""
    class Book(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("codes", torch.randn(5, 4))
            self.register_buffer("counts", torch.ones(5))

        def forward(self, x):
            near = torch.cdist(x, self.codes).argmin(-1)
            hot = F.one_hot(near, 5).type(x.dtype)
            if self.training:
                with torch.no_grad():
                    self.counts.mul_(0.9).add_(hot.sum(0), alpha=0.1)
                    self.codes.data.lerp_((hot.t() @ x) / self.counts[:, None], 0.2)
            q = F.embedding(near, self.codes)
            return x + (q - x).detach(), (q.detach() - x).pow(2).mean(), near

    class Auto(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.book, self.down = nn.Linear(4, 4), Book(), nn.Linear(4, 4)

        def forward(self, x):
            q, extra, near = self.book(self.up(x))
            soft = F.gumbel_softmax(q, hard=True)
            return (self.down(q) - x).pow(2).mean() + extra + (soft * q).sum() * 0.01
    run.train(Auto(), lambda m, _: m(X))


@way
def two_models_that_take_turns_in_a_loop_of_events(run):
    class Awaits(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        async def forward(self, x):
            y = self.linear(x)
            await asyncio.sleep(0)
            return F.relu(y) + self.linear(y)

    async def both(models):
        outs = await asyncio.gather(*[m(X) for m in models])
        loss = sum(o.pow(2).mean() for o in outs)
        await asyncio.get_running_loop().run_in_executor(None, loss.backward)
        return loss
    models = nn.ModuleList([Awaits(), Awaits()])
    for _ in range(2):
        with run.dump(models):
            run.note("loss", asyncio.run(both(models)))
    run.note_model(models)
