# SPDX-License-Identifier: MIT
"""What libraries of models and of parallel training do: caches of generation, tricks of vision models, functions of
tensor parallelism, adapters, quantisers, and operators of their own."""
import copy
import io
import math
import pickle

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from harness import VERSION, way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 1))


# ---- language models ---------------------------------------------------------------------------


class StaticCache:
    """Keys and values of fixed length, written in place at the position of each token."""

    def __init__(self, layers, length, width):
        self.keys = [torch.zeros(1, length, width) for _ in range(layers)]
        self.values = [torch.zeros(1, length, width) for _ in range(layers)]
        self.seen = 0

    def update(self, key, value, layer, positions):
        self.keys[layer].index_copy_(1, positions, key)
        self.values[layer].index_copy_(1, positions, value)
        self.seen += key.shape[1] if layer == 0 else 0
        return self.keys[layer], self.values[layer]


class CachedAttention(nn.Module):
    def __init__(self, layer, width=4):
        super().__init__()
        self.layer, self.qkv, self.out = layer, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, cache=None, positions=None, mask=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        if cache is not None:
            k, v = cache.update(k, v, self.layer, positions)
        return x + self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask) if hasattr(F, "scaled_dot_product_attention")
                            else F.softmax(q @ k.transpose(1, 2) / 2 + (mask if mask is not None else 0), -1) @ v)


@way
def a_static_cache_that_is_written_in_place_while_it_generates(run):
    embed, layers, head = nn.Embedding(9, 4), nn.ModuleList(CachedAttention(i) for i in range(2)), nn.Linear(4, 9)

    def forward(self, ids, cache=None, positions=None):
        x = self.embed(ids)
        mask = None
        if cache is not None:
            mask = torch.zeros(ids.shape[1], 8).masked_fill(torch.arange(8) > positions[:, None], -1e9)
        for layer in self.layers:
            x = layer(x, cache=cache, positions=positions, mask=mask)
        return self.head(x)
    model = Calls(forward, embed=embed, layers=layers, head=head)
    ids = torch.tensor([[1, 2, 3]])
    for step in range(2):
        with run.dump(model):
            cache = StaticCache(2, 8, 4)
            with torch.no_grad():
                positions, tokens = torch.arange(3), ids
                for _ in range(4):
                    tokens = model(tokens, cache=cache, positions=positions)[:, -1:].argmax(-1)
                    positions = positions[-1:] + 1
                    run.note("token", tokens)
            model(ids).pow(2).sum().backward()
        run.note("cache", (cache.seen, cache.keys, cache.values))
    run.note_model(model)


@way
def beams_that_are_reordered_and_processors_of_logits(run):
    class NoRepeat:
        def __call__(self, ids, scores):
            return scores.scatter(1, ids, -math.inf)

    model = Calls(lambda self, ids: self.head(self.embed(ids).mean(1)), embed=nn.Embedding(12, 4), head=nn.Linear(4, 12))
    with run.dump(model):
        with torch.inference_mode():
            beams, scores, past = torch.ones(3, 1, dtype=torch.long), torch.tensor([0.0, -1e9, -1e9]), torch.zeros(3, 0, 4)
            for _ in range(4):
                logits = NoRepeat()(beams, F.log_softmax(model(beams), -1)) + scores[:, None]
                scores, flat = logits.view(-1).topk(3)
                parent, token = torch.div(flat, 12, rounding_mode="floor"), flat % 12
                beams = torch.cat([beams[parent], token[:, None]], 1)
                past = torch.cat([past.index_select(0, parent), model.embed(token)[:, None]], 1)
            sampled = torch.multinomial(F.softmax(logits, -1).nan_to_num(0.1), 2)
        model(beams.clone()).logsumexp(-1).sum().backward()
    run.note("beams", (beams, scores, past, sampled))
    run.note_model(model)


@way
def rotary_positions_alibi_and_grouped_queries(run):
    def forward(self, x):
        q, k = self.q(x).view(1, 6, 4, 2).transpose(1, 2), self.k(x).view(1, 6, 2, 2).transpose(1, 2)
        k = k[:, :, None].expand(1, 2, 2, 6, 2).reshape(1, 4, 6, 2)
        angle = torch.outer(torch.arange(6.0), 1.0 / 10000 ** torch.arange(0, 1, 1.0))
        cos, sin = angle.cos()[None, None], angle.sin()[None, None]
        q = torch.stack((q[..., 0::2] * cos - q[..., 1::2] * sin, q[..., 1::2] * cos + q[..., 0::2] * sin), -1).flatten(-2)
        bias = -torch.arange(6).view(-1, 1).sub(torch.arange(6)).abs() * torch.tensor([2.0 ** -i for i in range(4)]).view(4, 1, 1)
        weights = (q @ k.transpose(-1, -2) + bias).softmax(-1, dtype=torch.float64).to(x.dtype)
        return torch.einsum("bhqk,bhkd->bqhd", weights, k).flatten(2).sum()
    run.train(Calls(forward, q=nn.Linear(4, 8), k=nn.Linear(4, 4)), lambda m, i: m(X[None]))


@way
def losses_in_pieces_of_a_vocabulary(run):
    """The gradient of the head is computed with its loss, piece by piece, in a function of one's own."""
    class Pieces(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, target):
            grad_x, grad_w, total = torch.zeros_like(x), torch.zeros_like(weight), 0.0
            for part in range(0, 6, 2):
                with torch.enable_grad():
                    a, w = x[part:part + 2].detach().requires_grad_(), weight.detach().requires_grad_()
                    loss = F.cross_entropy(a @ w.t(), target[part:part + 2], reduction="sum")
                ga, gw = torch.autograd.grad(loss, (a, w))
                grad_x[part:part + 2] = ga
                grad_w += gw
                total = total + loss.detach()
            ctx.save_for_backward(grad_x, grad_w)
            return total

        @staticmethod
        def backward(ctx, grad):
            grad_x, grad_w = ctx.saved_tensors
            return grad_x.mul_(grad), grad_w.mul_(grad), None
    model = Calls(lambda self, x: Pieces.apply(self.fc(x), self.head.weight, torch.tensor([0, 1, 2, 3, 4, 0])),
                  fc=nn.Linear(4, 4), head=nn.Linear(4, 5, bias=False))
    run.train(model, lambda m, i: m(X))


@way
def experts_with_capacity_and_a_loss_that_modules_leave_behind(run):
    class Router(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.experts, self.aux = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3)), None

        def forward(self, x):
            chance = F.softmax(self.gate(x) + torch.rand(6, 3) * 0.1, -1)
            weight, chosen = chance.topk(2, -1)
            self.aux = (chance.mean(0) * F.one_hot(chosen, 3).float().mean((0, 1))).sum() * 3
            out = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                rows, place = torch.where(chosen == i)
                rows, place = rows[:3], place[:3]
                if rows.numel():
                    out.index_add_(0, rows, expert(x[rows]) * weight[rows, place, None])
            return out
    model = nn.Sequential(Router(), nn.Linear(4, 4), Router())
    run.train(model, lambda m, i: m(X).pow(2).sum() + sum(r.aux for r in m.modules() if isinstance(r, Router)))


@way
def adapters_merged_unmerged_and_switched(run):
    class Adapted(nn.Linear):
        def __init__(self):
            super().__init__(4, 4)
            self.weight.requires_grad_(False)
            self.a = nn.ParameterDict({n: nn.Parameter(torch.randn(2, 4)) for n in "xy"})
            self.b = nn.ParameterDict({n: nn.Parameter(torch.randn(4, 2) * 0.1) for n in "xy"})
            self.active, self.is_merged = "x", False

        def merge(self, sign):
            with torch.no_grad():
                self.weight += sign * self.b[self.active] @ self.a[self.active]
            self.is_merged = sign > 0

        def forward(self, x):
            y = super().forward(x)
            return y if self.is_merged else y + x @ self.a[self.active].t() @ self.b[self.active].t()
    model = nn.Sequential(Adapted(), nn.Tanh(), Adapted())

    def loss_of(model, step):
        for layer in (model[0], model[2]):
            layer.active = "xy"[step % 2]
        loss = model(X).pow(2).sum()
        loss.backward()
        for sign in (1, -1):
            for layer in (model[0], model[2]):
                layer.merge(sign)
            with torch.no_grad():
                run.note(f"merged {sign}", model(X))
        return loss
    run.train(model, loss_of, optimizer=torch.optim.AdamW, backward=lambda loss: None)


# ---- vision models -----------------------------------------------------------------------------


@way
def convolutions_whose_weights_are_standardised_as_they_run(run):
    class Standard(nn.Conv2d):
        def forward(self, x):
            w = F.batch_norm(self.weight.reshape(1, self.out_channels, -1), None, None, training=True, eps=1e-6)
            return F.conv2d(F.pad(x, [0, 1, 0, 1]), w.reshape_as(self.weight), self.bias, self.stride, 0)

    class Norm(nn.BatchNorm2d):
        def forward(self, x):
            y = F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, self.training, 0.1, self.eps)
            return F.silu(y, inplace=True)
    model = nn.Sequential(Standard(1, 2, 2), Norm(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 1))
    run.train(model, lambda m, i: m(torch.randn(2, 1, 4, 4).to(memory_format=torch.channels_last)).sum())


@way
def branches_that_are_fused_into_one_convolution(run):
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.big, self.small, self.fused = nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, 1), None

        def forward(self, x):
            return self.fused(x) if self.fused is not None else self.big(x) + self.small(x)

        def fuse(self):
            self.fused = nn.Conv2d(2, 2, 3, padding=1)
            self.fused.weight.data.copy_(self.big.weight + F.pad(self.small.weight, [1] * 4))
            self.fused.bias.data.copy_(self.big.bias + self.small.bias)
            del self.big, self.small
    model, x = nn.Sequential(Branches(), nn.ReLU(inplace=True), Branches()), torch.randn(1, 2, 4, 4)
    run.train(model, lambda m, i: m(x).sum(), steps=1)
    with run.dump(model):
        for part in model:
            if isinstance(part, Branches):
                part.fuse()
        model(x).sum().backward()
    run.note_model(model)


@way
def features_taken_by_hooks_and_gradients_of_activations(run):
    """Class activation maps: hooks keep an activation and hook its gradient, and are removed within the step."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 1), nn.Flatten(), nn.Linear(8, 3))
    x = torch.randn(1, 1, 4, 4)
    for _ in range(2):
        kept = {}

        def keep(module, args, output):
            kept["activation"] = output
            output.register_hook(lambda g: kept.__setitem__("gradient", g.clone()))
        with run.dump(model):
            handle = model[2].register_forward_hook(keep)
            model(x)[0, 1].backward()
            handle.remove()
            weights = kept["gradient"].mean((2, 3), keepdim=True)
            run.note("map", F.relu((weights * kept["activation"]).sum(1)))
    run.note_model(model)


@way
def drop_path_layer_scale_and_mixed_images(run):
    def forward(self, x):
        y = self.fc(x)
        keep = x.new_empty((x.shape[0], 1)).bernoulli_(0.7)
        keep.div_(0.7)
        return (x + self.scale.mul(y).mul(keep)).sum(-1)
    model = Calls(forward, fc=nn.Linear(4, 4))
    model.scale = nn.Parameter(1e-1 * torch.ones(4))

    def loss_of(model, step):
        lam, order = torch.distributions.Beta(0.8, 0.8).sample(), torch.randperm(6)
        mixed = lam * X + (1 - lam) * X[order]
        return F.binary_cross_entropy_with_logits(model(mixed), torch.full((6,), 0.9).lerp(torch.zeros(6), float(lam)))
    run.train(model, loss_of, optimizer=torch.optim.AdamW)


# ---- tensor parallelism in one process -----------------------------------------------------------


class _Copy(torch.autograd.Function):
    @staticmethod
    def symbolic(graph, value):
        return value

    @staticmethod
    def forward(ctx, value):
        ctx.set_materialize_grads(False)
        return value

    @staticmethod
    def backward(ctx, grad):
        return grad if grad is None else grad * 2


class _Fused(torch.autograd.Function):
    """A linear layer whose gradient of the weight is added to main_grad within backward."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        ctx.use_bias = bias is not None
        return torch.matmul(x, weight.t()) + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        weight.main_grad.addmm_(grad.t(), x)
        if hasattr(weight, "grad_added_to_main_grad"):
            weight.grad_added_to_main_grad = True
            dummy = torch.zeros(weight.shape, dtype=x.dtype)
        else:
            dummy = None
        return grad.matmul(weight), dummy, grad.sum(0) if ctx.use_bias else None


@way
def megatron_linear_layers_that_add_to_main_grad(run):
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
    for i, layer in enumerate(layers):
        layer.weight.main_grad = torch.zeros(4, 4)
        if i:
            layer.weight.grad_added_to_main_grad = False

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(_Fused.apply(_Copy.apply(x), layer.weight, layer.bias))
        return x.pow(2).sum()
    model = Calls(forward, layers=layers)
    for _ in range(2):
        with run.dump(model):
            for _ in range(2):
                model(X).backward()
        run.note("main", [(p.main_grad, p.grad, getattr(p, "grad_added_to_main_grad", None)) for p in
                          (layer.weight for layer in layers)])
    run.note_model(model)


@way
def megatron_checkpoints_with_a_tracker_of_random_states(run):
    """Activations are recomputed under the random state of the forward, of which there are several by name."""
    states = {"model": torch.Generator().manual_seed(4).get_state()}

    class fork:
        def __enter__(self):
            self.kept = torch.get_rng_state()
            torch.set_rng_state(states["model"])

        def __exit__(self, *_):
            states["model"] = torch.get_rng_state()
            torch.set_rng_state(self.kept)

    class Recomputed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, func, x):
            ctx.func, ctx.states = func, (torch.get_rng_state(), states["model"])
            ctx.save_for_backward(x)
            with torch.no_grad():
                return func(x)

        @staticmethod
        def backward(ctx, grad):
            now = torch.get_rng_state(), states["model"]
            torch.set_rng_state(ctx.states[0])
            states["model"] = ctx.states[1]
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                y = ctx.func(x)
            torch.set_rng_state(now[0])
            states["model"] = now[1]
            torch.autograd.backward(y, grad)
            return None, x.grad

    def block(self, x):
        with fork():
            x = F.dropout(self.fc(x), 0.5)
        return F.dropout(torch.relu(x), 0.2)
    layers = nn.ModuleList(Calls(block, fc=nn.Linear(4, 4)) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = Recomputed.apply(layer, x)
        return x.sum()
    run.train(Calls(forward, layers=layers), lambda m, i: m(X.clone().requires_grad_()))
    run.note("states", states["model"])


@way
def outputs_whose_storage_is_freed_and_backward_by_the_engine(run):
    """deallocate_pipeline_outputs and custom_backward of Megatron."""
    model = model_of()
    for _ in range(2):
        with run.dump(model):
            out = model(X).sum(-1)
            kept, out.data = out.detach().clone(), torch.empty((1,))
            torch.autograd.Variable._execution_engine.run_backward(
                (out,), (torch.ones_like(kept),), False, False, (), allow_unreachable=True, accumulate_grad=True)
        run.note("kept", (kept, out.shape))
    run.note_model(model)


# ---- operators and quantisers ----------------------------------------------------------------------


@way(needs=(2, 4))
def operators_of_a_library_with_all_registrations(run):
    @torch.library.custom_op("harm_library::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    scaled.register_fake(lambda x, by: torch.empty_like(x))
    scaled.register_autograd(lambda ctx, grad: (scaled(grad, ctx.by), None),
                             setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))

    @torch.library.custom_op("harm_library::bump", mutates_args={"x"})
    def bump(x: torch.Tensor) -> None:
        x.add_(1)

    model = Calls(lambda self, x: scaled(self.fc(x), 2.5).relu().sum() + torch.ops.harm_library.scaled(x, 0.5).sum(),
                  fc=nn.Linear(4, 4))

    def loss_of(model, step):
        t = torch.zeros(3)
        bump(t)
        run.note("bumped", t)
        run.note("version", t._version)
        run.raises("wrong", lambda: scaled(X))
        return model(X)
    run.train(model, loss_of)
    torch.library.opcheck(scaled, (torch.randn(3), 2.0), test_utils=("test_schema", "test_faketensor"))


@way
def a_library_that_defines_and_implements_operators(run):
    library = torch.library.Library("harm_defined", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    library.define("negated(Tensor x) -> Tensor")
    library.impl("negated", lambda x: -x, "CPU")

    def forward(self, x):
        y = torch.ops.harm_defined.twice(self.fc(x))
        with torch.no_grad():
            run.note("negated", torch.ops.harm_defined.negated.default(y))
        return y.sum()
    run.train(Calls(forward, fc=nn.Linear(4, 4)), lambda m, i: m(X))


@way
def fake_quantisers_with_learned_ranges(run):
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad):
            return grad.clone()

    def forward(self, x):
        w = self.fc.weight
        q = Round.apply((w / self.step).clamp(-8, 7)) * self.step
        y = torch.fake_quantize_per_tensor_affine(F.linear(x, q, self.fc.bias), 0.1, 0, -128, 127)
        z = torch.fake_quantize_per_channel_affine(y, torch.full((4,), 0.05), torch.zeros(4, dtype=torch.int32), 1, -128, 127)
        return (y + z).pow(2).sum()
    model = Calls(forward, fc=nn.Linear(4, 4))
    model.step = nn.Parameter(torch.tensor(0.1))
    run.train(model, lambda m, i: m(X))


@way
def weights_packed_in_integers_and_unpacked_in_forward(run):
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            w = torch.randint(0, 16, (4, 4), dtype=torch.uint8)
            self.register_buffer("packed", w[:, 0::2] | w[:, 1::2] << 4)
            self.register_buffer("scale", torch.rand(4, 1))

        def forward(self, x):
            w = torch.stack((self.packed & 15, self.packed >> 4), -1).flatten(1).to(x.dtype).sub_(8).mul_(self.scale)
            return F.linear(x, w)
    model = nn.Sequential(nn.Linear(4, 4), Packed(), nn.Linear(4, 1))
    run.train(model, lambda m, i: m(X).pow(2).sum())
    kept = io.BytesIO()
    torch.save(model.state_dict(), kept)
    run.note("saved", len(kept.getvalue()))


# ---- models that are kept, copied and averaged -----------------------------------------------------


@way
def models_that_are_pickled_and_copied_between_forward_and_backward(run):
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3), nn.Linear(4, 1))
    for step in range(2):
        with run.dump(model):
            loss = model(X).sum()
            twin, again = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
            shallow = copy.copy(model)
            loss.backward()
            for name, other in (("twin", twin), ("again", again), ("shallow", shallow)):
                torch.manual_seed(step)
                other(X).pow(2).sum().backward()
                run.note(f"{name} keys", sorted(other[0].__dict__))
        for name, other in (("twin", twin), ("again", again), ("shallow", shallow)):
            run.note_model(other, name + " ")
    run.note_model(model)


@way(needs=(2, 0))
def averages_of_a_model_that_swap_places_with_it(run):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    average = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda a, p, n: 0.9 * a + 0.1 * p, use_buffers=True)

    def loss_of(model, step):
        average.update_parameters(model)
        with torch.no_grad():
            ours = {k: v.clone() for k, v in model.state_dict().items()}
            model.load_state_dict(average.module.state_dict())
            run.note("of the average", model.eval()(X))
            model.train().load_state_dict(ours)
        return model(X).pow(2).sum()
    run.train(model, loss_of)
    torch.optim.swa_utils.update_bn([X, X], average)
    run.note_model(average, "average ")


@way
def checkpoints_in_a_row_that_share_a_module(run):
    def forward(self, x):
        for _ in range(3):
            x = checkpoint(self.shared, x, use_reentrant=VERSION < (2, 0))
        x = checkpoint(lambda a, scale: self.last(a) * scale, x, 0.5, use_reentrant=False)
        return x.sum()
    model = Calls(forward, shared=nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.2), nn.Tanh()), last=nn.Linear(4, 1))
    run.train(model, lambda m, i: m(X.clone().requires_grad_()))


@way(needs=(2, 1))
def checkpoints_that_stop_early_raise_and_are_debugged(run):
    from torch.utils.checkpoint import set_checkpoint_early_stop

    class Raises(nn.Linear):
        count = 0

        def forward(self, x):
            Raises.count += 1
            if Raises.count == 3:
                raise ValueError("in the recomputation")
            return super().forward(x).relu()
    Raises.count = 0
    model = nn.Sequential(Raises(4, 4), nn.Linear(4, 4), nn.Dropout(0.1))
    for early in (True, False):
        with run.dump(model), set_checkpoint_early_stop(early):
            run.raises(f"early {early}", lambda: checkpoint(model, X.clone().requires_grad_(), use_reentrant=False,
                                                            determinism_check="none").sum().backward())
            run.raises("again", lambda: checkpoint(model, X.clone().requires_grad_(), use_reentrant=False).sum().backward())
    run.note("count", Raises.count)
    run.note_model(model)
