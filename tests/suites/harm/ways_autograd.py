# SPDX-License-Identifier: MIT
"""Functions of one's own, hooks, graphs that are kept, run twice or differentiated again."""
import torch
from torch import nn
from torch.utils import checkpoint as ckpt

from harness import VERSION, way
from ways_arguments import Calls


def mlp(width=4, act=nn.Tanh):
    return nn.Sequential(nn.Linear(width, width), act(), nn.Linear(width, width), act(), nn.Linear(width, 1))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def trained(run, forward, **options):
    model, x = Calls(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4)), torch.randn(3, 4)
    run.train(model, lambda m, i: m(x), **options)
    return model


@way
def a_function_of_ones_own(run):
    trained(run, lambda self, x: self.b(Square.apply(self.a(x))).sum())


@way
def a_function_that_returns_its_input(run):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    trained(run, lambda self, x: self.b(Same.apply(self.a(x))).sum())


@way
def a_function_that_writes_in_place(run):
    class Doubles(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    trained(run, lambda self, x: self.b(Doubles.apply(self.a(x))).sum())


@way
def a_function_with_none_and_numbers(run):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale, flag, table):
            ctx.scale = scale
            ctx.set_materialize_grads(False)
            y = x.detach() > 0
            ctx.mark_non_differentiable(y)
            return x * scale, y, x * 0

        @staticmethod
        def backward(ctx, grad, _mask, unused):
            run.note("unused", unused is None)
            return grad * ctx.scale, None, None, None

    def forward(self, x):
        y, mask, _ = Scale.apply(self.a(x), 2.5, None, {"k": 1})
        return (self.b(y) * mask).sum()
    trained(run, forward)


@way
def a_function_that_runs_a_module_in_its_backward(run):
    class Reversible(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, layer):
            ctx.layer = layer
            with torch.no_grad():
                y = x + layer(x)
            ctx.save_for_backward(x)
            return y

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                y = x + ctx.layer(x)
            y.backward(grad)
            return x.grad, None

    trained(run, lambda self, x: Reversible.apply(self.b(x), self.a).sum())


@way
def a_function_that_raises_in_backward(run):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("in backward")

    model, x = mlp(), torch.randn(2, 4)
    for _ in range(2):
        with run.dump(model):
            run.raises("raised", lambda: Fails.apply(model(x)).sum().backward())
    with run.dump(model):
        model(x).sum().backward()
    run.note_model(model)


@way
def double_backward(run):
    def forward(self, x):
        x = x.detach().requires_grad_()
        y = self.b(self.a(x).tanh()).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return y + (g.norm(2, dim=1) - 1).pow(2).sum()
    trained(run, forward)


@way
def gradient_penalty_of_a_critic(run):
    critic, x = mlp(act=lambda: nn.LeakyReLU(0.2)), torch.randn(4, 4)

    def loss_of(m, i):
        real, fake = x, torch.randn(4, 4)
        mix = (real + torch.rand(4, 1) * (fake - real)).requires_grad_()
        (g,) = torch.autograd.grad(m(mix), mix, torch.ones(4, 1), create_graph=True, retain_graph=True)
        return m(fake).mean() - m(real).mean() + 10 * (g.norm(dim=1) - 1).pow(2).mean()
    run.train(critic, loss_of)


@way
def retain_graph_and_backward_twice(run):
    def backward(loss):
        loss.backward(retain_graph=True)
        loss.backward()
    trained(run, lambda self, x: self.b(self.a(x).tanh()).sum(), backward=backward)


@way
def backward_twice_without_retaining_raises(run):
    model, x = mlp(), torch.randn(2, 4)
    with run.dump(model):
        loss = model(x).sum()
        loss.backward()
        run.raises("second", loss.backward)
    run.note_model(model)


@way
def backward_of_two_losses_over_one_graph(run):
    def forward(self, x):
        h = self.a(x).tanh()
        self.losses = [self.b(h).sum(), h.pow(2).sum()]
        return self.losses[0]

    x, model = torch.randn(3, 4), None

    def backward(_loss):
        model.losses[0].backward(retain_graph=True)
        model.losses[1].backward()
    model = Calls(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4))
    run.train(model, lambda m, i: m(x), backward=backward)


@way
def backward_with_inputs_only(run):
    model, x = mlp(), torch.randn(2, 4, requires_grad=True)
    with run.dump(model):
        model(x).sum().backward(inputs=[model[0].weight, x])
    run.note_model(model)
    run.note("x", x.grad)


@way
def gradients_by_autograd_grad(run):
    model, x = mlp(), torch.randn(2, 4)
    with run.dump(model):
        got = torch.autograd.grad(model(x).sum(), list(model.parameters()), allow_unused=True)
    run.note("gradients", got)
    run.note_model(model)


@way
def gradients_of_many_outputs_at_once(run):
    model, x = nn.Linear(4, 3), torch.randn(2, 4, requires_grad=True)
    model = nn.Sequential(model)
    with run.dump(model):
        y = model(x)
        got = torch.autograd.grad(y, x, torch.eye(6).reshape(6, 2, 3), is_grads_batched=True)
    run.note("gradients", got)


@way
def backward_that_is_left_in_the_middle_and_resumed(run):
    def forward(self, x):
        self.h = self.a(x)
        self.cut = self.h.detach().requires_grad_()
        return self.b(self.cut).sum()

    model, x = Calls(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4)), torch.randn(3, 4)

    def backward(loss):
        loss.backward()
        model.h.backward(model.cut.grad)
    run.train(model, lambda m, i: m(x), backward=backward)


@way
def backward_after_stop(run):
    model, x = mlp(), torch.randn(2, 4)
    for _ in range(2):
        run.start(model)
        loss = model(x).sum()
        run.stop()
        loss.backward()
        run.step()
    run.note_model(model)


@way
def start_between_forward_and_backward(run):
    model, x = mlp(), torch.randn(2, 4)
    loss = model(x).sum()
    with run.dump(model):
        loss.backward()
    run.note_model(model)


@way
def forward_in_one_step_and_backward_in_the_next(run):
    model, x = mlp(), torch.randn(2, 4)
    before = None
    for _ in range(3):
        with run.dump(model):
            loss = model(x).sum()
            if before is not None:
                before.backward()
            before = loss
    run.note_model(model)


@way
def gradient_accumulation(run):
    model, x = mlp(), torch.randn(4, 2, 4)
    opt = torch.optim.Adam(model.parameters())
    for i in range(4):
        with run.dump(model):
            (model(x[i]).sum() / 2).backward()
            if i % 2:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                opt.zero_grad()
    run.note_model(model)


@way
def hooks_of_users_on_tensors(run):
    def forward(self, x):
        h = self.a(x)
        h.register_hook(lambda g: run.note("gradient of h", g))
        h.register_hook(lambda g: g * 2)
        handle = h.register_hook(lambda g: g * 100)
        handle.remove()
        return self.b(h.relu()).sum()
    trained(run, forward)


@way
def hooks_of_users_on_modules(run):
    order = []

    def pre(module, args):
        order.append("pre")
        return (args[0] * 2,)

    def post(module, args, out):
        order.append("post")
        return out + 1

    def back(module, grad_in, grad_out):
        order.append("back")
        return tuple(g if g is None else g * 3 for g in grad_in)

    model, x = mlp(), torch.randn(2, 4)
    model[0].register_forward_pre_hook(pre)
    model[2].register_forward_hook(post)
    model[2].register_full_backward_hook(back)
    run.train(model, lambda m, i: m(x).sum())
    model[4].register_forward_hook(post)
    model[4].register_full_backward_hook(back)
    run.train(model, lambda m, i: m(x).sum())
    run.note("order", order)


@way
def hooks_with_keywords_and_in_front(run):
    def pre(module, args, kwargs):
        return args, {**kwargs, "scale": 3.0}

    model = Calls(lambda self, x: self.inner(x, scale=1.0).sum(),
                  inner=Calls(lambda self, x, scale: self.fc(x) * scale, fc=nn.Linear(4, 4)))
    if hasattr(torch.nn.Module, "register_full_backward_pre_hook"):
        model.inner.register_forward_pre_hook(pre, with_kwargs=True)
        model.inner.register_forward_hook(lambda m, a, k, out: out * k["scale"], with_kwargs=True, prepend=True)
        model.inner.register_full_backward_pre_hook(lambda m, g: (g[0] * 2,))
    x = torch.randn(2, 4)
    run.train(model, lambda m, i: m(x))


@way
def hooks_that_remove_themselves(run):
    model, x = mlp(), torch.randn(2, 4)
    handles = []

    def once(module, args, out):
        handles.pop().remove()
        return out * 2
    for layer in list(model):
        handles.append(layer.register_forward_hook(once))
        run.train(model, lambda m, i: m(x).sum(), steps=2)
    run.note("hooks of users", [len(handles)])


@way
def hooks_of_users_for_all_modules(run):
    from torch.nn.modules import module as every
    seen = []
    a = every.register_module_forward_pre_hook(lambda m, args: seen.append(("pre", type(m).__name__)))
    b = every.register_module_forward_hook(lambda m, args, out: seen.append(("post", type(m).__name__)))
    c = every.register_module_full_backward_hook(lambda m, i, o: seen.append(("back", type(m).__name__, len(i))))
    model, x = mlp(), torch.randn(2, 4)
    run.train(model, lambda m, i: m(x).sum())
    for handle in (a, b, c):
        handle.remove()
    run.train(model, lambda m, i: m(x).sum())
    run.note("seen", seen)


@way
def a_hook_that_raises(run):
    def fails(module, args, out):
        raise ValueError("hook")

    model, x = mlp(), torch.randn(2, 4)
    handle = model[2].register_forward_hook(fails)
    with run.dump(model):
        run.raises("forward", lambda: model(x))
    handle.remove()
    handle = model[2].weight.register_hook(lambda g: fails(0, 0, 0))
    with run.dump(model):
        run.raises("backward", lambda: model(x).sum().backward())
    handle.remove()
    run.train(model, lambda m, i: m(x).sum())


@way
def hooks_on_gradient_nodes(run):
    seen = []

    def forward(self, x):
        h = self.a(x).tanh()
        h.grad_fn.register_hook(lambda i, o: seen.append([g is None for g in i]))
        if hasattr(h.grad_fn, "register_prehook"):
            h.grad_fn.register_prehook(lambda o: (o[0] * 2,))
        return self.b(h).sum()
    trained(run, forward)
    run.note("seen", seen)


@way
def hooks_on_accumulators_as_ddp_has_them(run):
    model, x = mlp(), torch.randn(2, 4)
    seen, nodes = [], []
    for name, p in model.named_parameters():
        node = p.expand_as(p).grad_fn.next_functions[0][0]
        node.register_hook(lambda *_, name=name: seen.append(name))
        nodes.append(node)
    run.train(model, lambda m, i: m(x).sum())
    run.note("order", seen)


@way(needs=(2, 1))
def the_optimizer_steps_in_a_hook_after_each_gradient(run):
    model, x = mlp(), torch.randn(2, 4)
    optimizers = {p: torch.optim.Adam([p], lr=0.01) for p in model.parameters()}

    def step(p):
        optimizers[p].step()
        optimizers[p].zero_grad()
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        with run.dump(model):
            loss = model(x).sum()
            loss.backward()
        run.note("loss", loss)
    run.note_model(model)


@way(needs=(2, 0))
def hooks_on_several_gradients_at_once(run):
    from torch.autograd.graph import register_multi_grad_hook

    def forward(self, x):
        h = self.a(x)
        g = self.b(h.tanh())
        register_multi_grad_hook((h, g), lambda grads: run.note("both", grads))
        return g.sum() + h.pow(2).sum()
    trained(run, forward)


@way
def parameters_that_are_frozen_and_thawed(run):
    model, x = mlp(), torch.randn(2, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        for p in model[2].parameters():
            p.requires_grad_(i % 2 == 0)
        with run.dump(model):
            opt.zero_grad(set_to_none=i > 1)
            model(x).sum().backward()
            opt.step()
        run.note("gradient", model[2].weight.grad)
    run.note_model(model)


@way
def parameters_whose_data_changes_its_shape(run):
    model = nn.Sequential(nn.Linear(4, 4))
    for width in (4, 3, 5):
        x = torch.randn(2, width)
        model[0].weight.data = torch.randn(4, width)
        model[0].weight.grad = None
        with run.dump(model):
            model(x).sum().backward()
        run.note("gradient", model[0].weight.grad)


@way
def parameters_resized_within_a_step(run):
    model = nn.Sequential(nn.Linear(4, 4))
    with run.dump(model):
        for width in (4, 3, 5):
            x = torch.randn(2, width)
            model[0].weight.data = torch.randn(4, width)
            model[0].weight.grad = None
            model(x).sum().backward()
            run.note("gradient", model[0].weight.grad)


@way
def parameters_that_become_another_type(run):
    model, x = mlp(), torch.randn(2, 4)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        with run.dump(model):
            model.to(dtype)
            model.zero_grad(set_to_none=True)
            model(x.to(dtype)).sum().backward()
        run.note_model(model, str(dtype))


@way
def checkpoint_of_a_module(run):
    drop = nn.Dropout(0.5)
    trained(run, lambda self, x: ckpt.checkpoint(lambda y: drop(self.b(y)).tanh(), self.a(x), use_reentrant=True).sum())


@way
def checkpoint_without_reentering(run):
    drop = nn.Dropout(0.5)
    trained(run, lambda self, x: ckpt.checkpoint(lambda y: drop(self.b(y)).tanh(), self.a(x), use_reentrant=False).sum())


@way
def checkpoint_of_modules_within_checkpoints(run):
    def forward(self, x):
        def inner(y):
            return ckpt.checkpoint(self.b, y.tanh(), use_reentrant=False)
        return ckpt.checkpoint(lambda y: inner(inner(y)), self.a(x), use_reentrant=False).sum()
    trained(run, forward)


@way
def checkpoint_of_a_sequence(run):
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3), nn.Tanh()) for _ in range(4)))
    x = torch.randn(2, 4, requires_grad=True)
    options = {} if VERSION < (2, 1) else {"use_reentrant": False}
    run.train(model, lambda m, i: ckpt.checkpoint_sequential(m, 2, x, **options).sum())


@way
def checkpoint_that_keeps_no_random_state(run):
    drop = nn.Dropout(0.5)
    trained(run, lambda self, x: ckpt.checkpoint(lambda y: drop(self.b(y)), self.a(x), use_reentrant=False,
                                                 preserve_rng_state=False).sum())


@way(needs=(2, 1))
def checkpoint_with_contexts_and_early_stop(run):
    import contextlib

    def contexts():
        return contextlib.nullcontext(), contextlib.nullcontext()

    def forward(self, x):
        with ckpt.set_checkpoint_early_stop(False):
            return ckpt.checkpoint(self.b, self.a(x), use_reentrant=False, context_fn=contexts,
                                   determinism_check="default").sum()
    trained(run, forward)


@way(needs=(2, 4))
def checkpoint_with_a_policy(run):
    def policy(ctx, op, *args, **kwargs):
        return ckpt.CheckpointPolicy.MUST_SAVE if op == torch.ops.aten.mm.default else \
            ckpt.CheckpointPolicy.PREFER_RECOMPUTE

    def forward(self, x):
        return ckpt.checkpoint(lambda y: self.b(self.a(y).sin()).cos(), self.a(x), use_reentrant=False,
                               context_fn=lambda: ckpt.create_selective_checkpoint_contexts(policy)).sum()
    trained(run, forward)


@way
def checkpoint_whose_recomputation_differs_raises(run):
    calls = []

    def forward(self, x):
        def part(y):
            calls.append(1)
            return self.b(y).tanh() if len(calls) % 2 else self.b(y)
        return ckpt.checkpoint(part, self.a(x), use_reentrant=False).sum()

    model, x = Calls(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4)), torch.randn(3, 4)
    with run.dump(model):
        loss = model(x)
        try:
            loss.backward()
            run.note("raised", "nothing")
        except Exception as error:
            run.note("raised", type(error).__name__)
    run.note("calls", len(calls))


@way
def activations_offloaded_by_packing(run):
    def forward(self, x):
        def pack(t):
            return t.device, t.numpy().copy() if not t.requires_grad else t.detach().numpy().copy()

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda p: torch.from_numpy(p[1]).to(p[0])):
            return self.b(self.a(x).tanh()).exp().sum()
    trained(run, forward)


@way
def detect_anomaly(run):
    model, x = mlp(), torch.randn(2, 4)
    with torch.autograd.detect_anomaly():
        run.train(model, lambda m, i: m(x).sum())
        with run.dump(model):
            try:
                (model(x) * float("nan")).sqrt().sum().backward()
                run.note("raised", "nothing")
            except RuntimeError as error:
                run.note("raised", str(error)[:60])


@way
def inference_mode_and_no_grad(run):
    model, x = mlp(), torch.randn(2, 4)
    with run.dump(model):
        with torch.inference_mode():
            a = model(x)
        with torch.no_grad():
            b = model(x)
        c = model(x)
        (c - b.clone()).sum().backward()
    run.note("is inference", (a.is_inference(), b.is_inference(), a, b, c))
    run.note_model(model)
    run.raises("use", lambda: (model(a) * a).sum().backward())


@way
def set_grad_enabled_within_modules(run):
    def forward(self, x):
        with torch.set_grad_enabled(False):
            h = self.a(x)
        run.note("mode", torch.is_grad_enabled())
        return self.b(h).sum()
    trained(run, forward)


@way
def gradcheck_of_a_module(run):
    model, x = nn.Sequential(nn.Linear(3, 2), nn.Tanh()).double(), torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    with run.dump(model):
        run.note("checked", torch.autograd.gradcheck(model, (x,)))
        run.note("checked twice", torch.autograd.gradgradcheck(model, (x,)))


@way
def jacobians_and_hessians(run):
    model, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.randn(3)
    with run.dump(model):
        run.note("jacobian", torch.autograd.functional.jacobian(model, x))
        run.note("hessian", torch.autograd.functional.hessian(lambda y: model(y).sum(), x))
        run.note("vhp", torch.autograd.functional.vhp(lambda y: model(y).pow(2).sum(), x, torch.ones(3)))


@way
def forward_mode_differentiation(run):
    import torch.autograd.forward_ad as fwd
    model, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.randn(3)
    with run.dump(model), fwd.dual_level():
        dual = fwd.make_dual(x, torch.ones(3))
        out = fwd.unpack_dual(model(dual))
        run.note("tangent", out.tangent)
        run.note("primal", out.primal)


@way
def a_graph_of_many_thousand_nodes(run):
    def forward(self, x):
        y = self.a(x)
        for _ in range(3000):
            y = y + 0.001
        return self.b(y).sum()
    trained(run, forward, steps=1)


@way
def backward_within_backward(run):
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                model.b(y).sum().backward()
            return grad + y.grad

    model = trained(run, lambda self, x: Inner.apply(self.a(x)).sum(), steps=0)
    x = torch.randn(3, 4)
    run.train(model, lambda m, i: m(x))


@way
def gradients_summed_in_the_order_of_use(run):
    def forward(self, x):
        h = self.a(x) * 1e4
        return (self.b(h).sum() + (h * 1e-4).sum() + self.b(h * 3).sin().sum() + h.exp().clamp(max=3).sum() +
                self.b(h).cos().sum() * 1e3)
    trained(run, forward, lr=1e-6)


@way
def a_gradient_that_is_replaced_by_hand(run):
    model, x = mlp(), torch.randn(2, 4)
    for i in range(3):
        with run.dump(model):
            model(x).sum().backward()
            for p in model.parameters():
                p.grad = torch.ones_like(p) * i
                p.data.add_(p.grad, alpha=-0.1)
    run.note_model(model)


@way
def main_grad_as_megatron_has_it(run):
    model, x = mlp(), torch.randn(2, 4)
    for p in model.parameters():
        p.main_grad = torch.zeros_like(p)
        node = p.expand_as(p).grad_fn.next_functions[0][0]

        def add(*_, p=p):
            p.main_grad.add_(p.grad)
            p.grad = None
        node.register_hook(add)
        p.grad_acc = node
    for _ in range(3):
        with run.dump(model):
            model(x).sum().backward()
    run.note("main_grad", [p.main_grad for p in model.parameters()])
    run.note("grad", [p.grad for p in model.parameters()])
