# SPDX-License-Identifier: MIT
"""A ninth set of networks with planted mistakes for graph_mistakes.py: words with a narrow memory and two words to
come, frames of a film, joints of a body, a world that is dreamt, atoms, pictures in another's style, answers that
people prefer, waves by their frequencies; two steps each, with momentum or with Adam, or three where a mistake is
in one of these.

The tables are as in graph_networks.py, graph_networks_more.py, graph_networks_third.py and
graph_networks_sixth.py. The set was written before any of it had run, and no rule was chosen on it.
"""
from graph_networks import FRAMEWORK, Cell, numbers

if FRAMEWORK:
    from graph_networks import Dense, Embedding, LayerNorm
    from graph_networks_more import parameter
    from graph_networks_sixth import sixth
    from graph_networks_third import any_conv


# ---- words with a narrow memory ---------------------------------------------------------------


class Narrow(Cell):
    """Attention whose keys and values come from four numbers a word."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.q, self.down, self.norm = Dense(8, 8), Dense(8, 4), LayerNorm(4)
        self.keys, self.values, self.out = Dense(4, 8), Dense(4, 8), Dense(8, 8)

    def construct(self, x, late):
        if self.f == "narrow_no_norm":
            kept = self.down(x)
        else:
            kept = self.norm(self.down(x))
        k, q = self.keys(kept), self.q(x)
        if self.f == "narrow_values_as_keys":
            v = self.keys(kept)
        else:
            v = self.values(kept)
        if self.f == "narrow_same_scale":
            a = sixth.bmm(q * 0.35, sixth.transpose(k, (0, 2, 1)))
        elif self.f == "narrow_bare":
            a = sixth.bmm(q, sixth.transpose(k, (0, 2, 1)))
        else:
            a = sixth.bmm(q, sixth.transpose(k, (0, 2, 1))) * 0.35
        if self.f == "narrow_no_mask":
            share = sixth.softmax(a, 2)
        elif self.f == "narrow_axis":
            share = sixth.softmax(a + late, 1)
        else:
            share = sixth.softmax(a + late, 2)
        return self.out(sixth.bmm(share, v))


class Further(Cell):
    """Tells the next word, and the one after it."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.first, self.second = Embedding(11, 8), Narrow(""), Narrow(f)
        self.before, self.join, self.head = LayerNorm(8), Dense(16, 8), Dense(8, 11)

    def construct(self, ids, following, later, late):
        x = self.words(ids)
        x = x + self.first(x, late)
        if self.f == "further_norm_missing":
            h = x + self.second(x, late)
        else:
            h = x + self.second(self.before(x), late)
        if self.f == "further_old_words":
            beside = self.words(ids)
        else:
            beside = self.words(following)
        if self.f == "further_turned":
            both = sixth.concat((beside, h), 2)
        elif self.f == "further_stopped":
            both = sixth.concat((sixth.stop(h), beside), 2)
        else:
            both = sixth.concat((h, beside), 2)
        one = sixth.cross_entropy(sixth.reshape(self.head(h), (12, 11)), sixth.reshape(following, (12,)))
        two = sixth.cross_entropy(sixth.reshape(self.head(self.join(both)), (12, 11)), sixth.reshape(later, (12,)))
        if self.f == "further_even":
            return one + two
        if self.f == "further_same_sum":
            return 0.3 * two + one
        return one + two * 0.3


# ---- frames of a film -------------------------------------------------------------------------


class Frame(Cell):
    """One step of an LSTM whose layers are convolutions."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.gates = any_conv(5, 12)

    def construct(self, x, h, c):
        g = self.gates(sixth.concat((x, h), 1))
        i, k, o, n = g[:, :3], g[:, 3:6], g[:, 6:9], g[:, 9:]
        if self.f == "frame_gates_changed":
            i, k = g[:, 3:6], g[:, :3]
        if self.f == "frame_keep_bare":
            kept = c * k
        elif self.f == "frame_same_keep":
            kept = c * (sixth.tanh(k * 0.5) * 0.5 + 0.5)
        else:
            kept = c * sixth.sigmoid(k)
        if self.f == "frame_no_gate":
            now = kept + sixth.tanh(n)
        elif self.f == "frame_new_sigmoid":
            now = kept + sixth.sigmoid(i) * sixth.sigmoid(n)
        else:
            now = kept + sixth.sigmoid(i) * sixth.tanh(n)
        if self.f == "frame_shown_bare":
            return sixth.sigmoid(o) * now, now
        if self.f == "frame_shown_late":
            return sixth.sigmoid(o) * sixth.tanh(c), now
        return sixth.sigmoid(o) * sixth.tanh(now), now


class Video(Cell):
    """What follows three frames, as a change of the last one."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.frame, self.show = Frame(f), any_conv(3, 2)

    def construct(self, x, following, state):
        h, c = self.frame(x[:, 0], state, state)
        h, c = self.frame(x[:, 1], h, c)
        if self.f == "video_forgets":
            h, c = self.frame(x[:, 2], state, c)
        else:
            h, c = self.frame(x[:, 2], h, c)
        if self.f == "video_whole":
            y = self.show(h)
        elif self.f == "video_first_frame":
            y = x[:, 0] + self.show(h)
        else:
            y = x[:, 2] + self.show(h)
        if self.f == "video_square":
            near = sixth.mean(sixth.square(y - following))
        else:
            near = sixth.mean(sixth.absolute(y - following))
        edge = y[:, :, 1:] - y[:, :, :4]
        if self.f == "video_edge_across":
            edge = y[:, :, :, 1:] - y[:, :, :, :4]
            wanted = following[:, :, :, 1:] - following[:, :, :, :4]
        else:
            wanted = following[:, :, 1:] - following[:, :, :4]
        if self.f == "video_same_edge":
            sharp = sixth.mean(sixth.absolute(wanted - edge))
        elif self.f == "video_edge_alone":
            sharp = sixth.mean(sixth.absolute(edge))
        else:
            sharp = sixth.mean(sixth.absolute(edge - wanted))
        return near + sharp * 0.5


# ---- joints of a body -------------------------------------------------------------------------


class Heat(Cell):
    """A map of heat for each of three joints."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two, self.three = any_conv(2, 6), any_conv(6, 6), any_conv(6, 3, 1, 1, 0)

    def construct(self, x):
        h = sixth.relu(self.one(x))
        if self.f == "heat_no_residual":
            h = sixth.relu(self.two(h))
        elif self.f == "heat_relu_first":
            h = h + sixth.relu(self.two(h))
        elif self.f == "heat_elu":
            h = sixth.elu(h + self.two(h))
        else:
            h = sixth.relu(h + self.two(h))
        return self.three(h)


class Pose(Cell):
    """Joints are where their maps are warm; bones keep their lengths."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.heat = Heat(f)

    def construct(self, x, grid, wanted):
        heat = sixth.reshape(self.heat(x), (2, 3, 25))
        if self.f == "pose_warm":
            share = sixth.softmax(heat, 2)
        elif self.f == "pose_joints":
            share = sixth.softmax(heat * 3.0, 1)
        elif self.f == "pose_sigmoid":
            share = sixth.sigmoid(heat * 3.0)
        elif self.f == "pose_same_share":
            warm = sixth.exp(heat * 3.0)
            share = warm / sixth.reduce_sum(warm, (2,))
        else:
            share = sixth.softmax(heat * 3.0, 2)
        at = sixth.bmm(share, grid)
        spread = sixth.bmm(share, sixth.square(grid))
        if self.f == "pose_moment":
            spread = spread - at
        elif self.f == "pose_same_spread":
            spread = spread - at * at
        else:
            spread = spread - sixth.square(at)
        off = sixth.mean(sixth.absolute(at - wanted))
        if self.f == "pose_bone_sum":
            bone = at[:, 1:] + at[:, :2]
        else:
            bone = at[:, 1:] - at[:, :2]
        right = wanted[:, 1:] - wanted[:, :2]
        long = sixth.sqrt(sixth.reduce_sum(sixth.square(bone), (2,)) + 0.01)
        if self.f == "pose_bone_square":
            wanted_long = sixth.reduce_sum(sixth.square(right), (2,))
        else:
            wanted_long = sixth.sqrt(sixth.reduce_sum(sixth.square(right), (2,)) + 0.01)
        bones = sixth.mean(sixth.square(long - wanted_long))
        if self.f == "pose_spread_grows":
            return off + bones - sixth.mean(spread) * 0.2
        if self.f == "pose_no_bones":
            return off + sixth.mean(spread) * 0.2
        return off + bones + sixth.mean(spread) * 0.2


# ---- a world that is dreamt -------------------------------------------------------------------


class Belief(Cell):
    """A middle and a spread."""

    def __init__(self, f, inner):
        super().__init__()
        self.f = f
        self.layer = Dense(inner, 6)

    def construct(self, x):
        y = self.layer(x)
        if self.f == "belief_spread_exp":
            return y[:, :3], sixth.exp(y[:, 3:]) + 0.1
        if self.f == "belief_no_least":
            return y[:, :3], sixth.softplus(y[:, 3:])
        if self.f == "belief_same_spread":
            return y[:, :3], sixth.log(1.0 + sixth.exp(y[:, 3:])) + 0.1
        if self.f == "belief_halves":
            return y[:, 3:], sixth.softplus(y[:, :3]) + 0.1
        return y[:, :3], sixth.softplus(y[:, 3:]) + 0.1


class World(Cell):
    """Two moments of a world: what is seen, and what was expected before it was seen."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.keep = Dense(5, 4), Dense(8, 4)
        self.expected, self.seen, self.draw = Belief("", 4), Belief(f, 8), Dense(7, 4)

    def apart(self, m, s, n, t):
        """How far one bell is from another."""
        if self.f == "world_no_log":
            return (sixth.square(s) + sixth.square(m - n)) / (2.0 * sixth.square(t)) - 0.5
        if self.f == "world_same_log":
            return sixth.log(t / s) + (sixth.square(s) + sixth.square(m - n)) / (2.0 * sixth.square(t)) - 0.5
        return sixth.log(t) - sixth.log(s) + (sixth.square(s) + sixth.square(m - n)) / (2.0 * sixth.square(t)) - 0.5

    def moment(self, h, z, x, a, noise):
        if self.f == "world_idle":
            h_in = sixth.tanh(self.enter(sixth.concat((z, a * 0.0), 1)))
        else:
            h_in = sixth.tanh(self.enter(sixth.concat((z, a), 1)))
        pace = sixth.sigmoid(self.keep(sixth.concat((h, h_in), 1)))
        if self.f == "world_pace_turned":
            h = (1.0 - pace) * h + pace * h_in + h * 0.1
        elif self.f == "world_same_pace":
            h = h_in + pace * (h - h_in)
        else:
            h = pace * h + (1.0 - pace) * h_in
        m, s = self.expected(h)
        n, t = self.seen(sixth.concat((h, x), 1))
        if self.f == "world_from_expected":
            z = m + s * noise
        elif self.f == "world_sure":
            z = n
        else:
            z = n + t * noise
        if self.f == "world_turned":
            told = self.apart(m, s, sixth.stop(n), sixth.stop(t)) * 0.8
        elif self.f == "world_not_stopped":
            told = self.apart(n, t, m, s) * 0.8
        else:
            told = self.apart(sixth.stop(n), sixth.stop(t), m, s) * 0.8
        if self.f == "world_unbalanced":
            told = told + self.apart(n, t, sixth.stop(m), sixth.stop(s)) * 0.8
        else:
            told = told + self.apart(n, t, sixth.stop(m), sixth.stop(s)) * 0.2
        return h, z, told

    def construct(self, x, a, noise, h, z):
        h, z, one = self.moment(h, z, x[:, 0], a[:, 0], noise[:, 0])
        off = sixth.mean(sixth.square(self.draw(sixth.concat((h, z), 1)) - x[:, 0]))
        h, z, two = self.moment(h, z, x[:, 1], a[:, 1], noise[:, 1])
        again = self.draw(sixth.concat((h, z), 1))
        if self.f == "world_drawn_early":
            off = off + sixth.mean(sixth.square(again - x[:, 0]))
        else:
            off = off + sixth.mean(sixth.square(again - x[:, 1]))
        if self.f == "world_all_told":
            return off + sixth.mean(sixth.relu(one + two)) * 0.5
        return off + sixth.mean(one + two) * 0.5


# ---- atoms ------------------------------------------------------------------------------------


class Push(Cell):
    """Atoms tell each other what they are and how far; they move along the lines between them."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two, self.force, self.node = Dense(11, 6), Dense(6, 6), Dense(6, 1), Dense(11, 5)

    def construct(self, h, x, others):
        if self.f == "push_turned":
            line = sixth.reshape(x, (2, 1, 4, 3)) - sixth.reshape(x, (2, 4, 1, 3))
        else:
            line = sixth.reshape(x, (2, 4, 1, 3)) - sixth.reshape(x, (2, 1, 4, 3))
        far = sixth.reduce_sum(sixth.square(line), (3,))
        if self.f == "push_root":
            far = sixth.sqrt(far + 0.01)
        a = sixth.tile(sixth.reshape(h, (2, 4, 1, 5)), (1, 1, 4, 1))
        b = sixth.tile(sixth.reshape(h, (2, 1, 4, 5)), (1, 4, 1, 1))
        if self.f == "push_told_twice":
            told = sixth.concat((a, a, far), 3)
        else:
            told = sixth.concat((a, b, far), 3)
        if self.f == "push_linear":
            told = sixth.silu(self.two(self.one(told)))
        else:
            told = sixth.silu(self.two(sixth.silu(self.one(told))))
        if self.f == "push_itself":
            told = told * 1.0
        elif self.f == "push_same_others":
            told = others * told
        else:
            told = told * others
        if self.f == "push_sum":
            x = x + sixth.reshape(sixth.reduce_sum(line * self.force(told), (2,)), (2, 4, 3))
        elif self.f == "push_same_mean":
            x = sixth.reshape(sixth.reduce_sum(line * self.force(told) * 0.25, (2,)), (2, 4, 3)) + x
        else:
            x = x + sixth.reshape(sixth.reduce_sum(line * self.force(told), (2,)), (2, 4, 3)) * 0.25
        heard = sixth.reshape(sixth.reduce_sum(told, (2,)), (2, 4, 6))
        if self.f == "push_new":
            return self.node(sixth.concat((h, heard), 2)), x
        return h + self.node(sixth.concat((h, heard), 2)), x


class Molecule(Cell):
    """The energy of four atoms, and where they go."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second, self.energy = Push(""), Push(f), Dense(5, 1)

    def construct(self, h, x, others, wanted):
        g, y = self.first(h, x, others)
        if self.f == "molecule_old_places":
            g, y = self.second(g, x, others)
        else:
            g, y = self.second(g, y, others)
        if self.f == "molecule_largest":
            energy = sixth.largest(self.energy(g), (1,))
        else:
            energy = sixth.reduce_sum(self.energy(g), (1,))
        moved = y - x
        if self.f == "molecule_not_centred":
            moved = moved * 1.0
        elif self.f == "molecule_same_centre":
            moved = moved - sixth.reduce_sum(moved, (1,)) * 0.25
        else:
            moved = moved - sixth.reduce_mean(moved, (1,))
        off = sixth.mean(sixth.square(energy - wanted))
        if self.f == "molecule_far":
            return off + sixth.mean(sixth.absolute(moved))
        return off + sixth.mean(sixth.square(moved))


# ---- pictures in another's style --------------------------------------------------------------


class Restyle(Cell):
    """Gives each channel of one picture the mean and the spread that it has in another."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def construct(self, x, s):
        m, n = sixth.reduce_mean(x, (2, 3)), sixth.reduce_mean(s, (2, 3))
        if self.f == "restyle_batch":
            m = sixth.reduce_mean(x, (0, 2, 3))
        v = sixth.reduce_mean(sixth.square(x - m), (2, 3)) + 0.01
        w = sixth.reduce_mean(sixth.square(s - n), (2, 3)) + 0.01
        if self.f == "restyle_variance":
            y = (x - m) / v
        elif self.f == "restyle_same_spread":
            y = (x - m) * sixth.rsqrt(v)
        else:
            y = (x - m) / sixth.sqrt(v)
        if self.f == "restyle_no_spread":
            return y + n
        if self.f == "restyle_no_mean":
            return y * sixth.sqrt(w)
        if self.f == "restyle_same_order":
            return n + sixth.sqrt(w) * y
        return y * sixth.sqrt(w) + n


class Style(Cell):
    """Draws one picture in the style of another."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.one, self.two, self.restyle = any_conv(3, 5), any_conv(5, 5), Restyle(f)
        self.back, self.draw = any_conv(5, 5), any_conv(5, 3)

    def features(self, x):
        return sixth.relu(self.two(sixth.relu(self.one(x))))

    def products(self, x):
        """What channels have in common."""
        flat = sixth.reshape(x, (2, 5, 25))
        if self.f == "style_products_bare":
            return sixth.bmm(flat, sixth.transpose(flat, (0, 2, 1)))
        if self.f == "style_same_products":
            return sixth.bmm(flat * 0.04, sixth.transpose(flat, (0, 2, 1)))
        return sixth.bmm(flat, sixth.transpose(flat, (0, 2, 1))) * 0.04

    def construct(self, x, s):
        a, b = self.features(x), self.features(s)
        if self.f == "style_changed":
            t = self.restyle(b, a)
        else:
            t = self.restyle(a, b)
        if self.f == "style_flat":
            y = self.draw(self.back(t))
        else:
            y = self.draw(sixth.relu(self.back(t)))
        if self.f == "style_squashed":
            y = sixth.tanh(y)
        g = self.features(y)
        if self.f == "style_aim_trained":
            near = sixth.mean(sixth.square(g - t))
        elif self.f == "style_aim_content":
            near = sixth.mean(sixth.square(g - sixth.stop(a)))
        else:
            near = sixth.mean(sixth.square(g - sixth.stop(t)))
        if self.f == "style_products_content":
            alike = sixth.mean(sixth.square(self.products(g) - self.products(a)))
        else:
            alike = sixth.mean(sixth.square(self.products(g) - self.products(b)))
        rough = sixth.mean(sixth.absolute(y[:, :, 1:] - y[:, :, :4]))
        if self.f == "style_rough_far":
            return near + alike + rough
        return near + alike + rough * 0.1


# ---- answers that people prefer ---------------------------------------------------------------


class Writer(Cell):
    """How likely each word of an answer is."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.words, self.mix, self.norm, self.head = Embedding(9, 6), Dense(6, 6), LayerNorm(6), Dense(6, 9)

    def construct(self, ids, hot, past):
        x = self.words(ids)
        if self.f == "writer_future":
            x = x + sixth.tanh(self.mix(sixth.bmm(sixth.transpose(past, (0, 2, 1)), x)))
        elif self.f == "writer_no_past":
            x = x + sixth.tanh(self.mix(x))
        else:
            x = x + sixth.tanh(self.mix(sixth.bmm(past, x)))
        if self.f == "writer_no_norm":
            y = self.head(x)
        else:
            y = self.head(self.norm(x))
        if self.f == "writer_same_likely":
            told = sixth.reduce_sum((y - sixth.logsumexp(y, 2)) * hot, (2,))
        elif self.f == "writer_not_likely":
            told = sixth.reduce_sum(sixth.softmax(y, 2) * hot, (2,))
        else:
            told = sixth.reduce_sum(sixth.log_softmax(y, 2) * hot, (2,))
        if self.f == "writer_mean":
            return sixth.reduce_mean(told, (1,))
        return sixth.reduce_sum(told, (1,))


class Prefer(Cell):
    """The better answer shall become likelier than the worse one, beside a writer that does not learn."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.policy, self.held = Writer(f), Writer("")

    def construct(self, better, worse, hot, cold, past):
        p, q = self.policy(better, hot, past), self.policy(worse, cold, past)
        r, s = sixth.stop(self.held(better, hot, past)), sixth.stop(self.held(worse, cold, past))
        if self.f == "prefer_learns":
            r = self.held(better, hot, past)
        if self.f == "prefer_alone":
            more = p - q
        elif self.f == "prefer_held_twice":
            more = (p - r) - (q - r)
        elif self.f == "prefer_sum":
            more = (p - r) + (q - s)
        elif self.f == "prefer_same_order":
            more = (p - q) - (r - s)
        else:
            more = (p - r) - (q - s)
        if self.f == "prefer_worse":
            lost = sixth.softplus(more * 0.5)
        elif self.f == "prefer_surer":
            lost = sixth.softplus(more * -2.0)
        elif self.f == "prefer_square":
            lost = sixth.square(more * 0.5 - 1.0)
        elif self.f == "prefer_same_loss":
            lost = 0.0 - sixth.log(sixth.sigmoid(more * 0.5))
        else:
            lost = sixth.softplus(more * -0.5)
        if self.f == "prefer_words_worse":
            return sixth.mean(lost) - sixth.mean(q) * 0.02
        if self.f == "prefer_no_words":
            return sixth.mean(lost)
        return sixth.mean(lost) - sixth.mean(p) * 0.02


# ---- waves by their frequencies ---------------------------------------------------------------


class Waves(Cell):
    """Mixes channels for each of three frequencies, and places by a layer."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.real, self.turn, self.here = parameter("real", (3, 4, 4)), parameter("turn", (3, 4, 4)), Dense(4, 4)

    def construct(self, x, cosines, sines):
        a, b = sixth.bmm(cosines, x), sixth.bmm(sines, x)
        if self.f == "waves_parts_changed":
            a, b = b, a
        a, b = sixth.transpose(a, (1, 0, 2)), sixth.transpose(b, (1, 0, 2))
        if self.f == "waves_mirrored":
            c = sixth.bmm(a, self.real) + sixth.bmm(b, self.turn)
        elif self.f == "waves_real":
            c = sixth.bmm(a, self.real)
        else:
            c = sixth.bmm(a, self.real) - sixth.bmm(b, self.turn)
        if self.f == "waves_same_sum":
            d = sixth.bmm(b, self.real) + sixth.bmm(a, self.turn)
        elif self.f == "waves_turn_twice":
            d = sixth.bmm(a, self.turn) + sixth.bmm(b, self.turn)
        else:
            d = sixth.bmm(a, self.turn) + sixth.bmm(b, self.real)
        c, d = sixth.transpose(c, (1, 0, 2)), sixth.transpose(d, (1, 0, 2))
        back, turned = sixth.transpose(cosines, (0, 2, 1)), sixth.transpose(sines, (0, 2, 1))
        if self.f == "waves_loud":
            y = sixth.bmm(back, c) + sixth.bmm(turned, d)
        elif self.f == "waves_half":
            y = sixth.bmm(back, c) * 0.25
        elif self.f == "waves_same_back":
            y = sixth.bmm(back * 0.25, c) + sixth.bmm(turned, d * 0.25)
        else:
            y = (sixth.bmm(back, c) + sixth.bmm(turned, d)) * 0.25
        if self.f == "waves_nowhere":
            return y
        if self.f == "waves_here_last":
            return self.here(x + y)
        return y + self.here(x)


class Spectral(Cell):
    """What a field of eight places becomes."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.first, self.second, self.leave = Dense(2, 4), Waves(""), Waves(f), Dense(4, 1)

    def construct(self, x, cosines, sines, wanted):
        h = self.enter(x)
        h = sixth.gelu(self.first(h, cosines, sines))
        if self.f == "spectral_gelu_last":
            h = sixth.gelu(self.second(h, cosines, sines))
        else:
            h = self.second(h, cosines, sines)
        y = self.leave(h)
        off = sixth.sqrt(sixth.reduce_sum(sixth.square(y - wanted), (1, 2)) + 0.001)
        size = sixth.sqrt(sixth.reduce_sum(sixth.square(wanted), (1, 2)) + 0.001)
        if self.f == "spectral_absolute":
            return sixth.mean(off)
        if self.f == "spectral_own_size":
            return sixth.mean(off / sixth.sqrt(sixth.reduce_sum(sixth.square(y), (1, 2)) + 0.001))
        if self.f == "spectral_same_share":
            return sixth.mean(off * (1.0 / size))
        if self.f == "spectral_square":
            return sixth.mean(sixth.square(off) / size)
        return sixth.mean(off / size)


NETWORKS = {"further": Further, "video": Video, "pose": Pose, "world": World, "molecule": Molecule, "style": Style,
            "prefer": Prefer, "spectral": Spectral}
STEPS = {**dict.fromkeys(NETWORKS, 2), "video": 3, "spectral": 3}
OPTIMIZERS = {"video_momentum": {"momentum": 0.5}, "pose_rate": {"rate": 0.03}, "molecule_decay": {"decay": 0.06},
              "spectral_first_beta": {"betas": (0.6, 0.99)}, "further_adam_rate": {"rate": 0.004}}
# Networks that Adam trains: its learning rate, betas and weight decay.
ADAM = dict.fromkeys(("further", "world", "spectral"), {"rate": 0.01, "betas": (0.9, 0.99), "decay": 0.0})
_UPDATE = "sgd|momentum|optim|assign|adam.*"
_SLICE = "slice|getitem|strided_?slice"
_BMM = "bmm|batch_?mat_?mul"
MISTAKES = {
    "narrow_no_norm": ("further", "second", "norm"),
    "narrow_values_as_keys": ("further", "second", "keys|values"),
    "narrow_bare": ("further", "second", "mul"),
    "narrow_no_mask": ("further", "second", "add"),
    "narrow_axis": ("further", "second", "softmax"),
    "further_norm_missing": ("further", "", "before"),
    "further_old_words": ("further", "", "words|concat|cat"),
    "further_turned": ("further", "", "concat|cat"),
    "further_stopped": ("further", "", "detach|stop_?gradient|concat|cat|add"),
    "further_even": ("further", "", "mul|add"),
    "further_adam_rate": ("further", "optimizer", _UPDATE),
    "frame_gates_changed": ("video", "frame", _SLICE),
    "frame_keep_bare": ("video", "frame", "sigmoid|mul"),
    "frame_no_gate": ("video", "frame", "sigmoid|mul|add"),
    "frame_new_sigmoid": ("video", "frame", "tanh|sigmoid"),
    "frame_shown_bare": ("video", "frame", "tanh|mul"),
    "frame_shown_late": ("video", "frame", "tanh"),
    "video_forgets": ("video", "", "frame"),
    "video_whole": ("video", "", "add"),
    "video_first_frame": ("video", "", f"add|{_SLICE}"),
    "video_square": ("video", "", "abs|square"),
    "video_edge_across": ("video", "", f"sub|{_SLICE}"),
    "video_edge_alone": ("video", "", "sub|abs"),
    "video_momentum": ("video", "optimizer", _UPDATE),
    "heat_no_residual": ("pose", "heat", "add"),
    "heat_relu_first": ("pose", "heat", "relu|add"),
    "heat_elu": ("pose", "heat", "relu|elu"),
    "pose_warm": ("pose", "", "mul|softmax"),
    "pose_joints": ("pose", "", "softmax"),
    "pose_sigmoid": ("pose", "", "softmax|sigmoid"),
    "pose_moment": ("pose", "", "square|sub"),
    "pose_bone_sum": ("pose", "", "sub|add"),
    "pose_bone_square": ("pose", "", "sqrt|add"),
    "pose_spread_grows": ("pose", "", "add|sub"),
    "pose_no_bones": ("pose", "", "add|mean"),
    "pose_rate": ("pose", "optimizer", _UPDATE),
    "belief_spread_exp": ("world", "seen", "softplus|exp"),
    "belief_no_least": ("world", "seen", "add"),
    "belief_halves": ("world", "seen", _SLICE),
    "world_no_log": ("world", "", "log|sub|add"),
    "world_idle": ("world", "", "concat|cat|mul"),
    "world_pace_turned": ("world", "", "mul|sub|rsub|add"),
    "world_from_expected": ("world", "", "mul|add"),
    "world_sure": ("world", "", "mul|add"),
    "world_turned": ("world", "", "log|sub|square|div"),
    "world_not_stopped": ("world", "", f"detach|stop_?gradient|log|square|sub|{_SLICE}"),
    "world_unbalanced": ("world", "", "mul"),
    "world_drawn_early": ("world", "", f"sub|{_SLICE}"),
    "world_all_told": ("world", "", "relu"),
    "push_turned": ("molecule", "second", "sub"),
    "push_root": ("molecule", "second", "add|sqrt"),
    "push_told_twice": ("molecule", "second", "concat|cat"),
    "push_linear": ("molecule", "second", "silu|sigmoid|mul"),
    "push_itself": ("molecule", "second", "mul"),
    "push_sum": ("molecule", "second", "mul|add"),
    "push_new": ("molecule", "second", "add"),
    "molecule_old_places": ("molecule", "", "second"),
    "molecule_largest": ("molecule", "", "amax|max|reduce_?max|sum"),
    "molecule_not_centred": ("molecule", "", "sub|mean|mul"),
    "molecule_far": ("molecule", "", "abs|square"),
    "molecule_decay": ("molecule", "optimizer", _UPDATE),
    "restyle_batch": ("style", "restyle", "mean"),
    "restyle_variance": ("style", "restyle", "sqrt|div"),
    "restyle_no_spread": ("style", "restyle", "mul|sqrt"),
    "restyle_no_mean": ("style", "restyle", "add"),
    "style_products_bare": ("style", "", "mul"),
    "style_changed": ("style", "", "restyle"),
    "style_flat": ("style", "", "relu"),
    "style_squashed": ("style", "", "tanh"),
    "style_aim_trained": ("style", "", "detach|stop_?gradient|sub|restyle"),
    "style_aim_content": ("style", "", "detach|stop_?gradient|sub"),
    "style_products_content": ("style", "", f"{_BMM}|sub|mul|reshape"),
    "style_rough_far": ("style", "", "mul|add"),
    "writer_future": ("prefer", "policy", f"transpose|permute|{_BMM}"),
    "writer_no_past": ("prefer", "policy", _BMM),
    "writer_no_norm": ("prefer", "policy", "norm"),
    "writer_not_likely": ("prefer", "policy", "softmax|log_?softmax|log"),
    "writer_mean": ("prefer", "policy", "mean|sum"),
    "prefer_learns": ("prefer", "", "detach|stop_?gradient|sub|held"),
    "prefer_alone": ("prefer", "", "sub"),
    "prefer_held_twice": ("prefer", "", "sub"),
    "prefer_sum": ("prefer", "", "add|sub"),
    "prefer_worse": ("prefer", "", "mul"),
    "prefer_surer": ("prefer", "", "mul"),
    "prefer_square": ("prefer", "", "mul|softplus|square|sub"),
    "prefer_words_worse": ("prefer", "", "mean"),
    "prefer_no_words": ("prefer", "", "sub|mean|mul"),
    "waves_parts_changed": ("spectral", "second", f"{_BMM}|transpose|permute"),
    "waves_mirrored": ("spectral", "second", "sub|add"),
    "waves_real": ("spectral", "second", f"sub|{_BMM}"),
    "waves_turn_twice": ("spectral", "second", _BMM),
    "waves_loud": ("spectral", "second", "mul"),
    "waves_half": ("spectral", "second", f"add|{_BMM}"),
    "waves_nowhere": ("spectral", "second", "add|here"),
    "waves_here_last": ("spectral", "second", "add|here"),
    "spectral_gelu_last": ("spectral", "", "gelu"),
    "spectral_absolute": ("spectral", "", "div"),
    "spectral_own_size": ("spectral", "", "square|div|sum|sqrt"),
    "spectral_square": ("spectral", "", "square"),
    "spectral_first_beta": ("spectral", "optimizer", _UPDATE),
}
SAME = {"narrow_same_scale": "further", "further_same_sum": "further", "frame_same_keep": "video",
        "video_same_edge": "video", "pose_same_share": "pose", "pose_same_spread": "pose",
        "belief_same_spread": "world", "world_same_log": "world", "world_same_pace": "world",
        "push_same_others": "molecule", "push_same_mean": "molecule", "molecule_same_centre": "molecule",
        "restyle_same_spread": "style", "restyle_same_order": "style", "style_same_products": "style",
        "writer_same_likely": "prefer", "prefer_same_order": "prefer", "prefer_same_loss": "prefer",
        "waves_same_sum": "spectral", "waves_same_back": "spectral", "spectral_same_share": "spectral"}


def whole(*values):
    import numpy as np
    return np.array(values, np.int32)


def _further():
    import numpy as np
    ids = np.arange(14, dtype=np.int32) * 5 % 11
    rows = [np.stack([ids[at:at + 6], ids[at + 6:at + 12] if at + 12 <= 14 else ids[-6:]]) for at in (0, 1, 2)]
    return [*rows, np.triu(np.full((1, 6, 6), -9.0, np.float32), 1)]


def _pose():
    import numpy as np
    at = np.linspace(-1, 1, 5, dtype=np.float32)
    grid = np.stack(np.meshgrid(at, at, indexing="ij"), -1).reshape(1, 25, 2)
    return [numbers(1, (2, 2, 5, 5)), np.tile(grid, (2, 1, 1)), numbers(2, (2, 3, 2), 0.4)]


def _molecule():
    import numpy as np
    others = (1 - np.eye(4, dtype=np.float32)).reshape(1, 4, 4, 1)
    return [numbers(1, (2, 4, 5)), numbers(2, (2, 4, 3)), others, numbers(3, (2, 1, 1))]


def _prefer():
    import numpy as np
    better, worse = whole(1, 4, 7, 2, 3, 8, 5, 6).reshape(2, 4), whole(1, 0, 6, 2, 3, 3, 1, 7).reshape(2, 4)
    hot = np.eye(9, dtype=np.float32)
    past = np.tril(np.ones((4, 4), np.float32)) / np.arange(1, 5, dtype=np.float32)[:, None]
    return [better, worse, hot[np.roll(better, -1, 1)], hot[np.roll(worse, -1, 1)], np.tile(past, (2, 1, 1))]


def _spectral():
    import numpy as np
    turns = 2 * np.pi * np.arange(3)[:, None] * np.arange(8)[None, :] / 8
    cosines, sines = (np.tile(wave(turns).astype(np.float32), (2, 1, 1)) for wave in (np.cos, np.sin))
    return [numbers(1, (2, 8, 2)), cosines, sines, numbers(2, (2, 8, 1))]


def _zeros(*shape):
    import numpy as np
    return np.zeros(shape, np.float32)


INPUTS = {"further": _further,
          "video": lambda: [numbers(1, (2, 3, 2, 5, 5)), numbers(2, (2, 2, 5, 5)), _zeros(2, 3, 5, 5)],
          "pose": _pose,
          "world": lambda: [numbers(1, (4, 2, 4)), numbers(2, (4, 2, 2)), numbers(3, (4, 2, 3)), _zeros(4, 4),
                            _zeros(4, 3)],
          "molecule": _molecule,
          "style": lambda: [numbers(1, (2, 3, 5, 5)), numbers(2, (2, 3, 5, 5))],
          "prefer": _prefer, "spectral": _spectral}
