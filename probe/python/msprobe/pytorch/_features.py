# SPDX-License-Identifier: MIT
"""Features of the second level: entropy of attention, stable rank of weights, routers of experts.

Config: recording_l2_features, l2_targets, sa_order. Files: attention_hook, linear_hook, moe_router_weight_hook and
moe_router_logit_hook_A-B.csv, as in the official tool. The largest singular value is estimated by three steps of the
power method; the official tool begins with random numbers, which changes what the program draws, we begin with a
fixed vector."""
import csv
import math
import os

import torch

from msprobe import _monitor, _probe
from msprobe._nested import is_a


def _qk(q, k, order):
    """Returns the scores of the first head of the first sample."""
    if q.dim() < 4 or k.dim() < 4:
        return None
    if order == 0:
        q, k = q[:, 0, 0, :], k[:, 0, 0, :]
    else:
        q, k = q[0, :, 0, :], k[0, :, 0, :]
    return q @ k.t() / q.shape[-1] ** 0.5


def attention(args, order):
    """Returns (entropy, largest probability) of causal attention, mean over rows."""
    tensors = [a for a in args if is_a(a, torch.Tensor)]
    scores = _qk(tensors[0], tensors[1], order) if len(tensors) >= 2 else None
    if scores is None:
        return None
    later = torch.ones(scores.shape[1], scores.shape[1], device=scores.device).tril() == 0
    scores = scores - scores.amax(dim=1, keepdim=True)
    p = scores.masked_fill(later, float("-inf")).float().softmax(dim=1)
    logs = torch.where(p > 0, p.log(), torch.zeros_like(p))
    return -(p * logs).sum(dim=1).mean().item(), p.amax(dim=1).mean().item()


def _singular(w):
    """Returns an estimate of the largest singular value."""
    w = w.float()
    v = torch.cos(torch.arange(w.shape[1], device=w.device, dtype=torch.float32) * 0.7 + 0.3)
    v, square = v / v.norm(), w.t() @ w
    estimate = torch.zeros(())
    for _ in range(3):
        next_v = square @ v
        estimate, size = next_v @ v, next_v.norm()
        if size == 0:
            return 0.0
        v = next_v / size
    return estimate.clamp(min=0).sqrt().item()


def linear(module):
    """Returns (stable rank, largest singular value) of a module's matrix."""
    weight = _matrix(module)
    if weight is None:
        return None
    largest = _singular(weight)
    return (weight.norm().item() / largest, largest) if largest else (0.0, 0.0)


def _matrix(module):
    if isinstance(module, torch.nn.Embedding) or hasattr(module, "num_embeddings") or \
            hasattr(module, "vocab_start_index"):
        return None
    for name in ("weight", "wg"):
        weight = dict.get(module._parameters, name)  # one that the module computes is not asked for
        if weight is not None and weight.dim() == 2:
            return weight.detach()
    return None


def router_weight(module):
    """Returns the mean cosine between the experts' columns of a router's matrix."""
    weight = _matrix(module)
    if weight is None:
        return None
    if weight.shape[0] < weight.shape[1]:
        weight = weight.t()
    experts = weight.shape[1]
    if experts < 2:
        return (0.0,)
    columns = torch.nn.functional.normalize(weight.float(), p=2, dim=0)
    pairs = torch.ones(experts, experts, dtype=torch.bool, device=weight.device).triu(1)
    return ((columns.t() @ columns)[pairs].mean().item(),)


def router_logit(result):
    """Returns the mean entropy of a token's distribution over experts."""
    if is_a(result, (list, tuple)):
        result = next((t for t in result if is_a(t, torch.Tensor)), None)
    if not is_a(result, torch.Tensor) or result.dim() < 2 or result.numel() == 0:
        return None
    gates = result.float().reshape(-1, result.shape[-1]).softmax(dim=-1)
    return ((-torch.nansum(gates * gates.log(), dim=-1).sum() / gates.shape[0]).item(),)


# (what a line's name ends in, columns, has the file micro steps?)
KINDS = {"attention_hook": ("attention", ("entropy", "softmax_max"), True),
         "linear_hook": ("linear", ("sr", "kernel_norm"), False),
         "moe_router_weight_hook": ("moe_router", ("router_weight_similarity",), False),
         "moe_router_logit_hook": ("moe_router", ("per_token_expert_entropy",), True)}


class Features:
    """The features of one step."""

    def __init__(self, config, folder):
        self._config, self._folder = config, folder
        self._rows = {kind: {} for kind in KINDS}

    def names(self, kind, found, plain):
        """Returns the name of a module whose features are wanted, None for others."""
        wanted = self._config[kind]
        if not wanted:
            return found if kind == "linear_hook" and self._config["has_linear_hook"] else None
        return found if found in wanted else plain if plain in wanted else None

    def put(self, kind, name, micro, is_last, module, args, result):
        if not KINDS[kind][2] and not is_last:
            return
        values = _probe.ask(self._values, (kind, module, args, result))
        if values is not None:
            self._rows[kind][name, micro if KINDS[kind][2] else 0] = values

    def _values(self, of):
        kind, module, args, result = of
        with torch.no_grad():
            if kind == "attention_hook":
                return attention(args, self._config["sa_order"])
            if kind == "linear_hook":
                return linear(module)
            return router_weight(module) if kind == "moe_router_weight_hook" else router_logit(result)

    def write(self, step):
        for kind, rows in self._rows.items():
            if rows:
                self._write_kind(kind, rows, step)
                rows.clear()

    def _write_kind(self, kind, rows, step):
        what, columns, with_micro = KINDS[kind]
        each = self._config["step_count_per_record"]
        first = step // each * each
        path = os.path.join(self._folder, f"{kind}_{first}-{first + each - 1}.csv")
        is_new = not os.path.exists(path)
        with open(path, "a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if is_new:
                writer.writerow(["vpp_stage", "name", "step"] + ["micro_step"] * with_micro + list(columns))
            for (name, micro), values in rows.items():
                stage, _, plain = name.partition(":")
                shown = ["nan" if math.isnan(v) else round(v, self._config["ndigits"]) for v in values]
                writer.writerow([stage, f"{plain}.{what}", step] + [micro] * with_micro + shown)


def write_stacks(folder, stacks):
    """Writes where each module is called from."""
    path = os.path.join(folder, "stack_info.csv")
    if os.path.exists(path):
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["module_name", "stack_info"])
        writer.writerows(stacks.items())
    _monitor.say(f"the calls of modules are in {path}")
