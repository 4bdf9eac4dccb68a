#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Operators of PyTorch, forward and backward, each judged against its own dump.

    judge_operators.py MSPROBE FOLDER

Every recorded result must be within its bounds, and none may be unknown but those that UNKNOWN names:
what msprobe computes again is what PyTorch computes.  Prints what is not, and the number of operators."""
import json
import os
import subprocess
import sys

import torch
import torch.nn.functional as F

UNKNOWN = {"normalize", "softsign"}  # backward: gradients of a value between that are sums of two


def r(*shape, shift=0.0, scale=1.0, dtype=torch.float32):
    return (torch.randn(*shape) * scale + shift).to(dtype).requires_grad_()


def p(*shape, dtype=torch.float32):
    return (torch.rand(*shape) * 0.9 + 0.05).to(dtype).requires_grad_()


def calls():
    T = torch.Tensor
    i64 = torch.int64
    unary = "abs exp expm1 sin cos tanh erf erfc sigmoid relu neg square sinh cosh atan asinh floor ceil round trunc sign".split()
    for name in unary:
        yield getattr(torch, name), (r(5, 7),), {}
    for name in "log log2 log10 log1p sqrt rsqrt reciprocal asin acos atanh".split():
        yield getattr(torch, name), (p(5, 7),), {}
    for name in "add sub mul div maximum minimum atan2 hypot".split():
        yield getattr(torch, name), (r(5, 7), r(7)), {}
    for name in "eq ne lt le gt ge logical_and logical_or logical_xor".split():
        yield getattr(torch, name), (r(5, 7).detach().round(), r(5, 7).detach().round()), {}
    yield torch.add, (r(5, 7), r(5, 1)), {"alpha": 0.3}
    yield torch.sub, (r(5, 7), 0.7), {}
    yield torch.pow, (p(5, 7), 2.5), {}
    yield torch.pow, (p(5, 7), r(5, 7)), {}
    yield torch.float_power, (p(5, 7), 2.5), {}
    yield torch.clamp, (r(5, 7), -0.5, 0.5), {}
    yield torch.where, (torch.rand(5, 7) > 0.5, r(5, 7), r(7)), {}
    yield torch.addcmul, (r(5, 7), r(5, 7), r(5, 7)), {"value": 0.2}
    yield torch.addcdiv, (r(5, 7), r(5, 7), p(5, 7)), {"value": 0.2}
    yield torch.lerp, (r(5, 7), r(5, 7), r(5, 7)), {}
    yield torch.logaddexp, (r(5, 7), r(5, 7)), {}
    yield torch.xlogy, (p(5, 7), p(5, 7)), {}
    yield torch.remainder, (r(5, 7), 0.7), {}
    yield torch.fmod, (r(5, 7), 0.7), {}
    yield torch.floor_divide, (r(5, 7).detach(), 2.0), {}
    yield torch.masked_fill, (r(5, 7), torch.rand(5, 7) > 0.5, 0.5), {}
    for a, b in (((8, 9), (9, 4)), ((3, 8, 9), (9, 4)), ((9,), (9, 4)), ((8, 9), (9,)), ((9,), (9,)), ((2, 1, 8, 9), (3, 9, 4))):
        yield torch.matmul, (r(*a), r(*b)), {}
    yield torch.mm, (r(8, 9), r(9, 4)), {}
    yield torch.bmm, (r(3, 8, 9), r(3, 9, 4)), {}
    yield torch.mv, (r(8, 9), r(9)), {}
    yield torch.dot, (r(9), r(9)), {}
    yield torch.outer, (r(9), r(4)), {}
    yield torch.addmm, (r(4), r(8, 9), r(9, 4)), {"alpha": 0.5, "beta": 2}
    yield torch.baddbmm, (r(3, 8, 4), r(3, 8, 9), r(3, 9, 4)), {}
    yield torch.addbmm, (r(8, 4), r(3, 8, 9), r(3, 9, 4)), {}
    yield torch.addmv, (r(8), r(8, 9), r(9)), {}
    yield torch.einsum, ("bik,bkj->bij", r(2, 3, 4), r(2, 4, 5)), {}
    yield F.linear, (r(6, 8), r(5, 8), r(5)), {}
    yield F.linear, (r(2, 6, 8), r(5, 8)), {}
    for nd in (1, 2, 3):
        size = (7,) * nd
        yield getattr(F, f"conv{nd}d"), (r(2, 4, *size), r(6, 2, *(3,) * nd), r(6)), {"stride": 2, "padding": 1, "groups": 2}
        yield getattr(F, f"conv{nd}d"), (r(2, 4, *size), r(6, 4, *(3,) * nd)), {"dilation": 2, "padding": "same"}
        yield getattr(F, f"conv_transpose{nd}d"), (r(2, 4, *(4,) * nd), r(4, 3, *(3,) * nd), r(6)), \
            {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}
        yield getattr(F, f"max_pool{nd}d"), (r(2, 4, *size), 3, 2, 1), {"ceil_mode": True}
        yield getattr(F, f"avg_pool{nd}d"), (r(2, 4, *size), 3, 2, 1), {"ceil_mode": True}
        yield getattr(F, f"adaptive_avg_pool{nd}d"), (r(2, 4, *size), 3), {}
    for nd in (1, 2):
        yield getattr(F, f"adaptive_max_pool{nd}d"), (r(2, 4, *(7,) * nd), 3), {}
    yield F.layer_norm, (r(4, 6, 8), (6, 8), r(6, 8), r(6, 8), 1e-6), {}
    yield F.group_norm, (r(2, 6, 5), 3, r(6), r(6)), {}
    yield F.instance_norm, (r(2, 6, 5),), {}
    yield F.batch_norm, (r(8, 6, 5), torch.zeros(6), torch.ones(6), r(6), r(6), True), {}
    yield F.batch_norm, (r(8, 6, 5), torch.randn(6), torch.rand(6) + 0.5, r(6), r(6)), {}
    yield F.normalize, (r(4, 6),), {"dim": -1}
    yield F.softmax, (r(4, 6),), {"dim": 1}
    yield F.softmin, (r(4, 6),), {"dim": 1}
    yield F.log_softmax, (r(4, 6),), {"dim": 0}
    yield torch.logsumexp, (r(4, 6), 1), {}
    if hasattr(F, "scaled_dot_product_attention"):
        q = (r(2, 4, 5, 8), r(2, 4, 7, 8), r(2, 4, 7, 8))
        yield F.scaled_dot_product_attention, q, {}
        yield F.scaled_dot_product_attention, (*q, torch.rand(5, 7) > 0.3), {}
        yield F.scaled_dot_product_attention, (*q, torch.randn(2, 4, 5, 7)), {"scale": 0.2}
        yield F.scaled_dot_product_attention, (r(2, 4, 5, 8), r(2, 4, 5, 8), r(2, 4, 5, 8)), {"is_causal": True}
    for name in ("gelu silu leaky_relu elu celu selu softplus softsign hardtanh hardswish hardsigmoid mish logsigmoid "
                 "relu6 tanhshrink softshrink hardshrink relu").split():
        yield getattr(F, name), (r(6, 9, scale=3),), {}
    yield F.gelu, (r(6, 9, scale=3),), {"approximate": "tanh"}
    yield F.glu, (r(6, 8),), {}
    yield F.prelu, (r(6, 8, 3), r(8)), {}
    yield F.threshold, (r(6, 8), 0.1, 20.0), {}
    yield F.dropout, (r(6, 8), 0.5, False), {}
    yield F.embedding, (torch.randint(0, 9, (4, 5)), r(9, 6)), {}
    yield F.embedding, (torch.randint(0, 9, (4, 5)), r(9, 6), 3), {}
    yield F.one_hot, (torch.randint(0, 9, (4, 5)), 9), {}
    yield F.pad, (r(2, 3, 4), (1, 2, -1, 0)), {"value": 0.5}
    yield F.interpolate, (r(2, 3, 4, 4),), {"scale_factor": 2}
    yield torch.index_select, (r(9, 6), 0, torch.randint(0, 9, (4,))), {}
    yield torch.gather, (r(9, 6), 1, torch.randint(0, 6, (9, 3))), {}
    for name, more in (("transpose", (0, 1)), ("permute", ((2, 0, 1),)), ("reshape", ((-1, 3),)), ("flip", ((0, 2),)), ("roll", (1, 1)),
                       ("tril", ()), ("triu", (1,)), ("squeeze", ()), ("unsqueeze", (1,)), ("flatten", ()), ("tile", ((2, 1, 2),)),
                       ("narrow", (1, 1, 2)), ("broadcast_to", ((5, 2, 3, 4),))):
        yield getattr(torch, name), (r(2, 3, 4), *more), {}
    yield T.repeat, (r(2, 3), 2, 3), {}
    yield T.expand, (r(2, 1, 3), 2, 4, 3), {}
    yield T.view, (r(2, 3), 6), {}
    yield torch.repeat_interleave, (r(2, 3), 2, 1), {}
    yield torch.cat, ([r(2, 3), r(4, 3)],), {}
    yield torch.stack, ([r(2, 3), r(2, 3)], 1), {}
    yield torch.split, (r(7, 3), 3), {}
    yield torch.split, (r(7, 3), [2, 5]), {}
    yield torch.chunk, (r(7, 3), 3), {}
    for name in "sum mean amax amin".split():
        yield getattr(torch, name), (r(4, 5, 6), (0, 2)), {}
    for name in "sum mean prod max min std var norm".split():
        yield getattr(torch, name), (r(4, 5),), {}
    for name in "max min".split():
        yield getattr(torch, name), (r(4, 5), 1), {}
    yield torch.var, (r(4, 5), 1), {"unbiased": False, "keepdim": True}
    yield torch.norm, (r(4, 5), 1, 1), {}
    yield torch.argmax, (r(4, 5), 1), {}
    yield torch.argmin, (r(4, 5),), {}
    yield torch.cumsum, (r(4, 5), 0), {}
    yield torch.topk, (r(4, 9), 3), {}
    yield torch.sort, (r(4, 9),), {}
    yield torch.all, (r(4, 9).detach() > 0,), {}
    yield torch.any, (r(4, 9).detach() > 0, 1), {}
    target = torch.tensor([1, 3, -100, 0, 2])
    yield F.cross_entropy, (r(5, 6), target), {}
    yield F.cross_entropy, (r(5, 6), target, torch.rand(6)), {"reduction": "sum"}
    yield F.cross_entropy, (r(5, 6), target), {"label_smoothing": 0.1}
    yield F.cross_entropy, (r(5, 6), torch.randn(5, 6).softmax(1)), {}
    yield F.cross_entropy, (r(5, 6, 3), torch.randint(0, 6, (5, 3))), {"reduction": "none"}
    yield F.nll_loss, (r(5, 6), target), {}
    for name in "mse_loss l1_loss smooth_l1_loss huber_loss".split():
        yield getattr(F, name), (r(5, 6, scale=2), torch.randn(5, 6)), {}
    yield F.binary_cross_entropy, (p(5, 6), torch.rand(5, 6)), {}
    yield F.binary_cross_entropy_with_logits, (r(5, 6), torch.rand(5, 6)), {"pos_weight": torch.rand(6) + 1}
    yield F.kl_div, (r(5, 6), torch.rand(5, 6)), {"reduction": "batchmean"}
    yield F.soft_margin_loss, (r(5, 6), torch.randn(5, 6).sign()), {}
    yield F.poisson_nll_loss, (r(5, 6), torch.rand(5, 6)), {}
    yield F.margin_ranking_loss, (r(6), r(6), torch.randn(6).sign()), {"margin": 0.1}
    yield F.cosine_similarity, (r(5, 6), r(5, 6)), {}
    yield F.pairwise_distance, (r(5, 6), r(5, 6)), {}
    for name in "float double half bfloat16".split():
        yield getattr(T, name), (r(5, 6, scale=100),), {}
    yield T.to, (r(5, 6), torch.bfloat16), {}
    yield T.to, (r(5, 6, scale=9).detach(), i64), {}
    yield T.contiguous, (r(5, 6),), {}
    yield T.clone, (r(5, 6),), {}


def place_of(function):
    """The module or class that has a function, and its name there: the dumper replaces it."""
    return next((o, n) for o in (F, torch, torch.Tensor) for n in dir(o)
                if not n.startswith("_") and getattr(o, n, None) is function)


def run_all(folder):
    from msprobe.pytorch import PrecisionDebugger
    config = os.path.join(folder, "config.json")
    with open(config, "w") as f:
        json.dump({"task": "tensor", "dump_path": os.path.join(folder, "out"), "rank": [], "step": [], "level": "L1",
                   "risk_level": "ALL", "tensor": {"scope": [], "list": [], "data_mode": ["all"]}}, f)
    debugger = PrecisionDebugger(config_path=config)
    torch.manual_seed(7)
    names = set()
    todo = [(*place_of(f), a, k) for f, a, k in calls()]
    debugger.start()
    for owner, name, args, kwargs in todo:
        out = getattr(owner, name)(*args, **kwargs)
        first = out[0] if isinstance(out, (tuple, list)) else out
        names.add(name)
        if first.requires_grad and first.is_floating_point():
            first.backward(torch.ones_like(first) * 0.75, retain_graph=True)
    debugger.stop()
    debugger.step()
    return names


def main():
    msprobe, folder = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    names = run_all(folder)
    top = os.path.join(folder, "out", "step0")
    dump = os.path.join(top, os.listdir(top)[0], "dump.json")
    said = json.loads(subprocess.run([msprobe, "judge", dump, dump, "--all", "--format", "json"],
                                     check=True, capture_output=True, text=True).stdout)["verdicts"]
    bad, seen, back = 0, set(), set()
    for v in said:
        name = v["target_operator"].split(".")[1].strip("_")
        if v["verdict"] == "within_bounds":
            (back if v["target_operator"].endswith("backward") else seen).add(name)
        elif name not in UNKNOWN:
            bad += 1
            worst = [(x["path"], x["worst"], x["recorded"], x["exact"]) for x in v["target"]["tensors"]]
            print(v["target_operator"], v["verdict"], v["target"]["why"], worst[:2])
    print(f"{len(said)} records of {len(names)} functions; {len(seen)} operators forward and {len(back)} backward "
          f"within their bounds; {bad} not")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
