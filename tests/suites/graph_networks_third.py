# SPDX-License-Identifier: MIT
"""A third set of networks with planted mistakes for graph_mistakes.py: mistakes of ports, of losses and
of trainings.

The tables are as in graph_networks.py and graph_networks_more.py. OPTIMIZERS: name of a mistake -> what
it changes in the optimizer; its cell is "optimizer". The set was written before any of it had run.
"""
from graph_networks import FRAMEWORK, Cell, numbers

if FRAMEWORK == "torch":
    import torch
    from torch import nn

    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_more import more, parameter

    class third(more):
        log = staticmethod(lambda x: torch.log(x))
        sqrt = staticmethod(lambda x: torch.sqrt(x))
        rsqrt = staticmethod(lambda x: torch.rsqrt(x))
        sin = staticmethod(lambda x: torch.sin(x))
        cos = staticmethod(lambda x: torch.cos(x))
        silu = staticmethod(lambda x: nn.functional.silu(x))
        relu6 = staticmethod(lambda x: nn.functional.relu6(x))
        gelu_tanh = staticmethod(lambda x: nn.functional.gelu(x, approximate="tanh"))
        log_softmax = staticmethod(lambda x, axis: torch.log_softmax(x, axis))
        square = staticmethod(lambda x: torch.square(x))
        largest = staticmethod(lambda x, axis: torch.amax(x, axis, True))
        reaches = staticmethod(lambda x, y: torch.ge(x, y).float())
        stop = staticmethod(lambda x: x.detach())
        mean = staticmethod(lambda x: x.mean())
        total = staticmethod(lambda x: x.sum())
        flip = staticmethod(lambda x, axis: torch.flip(x, (axis,)))

        @staticmethod
        def cross_entropy(x, labels, reduction="mean"):
            return nn.functional.cross_entropy(x, labels.long(), reduction=reduction)

    Norm, Average, Maximum = nn.BatchNorm2d, nn.AvgPool2d, nn.MaxPool2d

    def any_conv(inner, outer, size=3, stride=1, padding=1, dilation=1, groups=1):
        return nn.Conv2d(inner, outer, size, stride, padding, dilation, groups)
elif FRAMEWORK == "mindspore":
    import mindspore
    from mindspore import nn, ops

    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_more import more, parameter

    class third(more):
        @staticmethod
        def log(x):
            return ops.log(x)

        @staticmethod
        def sqrt(x):
            return ops.sqrt(x)

        @staticmethod
        def rsqrt(x):
            return ops.rsqrt(x)

        @staticmethod
        def sin(x):
            return ops.sin(x)

        @staticmethod
        def cos(x):
            return ops.cos(x)

        @staticmethod
        def silu(x):
            return ops.silu(x)

        @staticmethod
        def relu6(x):
            return ops.relu6(x)

        @staticmethod
        def gelu_tanh(x):
            return ops.gelu(x, approximate="tanh")

        @staticmethod
        def log_softmax(x, axis):
            return ops.log_softmax(x, axis)

        @staticmethod
        def square(x):
            return ops.square(x)

        @staticmethod
        def largest(x, axis):
            return ops.amax(x, axis, True)

        @staticmethod
        def reaches(x, y):
            return ops.cast(ops.ge(x, y), mindspore.float32)

        @staticmethod
        def stop(x):
            return ops.stop_gradient(x)

        @staticmethod
        def mean(x):
            return ops.mean(x)

        @staticmethod
        def total(x):
            return ops.sum(x)

        @staticmethod
        def flip(x, axis):
            return ops.flip(x, (axis,))

        @staticmethod
        def cross_entropy(x, labels, reduction="mean"):
            return ops.cross_entropy(x, labels, reduction=reduction)

    def Norm(size, eps=1e-5):
        return nn.BatchNorm2d(size, eps=eps)

    def Average(size):
        return nn.AvgPool2d(size, size)

    def Maximum(size):
        return nn.MaxPool2d(size, size)

    def any_conv(inner, outer, size=3, stride=1, padding=1, dilation=1, groups=1):
        return nn.Conv2d(inner, outer, size, stride, pad_mode="pad", padding=padding, dilation=dilation,
                         group=groups, has_bias=True)


# ---- a variational autoencoder ----------------------------------------------------------------


class Encoder(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.hidden, self.middle, self.spread = Dense(8, 10), Dense(10, 4), Dense(10, 4)

    def construct(self, x, noise):
        h = third.relu(self.hidden(x))
        mu, logvar = self.middle(h), self.spread(h)
        if self.f == "vae_spread":
            std = third.exp(logvar)
        else:
            std = third.exp(logvar * 0.5)
        if self.f == "vae_no_noise":
            return mu, mu, logvar
        if self.f == "vae_noise_minus":
            return mu - std * noise, mu, logvar
        return mu + std * noise, mu, logvar


class Decoder(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.hidden, self.out = Dense(4, 10), Dense(10, 8)

    def construct(self, z):
        h = third.relu(self.hidden(z))
        if self.f == "vae_no_sigmoid":
            return self.out(h)
        return third.sigmoid(self.out(h))


class Vae(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.encoder, self.decoder = Encoder(f), Decoder(f)

    def construct(self, x, noise):
        z, mu, logvar = self.encoder(x, noise)
        off = third.square(self.decoder(z) - x)
        if self.f == "vae_reduction":
            loss = third.mean(off)
        else:
            loss = third.mean(third.reduce_sum(off, (1,)))
        if self.f == "vae_kl_exp":
            inner = 1.0 + logvar - third.square(mu) - logvar
        elif self.f == "vae_same_kl":
            inner = (1.0 - third.exp(logvar)) + (logvar - third.square(mu))
        else:
            inner = 1.0 + logvar - third.square(mu) - third.exp(logvar)
        kl = third.mean(third.reduce_sum(inner, (1,))) * -0.5
        if self.f == "vae_kl_weight":
            kl = kl * 0.1
        if self.f == "vae_kl_sign":
            return loss - kl
        return loss + kl


# ---- a network of graphs ----------------------------------------------------------------------


class Spread(Cell):
    """A layer that mixes neighbours."""

    def __init__(self, f, inner, outer):
        super().__init__()
        self.f = f
        self.fc = Dense(inner, outer)

    def construct(self, x, adjacent, own):
        if self.f == "gcn_no_self":
            a = adjacent
        else:
            a = adjacent + own
        degree = third.reduce_sum(a, (1,))
        if self.f == "gcn_row":
            a = a / degree
        elif self.f == "gcn_no_norm":
            a = a * 1.0
        else:
            root = third.sqrt(degree)
            if self.f == "gcn_same_norm":
                a = a / (root * third.transpose(root, (1, 0)))
            else:
                a = a / root / third.transpose(root, (1, 0))
        if self.f == "gcn_transposed":
            a = third.transpose(a, (1, 0))
        h = third.matmul(a, self.fc(x))
        if self.f == "gcn_no_relu":
            return h
        return third.relu(h)


class Neighbours(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second, self.head = Spread("", 5, 8), Spread(f, 8, 6), Dense(6, 3)

    def construct(self, x, adjacent, own):
        x = self.second(self.first(x, adjacent, own), adjacent, own)
        if self.f == "gcn_readout":
            x = third.reduce_sum(x, (0,))
        else:
            x = third.reduce_mean(x, (0,))
        return self.head(x)


# ---- an encoder of texts ----------------------------------------------------------------------


class Enter(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.kinds = Embedding(16, 8), Embedding(2, 8)
        self.places = parameter("places", (1, 8, 8))
        self.norm = LayerNorm(8)

    def construct(self, ids, kinds):
        x = self.words(ids)
        if self.f == "bert_position":
            x = x + self.places[:, 1:7]
        else:
            x = x + self.places[:, :6]
        if self.f != "bert_no_kind":
            x = x + self.kinds(kinds)
        return self.norm(x)


class Heads(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.query, self.key, self.value, self.out = Dense(8, 8), Dense(8, 8), Dense(8, 8), Dense(8, 8)

    def heads(self, x):
        if self.f == "bert_heads":
            return third.reshape(x, (2, 2, 6, 4))
        return third.transpose(third.reshape(x, (2, 6, 2, 4)), (0, 2, 1, 3))

    def construct(self, x, keep):
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        if self.f == "bert_same_scale":
            scores = third.matmul(q * 0.5, third.transpose(k, (0, 1, 3, 2)))
        else:
            scores = third.matmul(q, third.transpose(k, (0, 1, 3, 2))) * 0.5
        if self.f == "bert_mask_times":
            scores = scores * third.reshape(keep, (2, 1, 1, 6))
        else:
            scores = scores + (1.0 - third.reshape(keep, (2, 1, 1, 6))) * -10000.0
        w = third.softmax(scores, -1)
        if self.f == "bert_dropout":
            w = w / 0.9
        x = third.transpose(third.matmul(w, v), (0, 2, 1, 3))
        return self.out(third.reshape(x, (2, 6, 8)))


class Bert(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.heads = Enter(f), Heads(f)
        self.norm1 = LayerNorm(8)
        self.norm2 = LayerNorm(8, eps=1e-3) if f == "bert_eps" else LayerNorm(8)
        self.up, self.down, self.head = Dense(8, 16), Dense(16, 8), Dense(8, 16)

    def construct(self, ids, kinds, keep, labels):
        x = self.enter(ids, kinds)
        x = self.norm1(x + self.heads(x, keep))
        if self.f == "bert_gelu_tanh":
            h = third.gelu_tanh(self.up(x))
        else:
            h = third.gelu(self.up(x))
        if self.f == "bert_post":
            x = x + self.norm2(self.down(h))
        else:
            x = self.norm2(x + self.down(h))
        logits = third.reshape(self.head(x)[:, :5], (10, 16))
        if self.f == "bert_labels":
            labels = labels[:, :5]
        else:
            labels = labels[:, 1:]
        return third.cross_entropy(logits, third.reshape(labels, (10,)))


# ---- diffusion --------------------------------------------------------------------------------


class Hidden(Cell):
    """A convolution that is told the time."""

    def __init__(self, f, size):
        super().__init__()
        self.f = f
        self.one, self.two, self.time = any_conv(size, size), any_conv(size, size), Dense(8, size)

    def construct(self, x, t):
        h = self.one(third.silu(x))
        if self.f == "diffusion_time_missing":
            h = h + 0.0
        else:
            h = h + third.reshape(self.time(t), (2, -1, 1, 1))
        if self.f == "diffusion_relu":
            h = self.two(third.relu(h))
        else:
            h = self.two(third.silu(h))
        if self.f == "diffusion_residual":
            return h
        if self.f == "diffusion_residual_scale":
            return (x + h) / 1.4142135
        return x + h


class Diffusion(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.first, self.second = any_conv(2, 4), Hidden("", 4), Hidden(f, 4)
        self.out = any_conv(4, 2)

    def construct(self, x, noise, kept, angles):
        if self.f == "diffusion_no_root":
            y = kept * x + third.sqrt(1.0 - kept) * noise
        elif self.f == "diffusion_swapped":
            y = third.sqrt(1.0 - kept) * x + third.sqrt(kept) * noise
        elif self.f == "diffusion_same_commuted":
            y = noise * third.sqrt(1.0 - kept) + x * third.sqrt(kept)
        else:
            y = third.sqrt(kept) * x + third.sqrt(1.0 - kept) * noise
        if self.f == "diffusion_time_order":
            t = third.concat((third.cos(angles), third.sin(angles)), 1)
        else:
            t = third.concat((third.sin(angles), third.cos(angles)), 1)
        y = self.out(self.second(self.first(self.enter(y), t), t))
        if self.f == "diffusion_target":
            return third.mean(third.square(y - x))
        return third.mean(third.square(y - noise))


# ---- a classifier of images -------------------------------------------------------------------


class Stage(Cell):
    def __init__(self, f, inner, outer):
        super().__init__()
        self.f = f
        if f == "cnn_padding":
            self.conv = any_conv(inner, outer, 3, 1, 0)
        elif f == "cnn_stride":
            self.conv = any_conv(inner, outer, 3, 2, 1)
        elif f == "cnn_dilation":
            self.conv = any_conv(inner, outer, 3, 1, 2, 2)
        else:
            self.conv = any_conv(inner, outer)
        self.norm = Norm(outer)

    def construct(self, x):
        if self.f == "cnn_norm_missing":
            return third.relu(self.conv(x))
        if self.f == "cnn_norm_late":
            return self.norm(third.relu(self.conv(x)))
        return third.relu(self.norm(self.conv(x)))


class Classifier(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second, self.head = Stage("", 3, 4), Stage(f, 4, 6), Dense(6, 5)
        self.pool = Average(2) if f == "cnn_average" else Maximum(2)

    def construct(self, x, labels):
        if self.f == "cnn_same_shift":
            x = x / 0.5 - 0.4
        elif self.f == "cnn_deviation":
            x = (x - 0.2) * 0.5
        else:
            x = (x - 0.2) / 0.5
        x = self.second(self.pool(self.first(x)))
        if self.f == "cnn_flip":
            x = third.flip(x, 3) * third.flip(x, 2)
        x = self.head(third.reshape(third.reduce_mean(x, (2, 3)), (4, 6)))
        if self.f == "cnn_softmax_twice":
            x = third.softmax(x, -1)
        if self.f == "cnn_loss_sum":
            return third.cross_entropy(x, labels, "sum")
        if self.f == "cnn_label":
            return third.cross_entropy(x, labels - 1)
        return third.cross_entropy(x, labels)


# ---- a recurrent network over time ------------------------------------------------------------


class Steps(Cell):
    """A GRU whose gates come from one matrix, as frameworks have it."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.keep = Dense(5, 18), Dense(6, 18)

    def construct(self, x, h):
        a, b = self.enter(x), self.keep(h)
        if self.f == "time_gates":
            z, r = third.sigmoid(a[:, :6] + b[:, :6]), third.sigmoid(a[:, 6:12] + b[:, 6:12])
        else:
            r, z = third.sigmoid(a[:, :6] + b[:, :6]), third.sigmoid(a[:, 6:12] + b[:, 6:12])
        if self.f == "time_reset_all":
            n = third.tanh(r * (a[:, 12:] + b[:, 12:]))
        elif self.f == "time_no_reset":
            n = third.tanh(a[:, 12:] + b[:, 12:])
        else:
            n = third.tanh(a[:, 12:] + r * b[:, 12:])
        if self.f == "time_same_update":
            return n + z * (h - n)
        return (1.0 - z) * n + z * h


class Sequence(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.steps, self.head = Steps(f), Dense(6, 4)

    def construct(self, x, h, labels):
        first = self.steps(x[0], h)
        if self.f == "time_not_carried":
            second = self.steps(x[1], h)
        elif self.f == "time_repeated":
            second = self.steps(x[0], first)
        else:
            second = self.steps(x[1], first)
        last = self.steps(x[2], second)
        if self.f == "time_pooled":
            last = (first + second + last) / 3.0
        if self.f == "time_temperature":
            return third.cross_entropy(self.head(last) / 2.0, labels)
        return third.cross_entropy(self.head(last), labels)


# ---- a decoder of texts -----------------------------------------------------------------------


class RootNorm(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.weight = parameter("weight", (8,))

    def construct(self, x):
        mean = third.reduce_mean(third.square(x), (-1,))
        if self.f == "llama_eps":
            mean = mean + 1e-2
        else:
            mean = mean + 1e-6
        if self.f == "llama_same_root":
            x = x / third.sqrt(mean)
        else:
            x = x * third.rsqrt(mean)
        if self.f == "llama_weight_one":
            return x * (1.0 + self.weight)
        return x * self.weight


class Turned(Cell):
    """Attention with turned positions."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.query, self.key, self.value, self.out = Dense(8, 8), Dense(8, 8), Dense(8, 8), Dense(8, 8)

    def turn(self, x, sine, cosine):
        a, b = x[:, :, :4], x[:, :, 4:]
        if self.f == "llama_turn_sign":
            return third.concat((a * cosine + b * sine, b * cosine - a * sine), 2)
        return third.concat((a * cosine - b * sine, b * cosine + a * sine), 2)

    def construct(self, x, mask, sine, cosine):
        q = self.turn(self.query(x), sine, cosine)
        if self.f == "llama_turn_key":
            k = self.key(x)
        else:
            k = self.turn(self.key(x), sine, cosine)
        scores = third.matmul(q, third.transpose(k, (0, 2, 1))) / 2.8284271
        w = third.softmax(scores + mask, -1)
        if self.f == "llama_half":
            w = third.half(w)
        return self.out(third.matmul(w, self.value(x)))


class Decode(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.norm1, self.norm2, self.turned = RootNorm(""), RootNorm(f), Turned(f)
        self.gate, self.up, self.down = Dense(8, 12), Dense(8, 12), Dense(12, 8)

    def construct(self, x, mask, sine, cosine):
        if self.f == "llama_mask_all":
            mask = mask * 0.0
        x = x + self.turned(self.norm1(x), mask, sine, cosine)
        h = self.norm2(x)
        if self.f == "llama_gate":
            h = self.gate(h) * third.silu(self.up(h))
        elif self.f == "llama_sigmoid":
            h = third.sigmoid(self.gate(h)) * self.up(h)
        else:
            h = third.silu(self.gate(h)) * self.up(h)
        return x + self.down(h)


class Llama(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.first, self.second = Embedding(16, 8), Decode(""), Decode(f)
        self.norm, self.head = RootNorm(""), Dense(8, 16)

    def construct(self, ids, labels, mask, late, sine, cosine):
        x = self.words(ids)
        if self.f == "llama_mask_late":
            x = self.second(self.first(x, mask, sine, cosine), late, sine, cosine)
        elif self.f == "llama_position":
            x = self.second(self.first(x, mask, sine, cosine), mask, cosine, sine)
        else:
            x = self.second(self.first(x, mask, sine, cosine), mask, sine, cosine)
        if self.f != "llama_no_norm":
            x = self.norm(x)
        return third.cross_entropy(third.reshape(self.head(x), (12, 16)), third.reshape(labels, (12,)))


# ---- one of several experts -------------------------------------------------------------------


class Switch(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.router, self.one, self.two, self.three = Dense(6, 3), Dense(6, 6), Dense(6, 6), Dense(6, 6)

    def construct(self, x):
        p = third.softmax(self.router(x), -1)
        top = third.largest(p, -1)
        chosen = third.reaches(p, top)
        if self.f == "switch_no_gate":
            weights = chosen
        elif self.f == "switch_soft":
            weights = p
        else:
            weights = chosen * p
        a, b, c = third.silu(self.one(x)), third.silu(self.two(x)), third.silu(self.three(x))
        y = weights[:, :1] * a + weights[:, 1:2] * b + weights[:, 2:] * c
        if self.f == "switch_wrong":
            y = weights[:, :1] * a + weights[:, 1:2] * c + weights[:, 2:] * b
        share = third.reduce_mean(chosen, (0,)) * third.reduce_mean(p, (0,))
        if self.f == "switch_balance_axis":
            share = third.reduce_mean(chosen, (0,)) * third.reduce_mean(p, (1,))
        return y, third.total(share) * 3.0


class Switches(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second, self.norm = Switch(""), Switch(f), LayerNorm(6)
        self.head = Dense(6, 3)

    def construct(self, x, labels):
        y, one = self.first(x)
        x = x + y
        y, two = self.second(self.norm(x))
        loss = third.cross_entropy(self.head(x + y), labels)
        if self.f == "switch_balance":
            return loss + (one + two) * 0.1
        if self.f == "switch_balance_missing":
            return loss + one * 0.01
        return loss + (one + two) * 0.01


# ---- images and texts -------------------------------------------------------------------------


class Tower(Cell):
    def __init__(self, f, inner):
        super().__init__()
        self.f = f
        self.hidden, self.out = Dense(inner, 8), Dense(8, 8)

    def construct(self, x):
        x = third.tanh(self.hidden(x))
        if self.f == "clip_transposed":
            x = third.matmul(x, self.out.weight)
        else:
            x = self.out(x)
        if self.f == "clip_no_length":
            return x
        if self.f == "clip_length_axis":
            return x / third.sqrt(third.reduce_sum(third.square(x), (0,)))
        if self.f == "clip_no_root":
            return x / third.reduce_sum(third.square(x), (1,))
        return x / third.sqrt(third.reduce_sum(third.square(x), (1,)))


class Clip(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.image, self.text = Tower("", 6), Tower(f, 5)

    def construct(self, x, y, labels):
        a, b = self.image(x), self.text(y)
        if self.f == "clip_stopped":
            b = third.stop(b)
        logits = third.matmul(a, third.transpose(b, (1, 0)))
        if self.f == "clip_temperature":
            logits = logits * 0.07
        else:
            logits = logits / 0.07
        one = third.cross_entropy(logits, labels)
        if self.f == "clip_one_side":
            two = third.cross_entropy(logits, labels)
        else:
            two = third.cross_entropy(third.transpose(logits, (1, 0)), labels)
        if self.f == "clip_sum":
            return one + two
        return (one + two) / 2.0


# ---- small batches and an optimizer -----------------------------------------------------------


class Perceptron(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.up, self.norm, self.down = Dense(6, 8), LayerNorm(8), Dense(8, 3)

    def construct(self, x):
        h = third.relu(self.up(x))
        if self.f == "batches_clipped":
            h = third.relu6(h * 8.0) / 8.0
        return self.down(self.norm(h))


class Batches(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.net = Perceptron(f)

    def construct(self, x, labels):
        one = third.cross_entropy(self.net(x[:4]), labels[:4])
        if self.f == "batches_same":
            two = third.cross_entropy(self.net(x[:4]), labels[:4])
        elif self.f == "batches_labels":
            two = third.cross_entropy(self.net(x[4:]), labels[:4])
        else:
            two = third.cross_entropy(self.net(x[4:]), labels[4:])
        if self.f == "batches_no_division":
            return one + two
        if self.f == "batches_same_halves":
            return one * 0.5 + two * 0.5
        return (one + two) / 2.0


NETWORKS = {"vae": Vae, "neighbours": Neighbours, "bert": Bert, "diffusion": Diffusion,
            "classifier": Classifier, "sequence": Sequence, "llama": Llama, "switches": Switches,
            "clip": Clip, "batches": Batches}
OPTIMIZERS = {"batches_lr": {"rate": 0.1}, "batches_decay": {"decay": 0.1}, "batches_momentum": {"momentum": 0.0}}
MISTAKES = {
    "vae_spread": ("vae", "encoder", "exp|mul"),
    "vae_no_noise": ("vae", "encoder", "add|mul|exp"),
    "vae_noise_minus": ("vae", "encoder", "sub|add"),
    "vae_no_sigmoid": ("vae", "decoder", "sigmoid|out"),
    "vae_reduction": ("vae", "", "mean|sum"),
    "vae_kl_exp": ("vae", "", "sub|exp"),
    "vae_kl_weight": ("vae", "", "mul"),
    "vae_kl_sign": ("vae", "", "sub|add"),
    "gcn_no_self": ("neighbours", "second", "add|sum"),
    "gcn_row": ("neighbours", "second", "div|sqrt|transpose"),
    "gcn_no_norm": ("neighbours", "second", "mul|div|sqrt|sum"),
    "gcn_transposed": ("neighbours", "second", "transpose|permute|matmul"),
    "gcn_no_relu": ("neighbours", "second", "relu|matmul"),
    "gcn_readout": ("neighbours", "", "sum|mean"),
    "bert_position": ("bert", "enter", "slice|getitem|add"),
    "bert_no_kind": ("bert", "enter", "add|kinds|embedding|norm|gather"),
    "bert_heads": ("bert", "heads", "reshape|view|transpose|permute"),
    "bert_mask_times": ("bert", "heads", "mul|add|sub"),
    "bert_dropout": ("bert", "heads", "div"),
    "bert_eps": ("bert", "norm2", "layer_?norm"),
    "bert_gelu_tanh": ("bert", "", "gelu"),
    "bert_post": ("bert", "", "add|norm2|layer_?norm"),
    "bert_labels": ("bert", "", "slice|getitem|cross_entropy|nll_?loss|reshape|softmax"),
    "diffusion_no_root": ("diffusion", "", "mul|sqrt"),
    "diffusion_swapped": ("diffusion", "", "sqrt|mul|sub|rsub"),
    "diffusion_time_order": ("diffusion", "", "sin|cos|cat|concat"),
    "diffusion_time_missing": ("diffusion", "second", "add|time|reshape"),
    "diffusion_relu": ("diffusion", "second", "relu|silu"),
    "diffusion_residual": ("diffusion", "second", "add|two|conv"),
    "diffusion_residual_scale": ("diffusion", "second", "div"),
    "diffusion_target": ("diffusion", "", "sub"),
    "cnn_padding": ("classifier", "second.conv", "conv.*"),
    "cnn_stride": ("classifier", "second.conv", "conv.*"),
    "cnn_dilation": ("classifier", "second.conv", "conv.*"),
    "cnn_norm_missing": ("classifier", "second", "norm|relu|batch_?norm"),
    "cnn_norm_late": ("classifier", "second", "norm|relu|batch_?norm"),
    "cnn_average": ("classifier", "", "pool|(avg|max)_?pool.*"),
    "cnn_deviation": ("classifier", "", "mul|div"),
    "cnn_flip": ("classifier", "", "flip|reverse|mul"),
    "cnn_softmax_twice": ("classifier", "", "softmax|cross_entropy"),
    "cnn_loss_sum": ("classifier", "", "cross_entropy|nll_?loss|sum|mean|div"),
    "cnn_label": ("classifier", "", "sub|cross_entropy|nll_?loss"),
    "time_gates": ("sequence", "steps", "mul|sub|sigmoid"),
    "time_reset_all": ("sequence", "steps", "mul|add"),
    "time_no_reset": ("sequence", "steps", "mul|add|tanh"),
    "time_not_carried": ("sequence", "steps", "keep|linear|dense|mul|matmul"),
    "time_repeated": ("sequence", "steps", "enter|linear|dense|matmul"),
    "time_pooled": ("sequence", "", "add|div"),
    "time_temperature": ("sequence", "", "div"),
    "llama_eps": ("llama", "second.norm2", "add"),
    "llama_weight_one": ("llama", "second.norm2", "add|mul"),
    "llama_turn_sign": ("llama", "second.turned", "add|sub"),
    "llama_turn_key": ("llama", "second.turned", "cat|concat|transpose|key|matmul|slice|getitem"),
    "llama_half": ("llama", "second.turned", "cast|half|to|float|softmax"),
    "llama_mask_all": ("llama", "second", "mul"),
    "llama_gate": ("llama", "second", "silu|mul"),
    "llama_sigmoid": ("llama", "second", "sigmoid|silu"),
    "llama_mask_late": ("llama", "second.turned", "add"),
    "llama_position": ("llama", "second.turned", "mul"),
    "llama_no_norm": ("llama", "", "norm|head"),
    "switch_no_gate": ("switches", "second", "mul"),
    "switch_soft": ("switches", "second", "mul|ge|greater_?equal|amax|reaches|cast|to|float"),
    "switch_wrong": ("switches", "second", "mul"),
    "switch_balance_axis": ("switches", "second", "mean"),
    "switch_balance": ("switches", "", "mul"),
    "switch_balance_missing": ("switches", "", "mul|add"),
    "clip_transposed": ("clip", "text", "matmul|out|transpose"),
    "clip_no_length": ("clip", "text", "div|sqrt|square|sum|out"),
    "clip_length_axis": ("clip", "text", "sum"),
    "clip_no_root": ("clip", "text", "sqrt|div"),
    "clip_stopped": ("clip", "", "detach|stop_?gradient|transpose|permute|matmul"),
    "clip_temperature": ("clip", "", "mul|div"),
    "clip_one_side": ("clip", "", "transpose|permute|cross_entropy|softmax|nll_?loss"),
    "clip_sum": ("clip", "", "div|add"),
    "batches_clipped": ("batches", "net", "mul|relu6|div|relu"),
    "batches_same": ("batches", "", "slice|getitem|net"),
    "batches_labels": ("batches", "", "slice|getitem|cross_entropy|nll_?loss"),
    "batches_no_division": ("batches", "", "div|add"),
    "batches_lr": ("batches", "optimizer", "sgd|momentum|optim|assign"),
    "batches_decay": ("batches", "optimizer", "sgd|momentum|optim|assign"),
    "batches_momentum": ("batches", "optimizer", "sgd|momentum|optim|assign"),
}
SAME = {"vae_same_kl": "vae", "gcn_same_norm": "neighbours", "bert_same_scale": "bert",
        "diffusion_same_commuted": "diffusion", "cnn_same_shift": "classifier",
        "time_same_update": "sequence", "llama_same_root": "llama", "batches_same_halves": "batches"}


def whole(*values):
    import numpy as np
    return np.array(values, np.int32)


def _neighbours():
    import numpy as np
    a = np.zeros((6, 6), np.float32)
    for at, to in ((0, 1), (0, 2), (1, 3), (2, 4), (4, 5), (5, 1), (3, 0)):
        a[at, to] = 1
    return [numbers(1, (6, 5)), a + 0.5 * a.T, np.eye(6, dtype=np.float32)]


def _bert():
    import numpy as np
    ids = np.arange(12, dtype=np.int32).reshape(2, 6) * 5 % 16
    return [ids, ids % 2, np.float32([[1] * 6, [1] * 4 + [0] * 2]), (ids + 3) % 16]


def _diffusion():
    import numpy as np
    angles = np.float32([[3], [7]]) * np.float32([1, 0.3, 0.1, 0.03])
    return [numbers(1, (2, 2, 6, 6)), numbers(2, (2, 2, 6, 6)),
            np.float32([0.8, 0.4]).reshape(2, 1, 1, 1), angles]


def _llama():
    import numpy as np
    ids = np.arange(12, dtype=np.int32).reshape(2, 6) * 5 % 16
    angles = np.arange(6, dtype=np.float32).reshape(1, 6, 1) * np.float32([1, 0.3, 0.1, 0.03])
    mask, late = (np.triu(np.ones((6, 6), np.float32), k) * -1e4 for k in (1, 2))
    return [ids, np.roll(ids, -1, 1), mask, late, np.sin(angles), np.cos(angles)]


INPUTS = {"vae": lambda: [numbers(1, (5, 8)), numbers(2, (5, 4))],
          "neighbours": _neighbours, "bert": _bert, "diffusion": _diffusion,
          "classifier": lambda: [numbers(1, (4, 3, 8, 8)), whole(1, 4, 2, 1)],
          "sequence": lambda: [numbers(1, (3, 4, 5)), numbers(2, (4, 6)), whole(3, 0, 1, 2)],
          "llama": _llama,
          "switches": lambda: [numbers(1, (8, 6)), whole(0, 1, 2, 2, 1, 0, 0, 1)],
          "clip": lambda: [numbers(1, (4, 6)), numbers(2, (4, 5)), whole(0, 1, 2, 3)],
          "batches": lambda: [numbers(1, (8, 6)), whole(0, 1, 2, 2, 1, 0, 0, 1)]}
