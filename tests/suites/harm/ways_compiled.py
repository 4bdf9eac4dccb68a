# SPDX-License-Identifier: MIT
"""Compilers, tracers, transforms of functions, and quantisation."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

from harness import VERSION, way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of():
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 1))


def compiled(run, backend, model=None, **options):
    model = model or model_of()
    fast = torch.compile(model, backend=backend, **options)
    run.train(model, lambda m, i: fast(X).pow(2).sum())


def recompilations():
    from torch._dynamo.utils import counters
    return dict(counters["graph_break"]), counters["stats"].get("unique_graphs")


@way(needs=(2, 1))
def compile_whole_graphs_eagerly(run):
    compiled(run, "eager", fullgraph=True)
    run.note("graphs", recompilations())


@way(needs=(2, 1))
def compile_ahead_of_time(run):
    compiled(run, "aot_eager", fullgraph=True)
    run.note("graphs", recompilations())


@way(needs=(2, 1), slow=True)
def compile_with_inductor(run):
    compiled(run, "inductor")


@way(needs=(2, 1))
def compile_with_decompositions(run):
    compiled(run, "aot_eager_decomp_partition")


@way(needs=(2, 1))
def compile_with_a_backend_of_ones_own(run):
    seen = []

    def backend(graph, examples):
        seen.append([(n.op, str(n.target)) for n in graph.graph.nodes])
        return graph.forward
    torch._dynamo.reset()
    compiled(run, backend, fullgraph=True)
    run.note("graphs", seen)


@way(needs=(2, 1))
def compile_in_place(run):
    model = model_of()
    model.compile(backend="eager") if hasattr(model, "compile") else None
    run.train(model, lambda m, i: m(X).sum())


@way(needs=(2, 1))
def compile_a_part_of_a_model(run):
    model = model_of()
    model[1] = torch.compile(nn.Sequential(nn.Linear(8, 8), nn.GELU()), backend="eager", fullgraph=True)
    run.train(model, lambda m, i: m(X).sum())


@way(needs=(2, 1))
def compile_a_function_in_a_module(run):
    @torch.compile(backend="aot_eager", fullgraph=True)
    def swiglu(a, b):
        return F.silu(a) * b + torch.relu(a).sum()

    run.train(Calls(lambda self, x: swiglu(self.a(x), self.b(x)).sum(), a=nn.Linear(4, 4), b=nn.Linear(4, 4)), lambda m, i: m(X))


@way(needs=(2, 1))
def compile_with_breaks_of_the_graph(run):
    def forward(self, x):
        y = self.a(x)
        if y.sum() > 0:
            y = y * 2
        torch._dynamo.graph_break()
        return self.b(y.tanh()).sum()
    compiled(run, "eager", Calls(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4)))
    run.note("graphs", recompilations()[1])


@way(needs=(2, 1))
def compile_with_shapes_that_change(run):
    model = model_of()
    fast = torch.compile(model, backend="eager", dynamic=True)
    for rows in (2, 3, 5, 6):
        with run.dump(model):
            loss = fast(X[:rows]).sum()
            loss.backward()
        run.note("loss", loss)
    run.note("graphs", recompilations()[1])
    run.note_model(model)


@way(needs=(2, 1))
def compile_before_start_and_run_after(run):
    model = model_of()
    fast = torch.compile(model, backend="eager", fullgraph=True)
    fast(X).sum().backward()
    run.train(model, lambda m, i: fast(X).sum())
    fast(X).sum().backward()
    run.note_model(model)
    run.note("graphs", recompilations()[1])


@way(needs=(2, 1))
def compile_the_optimizer_and_the_backward(run):
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def step(x):
        loss = model(x).sum()
        loss.backward()
        return loss
    update = torch.compile(opt.step, backend="eager")
    for _ in range(2):
        with run.dump(model):
            opt.zero_grad()
            run.note("loss", step(X))
            update()
    run.note_model(model)


@way(needs=(2, 1))
def compile_checkpoints(run):
    from torch.utils.checkpoint import checkpoint
    compiled(run, "aot_eager", Calls(lambda self, x: checkpoint(lambda y: self.b(y).tanh(), self.a(x), use_reentrant=False),
                                     a=nn.Linear(4, 4), b=nn.Linear(4, 4)))


@way(needs=(2, 1))
def compile_with_hooks_of_users(run):
    model = model_of()
    model[0].register_forward_hook(lambda m, a, out: out * 2)
    compiled(run, "eager", model)


@way(needs=(2, 1))
def compile_when_disabled_and_explained(run):
    model = model_of()

    @torch._dynamo.disable
    def eager(x):
        return model(x)
    with run.dump(model):
        torch.compile(lambda x: eager(x).sum(), backend="eager")(X).backward()
        told = torch._dynamo.explain(model)(X)
    run.note("explained", (told.graph_count, told.graph_break_count))
    run.note_model(model)


@way(needs=(2, 1))
def export_strictly_and_not(run):
    model = model_of()
    with run.dump(model):
        model(X)
        whole = torch.export.export(model, (X,))
        if VERSION >= (2, 5):
            run.note("strict", [str(n.target) for n in torch.export.export(model, (X,), strict=True).graph.nodes])
    run.note("nodes", [(n.op, str(n.target)) for n in whole.graph.nodes])
    run.note("signature", str(whole.graph_signature)[:500])


@way
def symbolic_traces(run):
    import torch.fx

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return F.relu(self.fc(x)) + torch.tanh(x) * x.sigmoid()

    model = nn.Sequential(Net())
    with run.dump(model):
        model(X)
        graph = torch.fx.symbolic_trace(model[0])
        y = graph(X)
        y.sum().backward()
    run.note("code", graph.code)
    run.note("nodes", [(n.op, str(n.name), getattr(n.target, "__name__", n.target)) for n in graph.graph.nodes])
    run.note("y", y)
    run.train(graph, lambda m, i: m(X).sum())


@way
def graphs_rewritten_by_passes(run):
    import torch.fx
    from torch.fx.subgraph_rewriter import replace_pattern

    class Net(nn.Module):
        def forward(self, x):
            return torch.relu(x) + F.gelu(x)

    model = nn.Sequential(nn.Linear(4, 4))
    with run.dump(model):
        model(X)
        graph = torch.fx.symbolic_trace(Net())
        for node in graph.graph.nodes:
            if node.target is torch.relu:
                node.target = torch.tanh
        graph.recompile()
        found = replace_pattern(graph, lambda x: F.gelu(x), lambda x: torch.sigmoid(x))
    run.note("found", len(found))
    run.note("y", graph(X))


@way
def make_fx_and_functionalization(run):
    from torch.fx.experimental.proxy_tensor import make_fx
    model = nn.Sequential(nn.Linear(4, 4))
    with run.dump(model):
        model(X)
        graph = make_fx(lambda x: torch.relu(x).add_(1).sum())(X)
    run.note("nodes", [str(n.target) for n in graph.graph.nodes])
    run.note("y", graph(X))


@way(needs=(2, 0))
def gradients_of_each_sample(run):
    from torch.func import functional_call, grad, vmap
    model = model_of()
    params = {k: p.detach() for k, p in model.named_parameters()}

    def loss(p, x):
        return functional_call(model, p, (x.unsqueeze(0),)).pow(2).sum()
    with run.dump(model):
        run.note("gradients", vmap(grad(loss), (None, 0))(params, X))
        run.note("in a loop", grad(loss)(params, X[0]))


@way(needs=(2, 0))
def ensembles_of_models(run):
    from torch.func import functional_call, stack_module_state, vmap
    models = [model_of() for _ in range(3)]
    params, buffers = stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")
    with run.dump(models):
        y = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), (0, 0, None))(params, buffers, X)
    run.note("y", y)


@way(needs=(2, 0))
def jacobians_and_products_by_transforms(run):
    from torch.func import hessian, jacfwd, jacrev, jvp, vjp
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    x = X[0]
    with run.dump(model):
        run.note("jacrev", jacrev(model)(x))
        run.note("jacfwd", jacfwd(model)(x))
        run.note("hessian", hessian(lambda t: model(t).sum())(x))
        run.note("jvp", jvp(model, (x,), (torch.ones(4),)))
        run.note("vjp", vjp(model, x)[1](torch.ones(3)))


@way(needs=(2, 0))
def random_numbers_and_in_place_within_vmap(run):
    from torch.func import vmap
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    with run.dump(model):
        run.note("different", vmap(model, randomness="different")(X))
        run.note("same", vmap(model, randomness="same")(X))
        run.raises("error", lambda: vmap(model)(X))
        run.note("in place", vmap(lambda x: x.clone().mul_(2).relu_())(X))


@way(needs=(2, 0))
def functions_of_ones_own_within_transforms(run):
    class Square(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    model = nn.Sequential(nn.Linear(4, 4))
    with run.dump(model):
        run.note("vmap grad", torch.func.vmap(torch.func.grad(lambda x: Square.apply(model(x)).sum()))(X))


@way(needs=(2, 1))
def transforms_that_are_compiled(run):
    model = model_of()
    with run.dump(model):
        f = torch.compile(lambda x: torch.func.vmap(torch.func.grad(lambda t: F.gelu(t).sum()))(x), backend="eager")
        run.note("y", f(X))


@way(needs=(2, 0))
def functionalized_calls(run):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
    with run.dump(model):
        run.note("y", torch.func.functionalize(lambda x: model(x).add_(1))(X))


@way
def quantised_dynamically(run):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).eval()
    quantised = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    with run.dump(quantised), torch.no_grad():
        run.note("y", quantised(X))
    run.note("types", [type(m).__module__ + type(m).__name__ for m in quantised])


@way
def quantised_after_training(run):
    from torch.ao import quantization as q
    model = nn.Sequential(q.QuantStub(), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), q.DeQuantStub()).eval()
    model.qconfig = q.get_default_qconfig("fbgemm")
    with run.dump(model):
        q.fuse_modules(model, [["1", "2"]], inplace=True)
        q.prepare(model, inplace=True)
        model(X)
        q.convert(model, inplace=True)
        run.note("y", model(X))
    run.note("shown", repr(model))


@way
def quantisation_aware_training(run):
    from torch.ao import quantization as q
    model = nn.Sequential(q.QuantStub(), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), q.DeQuantStub()).train()
    model.qconfig = q.get_default_qat_qconfig("fbgemm")
    q.prepare_qat(model, inplace=True)
    run.train(model, lambda m, i: m(X).pow(2).sum())
    run.note("y", q.convert(model.eval())(X))


@way
def fake_quantised_tensors(run):
    run.train(Calls(lambda self, x: torch.fake_quantize_per_tensor_affine(self.fc(x), 0.1, 0, -128, 127).sum(), fc=nn.Linear(4, 4)),
              lambda m, i: m(X))


@way
def quantised_by_graph_passes(run):
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 1)

        def forward(self, x):
            return self.b(F.relu(self.a(x)) + torch.relu(x))

    model = nn.Sequential(nn.Linear(4, 4))
    with run.dump(model):
        model(X)
        prepared = prepare_fx(Net().eval(), get_default_qconfig_mapping("fbgemm"), (X,))
        prepared(X)
        done = convert_fx(prepared)
    run.note("nodes", [str(n.target) for n in done.graph.nodes])
    run.note("y", done(X))


@way
def profiled_training(run):
    model = model_of()
    with torch.profiler.profile() as p:
        run.train(model, lambda m, i: m(X).sum(), steps=2)
    names = {e.key for e in p.key_averages()}
    run.note("has", ["aten::linear" in names, "Optimizer.step#SGD.step" in names, "aten::gelu_backward" in names])
    with torch.profiler.record_function("mine"):
        run.train(model, lambda m, i: m(X).sum(), steps=1)


@way
def counted_flops(run):
    if VERSION < (2, 1):
        return run.note("flops", "not counted by this PyTorch")
    from torch.utils.flop_counter import FlopCounterMode
    model = model_of()
    with FlopCounterMode(display=False) as counter:
        run.train(model, lambda m, i: m(X).sum(), steps=2)
    run.note("flops", counter.get_total_flops())


@way
def gradients_in_a_graph_of_tensors_to_text(run):
    model = model_of()
    with run.dump(model):
        y = model(X)
        run.note("shown", (repr(y), str(y.grad_fn.next_functions[0][0].name()), format(y.sum()), f"{y.sum().item():.3f}"))
        y.sum().backward()
