# SPDX-License-Identifier: MIT
"""A fifth set of networks with planted mistakes for graph_mistakes.py: fields, flows, agents, adapters and
attention of other kinds.

The tables are as in graph_networks.py, graph_networks_more.py and graph_networks_third.py. The set was
written before any of it had run, and no rule was chosen on it.
"""
from graph_networks import FRAMEWORK, Cell, numbers

if FRAMEWORK == "torch":
    import torch
    from torch import nn

    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_fourth import fourth
    from graph_networks_more import parameter
    from graph_networks_third import any_conv

    class fifth(fourth):
        logsumexp = staticmethod(lambda x, axis: torch.logsumexp(x, axis, True))
        selu = staticmethod(lambda x: nn.functional.selu(x))
        mish = staticmethod(lambda x: nn.functional.mish(x))

    def GroupNorm(groups, size):
        return nn.GroupNorm(groups, size)
elif FRAMEWORK == "mindspore":
    from mindspore import nn, ops

    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_fourth import fourth
    from graph_networks_more import parameter
    from graph_networks_third import any_conv

    class fifth(fourth):
        @staticmethod
        def logsumexp(x, axis):
            return ops.logsumexp(x, axis, True)

        @staticmethod
        def selu(x):
            return ops.selu(x)

        @staticmethod
        def mish(x):
            return ops.mish(x)

    def GroupNorm(groups, size):
        return nn.GroupNorm(groups, size)


# ---- a field of radiance ----------------------------------------------------------------------


class Waves(Cell):
    """A place as sines and cosines of growing frequency."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def construct(self, x):
        if self.f == "field_frequency":
            return fifth.concat((x, fifth.sin(x), fifth.cos(x), fifth.sin(x * 4.0), fifth.cos(x * 2.0)), -1)
        if self.f == "field_sines":
            return fifth.concat((x, fifth.sin(x), fifth.sin(x), fifth.sin(x * 2.0), fifth.cos(x * 2.0)), -1)
        if self.f == "field_same_waves":
            y = x + x
            return fifth.concat((x, fifth.sin(x), fifth.cos(x), fifth.sin(y), fifth.cos(y)), -1)
        return fifth.concat((x, fifth.sin(x), fifth.cos(x), fifth.sin(x * 2.0), fifth.cos(x * 2.0)), -1)


class Dense3(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two, self.light, self.colour = Dense(15, 8), Dense(23, 8), Dense(8, 1), Dense(8, 3)

    def construct(self, x):
        h = fifth.relu(self.one(x))
        if self.f == "field_no_skip":
            h = fifth.relu(self.two(fifth.concat((h, x * 0.0), -1)))
        else:
            h = fifth.relu(self.two(fifth.concat((h, x), -1)))
        if self.f == "field_density_relu":
            dense = fifth.relu(self.light(h))
        else:
            dense = fifth.softplus(self.light(h))
        return dense, fifth.sigmoid(self.colour(h))


class Field(Cell):
    """Light along a ray of five samples."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.waves, self.inside = Waves(f), Dense3(f)

    def construct(self, x, steps, seen):
        dense, colour = self.inside(self.waves(x))
        dim = dense * steps
        if self.f == "field_no_steps":
            dim = dense * 0.5
        alpha = 1.0 - fifth.exp(-dim)
        if self.f == "field_inclusive":
            past = fifth.exp(-fifth.cumsum(dim, 1))
        elif self.f == "field_same_past":
            past = fifth.exp(dim - fifth.cumsum(dim, 1))
        else:
            past = fifth.exp(-(fifth.cumsum(dim, 1) - dim))
        if self.f == "field_no_past":
            weight = alpha * 1.0
        else:
            weight = alpha * past
        light = fifth.reduce_sum(weight * colour, (1,))
        if self.f == "field_background":
            light = light + (1.0 - fifth.reduce_sum(weight, (1,)))
        return fifth.mean(fifth.square(light - seen))


# ---- a flow -----------------------------------------------------------------------------------


class Couple(Cell):
    """Half of a vector moves and stretches the other half."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.hidden, self.stretch, self.move = Dense(3, 8), Dense(8, 3), Dense(8, 3)

    def construct(self, x):
        a, b = x[:, :3], x[:, 3:]
        h = fifth.tanh(self.hidden(a))
        s = self.stretch(h)
        if self.f == "flow_stretch_sigmoid":
            s = fifth.sigmoid(s)
        else:
            s = fifth.tanh(s)
        if self.f == "flow_move_first":
            b = (b + self.move(h)) * fifth.exp(s)
        elif self.f == "flow_shrinks":
            b = b * fifth.exp(-s) + self.move(h)
        elif self.f == "flow_same_shift":
            b = self.move(h) + fifth.exp(s) * b
        else:
            b = b * fifth.exp(s) + self.move(h)
        if self.f == "flow_no_swap":
            return fifth.concat((a, b), 1), fifth.reduce_sum(s, (1,))
        if self.f == "flow_log_mean":
            return fifth.concat((b, a), 1), fifth.reduce_mean(s, (1,))
        return fifth.concat((b, a), 1), fifth.reduce_sum(s, (1,))


class Flow(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second, self.third = Couple(""), Couple(f), Couple("")

    def construct(self, x):
        x, one = self.first(x)
        x, two = self.second(x)
        x, three = self.third(x)
        if self.f == "flow_one_lost":
            log = one + three
        elif self.f == "flow_same_logs":
            log = one + (two + three)
        else:
            log = one + two + three
        prior = fifth.reduce_sum(fifth.square(x), (1,)) * 0.5
        if self.f == "flow_log_sign":
            return fifth.mean(prior + log)
        return fifth.mean(prior - log)


# ---- an agent that learns values --------------------------------------------------------------


class Values(Cell):
    """A value of the place and an advantage of each of four actions."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.body, self.value, self.gain = Dense(5, 8), Dense(8, 1), Dense(8, 4)

    def construct(self, x):
        h = fifth.relu(self.body(x))
        gain = self.gain(h)
        if self.f == "agent_gain_largest":
            return self.value(h) + gain - fifth.largest(gain, 1)
        if self.f == "agent_gain_free":
            return self.value(h) + gain
        if self.f == "agent_same_gain":
            return self.value(h) + (gain - fifth.reduce_mean(gain, (1,)))
        return self.value(h) + gain - fifth.reduce_mean(gain, (1,))


class Agent(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.values = Values(f)

    def construct(self, x, hot, reward, after, over):
        mine = fifth.reduce_sum(self.values(x) * hot, (1,))
        if self.f == "agent_not_stopped":
            best = fifth.largest(self.values(after), 1)
        elif self.f == "agent_mean_next":
            best = fifth.stop(fifth.reduce_mean(self.values(after), (1,)))
        else:
            best = fifth.stop(fifth.largest(self.values(after), 1))
        if self.f == "agent_over":
            wanted = reward + best * 0.9
        elif self.f == "agent_discount":
            wanted = reward + best * (1.0 - over) * 0.99
        elif self.f == "agent_same_over":
            wanted = (1.0 - over) * best * 0.9 + reward
        else:
            wanted = reward + best * (1.0 - over) * 0.9
        off = fifth.absolute(mine - wanted)
        if self.f == "agent_square":
            return fifth.mean(off * off * 0.5)
        return fifth.mean(fifth.where(off, 1.0, off - 0.5, off * off * 0.5))


# ---- adapters of low rank ---------------------------------------------------------------------


class Adapted(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.base, self.low, self.high = Dense(8, 8), Dense(8, 2), Dense(2, 8)

    def construct(self, x):
        h = self.base(x)
        if self.f == "adapter_not_frozen":
            h = h * 1.0
        else:
            h = fifth.stop(h)
        if self.f == "adapter_scale":
            return h + self.high(self.low(x)) * 0.5
        if self.f == "adapter_activation":
            return h + self.high(fifth.relu(self.low(x))) * 2.0
        if self.f == "adapter_of_base":
            return h + self.high(self.low(h)) * 2.0
        return h + self.high(self.low(x)) * 2.0


class Adapters(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.norm = Embedding(11, 8), LayerNorm(8)
        self.first, self.second, self.head = Adapted(""), Adapted(f), Dense(8, 11)

    def construct(self, ids, labels):
        x = self.words(ids)
        if self.f == "adapter_norm_after":
            x = self.norm(x + fifth.mish(self.first(x)))
        else:
            x = x + fifth.mish(self.first(self.norm(x)))
        if self.f == "adapter_same_add":
            x = self.second(x) + x
        else:
            x = x + self.second(x)
        y = self.head(x)
        if self.f == "adapter_labels":
            return fifth.cross_entropy(fifth.reshape(y[:, 1:], (9, 11)), fifth.reshape(labels[:, 1:], (9,)))
        if self.f == "adapter_temperature":
            y = y / 0.7
        return fifth.cross_entropy(fifth.reshape(y, (12, 11)), fifth.reshape(labels, (12,)))


# ---- attention among neighbours ---------------------------------------------------------------


class Looks(Cell):
    """A graph's nodes weigh their neighbours."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.turn, self.mine, self.theirs = Dense(6, 6), Dense(6, 1), Dense(6, 1)

    def construct(self, x, edges):
        h = self.turn(x)
        if self.f == "looks_both_mine":
            scores = self.mine(h) + fifth.transpose(self.mine(h), (1, 0))
        elif self.f == "looks_same_scores":
            scores = fifth.transpose(self.theirs(h), (1, 0)) + self.mine(h)
        else:
            scores = self.mine(h) + fifth.transpose(self.theirs(h), (1, 0))
        if self.f == "looks_slope":
            scores = fifth.leaky(scores, 0.01)
        else:
            scores = fifth.leaky(scores, 0.2)
        if self.f == "looks_all":
            w = fifth.softmax(scores, 1)
        elif self.f == "looks_columns":
            w = fifth.softmax(scores + (edges - 1.0) * 1000.0, 0)
        elif self.f == "looks_light_mask":
            w = fifth.softmax(scores + (edges - 1.0) * 2.0, 1)
        elif self.f == "looks_same_mask":
            w = fifth.softmax(scores - (1.0 - edges) * 1000.0, 1)
        else:
            w = fifth.softmax(scores + (edges - 1.0) * 1000.0, 1)
        if self.f == "looks_raw":
            return fifth.matmul(w, x)
        return fifth.matmul(w, h)


class Graph(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second, self.head = Looks(""), Looks(f), Dense(6, 3)

    def construct(self, x, edges, labels):
        h = fifth.elu(self.first(x, edges))
        if self.f == "looks_late_elu":
            h = self.second(h, edges)
        else:
            h = fifth.elu(self.second(h, edges))
        if self.f == "looks_sum":
            return fifth.cross_entropy(self.head(h), labels, "sum")
        return fifth.cross_entropy(self.head(h), labels)


# ---- linear attention over time ---------------------------------------------------------------


class Linear(Cell):
    """Attention whose softmax is replaced by a feature of its own."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.query, self.key, self.value, self.out = Dense(8, 8), Dense(8, 8), Dense(8, 8), Dense(8, 8)

    def construct(self, x, mask):
        if self.f == "linear_query_raw":
            q = self.query(x)
        else:
            q = fifth.elu(self.query(x)) + 1.0
        if self.f == "linear_key_relu":
            k = fifth.relu(self.key(x)) + 1.0
        elif self.f == "linear_same_key":
            k = 1.0 + fifth.elu(self.key(x))
        else:
            k = fifth.elu(self.key(x)) + 1.0
        scores = fifth.bmm(q, fifth.transpose(k, (0, 2, 1)))
        if self.f == "linear_not_causal":
            scores = scores * 1.0
        else:
            scores = scores * mask
        total = fifth.reduce_sum(scores, (2,))
        if self.f == "linear_no_total":
            w = scores / 6.0
        elif self.f == "linear_eps":
            w = scores / (total + 1.0)
        elif self.f == "linear_total_axis":
            w = scores / (fifth.reduce_sum(scores, (1,)) + 0.001)
        else:
            w = scores / (total + 0.001)
        return self.out(fifth.bmm(w, self.value(x)))


class Forecast(Cell):
    """Forecasts the next values of a series from normalized ones."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.place = Dense(2, 8), parameter("place", (6, 8))
        self.first, self.second, self.norm, self.head = Linear(""), Linear(f), LayerNorm(8), Dense(8, 2)

    def construct(self, x, mask, wanted):
        middle = fifth.reduce_mean(x, (1,))
        wide = fifth.sqrt(fifth.reduce_mean(fifth.square(x - middle), (1,)) + 0.00001)
        if self.f == "forecast_no_middle":
            z = x / wide
        else:
            z = (x - middle) / wide
        h = self.enter(z) + self.place
        h = h + self.first(h, mask)
        h = h + self.second(self.norm(h), mask)
        y = self.head(h)
        if self.f == "forecast_back":
            y = y + middle
        elif self.f == "forecast_same_back":
            y = middle + wide * y
        else:
            y = y * wide + middle
        if self.f == "forecast_shift":
            return fifth.mean(fifth.absolute(y[:, 1:] - wanted[:, :5]))
        return fifth.mean(fifth.absolute(y - wanted))


# ---- views that agree -------------------------------------------------------------------------


class Small(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.conv, self.wide = any_conv(3, 4), any_conv(4, 6, 3, 2, 1)
        self.norm = GroupNorm(3, 6) if f == "views_groups" else GroupNorm(2, 6)
        self.out = Dense(6, 5)

    def construct(self, x):
        if self.f == "views_selu":
            h = fifth.selu(self.conv(x))
        else:
            h = fifth.silu(self.conv(x))
        if self.f == "views_norm_late":
            h = self.norm(fifth.silu(self.wide(h)))
        else:
            h = fifth.silu(self.norm(self.wide(h)))
        return self.out(fifth.reshape(fifth.reduce_mean(h, (2, 3)), (4, 6)))


class Views(Cell):
    """Two views of the same pictures; one predicts the other."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.net, self.one, self.two = Small(f), Dense(5, 8), Dense(8, 5)

    def long(self, x):
        if self.f == "views_no_root":
            return x / (fifth.reduce_sum(fifth.square(x), (1,)) + 0.0001)
        return x / fifth.sqrt(fifth.reduce_sum(fifth.square(x), (1,)) + 0.0001)

    def construct(self, x, y):
        a, b = self.net(x), self.net(y)
        if self.f == "views_no_predictor":
            p, q = a, b
        else:
            p, q = self.two(fifth.relu(self.one(a))), self.two(fifth.relu(self.one(b)))
        if self.f == "views_no_stop":
            left = fifth.reduce_sum(self.long(p) * self.long(b), (1,))
        elif self.f == "views_itself":
            left = fifth.reduce_sum(self.long(p) * self.long(fifth.stop(a)), (1,))
        else:
            left = fifth.reduce_sum(self.long(p) * self.long(fifth.stop(b)), (1,))
        right = fifth.reduce_sum(self.long(q) * self.long(fifth.stop(a)), (1,))
        if self.f == "views_same_mean":
            return 1.0 - (fifth.mean(left) + fifth.mean(right)) * 0.5
        if self.f == "views_one_side":
            return 1.0 - fifth.mean(left)
        if self.f == "views_sign":
            return 1.0 - fifth.mean(left - right) * 0.5
        return 1.0 - fifth.mean(left + right) * 0.5


# ---- a mixture of densities -------------------------------------------------------------------


class Bells(Cell):
    """Three bells: share, middle and width from one input."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.hidden, self.share, self.middle, self.width = Dense(4, 8), Dense(8, 3), Dense(8, 3), Dense(8, 3)

    def construct(self, x):
        h = fifth.tanh(self.hidden(x))
        if self.f == "bells_share_sigmoid":
            share = fifth.log(fifth.sigmoid(self.share(h)))
        elif self.f == "bells_same_share":
            share = self.share(h) - fifth.logsumexp(self.share(h), 1)
        else:
            share = fifth.log_softmax(self.share(h), 1)
        if self.f == "bells_width_exp":
            width = fifth.exp(self.width(h)) + 0.1
        elif self.f == "bells_narrow":
            width = fifth.softplus(self.width(h)) + 0.01
        else:
            width = fifth.softplus(self.width(h)) + 0.1
        return share, self.middle(h), width


class Density(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.bells = Bells(f)

    def construct(self, x, y):
        share, middle, width = self.bells(x)
        z = (y - middle) / width
        if self.f == "bells_no_log_width":
            log = fifth.square(z) * -0.5
        elif self.f == "bells_half":
            log = -fifth.square(z) - fifth.log(width)
        elif self.f == "bells_same_log":
            log = -(fifth.square(z) * 0.5 + fifth.log(width))
        else:
            log = fifth.square(z) * -0.5 - fifth.log(width)
        if self.f == "bells_largest":
            return fifth.mean(fifth.largest(share + log, 1)) * -1.0
        if self.f == "bells_axis":
            return fifth.mean(fifth.logsumexp(share + log, 0)) * -1.0
        return fifth.mean(fifth.logsumexp(share + log, 1)) * -1.0


NETWORKS = {"field": Field, "flow": Flow, "agent": Agent, "adapters": Adapters, "graph": Graph,
            "forecast": Forecast, "views": Views, "density": Density}
OPTIMIZERS = {"agent_rate": {"rate": 0.02}, "agent_momentum": {"momentum": 0.8}, "flow_decay": {"decay": 0.05},
              "flow_momentum_missing": {"momentum": 0.0}}
_UPDATE = "sgd|momentum|optim|assign"
MISTAKES = {
    "field_frequency": ("field", "waves", "mul|sin"),
    "field_sines": ("field", "waves", "sin|cos"),
    "field_no_skip": ("field", "inside", "mul|concat|cat"),
    "field_density_relu": ("field", "inside", "relu|softplus"),
    "field_no_steps": ("field", "", "mul"),
    "field_inclusive": ("field", "", "cumsum|sub|neg|exp"),
    "field_no_past": ("field", "", "mul"),
    "field_background": ("field", "", "add|sub|rsub|sum"),
    "flow_stretch_sigmoid": ("flow", "second", "sigmoid|tanh"),
    "flow_move_first": ("flow", "second", "add|mul"),
    "flow_shrinks": ("flow", "second", "neg|exp"),
    "flow_no_swap": ("flow", "second", "concat|cat"),
    "flow_log_mean": ("flow", "second", "mean|sum"),
    "flow_one_lost": ("flow", "", "add"),
    "flow_log_sign": ("flow", "", "add|sub"),
    "flow_decay": ("flow", "optimizer", _UPDATE),
    "flow_momentum_missing": ("flow", "optimizer", _UPDATE),
    "agent_gain_largest": ("agent", "values", "amax|max|reduce_?max|mean|sub"),
    "agent_gain_free": ("agent", "values", "add|sub"),
    "agent_not_stopped": ("agent", "", "detach|stop_?gradient|amax|max|reduce_?max|mul"),
    "agent_mean_next": ("agent", "", "mean|amax|max|reduce_?max"),
    "agent_over": ("agent", "", "mul"),
    "agent_discount": ("agent", "", "mul"),
    "agent_square": ("agent", "", "where|select|mul"),
    "agent_rate": ("agent", "optimizer", _UPDATE),
    "agent_momentum": ("agent", "optimizer", _UPDATE),
    "adapter_not_frozen": ("adapters", "second", "mul|detach|stop_?gradient|base"),
    "adapter_scale": ("adapters", "second", "mul"),
    "adapter_activation": ("adapters", "second", "relu|low|high"),
    "adapter_of_base": ("adapters", "second", "low|dense|linear|matmul"),
    "adapter_norm_after": ("adapters", "", "norm|layer_?norm|add|first"),
    "adapter_labels": ("adapters", "", "slice|getitem|strided_?slice|cross_?entropy|reshape"),
    "adapter_temperature": ("adapters", "", "div|head|cross_?entropy"),
    "looks_both_mine": ("graph", "second", "mine|theirs|transpose|permute|add"),
    "looks_slope": ("graph", "second", "leaky.*"),
    "looks_all": ("graph", "second", "softmax|add"),
    "looks_columns": ("graph", "second", "softmax|transpose"),
    "looks_light_mask": ("graph", "second", "mul"),
    "looks_raw": ("graph", "second", "matmul"),
    "looks_late_elu": ("graph", "", "elu|head|second"),
    "looks_sum": ("graph", "", "cross_?entropy|nll.*|sum|mean"),
    "linear_query_raw": ("forecast", "second", "elu|add|query|bmm|batch_?mat_?mul"),
    "linear_key_relu": ("forecast", "second", "relu|elu"),
    "linear_not_causal": ("forecast", "second", "mul"),
    "linear_no_total": ("forecast", "second", "div|add|sum"),
    "linear_eps": ("forecast", "second", "add"),
    "linear_total_axis": ("forecast", "second", "sum"),
    "forecast_no_middle": ("forecast", "", "sub|div"),
    "forecast_back": ("forecast", "", "add|mul"),
    "forecast_shift": ("forecast", "", "slice|getitem|strided_?slice|sub"),
    "views_groups": ("views", "net.norm", "group_?norm"),
    "views_selu": ("views", "net", "selu|silu|sigmoid|mul"),
    "views_norm_late": ("views", "net", "silu|norm|group_?norm|sigmoid|mul"),
    "views_no_root": ("views", "", "div|sqrt|add"),
    "views_no_predictor": ("views", "", "mul|square|sum|two|one|relu"),
    "views_no_stop": ("views", "", "detach|stop_?gradient|square|mul|div"),
    "views_itself": ("views", "", "square|mul|div|detach|stop_?gradient"),
    "views_one_side": ("views", "", "add|mean"),
    "views_sign": ("views", "", "sub|add"),
    "bells_share_sigmoid": ("density", "bells", "sigmoid|log|log_?softmax"),
    "bells_width_exp": ("density", "bells", "exp|softplus"),
    "bells_narrow": ("density", "bells", "add"),
    "bells_no_log_width": ("density", "", "mul|sub"),
    "bells_half": ("density", "", "neg|mul"),
    "bells_largest": ("density", "", "amax|max|reduce_?max|logsumexp|exp"),
    "bells_axis": ("density", "", "logsumexp|amax|max|reduce_?max|sum|exp|reduce_?sum"),
}
SAME = {"field_same_waves": "field", "field_same_past": "field", "flow_same_shift": "flow",
        "flow_same_logs": "flow", "agent_same_gain": "agent", "agent_same_over": "agent",
        "adapter_same_add": "adapters", "looks_same_scores": "graph", "looks_same_mask": "graph",
        "linear_same_key": "forecast", "forecast_same_back": "forecast", "views_same_mean": "views",
        "bells_same_share": "density", "bells_same_log": "density"}


def whole(*values):
    import numpy as np
    return np.array(values, np.int32)


def _agent():
    import numpy as np
    hot = np.eye(4, dtype=np.float32)[[0, 3, 1, 2, 1, 0]]
    return [numbers(1, (6, 5)), hot, numbers(2, (6, 1)), numbers(3, (6, 5)),
            np.float32([0, 0, 1, 0, 0, 1]).reshape(6, 1)]


def _graph():
    import numpy as np
    edges = np.eye(7, dtype=np.float32)
    for a, b in ((0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 2)):
        edges[a, b] = edges[b, a] = 1
    return [numbers(1, (7, 6)), edges, whole(0, 2, 1, 1, 0, 2, 1)]


def _forecast():
    import numpy as np
    return [numbers(1, (3, 6, 2), 2.0), np.tril(np.ones((6, 6), np.float32)), numbers(2, (3, 6, 2), 2.0)]


INPUTS = {"field": lambda: [numbers(1, (3, 5, 3)), abs(numbers(2, (3, 5, 1), 0.1)), abs(numbers(3, (3, 1, 3)))],
          "flow": lambda: [numbers(1, (5, 6))],
          "agent": _agent,
          "adapters": lambda: [whole(*range(12)).reshape(3, 4) * 7 % 11, whole(*range(12)).reshape(3, 4) * 5 % 11],
          "graph": _graph,
          "forecast": _forecast,
          "views": lambda: [numbers(1, (4, 3, 6, 6)), numbers(2, (4, 3, 6, 6))],
          "density": lambda: [numbers(1, (6, 4)), numbers(2, (6, 1))]}
