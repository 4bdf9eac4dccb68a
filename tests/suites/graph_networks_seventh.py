# SPDX-License-Identifier: MIT
"""A seventh set of networks with planted mistakes for graph_mistakes.py: waves that solve an equation, channels
that weigh themselves, products of factors, copies of words, networks that make networks, twins, prototypes,
quantiles; three steps each, with momentum or with Adam.

The tables are as in graph_networks.py, graph_networks_more.py, graph_networks_third.py and
graph_networks_sixth.py. The set was written before any of it had run, and no rule was chosen on it.
A bias of all scores, which ranking_no_bias leaves out, has no effect on differences and shares of them.
"""
from graph_networks import FRAMEWORK, Cell, numbers

if FRAMEWORK:
    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_more import parameter
    from graph_networks_sixth import sixth
    from graph_networks_third import any_conv


# ---- waves that solve an equation -------------------------------------------------------------


class Sines(Cell):
    """A network of sines of a place."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two, self.out = Dense(2, 8), Dense(8, 8), Dense(8, 1)

    def construct(self, x):
        if self.f == "sines_slow":
            h = sixth.sin(self.one(x) * 2.0)
        else:
            h = sixth.sin(self.one(x) * 3.0)
        if self.f == "sines_cosine":
            h = sixth.cos(self.two(h))
        elif self.f == "sines_same_shift":
            h = sixth.cos(self.two(h) - 1.5707963267948966)
        elif self.f == "sines_skip":
            h = sixth.sin(self.two(h)) + h
        else:
            h = sixth.sin(self.two(h))
        return self.out(h)


class Equation(Cell):
    """Heat over a place and a time: differences of the network stand for derivatives."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.u = Sines(f)

    def rest(self, x, right, later):
        middle = self.u(x)
        if self.f == "heat_one_sided":
            bend = (self.u(x + right) - middle) / 0.04
        elif self.f == "heat_same_bend":
            bend = ((self.u(x + right) - middle) - (middle - self.u(x - right))) / 0.04
        else:
            bend = (self.u(x + right) - middle * 2.0 + self.u(x - right)) / 0.04
        if self.f == "heat_earlier":
            slope = (self.u(x - later) - middle) / 0.1
        else:
            slope = (self.u(x + later) - middle) / 0.1
        if self.f == "heat_faster":
            return slope - bend * 0.2
        if self.f == "heat_sign":
            return slope + bend * 0.1
        return slope - bend * 0.1

    def construct(self, x, right, later, edge, wanted):
        rest = self.rest(x, right, later)
        off = self.u(edge) - wanted
        if self.f == "heat_edge_absolute":
            bound = sixth.mean(sixth.absolute(off))
        else:
            bound = sixth.mean(sixth.square(off))
        if self.f == "heat_no_edge":
            return sixth.mean(sixth.square(rest)) * 0.01
        if self.f == "heat_edge_weight":
            return sixth.mean(sixth.square(rest)) * 0.01 + bound * 5.0
        if self.f == "heat_same_order":
            return bound + sixth.mean(sixth.square(rest * 0.1))
        return sixth.mean(sixth.square(rest)) * 0.01 + bound


# ---- channels that weigh themselves -----------------------------------------------------------


class Squeeze(Cell):
    """Weighs channels by what they have on average, and places by their channels."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.down, self.up, self.place = Dense(6, 3), Dense(3, 6), any_conv(2, 1)

    def construct(self, x):
        if self.f == "squeeze_largest":
            s = sixth.largest(sixth.reshape(x, (2, 6, 25)), 2)
        else:
            s = sixth.reduce_mean(sixth.reshape(x, (2, 6, 25)), (2,))
        s = sixth.reshape(s, (2, 6))
        if self.f == "squeeze_no_middle":
            s = self.up(self.down(s))
        else:
            s = self.up(sixth.relu(self.down(s)))
        if self.f == "squeeze_tanh":
            s = sixth.tanh(s)
        elif self.f == "squeeze_doubled":
            s = sixth.sigmoid(s) * 2.0
        else:
            s = sixth.sigmoid(s)
        y = x * sixth.reshape(s, (2, 6, 1, 1))
        if self.f == "squeeze_places_before":
            both = sixth.concat((sixth.reduce_mean(x, (1,)), sixth.largest(x, 1)), 1)
        elif self.f == "squeeze_places_order":
            both = sixth.concat((sixth.largest(y, 1), sixth.reduce_mean(y, (1,))), 1)
        else:
            both = sixth.concat((sixth.reduce_mean(y, (1,)), sixth.largest(y, 1)), 1)
        if self.f == "squeeze_no_places":
            return y
        if self.f == "squeeze_places_added":
            return y + sixth.sigmoid(self.place(both))
        return y * sixth.sigmoid(self.place(both))


class Weighed(Cell):
    """A picture's classes, and what it is like when it is turned."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.first, self.second = any_conv(3, 6), Squeeze(""), Squeeze(f)
        self.middle, self.head = any_conv(6, 6), Dense(6, 4)

    def features(self, x):
        h = sixth.elu(self.first(self.enter(x)))
        if self.f == "weighed_no_residual":
            h = sixth.elu(self.second(self.middle(h)))
        else:
            h = sixth.elu(self.second(self.middle(h)) + h)
        if self.f == "weighed_norm_power":
            return sixth.reshape(sixth.reduce_mean(sixth.square(h), (2, 3)), (2, 6))
        return sixth.reshape(sixth.reduce_mean(h, (2, 3)), (2, 6))

    def construct(self, x, labels):
        a = self.features(x)
        if self.f == "weighed_turned_axis":
            b = self.features(sixth.flip(x, 2))
        elif self.f == "weighed_not_turned":
            b = self.features(x)
        else:
            b = self.features(sixth.flip(x, 3))
        same = sixth.mean(sixth.square(a - b))
        if self.f == "weighed_same_mean":
            same = sixth.total(sixth.square(b - a)) / 12.0
        loss = sixth.cross_entropy(self.head(a), labels)
        if self.f == "weighed_half_same":
            return loss + same * 0.5
        return loss + same


# ---- products of factors ----------------------------------------------------------------------


class Factors(Cell):
    """All products of two features' factors, by the square of their sum."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.alone = Embedding(12, 5), Embedding(12, 1)

    def construct(self, ids, values):
        v = self.words(ids) * values
        if self.f == "factors_unvalued":
            one = sixth.reduce_sum(self.alone(ids), (1,))
        else:
            one = sixth.reduce_sum(self.alone(ids) * values, (1,))
        all_of = sixth.square(sixth.reduce_sum(v, (1,)))
        each = sixth.reduce_sum(sixth.square(v), (1,))
        if self.f == "factors_no_each":
            two = all_of * 0.5
        elif self.f == "factors_added":
            two = (all_of + each) * 0.5
        elif self.f == "factors_not_halved":
            two = all_of - each
        elif self.f == "factors_same_half":
            two = all_of / 2.0 - each / 2.0
        else:
            two = (all_of - each) * 0.5
        if self.f == "factors_axis":
            return v, sixth.reshape(one, (6, 1)) + sixth.reduce_mean(sixth.reshape(two, (6, 5)), (1,))
        return v, sixth.reshape(one, (6, 1)) + sixth.reduce_sum(sixth.reshape(two, (6, 5)), (1,))


class Ranking(Cell):
    """Rows of one question are put in order, by pairs and as a list."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.factors, self.one, self.two = Factors(f), Dense(20, 8), Dense(8, 1)
        self.bias = parameter("bias", (1, 1))

    def construct(self, ids, values, better, share):
        v, wide = self.factors(ids, values)
        if self.f == "ranking_shallow":
            deep = self.two(self.one(sixth.reshape(v, (6, 20))))
        elif self.f == "ranking_selu":
            deep = self.two(sixth.selu(self.one(sixth.reshape(v, (6, 20)))))
        else:
            deep = self.two(sixth.relu(self.one(sixth.reshape(v, (6, 20)))))
        if self.f == "ranking_no_bias":
            score = wide + deep
        elif self.f == "ranking_only_deep":
            score = deep + self.bias
        else:
            score = wide + deep + self.bias
        apart = score - sixth.transpose(score, (1, 0))
        if self.f == "ranking_reverse":
            pairs = sixth.softplus(apart) * better
        elif self.f == "ranking_hinge":
            pairs = sixth.relu(1.0 - apart) * better
        elif self.f == "ranking_same_pairs":
            pairs = better * (sixth.softplus(apart) - apart)
        else:
            pairs = sixth.softplus(0.0 - apart) * better
        logs = sixth.log_softmax(sixth.reshape(score, (2, 3)), 1)
        if self.f == "ranking_whole_list":
            logs = sixth.reshape(sixth.log_softmax(sixth.reshape(score, (1, 6)), 1), (2, 3))
        listed = sixth.mean(sixth.reduce_sum(share * logs, (1,)))
        if self.f == "ranking_list_sign":
            return sixth.total(pairs) / 6.0 + listed
        if self.f == "ranking_pair_count":
            return sixth.mean(pairs) - listed
        return sixth.total(pairs) / 6.0 - listed


# ---- copies of words --------------------------------------------------------------------------


class Pointer(Cell):
    """Points at words of a text, less at those that were pointed at."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.keys, self.query, self.past, self.score = Dense(6, 6), Dense(6, 6), Dense(1, 6), Dense(6, 1)

    def construct(self, text, state, cover, mask):
        q = sixth.reshape(self.query(state), (2, 1, 6))
        if self.f == "pointer_no_cover":
            e = self.keys(text) + q
        else:
            e = self.keys(text) + q + self.past(sixth.reshape(cover, (2, 5, 1)))
        if self.f == "pointer_linear":
            e = sixth.reshape(self.score(e), (2, 5))
        elif self.f == "pointer_relu":
            e = sixth.reshape(self.score(sixth.relu(e)), (2, 5))
        else:
            e = sixth.reshape(self.score(sixth.tanh(e)), (2, 5))
        if self.f == "pointer_mask_sign":
            return sixth.softmax(e - (1.0 - mask) * 10.0 * e, 1)
        if self.f == "pointer_unmasked":
            return sixth.softmax(e, 1)
        if self.f == "pointer_masked_after":
            return sixth.softmax(e, 1) * mask
        return sixth.softmax(e - (1.0 - mask) * 10000.0, 1)


class Copies(Cell):
    """Two words of a summary, made or copied."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.read, self.point = Embedding(10, 6), Dense(6, 6), Pointer(f)
        self.next, self.make, self.gate = Dense(12, 6), Dense(12, 10), Dense(12, 1)

    def word(self, text, state, cover, mask, places):
        a = self.point(text, state, cover, mask)
        seen = sixth.reshape(sixth.matmul(sixth.reshape(a, (2, 1, 5)), text), (2, 6))
        both = sixth.concat((state, seen), 1)
        if self.f == "copies_make_unsummed":
            made = sixth.sigmoid(self.make(both))
        else:
            made = sixth.softmax(self.make(both), 1)
        gate = sixth.sigmoid(self.gate(both))
        copied = sixth.reshape(sixth.matmul(sixth.reshape(a, (2, 1, 5)), places), (2, 10))
        if self.f == "copies_gate_turned":
            chance = made * (1.0 - gate) + copied * gate
        elif self.f == "copies_no_copy":
            chance = made * gate
        elif self.f == "copies_same_mix":
            chance = copied + gate * (made - copied)
        else:
            chance = made * gate + copied * (1.0 - gate)
        return a, both, chance

    def construct(self, ids, mask, places, one, two):
        text = sixth.tanh(self.read(self.words(ids)))
        if self.f == "copies_start_first":
            state = text[:, 0]
        else:
            state = text[:, 4]
        a, both, first = self.word(text, state, mask * 0.0, mask, places)
        if self.f == "copies_state_kept":
            state = state * 1.0
        else:
            state = sixth.tanh(self.next(both))
        b, both, second = self.word(text, state, a, mask, places)
        if self.f == "copies_cover_largest":
            twice = sixth.mean(sixth.reduce_sum(sixth.maximum(a, b), (1,)))
        elif self.f == "copies_same_cover":
            twice = sixth.total(sixth.minimum(b, a)) * 0.5
        else:
            twice = sixth.mean(sixth.reduce_sum(sixth.minimum(a, b), (1,)))
        told = sixth.log(first + 0.01) * one + sixth.log(second + 0.01) * two
        if self.f == "copies_second_lost":
            told = sixth.log(first + 0.01) * one + sixth.log(first + 0.01) * two
        if self.f == "copies_cover_weight":
            return twice - sixth.mean(sixth.reduce_sum(told, (1,)))
        return twice * 0.5 - sixth.mean(sixth.reduce_sum(told, (1,)))


# ---- networks that make networks --------------------------------------------------------------


class Maker(Cell):
    """Makes the weights of a layer from a task."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.weight, self.offset = Dense(4, 8), Dense(8, 24), Dense(8, 4)

    def construct(self, task):
        if self.f == "maker_silu":
            h = sixth.silu(self.one(task))
        else:
            h = sixth.mish(self.one(task))
        if self.f == "maker_turned":
            w = sixth.transpose(sixth.reshape(self.weight(h), (2, 4, 6)), (0, 2, 1))
        else:
            w = sixth.reshape(self.weight(h), (2, 6, 4))
        if self.f == "maker_unscaled":
            return w, sixth.reshape(self.offset(h), (2, 1, 4))
        if self.f == "maker_scaled_axis":
            return w / sixth.sqrt(sixth.reduce_sum(sixth.square(w), (2,)) + 0.01), \
                sixth.reshape(self.offset(h), (2, 1, 4))
        if self.f == "maker_same_scale":
            return w * sixth.rsqrt(sixth.reduce_sum(sixth.square(w), (1,)) + 0.01), \
                sixth.reshape(self.offset(h), (2, 1, 4))
        return w / sixth.sqrt(sixth.reduce_sum(sixth.square(w), (1,)) + 0.01), \
            sixth.reshape(self.offset(h), (2, 1, 4))


class Hyper(Cell):
    """Each of two tasks has a layer of its own, between layers that are shared."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.tasks, self.maker = parameter("tasks", (2, 4)), Maker(f)
        self.enter, self.norm, self.leave = Dense(5, 6), LayerNorm(6), Dense(4, 3)
        self.scale, self.gain = Dense(4, 4), parameter("gain", (1, 1, 4))

    def construct(self, x, labels):
        w, b = self.maker(self.tasks)
        if self.f == "hyper_norm_after":
            h = self.norm(sixth.relu(self.enter(x)))
        else:
            h = sixth.relu(self.norm(self.enter(x)))
        if self.f == "hyper_no_offset":
            y = sixth.bmm(h, w)
        elif self.f == "hyper_other_task":
            y = sixth.bmm(h, sixth.flip(w, 0)) + b
        else:
            y = sixth.bmm(h, w) + b
        if self.f == "hyper_gate_task":
            y = y * sixth.sigmoid(self.scale(y))
        else:
            y = y * sixth.sigmoid(sixth.reshape(self.scale(self.tasks), (2, 1, 4)))
        if self.f == "hyper_gain_added":
            y = y + self.gain
        elif self.f == "hyper_same_gain":
            y = y + y * self.gain
        elif self.f == "hyper_gain_bare":
            y = y * self.gain
        else:
            y = y * (1.0 + self.gain)
        if self.f == "hyper_no_activation":
            out = self.leave(y)
        else:
            out = self.leave(sixth.tanh(y))
        return sixth.cross_entropy(sixth.reshape(out, (8, 3)), labels)


# ---- twins ------------------------------------------------------------------------------------


class Project(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two = Dense(6, 8), Dense(8, 5)

    def construct(self, x):
        if self.f == "project_softplus":
            return self.two(sixth.softplus(self.one(x)))
        if self.f == "project_no_two":
            return self.one(x)[:, :5]
        return self.two(sixth.relu(self.one(x)))


class Twins(Cell):
    """Two views of one thing: their features agree, and tell of different things."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.body, self.project = Dense(7, 6), Project(f)

    def whiten(self, z):
        z = z - sixth.reduce_mean(z, (0,))
        if self.f == "twins_not_whitened":
            return z
        if self.f == "twins_whitened_axis":
            return z / sixth.sqrt(sixth.reduce_mean(sixth.square(z), (1,)) + 0.01)
        return z / sixth.sqrt(sixth.reduce_mean(sixth.square(z), (0,)) + 0.01)

    def construct(self, x, y, same):
        a = self.project(sixth.tanh(self.body(x)))
        if self.f == "twins_stopped":
            b = sixth.stop(self.project(sixth.tanh(self.body(y))))
        elif self.f == "twins_no_body":
            b = self.project(self.body(y))
        else:
            b = self.project(sixth.tanh(self.body(y)))
        if self.f == "twins_alike":
            c = sixth.matmul(sixth.transpose(self.whiten(a), (1, 0)), self.whiten(a)) / 8.0
        elif self.f == "twins_count":
            c = sixth.matmul(sixth.transpose(self.whiten(a), (1, 0)), self.whiten(b)) / 7.0
        elif self.f == "twins_same_count":
            c = sixth.matmul(sixth.transpose(self.whiten(a) / 8.0, (1, 0)), self.whiten(b))
        else:
            c = sixth.matmul(sixth.transpose(self.whiten(a), (1, 0)), self.whiten(b)) / 8.0
        on = sixth.total(sixth.square(c - same) * same)
        if self.f == "twins_off_absolute":
            off = sixth.total(sixth.absolute(c) * (1.0 - same))
        elif self.f == "twins_all_off":
            off = sixth.total(sixth.square(c))
        elif self.f == "twins_same_off":
            off = sixth.total(sixth.square(c * (1.0 - same)))
        else:
            off = sixth.total(sixth.square(c) * (1.0 - same))
        if self.f == "twins_off_weight":
            return on + off * 0.5
        return on + off * 0.1


# ---- prototypes -------------------------------------------------------------------------------


class Embed(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two = Dense(6, 8), Dense(8, 4)

    def construct(self, x):
        h = self.one(x)
        if self.f == "embed_leaky":
            h = sixth.leaky(h, 0.1)
        elif self.f == "embed_clamped":
            h = sixth.clamp(h, 0.0, 1.0)
        elif self.f == "embed_same_relu":
            h = sixth.maximum(h, h * 0.0)
        else:
            h = sixth.relu(h)
        if self.f == "embed_lengthless":
            y = self.two(h)
            return y / sixth.sqrt(sixth.reduce_sum(sixth.square(y), (1,)) + 0.01)
        return self.two(h)


class Prototypes(Cell):
    """Three classes of two examples; questions go to the nearest class."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.embed, self.heat = Embed(f), parameter("heat", (1, 1))

    def construct(self, known, asked, labels):
        e = sixth.reshape(self.embed(known), (3, 2, 4))
        if self.f == "prototypes_first":
            centre = e[:, :1]
        elif self.f == "prototypes_sum":
            centre = sixth.reduce_sum(e, (1,))
        else:
            centre = sixth.reduce_mean(e, (1,))
        centre = sixth.reshape(centre, (1, 3, 4))
        if self.f == "prototypes_stopped":
            centre = sixth.stop(centre)
        q = sixth.reshape(self.embed(asked), (5, 1, 4))
        if self.f == "prototypes_corner":
            far = sixth.reduce_sum(sixth.absolute(q - centre), (2,))
        elif self.f == "prototypes_mean":
            far = sixth.reduce_mean(sixth.square(q - centre), (2,))
        elif self.f == "prototypes_rooted":
            far = sixth.sqrt(sixth.reduce_sum(sixth.square(q - centre), (2,)) + 0.01)
        elif self.f == "prototypes_same_far":
            far = sixth.reduce_sum(q * q, (2,)) + sixth.reduce_sum(centre * centre, (2,)) \
                - sixth.reduce_sum(q * centre, (2,)) * 2.0
        else:
            far = sixth.reduce_sum(sixth.square(q - centre), (2,))
        far = sixth.reshape(far, (5, 3))
        if self.f == "prototypes_nearest_sign":
            score = far * sixth.exp(self.heat)
        elif self.f == "prototypes_no_heat":
            score = 0.0 - far
        elif self.f == "prototypes_heat_bare":
            score = 0.0 - far * self.heat
        else:
            score = 0.0 - far * sixth.exp(self.heat)
        if self.f == "prototypes_sum_loss":
            return sixth.cross_entropy(score, labels, "sum")
        return sixth.cross_entropy(score, labels)


# ---- quantiles --------------------------------------------------------------------------------


class Gated(Cell):
    """Goes around itself as far as a gate lets it."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two, self.gate, self.norm = Dense(6, 6), Dense(6, 6), Dense(6, 6), LayerNorm(6)

    def construct(self, x):
        if self.f == "gated_relu":
            h = self.two(sixth.relu(self.one(x)))
        else:
            h = self.two(sixth.elu(self.one(x)))
        if self.f == "gated_by_input":
            g = sixth.sigmoid(self.gate(x))
        else:
            g = sixth.sigmoid(self.gate(h))
        if self.f == "gated_no_gate":
            y = x + h
        elif self.f == "gated_highway":
            y = x * (1.0 - g) + h * g
        elif self.f == "gated_same_sum":
            y = g * h + x
        else:
            y = x + h * g
        if self.f == "gated_no_norm":
            return y
        if self.f == "gated_norm_inside":
            return x + self.norm(h * g)
        return self.norm(y)


class Quantiles(Cell):
    """Three quantiles of what follows four values."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.first, self.second = Dense(2, 6), Gated(""), Gated(f)
        self.share, self.out = Dense(6, 1), Dense(6, 3)

    def construct(self, x, wanted, levels):
        h = self.second(self.first(self.enter(x)))
        if self.f == "quantiles_last":
            y = sixth.reshape(h[:, 3:], (3, 6))
        else:
            w = self.share(h)
            if self.f == "quantiles_share_axis":
                w = sixth.softmax(w, 0)
            else:
                w = sixth.softmax(w, 1)
            y = sixth.reshape(sixth.reduce_sum(h * w, (1,)), (3, 6))
        if self.f == "quantiles_ordered":
            q = sixth.cumsum(sixth.softplus(self.out(y)), 1)
        else:
            q = sixth.cumsum(self.out(y), 1)
        off = wanted - q
        if self.f == "quantiles_turned":
            lost = sixth.maximum(levels * off, (levels + 1.0) * off)
        elif self.f == "quantiles_middle":
            lost = sixth.maximum(off * 0.5, off * -0.5)
        elif self.f == "quantiles_same_lost":
            lost = levels * sixth.relu(off) + (1.0 - levels) * sixth.relu(0.0 - off)
        else:
            lost = sixth.maximum(levels * off, (levels - 1.0) * off)
        if self.f == "quantiles_squared":
            return sixth.mean(sixth.square(lost))
        return sixth.mean(lost)


NETWORKS = {"heat": Equation, "weighed": Weighed, "ranking": Ranking, "copies": Copies, "hyper": Hyper,
            "twins": Twins, "prototypes": Prototypes, "quantiles": Quantiles}
STEPS = dict.fromkeys(NETWORKS, 3)
OPTIMIZERS = {"heat_momentum": {"momentum": 0.6}, "weighed_rate": {"rate": 0.02}, "hyper_decay": {"decay": 0.05},
              "twins_no_momentum": {"momentum": 0.0}, "ranking_first_beta": {"betas": (0.7, 0.99)},
              "copies_adam_rate": {"rate": 0.005}, "quantiles_second_beta": {"betas": (0.9, 0.95)}}
# Networks that Adam trains: its learning rate, betas and weight decay.
ADAM = dict.fromkeys(("ranking", "copies", "quantiles"), {"rate": 0.01, "betas": (0.9, 0.99), "decay": 0.0})
_UPDATE = "sgd|momentum|optim|assign|adam.*"
MISTAKES = {
    "sines_slow": ("heat", "u", "mul"),
    "sines_cosine": ("heat", "u", "sin|cos"),
    "sines_skip": ("heat", "u", "add|sin"),
    "heat_one_sided": ("heat", "", "add|mul|sub|u"),
    "heat_earlier": ("heat", "", "sub|add"),
    "heat_faster": ("heat", "", "mul"),
    "heat_sign": ("heat", "", "sub|add"),
    "heat_edge_absolute": ("heat", "", "abs|square|mul"),
    "heat_no_edge": ("heat", "", "add|mean"),
    "heat_edge_weight": ("heat", "", "mul"),
    "heat_momentum": ("heat", "optimizer", _UPDATE),
    "squeeze_largest": ("weighed", "second", "mean|amax|max|reduce_?max"),
    "squeeze_no_middle": ("weighed", "second", "relu"),
    "squeeze_tanh": ("weighed", "second", "sigmoid|tanh"),
    "squeeze_doubled": ("weighed", "second", "mul"),
    "squeeze_places_before": ("weighed", "second", "mean|amax|max|reduce_?max|concat|cat"),
    "squeeze_places_order": ("weighed", "second", "concat|cat"),
    "squeeze_no_places": ("weighed", "second", "mul|sigmoid"),
    "squeeze_places_added": ("weighed", "second", "mul|add"),
    "weighed_no_residual": ("weighed", "", "add|elu"),
    "weighed_norm_power": ("weighed", "", "square|mean|mul"),
    "weighed_turned_axis": ("weighed", "", "flip|reverse.*"),
    "weighed_not_turned": ("weighed", "", "flip|reverse.*|enter"),
    "weighed_half_same": ("weighed", "", "mul"),
    "weighed_rate": ("weighed", "optimizer", _UPDATE),
    "factors_unvalued": ("ranking", "factors", "mul"),
    "factors_no_each": ("ranking", "factors", "sub|mul"),
    "factors_added": ("ranking", "factors", "sub|add"),
    "factors_not_halved": ("ranking", "factors", "mul"),
    "factors_axis": ("ranking", "factors", "sum|mean"),
    "ranking_shallow": ("ranking", "", "relu"),
    "ranking_selu": ("ranking", "", "relu|selu"),
    "ranking_only_deep": ("ranking", "", "add"),
    "ranking_reverse": ("ranking", "", "sub|neg|softplus"),
    "ranking_hinge": ("ranking", "", "relu|softplus|sub"),
    "ranking_whole_list": ("ranking", "", "reshape|view|log_?softmax"),
    "ranking_list_sign": ("ranking", "", "sub|add"),
    "ranking_pair_count": ("ranking", "", "mean|sum|div"),
    "ranking_first_beta": ("ranking", "optimizer", _UPDATE),
    "pointer_no_cover": ("copies", "point", "add|past"),
    "pointer_linear": ("copies", "point", "tanh"),
    "pointer_relu": ("copies", "point", "relu|tanh"),
    "pointer_mask_sign": ("copies", "point", "mul|sub"),
    "pointer_unmasked": ("copies", "point", "sub|mul"),
    "pointer_masked_after": ("copies", "point", "sub|mul"),
    "copies_make_unsummed": ("copies", "", "softmax|sigmoid"),
    "copies_gate_turned": ("copies", "", "mul|sub|rsub"),
    "copies_no_copy": ("copies", "", "add|mul"),
    "copies_start_first": ("copies", "", "slice|getitem|strided_?slice|select"),
    "copies_state_kept": ("copies", "", "next|tanh|mul"),
    "copies_cover_largest": ("copies", "", "minimum|maximum"),
    "copies_second_lost": ("copies", "", "add|log|mul"),
    "copies_cover_weight": ("copies", "", "mul"),
    "copies_adam_rate": ("copies", "optimizer", _UPDATE),
    "maker_silu": ("hyper", "maker", "silu|mish|sigmoid|mul|tanh"),
    "maker_turned": ("hyper", "maker", "transpose|permute|reshape|view"),
    "maker_unscaled": ("hyper", "maker", "div|sqrt"),
    "maker_scaled_axis": ("hyper", "maker", "sum|div"),
    "hyper_norm_after": ("hyper", "", "norm|relu"),
    "hyper_no_offset": ("hyper", "", "add"),
    "hyper_other_task": ("hyper", "", "flip|reverse.*|bmm|batch_?mat_?mul"),
    "hyper_gate_task": ("hyper", "", "scale|reshape|view"),
    "hyper_gain_added": ("hyper", "", "add|mul"),
    "hyper_gain_bare": ("hyper", "", "add|mul"),
    "hyper_no_activation": ("hyper", "", "tanh"),
    "hyper_decay": ("hyper", "optimizer", _UPDATE),
    "project_softplus": ("twins", "project", "relu|softplus"),
    "project_no_two": ("twins", "project", "two|relu|slice|getitem|strided_?slice"),
    "twins_not_whitened": ("twins", "", "div|sqrt|square"),
    "twins_whitened_axis": ("twins", "", "mean"),
    "twins_stopped": ("twins", "", "detach|stop_?gradient|project"),
    "twins_no_body": ("twins", "", "tanh"),
    "twins_alike": ("twins", "", "matmul|div"),
    "twins_count": ("twins", "", "div"),
    "twins_off_absolute": ("twins", "", "abs|square"),
    "twins_all_off": ("twins", "", "mul"),
    "twins_off_weight": ("twins", "", "mul"),
    "twins_no_momentum": ("twins", "optimizer", _UPDATE),
    "embed_leaky": ("prototypes", "embed", "leaky.*|relu"),
    "embed_clamped": ("prototypes", "embed", "clamp|clip.*|relu|minimum|maximum"),
    "embed_lengthless": ("prototypes", "embed", "div|sqrt|square"),
    "prototypes_first": ("prototypes", "", "mean|slice|getitem|strided_?slice"),
    "prototypes_sum": ("prototypes", "", "mean|sum"),
    "prototypes_stopped": ("prototypes", "", "detach|stop_?gradient|mean|reshape|view"),
    "prototypes_corner": ("prototypes", "", "abs|square"),
    "prototypes_mean": ("prototypes", "", "mean|sum"),
    "prototypes_rooted": ("prototypes", "", "sqrt|add"),
    "prototypes_nearest_sign": ("prototypes", "", "sub|rsub|neg"),
    "prototypes_no_heat": ("prototypes", "", "mul|exp"),
    "prototypes_heat_bare": ("prototypes", "", "mul|exp"),
    "prototypes_sum_loss": ("prototypes", "", "cross_?entropy|nll.*|sum|div|mean|softmax.*"),
    "gated_relu": ("quantiles", "second", "elu|relu"),
    "gated_by_input": ("quantiles", "second", "gate"),
    "gated_no_gate": ("quantiles", "second", "mul|sigmoid"),
    "gated_highway": ("quantiles", "second", "mul|sub|rsub|add"),
    "gated_no_norm": ("quantiles", "second", "norm"),
    "gated_norm_inside": ("quantiles", "second", "add|norm"),
    "quantiles_last": ("quantiles", "", "sum|mul|slice|getitem|strided_?slice"),
    "quantiles_share_axis": ("quantiles", "", "softmax"),
    "quantiles_ordered": ("quantiles", "", "softplus"),
    "quantiles_turned": ("quantiles", "", "add|sub|mul"),
    "quantiles_middle": ("quantiles", "", "mul"),
    "quantiles_squared": ("quantiles", "", "square|mean"),
    "quantiles_second_beta": ("quantiles", "optimizer", _UPDATE),
}
SAME = {"sines_same_shift": "heat", "heat_same_bend": "heat", "heat_same_order": "heat",
        "weighed_same_mean": "weighed", "factors_same_half": "ranking", "ranking_same_pairs": "ranking",
        "ranking_no_bias": "ranking",
        "copies_same_mix": "copies", "copies_same_cover": "copies", "maker_same_scale": "hyper",
        "hyper_same_gain": "hyper", "twins_same_count": "twins", "twins_same_off": "twins",
        "embed_same_relu": "prototypes", "prototypes_same_far": "prototypes", "gated_same_sum": "quantiles",
        "quantiles_same_lost": "quantiles"}


def whole(*values):
    import numpy as np
    return np.array(values, np.int32)


def of(*rows):
    import numpy as np
    return np.array(rows, np.float32)


def hot(classes, labels):
    import numpy as np
    return np.eye(classes, dtype=np.float32)[labels]


_TEXT = [[1, 4, 7, 2, 9], [3, 8, 0, 5, 6]]
INPUTS = {"heat": lambda: [numbers(1, (8, 2)), of([0.2, 0.0]), of([0.0, 0.1]), numbers(2, (4, 2)), numbers(3, (4, 1))],
          "weighed": lambda: [numbers(1, (2, 3, 5, 5)), whole(1, 3)],
          "ranking": lambda: [whole(*range(24)).reshape(6, 4) * 5 % 12, numbers(1, (6, 4, 1)),
                              of([0, 1, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0] * 6, [0, 0, 0, 0, 1, 1],
                                 [0, 0, 0, 0, 0, 1], [0] * 6),
                              of([0.6, 0.3, 0.1], [0.5, 0.3, 0.2])],
          "copies": lambda: [whole(*_TEXT[0], *_TEXT[1]).reshape(2, 5), of([1, 1, 1, 1, 1], [1, 1, 1, 1, 0]),
                             hot(10, _TEXT), hot(10, [4, 8]), hot(10, [2, 3])],
          "hyper": lambda: [numbers(1, (2, 4, 5)), whole(0, 2, 1, 1, 2, 0, 0, 1)],
          "twins": lambda: [numbers(1, (8, 7)), numbers(1, (8, 7)) + numbers(2, (8, 7)) * numbers(3, (8, 7)),
                            hot(5, [0, 1, 2, 3, 4])],
          "prototypes": lambda: [numbers(1, (6, 6)), numbers(2, (5, 6)), whole(0, 2, 1, 1, 0)],
          "quantiles": lambda: [numbers(1, (3, 4, 2)), numbers(2, (3, 1)), of([0.1, 0.5, 0.9])]}
