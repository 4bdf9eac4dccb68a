# SPDX-License-Identifier: MIT
"""An eleventh set of networks with planted mistakes for graph_mistakes.py: a pendulum that is rolled out,
questions about a picture; two or three steps each.

The tables are as in graph_networks.py, graph_networks_more.py, graph_networks_third.py and
graph_networks_sixth.py. The set was written before any of it had run, and no rule was chosen on it.
"""
from graph_networks import FRAMEWORK, Cell, numbers

if FRAMEWORK:
    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_more import parameter
    from graph_networks_sixth import sixth
    from graph_networks_third import any_conv


# ---- a pendulum that is rolled out ----------------------------------------------------------------


class Force(Cell):
    """What a net adds to the known force."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two = Dense(3, 6), Dense(6, 1)

    def construct(self, q, p):
        if self.f == "force_angle_bare":
            h = self.one(sixth.concat((q, sixth.cos(q), p), 1))
        elif self.f == "force_cosine_sine":
            h = self.one(sixth.concat((sixth.cos(q), sixth.sin(q), p), 1))
        else:
            h = self.one(sixth.concat((sixth.sin(q), sixth.cos(q), p), 1))
        if self.f == "force_relu":
            known = self.two(sixth.relu(h))
        else:
            known = self.two(sixth.tanh(h))
        if self.f == "force_gravity_plus":
            return known + sixth.sin(q) * 0.8
        if self.f == "force_small_angle":
            return known - q * 0.8
        if self.f == "force_same_sum":
            return sixth.sin(q) * -0.8 + known
        return known - sixth.sin(q) * 0.8


class Pendulum(Cell):
    """Two steps of a leapfrog, with friction, and how they differ from what was measured."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.force, self.friction = Force(f), parameter("friction", (1, 1))

    def leap(self, q, p):
        p = p + self.force(q, p) * 0.1
        if self.f == "leap_half":
            q = q + p * 0.1
        else:
            q = q + p * 0.2
        if self.f == "leap_no_second":
            p = p * 1.0
        else:
            p = p + self.force(q, p) * 0.1
        if self.f == "leap_friction_angle":
            q = q * sixth.exp(-sixth.softplus(self.friction) * 0.2)
        elif self.f == "leap_friction_exp":
            p = p * sixth.exp(-sixth.exp(self.friction) * 0.2)
        elif self.f == "leap_friction_grows":
            p = p * sixth.exp(sixth.softplus(self.friction) * 0.2)
        elif self.f == "leap_same_friction":
            p = p / sixth.exp(sixth.softplus(self.friction) * 0.2)
        else:
            p = p * sixth.exp(-sixth.softplus(self.friction) * 0.2)
        return q, p

    def construct(self, q, p, first, second):
        a, b = self.leap(q, p)
        if self.f == "pendulum_restarts":
            c, d = self.leap(q, b)
        else:
            c, d = self.leap(a, b)
        if self.f == "pendulum_angle_round":
            one = sixth.mean(sixth.square(a - first[:, :1]))
        elif self.f == "pendulum_same_round":
            one = 1.0 - sixth.mean(sixth.cos(first[:, :1] - a))
        else:
            one = sixth.mean(1.0 - sixth.cos(a - first[:, :1]))
        if self.f == "pendulum_compared_early":
            two = sixth.mean(1.0 - sixth.cos(c - first[:, :1]))
        elif self.f == "pendulum_speed_for_angle":
            two = sixth.mean(1.0 - sixth.cos(c - second[:, 1:]))
        else:
            two = sixth.mean(1.0 - sixth.cos(c - second[:, :1]))
        speed = sixth.mean(sixth.square(b - first[:, 1:]))
        if self.f == "pendulum_speed_once":
            return one + two + speed * 0.5
        return one + two + (speed + sixth.mean(sixth.square(d - second[:, 1:]))) * 0.5


# ---- questions about a picture -------------------------------------------------------------------


class Together(Cell):
    """Words and places look at each other."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.places, self.likeness = Dense(6, 5), Dense(7, 5), parameter("likeness", (5, 5))

    def construct(self, w, v):
        a, b = self.words(w), self.places(v)
        if self.f == "together_plain":
            near = sixth.bmm(a, sixth.transpose(b, (0, 2, 1)))
        elif self.f == "together_same_product":
            near = sixth.matmul(a, sixth.transpose(sixth.matmul(b, sixth.transpose(self.likeness, (1, 0))), (0, 2, 1)))
        else:
            near = sixth.bmm(sixth.matmul(a, self.likeness), sixth.transpose(b, (0, 2, 1)))
        if self.f == "together_no_tanh":
            near = near * 1.0
        else:
            near = sixth.tanh(near)
        if self.f == "together_mean":
            for_words = sixth.softmax(sixth.reduce_mean(near, (2,)), 1)
        else:
            for_words = sixth.softmax(sixth.largest(near, (2,)), 1)
        if self.f == "together_hard":
            for_places = sixth.softmax(sixth.largest(near, (1,)) * 4.0, 2)
        else:
            for_places = sixth.softmax(sixth.largest(near, (1,)), 2)
        told = sixth.reduce_sum(for_words * w, (1,))
        if self.f == "together_places_even":
            shown = sixth.reduce_mean(v, (1,))
        else:
            shown = sixth.bmm(for_places, v)
        return sixth.reshape(told, (2, 6)), sixth.reshape(shown, (2, 7))


class Question(Cell):
    """Which answer fits a question about a picture."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.look = Embedding(10, 6), any_conv(3, 7, 2, 2, 0)
        self.together, self.word_out, self.place_out = Together(f), Dense(6, 8), Dense(7, 8)
        self.norm, self.answer = LayerNorm(8), Dense(8, 5)

    def construct(self, ids, picture, fits):
        w = self.words(ids)
        v = sixth.reshape(sixth.relu(self.look(picture)), (2, 7, 4))
        v = sixth.transpose(v, (0, 2, 1))
        if self.f == "question_normed":
            v = v / sixth.sqrt(sixth.reduce_sum(sixth.square(v), (2,)) + 0.01)
        told, shown = self.together(w, v)
        a, b = sixth.tanh(self.word_out(told)), sixth.tanh(self.place_out(shown))
        if self.f == "question_sum":
            h = a + b
        elif self.f == "question_words_alone":
            h = a * a
        elif self.f == "question_same_product":
            h = b * a
        else:
            h = a * b
        if self.f == "question_no_norm":
            y = self.answer(h)
        else:
            y = self.answer(self.norm(h))
        if self.f == "question_soft":
            return -sixth.mean(sixth.reduce_sum(sixth.log_softmax(y, 1) * fits, (1,)))
        if self.f == "question_same_loss":
            return sixth.mean(sixth.softplus(y) * (1.0 - fits) + sixth.softplus(-y) * fits)
        if self.f == "question_not_weighed":
            return sixth.mean(sixth.softplus(y) - y)
        return sixth.mean(sixth.softplus(y) - y * fits)


NETWORKS = {"pendulum": Pendulum, "question": Question}
STEPS = {"pendulum": 3, "question": 2}
OPTIMIZERS = {"pendulum_first_beta": {"betas": (0.6, 0.99)}}
ADAM = {"pendulum": {"rate": 0.01, "betas": (0.9, 0.99), "decay": 0.0}}
_UPDATE = "sgd|momentum|optim|assign|adam.*"
_SLICE = "slice|getitem|strided_?slice"
_BMM = "bmm|batch_?mat_?mul|mat_?mul"
MISTAKES = {
    "force_angle_bare": ("pendulum", "force", "sin|concat|cat"),
    "force_cosine_sine": ("pendulum", "force", "concat|cat|sin|cos"),
    "force_relu": ("pendulum", "force", "tanh|relu"),
    "force_gravity_plus": ("pendulum", "force", "add|sub"),
    "force_small_angle": ("pendulum", "force", "sin|mul"),
    "leap_half": ("pendulum", "", "mul"),
    "leap_no_second": ("pendulum", "", "add|force|mul"),
    "leap_friction_angle": ("pendulum", "", "mul"),
    "leap_friction_exp": ("pendulum", "", "exp|softplus"),
    "leap_friction_grows": ("pendulum", "", "neg"),
    "pendulum_restarts": ("pendulum", "", "force"),
    "pendulum_angle_round": ("pendulum", "", "cos|square|sub|rsub"),
    "pendulum_compared_early": ("pendulum", "", f"sub|{_SLICE}"),
    "pendulum_speed_for_angle": ("pendulum", "", f"sub|{_SLICE}"),
    "pendulum_speed_once": ("pendulum", "", "add|mean|square"),
    "pendulum_first_beta": ("pendulum", "optimizer", _UPDATE),
    "together_plain": ("question", "together", _BMM),
    "together_no_tanh": ("question", "together", "tanh|mul"),
    "together_mean": ("question", "together", "amax|max|reduce_?max|mean"),
    "together_hard": ("question", "together", "mul"),
    "together_places_even": ("question", "together", f"{_BMM}|mean"),
    "question_normed": ("question", "", "div|square|sqrt|sum"),
    "question_sum": ("question", "", "mul|add"),
    "question_words_alone": ("question", "", "mul"),
    "question_no_norm": ("question", "", "norm"),
    "question_soft": ("question", "", "softplus|log_?softmax|mul"),
    "question_not_weighed": ("question", "", "mul|sub"),
}
SAME = {"force_same_sum": "pendulum", "leap_same_friction": "pendulum", "pendulum_same_round": "pendulum",
        "together_same_product": "question", "question_same_product": "question", "question_same_loss": "question"}


def whole(*values):
    import numpy as np
    return np.array(values, np.int32)


def _fits():
    import numpy as np
    return np.array([[1, 0, 0, 1, 0], [0, 0, 1, 0, 0]], np.float32)


INPUTS = {"pendulum": lambda: [numbers(1, (4, 1)), numbers(2, (4, 1)), numbers(3, (4, 2)), numbers(4, (4, 2))],
          "question": lambda: [whole(1, 7, 3, 0, 2, 2, 9, 4).reshape(2, 4), numbers(1, (2, 3, 4, 4)), _fits()]}
