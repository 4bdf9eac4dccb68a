#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes compare/align_family_table.h: what operators do the same thing.

    python3 tests/gen/align_families.py > compare/align_family_table.h

A family holds the names under which frameworks call one operator, in lower
case and without the underscores around them (`__add__`, `add_`).  A fused
family also has members, the operators another framework runs in its place, and
tails, those of them that can come last and so produce the shared value, the usual
one last.  A view changes type, shape or layout and no value.
"""

FAMILIES = """
linear: linear dense addmm linear_with_grad_accumulation linear_with_frozen_weight matmul_bias
matmul: matmul bmm mm baddbmm batchmatmul batch_matmul einsum mv
biasadd: bias_add biasadd
add: add iadd radd add_n addn residual_add assignadd
mul: mul imul rmul multiply muls
div: div idiv truediv itruediv rtruediv divide true_divide realdiv
sub: sub isub rsub subtract
neg: neg negative
square: square pow ipow
sqrt: sqrt
rsqrt: rsqrt
reciprocal: reciprocal inv
exp: exp exp2
log: log log2 log10 log1p
abs: abs absolute
sign: sign sgn
erf: erf
erfc: erfc
sin: sin
cos: cos
tan: tan
mean: mean reducemean reduce_mean
sum: sum reducesum reduce_sum
var: var var_mean std std_mean
max: max amax maximum reducemax argmax_with_value argmaxwithvalue fmax
min: min amin minimum reducemin fmin
prod: prod reduceprod
norm: norm vector_norm linalg_norm lpnorm
cumsum: cumsum
argmax: argmax argmin
argsort: argsort sort
topk: topk topkrouter moe_gating_top_k moe_gating_top_k_softmax npu_moe_gating_top_k_softmax
softmax: softmax
scaledsoftmax: scaled_masked_softmax npu_scaled_masked_softmax scaled_softmax scaled_upper_triang_masked_softmax
logsoftmax: log_softmax logsoftmax
sigmoid: sigmoid
tanh: tanh
relu: relu
relu6: relu6
leakyrelu: leaky_relu leakyrelu
elu: elu celu selu
silu: silu swish
hardswish: hardswish hswish
hardsigmoid: hardsigmoid hsigmoid
softplus: softplus
mish: mish
glu: glu
gelu: gelu npu_gelu fast_gelu npu_fast_gelu fastgelu quick_gelu bias_gelu
swiglu: swiglu npu_swiglu bias_swiglu fused_swiglu
geglu: geglu npu_geglu
rmsnorm: rms_norm npu_rms_norm rmsnorm fused_rms_norm
addrmsnorm: npu_add_rms_norm add_rms_norm addrmsnorm
layernorm: layer_norm layernorm native_layer_norm fused_layer_norm layernormv3 npu_layer_norm_eval
groupnorm: group_norm groupnorm native_group_norm npu_group_norm_silu
batchnorm: batch_norm batchnorm native_batch_norm sync_batch_norm batch_norm_elemt
instancenorm: instance_norm instancenorm
normalize: normalize l2normalize
rope: npu_rotary_mul rotary_mul rotary_position_embedding applyrotaryposemb apply_rotary_pos_emb npu_apply_rotary_pos_emb fused_rotary_position_embedding
flash: npu_fusion_attention npu_fusion_attention_v2 flash_attention_score flashattentionscore flash_attention scaled_dot_product_attention flash_attn_func flash_attn_varlen_func npu_prompt_flash_attention prompt_flash_attention npu_fused_infer_attention_score memory_efficient_attention speed_fusion_attention
xent: cross_entropy softmax_cross_entropy_with_logits sparse_softmax_cross_entropy_with_logits softmaxcrossentropywithlogits vocab_parallel_cross_entropy
nll: nll_loss nllloss
mse: mse_loss mseloss
l1loss: l1_loss l1loss smooth_l1_loss smoothl1loss huber_loss
bce: binary_cross_entropy binary_cross_entropy_with_logits bceloss bcewithlogitsloss
kldiv: kl_div kldivloss
dropout: dropout npu_dropout dropout2d alpha_dropout native_dropout dropout_ext
embedding: embedding embeddinglookup
gather: gather index_select gather_elements gather_nd take take_along_dim gatherd gathernd index
scatter: scatter scatter_add index_add index_copy index_put scatter_update tensor_scatter_update tensor_scatter_add scatternd
getitem: getitem slice strided_slice stridedslice narrow select
setitem: setitem
cat: cat concat concatenate
stack: stack
split: split chunk tensor_split split_with_sizes unbind unstack
cast: to cast type float half bfloat16 type_as int long bool double
reshape: reshape view flatten unflatten unsqueeze squeeze expand_dims expanddims view_as reshape_as ravel
transpose: transpose permute swapaxes t movedim moveaxis swapdims
contiguous: contiguous clone identity
expand: expand broadcast_to expand_as broadcastto
tile: repeat tile repeat_interleave
pad: pad constant_pad_nd
flip: flip fliplr flipud
roll: roll
tril: tril triu
where: where select_where
mask: masked_fill maskedfill
maskedselect: masked_select nonzero
clamp: clamp clip clip_by_value clamp_min clamp_max
eq: eq equal
ne: ne not_equal
lt: lt less
le: le less_equal
gt: gt greater
ge: ge greater_equal
lor: logical_or or ior bitwise_or
land: logical_and and iand bitwise_and
lnot: logical_not invert bitwise_not
lxor: logical_xor xor bitwise_xor
isfinite: isfinite isnan isinf
conv: conv1d conv2d conv3d convolution conv conv_transpose2d
lstm: lstm
lstmcell: lstm_cell lstmcell
gru: gru dynamicgruv2
grucell: gru_cell grucell
rnn: rnn_tanh rnn_relu
rnncell: rnn_tanh_cell rnn_relu_cell
maxpool: max_pool1d max_pool2d max_pool3d maxpool max_pool2d_with_indices
avgpool: avg_pool1d avg_pool2d avg_pool3d avgpool
adaptiveavgpool: adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
adaptivemaxpool: adaptive_max_pool1d adaptive_max_pool2d
interpolate: interpolate upsample upsample_nearest2d upsample_bilinear2d
onehot: one_hot onehot
arange: arange range
fill: zeros ones full zeros_like ones_like full_like new_zeros new_ones fill empty empty_like
outer: outer
outerrope: polar view_as_real view_as_complex
floordiv: floor_divide floordiv
mod: fmod remainder mod
floor: floor ceil round trunc
groupedmatmul: grouped_matmul npu_grouped_matmul gmm grouped_gemm npu_gmm
permutetokens: npu_moe_token_permute moe_token_permute permute_tokens
unpermutetokens: npu_moe_token_unpermute moe_token_unpermute unpermute_tokens
bincount: bincount histc
allreduce: all_reduce allreduce all_reduce_coalesced
allgather: all_gather all_gather_into_tensor all_gather_base allgather
reducescatter: reduce_scatter reduce_scatter_tensor reduce_scatter_base reducescatter
alltoall: all_to_all all_to_all_single alltoall alltoallv all_to_all_v_c
broadcast: broadcast
send: send isend
recv: recv irecv
p2p: batch_isend_irecv
barrier: barrier
"""

# fused family: members in the order they run; tails, the usual ones behind the bar
FUSED = """
linear: transpose matmul biasadd allreduce reducescatter; biasadd allreduce reducescatter matmul
matmul: biasadd allreduce reducescatter; biasadd allreduce reducescatter
rmsnorm: cast square mean add rsqrt mul sqrt div reciprocal; mul
addrmsnorm: add cast square mean rsqrt mul; mul
layernorm: cast mean sub square var add rsqrt sqrt reciprocal div mul biasadd; mul | add biasadd
groupnorm: cast reshape mean sub square var add rsqrt sqrt reciprocal div mul biasadd silu; mul silu | add biasadd
instancenorm: cast mean sub square var add rsqrt sqrt reciprocal div mul biasadd; div | mul add biasadd
biasadd: add; add
conv: biasadd add; biasadd
lstmcell: linear matmul biasadd add split getitem sigmoid tanh mul; mul
grucell: linear matmul biasadd add split getitem sigmoid tanh sub mul; add
rnncell: linear matmul biasadd add tanh relu; tanh relu
unpermutetokens: gather mul sum scatter; scatter sum
rope: mul neg cat add split getitem stack; add
swiglu: split silu sigmoid mul; mul
geglu: split gelu mul; mul
glu: split sigmoid mul; mul
silu: sigmoid mul; mul
gelu: mul square erf tanh add div; mul
flash: matmul div mul add mask softmax scaledsoftmax dropout cast matmul transpose reshape contiguous expand tile; matmul transpose reshape
scaledsoftmax: mul div add mask cast softmax; softmax
logsoftmax: softmax log; log
xent: logsoftmax nll gather; nll
mse: sub square mean sum; mean sum
embedding: gather allreduce; allreduce gather
gather: allreduce; allreduce
groupedmatmul: matmul split cat; cat matmul
batchnorm: sub mul add div rsqrt sqrt reciprocal mean var square biasadd; mul | add biasadd
normalize: norm clamp div; div
softmax: max sub exp sum div; div
l1loss: sub abs mean sum; mean sum
adaptiveavgpool: mean avgpool; mean avgpool
mean: sum div; div
var: sub square mean sum div; div mean
norm: square sum sqrt; sqrt
getitem: gather; gather
stack: reshape cat; cat
where: mask; mask
tile: expand; expand
relu6: clamp; clamp
relu: clamp max; max clamp
div: mul reciprocal; mul |
square: mul; mul |
"""

VIEWS = "cast reshape transpose contiguous expand"


def parse(text):
    return [line.split(": ") for line in text.strip().splitlines()]


def mask(names, index):
    words = [0, 0, 0]
    for n in names:
        words[index[n] // 64] |= 1 << index[n] % 64
    return "{" + ", ".join(f"0x{w:x}u" for w in words) + "}"


def main():
    families = [(f, names.split()) for f, names in parse(FAMILIES)]
    index = {f: i for i, (f, _) in enumerate(families)}
    assert len(families) <= 192
    owner = {}
    for f, names in families:
        for n in names:
            n = n.strip("_")
            assert n not in owner, n
            owner[n] = f
    fused = {f: [part.split() for part in rest.split("; ")] for f, rest in parse(FUSED)}
    usual = {f: set(tails[tails.index("|") + 1:] if "|" in tails else tails[-1:]) for f, (_, tails) in fused.items()}
    fused = {f: (members, [t for t in tails if t != "|"]) for f, (members, tails) in fused.items()}
    views = VIEWS.split()
    print("/* SPDX-License-Identifier: MIT")
    print(" *")
    print(" * align_family_table: which names are one operator, and which run in place of a fused one.")
    print(" * Written by tests/gen/align_families.py, where the table is to be changed.")
    print(" */")
    print("#ifndef COMPARE_ALIGN_FAMILY_TABLE_H")
    print("#define COMPARE_ALIGN_FAMILY_TABLE_H")
    print("/* clang-format off */\n")
    for f in ("linear", "matmul", "add", "biasadd", "split", "allreduce", "reducescatter"):
        print(f"#define ALIGN__FAM_{f.upper()} {index[f]}")
    print(f"#define ALIGN__FAM_COUNT {len(families)}\n")
    print("static const struct align__family align__families[ALIGN__FAM_COUNT] = {")
    for f, _ in families:
        members, tails = fused.get(f, ([], []))
        view = "true" if f in views else "false"
        print(f'    {{"{f}", {view}, {mask(members, index)}, {mask(tails, index)}, {mask(sorted(usual.get(f, ())), index)}}},')
    print("};\n")
    print("/* Sorted by name. */")
    print("static const struct {\n    const char *name;\n    uint16_t family;\n} align__family_names[] = {")
    for n in sorted(owner):
        print(f'    {{"{n}", {index[owner[n]]}}},')
    print("};\n\n/* clang-format on */\n#endif")


if __name__ == "__main__":
    main()
