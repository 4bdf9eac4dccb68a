# SPDX-License-Identifier: MIT
"""Modules of all kinds, and what is done with them before, between and after steps."""
import copy
import io
import pickle

import torch
from torch import nn
from torch.nn import functional as F

from harness import VERSION, freed, way
from ways_arguments import Calls


class Block(nn.Module):
    """At the top of a file, so that it can be pickled and scripted."""

    def __init__(self, width: int = 4):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + F.relu(self.fc(self.norm(x)))


def blocks(count=2):
    return nn.Sequential(*(Block() for _ in range(count)))


X = [2, 4]


@way
def lazy_modules(run):
    model, x = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyBatchNorm1d(), nn.LazyLinear(1)), torch.randn(X)
    for _ in range(2):
        with run.dump(model):
            model(x).sum().backward()
    run.note("types", [type(m).__name__ for m in model])
    run.train(model, lambda m, i: m(x).sum())


@way
def scripted_modules(run):
    model, x = torch.jit.script(blocks()), torch.randn(X)
    run.train(model, lambda m, i: m(x).sum())


@way
def a_scripted_module_within_another(run):
    model, x = nn.Sequential(torch.jit.script(Block()), nn.Linear(4, 1)), torch.randn(X)
    run.train(model, lambda m, i: m(x).sum())


@way
def a_scripted_function_within_a_module(run):
    @torch.jit.script
    def gelu(x):
        return x * 0.5 * (1.0 + torch.erf(x / 1.41421))

    x = torch.randn(X)
    run.train(Calls(lambda self, x: gelu(self.fc(x)).sum(), fc=nn.Linear(4, 4)), lambda m, i: m(x))


@way
def traced_modules(run):
    x = torch.randn(X)
    model = nn.Sequential(torch.jit.trace(Block(), x), nn.Linear(4, 1))
    run.train(model, lambda m, i: m(x).sum())


@way
def a_model_is_scripted_traced_and_frozen_while_it_is_watched(run):
    model, x = blocks(), torch.randn(X)
    with run.dump(model):
        model(x)
        run.note("scripted", torch.jit.script(model)(x))
        run.note("traced", torch.jit.trace(model, x)(x))
        run.note("frozen", torch.jit.freeze(torch.jit.script(Block().eval()))(x))
        run.note("function", torch.jit.trace(lambda y: F.gelu(y) * 2, x)(x))
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(model), buffer)
    buffer.seek(0)
    run.note("loaded", torch.jit.load(buffer)(x))


@way
def a_model_is_copied_and_pickled_while_it_is_watched(run):
    model, x = blocks(), torch.randn(X)
    run.start(model)
    model(x).sum().backward()
    other = copy.deepcopy(model)
    again = pickle.loads(pickle.dumps(model))
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, **({"weights_only": False} if VERSION >= (2, 0) else {}))
    for m in (other, again, loaded):
        out = m(x)
        out.sum().backward()
        run.note("out", out)
        run.note_model(m)
    run.stop()
    run.step()
    run.train(other, lambda m, i: m(x).sum())


@way
def a_copy_is_trained_beside_the_model(run):
    model, x = blocks(), torch.randn(X)
    run.train(model, lambda m, i: m(x).sum())
    teacher = copy.deepcopy(model)
    for p in teacher.parameters():
        p.requires_grad_(False)
    run.train(model, lambda m, i: F.mse_loss(m(x), teacher(x) + 1))
    run.note_model(teacher)


@way
def the_exponential_average_of_a_model(run):
    from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
    model, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)), torch.randn(6, 4)
    average = AveragedModel(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    rate = SWALR(opt, swa_lr=0.05)
    for _ in range(3):
        with run.dump(model):
            opt.zero_grad()
            model(x).pow(2).sum().backward()
            opt.step()
            average.update_parameters(model)
            rate.step()
    update_bn([x, x * 2], average)
    run.note_model(average)


@way
def state_dict_hooks_and_loading(run):
    model, x = blocks(), torch.randn(X)

    def rename(module, state, prefix, _meta):
        for key in list(state):
            state["x." + key] = state.pop(key)

    handle = model._register_state_dict_hook(rename)
    model._register_load_state_dict_pre_hook(
        lambda state, *rest: [state.update({k[2:]: state.pop(k)}) for k in list(state) if k.startswith("x.")])
    with run.dump(model):
        model(x).sum().backward()
        state = copy.deepcopy(model.state_dict())
        run.note("keys", list(state))
        for p in model.parameters():
            p.data.zero_()
        run.note("loaded", str(model.load_state_dict(state)))
        run.raises("strict", lambda: model.load_state_dict({"none": x}))
        model(x).sum().backward()
    handle.remove()
    run.note_model(model)


@way
def extra_state_and_buffers(run):
    class Extra(Block):
        def __init__(self):
            super().__init__()
            self.count = 0
            self.register_buffer("seen", torch.zeros(4))
            self.register_buffer("cache", None, persistent=False)

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

        def forward(self, x):
            self.count += 1
            self.seen += x.sum(0).detach()
            self.cache = x
            return super().forward(x)

    model, x = nn.Sequential(Extra(), Extra()), torch.randn(X)
    run.train(model, lambda m, i: m(x).sum())
    run.note("extra", model.state_dict()["0._extra_state"])
    run.note("cache", model[0].cache is x)


@way
def parametrizations(run):
    from torch.nn.utils import parametrizations, parametrize

    class Symmetric(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).t()

        def right_inverse(self, w):
            return w.triu()

    model, x = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)), torch.randn(X)
    parametrize.register_parametrization(model[0], "weight", Symmetric())
    parametrizations.spectral_norm(model[1])
    parametrizations.orthogonal(model[2])
    run.train(model, lambda m, i: m(x).sum())
    with run.dump(model), parametrize.cached():
        run.note("is", model[0].weight is model[0].weight)
        model(x).sum().backward()
    parametrize.remove_parametrizations(model[0], "weight")
    run.note_model(model)


@way
def parametrizations_added_between_steps(run):
    from torch.nn.utils import parametrize

    class Twice(nn.Module):
        def forward(self, w):
            return w * 2

    model, x = blocks(), torch.randn(X)
    run.train(model, lambda m, i: m(x).sum())
    parametrize.register_parametrization(model[0].fc, "weight", Twice())
    run.train(model, lambda m, i: m(x).sum())
    parametrize.remove_parametrizations(model[0].fc, "weight")
    run.train(model, lambda m, i: m(x).sum())


@way
def weight_norm_spectral_norm_and_pruning(run):
    from torch.nn.utils import prune, spectral_norm, weight_norm
    model, x = nn.Sequential(weight_norm(nn.Linear(4, 4)), spectral_norm(nn.Linear(4, 4)), nn.Linear(4, 4)), torch.randn(X)
    prune.l1_unstructured(model[2], "weight", amount=0.5)
    run.train(model, lambda m, i: m(x).sum())
    prune.remove(model[2], "weight")
    run.train(model, lambda m, i: m(x).sum())


@way
def weights_that_are_shared(run):
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.block, self.head = nn.Embedding(10, 4), Block(), nn.Linear(4, 10, bias=False)
            self.head.weight = self.embed.weight
            self.again = self.block

        def forward(self, i):
            return self.head(self.again(self.block(self.embed(i))))

    model, index = Language(), torch.tensor([[1, 2, 3]])
    run.train(model, lambda m, i: F.cross_entropy(m(index)[0], index[0]), optimizer=torch.optim.AdamW)
    run.note("is", model.head.weight is model.embed.weight)


@way
def a_module_called_many_times_and_within_itself(run):
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, left=3):
            return self(self.fc(x).tanh(), left - 1) if left else x

    model, x = nn.Sequential(Deep()), torch.randn(X)
    run.train(model, lambda m, i: m(x).sum() + m[0](x, 1).pow(2).sum())


@way
def modules_added_and_removed_between_steps(run):
    model, x = nn.Sequential(nn.Linear(4, 4)), torch.randn(X)
    for i in range(3):
        model.add_module(str(len(model)), Block())
        run.train(model, lambda m, i: m(x).sum(), steps=1)
    del model[1]
    model[0] = nn.Linear(4, 4, bias=False)
    run.train(model, lambda m, i: m(x).sum(), steps=2)


@way
def parameters_replaced_between_steps(run):
    model, x = blocks(), torch.randn(X)
    run.train(model, lambda m, i: m(x).sum(), steps=1)
    model[0].fc.weight = nn.Parameter(torch.ones(4, 4))
    model[1].fc.register_parameter("bias", None)
    run.train(model, lambda m, i: m(x).sum(), steps=2)
    del model[0].fc.weight
    model[0].fc.weight = torch.ones(4, 4, requires_grad=True)
    run.train(model, lambda m, i: m(x).sum(), steps=2)


@way
def weights_set_by_a_module_that_makes_them(run):
    def forward(self, x):
        w = self.maker(x.mean(0)).view(4, 4)
        return torch.nn.utils.stateless.functional_call(self.used, {"weight": w}, (x,)).sum() if VERSION < (2, 0) else \
            torch.func.functional_call(self.used, {"weight": w}, (x,)).sum()
    x = torch.randn(X)
    run.train(Calls(forward, maker=nn.Linear(4, 16), used=nn.Linear(4, 4)), lambda m, i: m(x))


@way
def forward_replaced_on_the_instance(run):
    model, x = blocks(), torch.randn(X)
    real = model[0].forward
    model[0].forward = lambda y: real(y) * 2
    run.train(model, lambda m, i: m(x).sum())
    model[0].forward = real
    run.train(model, lambda m, i: m(x).sum())


@way
def call_replaced_on_the_class(run):
    class Own(Block):
        def __call__(self, x):
            return super().__call__(x) * 2

    model, x = nn.Sequential(Own(), Own()), torch.randn(X)
    run.train(model, lambda m, i: m(x).sum())


@way
def forward_called_directly(run):
    x = torch.randn(X)
    run.train(Calls(lambda self, x: self.b.forward(self.a.forward(x)).sum(), a=Block(), b=Block()), lambda m, i: m(x))


@way
def getattr_and_setattr_of_ones_own(run):
    class Own(Block):
        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name.startswith("__") or name.startswith("_msprobe"):
                    raise
                return getattr(super().__getattr__("fc"), name)

        def __setattr__(self, name, value):
            run.note("set", name)
            super().__setattr__(name, value)

    model, x = nn.Sequential(Own()), torch.randn(X)
    run.note("through", model[0].in_features)
    run.train(model, lambda m, i: m(x).sum())
    run.note("names", sorted(vars(model[0])))


@way
def slots_hash_and_equality_of_ones_own(run):
    class Own(Block):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

        def __len__(self):
            return 0

        def __bool__(self):
            return False

    model, x = nn.Sequential(Own(), Own(), nn.Linear(4, 1)), torch.randn(X)
    run.train(Calls(lambda self, x: self.m[2](self.m[1](self.m[0](x))).sum(), m=nn.ModuleList(model)), lambda m, i: m(x))


@way
def representation_and_attributes_of_a_watched_model(run):
    model, x = blocks(), torch.randn(X)
    before = sorted(vars(model[0]))
    run.start(model)
    model(x).sum().backward()
    run.note("shown", repr(model))
    run.note("same attributes", sorted(vars(model[0])) == before)
    run.note("class", (type(model[0]).__name__, type(model[0]) is Block, model[0].__class__.__mro__[1].__name__))
    run.note("forward", (model[0].forward.__func__ is Block.forward, nn.Module.__call__.__name__))
    run.stop()
    run.step()


@way
def hooks_are_gone_after_stop(run):
    model, x = blocks(), torch.randn(X)
    hooks = lambda: [(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in model.modules()]
    before = hooks()
    for _ in range(2):
        with run.dump(model):
            model(x).sum().backward()
        run.note("hooks", hooks() == before)
        run.note("of parameters", [(p._backward_hooks is None, getattr(p, "_post_accumulate_grad_hooks", None) is None)
                                   for p in model.parameters()])


@way
def batch_norm_in_training_and_in_evaluation(run):
    model, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1)), torch.randn(6, 4)
    run.train(model, lambda m, i: m(x * (i + 1)).sum())
    model.eval()
    run.train(model, lambda m, i: m(x).sum())
    run.note("batches", model[1].num_batches_tracked)


@way
def lists_and_dicts_of_modules_and_parameters(run):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
            self.scales = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(2)])
            self.named = nn.ParameterDict({"bias": nn.Parameter(torch.zeros(4))})

        def forward(self, x):
            for layer, scale in zip(self.layers.values(), self.scales):
                x = layer(x) * scale + self.named["bias"]
            return x

    model, x = Own(), torch.randn(X)
    run.train(model, lambda m, i: m(x).sum())


@way
def a_model_without_parameters(run):
    model, x = nn.Sequential(nn.ReLU(), nn.Softmax(-1)), torch.randn(2, 4, requires_grad=True)
    run.train(model, lambda m, i: m(x).pow(2).sum())
    run.note("x", x.grad)


@way
def a_list_of_model_chunks(run):
    chunks, x = [blocks(1), blocks(1)], torch.randn(X)
    for _ in range(2):
        run.start(chunks)
        loss = chunks[1](chunks[0](x)).sum()
        loss.backward()
        run.stop()
        run.step()
        run.note("loss", loss)
    for chunk in chunks:
        run.note_model(chunk)


@way
def two_models_as_a_gan(run):
    g, d = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 4)), nn.Sequential(nn.Linear(4, 4), nn.LeakyReLU(), nn.Linear(4, 1))
    og, od = (torch.optim.Adam(m.parameters(), lr=0.01, betas=(0.5, 0.9)) for m in (g, d))
    real = torch.randn(3, 4)
    for _ in range(3):
        run.start([g, d])
        od.zero_grad()
        fake = g(torch.randn(3, 2))
        (F.softplus(-d(real)).mean() + F.softplus(d(fake.detach())).mean()).backward()
        od.step()
        og.zero_grad()
        F.softplus(-d(fake)).mean().backward()
        og.step()
        run.stop()
        run.step()
    run.note_model(g, "g ")
    run.note_model(d, "d ")


@way
def a_mixture_of_experts(run):
    def forward(self, x):
        weight, which = self.gate(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            rows, place = (which == k).nonzero(as_tuple=True)
            if rows.numel():
                out.index_add_(0, rows, expert(x[rows]) * weight[rows, place, None])
        return out.pow(2).sum()
    x = torch.randn(6, 4)
    run.train(Calls(forward, gate=nn.Linear(4, 3), experts=nn.ModuleList(Block() for _ in range(3))), lambda m, i: m(x))


@way
def adapters_of_low_rank(run):
    class Lora(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base, self.a, self.b = base, nn.Parameter(torch.randn(4, 2)), nn.Parameter(torch.zeros(2, 4))
            for p in base.parameters():
                p.requires_grad_(False)

        def forward(self, x):
            return self.base(x) + x @ self.a @ self.b

    model, x = blocks(), torch.randn(X)
    for block in model:
        block.fc = Lora(block.fc)
    run.train(model, lambda m, i: m(x).sum(), optimizer=torch.optim.AdamW)
    with torch.no_grad():
        model[0].fc.base.weight += (model[0].fc.a @ model[0].fc.b).t()
    run.train(model, lambda m, i: m(x).sum())


@way
def layers_dropped_at_random(run):
    def forward(self, x):
        for block in self.blocks:
            if torch.rand(()) > 0.4:
                x = block(x)
        return x.sum()
    x = torch.randn(X)
    run.train(Calls(forward, blocks=blocks(4)), lambda m, i: m(x) + m.blocks[0](x).sum() * 0, steps=4)


@way
def generation_with_a_cache_as_in_transformers(run):
    def attend(self, x, past=None, use_cache=True):
        k = self.k(x)
        k = torch.cat([past[0], k], 1) if past is not None else k
        y = torch.softmax(self.q(x) @ k.transpose(1, 2), -1) @ k
        return (y, (k,)) if use_cache else (y,)

    model = nn.Sequential(Calls(attend, q=nn.Linear(4, 4), k=nn.Linear(4, 4)))
    with run.dump(model), torch.no_grad():
        past, x = None, torch.randn(1, 2, 4)
        for _ in range(3):
            x, past = model[0](x, past=past)
            x = x[:, -1:]
            run.note("past", past[0].shape)
    run.note("x", x)


@way
def initialisation_and_apply_while_watched(run):
    model, x = blocks(), torch.randn(X)
    run.start(model)
    model.apply(lambda m: nn.init.xavier_uniform_(m.weight) if isinstance(m, nn.Linear) else None)
    nn.init.trunc_normal_(model[0].fc.weight)
    model.requires_grad_(True).train().float().double().float()
    model.zero_grad()
    run.note("out", model(x))
    run.stop()
    run.step()
    run.note_model(model)


@way
def memory_that_a_model_and_its_graph_held(run):
    def step():
        model, x = blocks(), torch.randn(X)
        run.start(model)
        out = model(x)
        out.sum().backward()
        run.stop()
        run.step()
        return [model[0].fc.weight, out]
    run.note("freed", freed(step))


@way
def stop_and_step_without_start(run):
    model, x = blocks(), torch.randn(X)
    run.stop()
    run.step()
    model(x).sum().backward()
    run.start(model)
    run.start(model)
    model(x).sum().backward()
    run.stop()
    run.stop()
    run.step()
    run.note_model(model)


@way
def a_step_that_is_interrupted_by_an_exception(run):
    class Fails(Block):
        fail = True

        def forward(self, x):
            y = super().forward(x)
            if self.fail:
                raise MemoryError("interrupted")
            return y

    model, x = nn.Sequential(Block(), Fails(), Block()), torch.randn(X)
    for fail in (True, False, True, False):
        model[1].fail = fail
        run.start(model)
        run.raises("step", lambda: model(x).sum().backward())
        run.stop()
        run.step()
    run.note_model(model)


@way
def an_exception_that_leaves_without_stop(run):
    model, x = blocks(), torch.randn(X)
    run.start(model)
    run.raises("shape", lambda: model(torch.randn(2, 3)))
    model(x).sum().backward()
    run.start(model)
    model(x).sum().backward()
    run.stop()
    run.note_model(model)
