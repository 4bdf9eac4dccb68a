# SPDX-License-Identifier: MIT
"""A sixth set of networks with planted mistakes for graph_mistakes.py: capsules, equations over time,
teachers, memories, critics, sequences with labels; three steps each, with momentum or with Adam.

The tables are as in graph_networks.py, graph_networks_more.py and graph_networks_third.py. STEPS: name of a
network -> its number of steps. The set was written before any of it had run, and no rule was chosen on it.
"""
from graph_networks import FRAMEWORK, Cell, numbers

if FRAMEWORK == "torch":
    import torch
    from torch import nn

    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_fifth import fifth
    from graph_networks_more import parameter
    from graph_networks_third import any_conv

    class sixth(fifth):
        log1p = staticmethod(lambda x: torch.log1p(x))
        erf = staticmethod(lambda x: torch.erf(x))
        shuffle = staticmethod(lambda x, by: nn.functional.pixel_shuffle(x, by))
        bce = staticmethod(lambda x, y: nn.functional.binary_cross_entropy_with_logits(x, y))
        smallest = staticmethod(lambda x, axis: torch.amin(x, axis, True))
elif FRAMEWORK == "mindspore":
    from mindspore import ops

    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_fifth import fifth
    from graph_networks_more import parameter
    from graph_networks_third import any_conv

    class sixth(fifth):
        @staticmethod
        def log1p(x):
            return ops.log1p(x)

        @staticmethod
        def erf(x):
            return ops.erf(x)

        @staticmethod
        def shuffle(x, by):
            return ops.pixel_shuffle(x, by)

        @staticmethod
        def bce(x, y):
            return ops.binary_cross_entropy_with_logits(x, y, ops.ones_like(x), ops.ones_like(x))

        @staticmethod
        def smallest(x, axis):
            return ops.amin(x, axis, True)


# ---- capsules ---------------------------------------------------------------------------------


class Capsules(Cell):
    """Three capsules of four numbers agree with five capsules below."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.votes = Dense(4, 12)

    def squash(self, x):
        size = sixth.reduce_sum(sixth.square(x), (2,))
        if self.f == "capsule_no_squash":
            return x / sixth.sqrt(size + 0.0001)
        if self.f == "capsule_squash_half":
            return x * (size / (0.5 + size)) / sixth.sqrt(size + 0.0001)
        if self.f == "capsule_same_squash":
            return x / sixth.sqrt(size + 0.0001) * (size / (1.0 + size))
        return x * (size / (1.0 + size)) / sixth.sqrt(size + 0.0001)

    def construct(self, x):
        votes = sixth.reshape(self.votes(x), (2, 5, 3, 4))
        out = self.squash(sixth.reshape(sixth.reduce_mean(votes, (1,)), (2, 3, 4)))
        agree = sixth.reduce_sum(votes * sixth.reshape(out, (2, 1, 3, 4)), (3,))
        if self.f == "capsule_axis":
            share = sixth.softmax(agree, 1)
        elif self.f == "capsule_sigmoid":
            share = sixth.sigmoid(agree)
        else:
            share = sixth.softmax(agree, 2)
        if self.f == "capsule_unrouted":
            return self.squash(sixth.reshape(sixth.reduce_sum(votes, (1,)), (2, 3, 4)))
        return self.squash(sixth.reshape(sixth.reduce_sum(votes * share, (1,)), (2, 3, 4)))


class Parts(Cell):
    """Capsules over a picture's parts, with a loss of margins."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.capsules = any_conv(3, 4, 2, 2, 0), Capsules(f)
        self.pick, self.back = Dense(20, 20), Dense(12, 20)

    def construct(self, x, hot):
        h = sixth.relu(self.enter(x))
        h = sixth.reshape(h, (2, 20))
        h = sixth.reshape(sixth.tanh(self.pick(h)), (2, 5, 4))
        caps = self.capsules(h)
        size = sixth.sqrt(sixth.reduce_sum(sixth.square(caps), (2,)) + 0.0001)
        size = sixth.reshape(size, (2, 3))
        if self.f == "margin_high":
            near = sixth.square(sixth.relu(0.7 - size))
        else:
            near = sixth.square(sixth.relu(0.9 - size))
        far = sixth.square(sixth.relu(size - 0.1))
        if self.f == "margin_far_weight":
            margin = hot * near + (1.0 - hot) * far
        elif self.f == "margin_same_order":
            margin = (1.0 - hot) * far * 0.5 + near * hot
        else:
            margin = hot * near + (1.0 - hot) * far * 0.5
        if self.f == "parts_no_mask":
            again = self.back(sixth.reshape(caps, (2, 12)))
        else:
            again = self.back(sixth.reshape(caps * sixth.reshape(hot, (2, 3, 1)), (2, 12)))
        off = sixth.mean(sixth.square(again - sixth.reshape(h, (2, 20))))
        return sixth.mean(margin) + off * 0.1


# ---- an equation over time --------------------------------------------------------------------


class Speed(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two = Dense(5, 8), Dense(8, 4)

    def construct(self, x, time):
        if self.f == "speed_no_time":
            h = self.one(sixth.concat((x, time * 0.1), 1))
        else:
            h = self.one(sixth.concat((x, time), 1))
        if self.f == "speed_relu":
            h = sixth.relu(h)
        elif self.f == "speed_same_tanh":
            h = 2.0 * sixth.sigmoid(h * 2.0) - 1.0
        else:
            h = sixth.tanh(h)
        return self.two(h)


class Path(Cell):
    """A step of Runge and Kutta, a step of the middle, and a step of Euler."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.speed, self.read = Speed(f), Dense(4, 2)

    def kutta(self, x, time):
        a = self.speed(x, time)
        b = self.speed(x + a * 0.25, time + 0.25)
        if self.f == "path_stale":
            c = self.speed(x + a * 0.25, time + 0.25)
        else:
            c = self.speed(x + b * 0.25, time + 0.25)
        if self.f == "path_half_last":
            d = self.speed(x + c * 0.25, time + 0.5)
        else:
            d = self.speed(x + c * 0.5, time + 0.5)
        if self.f == "path_weights":
            return x + (a + b + c + d) * 0.125
        if self.f == "path_same_weights":
            return x + (a + (b + c) * 2.0 + d) / 12.0
        return x + (a + b * 2.0 + c * 2.0 + d) / 12.0

    def construct(self, x, time, wanted):
        x = self.kutta(x, time)
        middle = x + self.speed(x, time + 0.5) * 0.1
        if self.f == "path_middle_lost":
            x = x + self.speed(x, time + 0.6) * 0.2
        else:
            x = x + self.speed(middle, time + 0.6) * 0.2
        if self.f == "path_backward":
            x = x - self.speed(x, time + 0.7) * 0.1
        else:
            x = x + self.speed(x, time + 0.7) * 0.1
        off = self.read(x) - wanted
        if self.f == "path_absolute":
            return sixth.mean(sixth.absolute(off))
        return sixth.mean(off * off)


# ---- a teacher and its pupil ------------------------------------------------------------------


class Net(Cell):
    def __init__(self, f, wide):
        super().__init__()
        self.f = f
        self.one, self.norm, self.two = Dense(6, wide), LayerNorm(wide), Dense(wide, 5)

    def construct(self, x):
        if self.f == "pupil_norm_missing":
            h = sixth.gelu(self.one(x))
        elif self.f == "pupil_norm_late":
            h = self.norm(sixth.gelu(self.one(x)))
        elif self.f == "pupil_activation":
            h = sixth.silu(self.norm(self.one(x)))
        elif self.f == "pupil_same_gelu":
            h = self.norm(self.one(x))
            h = h * 0.5 * (1.0 + sixth.erf(h * 0.7071067811865476))
        else:
            h = sixth.gelu(self.norm(self.one(x)))
        return self.two(h)


class Pupil(Cell):
    """A pupil learns from labels and from a teacher."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.teacher, self.pupil = Net("", 10), Net(f, 8)

    def construct(self, x, labels):
        if self.f == "teacher_learns":
            seen = self.teacher(x)
        else:
            seen = sixth.stop(self.teacher(x))
        mine = self.pupil(x)
        if self.f == "teacher_cold":
            soft = sixth.softmax(seen, 1)
        else:
            soft = sixth.softmax(seen / 3.0, 1)
        logs = sixth.log_softmax(mine / 3.0, 1)
        if self.f == "pupil_reverse":
            told = sixth.reduce_sum(sixth.exp(logs) * (logs - sixth.log(soft)), (1,))
        elif self.f == "pupil_same_told":
            told = sixth.reduce_sum(soft * sixth.log(soft), (1,)) - sixth.reduce_sum(soft * logs, (1,))
        else:
            told = sixth.reduce_sum(soft * (sixth.log(soft) - logs), (1,))
        hard = sixth.cross_entropy(mine, labels)
        if self.f == "pupil_no_square":
            return hard * 0.3 + sixth.mean(told) * 0.7
        if self.f == "pupil_shares":
            return hard * 0.7 + sixth.mean(told) * 9.0 * 0.3
        return hard * 0.3 + sixth.mean(told) * 9.0 * 0.7


# ---- a memory that is written -----------------------------------------------------------------


class Address(Cell):
    """Weighs the rows of a memory by likeness to a key."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.key, self.sharp = Dense(8, 4), Dense(8, 1)

    def construct(self, h, rows):
        key = self.key(h)
        if self.f == "memory_no_length":
            near = sixth.matmul(key, sixth.transpose(rows, (1, 0)))
        else:
            long = sixth.sqrt(sixth.reduce_sum(sixth.square(key), (1,)) + 0.0001)
            wide = sixth.sqrt(sixth.reduce_sum(sixth.square(rows), (1,)) + 0.0001)
            if self.f == "memory_same_length":
                near = sixth.matmul(key / long, sixth.transpose(rows / wide, (1, 0)))
            else:
                near = sixth.matmul(key, sixth.transpose(rows, (1, 0))) / (long * sixth.transpose(wide, (1, 0)))
        if self.f == "memory_sharp_relu":
            sharp = sixth.relu(self.sharp(h)) + 1.0
        elif self.f == "memory_sharp_offset":
            sharp = sixth.softplus(self.sharp(h)) + 2.0
        else:
            sharp = sixth.softplus(self.sharp(h)) + 1.0
        if self.f == "memory_sharp_added":
            return sixth.softmax(near + sharp * near * near, 1)
        return sixth.softmax(near * sharp, 1)


class Memory(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.rows = Dense(5, 8), parameter("rows", (6, 4))
        self.write, self.read = Address(""), Address(f)
        self.add, self.erase, self.out = Dense(8, 4), Dense(8, 4), Dense(12, 3)

    def construct(self, x, labels):
        h = sixth.tanh(self.enter(x))
        w = self.write(h, self.rows)
        wipe = sixth.matmul(sixth.transpose(w, (1, 0)), sixth.sigmoid(self.erase(h))) * 0.25
        fresh = sixth.matmul(sixth.transpose(w, (1, 0)), sixth.tanh(self.add(h)))
        if self.f == "memory_no_erase":
            rows = self.rows + fresh
        elif self.f == "memory_erase_after":
            rows = (self.rows + fresh) * (1.0 - wipe)
        elif self.f == "memory_same_rows":
            rows = fresh + self.rows * (1.0 - wipe)
        else:
            rows = self.rows * (1.0 - wipe) + fresh
        if self.f == "memory_read_old":
            got = sixth.matmul(self.read(h, self.rows), self.rows)
        elif self.f == "memory_read_weights":
            got = sixth.matmul(w, rows)
        else:
            got = sixth.matmul(self.read(h, rows), rows)
        return sixth.cross_entropy(self.out(sixth.concat((h, got), 1)), labels)


# ---- critics ----------------------------------------------------------------------------------


class Critic(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two = Dense(7, 8), Dense(8, 1)

    def construct(self, x, act):
        if self.f == "critic_scaled":
            h = self.one(sixth.concat((x, act * 2.0), 1))
        else:
            h = self.one(sixth.concat((x, act), 1))
        if self.f == "critic_elu":
            h = sixth.elu(h)
        else:
            h = sixth.relu(h)
        return self.two(h)


class Critics(Cell):
    """An actor with entropy and the lesser of two critics."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.body, self.middle, self.width = Dense(5, 8), Dense(8, 2), Dense(8, 2)
        self.left, self.right = Critic(""), Critic(f)

    def construct(self, x, noise, act, reward):
        h = sixth.relu(self.body(x))
        mean = self.middle(h)
        if self.f == "critics_no_bound":
            wide = self.width(h)
        elif self.f == "critics_bound":
            wide = sixth.clamp(self.width(h), -0.5, 0.2)
        else:
            wide = sixth.clamp(self.width(h), -1.5, 0.8)
        raw = mean + sixth.exp(wide) * noise
        mine = sixth.tanh(raw)
        log = -0.5 * sixth.square(noise) - wide
        if self.f == "critics_no_correction":
            log = sixth.reduce_sum(log, (1,))
        elif self.f == "critics_correction_sign":
            log = sixth.reduce_sum(log + sixth.log(1.0 - mine * mine + 0.01), (1,))
        else:
            log = sixth.reduce_sum(log - sixth.log(1.0 - mine * mine + 0.01), (1,))
        a, b = self.left(x, mine), self.right(x, mine)
        if self.f == "critics_greater":
            best = sixth.maximum(a, b)
        elif self.f == "critics_mean":
            best = (a + b) * 0.5
        elif self.f == "critics_same_lesser":
            best = 0.0 - sixth.maximum(0.0 - a, 0.0 - b)
        else:
            best = sixth.minimum(a, b)
        if self.f == "critics_entropy_sign":
            actor = sixth.mean(log * -0.2 - best)
        else:
            actor = sixth.mean(log * 0.2 - best)
        wanted = sixth.stop(reward + best * 0.9)
        one, two = self.left(x, act) - wanted, self.right(x, act) - wanted
        if self.f == "critics_one_taught":
            return actor + sixth.mean(sixth.square(one))
        if self.f == "critics_same_taught":
            return sixth.mean(sixth.square(one) + sixth.square(two)) + actor
        return actor + sixth.mean(sixth.square(one)) + sixth.mean(sixth.square(two))


# ---- labels along a sequence ------------------------------------------------------------------


class Scores(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.near, self.out = Embedding(9, 6), Dense(12, 8), Dense(8, 3)

    def construct(self, ids):
        x = self.words(ids)
        if self.f == "chain_context_after":
            near = sixth.concat((x[:, 1:], x[:, :1]), 1)
        elif self.f == "chain_context_far":
            near = sixth.concat((x[:, 2:], x[:, :2]), 1)
        else:
            near = sixth.concat((x[:, 3:], x[:, :3]), 1)
        if self.f == "chain_context_order":
            h = self.near(sixth.concat((near, x), 2))
        else:
            h = self.near(sixth.concat((x, near), 2))
        if self.f == "chain_leaky":
            return self.out(sixth.leaky(h, 0.2))
        return self.out(sixth.tanh(h))


class Chain(Cell):
    """A conditional field over three labels: the sum over all ways less the way that is known."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.scores, self.moves = Scores(f), parameter("moves", (3, 3))

    def after(self, alpha, now):
        wide = sixth.reshape(alpha, (2, 3, 1)) + self.moves
        if self.f == "chain_best":
            return sixth.reshape(sixth.largest(wide, 1), (2, 3)) + now
        if self.f == "chain_axis":
            return sixth.reshape(sixth.logsumexp(wide, 2), (2, 3)) + now
        if self.f == "chain_same_after":
            return now + sixth.reshape(sixth.log(sixth.reduce_sum(sixth.exp(wide), (1,))), (2, 3))
        return sixth.reshape(sixth.logsumexp(wide, 1), (2, 3)) + now

    def construct(self, ids, hot):
        s = self.scores(ids)
        alpha = self.after(s[:, 0], s[:, 1])
        if self.f == "chain_skips":
            alpha = self.after(alpha, s[:, 3])
        else:
            alpha = self.after(alpha, s[:, 2])
        alpha = self.after(alpha, s[:, 3])
        whole = sixth.logsumexp(alpha, 1)
        known = sixth.reduce_sum(sixth.reshape(s * hot, (2, 12)), (1,))
        if self.f == "chain_moves_turned":
            steps = sixth.matmul(hot[:, :3], sixth.transpose(self.moves, (1, 0))) * hot[:, 1:]
        else:
            steps = sixth.matmul(hot[:, :3], self.moves) * hot[:, 1:]
        if self.f == "chain_no_moves":
            return sixth.mean(whole - known)
        known = known + sixth.reduce_sum(sixth.reshape(steps, (2, 9)), (1,))
        if self.f == "chain_weight":
            return sixth.mean(whole - known * 0.9)
        return sixth.mean(whole - known)


# ---- points of a cloud ------------------------------------------------------------------------


class Turn(Cell):
    """A turn of the points that the points themselves decide."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two = Dense(3, 8), Dense(8, 9)

    def construct(self, x, same):
        h = sixth.relu(self.one(x))
        if self.f == "turn_mean":
            h = sixth.reduce_mean(h, (1,))
        else:
            h = sixth.largest(h, 1)
        turn = sixth.reshape(self.two(sixth.reshape(h, (2, 8))) * 0.1, (2, 3, 3))
        if self.f == "turn_no_same":
            return sixth.bmm(x, turn)
        if self.f == "turn_transposed":
            return sixth.bmm(x, sixth.transpose(turn + same, (0, 2, 1)))
        if self.f == "turn_same_sum":
            return sixth.bmm(x, turn) + x
        return sixth.bmm(x, turn + same)


class Cloud(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.turn, self.each, self.wide = Turn(f), Dense(3, 8), Dense(8, 10)
        self.norm, self.head = LayerNorm(10), Dense(18, 4)

    def construct(self, x, same, labels):
        if self.f == "cloud_not_centred":
            y = x * 1.0
        else:
            y = x - sixth.reduce_mean(x, (1,))
        if self.f == "cloud_no_turn":
            local = sixth.relu(self.each(y))
        else:
            local = sixth.relu(self.each(self.turn(y, same)))
        h = sixth.relu(self.norm(self.wide(local)))
        if self.f == "cloud_mean":
            whole = sixth.reduce_mean(h, (1,))
        elif self.f == "cloud_axis":
            whole = sixth.largest(h, 2) + h[:, :1] * 0.0
        else:
            whole = sixth.largest(h, 1)
        if self.f == "cloud_axis":
            whole = whole[:, :1]
        both = sixth.concat((local, sixth.tile(whole, (1, 6, 1))), 2)
        y = sixth.reshape(self.head(both), (12, 4))
        if self.f == "cloud_smooth":
            log = sixth.log_softmax(y, 1)
            return sixth.cross_entropy(y, labels) * 0.9 - sixth.mean(log) * 0.1
        if self.f == "cloud_same_loss":
            return sixth.cross_entropy(y, labels, "sum") / 12.0
        return sixth.cross_entropy(y, labels)


# ---- larger pictures --------------------------------------------------------------------------


class Dense4(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two = any_conv(4, 6), any_conv(10, 4)

    def construct(self, x):
        h = sixth.leaky(self.one(x), 0.2)
        if self.f == "larger_concat_order":
            h = self.two(sixth.concat((h, x), 1))
        else:
            h = self.two(sixth.concat((x, h), 1))
        if self.f == "larger_residual_whole":
            return x + h
        if self.f == "larger_no_residual":
            return h * 0.2
        return x + h * 0.2


class Larger(Cell):
    """Makes a picture twice as large."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.first, self.second = any_conv(3, 4), Dense4(""), Dense4(f)
        self.out = any_conv(4, 12)

    def construct(self, x, wanted):
        a = self.enter(x)
        h = self.second(self.first(a))
        if self.f != "larger_no_skip":
            h = h + a
        y = sixth.shuffle(self.out(h), 2)
        if self.f == "larger_bound":
            y = sixth.clamp(y, -0.5, 0.5)
        elif self.f == "larger_grown":
            y = y + sixth.grow(x)
        off = y - wanted
        if self.f == "larger_square":
            return sixth.mean(sixth.square(off))
        if self.f == "larger_eps":
            return sixth.mean(sixth.sqrt(off * off + 0.1))
        if self.f == "larger_same_loss":
            return sixth.mean(sixth.sqrt(sixth.square(off) + 0.001))
        return sixth.mean(sixth.sqrt(off * off + 0.001))


NETWORKS = {"parts": Parts, "path": Path, "pupil": Pupil, "memory": Memory, "critics": Critics, "chain": Chain,
            "cloud": Cloud, "larger": Larger}
STEPS = dict.fromkeys(NETWORKS, 3)
OPTIMIZERS = {"path_momentum": {"momentum": 0.5}, "path_no_momentum": {"momentum": 0.0},
              "chain_decay": {"decay": 0.1}, "larger_rate": {"rate": 0.005}, "pupil_first_beta": {"betas": (0.8, 0.99)},
              "pupil_second_beta": {"betas": (0.9, 0.9)}, "critics_adam_rate": {"rate": 0.003},
              "memory_adam_decay": {"decay": 0.1}}
# Networks that Adam trains: its learning rate, betas and weight decay.
ADAM = dict.fromkeys(("pupil", "critics", "memory"), {"rate": 0.01, "betas": (0.9, 0.99), "decay": 0.0})
_UPDATE = "sgd|momentum|optim|assign|adam.*"
MISTAKES = {
    "capsule_no_squash": ("parts", "capsules", "mul|div|add"),
    "capsule_squash_half": ("parts", "capsules", "add"),
    "capsule_axis": ("parts", "capsules", "softmax|transpose"),
    "capsule_sigmoid": ("parts", "capsules", "softmax|sigmoid"),
    "capsule_unrouted": ("parts", "capsules", "mul|softmax|sum"),
    "margin_high": ("parts", "", "sub|rsub"),
    "margin_far_weight": ("parts", "", "mul"),
    "parts_no_mask": ("parts", "", "mul"),
    "speed_no_time": ("path", "speed", "mul|concat|cat"),
    "speed_relu": ("path", "speed", "relu|tanh"),
    "path_stale": ("path", "", "add|mul"),
    "path_half_last": ("path", "", "mul"),
    "path_weights": ("path", "", "mul|div|add"),
    "path_middle_lost": ("path", "", "add|mul"),
    "path_backward": ("path", "", "sub|add"),
    "path_absolute": ("path", "", "abs|mul"),
    "path_momentum": ("path", "optimizer", _UPDATE),
    "path_no_momentum": ("path", "optimizer", _UPDATE),
    "pupil_norm_missing": ("pupil", "pupil", "norm|layer_?norm|gelu"),
    "pupil_norm_late": ("pupil", "pupil", "norm|layer_?norm|gelu"),
    "pupil_activation": ("pupil", "pupil", "silu|gelu|sigmoid|mul"),
    "teacher_learns": ("pupil", "", "detach|stop_?gradient|softmax|div|teacher"),
    "teacher_cold": ("pupil", "", "div|softmax"),
    "pupil_reverse": ("pupil", "", "exp|mul|sub|log"),
    "pupil_no_square": ("pupil", "", "mul"),
    "pupil_shares": ("pupil", "", "mul"),
    "pupil_first_beta": ("pupil", "optimizer", _UPDATE),
    "pupil_second_beta": ("pupil", "optimizer", _UPDATE),
    "memory_no_length": ("memory", "read", "div|sqrt|matmul|mul"),
    "memory_sharp_relu": ("memory", "read", "relu|softplus"),
    "memory_sharp_offset": ("memory", "read", "add"),
    "memory_sharp_added": ("memory", "read", "add|mul"),
    "memory_no_erase": ("memory", "", "mul|sub|rsub|add"),
    "memory_erase_after": ("memory", "", "mul|add"),
    "memory_read_old": ("memory", "", "read|matmul"),
    "memory_read_weights": ("memory", "", "read|matmul"),
    "memory_adam_decay": ("memory", "optimizer", _UPDATE),
    "critic_scaled": ("critics", "right", "mul|concat|cat"),
    "critic_elu": ("critics", "right", "elu|relu"),
    "critics_no_bound": ("critics", "", "clamp|clip.*|minimum|maximum"),
    "critics_bound": ("critics", "", "clamp|clip.*|minimum|maximum"),
    "critics_no_correction": ("critics", "", "sub|log"),
    "critics_correction_sign": ("critics", "", "sub|add"),
    "critics_greater": ("critics", "", "maximum|minimum"),
    "critics_mean": ("critics", "", "minimum|add|mul"),
    "critics_entropy_sign": ("critics", "", "mul"),
    "critics_one_taught": ("critics", "", "add|mean|square"),
    "critics_adam_rate": ("critics", "optimizer", _UPDATE),
    "chain_context_after": ("chain", "scores", "concat|cat|slice|strided_?slice|getitem"),
    "chain_context_far": ("chain", "scores", "concat|cat|slice|strided_?slice|getitem"),
    "chain_context_order": ("chain", "scores", "concat|cat"),
    "chain_leaky": ("chain", "scores", "leaky.*|tanh"),
    "chain_best": ("chain", "", "logsumexp|amax|max|reduce_?max|exp|log|sum|reduce_?sum"),
    "chain_axis": ("chain", "", "logsumexp|amax|max|reduce_?max|exp|log|sum|reduce_?sum"),
    "chain_skips": ("chain", "", "slice|getitem|strided_?slice|add"),
    "chain_moves_turned": ("chain", "", "matmul|transpose|permute"),
    "chain_no_moves": ("chain", "", "add|sum|mul|sub"),
    "chain_weight": ("chain", "", "mul"),
    "chain_decay": ("chain", "optimizer", _UPDATE),
    "turn_mean": ("cloud", "turn", "mean|amax|max|reduce_?max"),
    "turn_no_same": ("cloud", "turn", "add|bmm|batch_?mat_?mul"),
    "turn_transposed": ("cloud", "turn", "transpose|permute|bmm|batch_?mat_?mul"),
    "cloud_not_centred": ("cloud", "", "sub|mul|mean"),
    "cloud_no_turn": ("cloud", "", "turn|each"),
    "cloud_mean": ("cloud", "", "mean|amax|max|reduce_?max"),
    "cloud_axis": ("cloud", "", "amax|max|reduce_?max|add|mul|slice|strided_?slice"),
    "cloud_smooth": ("cloud", "", "log_?softmax|cross_?entropy|mul|sub|mean"),
    "larger_concat_order": ("larger", "second", "concat|cat"),
    "larger_residual_whole": ("larger", "second", "mul|add"),
    "larger_no_residual": ("larger", "second", "add|mul"),
    "larger_no_skip": ("larger", "", "add"),
    "larger_bound": ("larger", "", "clamp|clip.*|minimum|maximum"),
    "larger_grown": ("larger", "", "add|interpolate|upsample.*|resize.*"),
    "larger_square": ("larger", "", "square|sqrt|add|mul|mean"),
    "larger_eps": ("larger", "", "add"),
    "larger_rate": ("larger", "optimizer", _UPDATE),
}
SAME = {"capsule_same_squash": "parts", "margin_same_order": "parts", "speed_same_tanh": "path",
        "path_same_weights": "path", "pupil_same_gelu": "pupil", "pupil_same_told": "pupil",
        "memory_same_length": "memory", "memory_same_rows": "memory", "critics_same_lesser": "critics",
        "critics_same_taught": "critics", "chain_same_after": "chain", "turn_same_sum": "cloud",
        "cloud_same_loss": "cloud", "larger_same_loss": "larger"}


def whole(*values):
    import numpy as np
    return np.array(values, np.int32)


def hot(classes, *labels):
    import numpy as np
    return np.eye(classes, dtype=np.float32)[list(labels)]


INPUTS = {"parts": lambda: [numbers(1, (2, 3, 2, 10)), hot(3, 2, 0)],
          "path": lambda: [numbers(1, (5, 4)), abs(numbers(2, (5, 1))), numbers(3, (5, 2))],
          "pupil": lambda: [numbers(1, (6, 6)), whole(0, 3, 2, 4, 1, 1)],
          "memory": lambda: [numbers(1, (4, 5)), whole(0, 2, 1, 1)],
          "critics": lambda: [numbers(1, (6, 5)), numbers(2, (6, 2)), numbers(3, (6, 2)), numbers(4, (6, 1))],
          "chain": lambda: [whole(1, 4, 7, 2, 0, 8, 3, 5).reshape(2, 4),
                            hot(3, 0, 1, 1, 2, 2, 0, 1, 0).reshape(2, 4, 3)],
          "cloud": lambda: [numbers(1, (2, 6, 3)), hot(3, 0, 1, 2), whole(*range(12)) * 7 % 4],
          "larger": lambda: [numbers(1, (2, 3, 4, 4)), numbers(2, (2, 3, 8, 8))]}
