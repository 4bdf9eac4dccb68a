/* SPDX-License-Identifier: MIT
 *
 * model: a decoder of a few layers that predicts the next token, with faults by name.
 *
 * Parameters carry the names that PyTorch would give them; `linear` keeps its weight as (out, in).
 * model_save writes one NAME.npy (float32, C order) for each of them into a folder, which
 * numpy.load reads, so a twin in another framework can start from the same numbers.
 */
#ifndef SAMPLES_TRAIN_MODEL_H
#define SAMPLES_TRAIN_MODEL_H

#include "tape.h"

enum { LAYERS_MAX = 12, PARAMS_MAX = 12 * LAYERS_MAX + 8 };

struct shape {
    int vocab, dim, heads, layers, seq, batch; /* batch: sequences of one rank */
};

struct param {
    char name[96];
    struct tensor t;
    float *m; /* momentum */
};

/* What a port gets wrong. */
enum fault {
    FAULT_NONE,
    FAULT_SCALE,      /* attention without 1/sqrt(width) */
    FAULT_SIGN,       /* the second residual is subtracted */
    FAULT_TRANSPOSED, /* the projection's weight is taken transposed */
    FAULT_RESIDUAL,   /* the first residual is missing */
    FAULT_EPS,        /* layer norm with an epsilon of 0.01 */
    FAULT_MASK,       /* attention sees the future */
    FAULT_HALF,       /* the output of the MLP passes through half precision */
    FAULT_BIAS,       /* the first linear of the MLP without its bias */
    FAULTS
};

struct model {
    struct shape shape;
    struct param param[PARAMS_MAX];
    int nparams;
    enum fault fault;
    int fault_layer;
    char path[LAYERS_MAX][3][32]; /* of layer, attention, MLP */
};

/* Weights from a generator that is the same everywhere. */
void model_init(struct model *m, const struct shape *s, unsigned seed);
void model_free(struct model *m);
/* "layer3.scale"; false: no such fault or layer. */
bool model_set_fault(struct model *m, const char *name);
const char *fault_name(enum fault f);
const char *fault_text(enum fault f);

/* The loss of a batch. */
float model_forward(struct model *m, struct tape *t, const int64_t *tokens, const int64_t *targets);
void model_zero_grad(struct model *m);
/* Step of gradient descent with momentum. */
void model_update(struct model *m, float rate);

/* Into or from a folder of .npy files; false, with a line on stderr, when it cannot be. */
bool model_save(const struct model *m, const char *folder);
bool model_load(struct model *m, const char *folder);

#endif
