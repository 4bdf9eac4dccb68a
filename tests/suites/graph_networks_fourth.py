# SPDX-License-Identifier: MIT
"""A fourth set of networks with planted mistakes for graph_mistakes.py: other families again, and mistakes
of bounds, of windows, of signs and of shapes.

The tables are as in graph_networks.py, graph_networks_more.py and graph_networks_third.py. The set was
written before any of it had run, and no rule was chosen on it.
"""
from graph_networks import FRAMEWORK, Cell, numbers

if FRAMEWORK == "torch":
    import torch
    from torch import nn

    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_more import parameter
    from graph_networks_third import any_conv, third

    class fourth(third):
        clamp = staticmethod(lambda x, low, high: torch.clamp(x, low, high))
        minimum = staticmethod(lambda x, y: torch.minimum(x, y))
        absolute = staticmethod(lambda x: torch.abs(x))
        softplus = staticmethod(lambda x: nn.functional.softplus(x))
        elu = staticmethod(lambda x: nn.functional.elu(x))
        hardswish = staticmethod(lambda x: nn.functional.hardswish(x))
        power = staticmethod(lambda x, n: torch.pow(x, n))
        stack = staticmethod(lambda parts, axis: torch.stack(parts, axis))
        roll = staticmethod(lambda x, by, axis: torch.roll(x, by, axis))
        bmm = staticmethod(lambda x, y: torch.bmm(x, y))
        where = staticmethod(lambda x, limit, y, z: torch.where(x > limit, y, z))
elif FRAMEWORK == "mindspore":
    from mindspore import ops

    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_more import parameter
    from graph_networks_third import any_conv, third

    class fourth(third):
        @staticmethod
        def clamp(x, low, high):
            return ops.clamp(x, low, high)

        @staticmethod
        def minimum(x, y):
            return ops.minimum(x, y)

        @staticmethod
        def absolute(x):
            return ops.abs(x)

        @staticmethod
        def softplus(x):
            return ops.softplus(x)

        @staticmethod
        def elu(x):
            return ops.elu(x)

        @staticmethod
        def hardswish(x):
            return ops.hardswish(x)

        @staticmethod
        def power(x, n):
            return ops.pow(x, n)

        @staticmethod
        def stack(parts, axis):
            return ops.stack(parts, axis)

        @staticmethod
        def roll(x, by, axis):
            return ops.roll(x, by, axis)

        @staticmethod
        def bmm(x, y):
            return ops.bmm(x, y)

        @staticmethod
        def where(x, limit, y, z):
            return ops.where(x > limit, y, z)


# ---- inverted residuals -----------------------------------------------------------------------


class Inverted(Cell):
    """A block of a small network for phones: widen, filter each channel, narrow."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.wide, self.narrow = any_conv(4, 8, 1, 1, 0), any_conv(8, 4, 1, 1, 0)
        if f == "mobile_groups":
            self.each = any_conv(8, 8, 3, 1, 1, 1, 4)
        else:
            self.each = any_conv(8, 8, 3, 1, 1, 1, 8)

    def construct(self, x):
        if self.f == "mobile_swish_relu6":
            h = fourth.relu6(self.wide(x))
        elif self.f == "mobile_same_swish":
            h = self.wide(x)
            h = h * fourth.clamp(h + 3.0, 0.0, 6.0) / 6.0
        else:
            h = fourth.hardswish(self.wide(x))
        h = self.each(h)
        if self.f == "mobile_bound":
            h = fourth.clamp(h, 0.0, 0.6)
        else:
            h = fourth.clamp(h, 0.0, 6.0)
        h = self.narrow(h)
        if self.f == "mobile_last_relu":
            h = fourth.relu(h)
        if self.f == "mobile_residual_old":
            return h + h
        return x + h


class Mobile(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.stem, self.first, self.second, self.head = any_conv(3, 4), Inverted(""), Inverted(f), Dense(4, 5)

    def construct(self, x, labels):
        x = self.second(self.first(fourth.relu(self.stem(x))))
        if self.f == "mobile_corner":
            x = x[:, :, 1:, 1:]
        if self.f == "mobile_same_pool":
            x = fourth.reduce_sum(x, (2, 3)) / 36.0
        else:
            x = fourth.reduce_mean(x, (2, 3))
        return fourth.cross_entropy(self.head(fourth.reshape(x, (3, 4))), labels)


# ---- a mixer of patches -----------------------------------------------------------------------


class Mix(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.norm1, self.norm2 = LayerNorm(8), LayerNorm(8)
        self.across, self.back, self.up, self.down = Dense(6, 12), Dense(12, 6), Dense(8, 16), Dense(16, 8)

    def construct(self, x):
        h = fourth.transpose(self.norm1(x), (0, 2, 1))
        h = fourth.transpose(self.back(fourth.gelu(self.across(h))), (0, 2, 1))
        if self.f == "mixer_roll":
            h = fourth.roll(h, 1, 1)
        if self.f == "mixer_same_residual":
            x = h + x
        else:
            x = x + h
        h = self.norm2(x)
        if self.f == "mixer_elu":
            h = fourth.elu(self.up(h))
        else:
            h = fourth.gelu(self.up(h))
        h = self.down(h)
        if self.f == "mixer_layer_scale":
            h = h * 0.8
        if self.f == "mixer_difference":
            return h - x
        return x + h


class Mixer(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.first, self.second, self.head = Dense(5, 8), Mix(""), Mix(f), Dense(8, 4)

    def construct(self, x):
        x = self.second(self.first(self.enter(x)))
        if self.f == "mixer_largest":
            x = fourth.largest(x, 1)
        elif self.f == "mixer_skip_first":
            x = fourth.reduce_mean(x[:, 1:], (1,))
        else:
            x = fourth.reduce_mean(x, (1,))
        return self.head(x)


# ---- recommendation ---------------------------------------------------------------------------


class Machine(Cell):
    """Pairs of features: the square of their sum less the sum of their squares."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def construct(self, x):
        total = fourth.reduce_sum(x, (1,))
        if self.f == "deepfm_square_late":
            own = fourth.square(fourth.reduce_sum(x, (1,)))
        else:
            own = fourth.reduce_sum(fourth.square(x), (1,))
        if self.f == "deepfm_sum":
            pairs = fourth.square(total) + own
        else:
            pairs = fourth.square(total) - own
        if self.f == "deepfm_no_half":
            return pairs
        if self.f == "deepfm_same_half":
            return pairs / 2.0
        return pairs * 0.5


class Recommend(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.table, self.machine = Embedding(20, 4), Machine(f)
        self.deep, self.out, self.head = Dense(12, 8), Dense(8, 4), Dense(4, 1)

    def construct(self, ids, clicked):
        if self.f == "deepfm_offset":
            ids = ids - 1
        x = self.table(ids)
        wide = fourth.reshape(self.machine(x), (6, 4))
        if self.f == "deepfm_flat_order":
            flat = fourth.reshape(fourth.transpose(x, (0, 2, 1)), (6, 12))
        else:
            flat = fourth.reshape(x, (6, 12))
        h = self.out(fourth.relu(self.deep(flat)))
        if self.f == "deepfm_product":
            score = self.head(wide * h)
        else:
            score = self.head(wide + h)
        if self.f == "deepfm_same_loss":
            p = fourth.sigmoid(score)
            return fourth.mean(-(clicked * fourth.log(p) + (1.0 - clicked) * fourth.log(1.0 - p)))
        if self.f == "deepfm_label":
            clicked = 1.0 - clicked
        if self.f == "deepfm_weighted":
            return fourth.mean(fourth.softplus(score) - clicked * score * 2.0)
        return fourth.mean(fourth.softplus(score) - clicked * score)


# ---- distances in a space ---------------------------------------------------------------------


class Place(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.hidden, self.norm, self.out = Dense(6, 8), LayerNorm(8), Dense(8, 4)

    def construct(self, x):
        h = self.norm(fourth.elu(self.hidden(x)))
        if self.f == "triplet_softplus":
            h = fourth.softplus(h)
        return self.out(h)


class Triplet(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.place = Place(f)

    def construct(self, x, near, far):
        if self.f == "triplet_same_order":
            c, b, a = self.place(far), self.place(near), self.place(x)
        else:
            a, b, c = self.place(x), self.place(near), self.place(far)
        if self.f == "triplet_manhattan":
            close = fourth.reduce_sum(fourth.absolute(a - b), (1,))
        else:
            close = fourth.reduce_sum(fourth.square(a - b), (1,))
        if self.f == "triplet_pair":
            apart = fourth.reduce_sum(fourth.square(b - c), (1,))
        else:
            apart = fourth.reduce_sum(fourth.square(a - c), (1,))
        if self.f == "triplet_swapped":
            margin = apart - close + 20.0
        elif self.f == "triplet_margin":
            margin = close - apart + 30.0
        elif self.f == "triplet_same_margin":
            margin = (close + 20.0) - apart
        else:
            margin = close - apart + 20.0
        if self.f == "triplet_no_bound":
            return fourth.mean(margin * 1.0 - 10.0)
        return fourth.mean(fourth.relu(margin))


# ---- a state space ----------------------------------------------------------------------------


class Scan(Cell):
    """A state that fades at a pace the input chooses."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.pace, self.enter, self.leave, self.gate = Dense(6, 6), Dense(6, 6), Dense(6, 6), Dense(6, 6)
        self.fade, self.through = parameter("fade", (6,)), parameter("through", (6,))

    def construct(self, x, h):
        if self.f == "scan_pace_exp":
            dt = fourth.exp(self.pace(x))
        else:
            dt = fourth.softplus(self.pace(x))
        if self.f == "scan_fade_sign":
            a = fourth.exp(dt * fourth.exp(self.fade) * -0.1)
        elif self.f == "scan_same_fade":
            a = 1.0 / fourth.exp(fourth.exp(self.fade) * dt)
        else:
            a = fourth.exp(dt * fourth.exp(self.fade) * -1.0)
        if self.f == "scan_no_pace":
            h = a * h + self.enter(x)
        else:
            h = a * h + dt * self.enter(x)
        y = self.leave(h)
        if self.f == "scan_through_state":
            y = y + self.through * h
        else:
            y = y + self.through * x
        if self.f == "scan_gate_sigmoid":
            return y * fourth.sigmoid(self.gate(x)), h
        return y * fourth.silu(self.gate(x)), h


class States(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second, self.head = Scan(""), Scan(f), Dense(6, 3)

    def construct(self, x, h):
        one, state = self.first(x[:, 0], h)
        two, state = self.first(x[:, 1], state)
        if self.f == "scan_steps_swapped":
            x = fourth.stack((two, one), 1)
        else:
            x = fourth.stack((one, two), 1)
        one, state = self.second(x[:, 0], h)
        if self.f == "scan_state_reset":
            state = state * 0.0
        two, state = self.second(x[:, 1], state)
        return self.head(two)


# ---- a policy ---------------------------------------------------------------------------------


class Body(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two = Dense(5, 8), Dense(8, 8)

    def construct(self, x):
        h = fourth.tanh(self.one(x))
        if self.f == "policy_skip_tanh":
            return fourth.tanh(self.two(h) + h)
        return fourth.tanh(self.two(h))


class Policy(Cell):
    """The loss of PPO."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.body, self.actor, self.critic = Body(f), Dense(8, 4), Dense(8, 1)

    def construct(self, x, hot, old, gain, back):
        h = self.body(x)
        log = fourth.log_softmax(self.actor(h), -1)
        mine = fourth.reduce_sum(log * hot, (1,))
        if self.f == "policy_ratio":
            ratio = fourth.exp(old - mine)
        else:
            ratio = fourth.exp(mine - old)
        if self.f == "policy_clip_low":
            bound = fourth.clamp(ratio, 0.4, 1.2)
        else:
            bound = fourth.clamp(ratio, 0.8, 1.2)
        if self.f == "policy_advantage":
            gain = gain - fourth.reduce_mean(gain, (0,))
        if self.f == "policy_maximum":
            gained = fourth.maximum(ratio * gain, bound * gain)
        elif self.f == "policy_same_minimum":
            gained = fourth.minimum(bound * gain, ratio * gain)
        else:
            gained = fourth.minimum(ratio * gain, bound * gain)
        value = self.critic(h)
        if self.f == "policy_value_detached":
            value = self.critic(fourth.stop(h))
        off = fourth.mean(fourth.square(value - back))
        if self.f == "policy_entropy_sum":
            spread = -fourth.total(fourth.exp(log) * log)
        else:
            spread = -fourth.mean(fourth.exp(log) * log)
        if self.f == "policy_entropy_sign":
            return off * 0.5 - fourth.mean(gained) + spread * 0.05
        if self.f == "policy_same_loss":
            return (off * 0.5 - spread * 0.05) - fourth.mean(gained)
        return off * 0.5 - fourth.mean(gained) - spread * 0.05


# ---- translation with additive attention ------------------------------------------------------


class Additive(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.query, self.key, self.score = Dense(6, 6), Dense(6, 6), Dense(6, 1)

    def construct(self, query, states):
        q = fourth.reshape(self.query(query), (3, 1, 6))
        if self.f == "translate_product":
            mixed = fourth.tanh(q * self.key(states))
        elif self.f == "translate_same_order":
            mixed = fourth.tanh(self.key(states) + q)
        else:
            mixed = fourth.tanh(q + self.key(states))
        w = fourth.softmax(self.score(mixed), 1)
        if self.f == "translate_sharper":
            w = fourth.power(w, 2.0)
        if self.f == "translate_keys":
            states = self.key(states)
        if self.f == "translate_last":
            return fourth.reduce_sum(w * states, (1,))[:, 0] * 0.0 + states[:, -1]
        return fourth.reshape(fourth.reduce_sum(w * states, (1,)), (3, 6))


class Translate(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.forth, self.attend = Embedding(12, 6), Dense(6, 6), Additive(f)
        self.step, self.head = Dense(12, 6), Dense(6, 12)

    def construct(self, ids, labels):
        states = fourth.elu(self.forth(self.words(ids)))
        query = states[:, 4]
        if self.f == "translate_first_state":
            query = states[:, 0]
        context = self.attend(query, states)
        joined = fourth.concat((query, context), 1)
        if self.f == "translate_zero_context":
            joined = fourth.concat((query, context * 0.0), 1)
        h = fourth.tanh(self.step(joined))
        if self.f == "translate_smooth":
            log = fourth.log_softmax(self.head(h), -1)
            return fourth.cross_entropy(self.head(h), labels) * 0.9 - fourth.mean(log) * 0.1
        return fourth.cross_entropy(self.head(h), labels)


# ---- detection --------------------------------------------------------------------------------


class Towers(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.shared, self.kind, self.box = any_conv(4, 6), any_conv(6, 1), any_conv(6, 4)

    def construct(self, x):
        h = fourth.relu(self.shared(x))
        if self.f == "detect_box_exp":
            return self.kind(h), fourth.exp(self.box(h) * 0.1)
        if self.f == "detect_box_early":
            return self.kind(h), self.box(h * 1.05)
        return self.kind(h), self.box(h)


class Detect(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.stem, self.towers = any_conv(3, 4, 3, 2, 1), Towers(f)

    def construct(self, x, there, boxes):
        score, box = self.towers(fourth.hardswish(self.stem(x)))
        p = fourth.sigmoid(score)
        right = there * p + (1.0 - there) * (1.0 - p)
        if self.f == "detect_focus":
            weight = fourth.power(1.0 - right, 1.0)
        elif self.f == "detect_focus_right":
            weight = fourth.power(right, 2.0)
        elif self.f == "detect_same_focus":
            weight = (1.0 - right) * (1.0 - right)
        else:
            weight = fourth.power(1.0 - right, 2.0)
        kind = fourth.mean(weight * fourth.log(right) * -1.0)
        off = fourth.absolute(box - boxes)
        if self.f == "detect_smooth_limit":
            smooth = fourth.where(off, 0.5, off - 0.5, off * off * 0.5)
        elif self.f == "detect_square":
            smooth = off * off * 0.5
        else:
            smooth = fourth.where(off, 1.0, off - 0.5, off * off * 0.5)
        if self.f == "detect_all_boxes":
            return kind + fourth.mean(smooth)
        if self.f == "detect_same_share":
            return kind + fourth.mean(there * smooth)
        return kind + fourth.mean(smooth * there)


# ---- a codebook -------------------------------------------------------------------------------


class Nearest(Cell):
    """Puts the nearest of four codes, softly, in place of a vector."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.codes = parameter("codes", (4, 5))

    def construct(self, x):
        if self.f == "code_similarity":
            far = fourth.matmul(x, fourth.transpose(self.codes, (1, 0))) * -2.0
        else:
            far = fourth.reduce_sum(fourth.square(self.codes), (1,))
            far = fourth.reshape(far, (1, 4)) - fourth.matmul(x, fourth.transpose(self.codes, (1, 0))) * 2.0
        if self.f == "code_farthest":
            w = fourth.softmax(far, -1)
        elif self.f == "code_same_sign":
            w = fourth.softmax(0.0 - far, -1)
        else:
            w = fourth.softmax(far * -1.0, -1)
        return fourth.matmul(w, self.codes)


class Codebook(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.squeeze = Dense(6, 8), Dense(8, 5)
        self.nearest, self.widen, self.leave = Nearest(f), Dense(5, 8), Dense(8, 6)

    def construct(self, x):
        z = self.squeeze(fourth.gelu(self.enter(x)))
        code = self.nearest(z)
        if self.f == "code_straight":
            passed = code
        else:
            passed = z + fourth.stop(code - z)
        y = self.leave(fourth.gelu(self.widen(passed)))
        off = fourth.mean(fourth.square(y - x))
        if self.f == "code_one_stop":
            keep = fourth.mean(fourth.square(z - code))
        else:
            keep = fourth.mean(fourth.square(z - fourth.stop(code)))
        learn = fourth.mean(fourth.square(fourth.stop(z) - code))
        if self.f == "code_commit":
            return off + learn + keep * 0.75
        if self.f == "code_no_learn":
            return off + keep * 0.25
        if self.f == "code_same_sum":
            return (off + keep * 0.25) + learn
        return off + learn + keep * 0.25


NETWORKS = {"mobile": Mobile, "mixer": Mixer, "recommend": Recommend, "triplet": Triplet, "states": States,
            "policy": Policy, "translate": Translate, "detect": Detect, "codebook": Codebook}
OPTIMIZERS = {"mobile_lr": {"rate": 0.001}, "mobile_decay_missing": {"decay": 0.0},
              "triplet_momentum": {"momentum": 0.5}, "triplet_decay": {"decay": 0.2}}
_UPDATE = "sgd|momentum|optim|assign"
MISTAKES = {
    "mobile_groups": ("mobile", "second.each", "conv.*"),
    "mobile_swish_relu6": ("mobile", "second", "h_?swish|hardswish|relu6"),
    "mobile_bound": ("mobile", "second", "clamp|clip.*|minimum|maximum"),
    "mobile_last_relu": ("mobile", "second", "relu|narrow|conv.*"),
    "mobile_residual_old": ("mobile", "second", "add"),
    "mobile_corner": ("mobile", "", "slice|getitem|strided_?slice|mean"),
    "mobile_lr": ("mobile", "optimizer", _UPDATE),
    "mobile_decay_missing": ("mobile", "optimizer", _UPDATE),
    "mixer_roll": ("mixer", "second", "roll|concat|slice"),
    "mixer_elu": ("mixer", "second", "elu|gelu"),
    "mixer_layer_scale": ("mixer", "second", "mul"),
    "mixer_difference": ("mixer", "second", "sub|add"),
    "mixer_largest": ("mixer", "", "amax|max|mean|reduce_?max"),
    "mixer_skip_first": ("mixer", "", "slice|getitem|mean"),
    "deepfm_square_late": ("recommend", "machine", "sum|square"),
    "deepfm_sum": ("recommend", "machine", "sub|add"),
    "deepfm_no_half": ("recommend", "machine", "mul|sub"),
    "deepfm_offset": ("recommend", "", "sub|table|embedding|gather"),
    "deepfm_flat_order": ("recommend", "", "transpose|permute|reshape"),
    "deepfm_product": ("recommend", "", "mul|add"),
    "deepfm_label": ("recommend", "", "sub|rsub|mul"),
    "deepfm_weighted": ("recommend", "", "mul"),
    "triplet_softplus": ("triplet", "place", "softplus|out|log|exp"),
    "triplet_manhattan": ("triplet", "", "abs|square|pow"),
    "triplet_pair": ("triplet", "", "sub"),
    "triplet_swapped": ("triplet", "", "sub"),
    "triplet_margin": ("triplet", "", "add"),
    "triplet_no_bound": ("triplet", "", "mul|sub|relu"),
    "triplet_momentum": ("triplet", "optimizer", _UPDATE),
    "triplet_decay": ("triplet", "optimizer", _UPDATE),
    "scan_pace_exp": ("states", "second", "exp|softplus"),
    "scan_fade_sign": ("states", "second", "mul"),
    "scan_no_pace": ("states", "second", "mul|add"),
    "scan_through_state": ("states", "second", "mul"),
    "scan_gate_sigmoid": ("states", "second", "sigmoid|silu"),
    "scan_steps_swapped": ("states", "", "stack|concat|cat"),
    "scan_state_reset": ("states", "", "mul|second"),
    "policy_skip_tanh": ("policy", "body", "add|tanh"),
    "policy_ratio": ("policy", "", "sub|exp"),
    "policy_clip_low": ("policy", "", "clamp|clip.*|minimum|maximum"),
    "policy_advantage": ("policy", "", "sub|mean|mul"),
    "policy_maximum": ("policy", "", "maximum|minimum"),
    "policy_value_detached": ("policy", "", "detach|stop_?gradient|critic"),
    "policy_entropy_sum": ("policy", "", "sum|mean"),
    "policy_entropy_sign": ("policy", "", "add|sub"),
    "translate_product": ("translate", "attend", "mul|add"),
    "translate_sharper": ("translate", "attend", "pow|square"),
    "translate_keys": ("translate", "attend", "mul|key"),
    "translate_last": ("translate", "attend", "slice|getitem|add|mul|sum|reshape"),
    "translate_first_state": ("translate", "", "slice|getitem|strided_?slice"),
    "translate_zero_context": ("translate", "", "mul|concat|cat"),
    "translate_smooth": ("translate", "", "mul|sub|log_?softmax"),
    "detect_box_exp": ("detect", "towers", "exp|mul"),
    "detect_box_early": ("detect", "towers", "mul|box|conv.*"),
    "detect_focus": ("detect", "", "pow"),
    "detect_focus_right": ("detect", "", "pow|sub"),
    "detect_smooth_limit": ("detect", "", "where|select|gt|greater"),
    "detect_square": ("detect", "", "where|select|mul"),
    "detect_all_boxes": ("detect", "", "mean|mul"),
    "code_similarity": ("codebook", "nearest", "mul|sub"),
    "code_farthest": ("codebook", "nearest", "softmax|mul"),
    "code_straight": ("codebook", "", "add|widen|detach|stop_?gradient|nearest"),
    "code_one_stop": ("codebook", "", "detach|stop_?gradient|sub"),
    "code_commit": ("codebook", "", "mul"),
    "code_no_learn": ("codebook", "", "add"),
}
SAME = {"mobile_same_swish": "mobile", "mobile_same_pool": "mobile", "mixer_same_residual": "mixer",
        "deepfm_same_half": "recommend", "deepfm_same_loss": "recommend", "triplet_same_order": "triplet",
        "triplet_same_margin": "triplet", "scan_same_fade": "states", "policy_same_minimum": "policy",
        "policy_same_loss": "policy", "translate_same_order": "translate", "detect_same_focus": "detect",
        "detect_same_share": "detect", "code_same_sign": "codebook", "code_same_sum": "codebook"}


def whole(*values):
    import numpy as np
    return np.array(values, np.int32)


def _recommend():
    import numpy as np
    ids = np.arange(18, dtype=np.int32).reshape(6, 3) * 7 % 19 + 1
    return [ids, np.float32([1, 0, 0, 1, 1, 0]).reshape(6, 1)]


def _policy():
    import numpy as np
    return [numbers(1, (6, 5)), np.eye(4, dtype=np.float32)[[0, 2, 1, 3, 1, 0]],
            np.float32([-1.2, -0.7, -2.1, -1.5, -0.9, -1.8]).reshape(6, 1), numbers(2, (6, 1)) + np.float32(0.3),
            numbers(3, (6, 1))]


def _detect():
    import numpy as np
    there = (np.arange(32).reshape(2, 1, 4, 4) % 3 == 0).astype(np.float32)
    return [numbers(1, (2, 3, 8, 8)), there, numbers(2, (2, 4, 4, 4), 1.5)]


INPUTS = {"mobile": lambda: [numbers(1, (3, 3, 6, 6)), whole(1, 4, 2)],
          "mixer": lambda: [numbers(1, (2, 6, 5))],
          "recommend": _recommend,
          "triplet": lambda: [numbers(seed, (5, 6)) for seed in (1, 2, 3)],
          "states": lambda: [numbers(1, (4, 2, 6)), numbers(2, (4, 6), 0.5)],
          "policy": _policy,
          "translate": lambda: [whole(*range(15)).reshape(3, 5) * 5 % 12, whole(3, 0, 7)],
          "detect": _detect,
          "codebook": lambda: [numbers(1, (5, 6))]}
