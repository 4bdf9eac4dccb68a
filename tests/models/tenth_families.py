# SPDX-License-Identifier: MIT
"""Families of the tenth set, written by somebody who had not read the rules.

Of transformers, diffusers, timm and torchvision: CodeGen, OLMoE, Switch transformers, MobileViT, TimeSformer, AST,
an autoencoder, ConvMixer, DenseNet. Own: einsum for everything with two tokens ahead, prefixes in a frozen model,
late interaction, shards of tensor-parallel layers, a knowledge graph, a soft actor, a model of the world, an equation
of heat, two voices, a queue of keys, slots, stages of a pipeline, sets of points, folds of proteins, sales.
Loops: Muon, a second pass at the worst place nearby, LAMB with micro batches.
"""
import tenth_libraries
import tenth_more
import tenth_see
import tenth_text


def families():
    return [*tenth_text.families(), *tenth_see.families(), *tenth_libraries.families(), *tenth_more.families()]
