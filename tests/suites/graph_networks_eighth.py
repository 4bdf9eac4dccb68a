# SPDX-License-Identifier: MIT
"""An eighth set of networks with planted mistakes for graph_mistakes.py: a filter of measurements, transport
between sets, trees with soft branches, slots that compete, overlap of areas, speech by gated past, retention with
weighed tasks, splines with a variance; two steps each, with momentum or with Adam, or three where a mistake
is in one of these, which only the second update shows.

The tables are as in graph_networks.py, graph_networks_more.py, graph_networks_third.py and
graph_networks_sixth.py. The set was written before any of it had run, and no rule was chosen on it.
What the second layer of speech hands on to a third is not read, so past_no_residual has no effect.
"""
from graph_networks import FRAMEWORK, Cell, numbers

if FRAMEWORK:
    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_fifth import GroupNorm
    from graph_networks_more import parameter
    from graph_networks_sixth import sixth
    from graph_networks_third import any_conv


# ---- a filter of measurements -----------------------------------------------------------------


class Update(Cell):
    """Corrects a state by a measurement, as far as both are trusted."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.look, self.noise = parameter("look", (1, 1, 2)), parameter("noise", (1, 1, 1))

    def construct(self, x, p, z):
        h = sixth.tile(self.look, (4, 1, 1))
        ht = sixth.transpose(h, (0, 2, 1))
        if self.f == "update_sure":
            spread = sixth.bmm(sixth.bmm(h, p), ht) + 0.1
        else:
            spread = sixth.bmm(sixth.bmm(h, p), ht) + sixth.softplus(self.noise)
        if self.f == "update_gain_bare":
            gain = sixth.bmm(p, ht)
        elif self.f == "update_same_gain":
            gain = sixth.bmm(p, ht) * (1.0 / spread)
        else:
            gain = sixth.bmm(p, ht) / spread
        if self.f == "update_turned":
            off = sixth.bmm(h, x) - z
        else:
            off = z - sixth.bmm(h, x)
        if self.f == "update_grows":
            p = p + sixth.bmm(gain, sixth.bmm(h, p))
        else:
            p = p - sixth.bmm(gain, sixth.bmm(h, p))
        if self.f == "update_no_log":
            told = sixth.square(off) / spread
        elif self.f == "update_rooted":
            told = sixth.log(spread) + sixth.square(off) / sixth.sqrt(spread)
        else:
            told = sixth.log(spread) + sixth.square(off) / spread
        return x + gain * off, p, told


class Filter(Cell):
    """Follows four things over three measurements."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.move, self.drift, self.update = parameter("move", (1, 2, 2)), parameter("drift", (1, 2, 1)), Update(f)

    def forward_state(self, x, p, eye):
        a = sixth.tile(self.move, (4, 1, 1)) + eye
        if self.f == "filter_not_turned":
            p = sixth.bmm(sixth.bmm(a, p), a)
        else:
            p = sixth.bmm(sixth.bmm(a, p), sixth.transpose(a, (0, 2, 1)))
        if self.f != "filter_no_growth":
            p = p + eye * sixth.softplus(self.drift)
        if self.f == "filter_state_kept":
            return x, p
        return sixth.bmm(a, x), p

    def construct(self, measured, true, eye):
        x, p = true * 0.0, eye
        told = 0.0
        for i in range(3):
            x, p = self.forward_state(x, p, eye)
            x, p, each = self.update(x, p, measured[:, i:i + 1])
            if self.f == "filter_last_alone":
                told = sixth.mean(each)
            else:
                told = told + sixth.mean(each)
        if self.f == "filter_same_off":
            return told * 0.5 + sixth.mean((true - x) * (true - x))
        return told * 0.5 + sixth.mean(sixth.square(x - true))


# ---- transport between sets -------------------------------------------------------------------


class Cost(Cell):
    """How far members of two sets are apart."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two = Dense(4, 6), Dense(4, 6)

    def construct(self, a, b):
        a = sixth.reshape(sixth.tanh(self.one(a)), (2, 5, 1, 6))
        if self.f == "cost_one_body":
            b = sixth.reshape(sixth.tanh(self.one(b)), (2, 1, 5, 6))
        else:
            b = sixth.reshape(sixth.tanh(self.two(b)), (2, 1, 5, 6))
        if self.f == "cost_corner":
            return sixth.reduce_sum(sixth.absolute(a - b), (3,))
        if self.f == "cost_same_square":
            return sixth.reduce_sum(sixth.square(a), (3,)) + sixth.reduce_sum(sixth.square(b), (3,)) \
                - sixth.reduce_sum(a * b, (3,)) * 2.0
        return sixth.reduce_sum(sixth.square(a - b), (3,))


class Transport(Cell):
    """Plans which member of one set goes to which of another, by rows and columns in turn."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.cost, self.out = Cost(f), Dense(4, 3)

    def plan(self, cost):
        if self.f == "plan_warmer":
            k = cost / -0.8
        elif self.f == "plan_sign":
            k = cost / 0.5
        else:
            k = cost / -0.5
        for _ in range(3):
            if self.f == "plan_same_rows":
                k = sixth.log_softmax(k, 2)
            else:
                k = k - sixth.logsumexp(k, 2)
            if self.f != "plan_rows_only":
                if self.f == "plan_columns_bare":
                    k = k - sixth.largest(k, 1)
                else:
                    k = k - sixth.logsumexp(k, 1)
        return sixth.exp(k)

    def construct(self, a, b, labels):
        cost = sixth.reshape(self.cost(a, b), (2, 5, 5))
        plan = self.plan(cost)
        if self.f == "transport_stopped":
            plan = sixth.stop(plan)
        if self.f == "transport_back":
            moved = sixth.bmm(sixth.transpose(plan, (0, 2, 1)), b)
        else:
            moved = sixth.bmm(plan, b)
        told = sixth.cross_entropy(sixth.reshape(self.out(moved), (10, 3)), labels)
        if self.f == "transport_no_cost":
            return told + sixth.total(plan) * 0.05
        if self.f == "transport_sum":
            return told + sixth.total(plan * cost)
        return told + sixth.total(plan * cost) * 0.05


# ---- trees with soft branches -----------------------------------------------------------------


class Tree(Cell):
    """Four leaves, which are reached by shares."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.turn, self.leaves = Dense(5, 3), parameter("leaves", (4, 3))

    def construct(self, x):
        if self.f == "tree_steep":
            d = sixth.sigmoid(self.turn(x) * 2.0)
        elif self.f == "tree_clamped":
            d = sixth.clamp(self.turn(x) * 0.5 + 0.5, 0.0, 1.0)
        else:
            d = sixth.sigmoid(self.turn(x))
        top, left, right = d[:, :1], d[:, 1:2], d[:, 2:]
        if self.f == "tree_right_as_left":
            right = d[:, 1:2]
        rest = 1.0 - top
        if self.f == "tree_same_rest":
            last = 1.0 - top - right + top * right
        else:
            last = rest * (1.0 - right)
        if self.f == "tree_top_twice":
            share = sixth.concat((top * left, top * (1.0 - left), top * right, last), 1)
        else:
            share = sixth.concat((top * left, top * (1.0 - left), rest * right, last), 1)
        if self.f == "tree_leaves_bare":
            return share, sixth.matmul(share, sixth.sigmoid(self.leaves))
        if self.f == "tree_leaves_axis":
            return share, sixth.matmul(share, sixth.softmax(self.leaves, 0))
        return share, sixth.matmul(share, sixth.softmax(self.leaves, 1))


class Forest(Cell):
    """Two trees, whose leaves are used alike."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second = Tree(""), Tree(f)

    def construct(self, x, wanted):
        share, one = self.first(x)
        used, two = self.second(x)
        if self.f == "forest_geometric":
            chance = sixth.sqrt(one * two)
        elif self.f == "forest_uneven":
            chance = one * 0.7 + two * 0.3
        else:
            chance = (one + two) * 0.5
        told = sixth.mean(sixth.reduce_sum(sixth.log(chance + 0.01) * wanted, (1,)))
        if self.f == "forest_balance_each":
            mean = share * used
        else:
            mean = sixth.reduce_mean(share, (0,)) * 0.5 + sixth.reduce_mean(used, (0,)) * 0.5
        if self.f == "forest_same_mean":
            mean = sixth.reduce_mean((share + used) * 0.5, (0,))
        if self.f == "forest_no_balance":
            return sixth.mean(mean) - told
        return sixth.total(mean * sixth.log(mean + 0.01)) - told


# ---- slots that compete -----------------------------------------------------------------------


class Slot(Cell):
    """One round in which slots compete for parts of an input."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.norm, self.query, self.gate, self.new = LayerNorm(6), Dense(6, 6), Dense(12, 6), Dense(6, 6)

    def shares(self, keys, q):
        if self.f == "slot_unscaled":
            scores = sixth.bmm(keys, sixth.transpose(q, (0, 2, 1)))
        else:
            scores = sixth.bmm(keys, sixth.transpose(q, (0, 2, 1))) * 0.4
        if self.f == "slot_axis":
            a = sixth.softmax(scores, 1)
        else:
            a = sixth.softmax(scores, 2)
        a = a + 0.01
        if self.f == "slot_not_shared":
            return a
        if self.f == "slot_shared_axis":
            return a / sixth.reduce_sum(a, (2,))
        return a / sixth.reduce_sum(a, (1,))

    def construct(self, keys, values, slots):
        if self.f == "slot_no_norm":
            q = self.query(slots)
        else:
            q = self.query(self.norm(slots))
        seen = sixth.bmm(sixth.transpose(self.shares(keys, q), (0, 2, 1)), values)
        z = sixth.sigmoid(self.gate(sixth.concat((seen, slots), 2)))
        if self.f == "slot_gate_turned":
            return slots * z + sixth.tanh(self.new(seen)) * (1.0 - z)
        if self.f == "slot_same_gate":
            return slots + (sixth.tanh(self.new(seen)) - slots) * z
        if self.f == "slot_linear":
            return slots * (1.0 - z) + self.new(seen) * z
        return slots * (1.0 - z) + sixth.tanh(self.new(seen)) * z


class Slots(Cell):
    """Three slots, which share what they show of six parts."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.start, self.keys, self.values = parameter("start", (1, 3, 6)), Dense(5, 6), Dense(5, 6)
        self.round, self.show, self.cover = Slot(f), Dense(6, 30), Dense(6, 6)

    def construct(self, x):
        slots = sixth.tile(self.start, (2, 1, 1))
        keys, values = self.keys(x), self.values(x)
        if self.f == "slots_values_as_keys":
            keys = self.values(x)
        slots = self.round(keys, values, slots)
        if self.f != "slots_once":
            slots = self.round(keys, values, slots)
        if self.f == "slots_cover_axis":
            cover = sixth.softmax(self.cover(slots), 2)
        else:
            cover = sixth.softmax(self.cover(slots), 1)
        shown = sixth.reshape(self.show(slots), (2, 3, 6, 5))
        back = sixth.reduce_sum(shown * sixth.reshape(cover, (2, 3, 6, 1)), (1,))
        if self.f == "slots_sum":
            return sixth.total(sixth.square(sixth.reshape(back, (2, 6, 5)) - x))
        return sixth.mean(sixth.square(sixth.reshape(back, (2, 6, 5)) - x))


# ---- overlap of areas -------------------------------------------------------------------------


class Wide(Cell):
    """Sees places that are apart."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.norm = GroupNorm(2, 6)
        self.far = any_conv(6, 6) if f == "wide_near" else any_conv(6, 6, 3, 1, 2, 2)

    def construct(self, x):
        if self.f == "wide_norm_after":
            h = self.norm(sixth.relu(self.far(x)))
        elif self.f == "wide_no_norm":
            h = sixth.relu(self.far(x))
        else:
            h = sixth.relu(self.norm(self.far(x)))
        if self.f == "wide_no_residual":
            return h
        return x + h


class Areas(Cell):
    """Finds an area, judged by overlap and by hard places."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.wide, self.leave = any_conv(3, 6), Wide(f), any_conv(6, 1, 1, 1, 0)

    def overlap(self, p, t):
        both = sixth.total(p * t)
        if self.f == "overlap_squared":
            all_of = sixth.total(sixth.square(p)) + sixth.total(t)
        else:
            all_of = sixth.total(p) + sixth.total(t)
        if self.f == "overlap_not_doubled":
            return 1.0 - (both + 1.0) / (all_of + 1.0)
        if self.f == "overlap_union":
            return 1.0 - (both + 1.0) / (all_of - both + 1.0)
        if self.f == "overlap_same_rest":
            return (all_of - both * 2.0) / (all_of + 1.0)
        return 1.0 - (both * 2.0 + 1.0) / (all_of + 1.0)

    def hard(self, p, t):
        right = p * t + (1.0 - p) * (1.0 - t)
        if self.f == "hard_easy":
            weight = sixth.square(right)
        elif self.f == "hard_even":
            weight = 1.0 - right
        elif self.f == "hard_same_weight":
            weight = (right - 1.0) * (right - 1.0)
        else:
            weight = sixth.square(1.0 - right)
        if self.f == "hard_stopped":
            weight = sixth.stop(weight)
        return sixth.mean(weight * sixth.log(right + 0.01))

    def construct(self, x, t):
        p = sixth.sigmoid(self.leave(self.wide(sixth.elu(self.enter(x)))))
        if self.f == "areas_hard_sign":
            return self.overlap(p, t) + self.hard(p, t)
        if self.f == "areas_overlap_alone":
            return self.overlap(p, t)
        return self.overlap(p, t) - self.hard(p, t)


# ---- speech by gated past ---------------------------------------------------------------------


class Past(Cell):
    """Joins each moment with an earlier one, as far as a gate lets it."""

    def __init__(self, f, by):
        super().__init__()
        self.f, self.by = f, by
        self.now, self.before, self.open, self.opened = Dense(6, 6), Dense(6, 6), Dense(6, 6), Dense(6, 6)
        self.skip, self.back = Dense(6, 6), Dense(6, 6)

    def earlier(self, x):
        if self.f == "past_nearer":
            return sixth.concat((x[:, :1] * 0.0, x[:, :7]), 1)
        if self.f == "past_future":
            return sixth.concat((x[:, self.by:], x[:, :self.by] * 0.0), 1)
        if self.f == "past_round":
            return sixth.concat((x[:, 8 - self.by:], x[:, :8 - self.by]), 1)
        return sixth.concat((x[:, :self.by] * 0.0, x[:, :8 - self.by]), 1)

    def construct(self, x):
        e = self.earlier(x)
        if self.f == "past_alone":
            h = sixth.tanh(self.now(x))
        else:
            h = sixth.tanh(self.now(x) + self.before(e))
        g = self.open(x) + self.opened(e)
        if self.f == "past_gate_tanh":
            h = h * sixth.tanh(g)
        elif self.f == "past_gate_added":
            h = h + sixth.sigmoid(g)
        elif self.f == "past_same_gate":
            h = h * (sixth.tanh(g * 0.5) * 0.5 + 0.5)
        else:
            h = h * sixth.sigmoid(g)
        if self.f == "past_no_residual":
            return self.skip(h), self.back(h)
        return self.skip(h), x + self.back(h)


class Speech(Cell):
    """What follows eight sounds, by layers that look farther and farther back."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.sounds, self.first, self.second = Embedding(9, 6), Past("", 1), Past(f, 2)
        self.one, self.two = Dense(6, 8), Dense(8, 9)

    def construct(self, ids, following):
        a, x = self.first(self.sounds(ids))
        b, x = self.second(x)
        if self.f == "speech_last_skip":
            s = b
        elif self.f == "speech_same_skips":
            s = (a * 2.0 + b * 2.0) * 0.5
        elif self.f == "speech_not_skipped":
            s = x + a
        else:
            s = a + b
        if self.f == "speech_no_middle":
            y = self.two(self.one(sixth.relu(s)))
        else:
            y = self.two(sixth.relu(self.one(sixth.relu(s))))
        if self.f == "speech_sum":
            return sixth.cross_entropy(sixth.reshape(y, (16, 9)), following, "sum")
        return sixth.cross_entropy(sixth.reshape(y, (16, 9)), following)


# ---- retention with weighed tasks -------------------------------------------------------------


class Retain(Cell):
    """Attention without a softmax, which forgets by a factor for each place."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.q, self.k, self.v, self.swing, self.out = (Dense(6, 6) for _ in range(5))
        self.norm = LayerNorm(6)

    def construct(self, x, decay):
        a = sixth.bmm(self.q(x), sixth.transpose(self.k(x), (0, 2, 1))) * 0.4
        if self.f == "retain_forever":
            y = sixth.bmm(a, self.v(x))
        elif self.f == "retain_turned":
            y = sixth.bmm(a * sixth.transpose(decay, (0, 2, 1)), self.v(x))
        elif self.f == "retain_softmax":
            y = sixth.bmm(sixth.softmax(a, 2) * decay, self.v(x))
        elif self.f == "retain_same_decay":
            y = sixth.bmm(decay * a, self.v(x))
        else:
            y = sixth.bmm(a * decay, self.v(x))
        if self.f == "retain_no_norm":
            y = y * sixth.silu(self.swing(x))
        elif self.f == "retain_swing_relu":
            y = self.norm(y) * sixth.relu(self.swing(x))
        elif self.f == "retain_swing_own":
            y = self.norm(y) * sixth.silu(self.swing(y))
        elif self.f == "retain_same_swing":
            y = self.norm(y) * (self.swing(x) * sixth.sigmoid(self.swing(x)))
        else:
            y = self.norm(y) * sixth.silu(self.swing(x))
        return self.out(y)


class Tasks(Cell):
    """Two tasks, each weighed by how sure it is."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.retain, self.kind, self.size = Dense(4, 6), Retain(f), Dense(6, 3), Dense(6, 1)
        self.doubt, self.more = parameter("doubt", (1,)), parameter("more", (1,))

    def construct(self, x, decay, kinds, sizes):
        h = sixth.silu(self.enter(x))
        if self.f == "tasks_no_residual":
            h = self.retain(h, decay)
        else:
            h = h + self.retain(h, decay)
        kind = sixth.cross_entropy(sixth.reshape(self.kind(h), (10, 3)), kinds)
        size = sixth.mean(sixth.square(self.size(h) - sizes))
        if self.f == "tasks_surer":
            one = kind * sixth.exp(self.doubt) + self.doubt
        elif self.f == "tasks_doubtless":
            one = kind * sixth.exp(0.0 - self.doubt)
        elif self.f == "tasks_same_doubt":
            one = kind / sixth.exp(self.doubt) + self.doubt
        else:
            one = kind * sixth.exp(0.0 - self.doubt) + self.doubt
        if self.f == "tasks_one_doubt":
            two = size * sixth.exp(0.0 - self.doubt) * 0.5 + self.doubt
        elif self.f == "tasks_not_halved":
            two = size * sixth.exp(0.0 - self.more) + self.more
        else:
            two = size * sixth.exp(0.0 - self.more) * 0.5 + self.more
        if self.f == "tasks_product":
            return one * two
        return one + two


# ---- splines with a variance ------------------------------------------------------------------


class Spline(Cell):
    """A sum of functions of single values, each a sum of bells."""

    def __init__(self, f, inner, outer):
        super().__init__()
        self.f, self.inner = f, inner
        self.bells, self.base = Dense(inner * 5, outer), Dense(inner, outer)

    def construct(self, x, grid):
        d = (sixth.reshape(x, (6, self.inner, 1)) - grid) * 2.0
        if self.f == "spline_wider":
            d = d * 0.7
        if self.f == "spline_corner":
            b = sixth.exp(0.0 - sixth.absolute(d))
        elif self.f == "spline_same_bell":
            b = sixth.exp(d * d * -1.0)
        elif self.f == "spline_shares":
            b = sixth.softmax(0.0 - sixth.square(d), 2)
        else:
            b = sixth.exp(0.0 - sixth.square(d))
        y = self.bells(sixth.reshape(b, (6, self.inner * 5)))
        if self.f == "spline_no_base":
            return y
        if self.f == "spline_base_linear":
            return y + self.base(x)
        return y + self.base(sixth.silu(x))


class Splines(Cell):
    """A value and its variance."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second = Spline("", 3, 4), Spline(f, 4, 2)

    def construct(self, x, grid, wanted):
        if self.f == "splines_squashed":
            y = self.second(sixth.tanh(self.first(x, grid)), grid)
        else:
            y = self.second(self.first(x, grid), grid)
        middle, log = y[:, :1], y[:, 1:]
        if self.f == "splines_changed":
            middle, log = y[:, 1:], y[:, :1]
        off = sixth.square(wanted - middle)
        if self.f == "splines_deviation":
            told = log + off / sixth.exp(log * 0.5)
        elif self.f == "splines_surer":
            told = log + off * sixth.exp(log)
        elif self.f == "splines_no_log":
            told = off / sixth.exp(log)
        elif self.f == "splines_same_variance":
            told = log + off * sixth.exp(0.0 - log)
        elif self.f == "splines_variance_stopped":
            told = log + off / sixth.stop(sixth.exp(log))
        else:
            told = log + off / sixth.exp(log)
        if self.f == "splines_not_halved":
            return sixth.mean(told)
        return sixth.mean(told) * 0.5


NETWORKS = {"filter": Filter, "transport": Transport, "forest": Forest, "slots": Slots, "areas": Areas,
            "speech": Speech, "tasks": Tasks, "splines": Splines}
STEPS = {**dict.fromkeys(NETWORKS, 2), "filter": 3, "speech": 3}
OPTIMIZERS = {"filter_momentum": {"momentum": 0.6}, "areas_rate": {"rate": 0.02}, "tasks_decay": {"decay": 0.05},
              "speech_first_beta": {"betas": (0.7, 0.99)}, "forest_adam_rate": {"rate": 0.005}}
# Networks that Adam trains: its learning rate, betas and weight decay.
ADAM = dict.fromkeys(("forest", "speech", "splines"), {"rate": 0.01, "betas": (0.9, 0.99), "decay": 0.0})
_UPDATE = "sgd|momentum|optim|assign|adam.*"
_SLICE = "slice|getitem|strided_?slice"
MISTAKES = {
    "update_sure": ("filter", "update", "add|softplus"),
    "update_gain_bare": ("filter", "update", "div"),
    "update_turned": ("filter", "update", "sub"),
    "update_grows": ("filter", "update", "sub|add"),
    "update_no_log": ("filter", "update", "add|log"),
    "update_rooted": ("filter", "update", "sqrt|div"),
    "filter_not_turned": ("filter", "", "bmm|batch_?mat_?mul|transpose|permute"),
    "filter_no_growth": ("filter", "", "add|mul|softplus"),
    "filter_state_kept": ("filter", "", "bmm|batch_?mat_?mul|update"),
    "filter_last_alone": ("filter", "", "add|mean"),
    "filter_momentum": ("filter", "optimizer", _UPDATE),
    "cost_one_body": ("transport", "cost", "one|two"),
    "cost_corner": ("transport", "cost", "abs|square"),
    "plan_warmer": ("transport", "", "div"),
    "plan_sign": ("transport", "", "div"),
    "plan_rows_only": ("transport", "", "sub|logsumexp|log|exp|sum"),
    "plan_columns_bare": ("transport", "", "amax|max|reduce_?max|logsumexp|log|exp|sum"),
    "transport_stopped": ("transport", "", "detach|stop_?gradient|exp"),
    "transport_back": ("transport", "", "transpose|permute|bmm|batch_?mat_?mul"),
    "transport_no_cost": ("transport", "", "mul|sum"),
    "transport_sum": ("transport", "", "mul"),
    "tree_steep": ("forest", "second", "mul"),
    "tree_clamped": ("forest", "second", "clamp|clip.*|minimum|maximum|sigmoid|add|mul"),
    "tree_right_as_left": ("forest", "second", _SLICE),
    "tree_top_twice": ("forest", "second", "mul"),
    "tree_leaves_bare": ("forest", "second", "sigmoid|softmax"),
    "tree_leaves_axis": ("forest", "second", "softmax"),
    "forest_geometric": ("forest", "", "sqrt|mul|add"),
    "forest_uneven": ("forest", "", "mul|add"),
    "forest_balance_each": ("forest", "", "mul|mean"),
    "forest_no_balance": ("forest", "", "mean|sum|mul|log|add"),
    "forest_adam_rate": ("forest", "optimizer", _UPDATE),
    "slot_unscaled": ("slots", "round", "mul"),
    "slot_axis": ("slots", "round", "softmax"),
    "slot_not_shared": ("slots", "round", "div|sum"),
    "slot_shared_axis": ("slots", "round", "sum"),
    "slot_no_norm": ("slots", "round", "norm"),
    "slot_gate_turned": ("slots", "round", "mul|sub|rsub"),
    "slot_linear": ("slots", "round", "tanh"),
    "slots_values_as_keys": ("slots", "", "keys|values"),
    "slots_once": ("slots", "", "round"),
    "slots_cover_axis": ("slots", "", "softmax"),
    "slots_sum": ("slots", "", "sum|mean"),
    "wide_near": ("areas", "wide", "far|conv.*"),
    "wide_norm_after": ("areas", "wide", "norm|relu"),
    "wide_no_norm": ("areas", "wide", "norm"),
    "wide_no_residual": ("areas", "wide", "add"),
    "overlap_squared": ("areas", "", "square"),
    "overlap_not_doubled": ("areas", "", "mul"),
    "overlap_union": ("areas", "", "sub|mul"),
    "hard_easy": ("areas", "", "sub|rsub|square"),
    "hard_even": ("areas", "", "square"),
    "hard_stopped": ("areas", "", "detach|stop_?gradient|square"),
    "areas_hard_sign": ("areas", "", "sub|add"),
    "areas_overlap_alone": ("areas", "", "sub"),
    "areas_rate": ("areas", "optimizer", _UPDATE),
    "past_nearer": ("speech", "second", f"concat|cat|mul|{_SLICE}"),
    "past_future": ("speech", "second", f"concat|cat|mul|{_SLICE}"),
    "past_round": ("speech", "second", f"concat|cat|mul|{_SLICE}"),
    "past_alone": ("speech", "second", "add|before"),
    "past_gate_tanh": ("speech", "second", "tanh|sigmoid"),
    "past_gate_added": ("speech", "second", "add|mul"),
    "speech_last_skip": ("speech", "", "add"),
    "speech_not_skipped": ("speech", "", "add"),
    "speech_no_middle": ("speech", "", "relu"),
    "speech_sum": ("speech", "", "cross_?entropy|nll.*|sum|div|mean|softmax.*"),
    "speech_first_beta": ("speech", "optimizer", _UPDATE),
    "retain_forever": ("tasks", "retain", "mul"),
    "retain_turned": ("tasks", "retain", "transpose|permute|mul"),
    "retain_softmax": ("tasks", "retain", "softmax"),
    "retain_no_norm": ("tasks", "retain", "norm"),
    "retain_swing_relu": ("tasks", "retain", "relu|silu|sigmoid|mul"),
    "retain_swing_own": ("tasks", "retain", "swing"),
    "tasks_no_residual": ("tasks", "", "add"),
    "tasks_surer": ("tasks", "", "sub|rsub|neg|exp"),
    "tasks_doubtless": ("tasks", "", "add"),
    "tasks_one_doubt": ("tasks", "", "sub|rsub|exp|mul|add"),
    "tasks_not_halved": ("tasks", "", "mul"),
    "tasks_product": ("tasks", "", "mul|add"),
    "tasks_decay": ("tasks", "optimizer", _UPDATE),
    "spline_wider": ("splines", "second", "mul"),
    "spline_corner": ("splines", "second", "abs|square"),
    "spline_shares": ("splines", "second", "softmax|exp"),
    "spline_no_base": ("splines", "second", "add|base"),
    "spline_base_linear": ("splines", "second", "silu|sigmoid|mul|base"),
    "splines_squashed": ("splines", "", "tanh"),
    "splines_changed": ("splines", "", _SLICE),
    "splines_deviation": ("splines", "", "mul|exp"),
    "splines_surer": ("splines", "", "mul|div"),
    "splines_no_log": ("splines", "", "add"),
    "splines_variance_stopped": ("splines", "", "detach|stop_?gradient|exp"),
    "splines_not_halved": ("splines", "", "mul"),
}
SAME = {"update_same_gain": "filter", "filter_same_off": "filter", "cost_same_square": "transport",
        "plan_same_rows": "transport", "tree_same_rest": "forest", "forest_same_mean": "forest",
        "slot_same_gate": "slots", "overlap_same_rest": "areas", "hard_same_weight": "areas",
        "past_same_gate": "speech", "past_no_residual": "speech", "speech_same_skips": "speech",
        "retain_same_decay": "tasks", "retain_same_swing": "tasks", "tasks_same_doubt": "tasks",
        "spline_same_bell": "splines", "splines_same_variance": "splines"}


def whole(*values):
    import numpy as np
    return np.array(values, np.int32)


def _filter():
    import numpy as np
    return [numbers(1, (4, 3, 1)), numbers(2, (4, 2, 1)), np.tile(np.eye(2, dtype=np.float32), (4, 1, 1))]


def _forest():
    import numpy as np
    return [numbers(1, (6, 5)), np.eye(3, dtype=np.float32)[[0, 2, 1, 1, 0, 2]]]


def _areas():
    import numpy as np
    return [numbers(1, (2, 3, 6, 6)), (numbers(2, (2, 1, 6, 6)) > 0).astype(np.float32)]


def _tasks():
    import numpy as np
    apart = np.arange(5)[:, None] - np.arange(5)[None, :]
    decay = np.where(apart >= 0, 0.8 ** np.maximum(apart, 0), 0).astype(np.float32)
    return [numbers(1, (2, 5, 4)), np.tile(decay, (2, 1, 1)), whole(0, 2, 1, 1, 0, 2, 2, 0, 1, 0),
            numbers(2, (2, 5, 1))]


def _splines():
    import numpy as np
    return [numbers(1, (6, 3)), np.linspace(-1, 1, 5, dtype=np.float32).reshape(1, 1, 5), numbers(2, (6, 1))]


INPUTS = {"filter": _filter,
          "transport": lambda: [numbers(1, (2, 5, 4)), numbers(2, (2, 5, 4)), whole(0, 2, 1, 1, 0, 2, 2, 0, 1, 0)],
          "forest": _forest,
          "slots": lambda: [numbers(1, (2, 6, 5))],
          "areas": _areas,
          "speech": lambda: [whole(1, 4, 7, 2, 0, 3, 8, 5, 6, 6, 1, 0, 2, 7, 4, 3).reshape(2, 8),
                             whole(4, 7, 2, 0, 3, 8, 5, 1, 6, 1, 0, 2, 7, 4, 3, 8)],
          "tasks": _tasks, "splines": _splines}
