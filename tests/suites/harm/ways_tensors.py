# SPDX-License-Identifier: MIT
"""Tensors of other classes and layouts, modes, random numbers, and functions as values."""
import copy
import pickle

import torch
from torch import nn
from torch.nn import functional as F

from harness import VERSION, way
from ways_arguments import Calls


def trained(run, forward, **options):
    model, x = Calls(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4)), torch.randn(3, 4)
    run.train(model, lambda m, i: m(x), **options)
    return model


class Named(torch.Tensor):
    """A subclass that hands its title on, as many libraries have one."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(out, Named):
            out.title = next((a.title for a in args if isinstance(a, Named) and hasattr(a, "title")), "none")
        return out


@way
def a_subclass_that_hands_its_title_on(run):
    model, x = Calls(lambda self, x: self.b(self.a(x).relu()) * 2, a=nn.Linear(4, 4), b=nn.Linear(4, 4)), torch.randn(3, 4).as_subclass(Named)
    x.title = "batch"

    def loss_of(m, i):
        y = m(x)
        run.note("name", (type(y).__name__, getattr(y, "title", None)))
        return y.sum()
    run.train(model, loss_of)


@way
def a_subclass_with_a_table_of_functions(run):
    handled = {}

    class Table:
        def __init__(self, value):
            self.value = value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            run.note("asked", getattr(func, "__name__", "?"))
            if func not in handled:
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    handled[torch.mean] = lambda t: t.value.mean()
    handled[F.linear] = lambda t, w, b=None: F.linear(t.value, w, b)
    handled[torch.add] = lambda a, b: a.value + b

    def forward(self, x):
        y = self.a(Table(x))
        run.raises("not known", lambda: torch.sub(Table(x), 1))
        return torch.mean(Table(y)) + torch.add(Table(y), 1).sum()
    trained(run, forward)


@way
def a_wrapper_subclass_with_dispatch(run):
    from torch.utils import _pytree as tree
    calls = []

    class Wraps(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, requires_grad=inner.requires_grad)

        def __init__(self, inner):
            self.inner = inner

        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            calls.append(str(func))
            un = lambda v: v.inner if isinstance(v, Wraps) else v
            out = func(*tree.tree_map(un, args), **tree.tree_map(un, kwargs or {}))
            return tree.tree_map(lambda v: Wraps(v) if isinstance(v, torch.Tensor) else v, out)

    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    x = Wraps(torch.randn(2, 4))
    for _ in range(2):
        with run.dump(model):
            y = model(x)
            run.note("type", type(y).__name__)
            y.sum().backward()
    run.note("calls", calls)
    run.note("gradients", [p.grad.inner for p in model.parameters()])


@way
def a_dispatch_mode_that_counts(run):
    from torch.utils._python_dispatch import TorchDispatchMode
    calls = []

    class Counts(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    def forward(self, x):
        with Counts():
            return self.b(self.a(x).relu()).sum()
    trained(run, forward)
    run.note("calls", calls)


@way(needs=(1, 13))
def a_function_mode_that_sees_each_call(run):
    from torch.overrides import TorchFunctionMode
    calls = []

    class Sees(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append(torch.overrides.resolve_name(func) or getattr(func, "__name__", str(func)))
            return func(*args, **(kwargs or {}))

    def forward(self, x):
        with Sees():
            return F.gelu(self.b(self.a(x).relu()) + 1).softmax(-1).max()
    trained(run, forward)
    run.note("calls", calls)


@way
def a_function_mode_around_the_training(run):
    from torch.overrides import TorchFunctionMode
    calls = []

    class Sees(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append(getattr(func, "__name__", str(func)))
            return func(*args, **(kwargs or {}))

    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(2, 4)
    run.start(model)
    with Sees():
        model(x).sum().backward()
    run.stop()
    run.note("calls", calls)
    run.note_model(model)


@way
def disabled_torch_function(run):
    def forward(self, x):
        with torch._C.DisableTorchFunction():
            return self.b(self.a(x)).sum()
    trained(run, forward)


@way
def functions_of_torch_keep_who_they_are(run):
    import inspect
    model = nn.Sequential(nn.Linear(4, 4))
    with run.dump(model):
        model(torch.randn(1, 4))
        for f in (torch.relu, F.relu, F.linear, torch.Tensor.add, torch.matmul, F.scaled_dot_product_attention
                  if hasattr(F, "scaled_dot_product_attention") else F.gelu, torch.Tensor.__add__, torch.stack, F.cross_entropy):
            run.note("who", (f.__name__, getattr(f, "__module__", None), getattr(f, "__qualname__", None), type(f).__name__,
                             inspect.isbuiltin(f), inspect.isfunction(f), callable(f), (f.__doc__ or "")[:40]))
        run.note("signature", str(inspect.signature(F.cross_entropy)))
        run.note("source", len(inspect.getsource(F.cross_entropy)))
        run.note("defaults", F.cross_entropy.__defaults__)


@way
def functions_of_torch_are_pickled_and_copied(run):
    model = nn.Sequential(nn.Linear(4, 4))
    with run.dump(model):
        model(torch.randn(1, 4))
        for f in (torch.relu, F.relu, torch.matmul, torch.Tensor.add, F.gelu, F.cross_entropy):
            run.note("pickled", pickle.loads(pickle.dumps(f)) is f)
            run.note("copied", copy.deepcopy(f) is f)
    kept = pickle.dumps([F.relu, F.cross_entropy])
    run.note("bytes", kept)


@way
def functions_kept_before_and_compared_within(run):
    kept = {F.relu: "relu", torch.tanh: "tanh", torch.Tensor.exp: "exp"}

    def forward(self, x):
        run.note("found", (kept.get(F.relu), kept.get(torch.tanh), kept.get(torch.Tensor.exp)))
        run.note("is", [f is g for f, g in zip(kept, (F.relu, torch.tanh, torch.Tensor.exp))])
        return self.b(self.a(x)).sum()
    trained(run, forward)


@way
def functions_kept_within_and_used_after(run):
    kept = []

    def forward(self, x):
        kept.append((F.relu, torch.tanh, torch.Tensor.exp))
        return self.b(kept[-1][0](self.a(x))).sum()
    trained(run, forward)
    run.note("after", [f(torch.ones(1)) for f in kept[0]])
    run.note("is", [f is g for f, g in zip(kept[0], (F.relu, torch.tanh, torch.Tensor.exp))])


@way
def activation_functions_by_name_in_a_class(run):
    class Layer(nn.Module):
        act = torch.tanh
        acts = {"relu": F.relu, "gelu": F.gelu}

        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.function = F.silu

        def forward(self, x):
            return self.acts["gelu"](self.function(self.fc(x)) + Layer.act(x))

    model, x = nn.Sequential(Layer()), torch.randn(2, 4)
    run.train(model, lambda m, i: m(x).sum())
    other = copy.deepcopy(model)
    run.note("is", other[0].function is model[0].function)
    run.note("pickles", len(pickle.dumps(model[0].function)))


@way
def overridable_functions_and_their_table(run):
    model = nn.Sequential(nn.Linear(4, 4))
    with run.dump(model):
        model(torch.randn(1, 4))
        table = torch.overrides.get_testing_overrides()
        run.note("in table", [f in table for f in (torch.relu, F.linear, torch.matmul, torch.Tensor.add, F.gelu)])
        run.note("overridable", torch.overrides.is_tensor_method_or_property(torch.Tensor.add))
        run.note("name", torch.overrides.resolve_name(F.linear))


@way
def sparse_tensors(run):
    def forward(self, x):
        s = torch.eye(3).to_sparse()
        y = torch.sparse.mm(s, self.a(x))
        return (y + torch.sparse.sum(s * 2)).sum() + self.b(s.to_dense() @ x).sum()
    trained(run, forward)


@way
def sparse_gradients_of_embeddings(run):
    model = nn.Sequential(nn.Embedding(10, 4, sparse=True))
    index = torch.tensor([[1, 2], [3, 1]])
    run.train(model, lambda m, i: m(index).pow(2).sum(), optimizer=lambda p, lr: torch.optim.SparseAdam(list(p), lr=lr))


@way
def embedding_bags_and_offsets(run):
    model = nn.ModuleList([nn.EmbeddingBag(10, 4, mode="mean"), nn.EmbeddingBag(10, 4, mode="max", padding_idx=0)])
    index, offsets = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 5])
    run.train(model, lambda m, i: m[0](index, offsets).sum() + m[1](index.view(2, 3)).pow(2).sum())


@way
def compressed_sparse_tensors(run):
    def forward(self, x):
        s = (torch.eye(4) * 2).to_sparse_csr()
        return (s @ self.a(x).t()).sum()
    trained(run, forward)


@way(needs=(2, 0))
def nested_tensors(run):
    def forward(self, x):
        n = torch.nested.nested_tensor([x, x[:2]])
        y = self.a(n)
        return torch.nested.to_padded_tensor(y, 0.0).sum()
    trained(run, forward)


@way(needs=(2, 3))
def jagged_nested_tensors(run):
    def forward(self, x):
        n = torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged)
        y = F.gelu(self.a(n))
        run.note("type", type(y).__name__)
        return y.values().sum()
    trained(run, forward)


@way
def channels_last_and_convolutions(run):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1))
    model = model.to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)

    def loss_of(m, i):
        y = m[0](x)
        run.note("stride", y.stride())
        return m[1:](y).sum()
    run.train(model, loss_of)


@way
def expanded_transposed_and_overlapping_tensors(run):
    def forward(self, x):
        y = self.a(x.t().contiguous().t()).unfold(1, 2, 1)
        z = self.b(x[:1].expand(3, 4))
        return y.sum() + z.sum() + x.as_strided((2, 2), (1, 1)).sum()
    trained(run, forward)


@way
def meta_and_fake_tensors(run):
    model = nn.Sequential(nn.Linear(4, 4, device="meta"), nn.ReLU())
    with run.dump(model):
        y = model(torch.empty(2, 4, device="meta"))
        y.sum().backward()
    run.note("y", (y.shape, y.device.type, model[0].weight.grad.device.type))
    model.to_empty(device="cpu")
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0.5)
    run.train(model, lambda m, i: m(torch.ones(2, 4)).sum())


@way(needs=(2, 0))
def fake_tensor_mode(run):
    from torch._subclasses.fake_tensor import FakeTensorMode
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with run.dump(model), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        y = model(mode.from_tensor(torch.randn(2, 4)))
        run.note("type", (type(y).__name__, tuple(y.shape)))
    run.train(model, lambda m, i: m(torch.ones(2, 4)).sum())


@way(needs=(2, 0))
def a_default_device_and_type(run):
    torch.set_default_dtype(torch.float64)
    with torch.device("cpu"):
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        run.train(model, lambda m, i: m(torch.randn(2, 4)).sum())
    torch.set_default_dtype(torch.float32)


@way
def half_and_bfloat16(run):
    for dtype in (torch.bfloat16, torch.float64):
        model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 1)).to(dtype)
        x = torch.randn(2, 4, dtype=dtype)
        run.train(model, lambda m, i: m(x).sum())


@way(needs=(2, 2))
def eight_bit_floats(run):
    def forward(self, x):
        y = self.a(x).to(torch.float8_e4m3fn)
        return self.b(y.to(torch.float32)).sum()
    trained(run, forward)


@way
def integers_booleans_and_bits(run):
    def forward(self, x):
        i = (self.a(x) * 10).to(torch.int64)
        u = i.to(torch.uint8)
        run.note("bits", ((i << 1) & 7, u ^ 255, ~(i > 0), i // 3, i % 3))
        return (self.b(x) * (i > 0)).sum()
    trained(run, forward)


@way
def tensors_in_conditions_and_loops(run):
    def forward(self, x):
        y = self.a(x)
        while y.norm() > 1:
            y = y / 2
        if (y > 0).any() and torch.tensor(3.0) == 3 and 2 < torch.tensor(3):
            y = y * 2
        run.note("int", (int(y[0, 0] * 10), float(y[0, 0]), len(y), bool(y[0, 0] > 0), y.tolist()))
        return self.b(y).sum()
    trained(run, forward)


@way
def iteration_over_tensors_and_star_arguments(run):
    def forward(self, x):
        y = self.a(x)
        first, *others = y
        return torch.stack([first, *others]).sum() + max(row.sum() for row in y) + sum(y.unbind(0)).sum()
    trained(run, forward)


@way
def indexing_of_all_kinds(run):
    def forward(self, x):
        y = self.a(x).clone()
        y[0] = 1
        y[y > 2] = 0
        y[:, [0, 2]] = y[:, [2, 0]]
        y[..., None, 1:2] += 1
        y.index_put_((torch.tensor([1]),), torch.tensor(2.0), accumulate=True)
        y.scatter_(1, torch.tensor([[0], [1], [2]]), 3.0)
        return self.b(y).sum()
    trained(run, forward)


@way
def functions_with_out(run):
    def forward(self, x):
        out = torch.empty(3, 4)
        with torch.no_grad():
            again = torch.add(x, 1, out=out)
            values, index = torch.empty(3), torch.empty(3, dtype=torch.int64)
            pair = torch.max(x, 1, out=(values, index))
        run.note("is", (again is out, pair[0] is values, pair.values is values, type(pair).__name__))
        return self.b(self.a(out)).sum()
    trained(run, forward)


@way
def named_results_of_functions(run):
    def forward(self, x):
        y = self.a(x)
        top = y.topk(2)
        run.note("type", (type(top).__name__, top.indices is top[1], torch.max(y, 0)._fields if hasattr(torch.max(y, 0), "_fields") else None))
        u, s, v = torch.linalg.svd(y, full_matrices=False)
        q, r = torch.linalg.qr(y.t())
        return top.values.sum() + s.sum() + r.diagonal().abs().sum() + torch.sort(y).values[0].sum()
    trained(run, forward)


@way
def in_place_functions_return_their_tensor(run):
    def forward(self, x):
        y = self.a(x).detach()
        z = y.add_(1)
        w = F.relu(y, inplace=True)
        run.note("is", (z is y, w is y, y.zero_ is not None, torch.relu_(z) is y, y.add_(2).sub_(1) is y))
        y *= 2
        y -= 1
        before = id(y)
        y += y.detach().clone()
        run.note("same", id(y) == before)
        return self.b(y).sum()
    trained(run, forward)


@way
def storages_and_pointers(run):
    def forward(self, x):
        y = self.a(x)
        z = y.view(-1)
        run.note("pointer", (z.data_ptr() == y.data_ptr(), y.storage_offset(), z._version, y._version, y.is_contiguous()))
        y.add_(1)
        run.note("versions", (z._version, y._version, x._version))
        return self.b(y).sum()
    trained(run, forward)


@way
def versions_of_tensors_are_left_alone(run):
    def forward(self, x):
        y = self.a(x)
        h = self.b(y)
        run.note("versions", [t._version for t in (x, y, h, self.a.weight, self.b.bias)])
        return h.sum()
    model = trained(run, forward)
    run.note("after", [p._version for p in model.parameters()])


@way
def reference_counts_are_left_alone(run):
    import sys
    counts = []

    def forward(self, x):
        y = self.a(x)
        counts.append(sys.getrefcount(y))
        z = F.relu(y)
        counts.append(sys.getrefcount(z))
        return self.b(z).sum()
    trained(run, forward)
    run.note("counts", counts)


@way
def dropout_of_all_kinds_and_random_numbers(run):
    model = nn.Sequential(nn.Dropout(0.5), nn.AlphaDropout(0.1), nn.RReLU(), nn.Linear(4, 4))
    x = torch.randn(3, 4)
    run.train(model, lambda m, i: F.gumbel_softmax(m(x + torch.randn_like(x) + torch.empty(4).normal_())).max() +
              torch.bernoulli(torch.full((3,), 0.5)).sum() + torch.randperm(5)[0] + torch.multinomial(torch.ones(4), 2).sum())


@way
def forked_random_states_and_generators(run):
    g = torch.Generator().manual_seed(3)

    def forward(self, x):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            noise = torch.randn(3, 4)
        state = torch.get_rng_state()
        y = self.a(x + noise + torch.randn(3, 4, generator=g))
        torch.set_rng_state(state)
        return self.b(F.dropout(y)).sum()
    trained(run, forward)
    run.note("generator", g.get_state())


@way
def random_numbers_of_numpy_and_python(run):
    import random
    import numpy

    def forward(self, x):
        return self.b(self.a(x) * random.random() + torch.from_numpy(numpy.random.rand(4).astype("float32"))).sum()
    trained(run, forward)


@way
def deterministic_algorithms(run):
    torch.use_deterministic_algorithms(True)
    trained(run, lambda self, x: self.b(self.a(x).index_add(0, torch.tensor([0, 0]), torch.ones(2, 4))).sum())
    torch.use_deterministic_algorithms(False)


@way
def numpy_shares_memory(run):
    import numpy

    def forward(self, x):
        y = self.a(x).detach().numpy()
        y += 1
        z = torch.from_numpy(y)
        run.note("array", numpy.asarray(z))
        return (self.b(z) * torch.as_tensor(numpy.float32(2))).sum() + float(numpy.sum(y))
    trained(run, forward)


@way
def dlpack_and_the_buffer_protocol(run):
    def forward(self, x):
        y = torch.from_dlpack(self.a(x).detach())
        z = torch.frombuffer(bytearray(y.numpy().tobytes()), dtype=torch.float32).view(3, 4)
        return self.b(z).sum()
    trained(run, forward)


@way
def losses_of_all_kinds(run):
    def forward(self, x):
        y, z = self.a(x), self.b(x)
        c = torch.tensor([0, 1, 3])
        return sum([F.cross_entropy(y, c, label_smoothing=0.1), F.nll_loss(y.log_softmax(1), c), F.mse_loss(y, z), F.l1_loss(y, z),
                    F.smooth_l1_loss(y, z), F.huber_loss(y, z), F.kl_div(y.log_softmax(1), z.softmax(1), reduction="batchmean"),
                    F.binary_cross_entropy_with_logits(y, z.sigmoid().detach()), F.cosine_embedding_loss(y, z, torch.ones(3)),
                    F.triplet_margin_loss(y, z, x), F.margin_ranking_loss(y, z, torch.ones(3, 4)), F.poisson_nll_loss(y, z.exp().detach()),
                    F.gaussian_nll_loss(y, x, z.pow(2) + 1), F.multi_margin_loss(y, c), F.hinge_embedding_loss(y, torch.ones(3, 4))])
    trained(run, forward)


@way
def norms_pools_and_resampling(run):
    model = nn.ModuleList([nn.Conv2d(3, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, track_running_stats=True),
                           nn.BatchNorm2d(4, momentum=None), nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2),
                           nn.ConvTranspose2d(4, 3, 2), nn.Upsample(scale_factor=2), nn.PixelShuffle(2)])
    x = torch.randn(2, 3, 4, 4)

    def loss_of(m, i):
        y = m[3](m[2](m[1](m[0](x))))
        z, where = m[4](y)
        return m[6](m[5](z, where)).sum() + m[7](y).pow(2).sum() + m[8](y).sum() + F.interpolate(y, 3, mode="bilinear").sum()
    run.train(model, loss_of)


@way(needs=(2, 0))
def attention_functions_and_masks(run):
    def forward(self, x):
        q = self.a(x).view(1, 3, 2, 2).transpose(1, 2)
        k = self.b(x).view(1, 3, 2, 2).transpose(1, 2)
        mask = torch.ones(3, 3, dtype=torch.bool).tril()
        return F.scaled_dot_product_attention(q, k, q, attn_mask=mask).sum() + \
            F.scaled_dot_product_attention(q, k, k, is_causal=True, dropout_p=0.1).pow(2).sum()
    trained(run, forward)


@way(needs=(2, 5), slow=True)
def flex_attention(run):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention as flex
    q = torch.randn(1, 1, 16, 16)
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device="cpu")
    model = nn.Sequential(nn.Linear(16, 16))
    with run.dump(model), torch.no_grad():
        y = flex(model(q), q, q, block_mask=mask)
    run.note("y", y)


@way
def einsum_matmul_and_linear_algebra(run):
    def forward(self, x):
        y = self.a(x)
        return (torch.einsum("ij,kj->ik", y, x).sum() + torch.linalg.multi_dot([y, y.t(), x]).sum() + torch.cdist(y, x).sum() +
                torch.tensordot(y, x, dims=([0], [0])).sum() + torch.linalg.norm(self.b(y)) + torch.linalg.det(y.t() @ y + torch.eye(4)))
    trained(run, forward, lr=1e-3)


@way
def deepcopied_and_pickled_tensors(run):
    import io

    def forward(self, x):
        y = copy.deepcopy(x)
        buffer = io.BytesIO()
        torch.save({"y": y, "w": self.a.weight}, buffer)
        buffer.seek(0)
        back = torch.load(buffer)
        run.note("type", type(back["w"]).__name__)
        z = pickle.loads(pickle.dumps(self.a(back["y"]).detach()))
        return self.b(z).sum()
    trained(run, forward)


@way
def tensors_with_names(run):
    if not hasattr(torch.Tensor, "refine_names"):
        return run.note("names", "are gone in this PyTorch")

    def forward(self, x):
        y = self.a(x).refine_names("N", "C")
        run.note("names", y.names)
        return y.rename(None).sum() + self.b(y.align_to("C", "N").rename(None).t()).sum()
    trained(run, forward)


if VERSION >= (2, 0):
    @way(needs=(2, 4))
    def operators_of_ones_own(run):
        @torch.library.custom_op("harm::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        twice.register_autograd(lambda ctx, g: g * 2)
        twice.register_fake(lambda x: torch.empty_like(x))
        trained(run, lambda self, x: self.b(twice(self.a(x))).sum() + torch.ops.harm.twice(x).sum())
