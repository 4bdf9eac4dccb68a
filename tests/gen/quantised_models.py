# SPDX-License-Identifier: MIT
"""Models in floats and quantised, with and without a planted fault, recorded as dumps.

Two halves of families: thresholds were set with the first and are reported with the second.  The
quantisers are written here with plain torch operations, apart from those of torch.ao.
"""
import json
import os
import shutil
import sys
import zlib

import torch
from torch import nn
from torch.nn import functional as F

# ---- quantisers ------------------------------------------------------------------------------

SMALL = {"e2m1": (2, 1), "e2m3": (2, 3), "e3m2": (3, 2)}
FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
INTEGERS = {"int8": 127, "int4": 7}
MOST = {"e2m1": 6.0, "e2m3": 7.5, "e3m2": 28.0, "e4m3": 448.0, "e5m2": 57344.0, **INTEGERS}


def table(number):
    e_bits, m_bits = SMALL[number]
    bias = (1 << (e_bits - 1)) - 1
    values = []
    for code in range(1 << (e_bits + m_bits)):
        e, m = code >> m_bits, code & ((1 << m_bits) - 1)
        values.append(m * 2.0 ** (1 - bias - m_bits) if e == 0 else (1 + m / (1 << m_bits)) * 2.0 ** (e - bias))
    return torch.tensor(values)


def nearest(x, number):
    """Rounds to nearest; ties to even."""
    if number in INTEGERS:
        return x.round().clamp(-INTEGERS[number] - 1, INTEGERS[number])
    if number in FP8:
        return x.clamp(-MOST[number], MOST[number]).to(FP8[number]).float()
    values = table(number)
    a = x.abs().clamp(max=values[-1].item())
    above = torch.searchsorted(values, a.contiguous()).clamp(1, len(values) - 1)
    low, high = values[above - 1], values[above]
    up = (a - low > high - a) | ((a - low == high - a) & (above % 2 == 0))
    return torch.where(up, high, low) * x.sign()


def towards_zero(x, number):
    if number in INTEGERS:
        return x.trunc().clamp(-INTEGERS[number] - 1, INTEGERS[number])
    if number in FP8:
        r = x.abs().clamp(max=MOST[number]).to(FP8[number])
        codes = r.view(torch.uint8) - (r.float() > x.abs()).to(torch.uint8)
        return codes.view(FP8[number]).float() * x.sign()
    values = table(number)
    at = torch.searchsorted(values, x.abs().contiguous(), right=True) - 1
    return values[at] * x.sign()


def down(x, number):
    return x.floor().clamp(-INTEGERS[number] - 1, INTEGERS[number])


def up(x, number):
    return x.ceil().clamp(-INTEGERS[number] - 1, INTEGERS[number])


def spread(x, layout):
    """Returns for x of two dimensions the largest magnitude of each group, at every element."""
    rows, cols = x.shape
    kind, n = layout
    a = x.abs()
    if kind == "tensor":
        return a.max().expand(rows, cols)
    if kind == "row":
        return a.amax(1, keepdim=True).expand(rows, cols)
    if kind == "column":
        return a.amax(0, keepdim=True).expand(rows, cols)
    if kind == "stack":
        return spread(x.t(), ("block", n)).t()
    if kind == "tile":
        out = torch.empty_like(x)
        for i in range(0, rows, n):
            for k in range(0, cols, n):
                out[i:i + n, k:k + n] = a[i:i + n, k:k + n].max()
        return out
    pad = -cols % n
    groups = F.pad(a, (0, pad)).reshape(rows, -1, n).amax(-1, keepdim=True)
    return groups.expand(rows, (cols + pad) // n, n).reshape(rows, cols + pad)[:, :cols]


class Quantiser:
    """How a tensor is quantised and dequantised.  Faults change one step of it."""

    def __init__(self, number, layout=("tensor", 0), powers=None, nested=False, zero=False, static=None,
                 quantile=None):
        self.number, self.layout, self.powers, self.nested, self.zero = number, layout, powers, nested, zero
        self.static, self.quantile = static, quantile  # a fixed range; a share that the range holds
        self.round = nearest
        self.fault = None

    def with_fault(self, fault):
        other = Quantiser(self.number, self.layout, self.powers, self.nested, self.zero, self.static, self.quantile)
        other.fault = fault
        return other

    def scales(self, x, layout):
        most = spread(x, layout)
        if self.quantile:
            most = most.clamp(max=0) + x.abs().flatten().quantile(self.quantile)
        if self.static:
            most = torch.full_like(x, self.static)
        if self.powers:
            target = {"e2m1": 2, "e2m3": 2, "e3m2": 4, "e4m3": 8, "e5m2": 15}[self.number]
            step = torch.ceil if self.powers == "ceil" else torch.floor
            exponent = step(torch.log2((most / MOST[self.number]).double())) if self.powers == "ceil" else \
                step(torch.log2(most.double())) - target
            return torch.where(most > 0, 2.0 ** exponent, torch.ones_like(exponent)).float()
        scale = most / MOST[self.number]
        if self.nested:
            whole = x.abs().max() / (448 * MOST[self.number])
            scale = (scale / whole).clamp(min=2.0 ** -6, max=448).to(torch.float8_e4m3fn).float() * whole
        return scale.clamp(min=1e-30)

    def __call__(self, x):
        shape = x.shape
        flat = x.detach().float().reshape(shape[0], -1) if self.is_weight(x) else \
            x.detach().float().reshape(-1, shape[-1])
        out = self.affine(flat) if self.zero else self.symmetric(flat)
        return out.reshape(shape).to(x.dtype)

    weight = False

    def is_weight(self, x):
        return self.weight

    def affine(self, x):
        low = self.spread_low(x)
        high = self.spread_low(-x).neg()
        scale = ((high - low) / 255).clamp(min=1e-30)
        zero = (-128 - (low / scale).round()).clamp(-128, 127)
        rounding = self.fault["round"] if self.fault and "round" in self.fault else torch.round
        factor = self.fault.get("factor", 1.0) if self.fault else 1.0
        scale = scale * factor
        codes = ((rounding(x / scale, self.number) if rounding is not torch.round else torch.round(x / scale)) +
                 zero).clamp(-128, 127)
        return codes * scale if self.fault and self.fault.get("drop") else (codes - zero) * scale

    def spread_low(self, x):
        if self.static:
            return torch.full_like(x, -self.static)
        if self.layout[0] == "row":
            return x.amin(1, keepdim=True).clamp(max=0).expand_as(x)
        return x.min().clamp(max=0).expand_as(x)

    def symmetric(self, x):
        f = self.fault or {}
        layout = f.get("layout", self.layout)
        if "quantile" in f:
            self.quantile, self.static = f["quantile"], None
        encode = self.scales(x, layout) * f.get("factor", 1.0)
        decode = encode
        if "decode" in f:
            decode = f["decode"](encode, x)
        if f.get("twice"):
            decode = encode * encode
        if f.get("raw"):
            decode = torch.ones_like(encode)
        return f.get("round", self.round)(x / encode, self.number) * decode


def weight_of(q):
    if q is not None:
        q.weight = True
    return q


def schemes():
    """name -> (weights, inputs): makers of quantisers."""
    return {
        "int8_tensor": (lambda: Quantiser("int8", ("row", 0)), lambda: Quantiser("int8")),
        "int8_token": (lambda: Quantiser("int8", ("row", 0)), lambda: Quantiser("int8", ("row", 0))),
        "uint8": (lambda: Quantiser("int8", ("row", 0)), lambda: Quantiser("int8", zero=True)),
        "uint8_weights": (lambda: Quantiser("int8", ("row", 0), zero=True), lambda: None),
        "int4": (lambda: Quantiser("int4", ("block", 32)), lambda: None),
        "fp8": (lambda: Quantiser("e4m3"), lambda: Quantiser("e4m3")),
        "fp8_row": (lambda: Quantiser("e4m3", ("row", 0)), lambda: Quantiser("e4m3", ("row", 0))),
        "fp8_e5m2": (lambda: Quantiser("e5m2", ("row", 0)), lambda: Quantiser("e5m2")),
        "mxfp8": (lambda: Quantiser("e4m3", ("block", 32), powers="floor"),) * 2,
        "mxfp6": (lambda: Quantiser("e2m3", ("block", 32), powers="floor"),) * 2,
        "mxfp6_e3m2": (lambda: Quantiser("e3m2", ("block", 32), powers="ceil"),) * 2,
        "mxfp4": (lambda: Quantiser("e2m1", ("block", 32), powers="floor"),) * 2,
        "nvfp4": (lambda: Quantiser("e2m1", ("block", 16), nested=True),) * 2,
        # Its range is that of another batch; see calibrate().
        "int8_static": (lambda: Quantiser("int8", ("row", 0)), lambda: Quantiser("int8", static=1.0)),
        "int8_percentile": (lambda: Quantiser("int8", ("row", 0)), lambda: Quantiser("int8", quantile=0.9999)),
    }


# ---- faults ---------------------------------------------------------------------------------


def expanded(n):
    """Scales of blocks, spread as if blocks had another size."""
    def decode(scale, x):
        blocks = scale[:, ::2 * n]
        wide = blocks.repeat_interleave(n, 1)
        return torch.cat([wide, wide], 1)[:, :x.shape[1]].contiguous()
    return decode


def faults(scheme, square):
    """name of the fault -> list of (role, change), as far as the scheme can have it."""
    w = schemes()[scheme][0]()
    out = {}

    def add(name, role, **change):
        out.setdefault(name, []).append((role, change))
    number, (kind, n) = w.number, w.layout
    inputs = schemes()[scheme][1]() is not None
    if kind == "row" and not w.zero:
        add("wrong_axis", "weight", layout=("column", 0))
        if square:
            add("wrong_axis", "weight", decode=lambda s, x: s.t().contiguous())
    if kind == "block" and number != "e4m3":
        add("wrong_axis", "weight", layout=("stack", n))
        add("wrong_block", "weight", layout=("block", 2 * n))
        add("wrong_block", "weight", layout=("block", n // 2))
        add("wrong_block", "weight", decode=expanded(n // 2))
    if number not in FP8:
        add("stale_scale", "weight", factor=0.25)
    if number in ("int8", "e2m1"):
        add("stale_scale", "weight", factor=4.0)
    if inputs and schemes()[scheme][1]().number in ("int8", "e2m1", "e2m3"):
        add("stale_scale", "input", factor=0.25)
    if inputs and schemes()[scheme][1]().number == "int8" and not schemes()[scheme][1]().zero:
        add("saturated_outliers", "input", quantile=0.995)
        add("saturated_outliers", "input", quantile=0.99)
    if w.zero:
        add("zero_point", "weight", drop=True)
    if inputs and schemes()[scheme][1]().zero:
        add("zero_point", "input", drop=True)
    if not w.zero and not w.powers:
        add("dequantised_twice", "weight", twice=True)
        if inputs and not schemes()[scheme][1]().zero:
            add("dequantised_twice", "input", twice=True)
    if number in INTEGERS and not w.zero:
        add("wrong_rounding", "weight", round=down)
        add("wrong_rounding", "weight", round=up)
    if not w.zero:
        add("wrong_rounding", "weight", round=towards_zero)
    if inputs and not schemes()[scheme][1]().zero:
        add("wrong_rounding", "input", round=towards_zero)
    return out


# ---- layers that quantise --------------------------------------------------------------------


class Quantises:
    """What a quantising layer multiplies."""

    def operands(self, x):
        weight, quantise = getattr(self, "quantise_weight", None), getattr(self, "quantise_input", None)
        return x if quantise is None else quantise(x), self.weight if weight is None else weight(self.weight)


class QuantLinear(Quantises, nn.Linear):
    def forward(self, x):
        return F.linear(*self.operands(x), self.bias)


class QuantConv2d(Quantises, nn.Conv2d):
    def forward(self, x):
        return self._conv_forward(*self.operands(x), self.bias)


class QuantConv1d(Quantises, nn.Conv1d):
    def forward(self, x):
        return self._conv_forward(*self.operands(x), self.bias)


class FakeQuantize(nn.Module):
    """The quantiser as a module of its own, as torch.ao has it."""

    def __init__(self, quantiser):
        super().__init__()
        self.quantiser = quantiser

    def forward(self, x):
        return self.quantiser(x)


KINDS = {nn.Linear: QuantLinear, nn.Conv2d: QuantConv2d, nn.Conv1d: QuantConv1d}


def layers_of(model):
    return [(n, m) for n, m in model.named_modules() if type(m) in KINDS or type(m) in KINDS.values()]


def quantise(model, scheme, style, ranges=None):
    """Exchanges all layers for quantising ones.  style: inline, modules, or stored (weights alone, replaced)."""
    weights, inputs = schemes()[scheme]
    for name, layer in layers_of(model):
        w, x = weight_of(weights()), inputs()
        if x is not None and x.static:
            x.static = ranges[name] if ranges else 6.0
        if not isinstance(layer, nn.Linear):
            x = Quantiser("int8") if x is not None and x.number in INTEGERS else None
        layer.__class__ = KINDS[type(layer)]
        set_quantisers(layer, w, x, style)
    return model


def calibrate(model, half, family, dtype):
    """Returns the range for each layer's input: the largest over eight other batches, and a tenth more."""
    largest, handles = {}, []
    for name, layer in layers_of(model):
        def note(_, inputs, name=name):
            largest[name] = max(largest.get(name, 0.0), inputs[0].abs().max().item())
        handles.append(layer.register_forward_pre_hook(note))
    torch.manual_seed(77)
    for _ in range(8):
        x = FAMILIES[half][family][1]()
        model(x.to(dtype) if x.is_floating_point() else x)
    for handle in handles:
        handle.remove()
    return {name: 1.1 * v for name, v in largest.items()}


def set_quantisers(layer, w, x, style):
    if style == "modules":
        layer.weight_fake_quant = FakeQuantize(w)
        layer.quantise_weight = layer.weight_fake_quant
        if x is not None:
            layer.input_fake_quant = FakeQuantize(x)
            layer.quantise_input = layer.input_fake_quant
    elif style == "stored":
        with torch.no_grad():
            layer.weight.copy_(w(layer.weight))
    else:
        layer.quantise_weight, layer.quantise_input = w, x


def plant(model, name, role, change, style):
    """Gives one layer a fault."""
    layer = dict(model.named_modules())[name]
    own = {"inline": lambda a: getattr(layer, a),
           "modules": lambda a: getattr(layer, a).quantiser}
    attribute = "quantise_weight" if role == "weight" else "quantise_input"
    if style == "stored":
        raise ValueError("plant before the weights are replaced")
    quantiser = own[style](attribute)
    other = quantiser.with_fault(change)
    other.weight = quantiser.weight
    if style == "modules":
        getattr(layer, attribute).quantiser = other
    else:
        setattr(layer, attribute, other)


# ---- families ------------------------------------------------------------------------------------


class Mlp(nn.Module):
    def __init__(self, width=96, depth=4):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.head = nn.Linear(width, 32)

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x))
        return self.head(x)


class Attention(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        if fused:
            self.qkv = nn.Linear(width, 3 * width)
        else:
            self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).chunk(3, -1) if self.fused else (self.q(x), self.k(x), self.v(x))
        q, k, v = (y.reshape(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        scores = torch.matmul(q, k.transpose(-1, -2)) / (c // self.heads) ** 0.5
        y = torch.matmul(torch.softmax(scores, -1), v)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width, heads, fused, hidden):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, fused)
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, width=64, depth=3, fused=True):
        super().__init__()
        self.embed = nn.Embedding(50, width)
        self.blocks = nn.ModuleList([Block(width, 4, fused, 4 * width) for _ in range(depth)])
        self.head = nn.Linear(width, 64, bias=False)

    def forward(self, x):
        h = self.embed(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h)


class Outliers(nn.Module):
    """Channels that are much larger than others, as large language models have."""

    def __init__(self, width=96):
        super().__init__()
        scale = torch.ones(width)
        scale[::24] = 25
        self.scale = nn.Parameter(scale)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x * self.scale))
        return x


class Cnn(nn.Module):
    def __init__(self, depthwise=False):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 32, 3, padding=1, groups=32 if depthwise else 1)
        self.conv3 = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.fc = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 32)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.conv3(x))
        return self.fc2(F.relu(self.fc(x.mean((2, 3)))))


class Experts(nn.Module):
    def __init__(self, width=64, n=4):
        super().__init__()
        self.gate = nn.Linear(width, n)
        self.up = nn.ModuleList([nn.Linear(width, 2 * width) for _ in range(n)])
        self.down = nn.ModuleList([nn.Linear(2 * width, width) for _ in range(n)])

    def forward(self, x):
        weight = torch.softmax(self.gate(x), -1)
        return sum(weight[..., i:i + 1] * self.down[i](F.silu(self.up[i](x))) for i in range(len(self.up)))


class Wave(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(32, 32, 3, padding=2 ** i, dilation=2 ** i) for i in range(3)])
        self.out = nn.Linear(32, 32)

    def forward(self, x):
        for conv in self.convs:
            x = x + torch.tanh(conv(x))
        return self.out(x.mean(-1))


class Residual(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.a = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(depth)])
        self.b = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(depth)])
        self.norm = nn.ModuleList([nn.BatchNorm2d(width) for _ in range(depth)])
        self.fc = nn.Linear(width, 32)

    def forward(self, x):
        x = self.stem(x)
        for a, b, norm in zip(self.a, self.b, self.norm):
            x = F.relu(x + norm(b(F.relu(a(x)))))
        return self.fc(x.mean((2, 3)))


class Mixer(nn.Module):
    def __init__(self, width=64, tokens=32, depth=2):
        super().__init__()
        self.tokens = nn.ModuleList([nn.Linear(tokens, tokens) for _ in range(depth)])
        self.channels = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        for t, c in zip(self.tokens, self.channels):
            x = x + t(self.norm(x).transpose(1, 2)).transpose(1, 2)
            x = x + F.gelu(c(self.norm(x)))
        return x


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32))
        self.dec = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 128))

    def forward(self, x):
        return self.dec(self.enc(x))


class Gated(nn.Module):
    """Llama's feed-forward, with RMSNorm and weights that have trained tails."""

    def __init__(self, width=64, depth=3):
        super().__init__()
        self.gate = nn.ModuleList([nn.Linear(width, 160, bias=False) for _ in range(depth)])
        self.up = nn.ModuleList([nn.Linear(width, 160, bias=False) for _ in range(depth)])
        self.down = nn.ModuleList([nn.Linear(160, width, bias=False) for _ in range(depth)])
        for p in self.parameters():
            with torch.no_grad():
                p.copy_(torch.distributions.StudentT(4.0).sample(p.shape) * 0.05)

    def forward(self, x):
        for g, u, d in zip(self.gate, self.up, self.down):
            h = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            x = x + d(F.silu(g(h)) * u(h))
        return x


def normal_weights(model):
    """Weights as training leaves them: no longer uniform, each row with a size of its own."""
    with torch.no_grad():
        for _, layer in layers_of(model):
            w = layer.weight
            size = w.std() * torch.exp(0.4 * torch.randn(w.shape[0], *[1] * (w.dim() - 1)))
            w.copy_(torch.randn_like(w) * size)
    return model


def text(n=2, t=32):
    return torch.randint(0, 50, (n, t))


FAMILIES = {
    "first": {
        "mlp": (Mlp, lambda: torch.randn(64, 96)),
        "gpt": (Gpt, text),
        "cnn": (Cnn, lambda: torch.randn(4, 3, 16, 16)),
        "experts": (Experts, lambda: torch.randn(4, 16, 64)),
        "outliers": (Outliers, lambda: torch.randn(64, 96)),
        "wave": (Wave, lambda: torch.randn(4, 32, 64)),
    },
    "second": {
        "encoder": (lambda: Gpt(96, 2, fused=False), lambda: text(3, 24)),
        "residual": (Residual, lambda: torch.randn(4, 3, 12, 12)),
        "mixer": (Mixer, lambda: torch.randn(4, 32, 64)),
        "autoencoder": (Autoencoder, lambda: torch.randn(96, 128)),
        "depthwise": (lambda: Cnn(depthwise=True), lambda: torch.randn(4, 3, 16, 16)),
        "gated": (Gated, lambda: torch.randn(4, 20, 64)),
    },
}


def build(half, family, dtype=torch.float32):
    torch.manual_seed(zlib.crc32(family.encode()))
    make, batch = FAMILIES[half][family]
    model = make()
    if family not in ("autoencoder", "gated", "wave"):
        model = normal_weights(model)
    x = batch()
    if x.is_floating_point():
        x = x.to(dtype)
    return model.eval().to(dtype), x


# ---- torch.ao ------------------------------------------------------------------------------------


def torch_ao(model, x, engine="fbgemm"):
    """Fake-quantised by torch.ao, as before training with it."""
    from torch.ao.quantization import get_default_qat_qconfig, prepare_qat
    model.train()
    model.qconfig = get_default_qat_qconfig(engine)
    model = prepare_qat(model)
    for _ in range(2):
        model(x)
    model.apply(torch.ao.quantization.disable_observer)
    return model.eval()


# ---- recording ---------------------------------------------------------------------------------------


def record(model, x, folder, dtype="tensor"):
    from msprobe.pytorch import PrecisionDebugger
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    config = os.path.join(folder, "config.json")
    with open(config, "w", encoding="utf-8") as f:
        json.dump({"task": dtype, "dump_path": os.path.join(folder, "out"), "level": "mix", "rank": [], "step": [],
                   "tensor": {"scope": [], "list": [], "data_mode": ["forward"]}}, f)
    debugger = PrecisionDebugger(config_path=config)
    debugger.start(model)
    with torch.no_grad():
        model(x)
    debugger.stop()
    debugger.step()


class NoEffect(Exception):
    """A planted change that makes no error larger, such as a dropped zero point that is 0."""


def record_apart(make, folder):
    """Records in a child process what make() returns, a model and its batch."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            sink = os.open(folder + ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            torch.set_num_threads(1)
            model, x = make()
            record(model, x, folder)
            os._exit(0)
        except NoEffect:
            open(folder + ".harmless", "w", encoding="utf-8").close()
            os._exit(1)
        except BaseException:  # the parent reads the log
            import traceback
            traceback.print_exc()
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0
