# SPDX-License-Identifier: MIT
"""A tenth set of networks with planted mistakes for graph_mistakes.py: an operator between functions, latents that
look at a long input, crossed features, energies against dreamt negatives, words by their letters, pooled graphs,
sparse codes, times until an event; two steps each, with momentum or with Adam, or three where a mistake is in one of
these.

The tables are as in graph_networks.py, graph_networks_more.py, graph_networks_third.py and
graph_networks_sixth.py. The set was written before any of it had run, and no rule was chosen on it.
"""
from graph_networks import FRAMEWORK, Cell, numbers

if FRAMEWORK:
    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_more import parameter
    from graph_networks_sixth import sixth
    from graph_networks_third import any_conv


# ---- an operator between functions --------------------------------------------------------------


class Trunk(Cell):
    """What a place contributes."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two = Dense(2, 10), Dense(10, 8)

    def construct(self, at):
        if self.f == "trunk_same_wave":
            h = sixth.cos(1.5707963267948966 - self.one(at))
        elif self.f == "trunk_wave_fast":
            h = sixth.sin(self.one(at) * 3.0)
        else:
            h = sixth.sin(self.one(at))
        if self.f == "trunk_tanh":
            return sixth.tanh(self.two(h))
        return sixth.silu(self.two(h))


class Operator(Cell):
    """The solution of an equation at given places, from the sampled right hand side."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.branch, self.deeper, self.trunk = Dense(6, 8), Dense(8, 8), Trunk(f)
        self.bias = parameter("bias", (1, 1))

    def construct(self, u, at, wanted):
        b = self.deeper(sixth.gelu(self.branch(u)))
        t = self.trunk(at)
        if self.f == "operator_shared_norm":
            b = b / sixth.sqrt(sixth.reduce_mean(sixth.square(b), (1,)) + 0.001)
        y = sixth.matmul(b, sixth.transpose(t, (1, 0)))
        if self.f == "operator_no_bias":
            y = y * 0.35
        elif self.f == "operator_bias_scaled":
            y = (y + self.bias) * 0.35
        elif self.f == "operator_same_scale":
            y = self.bias + sixth.matmul(b * 0.35, sixth.transpose(t, (1, 0)))
        else:
            y = y * 0.35 + self.bias
        off = y - wanted
        if self.f == "operator_huber":
            lost = sixth.sqrt(sixth.square(off) + 1.0) - 1.0
        else:
            lost = sixth.square(off)
        # the edges are known exactly, so they count more
        if self.f == "operator_edge_lost":
            edge = sixth.square(y[:, :1])
        elif self.f == "operator_edge_next":
            edge = sixth.square(y[:, 1:2]) + sixth.square(y[:, 4:])
        else:
            edge = sixth.square(y[:, :1]) + sixth.square(y[:, 4:])
        return sixth.mean(lost) + sixth.mean(edge) * 0.2


# ---- latents that look at a long input ------------------------------------------------------------


class Look(Cell):
    """Latents attend to an input with two heads."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.norm_q, self.norm_x = LayerNorm(8), LayerNorm(8)
        self.q, self.k, self.v, self.out = Dense(8, 8), Dense(8, 8), Dense(8, 8), Dense(8, 8)

    def heads(self, x, n):
        if self.f == "look_heads_mixed":
            return sixth.reshape(x, (4, n, 4))
        return sixth.reshape(sixth.transpose(sixth.reshape(x, (2, n, 2, 4)), (0, 2, 1, 3)), (4, n, 4))

    def construct(self, z, x, hidden):
        if self.f == "look_norm_shared":
            a, b = self.norm_q(z), self.norm_q(x)
        elif self.f == "look_input_bare":
            a, b = self.norm_q(z), x
        else:
            a, b = self.norm_q(z), self.norm_x(x)
        q, k, v = self.heads(self.q(a), 3), self.heads(self.k(b), 7), self.heads(self.v(b), 7)
        scores = sixth.bmm(q, sixth.transpose(k, (0, 2, 1)))
        if self.f == "look_scale_squared":
            scores = scores * 0.25 + hidden
        elif self.f == "look_scale_late":
            scores = (scores + hidden) * 0.5
        elif self.f == "look_same_scale":
            scores = hidden + scores / 2.0
        else:
            scores = scores * 0.5 + hidden
        share = sixth.softmax(scores, 2)
        y = sixth.reshape(sixth.bmm(share, v), (2, 2, 3, 4))
        y = self.out(sixth.reshape(sixth.transpose(y, (0, 2, 1, 3)), (2, 3, 8)))
        if self.f == "look_residual_normed":
            return a + y
        return z + y


class Latents(Cell):
    """A class from a long input."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.start, self.place = parameter("start", (1, 3, 8)), parameter("place", (1, 7, 8))
        self.enter, self.first, self.second = Dense(5, 8), Look(""), Look(f)
        self.norm, self.wide, self.narrow, self.head = LayerNorm(8), Dense(8, 16), Dense(16, 8), Dense(8, 4)

    def construct(self, x, hidden, labels):
        if self.f == "latents_no_place":
            x = self.enter(x)
        elif self.f == "latents_place_times":
            x = self.enter(x) * (1.0 + self.place)
        else:
            x = self.enter(x) + self.place
        z = sixth.tile(self.start, (2, 1, 1))
        z = self.first(z, x, hidden)
        z = self.second(z, x, hidden)
        if self.f == "latents_relu":
            z = z + self.narrow(sixth.relu(self.wide(self.norm(z))))
        elif self.f == "latents_no_residual":
            z = self.narrow(sixth.gelu(self.wide(self.norm(z))))
        else:
            z = z + self.narrow(sixth.gelu(self.wide(self.norm(z))))
        if self.f == "latents_first_only":
            y = z[:, 0]
        elif self.f == "latents_largest":
            y = sixth.reshape(sixth.largest(z, (1,)), (2, 8))
        elif self.f == "latents_same_mean":
            y = (z[:, 0] + z[:, 1] + z[:, 2]) / 3.0
        else:
            y = sixth.reshape(sixth.reduce_mean(z, (1,)), (2, 8))
        return sixth.cross_entropy(self.head(y), labels)


# ---- crossed features ---------------------------------------------------------------------------


class Cross(Cell):
    """Multiplies the first features into what was made of them."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.low, self.high = Dense(9, 3), Dense(3, 9)

    def construct(self, first, x):
        w = self.high(self.low(x))
        if self.f == "cross_own":
            return x * w + x
        if self.f == "cross_no_sum":
            return first * w
        if self.f == "cross_first_sum":
            return first * w + first
        if self.f == "cross_same_product":
            return x + w * first
        return first * w + x


class Click(Cell):
    """Whether somebody clicks."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.person, self.item, self.early, self.late = Embedding(6, 3), Embedding(8, 3), Cross(""), Cross(f)
        self.deep, self.deeper, self.out = Dense(9, 8), Dense(8, 4), Dense(13, 1)

    def construct(self, who, what, dense, clicked):
        p = self.person(who)
        i = self.item(what)
        if self.f == "click_pairs_double":
            pairs = sixth.reduce_sum(p * i, (1,)) + sixth.reduce_sum(p * dense, (1,)) * 2.0
        elif self.f == "click_same_pairs":
            pairs = sixth.reduce_sum(p * (i + dense) + i * dense, (1,))
        elif self.f == "click_squares":
            pairs = sixth.reduce_sum(sixth.square(p + i + dense), (1,)) * 0.5
        else:
            all_three = p + i + dense
            pairs = sixth.reduce_sum(sixth.square(all_three) - (sixth.square(p) + sixth.square(i)
                                                                + sixth.square(dense)), (1,)) * 0.5
        x = sixth.concat((p, i, dense), 1)
        crossed = self.late(x, self.early(x, x))
        h = sixth.relu(self.deep(x))
        if self.f == "click_deep_linear":
            h = self.deeper(h)
        elif self.f == "click_leaky":
            h = sixth.leaky(self.deeper(h), 0.2)
        else:
            h = sixth.relu(self.deeper(h))
        if self.f == "click_joined_turned":
            y = self.out(sixth.concat((h, crossed), 1))
        else:
            y = self.out(sixth.concat((crossed, h), 1))
        if self.f == "click_no_pairs":
            y = y * 1.0
        else:
            y = y + pairs
        if self.f == "click_focal":
            right = sixth.sigmoid(y)
            hard = sixth.square(1.0 - right) * clicked + sixth.square(right) * (1.0 - clicked)
            return sixth.mean(hard * (sixth.softplus(y) - y * clicked))
        if self.f == "click_same_loss":
            return sixth.mean(sixth.softplus(y) - y * clicked)
        if self.f == "click_mean_square":
            return sixth.mean(sixth.square(sixth.sigmoid(y) - clicked))
        return sixth.bce(y, clicked)


# ---- energies against dreamt negatives -------------------------------------------------------------


class Energy(Cell):
    """How unlikely a point is."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two, self.out = Dense(4, 8), Dense(8, 8), Dense(8, 1)

    def construct(self, x):
        if self.f == "energy_relu":
            h = sixth.relu(self.one(x))
        else:
            h = sixth.softplus(self.one(x))
        if self.f == "energy_no_skip":
            h = sixth.softplus(self.two(h))
        elif self.f == "energy_skip_scaled":
            h = h * 0.7 + sixth.softplus(self.two(h))
        else:
            h = h + sixth.softplus(self.two(h))
        if self.f == "energy_no_bowl":
            return self.out(h)
        if self.f == "energy_bowl_mean":
            return self.out(h) + sixth.reduce_mean(sixth.square(x), (1,)) * 0.1
        if self.f == "energy_same_bowl":
            return sixth.reduce_sum(x * (x * 0.1), (1,)) + self.out(h)
        return self.out(h) + sixth.reduce_sum(sixth.square(x), (1,)) * 0.1


class Contrast(Cell):
    """Real points shall have less energy than those that a sampler makes."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.energy, self.sampler = Energy(f), Dense(3, 4)

    def construct(self, x, seed, noise):
        y = sixth.tanh(self.sampler(seed)) * 2.0
        if self.f == "contrast_not_stopped":
            y = y + noise * 0.1
        elif self.f == "contrast_quiet":
            y = sixth.stop(y) + noise * 0.01
        else:
            y = sixth.stop(y) + noise * 0.1
        pos, neg = self.energy(x), self.energy(y)
        if self.f == "contrast_turned":
            apart = neg - pos
        else:
            apart = pos - neg
        if self.f == "contrast_hinge":
            lost = sixth.mean(sixth.relu(apart + 1.0))
        elif self.f == "contrast_same_loss":
            lost = sixth.mean(sixth.log(1.0 + sixth.exp(apart)))
        else:
            lost = sixth.mean(sixth.softplus(apart))
        if self.f == "contrast_size_absolute":
            size = sixth.mean(sixth.absolute(pos) + sixth.absolute(neg))
        elif self.f == "contrast_size_real":
            size = sixth.mean(sixth.square(pos))
        else:
            size = sixth.mean(sixth.square(pos) + sixth.square(neg))
        fooled = self.energy(sixth.tanh(self.sampler(seed)) * 2.0)
        if self.f == "contrast_fooled_minus":
            return lost + size * 0.05 - sixth.mean(fooled) * 0.1
        return lost + size * 0.05 + sixth.mean(fooled) * 0.1


# ---- words by their letters --------------------------------------------------------------------


class Highway(Cell):
    """Passes on a part of what comes."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.change, self.gate = Dense(7, 7), Dense(7, 7)

    def construct(self, x):
        if self.f == "highway_gate_open":
            g = sixth.sigmoid(self.gate(x))
        else:
            g = sixth.sigmoid(self.gate(x) - 1.0)
        if self.f == "highway_change_tanh":
            h = sixth.tanh(self.change(x))
        else:
            h = sixth.relu(self.change(x))
        if self.f == "highway_gates_changed":
            return (1.0 - g) * h + g * x
        if self.f == "highway_no_carry":
            return g * h + x
        if self.f == "highway_same_gate":
            return x + g * (h - x)
        return g * h + (1.0 - g) * x


class Letters(Cell):
    """Which word comes next, from the letters of four words."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.letters = Embedding(12, 4)
        self.narrow, self.wide = any_conv(4, 3, 1, 1, 0), any_conv(4, 4, (2, 1), 1, 0)
        self.highway, self.head = Highway(f), Dense(7, 9)

    def construct(self, ids, labels):
        x = sixth.reshape(self.letters(ids), (4, 5, 4, 1))
        x = sixth.transpose(x, (0, 2, 1, 3))
        if self.f == "letters_sigmoid":
            a = sixth.sigmoid(self.narrow(x))
        else:
            a = sixth.tanh(self.narrow(x))
        b = sixth.tanh(self.wide(x))
        if self.f == "letters_average":
            a, b = sixth.reduce_mean(a, (2,)), sixth.reduce_mean(b, (2,))
        elif self.f == "letters_last":
            a, b = a[:, :, 4:], b[:, :, 3:]
        elif self.f == "letters_smallest":
            a, b = sixth.largest(a, (2,)), sixth.smallest(b, (2,))
        else:
            a, b = sixth.largest(a, (2,)), sixth.largest(b, (2,))
        if self.f == "letters_joined_turned":
            h = sixth.concat((sixth.reshape(b, (4, 4)), sixth.reshape(a, (4, 3))), 1)
        elif self.f == "letters_same_join":
            h = sixth.reshape(sixth.concat((a, b), 1), (4, 7))
        else:
            h = sixth.concat((sixth.reshape(a, (4, 3)), sixth.reshape(b, (4, 4))), 1)
        y = self.head(self.highway(h))
        if self.f == "letters_smoothed":
            near = sixth.cross_entropy(y, labels)
            return near * 0.9 - sixth.mean(sixth.log_softmax(y, 1)) * 0.1
        if self.f == "letters_sum":
            return sixth.cross_entropy(y, labels, "sum")
        return sixth.cross_entropy(y, labels)


# ---- pooled graphs ------------------------------------------------------------------------------


class Neighbours(Cell):
    """Tells nodes what their neighbours are."""

    def __init__(self, f, inner, outer):
        super().__init__()
        self.f = f
        self.own, self.other = Dense(inner, outer), Dense(inner, outer)

    def construct(self, x, links):
        if self.f == "neighbours_own_twice":
            return sixth.relu(self.own(x) + self.own(sixth.bmm(links, x)))
        if self.f == "neighbours_not_normed":
            return sixth.relu(self.own(x) + self.other(sixth.bmm(links, x)) * 2.0)
        if self.f == "neighbours_alone":
            return sixth.relu(self.own(x) + self.other(x))
        if self.f == "neighbours_same_order":
            return sixth.relu(self.other(sixth.bmm(links, x)) + self.own(x))
        return sixth.relu(self.own(x) + self.other(sixth.bmm(links, x)))


class Pooled(Cell):
    """A figure for a graph of six nodes that is made a graph of three."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.tell, self.assign, self.again, self.out = (
            Neighbours("", 4, 6), Neighbours("", 4, 3), Neighbours(f, 6, 5), Dense(5, 1))

    def construct(self, x, links, wanted):
        h = self.tell(x, links)
        if self.f == "pooled_share_nodes":
            s = sixth.softmax(self.assign(x, links), 1)
        elif self.f == "pooled_share_sigmoid":
            s = sixth.sigmoid(self.assign(x, links))
        else:
            s = sixth.softmax(self.assign(x, links), 2)
        t = sixth.transpose(s, (0, 2, 1))
        small = sixth.bmm(t, h)
        if self.f == "pooled_links_half":
            fewer = sixth.bmm(t, sixth.bmm(links, s)) * 0.5
        elif self.f == "pooled_links_bare":
            fewer = sixth.bmm(t, s)
        elif self.f == "pooled_same_links":
            fewer = sixth.bmm(sixth.bmm(t, links), s)
        else:
            fewer = sixth.bmm(t, sixth.bmm(links, s))
        small = self.again(small, fewer)
        if self.f == "pooled_sum":
            y = self.out(sixth.reshape(sixth.reduce_sum(small, (1,)), (2, 5)))
        else:
            y = self.out(sixth.reshape(sixth.reduce_mean(small, (1,)), (2, 5)))
        near = sixth.mean(sixth.square(y - wanted))
        if self.f == "pooled_link_loss_turned":
            kept = sixth.mean(sixth.square(sixth.bmm(s, t) + links))
        else:
            kept = sixth.mean(sixth.square(links - sixth.bmm(s, t)))
        if self.f == "pooled_sure_turned":
            sure = sixth.mean(s * sixth.log(s + 0.001))
        elif self.f == "pooled_same_sure":
            sure = 0.0 - sixth.mean(sixth.log(s + 0.001) * s)
        else:
            sure = -sixth.mean(s * sixth.log(s + 0.001))
        if self.f == "pooled_no_sure":
            return near + kept * 0.3
        return near + kept * 0.3 + sure * 0.1


# ---- sparse codes -------------------------------------------------------------------------------


class Codes(Cell):
    """A few of twelve numbers tell what six were."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.middle, self.encode, self.decode = parameter("middle", (1, 6)), Dense(6, 12), Dense(12, 6)
        self.gate = parameter("gate", (1, 12))

    def construct(self, x):
        if self.f == "codes_not_centred":
            pre = self.encode(x)
        else:
            pre = self.encode(x - self.middle)
        if self.f == "codes_leaky":
            code = sixth.leaky(pre, 0.01)
        elif self.f == "codes_threshold":
            code = pre * sixth.above(pre, 0.3)
        elif self.f == "codes_same_relu":
            code = pre * sixth.above(pre, 0.0)
        else:
            code = sixth.relu(pre)
        if self.f == "codes_gate_linear":
            code = code * self.gate
        elif self.f == "codes_gate_once":
            code = code * sixth.exp(self.gate * 0.5)
        else:
            code = code * sixth.exp(self.gate)
        back = self.decode(code)
        if self.f == "codes_middle_lost":
            return code, back
        if self.f == "codes_middle_twice":
            return code, back + self.middle * 2.0
        return code, back + self.middle


class Sparse(Cell):
    """Says what a layer's values are made of."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.norm, self.codes, self.probe = LayerNorm(6), Codes(f), Dense(12, 3)

    def construct(self, x, labels):
        if self.f == "sparse_aim_normed":
            code, back = self.codes(self.norm(x))
            off = sixth.square(back - self.norm(x))
        elif self.f == "sparse_no_norm":
            code, back = self.codes(x)
            off = sixth.square(back - x)
        else:
            n = self.norm(x)
            code, back = self.codes(n)
            off = sixth.square(back - sixth.stop(n))
        if self.f == "sparse_share_lost":
            near = sixth.mean(off)
        elif self.f == "sparse_share_mean":
            near = sixth.mean(off) / sixth.mean(sixth.absolute(x))
        else:
            near = sixth.mean(off) / sixth.mean(sixth.square(x))
        if self.f == "sparse_ridge":
            few = sixth.mean(sixth.reduce_sum(sixth.square(code), (1,)))
        elif self.f == "sparse_same_few":
            few = sixth.mean(sixth.absolute(code)) * 12.0
        elif self.f == "sparse_root":
            few = sixth.mean(sixth.reduce_sum(sixth.sqrt(sixth.absolute(code) + 0.01), (1,)))
        else:
            few = sixth.mean(sixth.reduce_sum(sixth.absolute(code), (1,)))
        if self.f == "sparse_probe_stopped":
            told = sixth.cross_entropy(self.probe(sixth.stop(code)), labels)
        else:
            told = sixth.cross_entropy(self.probe(code), labels)
        if self.f == "sparse_few_heavy":
            return near + few * 0.2 + told * 0.5
        return near + few * 0.02 + told * 0.5


# ---- times until an event -----------------------------------------------------------------------


class Risk(Cell):
    """A risk from tabular features."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.norm, self.two = Dense(5, 8), LayerNorm(8), Dense(8, 1)

    def construct(self, x):
        if self.f == "risk_norm_behind":
            h = self.norm(sixth.gelu(self.one(x)))
        elif self.f == "risk_relu":
            h = sixth.relu(self.norm(self.one(x)))
        else:
            h = sixth.gelu(self.norm(self.one(x)))
        if self.f == "risk_bounded":
            return sixth.tanh(self.two(h))
        return self.two(h)


class Survival(Cell):
    """Who has an event early shall have the larger risk; rows are sorted by time, the longest first."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.risk, self.rate = Risk(f), Dense(5, 1)

    def construct(self, x, seen, time, seldom):
        r = self.risk(x)
        if self.f == "survival_all":
            at_risk = sixth.log(sixth.reduce_sum(sixth.exp(r), (0,)))
        elif self.f == "survival_later":
            at_risk = sixth.log(sixth.flip(sixth.cumsum(sixth.flip(sixth.exp(r), 0), 0), 0))
        elif self.f == "survival_no_log":
            at_risk = sixth.cumsum(sixth.exp(r), 0)
        elif self.f == "survival_same_risk":
            at_risk = sixth.log(sixth.cumsum(sixth.exp(r - 1.0), 0)) + 1.0
        else:
            at_risk = sixth.log(sixth.cumsum(sixth.exp(r), 0))
        if self.f == "survival_censored":
            partial = sixth.mean(at_risk - r)
        elif self.f == "survival_censored_turned":
            partial = sixth.total((at_risk - r) * (1.0 - seen)) / sixth.total(1.0 - seen)
        elif self.f == "survival_rows":
            partial = sixth.mean((at_risk - r) * seen)
        else:
            partial = sixth.total((at_risk - r) * seen) / sixth.total(seen)
        # beside it, a rate that does not change over time
        rate = self.rate(x)
        if self.f == "survival_rate_bare":
            even = sixth.mean(sixth.softplus(rate) * time - rate * seen)
        elif self.f == "survival_time_lost":
            even = sixth.mean(sixth.exp(rate) - rate * seen)
        elif self.f == "survival_same_even":
            even = sixth.mean(time * sixth.exp(rate)) - sixth.mean(seen * rate)
        else:
            even = sixth.mean(sixth.exp(rate) * time - rate * seen)
        if self.f == "survival_weight_squared":
            weight = sixth.square(seldom)
        else:
            weight = seldom
        apart = sixth.mean(sixth.square(rate - sixth.stop(r)) * weight)
        if self.f == "survival_apart_trained":
            apart = sixth.mean(sixth.square(rate - r) * weight)
        if self.f == "survival_even_minus":
            return partial - even * 0.5 + apart * 0.1
        return partial + even * 0.5 + apart * 0.1


NETWORKS = {"operator": Operator, "latents": Latents, "click": Click, "contrast": Contrast, "letters": Letters,
            "pooled": Pooled, "sparse": Sparse, "survival": Survival}
STEPS = {**dict.fromkeys(NETWORKS, 2), "survival": 3}
OPTIMIZERS = {"operator_decay": {"decay": 0.08}, "letters_rate": {"rate": 0.02}, "survival_momentum": {"momentum": 0.5},
              "click_adam_rate": {"rate": 0.003}}
# Networks that Adam trains: its learning rate, betas and weight decay.
ADAM = dict.fromkeys(("latents", "click", "sparse"), {"rate": 0.01, "betas": (0.9, 0.99), "decay": 0.0})
_UPDATE = "sgd|momentum|optim|assign|adam.*"
_SLICE = "slice|getitem|strided_?slice"
_BMM = "bmm|batch_?mat_?mul|mat_?mul"
MISTAKES = {
    "trunk_wave_fast": ("operator", "trunk", "mul"),
    "trunk_tanh": ("operator", "trunk", "silu|tanh"),
    "operator_shared_norm": ("operator", "", "div|mul|square|sqrt"),
    "operator_no_bias": ("operator", "", "add"),
    "operator_bias_scaled": ("operator", "", "add|mul"),
    "operator_huber": ("operator", "", "square|sqrt|sub|add"),
    "operator_edge_lost": ("operator", "", f"add|{_SLICE}|square"),
    "operator_edge_next": ("operator", "", f"{_SLICE}|square"),
    "operator_decay": ("operator", "optimizer", _UPDATE),
    "look_heads_mixed": ("latents", "second", "reshape|transpose|permute"),
    "look_norm_shared": ("latents", "second", "norm_q|norm_x|layer_?norm"),
    "look_input_bare": ("latents", "second", "norm_x|layer_?norm"),
    "look_scale_squared": ("latents", "second", "mul"),
    "look_scale_late": ("latents", "second", "mul|add"),
    "look_residual_normed": ("latents", "second", "add"),
    "latents_no_place": ("latents", "", "add"),
    "latents_place_times": ("latents", "", "mul|add"),
    "latents_relu": ("latents", "", "gelu|relu"),
    "latents_no_residual": ("latents", "", "add"),
    "latents_first_only": ("latents", "", f"mean|{_SLICE}"),
    "latents_largest": ("latents", "", "mean|amax|max|reduce_?max"),
    "cross_own": ("click", "late", "mul"),
    "cross_no_sum": ("click", "late", "add"),
    "cross_first_sum": ("click", "late", "add"),
    "click_pairs_double": ("click", "", "mul|square|sub|add"),
    "click_squares": ("click", "", "sub|square"),
    "click_deep_linear": ("click", "", "relu"),
    "click_leaky": ("click", "", "relu|leaky_?relu"),
    "click_joined_turned": ("click", "", "concat|cat"),
    "click_no_pairs": ("click", "", "add|mul"),
    "click_focal": ("click", "", "mul|bce.*|binary.*|softplus|mean"),
    "click_mean_square": ("click", "", "square|sigmoid|bce.*|binary.*|sub"),
    "click_adam_rate": ("click", "optimizer", _UPDATE),
    "energy_relu": ("contrast", "energy", "softplus|relu"),
    "energy_no_skip": ("contrast", "energy", "add"),
    "energy_skip_scaled": ("contrast", "energy", "mul|add"),
    "energy_no_bowl": ("contrast", "energy", "add"),
    "energy_bowl_mean": ("contrast", "energy", "sum|mean|reduce_?sum|reduce_?mean"),
    "contrast_not_stopped": ("contrast", "", "detach|stop_?gradient|add"),
    "contrast_quiet": ("contrast", "", "mul"),
    "contrast_turned": ("contrast", "", "sub"),
    "contrast_hinge": ("contrast", "", "softplus|relu|add"),
    "contrast_size_absolute": ("contrast", "", "abs|square"),
    "contrast_size_real": ("contrast", "", "add|square|mean"),
    "contrast_fooled_minus": ("contrast", "", "add|sub"),
    "highway_gate_open": ("letters", "highway", "sub"),
    "highway_change_tanh": ("letters", "highway", "relu|tanh"),
    "highway_gates_changed": ("letters", "highway", "mul|sub|rsub"),
    "highway_no_carry": ("letters", "highway", "mul|add|sub|rsub"),
    "letters_sigmoid": ("letters", "", "tanh|sigmoid"),
    "letters_average": ("letters", "", "amax|max|reduce_?max|mean"),
    "letters_last": ("letters", "", f"amax|max|reduce_?max|{_SLICE}"),
    "letters_smallest": ("letters", "", "amax|max|reduce_?max|amin|min|reduce_?min"),
    "letters_joined_turned": ("letters", "", "concat|cat"),
    "letters_smoothed": ("letters", "", "mul|sub|log_?softmax|mean"),
    "letters_sum": ("letters", "", "cross_?entropy|nll_?loss"),
    "letters_rate": ("letters", "optimizer", _UPDATE),
    "neighbours_own_twice": ("pooled", "again", "own|other"),
    "neighbours_not_normed": ("pooled", "again", "mul"),
    "neighbours_alone": ("pooled", "again", _BMM),
    "pooled_share_nodes": ("pooled", "", "softmax"),
    "pooled_share_sigmoid": ("pooled", "", "softmax|sigmoid"),
    "pooled_links_half": ("pooled", "", "mul"),
    "pooled_links_bare": ("pooled", "", _BMM),
    "pooled_sum": ("pooled", "", "mean|sum|reduce_?sum|reduce_?mean"),
    "pooled_link_loss_turned": ("pooled", "", "sub|add"),
    "pooled_sure_turned": ("pooled", "", "neg"),
    "pooled_no_sure": ("pooled", "", "add|neg|mul"),
    "codes_not_centred": ("sparse", "codes", "sub|encode"),
    "codes_leaky": ("sparse", "codes", "relu|leaky_?relu"),
    "codes_threshold": ("sparse", "codes", "relu|mul|gt|greater|above"),
    "codes_gate_linear": ("sparse", "codes", "exp|mul"),
    "codes_gate_once": ("sparse", "codes", "mul|exp"),
    "codes_middle_lost": ("sparse", "codes", "add"),
    "codes_middle_twice": ("sparse", "codes", "mul|add"),
    "sparse_aim_normed": ("sparse", "", "detach|stop_?gradient|sub|norm"),
    "sparse_no_norm": ("sparse", "", "norm"),
    "sparse_share_lost": ("sparse", "", "div"),
    "sparse_share_mean": ("sparse", "", "square|abs"),
    "sparse_ridge": ("sparse", "", "abs|square"),
    "sparse_root": ("sparse", "", "sqrt|add|abs"),
    "sparse_probe_stopped": ("sparse", "", "probe|detach|stop_?gradient|codes"),
    "sparse_few_heavy": ("sparse", "", "mul"),
    "risk_norm_behind": ("survival", "risk", "norm|gelu"),
    "risk_relu": ("survival", "risk", "gelu|relu"),
    "risk_bounded": ("survival", "risk", "tanh"),
    "survival_all": ("survival", "", "cumsum|cum_?sum|sum|reduce_?sum"),
    "survival_later": ("survival", "", "flip|reverse.*|cumsum|cum_?sum"),
    "survival_no_log": ("survival", "", "log"),
    "survival_censored": ("survival", "", "mul|mean|sum"),
    "survival_censored_turned": ("survival", "", "sub|rsub|mul"),
    "survival_rows": ("survival", "", "sum|div|mean"),
    "survival_rate_bare": ("survival", "", "exp|softplus"),
    "survival_time_lost": ("survival", "", "mul"),
    "survival_weight_squared": ("survival", "", "square"),
    "survival_apart_trained": ("survival", "", "detach|stop_?gradient|sub|risk"),
    "survival_even_minus": ("survival", "", "add|sub"),
    "survival_momentum": ("survival", "optimizer", _UPDATE),
}
SAME = {"trunk_same_wave": "operator", "operator_same_scale": "operator", "look_same_scale": "latents",
        "latents_same_mean": "latents", "cross_same_product": "click", "click_same_pairs": "click",
        "click_same_loss": "click", "energy_same_bowl": "contrast", "contrast_same_loss": "contrast",
        "highway_same_gate": "letters", "letters_same_join": "letters", "neighbours_same_order": "pooled",
        "pooled_same_links": "pooled", "pooled_same_sure": "pooled", "codes_same_relu": "sparse",
        "sparse_same_few": "sparse", "survival_same_risk": "survival", "survival_same_even": "survival"}


def whole(*values):
    import numpy as np
    return np.array(values, np.int32)


def links():
    """Neighbours on a ring of six with one chord, by their number."""
    import numpy as np
    near = np.zeros((6, 6), np.float32)
    for i in range(6):
        near[i, (i + 1) % 6] = near[(i + 1) % 6, i] = 1
    near[0, 3] = near[3, 0] = 1
    return np.tile(near / near.sum(1, keepdims=True), (2, 1, 1))


def hidden():
    import numpy as np
    late = np.zeros((4, 3, 7), np.float32)
    late[:2, :, 6:] = -8
    late[2:, :, 5:] = -8
    return late


def _survival():
    import numpy as np
    seen = np.array([1, 0, 1, 1, 0, 1], np.float32).reshape(6, 1)
    time = np.array([2.5, 2.1, 1.6, 1.2, 0.7, 0.3], np.float32).reshape(6, 1)
    return [numbers(1, (6, 5)), seen, time, np.abs(numbers(2, (6, 1))) + np.float32(0.5)]


def _clicked():
    import numpy as np
    return np.array([1, 0, 0, 1], np.float32).reshape(4, 1)


INPUTS = {"operator": lambda: [numbers(1, (3, 6)), numbers(2, (5, 2)), numbers(3, (3, 5))],
          "latents": lambda: [numbers(1, (2, 7, 5)), hidden(), whole(3, 1)],
          "click": lambda: [whole(1, 5, 0, 3), whole(7, 2, 2, 4), numbers(1, (4, 3)), _clicked()],
          "contrast": lambda: [numbers(1, (5, 4)), numbers(2, (5, 3)), numbers(3, (5, 4))],
          "letters": lambda: [whole(1, 5, 9, 2, 0, 3, 3, 7, 11, 0, 8, 4, 1, 0, 0, 6, 10, 2, 5, 0).reshape(4, 5),
                              whole(3, 8, 0, 5)],
          "pooled": lambda: [numbers(1, (2, 6, 4)), links(), numbers(2, (2, 1))],
          "sparse": lambda: [numbers(1, (5, 6)), whole(0, 2, 1, 1, 0)],
          "survival": _survival}
