# SPDX-License-Identifier: MIT
"""What modules are given, what they write into it, and what they may ask of it."""
import collections
import dataclasses
import functools
import typing

import torch
from torch import nn
from torch.nn import functional as F

from harness import way


class Around(nn.Module):
    """A model with one module in it and a layer before and after."""

    def __init__(self, inner, width=4):
        super().__init__()
        self.before, self.inner, self.after = nn.Linear(width, width), inner, nn.Linear(width, 1)

    def forward(self, x):
        return self.after(self.inner(self.before(x)))


class Calls(nn.Module):
    """Its forward is a function of the model and x."""

    def __init__(self, forward, **modules):
        super().__init__()
        self.function = forward
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *args, **kwargs):
        return self.function(self, *args, **kwargs)


@way
def a_list_argument_that_the_module_appends_to(run):
    def inner(self, x, seen):
        y = self.fc(x)
        seen.append(y)
        return y * 2

    def outer(self, x):
        seen = [x]
        for layer in self.layers:
            x = layer(x, seen)
        run.note("length", len(seen))
        return sum(s.pow(2).sum() for s in seen)

    layers = nn.ModuleList(Calls(inner, fc=nn.Linear(4, 4)) for _ in range(3))
    x = torch.randn(2, 4)
    run.train(Calls(outer, layers=layers), lambda m, i: m(x))


@way
def a_list_argument_whose_elements_are_replaced(run):
    def inner(self, states):
        states[0] = self.fc(states[0])
        return states[0].sum()

    def outer(self, x):
        states = [x, None]
        a = self.inner(states)
        return a + states[0].pow(2).sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def a_dict_argument_that_the_module_writes_into(run):
    def inner(self, x, cache):
        cache["key"] = self.fc(x)
        return cache["key"].relu()

    def outer(self, x):
        cache = {"x": x}
        y = self.inner(x, cache)
        run.note("keys", list(cache))
        return (y * cache["key"]).sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def a_dict_given_by_keyword_that_the_module_pops_from(run):
    def inner(self, x, extra=None):
        return self.fc(x) * extra.pop("scale")

    def outer(self, x):
        extra = {"scale": x.mean()}
        y = self.inner(x, extra=extra)
        run.note("left", len(extra))
        return y.sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def a_key_value_cache_object_that_grows(run):
    class Cache:
        def __init__(self):
            self.keys = []

        def update(self, k):
            self.keys.append(k)
            return torch.cat(self.keys, dim=1)

    def attend(self, x, cache):
        k = cache.update(self.k(x))
        return torch.softmax(self.q(x) @ k.transpose(1, 2), -1) @ k

    def outer(self, x):
        cache = Cache()
        y = x
        for t in range(3):
            y = self.inner(y, cache)
        run.note("cached", [k.shape for k in cache.keys])
        return y.pow(2).mean()

    inner = Calls(attend, k=nn.Linear(4, 4), q=nn.Linear(4, 4))
    x = torch.randn(2, 3, 4)
    run.train(Calls(outer, inner=inner), lambda m, i: m(x))


@way
def the_same_tensor_by_position_and_by_keyword(run):
    def inner(self, q, k=None, v=None):
        run.note("is", (q is k, k is v))
        return self.fc(q) + (k if k is q else 2 * k) + v

    def outer(self, x):
        y = self.before(x)
        return self.inner(y, k=y, v=y).sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def multihead_attention_with_itself(run):
    def outer(self, x):
        y, w = self.attention(x, x, value=x)
        return y.pow(2).sum() + w.sum()

    x = torch.randn(5, 2, 8, requires_grad=True)
    run.train(Calls(outer, attention=nn.MultiheadAttention(8, 2)), lambda m, i: m(x))
    run.note("gradient of x", x.grad)


@way
def transformer_encoder_in_training_and_in_evaluation(run):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    x = torch.randn(2, 5, 8)
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[1, 3:] = True
    run.train(model, lambda m, i: m(x, src_key_padding_mask=mask).pow(2).mean())
    model.eval()
    with run.dump(model), torch.no_grad():
        run.note("evaluated", model(x, src_key_padding_mask=mask))


@way
def a_whole_transformer(run):
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    a, b = torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    causal = nn.Transformer.generate_square_subsequent_mask(3)
    run.train(model, lambda m, i: m(a, b, tgt_mask=causal).pow(2).mean())


@way
def a_namedtuple_argument(run):
    Batch = collections.namedtuple("Batch", "x mask")

    def inner(self, batch):
        run.note("type", type(batch).__name__)
        return (self.fc(batch.x) * batch.mask).sum()

    batch = Batch(torch.randn(2, 4), torch.ones(2, 1))
    run.train(nn.Sequential(Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(batch))


@way
def a_dataclass_argument_with_requires_grad(run):
    @dataclasses.dataclass
    class Batch:
        x: torch.Tensor
        seen: typing.Any = None

    def inner(self, batch):
        batch.seen = self.fc(batch.x)
        return batch

    def outer(self, x):
        batch = Batch(self.before(x))
        out = self.inner(batch)
        run.note("is", (out is batch, out.seen is batch.seen))
        return out.seen.sum() + out.x.sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def a_subclass_of_dict_as_argument(run):
    class Config(dict):
        __getattr__ = dict.__getitem__

    def inner(self, config):
        run.note("type", type(config).__name__)
        return self.fc(config.x) * config.scale

    x = torch.randn(2, 4)

    def outer(self, i):
        config = Config(x=self.before(x), scale=2.0)
        y = self.inner(config)
        run.note("is", config.x.grad_fn is not None)
        return y.sum()

    run.train(Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(i))


@way
def a_defaultdict_that_counts(run):
    def inner(self, x, counts):
        counts["calls"] += 1
        return self.fc(x)

    counts = collections.defaultdict(int)

    def outer(self, x):
        return self.b(self.a(x, counts), counts).sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, a=Calls(inner, fc=nn.Linear(4, 4)), b=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))
    run.note("counts", dict(counts))


@way
def list_arguments_stay_the_same_lists(run):
    kept = []

    def inner(self, parts):
        run.note("is", parts is kept[-1])
        return self.fc(torch.cat(parts))

    def outer(self, x):
        kept.append([self.before(x), x])
        return self.inner(kept[-1]).sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def a_generator_as_argument(run):
    def inner(self, parts):
        return sum(self.fc(p).sum() for p in parts)

    def outer(self, x):
        return self.inner(self.before(p) for p in x.split(1))

    x = torch.randn(3, 4)
    run.train(Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def an_iterator_that_two_modules_take_from(run):
    def inner(self, parts):
        return self.fc(next(parts))

    def outer(self, x):
        parts = iter([self.before(p) for p in x.split(1)])
        total = self.a(parts) + 2 * self.b(parts)
        run.note("left", len(list(parts)))
        return total.sum()

    x = torch.randn(3, 4)
    run.train(Calls(outer, before=nn.Linear(4, 4), a=Calls(inner, fc=nn.Linear(4, 4)),
                    b=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def a_parameter_as_argument_stays_a_leaf(run):
    def inner(self, x, weight):
        run.note("leaf", (weight.is_leaf, isinstance(weight, nn.Parameter), type(weight).__name__))
        return F.linear(x, weight)

    def outer(self, x):
        run.note("is", self.weight is dict(self.named_parameters())["weight"])
        return self.inner(self.fc(x), self.weight).sum()

    model = Calls(outer, fc=nn.Linear(4, 4), inner=Calls(inner))
    model.weight = nn.Parameter(torch.randn(3, 4))
    x = torch.randn(2, 4)
    run.train(model, lambda m, i: m(x))


@way
def a_parameter_as_argument_whose_data_is_changed(run):
    def inner(self, x, weight):
        with torch.no_grad():
            weight.clamp_(-0.1, 0.1)
        return x @ weight

    model = Calls(lambda self, x: self.inner(x, self.weight).pow(2).sum(), inner=Calls(inner))
    model.weight = nn.Parameter(torch.randn(4, 4))
    x = torch.randn(2, 4)
    run.train(model, lambda m, i: m(x))


@way
def attributes_on_tensors(run):
    def inner(self, x):
        run.note("has", hasattr(x, "scale"))
        y = self.fc(x) * getattr(x, "scale", 1.0)
        y.scale = 3.0
        return y

    def outer(self, x):
        y = self.before(x)
        y.scale = 2.0
        z = self.inner(y)
        run.note("has after", hasattr(z, "scale"))
        return (z * getattr(z, "scale", 1.0)).sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def megatron_marks_on_parameters(run):
    def outer(self, x):
        for p in self.parameters():
            run.note("marks", (getattr(p, "sequence_parallel", None), getattr(p, "allreduce", None)))
        return self.fc(x).sum()

    model = Calls(outer, fc=nn.Linear(4, 4))
    model.fc.weight.sequence_parallel = True
    model.fc.bias.allreduce = False
    x = torch.randn(2, 4)
    run.train(model, lambda m, i: m(x))


@way
def a_tensor_looked_up_by_its_identity(run):
    known = {}

    def inner(self, x):
        run.note("known", id(x) in known)
        return self.fc(x) * known.get(id(x), 0.5)

    def outer(self, x):
        y = self.before(x)
        known.clear()
        known[id(y)] = 2.0
        return self.inner(y).sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def cached_rotary_tables_by_identity(run):
    def rotary(self, x):
        if self.cached is None:
            self.cached = torch.arange(x.shape[1], dtype=x.dtype)
        return self.cached

    def outer(self, x):
        a = self.rotary(x)
        b = self.rotary(x)
        run.note("is", a is b and a is self.rotary.cached)
        return (self.fc(x) * a).sum()

    inner = Calls(rotary)
    inner.cached = None
    x = torch.randn(2, 4)
    run.train(Calls(outer, rotary=inner, fc=nn.Linear(4, 4)), lambda m, i: m(x))


@way
def an_argument_changed_in_place(run):
    def inner(self, x):
        x.mul_(2)
        return self.fc(x)

    def outer(self, x):
        y = self.before(x)
        z = self.inner(y)
        return (z + y).sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def a_leaf_input_with_a_gradient(run):
    x = torch.randn(2, 4, requires_grad=True)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 1))
    run.train(model, lambda m, i: m(x).sum())
    run.note("x", (x, x.grad, x.is_leaf))


@way
def a_leaf_input_whose_requires_grad_is_set_inside(run):
    def inner(self, x):
        x.requires_grad_()
        y = self.fc(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.sum() + g.pow(2).sum()

    x = torch.randn(2, 4)
    run.train(nn.Sequential(Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))
    run.note("x", (x.requires_grad, x.grad))


@way
def functions_and_modules_as_arguments(run):
    def inner(self, x, act, layer):
        run.note("names", (act.__name__, type(layer).__name__))
        return layer(act(x))

    def outer(self, x):
        return self.inner(self.before(x), F.relu, self.last).sum() + \
            self.inner(x, functools.partial(F.leaky_relu, negative_slope=0.2).func, self.last).sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner), last=nn.Linear(4, 2)), lambda m, i: m(x))


@way
def nested_containers_of_tensors(run):
    def inner(self, tree):
        a, (b, more) = tree[0]
        run.note("types", [type(v).__name__ for v in (tree, tree[0], tree[0][1])])
        return self.fc(a) + b * more["c"]

    def outer(self, x):
        y = self.before(x)
        return self.inner([(y, [y, {"c": x}])]).sum()

    x = torch.randn(2, 4)
    run.train(Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x))


@way
def a_list_that_holds_itself(run):
    def inner(self, x, tree):
        return self.fc(x) * len(tree)

    tree = [1]
    tree.append(tree)
    x = torch.randn(2, 4)
    run.train(nn.Sequential(Calls(lambda self, x: self.inner(x, tree), inner=Calls(inner, fc=nn.Linear(4, 4)))),
              lambda m, i: m(x).sum())


@way
def an_argument_that_cannot_be_printed_or_compared(run):
    class Odd:
        def __repr__(self):
            raise RuntimeError("do not print me")

        __str__ = __len__ = __iter__ = __bool__ = __repr__

        def __eq__(self, other):
            raise RuntimeError("do not compare me")

        __hash__ = None

        def __getattr__(self, name):
            raise RuntimeError("do not ask me")

    def inner(self, x, odd, more=None):
        return self.fc(x)

    x = torch.randn(2, 4)
    run.train(Calls(lambda self, x: self.inner(x, Odd(), more=[Odd()]), inner=Calls(inner, fc=nn.Linear(4, 4))),
              lambda m, i: m(x).sum())


@way
def a_property_that_counts_how_often_it_is_read(run):
    class Counts(dict):
        reads = 0

        def items(self):
            Counts.reads += 1
            return super().items()

        def __iter__(self):
            Counts.reads += 1
            return super().__iter__()

    def inner(self, x, d):
        return self.fc(x) * d["scale"]

    x = torch.randn(2, 4)
    run.train(Calls(lambda self, x: self.inner(x, Counts(scale=2.0)), inner=Calls(inner, fc=nn.Linear(4, 4))),
              lambda m, i: m(x).sum())
    run.note("reads", Counts.reads)


@way
def keyword_only_arguments_and_none(run):
    def inner(self, x, *, mask=None, scale: float = 1.0, **more):
        run.note("more", sorted(more))
        y = self.fc(x) * scale
        return y if mask is None else y.masked_fill(mask, 0)

    x, mask = torch.randn(2, 4), torch.rand(2, 4) > 0.5
    run.train(Calls(lambda self, x: self.inner(x, scale=2.0, a=1) + self.inner(x, mask=mask, b=None),
                    inner=Calls(inner, fc=nn.Linear(4, 4))), lambda m, i: m(x).sum())


@way
def a_numpy_array_as_argument(run):
    import numpy

    def inner(self, x, table):
        table += 1
        return self.fc(x) * torch.from_numpy(table)

    table = numpy.ones(4, dtype=numpy.float32)
    x = torch.randn(2, 4)
    run.train(Calls(lambda self, x: self.inner(x, table), inner=Calls(inner, fc=nn.Linear(4, 4))),
              lambda m, i: m(x).sum())
    run.note("table", table)


@way
def no_arguments_at_all(run):
    model = Calls(lambda self: self.inner().sum(), inner=Calls(lambda self: self.weight * 2))
    model.inner.weight = nn.Parameter(torch.randn(3))
    run.train(model, lambda m, i: m())


@way
def sizes_dtypes_devices_and_slices(run):
    def inner(self, x, size, dtype, device, where, dots):
        return self.fc(x[where].to(device, dtype).reshape(size))[dots]

    x = torch.randn(4, 4)
    run.train(Calls(lambda self, x: self.inner(x, torch.Size([2, 4]), torch.float32, torch.device("cpu"),
                                               slice(0, 2), Ellipsis), inner=Calls(inner, fc=nn.Linear(4, 4))),
              lambda m, i: m(x).sum())


@way
def one_tensor_used_by_many_modules(run):
    def outer(self, x):
        y = self.before(x)
        return sum(head(y).pow(2).sum() * (k + 1) for k, head in enumerate(self.heads)) + y.exp().sum()

    x = torch.randn(3, 4) * 3
    run.train(Calls(outer, before=nn.Linear(4, 4), heads=nn.ModuleList(nn.Linear(4, 4) for _ in range(5))),
              lambda m, i: m(x), lr=1e-3)


@way
def packed_sequences_through_recurrent_modules(run):
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    def outer(self, x):
        packed = pack_padded_sequence(x, [5, 3, 2], batch_first=True)
        out, (h, c) = self.lstm(packed)
        run.note("type", type(out).__name__)
        return pad_packed_sequence(out)[0].pow(2).sum() + h.sum() + c.sum()

    x = torch.randn(3, 5, 4)
    run.train(Calls(outer, lstm=nn.LSTM(4, 6, 2, batch_first=True, dropout=0.2)), lambda m, i: m(x))


@way
def recurrent_modules_with_states_that_are_carried(run):
    model = nn.ModuleDict({"gru": nn.GRU(4, 4), "rnn": nn.RNN(4, 4), "cell": nn.LSTMCell(4, 4)})
    x = torch.randn(3, 2, 4)
    state = {}

    def loss_of(m, i):
        y, h = m["gru"](x, state.get("h"))
        z, _ = m["rnn"](y)
        a, b = m["cell"](z[-1], state.get("ab"))
        state.update(h=h.detach(), ab=(a.detach(), b.detach()))
        return z.sum() + a.sum() + b.sum()

    run.train(model, loss_of)
    run.note("state", state)
