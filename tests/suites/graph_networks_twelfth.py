# SPDX-License-Identifier: MIT
"""A twelfth set of networks with planted mistakes for graph_mistakes.py, written twice: as users of MindSpore write
them (graph_native_mindspore.py) and as users of PyTorch do (graph_native_torch.py).

NATIVE: name of a network -> (class, loss, way to train, number of the network's own arguments). The mistakes are in
MindSpore's side alone. HOW: name of a mistake or of a variation -> what it changes outside the network: the
parameters before the training, the data, the optimizer, what is recomputed, compiled or computed in half precision.
The other tables are as in graph_networks.py and graph_networks_third.py. The clean pairs were looked at while the rules
of graph_views and lost_values were written.
"""
from graph_networks import numbers

NATIVE = {
    "convnext": ("ConvNext", "classes", "model", 1),
    "deeplab": ("DeepLab", "pixels", "cell", 1),
    "conformer": ("Conformer", "classes", "grad", 2),
    "wavenet": ("WaveNet", "waves", "cell", 1),
    "deepfm": ("DeepFm", "clicks", "cell", 2),
    "gat": ("Gat", "nodes", "grad", 2),
    "swin": ("Swin", "classes", "cell", 3),
    "rwkv": ("Rwkv", "words", "grad", 1),
    "edsr": ("Edsr", "absolute", "model", 1),
    "rnnt": ("Transducer", "paths", "grad", 2),
    "simclr": ("SimClr", "views", "cell", 2),
    "yolo": ("YoloHead", "boxes", "grad", 1),
    "mbconv": ("Efficient", "classes", "model", 1),
    "nbeats": ("NBeats", "forecasts", "cell", 2),
    "mamba": ("MambaLm", "words", "grad", 1),
}
NETWORKS = NATIVE
STEPS = dict.fromkeys(NATIVE, 2)
_ADAM = {"rate": 0.01, "betas": (0.9, 0.99), "decay": 0.0}
ADAM = dict.fromkeys(("convnext", "conformer", "wavenet", "swin", "rwkv", "edsr", "yolo", "nbeats", "mamba"), _ADAM)
OPTIMIZERS = {"convnext_decay": {"decay": 0.1}, "deeplab_fast": {"rate": 0.1}, "wavenet_beta": {"betas": (0.5, 0.99)},
              "edsr_slow": {"rate": 0.001}, "mbconv_momentum": {"momentum": 0.5},
              "yolo_second_beta": {"betas": (0.9, 0.9)}}
_UPDATE = "sgd|momentum|optim|assign|adam.*"
_SLICE = "slice|getitem|strided_?slice|split|chunk|narrow|select"
_PRODUCT = "matmul|batch_?mat_?mul|bmm|mat_?mul"
_PAD = "pad|pad_?v3|constant_?pad.*|mirror_?pad|reflection_?pad.*"
_CONV = "conv\\w*"
_TURN = "permute|transpose\\w*|swapaxes"
_SHAPE = "reshape|view"
_ENTROPY = "cross_?entropy\\w*|nll_?loss\\w*|log_?softmax\\w*"
_BINARY = "binary_?cross\\w*|bce\\w*|b_c_e\\w*"
MISTAKES = {
    "convnext_epsilon": ("convnext", "block1", "norm|layer_?norm"),
    "convnext_relu": ("convnext", "block1", "act|relu|gelu"),
    "convnext_no_scale": ("convnext", "block1", "r?mul"),
    "convnext_pool_rows": ("convnext", "", f"mean|reduce_?mean|{_SLICE}"),
    "convnext_decay": ("convnext", "optimizer", _UPDATE),
    "convnext_bright": ("convnext", "", f"stem|{_CONV}"),
    "deeplab_rate": ("deeplab", "aspp", f"far|{_CONV}"),
    "deeplab_pool_max": ("deeplab", "aspp", "amax|reduce_?max|mean|reduce_?mean|adaptive\\w*"),
    "deeplab_branch_lost": ("deeplab", "aspp", f"far|middle|{_CONV}|cat|concat"),
    "deeplab_low_late": ("deeplab", "", f"low|{_CONV}"),
    "deeplab_nearest": ("deeplab", "", "interpolate|upsample\\w*|resize\\w*"),
    "deeplab_corners": ("deeplab", "", "interpolate|upsample\\w*|resize\\w*"),
    "deeplab_ignored_counted": ("deeplab", "", _ENTROPY),
    "deeplab_fast": ("deeplab", "optimizer", _UPDATE),
    "conformer_glu_swapped": ("conformer", "conv", f"glu|sigmoid|mul|{_SLICE}"),
    "conformer_no_bn": ("conformer", "conv", "bn|batch_?norm\\w*|silu"),
    "conformer_scale_dim": ("conformer", "attention", "truediv|div|real_?div|mul"),
    "conformer_no_bias": ("conformer", "attention", "add|masked_?fill"),
    "conformer_mask_one": ("conformer", "attention", "masked_?fill|eq|equal|select|where"),
    "conformer_dropout": ("conformer", "attention", f"drop\\w*|{_PRODUCT}"),
    "conformer_macaron_whole": ("conformer", "", "r?mul|add"),
    "wavenet_not_causal": ("wavenet", "layers.1", f"{_PAD}|cat|concat"),
    "wavenet_gate_tanh": ("wavenet", "layers.1", "tanh|sigmoid"),
    "wavenet_residual_root": ("wavenet", "layers.1", "mul|add"),
    "wavenet_dilation": ("wavenet", "layers.1", f"filter|gate|{_CONV}|{_PAD}"),
    "wavenet_last_skip": ("wavenet", "", "r?add|relu"),
    "wavenet_one_relu": ("wavenet", "", "relu"),
    "wavenet_beta": ("wavenet", "optimizer", _UPDATE),
    "deepfm_weights_lost": ("deepfm", "", "mul"),
    "deepfm_square_first": ("deepfm", "", "square|pow|sub"),
    "deepfm_not_halved": ("deepfm", "", "r?mul"),
    "deepfm_no_relu": ("deepfm", "", "relu"),
    "deepfm_no_linear": ("deepfm", "", "add"),
    "deepfm_loss_sum": ("deepfm", "", f"{_BINARY}|mean|sum|reduce_?mean|reduce_?sum"),
    "deepfm_labels": ("deepfm", "", f"{_BINARY}|mul|sub|rsub"),
    "gat_relu": ("gat", "gat1", "relu|leaky_?relu"),
    "gat_slope": ("gat", "gat1", "relu|leaky_?relu"),
    "gat_zero_mask": ("gat", "gat1", "where|select|masked_?fill|zeros_?like|full_?like"),
    "gat_axis": ("gat", "gat1", "softmax"),
    "gat_before_projection": ("gat", "gat1", f"proj|dense|linear|{_PRODUCT}"),
    "gat_self_lost": ("gat", "", "sub|diag|gat1|ones"),
    "gat_no_residual": ("gat", "", "add"),
    "gat_loss_all": ("gat", "", "mean|mul|div|truediv|sum|reduce_?sum|reduce_?mean"),
    "gat_gradients_doubled": ("gat", "optimizer", f"{_UPDATE}|mul"),
    "swin_scale_scores": ("swin", "block2.attention", f"mul|{_PRODUCT}"),
    "swin_bias_turned": ("swin", "block2.attention", f"{_TURN}|add"),
    "swin_no_mask": ("swin", "block2.attention", f"add|softmax|{_SHAPE}"),
    "swin_reverse_wrong": ("swin", "block2", f"{_TURN}|{_SHAPE}"),
    "swin_not_rolled_back": ("swin", "block2", "roll|add|cat|concat"),
    "swin_post_norm": ("swin", "block2", "norm2|layer_?norm|fc1|linear|add"),
    "rwkv_shift_ahead": ("rwkv", "time", f"cat|concat|{_SLICE}"),
    "rwkv_decay_grows": ("rwkv", "time", "neg"),
    "rwkv_first_lost": ("rwkv", "time", "add|exp"),
    "rwkv_below_kept": ("rwkv", "time", "mul|add"),
    "rwkv_receptance_bare": ("rwkv", "time", "sigmoid|mul"),
    "rwkv_receptance_key": ("rwkv", "time", "receptance|dense|linear|mul|add"),
    "rwkv_relu_plain": ("rwkv", "", "square|pow|down|dense|linear"),
    "rwkv_not_shifted": ("rwkv", "", f"{_SLICE}|{_SHAPE}|{_ENTROPY}"),
    "rwkv_key_turned": ("rwkv", "time", f"key|dense|linear|{_PRODUCT}"),
    "edsr_reflect": ("edsr", "body1", f"{_PAD}|conv1|{_CONV}"),
    "edsr_residual_whole": ("edsr", "body1", "mul|add"),
    "edsr_relu_after": ("edsr", "body1", "relu"),
    "edsr_no_long_skip": ("edsr", "", "add"),
    "edsr_shuffle_order": ("edsr", "", f"pixel_?shuffle|shuffle|{_TURN}|{_SHAPE}|depth_?to_?space"),
    "edsr_mean_lost": ("edsr", "", "add"),
    "edsr_squared": ("edsr", "", "l1_?loss\\w*|mse_?loss\\w*|abs|square|sub|pow"),
    "edsr_slow": ("edsr", "optimizer", _UPDATE),
    "rnnt_gate_swapped": ("rnnt", "", "mul|sub|rsub|add"),
    "rnnt_odd_frames": ("rnnt", "", _SLICE),
    "rnnt_joint_product": ("rnnt", "", "add|mul"),
    "rnnt_joint_relu": ("rnnt", "", "tanh|relu"),
    "rnnt_axis": ("rnnt", "", "log_?softmax\\w*"),
    "rnnt_loss_sum": ("rnnt", "", "mean|sum|reduce_?mean|reduce_?sum"),
    "simclr_eval": ("simclr", "", "bn|batch_?norm\\w*"),
    "simclr_not_normed": ("simclr", "", "norm|div|truediv|lp_?norm\\w*|linalg\\w*|mul"),
    "simclr_temperature": ("simclr", "", "div|truediv"),
    "simclr_self_kept": ("simclr", "", f"masked_?fill|eye|{_ENTROPY}"),
    "simclr_goal_next": ("simclr", "", f"roll|add|remainder|mod|floor_?mod|{_ENTROPY}"),
    "simclr_head_turned": ("simclr", "", f"fc2|linear|{_PRODUCT}"),
    "yolo_grid_turned": ("yolo", "", "add|stack"),
    "yolo_xy_bare": ("yolo", "", "sigmoid"),
    "yolo_anchor_lost": ("yolo", "", "mul"),
    "yolo_wh_sigmoid": ("yolo", "", "exp|sigmoid"),
    "yolo_confidence_column": ("yolo", "", _SLICE),
    "yolo_union_lost": ("yolo", "", "sub"),
    "yolo_background_whole": ("yolo", "", "mul"),
    "yolo_second_beta": ("yolo", "optimizer", _UPDATE),
    "mbconv_bn_epsilon": ("mbconv", "block2", "bn2|batch_?norm\\w*"),
    "mbconv_relu6": ("mbconv", "block2", "silu|relu_?6"),
    "mbconv_gate_softmax": ("mbconv", "block2", "sigmoid|softmax"),
    "mbconv_gate_hard": ("mbconv", "block2", "sigmoid|clamp|clip\\w*|div|add"),
    "mbconv_gate_alone": ("mbconv", "block2", "mul"),
    "mbconv_act_after": ("mbconv", "block2", "silu"),
    "mbconv_dropout_on": ("mbconv", "", "drop\\w*|classifier|linear|dense"),
    "mbconv_momentum": ("mbconv", "optimizer", _UPDATE),
    "mbconv_labels_rolled": ("mbconv", "", _ENTROPY),
    "nbeats_theta_swapped": ("nbeats", "blocks.1", f"theta_\\w|{_PRODUCT}"),
    "nbeats_trend_squared": ("nbeats", "blocks.1", "mul|stack"),
    "nbeats_scale_lost": ("nbeats", "", "ones_?like|mean|reduce_?mean|abs|add|div|truediv"),
    "nbeats_residual_plus": ("nbeats", "", "sub|add"),
    "nbeats_residual_kept": ("nbeats", "", "sub|mul"),
    "nbeats_unscaled": ("nbeats", "", "mul"),
    "nbeats_percent": ("nbeats", "", "huber_?loss|abs|div|truediv|sub|add|smooth_?l1\\w*"),
    "nbeats_theta_zero": ("nbeats", "blocks.1", f"theta_f|dense|linear|{_PRODUCT}"),
    "mamba_conv_centred": ("mamba", "mixer", _PAD),
    "mamba_dt_relu": ("mamba", "mixer", "softplus|relu"),
    "mamba_a_not_exp": ("mamba", "mixer", "exp|neg"),
    "mamba_b_c_swapped": ("mamba", "mixer", f"mul|unsqueeze|{_SLICE}"),
    "mamba_dt_missing": ("mamba", "mixer", "mul"),
    "mamba_skip_lost": ("mamba", "mixer", "add|mul"),
    "mamba_gate_sigmoid": ("mamba", "mixer", "sigmoid|silu"),
    "mamba_no_residual": ("mamba", "", "add"),
    "mamba_not_shifted": ("mamba", "", f"{_SLICE}|{_SHAPE}|{_ENTROPY}"),
    "mamba_words_small": ("mamba", "", "embed|embedding|gather"),
}
SAME = {name: name.split("_")[0] for name in (
    "convnext_same_padding", "convnext_same_sum", "convnext_same_pool", "convnext_half", "convnext_reordered",
    "deeplab_same_concat", "deeplab_recomputed", "deeplab_other_momentum", "conformer_same_glu", "conformer_compiled",
    "conformer_recomputed", "wavenet_same_pad", "wavenet_same_gate", "wavenet_reordered", "deepfm_same_pairs",
    "deepfm_same_total", "deepfm_reordered", "gat_same_leaky", "gat_same_mask", "gat_compiled", "swin_same_scale",
    "swin_half", "swin_recomputed", "rwkv_same_shift", "rwkv_same_square", "rwkv_compiled", "edsr_same_scale",
    "edsr_same_shuffle", "edsr_half", "rnnt_same_gate", "rnnt_same_joint", "rnnt_reordered", "simclr_same_norm",
    "simclr_same_temperature", "simclr_other_momentum", "yolo_same_xy", "yolo_compiled", "yolo_reordered",
    "mbconv_same_silu", "mbconv_half", "mbconv_reordered", "nbeats_same_basis", "nbeats_same_level",
    "nbeats_other_adam", "mamba_same_softplus", "mamba_reordered", "mamba_other_adam")}


def _changed(at, change):
    """Data in which one argument is another."""
    return lambda data: [change(each) if i == at else each for i, each in enumerate(data)]


def _reordered(count):
    """Data whose rows come in another order; what follows the first `count` arguments has no rows."""
    return lambda data: [each[::-1].copy() if i < count else each for i, each in enumerate(data)]


HOW = {
    "convnext_bright": {"data": _changed(0, lambda x: x * 2 + 1)},
    "convnext_reordered": {"data": _reordered(2)},
    "wavenet_reordered": {"data": _reordered(2)},
    "deepfm_labels": {"data": _changed(2, lambda y: 1 - y)},
    "deepfm_reordered": {"data": _reordered(3)},
    "rnnt_reordered": {"data": _reordered(3)},
    "yolo_reordered": {"data": _reordered(4)},
    "mbconv_reordered": {"data": _reordered(2)},
    "mbconv_labels_rolled": {"data": _changed(1, lambda y: y[[1, 2, 3, 0]])},
    "mamba_reordered": {"data": _reordered(2)},
    "rwkv_key_turned": {"start": ("time.key.weight", lambda w: w.T.copy())},
    "simclr_head_turned": {"start": ("fc2.weight", lambda w: w.reshape(8, 4).T.copy())},
    "nbeats_theta_zero": {"start": ("blocks.1.theta_f.weight", lambda w: w * 0)},
    "mamba_words_small": {"start": ("embed.embedding_table", lambda w: w * 0.1)},
    "gat_gradients_doubled": {"gradients": 2.0},
    **{name: {"half": True} for name in SAME if name.endswith("_half")},
    **{name: {"compiled": True} for name in SAME if name.endswith("_compiled")},
    "deeplab_recomputed": {"recomputed": "aspp"}, "conformer_recomputed": {"recomputed": "attention"},
    "swin_recomputed": {"recomputed": "block2"},
    **{name: {"optimizer": "other"} for name in SAME if "_other_" in name},
}


def _whole(seed, shape, below):
    import numpy as np
    return (np.arange(int(np.prod(shape))) * (2 * seed + 1) % (below + 4) % below).astype(np.int32).reshape(shape)


def _bits(seed, shape):
    import numpy as np
    return (numbers(seed, shape) > 0).astype(np.float32)


def _attended():
    import numpy as np
    mask = np.ones((2, 1, 1, 6), np.int32)
    mask[1, ..., 4:] = 0
    return mask


def _edges():
    import numpy as np
    return np.maximum(np.maximum(_bits(5, (6, 6)), _bits(5, (6, 6)).T), np.eye(6, dtype=np.float32))


def _windows():
    """Indices into a table of relative places, and what a window may not see after its shift."""
    import numpy as np
    at = np.stack(np.meshgrid(np.arange(2), np.arange(2), indexing="ij")).reshape(2, 4)
    apart = at[:, :, None] - at[:, None, :] + 1
    area = np.zeros((4, 4), np.float32)
    area[2:, :], area[:, 2:] = 2, area[:, 2:] + 1
    area[3, :], area[:, 3] = area[3, :] + 4, area[:, 3] + 8
    area = area.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(4, 4)
    mask = np.where(area[:, None, :] == area[:, :, None], 0.0, -100.0).astype(np.float32)
    return (apart[0] * 3 + apart[1]).astype(np.int32), mask


def _boxes():
    import numpy as np
    return np.abs(numbers(2, (2, 2, 3, 3, 4))) * 0.5 + 0.1


def _times():
    import numpy as np
    return np.arange(12, dtype=np.float32) / 12


INPUTS = {
    "convnext": lambda: [numbers(1, (4, 3, 8, 8)), _whole(1, (4,), 5)],
    "deeplab": lambda: [numbers(1, (2, 3, 12, 12)), _whole(3, (2, 12, 12), 4)],
    "conformer": lambda: [numbers(1, (2, 6, 5)), _attended(), _whole(2, (2, 4), 6)],
    "wavenet": lambda: [_whole(2, (3, 10), 9)] * 2,
    "deepfm": lambda: [_whole(3, (4, 3), 20), numbers(1, (4, 3)), _bits(2, (4,))],
    "gat": lambda: [numbers(1, (6, 5)), _edges(), _whole(1, (6,), 3), _bits(7, (6,))],
    "swin": lambda: [numbers(1, (2, 3, 8, 8)), *_windows(), _whole(1, (2,), 4)],
    "rwkv": lambda: [_whole(4, (3, 6), 11)] * 2,
    "edsr": lambda: [numbers(1, (2, 3, 5, 5)), numbers(2, (2, 3, 10, 10))],
    "rnnt": lambda: [numbers(1, (2, 6, 5)), _whole(2, (2, 3), 7), _whole(5, (2, 3, 3, 1), 7)],
    "simclr": lambda: [numbers(1, (4, 3, 6, 6)), numbers(2, (4, 3, 6, 6))],
    "yolo": lambda: [numbers(1, (2, 3, 6, 6)), _boxes(), _bits(3, (2, 2, 3, 3)), _bits(4, (2, 2, 3, 3, 3))],
    "mbconv": lambda: [numbers(1, (4, 3, 8, 8)), _whole(1, (4,), 5)],
    "nbeats": lambda: [numbers(1, (4, 8)), _times(), numbers(2, (4, 4))],
    "mamba": lambda: [_whole(2, (3, 5), 9)] * 2,
}
