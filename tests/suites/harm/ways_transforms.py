# SPDX-License-Identifier: MIT
"""Models called as functions, transforms of functions, graphs made ahead of time, and parameters that are swapped."""
import contextlib
import copy
import gc
import weakref

import torch
from torch import nn
from torch.nn import functional as F

from harness import VERSION, way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 1))


@way(needs=(2, 0))
def functional_calls_with_tied_and_strict_weights(run):
    from torch.func import functional_call
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False), nn.BatchNorm1d(4))
    model[1].weight = model[0].weight
    given = {"0.weight": torch.eye(4).requires_grad_()}

    def loss_of(model, _step):
        y = functional_call(model, given, (X,), tie_weights=True)
        buffers = {k: v.clone() for k, v in model.named_buffers()}
        functional_call(model, (given, buffers), X)
        run.note("buffers", buffers)
        run.raises("strict", lambda: functional_call(model, {"no": X}, (X,), strict=True))
        return y.pow(2).sum() + model(X).sum()
    run.train(model, loss_of)
    run.note("gradient", given["0.weight"].grad)
    run.note("identity", model[1].weight is model[0].weight)


@way(needs=(2, 0))
def gradients_of_each_sample_through_a_loss(run):
    from torch.func import functional_call, grad_and_value, vmap
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    parameters = {k: v.detach() for k, v in model.named_parameters()}

    def loss(parameters, x, y):
        return F.cross_entropy(functional_call(model, parameters, (x.unsqueeze(0),)), y.unsqueeze(0))
    with run.dump(model):
        each, value = vmap(grad_and_value(loss), in_dims=(None, 0, 0))(parameters, X, torch.tensor([0, 1, 1, 0, 1, 0]))
        chunked = vmap(grad_and_value(loss), in_dims=(None, 0, 0), chunk_size=2)(parameters, X, torch.tensor([0, 1, 1, 0, 1, 0]))
        model(X).sum().backward()
    run.note("each", (each, value, chunked))
    run.note_model(model)


@way(needs=(2, 0))
def products_of_jacobians_and_tangents(run):
    from torch.func import functional_call, hessian, jacfwd, jacrev, jvp, linearize, vjp
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    parameters = {k: v.detach() for k, v in model.named_parameters()}

    def f(x):
        return functional_call(model, parameters, (x,)).sum()
    with run.dump(model):
        run.note("jvp", jvp(f, (X[0],), (torch.ones(4),)))
        out, back = vjp(f, X[0])
        run.note("vjp", (out, back(torch.ones_like(out))))
        run.note("jacobians", (jacrev(f)(X[0]), jacfwd(f)(X[0]), hessian(f)(X[0])))
        out, pushed = linearize(f, X[0])
        run.note("linearized", (out, pushed(torch.ones(4))))
        model(X).sum().backward()
    run.note_model(model)


@way(needs=(2, 0))
def custom_functions_with_vmap_and_jvp_rules(run):
    class Cube(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x ** 3, 3 * x ** 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(output[1])
            ctx.save_for_forward(output[1])

        @staticmethod
        def backward(ctx, grad, _):
            return grad * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * ctx.saved_tensors[0], None
    model = Calls(lambda self, x: Cube.apply(self.fc(x))[0].sum(), fc=nn.Linear(4, 4))

    def loss_of(model, _step):
        run.note("each", torch.func.vmap(torch.func.grad(lambda x: Cube.apply(x)[0].sum()))(X))
        run.note("tangent", torch.func.jvp(lambda x: Cube.apply(x)[0], (X,), (X,)))
        return model(X)
    run.train(model, loss_of)


@way(needs=(2, 1))
def functions_compiled_ahead_of_time_by_hand(run):
    from functorch.compile import aot_function, aot_module, nop
    seen = []

    def compiler(graph, _inputs):
        seen.append([str(n.target) for n in graph.graph.nodes])
        return nop(graph, _inputs)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    with run.dump(model):
        f = aot_function(lambda x: torch.relu(x).pow(2).sum(), fw_compiler=compiler, bw_compiler=compiler)
        x = X.clone().requires_grad_()
        f(x).backward()
        run.note("gradient", x.grad)
    whole = aot_module(nn.Linear(4, 2), fw_compiler=compiler, bw_compiler=compiler)
    run.train(whole, lambda m, i: m(X).sum())
    run.note("graphs", seen)


@way(needs=(2, 1))
def parameters_swapped_by_content(run):
    """torch.__future__ has modules swap the contents of tensors instead of assigning .data."""
    swaps = getattr(torch.__future__, "set_swap_module_params_on_conversion", None)
    if swaps:
        swaps(True)
    model = model_of()
    kept = list(model.parameters())
    try:
        for step in range(2):
            with run.dump(model):
                loss = model(X.to(kept[0].dtype)).sum()
                loss.backward()
            model.to(torch.float64 if step == 0 else torch.float32)
            run.note("who", [p is q for p, q in zip(kept, model.parameters())])
            run.note_model(model, f"{step} ")
            model.zero_grad()
    finally:
        if swaps:
            swaps(False)


@way(needs=(2, 3))
def tensors_swapped_by_hand(run):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    a, b = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.zeros(2, 2))
    for _ in range(2):
        with run.dump(model):
            model(torch.ones(1, 2)).sum().backward()
            run.note("gradients", [p.grad for p in model.parameters()])
        model.zero_grad(set_to_none=True)
        gc.collect()

        def swap():
            torch.utils.swap_tensors(model[0].weight, a)
        run.raises("parameter", swap)
        run.raises("others", lambda: torch.utils.swap_tensors(a, b))
        run.note("values", (model[0].weight, a, b))
    held = weakref.ref(b)
    run.raises("with a weak reference", lambda: torch.utils.swap_tensors(a, b))
    assert held


@way
def saved_tensors_hooks_that_nest_and_compress(run):
    counts = {"pack": 0, "unpack": 0}

    def pack(t):
        counts["pack"] += 1
        return t.shape, t.dtype, t.to(torch.float64) if t.is_floating_point() else t

    def unpack(packed):
        counts["unpack"] += 1
        return packed[2].to(packed[1]).view(packed[0])

    def forward(self, x):
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = self.a(x).sigmoid()
            with torch.autograd.graph.saved_tensors_hooks(lambda t: (t, t._version), lambda p: p[0]):
                y = self.b(y).tanh()
        with torch.autograd.graph.save_on_cpu():
            return (self.c(y) * y).sum()
    run.train(Calls(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4), c=nn.Linear(4, 4)), lambda m, i: m(X))
    run.note("counts", counts)


@way
def saved_tensors_written_to_files_and_forbidden(run):
    import os
    folder = "saved"
    os.makedirs(folder, exist_ok=True)
    numbers = iter(range(10000))

    class Kept:
        def __init__(self, path):
            self.path = path

        def __del__(self):
            with contextlib.suppress(OSError):
                os.remove(self.path)

    def pack(t):
        kept = Kept(f"{folder}/{next(numbers)}")
        torch.save(t, kept.path)
        return kept

    def forward(self, x):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: torch.load(kept.path)):
            return self.b(self.a(x).exp()).sum()
    model = Calls(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4))
    run.train(model, lambda m, i: m(X))
    gc.collect()
    run.note("left", sorted(os.listdir(folder)))
    with run.dump(model):
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            run.raises("forbidden", lambda: model(X))


@way
def activations_offloaded_by_a_module_around_each_layer(run):
    class Offloaded(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner
            self.moved = []

        def forward(self, *args, **kwargs):
            def pack(t):
                self.moved.append(tuple(t.shape))
                return t.clone(), t.device
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1])):
                return self.inner(*args, **kwargs)
    model = nn.Sequential(Offloaded(nn.Linear(4, 4)), nn.GELU(), Offloaded(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)))
    run.train(model, lambda m, i: m(X.view(3, 2, 4)).sum())
    run.note("moved", (model[0].moved, model[2].moved))


@way(needs=(2, 0))
def subclasses_that_dispatch_kernels_and_keep_metadata(run):
    from torch.utils._pytree import tree_map

    class Scaled(torch.Tensor):
        @staticmethod
        def __new__(cls, data, scale):
            t = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype, requires_grad=data.requires_grad)
            t.data_inside, t.scale = data, scale
            return t

        def __tensor_flatten__(self):
            return ["data_inside"], self.scale

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            scale = max((t.scale for t in torch.utils._pytree.tree_flatten(args)[0] if isinstance(t, Scaled)), default=1)
            plain = tree_map(lambda t: t.data_inside if isinstance(t, Scaled) else t, (args, kwargs or {}))
            out = func(*plain[0], **plain[1])
            return tree_map(lambda t: Scaled(t, scale) if isinstance(t, torch.Tensor) else t, out)
    seen = []
    model = Calls(lambda self, x: (x * 2 + 1).neg().abs(), a=nn.Linear(4, 4))
    for _ in range(2):
        with run.dump(model):
            y = model(Scaled(X.clone(), 7))
            run.note("inside", (type(y).__name__, y.scale, y.data_inside))
            model.a(X).sum().backward()
    run.note("kernels", seen)
    run.note_model(model)


@way(needs=(2, 0))
def modes_of_kernels_that_nest_and_fail(run):
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.overrides import TorchFunctionMode
    seen = []

    class Kernels(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            if "asin" in str(func):
                raise KeyError("no asin here")
            return func(*args, **(kwargs or {}))

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(getattr(func, "__name__", "?"))
            return func(*args, **(kwargs or {}))
    model = model_of()

    def loss_of(model, _step):
        with Kernels(), Functions(), Kernels():
            loss = model(X).sum()
            run.raises("asin", lambda: torch.asin(X))
            y = X.clone()
            y[0] = 1.0
            return loss + (-y).sum()
    run.train(model, loss_of)
    run.note("seen", seen)


@way(needs=(2, 0))
def a_device_as_the_default_and_as_a_context(run):
    kept = torch.get_default_device() if hasattr(torch, "get_default_device") else torch.device("cpu")
    torch.set_default_device("meta")
    try:
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
        run.note("device", (model[0].weight.device.type, torch.empty(1).device.type))
        with run.dump(model):
            out = model(torch.empty(2, 4))
            run.note("out", (out.device.type, out.shape))
        torch.set_default_device("cpu")
        model = model.to_empty(device="cpu")
        for p in model.parameters():
            nn.init.ones_(p)
        with torch.device("cpu"):
            run.train(model, lambda m, i: m(torch.ones(2, 4)).sum())
    finally:
        torch.set_default_device(None)
    run.note("after", str(torch.empty(1).device))
    assert kept


@way
def a_graph_of_a_step_that_is_replayed(run):
    """What programs with device graphs do: static inputs and outputs, a warm-up on the side, then replays that copy into them."""
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    static_in, static_out = torch.zeros(6, 4), torch.zeros(6, 1)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    pointers = [p.grad.data_ptr() for p in model.parameters()]

    def replay():
        opt.zero_grad(set_to_none=False)
        out = model(static_in)
        static_out.copy_(out.detach())
        out.pow(2).mean().backward()
        opt.step()
    for i in range(3):
        with run.dump(model):
            static_in.copy_(X * (i + 1))
            replay()
        run.note("out", static_out)
    run.note("pointers", [p.grad.data_ptr() == q for p, q in zip(model.parameters(), pointers)])
    run.note("none on this machine", (torch.cuda.is_available(), hasattr(torch.cuda, "make_graphed_callables")))
    run.note_model(model)


@way
def modules_whose_parameters_are_made_by_a_generator(run):
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

        def steps(self, x):
            for layer in self.layers:
                x = layer(x)
                stop = yield x
                if stop:
                    return

        def forward(self, x):
            steps = self.steps(x)
            first = next(steps)
            second = steps.send(False)
            with contextlib.suppress(StopIteration):
                steps.send(True)
            return first.sum() + second.sum()
    model = Named()
    run.train(model, lambda m, i: m(X))
    pending = model.steps(X)
    with run.dump(model):
        kept = next(pending)
        kept.sum().backward()
    run.note("later", list(pending))
    run.note_model(model)


@way
def copies_of_a_model_that_learn_apart(run):
    model = model_of()
    teacher, student = copy.deepcopy(model), copy.copy(model)
    student._modules = {k: copy.deepcopy(v) for k, v in model._modules.items()}
    opt = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(3):
        with run.dump([model, student]):
            with torch.no_grad():
                target = teacher(X)
            loss = F.mse_loss(student(X), target) + model(X).sum() * 0
            loss.backward()
            opt.step()
            twin = copy.deepcopy(student)
        with torch.no_grad():
            for p, q in zip(teacher.parameters(), twin.parameters()):
                p.lerp_(q, 0.1)
    run.note_model(student)
    run.note_model(teacher, "teacher ")
    assert VERSION
