#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes pairs of dumps of one decoder model as two frameworks would run it.

    python3 tests/gen/gen_cross_pairs.py --seed 7 --case deleted --out /tmp/pair

golden/ is a PyTorch run, target/ a MindSpore run: other module names, other
nesting, other operators.  truth.json tells which entries compute the same thing.
Unlike measured dumps the numbers are drawn, but they behave as measured ones do:
a value has the same statistics wherever it appears, views keep them, and the
target's differ by the noise of bf16.

A case takes something away or cuts the model differently:

    plain       nothing
    bf16        noise of 4e-3 on every target value
    names       module, class and operator names are erased
    values      the target's values have nothing to do with the golden ones
    deleted     5 % of the target's ops were not recorded
    unknown     operators have names that no table knows
    recompute   the target computes every layer again for backward
    unsaid      the same, and the dump does not say which calls are repetitions
    shards      the target is one of four tensor-parallel ranks
    layers      the target has fewer layers
    stages      the target is the second of two pipeline stages, counted from 0
    offset      the same, 8 layers in front of it
    fault       30 % off from somewhere on
    transposed  the target stores its weights transposed
"""
import argparse
import hashlib
import json
import math
import os
import random

CASES = ("plain", "bf16", "names", "values", "deleted", "unknown", "recompute", "unsaid", "shards", "layers",
         "stages", "offset", "fault", "transposed")

# What each framework calls an operator: class of the call, name.
TORCH_CALLS = {
    "linear": "Functional.linear", "matmul": "Torch.matmul", "bmm": "Torch.bmm", "add": "Tensor.__add__",
    "mul": "Tensor.__mul__", "scale": "Tensor.__truediv__", "pow": "Tensor.pow", "mean": "Tensor.mean",
    "rsqrt": "Torch.rsqrt", "rms": "NPU.npu_rms_norm", "rotate": "NPU.npu_rotary_mul", "cat": "Torch.cat",
    "neg": "Tensor.__neg__", "attention": "Functional.scaled_dot_product_attention",
    "softmax": "Functional.softmax", "fill": "Tensor.masked_fill", "silu": "Functional.silu",
    "swiglu": "NPU.npu_swiglu", "split": "Torch.split", "lookup": "Functional.embedding",
    "entropy": "Functional.cross_entropy", "logp": "Functional.log_softmax", "pick": "Functional.nll_loss",
    "cast": "Tensor.to", "reshape": "Tensor.view", "transpose": "Tensor.transpose",
    "reduce": "Distributed.all_reduce", "dropout": "Functional.dropout",
}
MIND_CALLS = {
    "linear": "Functional.dense", "matmul": "Mint.matmul", "bmm": "Primitive.BatchMatMul", "add": "Mint.add",
    "mul": "Tensor.__mul__", "scale": "Mint.div", "pow": "Mint.square", "mean": "Mint.mean",
    "rsqrt": "Functional.rsqrt", "rms": "Primitive.norm.RmsNorm", "rotate": "Functional.rotary_position_embedding",
    "cat": "Mint.cat", "neg": "Mint.neg", "attention": "Functional.flash_attention_score",
    "softmax": "MintFunctional.softmax", "fill": "Functional.masked_fill", "silu": "MintFunctional.silu",
    "swiglu": "Functional.swiglu", "split": "Mint.split", "lookup": "Primitive.Gather",
    "entropy": "Functional.cross_entropy", "logp": "Functional.log_softmax", "pick": "Functional.nll_loss",
    "cast": "Functional.cast", "reshape": "Mint.reshape", "transpose": "Mint.transpose",
    "reduce": "Distributed.all_reduce", "dropout": "MintFunctional.dropout",
}

TORCH_NAMES = (
    {"root": "module", "Root": "GPTModel", "embed": "embedding.word", "Embed": "VocabEmbedding", "stack": "decoder.layers",
     "Layer": "TransformerLayer", "norm1": "input_layernorm", "norm2": "pre_mlp_layernorm", "normf": "decoder.final_layernorm",
     "Norm": "RMSNorm", "attn": "self_attention", "Attn": "SelfAttention", "qkv": "linear_qkv", "q": "linear_q",
     "k": "linear_k", "v": "linear_v", "core": "core_attention", "Core": "DotProductAttention", "out": "linear_proj",
     "Lin": "TEColumnParallelLinear", "Out": "TERowParallelLinear", "mlp": "mlp", "Mlp": "MLP", "gu": "linear_fc1",
     "gate": "gate_proj", "up": "up_proj", "down": "linear_fc2", "head": "output_layer"},
    {"root": "model", "Root": "QwenForCausalLM", "embed": "model.embed_tokens", "Embed": "Embedding", "stack": "model.layers",
     "Layer": "QwenDecoderLayer", "norm1": "input_layernorm", "norm2": "post_attention_layernorm", "normf": "model.norm",
     "Norm": "QwenRMSNorm", "attn": "self_attn", "Attn": "QwenAttention", "qkv": "c_attn", "q": "q_proj", "k": "k_proj",
     "v": "v_proj", "core": "", "Core": "", "out": "o_proj", "Lin": "Linear", "Out": "Linear", "mlp": "mlp",
     "Mlp": "QwenMLP", "gu": "gate_up_proj", "gate": "gate_proj", "up": "up_proj", "down": "down_proj", "head": "lm_head"})
MIND_NAMES = (
    {"root": "network.model", "Root": "CausalModel", "embed": "tok_embeddings", "Embed": "TokenEmbedding", "stack": "blocks",
     "Layer": "DecodeLayer", "norm1": "attention_norm", "norm2": "ffn_norm", "normf": "norm_out", "Norm": "FusedRMSNorm",
     "attn": "attention", "Attn": "AttentionCell", "qkv": "w_qkv", "q": "wq", "k": "wk", "v": "wv", "core": "flash",
     "Core": "FlashAttentionCell", "out": "wo", "Lin": "ColumnLinear", "Out": "RowLinear", "mlp": "feed_forward",
     "Mlp": "FeedForward", "gu": "w_gate_hidden", "gate": "w1", "up": "w3", "down": "w2", "head": "output"},
    {"root": "net_with_loss.backbone", "Root": "TransformerModel", "embed": "encoder.word_embeddings", "Embed": "EmbeddingCell",
     "stack": "encoder.layers", "Layer": "ParallelLayer", "norm1": "input_norm", "norm2": "post_norm",
     "normf": "encoder.final_norm", "Norm": "RmsNormCell", "attn": "self_attn", "Attn": "ParallelAttention",
     "qkv": "qkv_proj", "q": "q_proj", "k": "k_proj", "v": "v_proj", "core": "", "Core": "", "out": "out_proj",
     "Lin": "ColumnParallel", "Out": "RowParallel", "mlp": "mlp", "Mlp": "ParallelMlp", "gu": "mapping",
     "gate": "gating", "up": "hidden", "down": "projection", "head": "head"})
FORMS = ("norm", "qkv", "rotary", "attention", "mlp", "act", "linear", "loss")


class Value:
    """A tensor: what it is (key), its shape and type.  Equal keys have equal numbers."""

    def __init__(self, key, shape, kind="f"):
        self.key, self.shape, self.kind = key, tuple(shape), kind

    def seen_as(self, shape):
        return Value(self.key, shape, self.kind)


class Numbers:
    """Statistics of values on one side."""

    def __init__(self, opts, target):
        self.o, self.target = opts, target
        self.known = {}

    def draw(self, key):
        digest = hashlib.blake2b(key.encode(), digest_size=24).digest()
        return [int.from_bytes(digest[i:i + 4], "little") / 2**32 for i in range(0, 24, 4)]

    def of(self, v):
        if (v.key, v.kind) not in self.known:
            self.known[v.key, v.kind] = self.make(v)
        return self.known[v.key, v.kind]

    def make(self, v):
        n = math.prod(v.shape)
        foreign = self.target and self.o.case == "values"
        r = self.draw(f"{self.o.seed}/{'other/' if foreign else ''}{v.key}")
        if v.kind == "i":
            return {"Max": 200 + int(300 * r[0]), "Min": int(9 * r[1]), "Mean": None, "Norm": None}
        sigma = 10 ** (2 * r[0] - 2)
        peak = math.sqrt(2 * math.log(n + 2)) * sigma
        stats = [peak * (0.8 + 0.6 * r[1]), -peak * (0.8 + 0.6 * r[2]), sigma * (r[3] - 0.5) * 0.1,
                 sigma * math.sqrt(n) * (0.95 + 0.1 * r[4])]
        if self.target:
            e = self.draw(f"{self.o.seed}/noise/{v.key}")
            size = self.o.noise + (0.3 if v.key in self.o.off else 0)
            stats = [s * (1 + size * (2 * x - 1)) for s, x in zip(stats, e)]
        return dict(zip(("Max", "Min", "Mean", "Norm"), stats))


class Run:
    """Records the calls of one side."""

    def __init__(self, opts, target, names, forms, rng):
        self.o, self.target, self.names, self.forms, self.rng = opts, target, names, forms, rng
        self.calls = MIND_CALLS if target else TORCH_CALLS
        self.kind = "Cell" if target else "Module"
        self.numbers = Numbers(opts, target)
        self.count, self.inside, self.tape = {}, [], []
        self.data, self.tree, self.group, self.module = {}, {}, {}, {}
        self.own = 0
        self.again = False

    def tensor(self, v):
        dtype = {"f": ("BFloat16", "torch.bfloat16"), "i": ("Int64", "torch.int64")}[v.kind][not self.target]
        return {"type": "mindspore.Tensor" if self.target else "torch.Tensor", "dtype": dtype,
                "shape": list(v.shape), **self.numbers.of(v)}

    def next(self, base):
        self.count[base] = self.count.get(base, -1) + 1
        return self.count[base]

    def private(self, shape):
        self.own += 1
        return Value(f"{'t' if self.target else 'g'}{self.own}", shape)

    def label(self, call):
        """Names that no table knows, the same for the same operator on one side."""
        if self.o.case == "names":
            return "Functional.op"
        if self.o.case != "unknown":
            return self.calls[call]
        mark = hashlib.blake2b(f"{self.target}{call}".encode(), digest_size=3).hexdigest()
        return f"Custom.kernel_{mark}"

    def call(self, what, group, ins, outs):
        if self.target and not self.again and self.rng.random() < self.o.drop:
            return outs
        base = self.label(what)
        name = f"{base}.{self.next(base)}"
        self.data[name + ".forward"] = {
            "input_args": [self.tensor(v) for v in ins], "input_kwargs": {}, "output": [self.tensor(v) for v in outs],
            **self.said()}
        self.tree[name + ".forward"] = self.inside[-1] if self.inside else None
        self.group.setdefault((group, "forward"), []).append(name + ".forward")
        if outs[0].key in [v.key for v in ins]:
            self.group.setdefault((f"idle/{outs[0].key}", "forward"), []).append(name + ".forward")
        self.tape.append((name, group, ins, outs, self.tree[name + ".forward"], self.again))
        return outs

    def said(self):
        return {} if self.o.case == "unsaid" else {"is_recompute": self.again}

    def one(self, what, group, ins, out):
        return self.call(what, group, ins, [out])[0]

    def view(self, what, group, x, shape):
        return self.one(what, group, [x], x.seen_as(shape))

    def scope(self, path, cls, part):
        return Scope(self, path, cls, part)

    def idle(self, x):
        """A call that only this side makes and that changes nothing."""
        if self.rng.random() < (0.3 if self.target else 0.1):
            kind = self.rng.choice(("cast", "reshape", "dropout"))
            shape = (math.prod(x.shape[:-1]), x.shape[-1]) if kind == "reshape" else x.shape
            self.call(kind, f"only/{self.kind}", [x], [x.seen_as(shape)])
        return x


class Scope:
    """A module around the calls made inside of it."""

    def __init__(self, run, path, cls, part):
        self.r, self.part = run, part
        if run.o.case == "names":
            path, cls = f"m{len(run.module) if not run.again else 0}", "Block"
        self.base = f"{run.kind}.{path}.{cls}"
        self.params, self.result = {}, None

    def __enter__(self):
        r = self.r
        if r.o.case == "names" and r.again:
            self.base = r.first[self.part]
        self.name = f"{self.base}.forward.{r.next(self.base)}"
        r.tree[self.name] = r.inside[-1] if r.inside else None
        r.inside.append(self.name)
        if not r.again:
            r.first = getattr(r, "first", {})
            r.first[self.part] = self.base
        return self

    def done(self, result, params=None):
        self.result, self.params = result, params or {}
        return result

    def __exit__(self, *exc):
        r = self.r
        r.inside.pop()
        r.data[self.name] = {"input_args": [], "input_kwargs": {}, "output": [r.tensor(self.result)], **r.said()}
        if self.params:
            r.data[self.name]["parameters"] = {k: r.tensor(v) for k, v in self.params.items()}
        r.module.setdefault(self.part, []).append(self.name)


class Decoder:
    """The model; every method writes one part of it in the side's own way."""

    def __init__(self, run):
        self.r, self.o = run, run.o
        self.width = self.o.hidden
        self.cut = 4 if run.target and self.o.case == "shards" else 1

    def path(self, *parts):
        return ".".join(p for p in parts if p)

    def weight(self, part, shape, cut_axis=None):
        shape = list(shape)
        key = part + ".weight"
        if self.cut > 1 and cut_axis is not None:
            shape[cut_axis] //= self.cut
            key += ".shard"
        if self.r.target and self.o.case == "transposed" and len(shape) == 2:
            shape.reverse()
        return Value(key, shape)

    def local(self, key, shape):
        """A value that every tensor-parallel rank has its own part of."""
        return Value(key + (".shard" if self.cut > 1 else ""), shape)

    def linear(self, path, cls, group, part, x, n_out, out_key, axis):
        r = self.r
        with r.scope(path, cls, part) as m:
            n_in = x.shape[-1] * (self.cut if axis == 1 else 1)
            w = self.weight(part, (n_out, n_in), axis)
            width = n_out // self.cut if axis == 0 else n_out
            out = self.local(out_key, x.shape[:-1] + (width,)) if axis == 0 else Value(out_key, x.shape[:-1] + (width,))
            if r.forms["linear"] == 0:
                y = r.one("linear", group, [x, w], out)
            else:
                t = r.view("transpose", group, w, w.shape[::-1])
                y = r.one("matmul", group, [x, t], out if axis != 1 or self.cut == 1 else r.private(out.shape))
                if axis == 1 and self.cut > 1:
                    y = r.one("reduce", group, [y], out)
            return m.done(y, {"weight": w})

    def norm(self, path, part, x, out_key):
        r = self.r
        with r.scope(path, r.names["Norm"], part) as m:
            w = self.weight(part, (x.shape[-1],))
            out = Value(out_key, x.shape)
            if r.forms["norm"] == 0:
                y = r.one("rms", part, [x, w], out)
            else:
                thin = x.shape[:-1] + (1,)
                f = r.view("cast", part, x, x.shape)
                s = r.one("pow", part, [f], r.private(x.shape))
                s = r.one("mean", part, [s], r.private(thin))
                s = r.one("add", part, [s], r.private(thin))
                s = r.one("rsqrt", part, [s], r.private(thin))
                f = r.one("mul", part, [f, s], r.private(x.shape))
                f = r.view("cast", part, f, x.shape)
                y = r.one("mul", part, [w, f], out)
            return m.done(y, {"weight": w})

    def rotary(self, group, x, out_key):
        r = self.r
        out = self.local(out_key, x.shape)
        if r.forms["rotary"] == 0:
            return r.one("rotate", group, [x, self.cos, self.sin], out)
        a = r.one("mul", group, [x, self.cos], r.private(x.shape))
        half = x.shape[:-1] + (x.shape[-1] // 2,)
        h = r.one("neg", group, [x], r.private(half))
        h = r.one("cat", group, [h, x], r.private(x.shape))
        h = r.one("mul", group, [h, self.sin], r.private(x.shape))
        return r.one("add", group, [a, h], out)

    def core(self, group, q, k, v, out_key, path):
        r = self.r
        heads = self.o.heads // self.cut
        b, s = self.o.batch, self.o.length
        d = self.width // self.o.heads
        out = self.local(out_key, q.shape)

        def body():
            if r.forms["attention"] == 0:
                return r.one("attention", group, [q, k, v], out)
            grid = (b, heads, s, s)
            p = r.one("bmm", group, [q, k], r.private(grid))
            p = r.one("scale", group, [p], r.private(grid))
            p = r.one("fill", group, [p], r.private(grid))
            p = r.one("softmax", group, [p], r.private(grid))
            p = r.view("cast", group, p, grid)
            c = r.one("bmm", group, [p, v], Value(out.key, (b, heads, s, d)))
            c = r.view("transpose", group, c, (b, s, heads, d))
            return r.view("reshape", group, c, q.shape)

        if not r.names["core"]:
            return body()
        with r.scope(self.path(path, r.names["core"]), r.names["Core"], group) as m:
            return m.done(body())

    def projections(self, path, L, x):
        """q, k and v, which are one projection or three; k and v have half of the heads."""
        r, names = self.r, self.r.names
        sizes = {"q": self.width, "k": self.o.kv, "v": self.o.kv}
        if r.forms["qkv"] == 0:
            y = self.linear(self.path(path, names["qkv"]), names["Lin"], L + ".qkv", L + ".qkv", x, sum(sizes.values()),
                            L + ".qkv", 0)
            return r.call("split", L + ".qkv", [y],
                          [self.local(f"{L}.{c}", x.shape[:-1] + (n // self.cut,)) for c, n in sizes.items()])
        return [self.linear(self.path(path, names[c]), names["Lin"], L + ".qkv", f"{L}.{c}", x, n, f"{L}.{c}", 0)
                for c, n in sizes.items()]

    def feed(self, path, L, x):
        r, names, f = self.r, self.r.names, self.o.wide
        wide = x.shape[:-1] + (f // self.cut,)
        act = self.local(L + ".act", wide)
        if r.forms["mlp"] == 0:
            y = self.linear(self.path(path, names["gu"]), names["Lin"], L + ".gu", L + ".gu", x, 2 * f, L + ".gu", 0)
            if r.forms["act"] == 0:
                return r.one("swiglu", L + ".act", [y], act)
            g, u = r.call("split", L + ".gu", [y], [self.local(L + ".g", wide), self.local(L + ".u", wide)])
        else:
            g = self.linear(self.path(path, names["gate"]), names["Lin"], L + ".gu", L + ".gate", x, f, L + ".g", 0)
            u = self.linear(self.path(path, names["up"]), names["Lin"], L + ".gu", L + ".up", x, f, L + ".u", 0)
        g = r.one("silu", L + ".act", [g], self.local(L + ".sg", wide))
        return r.one("mul", L + ".act", [g, u], act)

    def layer(self, number, shown, x):
        r, names, L = self.r, self.r.names, f"L{number}"
        base = self.path(names["root"], names["stack"], str(shown))
        with r.scope(base, names["Layer"], L) as m:
            n = self.norm(self.path(base, names["norm1"]), L + ".norm1", x, L + ".n1")
            ap = self.path(base, names["attn"])
            with r.scope(ap, names["Attn"], L + ".attn") as att:
                q, k, v = self.projections(ap, L, r.idle(n))
                q = self.rotary(L + ".rq", r.idle(q), L + ".qr")
                k = self.rotary(L + ".rk", r.idle(k), L + ".kr")
                c = self.core(L + ".core", q, k, v, L + ".ctx", ap)
                y = att.done(self.linear(self.path(ap, names["out"]), names["Out"], L + ".proj", L + ".proj", r.idle(c),
                                         self.width, L + ".ao", 1))
            x = r.one("add", L + ".add1", [x, y], Value(L + ".r1", x.shape))
            n = self.norm(self.path(base, names["norm2"]), L + ".norm2", x, L + ".n2")
            mp = self.path(base, names["mlp"])
            with r.scope(mp, names["Mlp"], L + ".mlp") as mlp:
                a = self.feed(mp, L, n)
                y = mlp.done(self.linear(self.path(mp, names["down"]), names["Out"], L + ".down", L + ".down", r.idle(a),
                                         self.width, L + ".mo", 1))
            x = r.one("add", L + ".add2", [x, y], Value(f"h{number + 1}", x.shape))
            return m.done(x)

    def forward(self, first, last, whole):
        """Layers first to before last; whole: with embedding and loss."""
        r, o, names = self.r, self.o, self.r.names
        x = Value(f"h{first}", (o.batch, o.length, self.width))
        with r.scope(names["root"], names["Root"], "model") as root:
            d = self.width // o.heads
            self.cos, self.sin = Value("cos", (o.length, 1, d)), Value("sin", (o.length, 1, d))
            if whole or first == 0:
                ids = Value("ids", (o.batch, o.length), "i")
                with r.scope(self.path(names["root"], names["embed"]), names["Embed"], "embed") as m:
                    w = self.weight("embed", (o.vocab, self.width))
                    x = m.done(r.one("lookup", "embed", [ids, w], x), {"weight": w})
            entries = []
            for i in range(first, last):
                entries.append((i, x))
                x = self.layer(i, i - first if not whole else i, x)
            if whole or last == o.layers:
                # What follows another number of layers is another value.
                tail = "" if last == o.layers else ".short"
                x = self.norm(self.path(names["root"], names["normf"]), "normf", x, "nf" + tail)
                x = self.linear(self.path(names["root"], names["head"]), names["Lin"], "head", "head", x, o.vocab,
                                "logits" + tail, None)
            root.done(x)
        if whole or last == o.layers:
            self.loss(x, tail)
        return entries

    def loss(self, x, tail):
        r, o = self.r, self.o
        flat = (o.batch * o.length, o.vocab)
        x = r.view("reshape", "loss", x, flat)
        labels = Value("labels", (flat[0],), "i")
        if r.forms["loss"] == 0:
            r.one("entropy", "loss", [x, labels], Value("loss" + tail, ()))
        else:
            x = r.one("logp", "loss", [x], r.private(flat))
            r.one("pick", "loss", [x, labels], Value("loss" + tail, ()))

    def recompute(self, entries, first, whole):
        """Run the layers again, the last one first, as backward does under checkpointing."""
        self.r.again = True
        for i, x in reversed(entries):
            self.r.inside.append(None)
            self.layer(i, i - first if not whole else i, x)
            self.r.inside.pop()


def backward(run):
    """Gradients of every call, in reverse.  Of a call computed twice only the second has any."""
    twice = {g for name, g, _, _, _, again in run.tape if again}
    for name, group, ins, outs, parent, again in reversed(run.tape):
        if group in twice and not again:
            continue
        run.data[name + ".backward"] = {
            "input": [run.tensor(Value("grad/" + v.key, v.shape)) for v in outs],
            "output": [run.tensor(Value("grad/" + v.key, v.shape)) for v in ins if v.kind == "f"]}
        run.tree[name + ".backward"] = parent.replace(".forward.", ".backward.") if parent else None
        run.group.setdefault((group, "backward"), []).append(name + ".backward")
        if outs[0].key in [v.key for v in ins]:
            run.group.setdefault((f"idle/{outs[0].key}", "backward"), []).append(name + ".backward")


def spread(opts, rng):
    """Values behind a fault: everything from some layer on."""
    if opts.case != "fault":
        return set()
    start = rng.randrange(opts.layers)
    off = {f"h{i + 1}" for i in range(start, opts.layers)} | {"nf", "logits", "loss"}
    for i in range(start, opts.layers):
        off |= {f"L{i}.{k}" for k in "n1 qkv q k v qr kr ctx ao r1 n2 gu g u sg act mo".split()}
    return off


def make(opts):
    rng = random.Random(f"{opts.seed}/{opts.case}")
    forms = [{f: rng.randrange(2) for f in FORMS} for _ in range(2)]
    for f in FORMS:
        if rng.random() < 0.7:
            forms[1][f] = 1 - forms[0][f]
    for side in forms:
        side["act"] |= side["mlp"]  # a fused activation needs both halves in one
    opts.layers = opts.layers or rng.randint(3, 8)
    if opts.case in ("offset",):
        opts.layers = 12
    opts.noise = 4e-3 if opts.case == "bf16" else 10 ** rng.uniform(-6, -3)
    opts.drop = 0.05 if opts.case == "deleted" else 0
    opts.off = spread(opts, rng)
    if opts.case == "shards":
        forms[1]["linear"] = 1
    runs = [Run(opts, t, (MIND_NAMES if t else TORCH_NAMES)[rng.randrange(2)], forms[t], random.Random(rng.random()))
            for t in (False, True)]
    for r in runs:
        model = Decoder(r)
        first, last, whole = 0, opts.layers, True
        if r.target and opts.case == "layers":
            last = max(1, opts.layers * 2 // 3)
        if r.target and opts.case in ("stages", "offset"):
            first, whole = (8 if opts.case == "offset" else opts.layers // 2), False
        entries = model.forward(first, last, whole)
        if r.target and opts.case in ("recompute", "unsaid"):
            model.recompute(entries, first, whole)
        if opts.backward:
            backward(r)
    return runs


def write(opts, runs):
    for r, side in zip(runs, ("golden", "target")):
        folder = os.path.join(opts.out, side)
        os.makedirs(folder, exist_ok=True)
        head = {"task": "statistics", "level": "mix", "framework": "mindspore" if r.target else "pytorch",
                "dump_data_dir": None, "data": r.data}
        for name, what in (("dump.json", head), ("construct.json", r.tree)):
            with open(os.path.join(folder, name), "w") as f:
                json.dump(what, f, indent=1)
    with open(os.path.join(opts.out, "truth.json"), "w") as f:
        json.dump(truth(runs), f)


def truth(runs):
    """Groups of entries and pairs of modules that are one thing on both sides.  Ops that merely hand
    on the same value may be paired or not: idle."""
    g, t = runs
    both = [k for k in g.group if k in t.group and not k[0].startswith("only/")]
    groups = [[g.group[k], t.group[k]] for k in both if not k[0].startswith("idle/")]
    idle = [[g.group[k], t.group[k]] for k in both if k[0].startswith("idle/")]
    modules = [[a, b] for k in g.module if k in t.module for a in g.module[k] for b in t.module[k]]
    return {"groups": groups, "idle": idle, "modules": modules, "entries": [len(g.data), len(t.data)]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--case", choices=CASES, default="plain")
    p.add_argument("--out", required=True)
    p.add_argument("--layers", type=int, default=0, help="0: drawn")
    p.add_argument("--no-backward", dest="backward", action="store_false")
    add_sizes(p)
    opts = p.parse_args()
    write(opts, make(opts))


def add_sizes(p):
    p.set_defaults(batch=2, length=32, hidden=192, heads=12, kv=64, wide=512, vocab=768)


def options(seed, case, out, layers=0):
    """The same from another program."""
    p = argparse.ArgumentParser()
    add_sizes(p)
    opts = p.parse_args([])
    opts.seed, opts.case, opts.out, opts.layers, opts.backward = seed, case, out, layers, True
    return opts


if __name__ == "__main__":
    main()
