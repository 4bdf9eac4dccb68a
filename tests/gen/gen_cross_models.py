#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Other models than the decoder of gen_cross_pairs.py, run by two frameworks.

    python3 tests/gen/gen_cross_models.py --model unet --seed 7 --case deleted --out /tmp/pair

    gqa      a decoder whose key and value heads are repeated by one side
    moe      a decoder with experts: a loop over them on one side, grouped matmuls on the other
    resnet   convolutions, batch norm, residuals and projections of them
    lstm     cells over time steps, with one call a cell or all of its operators
    unet     convolutions, group norm, a skip over the whole, upsampling
    encdec   encoder and decoder with cross attention, layer norm, biases and gelu

Each part is written by either side in its own way, drawn by the seed.  Cases are those of
gen_cross_pairs.py that make sense for any model.
"""
import argparse
import random

import gen_cross_pairs as pairs
from gen_cross_pairs import Decoder, Value

CASES = ("plain", "bf16", "names", "values", "deleted", "unknown", "fault", "transposed")
FORMS = pairs.FORMS + ("conv", "bias", "gelu", "repeat", "experts", "cell", "pool")

pairs.TORCH_CALLS.update({
    "conv": "Functional.conv2d", "bias": "Tensor.__add__", "bn": "Functional.batch_norm", "ln": "Functional.layer_norm",
    "gn": "Functional.group_norm", "gelu": "Functional.gelu", "relu": "Functional.relu", "maxpool": "Functional.max_pool2d",
    "avgpool": "Functional.adaptive_avg_pool2d", "upsample": "Functional.interpolate", "sigmoid": "Torch.sigmoid",
    "tanh": "Torch.tanh", "erf": "Torch.erf", "sub": "Tensor.__sub__", "var": "Tensor.var", "sqrt": "Torch.sqrt",
    "over": "Tensor.__truediv__", "cell": "VF.lstm_cell", "topk": "Torch.topk", "take": "Tensor.__getitem__",
    "give": "Tensor.index_add_", "gmm": "NPU.npu_grouped_matmul", "permute": "NPU.npu_moe_token_permute",
    "unpermute": "NPU.npu_moe_token_unpermute", "repeat": "Tensor.repeat_interleave"})
pairs.MIND_CALLS.update({
    "conv": "Mint.nn.functional.conv2d", "bias": "Primitive.BiasAdd", "bn": "Functional.batch_norm",
    "ln": "Primitive.LayerNorm", "gn": "Functional.group_norm", "gelu": "MintFunctional.gelu", "relu": "Functional.relu",
    "maxpool": "Functional.max_pool2d", "avgpool": "Functional.adaptive_avg_pool2d", "upsample": "Functional.interpolate",
    "sigmoid": "Mint.sigmoid", "tanh": "Mint.tanh", "erf": "Mint.erf", "sub": "Mint.sub", "var": "Mint.var",
    "sqrt": "Mint.sqrt", "over": "Mint.div", "cell": "Functional.lstm_cell", "topk": "Mint.topk", "take": "Mint.index_select",
    "give": "Mint.index_add", "gmm": "Functional.grouped_matmul", "permute": "Functional.moe_token_permute",
    "unpermute": "Functional.moe_token_unpermute", "repeat": "Mint.repeat_interleave"})

# A module's own name and class on either side.
NAMES = {"conv": (("conv", "Conv2d"), ("conv", "Conv2dCell")), "bn": (("bn", "BatchNorm2d"), ("norm", "BatchNorm")),
         "gn": (("norm", "GroupNorm"), ("gnorm", "GroupNormCell")), "ln": (("ln", "LayerNorm"), ("layernorm", "LayerNormCell")),
         "fc": (("fc", "Linear"), ("dense", "Dense")), "block": (("block", "BasicBlock"), ("unit", "ResidualCell")),
         "skip": (("downsample", "Shortcut"), ("proj", "ShortcutCell")), "root": (("model", "Net"), ("network", "NetCell")),
         "embed": (("embed", "Embedding"), ("table", "EmbeddingCell")), "cell": (("cell", "LSTMCell"), ("rnn", "LstmUnit")),
         "attn": (("attn", "MultiheadAttention"), ("attention", "AttentionCell")), "mlp": (("mlp", "Mlp"), ("ffn", "FeedForward")),
         "down": (("down", "DownBlock"), ("enc", "DownCell")), "up": (("up", "UpBlock"), ("dec", "UpCell")),
         "mid": (("mid", "MidBlock"), ("middle", "MidCell")), "encoder": (("encoder", "EncoderLayer"), ("enc_blocks", "EncCell")),
         "decoder": (("decoder", "DecoderLayer"), ("dec_blocks", "DecCell")), "router": (("gate", "Router"), ("router", "TopKRouter")),
         "experts": (("experts", "Experts"), ("moe", "ExpertCell"))}


class Parts(Decoder):
    """What the models are made from."""

    def __init__(self, run):
        super().__init__(run)
        self.stem = [NAMES["root"][run.target][0]]

    def named(self, what, part, suffix=""):
        """A module inside of the one that is open."""
        own, cls = NAMES[what][self.r.target]
        return Named(self, own + suffix, cls, part)

    def conv(self, x, part, channels, size, stride=1, bias=True, suffix=""):
        r = self.r
        out = (x.shape[0], channels, x.shape[2] // stride, x.shape[3] // stride)
        with self.named("conv", part, suffix) as m:
            w = Value(part + ".weight", (channels, x.shape[1], size, size))
            b = Value(part + ".bias", (channels,))
            y = Value(part + ".out", out)
            params = {"weight": w, "bias": b} if bias else {"weight": w}
            if r.forms["conv"] == 0 or not bias:
                return m.done(r.one("conv", part, [x, w] + ([b] if bias else []), y), params)
            inner = r.one("conv", part, [x, w], r.private(out))
            return m.done(r.one("bias", part, [inner, b], y), params)

    def affine(self, part, shape, pieces, thin):
        """A normalization in pieces, of which the last ones scale and shift."""
        r = self.r
        x, w, b, out = pieces
        mean = r.one("mean", part, [x], r.private(thin))
        d = r.one("sub", part, [x, mean], r.private(shape))
        v = r.one("var", part, [x], r.private(thin))
        v = r.one("add", part, [v], r.private(thin))
        v = r.one("sqrt", part, [v], r.private(thin))
        d = r.one("over", part, [d, v], r.private(shape))
        d = r.one("mul", part, [d, w], r.private(shape))
        return r.one("add", part, [d, b], out)

    def normed(self, what, x, part, width, suffix=""):
        r = self.r
        with self.named(what, part, suffix) as m:
            w, b = Value(part + ".weight", (width,)), Value(part + ".bias", (width,))
            out = Value(part + ".out", x.shape)
            thin = x.shape[:-1] + (1,) if what == "ln" else (x.shape[0], x.shape[1], 1, 1)
            if r.forms["norm"] == 0:
                y = r.one(what, part, [x, w, b], out)
            else:
                y = self.affine(part, x.shape, (x, w, b, out), thin)
            return m.done(y, {"weight": w, "bias": b})

    def dense(self, x, part, width, what="fc", suffix="", group=None, key=None):
        """A projection with bias."""
        r, group = self.r, group or part
        with self.named(what, part, suffix) as m:
            w, b = Value(part + ".weight", (width, x.shape[-1])), Value(part + ".bias", (width,))
            if r.target and self.o.case == "transposed":
                w = Value(w.key, w.shape[::-1])
            shape = x.shape[:-1] + (width,)
            out = Value(key or part + ".out", shape)
            if r.forms["linear"] == 0:
                y = r.one("linear", group, [x, w, b], out)
            else:
                t = r.view("transpose", group, w, w.shape[::-1])
                y = r.one("matmul", group, [x, t], r.private(shape))
                y = r.one("bias", group, [y, b], out)
            return m.done(y, {"weight": w, "bias": b})

    def point(self, what, x, part):
        return self.r.one(what, part, [x], Value(part + ".out", x.shape))

    def gelu(self, x, part):
        r = self.r
        if r.forms["gelu"] == 0:
            return self.point("gelu", x, part)
        e = r.one("over", part, [x], r.private(x.shape))
        e = r.one("erf", part, [e], r.private(x.shape))
        e = r.one("add", part, [e], r.private(x.shape))
        return r.one("mul", part, [x, e], Value(part + ".out", x.shape))

    def plus(self, a, b, part):
        return self.r.one("add", part, [a, b], Value(part + ".out", a.shape))

    def lookup(self, part, width):
        r, o = self.r, self.o
        with self.named("embed", part, "_" + part) as m:
            w = Value(part + ".weight", (o.vocab, width))
            ids = Value(part + ".ids", (o.batch, o.length), "i")
            return m.done(r.one("lookup", part, [ids, w], Value(part + ".out", (o.batch, o.length, width))), {"weight": w})

    def root(self):
        own, cls = NAMES["root"][self.r.target]
        self.stem = []
        return Named(self, own, cls, "model")

    def judged(self, x):
        """The loss of what came out."""
        r = self.r
        labels = Value("labels", (x.shape[0],), "i")
        if r.forms["loss"] == 0:
            r.one("entropy", "loss", [x, labels], Value("loss", ()))
        else:
            x = r.one("logp", "loss", [x], r.private(x.shape))
            r.one("pick", "loss", [x, labels], Value("loss", ()))


class Named:
    """A scope whose path follows from those around it."""

    def __init__(self, model, own, cls, part):
        self.model, self.own, self.cls, self.part = model, own, cls, part

    def __enter__(self):
        self.model.stem.append(self.own)
        self.scope = self.model.r.scope(".".join(self.model.stem), self.cls, self.part)
        return self.scope.__enter__()

    def __exit__(self, *exc):
        self.model.stem.pop()
        return self.scope.__exit__(*exc)


class Resnet(Parts):
    def block(self, x, part, channels, stride):
        r = self.r
        with self.named("block", part, "." + part) as m:
            y = self.conv(r.idle(x), part + ".c1", channels, 3, stride, False, "1")
            y = self.normed("bn", y, part + ".n1", channels, "1")
            y = self.point("relu", y, part + ".r1")
            y = self.conv(r.idle(y), part + ".c2", channels, 3, 1, False, "2")
            y = self.normed("bn", y, part + ".n2", channels, "2")
            if stride > 1:
                with self.named("skip", part + ".skip") as s:
                    x = self.conv(x, part + ".cs", channels, 1, stride, False)
                    x = s.done(self.normed("bn", x, part + ".ns", channels))
            return m.done(self.point("relu", self.plus(y, x, part + ".sum"), part + ".r2"))

    def forward(self):
        r, o = self.r, self.o
        with self.root() as root:
            x = self.conv(Value("image", (o.batch, 3, 64, 64)), "stem", 16, 7, 2, False, "_stem")
            x = self.point("relu", self.normed("bn", x, "stem.n", 16, "_stem"), "stem.r")
            x = r.one("maxpool", "stem.p", [x], Value("stem.p", x.shape[:2] + (16, 16)))
            for i in range(o.layers):
                grow = i % 2 == 1 and x.shape[2] > 2
                x = self.block(x, f"b{i}", x.shape[1] * (2 if grow else 1), 2 if grow else 1)
            x = r.one("avgpool", "pool", [x], Value("pool", x.shape[:2] + (1, 1)))
            x = r.view("reshape", "flat", x, x.shape[:2])
            x = root.done(self.dense(x, "head", 100))
        self.judged(x)


class Lstm(Parts):
    def cell(self, x, h, c, part, layer):
        r, n = self.r, h.shape[-1]
        w = [Value(f"l{layer}.{k}", s) for k, s in (("wi", (4 * n, x.shape[-1])), ("wh", (4 * n, n)), ("bi", (4 * n,)), ("bh", (4 * n,)))]
        out = [Value(part + ".h", h.shape), Value(part + ".c", c.shape)]
        wide = h.shape[:-1] + (4 * n,)
        with self.named("cell", part, f".{layer}") as m:
            if r.forms["cell"] == 0:
                hh, cc = r.call("cell", part, [x, h, c] + w, out)
            else:
                a = r.one("linear", part, [x, w[0], w[2]], r.private(wide))
                b = r.one("linear", part, [h, w[1], w[3]], r.private(wide))
                g = r.one("add", part, [a, b], r.private(wide))
                i, f, z, q = r.call("split", part, [g], [r.private(h.shape) for _ in range(4)])
                i, f, q = (r.one("sigmoid", part, [v], r.private(h.shape)) for v in (i, f, q))
                z = r.one("tanh", part, [z], r.private(h.shape))
                f = r.one("mul", part, [f, c], r.private(h.shape))
                i = r.one("mul", part, [i, z], r.private(h.shape))
                cc = r.one("add", part, [f, i], out[1])
                t = r.one("tanh", part, [cc], r.private(h.shape))
                hh = r.one("mul", part, [q, t], out[0])
            m.done(hh, dict(zip(("wi", "wh", "bi", "bh"), w)))
        return hh, cc

    def forward(self):
        r, o, n = self.r, self.o, 96
        with self.root() as root:
            seq = self.lookup("embed", n)
            state = [(Value(f"h0.{i}", (o.batch, n)), Value(f"c0.{i}", (o.batch, n))) for i in range(2)]
            for t in range(3 * o.layers):
                x = r.one("take", f"t{t}.in", [seq], Value(f"t{t}.in", (o.batch, n)))
                for i in range(2):
                    state[i] = self.cell(x, *state[i], f"t{t}.l{i}", i)
                    x = r.idle(state[i][0])
            x = root.done(self.dense(x, "head", o.vocab))
        self.judged(x)


class Unet(Parts):
    def double(self, x, part, channels):
        for k in "12":
            x = self.conv(self.r.idle(x), f"{part}.c{k}", channels, 3, 1, True, k)
            x = self.normed("gn", x, f"{part}.g{k}", channels, k)
            x = self.point("silu", x, f"{part}.s{k}")
        return x

    def forward(self):
        r, o, kept = self.r, self.o, []
        depth = min(o.layers, 4)
        with self.root() as root:
            x = Value("image", (o.batch, 4, 64, 64))
            for i in range(depth):
                with self.named("down", f"d{i}", f".{i}") as m:
                    x = self.double(x, f"d{i}", 16 << i)
                    kept.append(x)
                    x = m.done(self.conv(x, f"d{i}.half", 16 << i, 3, 2, True, "_down"))
            with self.named("mid", "mid") as m:
                x = m.done(self.double(x, "mid", 16 << depth))
            for i in reversed(range(depth)):
                with self.named("up", f"u{i}", f".{i}") as m:
                    x = r.one("upsample", f"u{i}.up", [x], Value(f"u{i}.up", x.shape[:2] + (2 * x.shape[2], 2 * x.shape[3])))
                    x = self.conv(x, f"u{i}.cup", 16 << i, 3, 1, True, "_up")
                    x = r.one("cat", f"u{i}.cat", [kept[i], x], Value(f"u{i}.cat", (x.shape[0], 32 << i) + x.shape[2:]))
                    x = m.done(self.double(x, f"u{i}", 16 << i))
            x = root.done(self.conv(x, "head", 4, 1, 1, True, "_out"))
        r.one("mean", "loss", [x], Value("loss", ()))


class Encdec(Parts):
    def attention(self, x, memory, part):
        r, n = self.r, self.width
        with self.named("attn", part, part[-2:]) as m:
            if r.forms["qkv"] == 0 and memory is x:
                y = self.dense(r.idle(x), part + ".qkv", 3 * n, suffix="_qkv", group=part + ".qkv")
                q, k, v = r.call("split", part + ".qkv", [y], [Value(f"{part}.{c}", x.shape) for c in "qkv"])
            elif r.forms["qkv"] == 0:
                q = self.dense(r.idle(x), part + ".q", n, suffix="_q", group=part + ".pq", key=part + ".q")
                y = self.dense(memory, part + ".kv", 2 * n, suffix="_kv", group=part + ".pkv")
                k, v = r.call("split", part + ".pkv", [y], [Value(f"{part}.{c}", x.shape) for c in "kv"])
            else:
                self_one = memory is x
                q, k, v = (self.dense(s, f"{part}.{c}", n, suffix=f"_{c}", key=f"{part}.{c}",
                                      group=part + (".qkv" if self_one else ".pq" if c == "q" else ".pkv"))
                           for c, s in (("q", r.idle(x)), ("k", memory), ("v", memory)))
            c = self.core(part + ".core", q, k, v, part + ".ctx", ".".join(self.stem))
            return m.done(self.dense(r.idle(c), part + ".out", n, suffix="_o"))

    def feed_forward(self, x, part):
        with self.named("mlp", part) as m:
            y = self.gelu(self.dense(self.r.idle(x), part + ".up", 4 * self.width, suffix="1"), part + ".gelu")
            return m.done(self.dense(y, part + ".down", self.width, suffix="2"))

    def stack(self, what, x, memory, number):
        part = f"{what[0]}{number}"
        with self.named(what, part, f".{number}") as m:
            n = self.normed("ln", x, part + ".n1", self.width, "1")
            x = self.plus(x, self.attention(n, n, part + ".sa"), part + ".r1")
            if memory is not None:
                n = self.normed("ln", x, part + ".n2", self.width, "2")
                x = self.plus(x, self.attention(n, memory, part + ".ca"), part + ".r2")
            n = self.normed("ln", x, part + ".n3", self.width, "3")
            return m.done(self.plus(x, self.feed_forward(n, part + ".ff"), part + ".r3"))

    def forward(self):
        with self.root() as root:
            x = self.lookup("source", self.width)
            for i in range(self.o.layers):
                x = self.stack("encoder", x, None, i)
            memory = self.normed("ln", x, "memory", self.width, "_enc")
            x = self.lookup("aim", self.width)
            for i in range(self.o.layers):
                x = self.stack("decoder", x, memory, i)
            x = self.normed("ln", x, "final", self.width, "_dec")
            x = root.done(self.dense(x, "head", self.o.vocab))
        self.judged(x)


class Gqa(Decoder):
    """Key and value heads repeated before attention, by one side."""

    def core(self, group, q, k, v, out_key, path):
        if self.r.forms["repeat"]:
            k, v = (self.r.one("repeat", group, [x], self.r.private(q.shape)) for x in (k, v))
        return super().core(group, q, k, v, out_key, path)

    def forward(self):
        return super().forward(0, self.o.layers, True)


class Moe(Gqa):
    experts = 4

    def feed(self, path, L, x):
        """The routed experts; what comes behind them is the shared projection of Decoder."""
        r, o, f = self.r, self.o, self.o.wide
        own, cls = NAMES["router"][r.target]
        with r.scope(self.path(path, own), cls, L + ".router") as m:
            w = Value(L + ".router.weight", (self.experts, self.width))
            logits = r.one("linear", L + ".router", [x, w], Value(L + ".logits", x.shape[:-1] + (self.experts,)))
            p = m.done(r.one("softmax", L + ".prob", [logits], Value(L + ".prob", logits.shape)), {"weight": w})
        few = x.shape[:-1] + (2,)
        top, which = r.call("topk", L + ".topk", [p], [Value(L + ".top", few), Value(L + ".which", few, "i")])
        own, cls = NAMES["experts"][r.target]
        out = Value(L + ".act", x.shape[:-1] + (f,))
        fused = [form["experts"] == 0 for form in o.forms]
        with r.scope(self.path(path, own), cls, L + ".experts") as m:
            if fused[r.target]:
                return m.done(*self.grouped(L, x, which, out))
            return m.done(self.loop(path, own, L, x, top, which, out, any(fused)))

    def grouped(self, L, x, which, out):
        r, f, n = self.r, self.o.wide, x.shape[0] * x.shape[1] * 2
        w = Value(L + ".experts.weight", (self.experts, self.width, f))
        y = r.one("permute", L + ".experts", [x, which], r.private((n, self.width)))
        y = r.one("gmm", L + ".experts", [y, w], r.private((n, f)))
        y = r.one("silu", L + ".experts", [y], r.private((n, f)))
        return r.one("unpermute", L + ".experts", [y, which], out), {"weight": w}

    def loop(self, path, own, L, x, top, which, out, other_fused):
        r, f, y = self.r, self.o.wide, None
        for e in range(self.experts):
            group = L + ".experts" if other_fused else f"{L}.e{e}"
            tokens = (29 + 7 * e, self.width)
            last = e == self.experts - 1
            with r.scope(self.path(path, own, str(e)), "Linear" if not r.target else "Dense", f"{L}.e{e}") as m:
                w = Value(f"{L}.e{e}.weight", (f, self.width))
                t = r.one("take", group, [x, which], Value(f"{L}.e{e}.x", tokens))
                z = r.one("linear", group + ("" if other_fused else ".w"), [t, w], Value(f"{L}.e{e}.y", (tokens[0], f)))
                z = m.done(r.one("silu", group + ("" if other_fused else ".s"), [z], Value(f"{L}.e{e}.s", z.shape)), {"weight": w})
            z = r.one("mul", group + ("" if other_fused else ".p"), [z, top], Value(f"{L}.e{e}.p", z.shape))
            y = r.one("give", group + ("" if other_fused else ".g"), [z] + ([y] if y is not None else []),
                      out if last else Value(f"{L}.e{e}.sum", out.shape))
        return y


MODELS = {"gqa": Gqa, "moe": Moe, "resnet": Resnet, "lstm": Lstm, "unet": Unet, "encdec": Encdec}


def spread(opts, names, forms):
    """Everything behind a place of the golden run, where there is a fault."""
    if opts.case != "fault":
        return set()
    run = pairs.Run(opts, False, names, forms, random.Random(0))
    MODELS[opts.model](run).forward()
    made = [v.key for _, _, _, outs, _, _ in run.tape for v in outs]
    return set(made[random.Random(opts.seed).randrange(len(made) // 2):])


def make(opts):
    rng = random.Random(f"{opts.model}/{opts.seed}/{opts.case}")
    forms = [{f: rng.randrange(2) for f in FORMS} for _ in range(2)]
    for f in FORMS:
        if rng.random() < 0.7:
            forms[1][f] = 1 - forms[0][f]
    for side in forms:
        side["act"] |= side["mlp"]
    opts.forms = forms
    opts.layers = opts.layers or rng.randint(2, 5)
    opts.noise = 4e-3 if opts.case == "bf16" else 10 ** rng.uniform(-6, -3)
    opts.drop = 0.05 if opts.case == "deleted" else 0
    names = [(pairs.MIND_NAMES if t else pairs.TORCH_NAMES)[rng.randrange(2)] for t in (False, True)]
    opts.off = set()
    opts.off = spread(opts, names[0], forms[0])
    runs = [pairs.Run(opts, t, names[t], forms[t], random.Random(rng.random())) for t in (False, True)]
    for r in runs:
        MODELS[opts.model](r).forward()
        if opts.backward:
            pairs.backward(r)
    return runs


def options(seed, case, out, model):
    opts = pairs.options(seed, case, out)
    opts.model = model
    return opts


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", choices=MODELS, required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--case", choices=CASES, default="plain")
    p.add_argument("--out", required=True)
    args = p.parse_args()
    opts = options(args.seed, args.case, args.out, args.model)
    pairs.write(opts, make(opts))


if __name__ == "__main__":
    main()
