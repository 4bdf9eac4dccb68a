/* SPDX-License-Identifier: MIT
 *
 * tape: the operators of a small language model, forward and backward, with a dump of each.
 *
 * A forward call computes, appends a node to the tape and tells the dumper; tape_backward walks the
 * tape from its end, so gradients and their dump need no second description of the model.
 * Everything is float32 with rows of `cols` numbers; a sequence of the batch is `seq` rows.
 */
#ifndef SAMPLES_TRAIN_TAPE_H
#define SAMPLES_TRAIN_TAPE_H

#include <probe/dumper.h>

struct tensor {
    float *v, *g; /* value and gradient */
    int rows, cols;
};

enum op {
    OP_EMBED,     /* rows of a table by token */
    OP_ADD,       /* a + k b */
    OP_LINEAR,    /* a w^T + b */
    OP_NORM,      /* layer norm with weight, bias and k as its epsilon */
    OP_ATTEND,    /* of q, k, v side by side; k is the scale, how: is the mask on */
    OP_GELU,      /* by tanh */
    OP_ROUND,     /* to half precision and back */
    OP_LOSS,      /* mean cross entropy of the rows against targets */
    MODULE_ENTER, /* not operators: where modules begin and end */
    MODULE_EXIT
};

struct node {
    enum op op;
    struct tensor *a, *b, *w, *bias, *out;
    const int64_t *tokens;
    float k, *saved;
    int how;
    const char *path, *class_name; /* of a module */
    int64_t call;                  /* its number in the dump */
};

struct tape {
    struct node node[512];
    int n;
    struct tensor made[256]; /* results */
    int nmade, seq, heads;
    struct probe_dumper *dump; /* or NULL */
    struct probe_call *module[16];
    int depth;
};

void *must_alloc(size_t n);
void tensor_make(struct tensor *t, int rows, int cols);
/* Forget all results; their memory is used again. */
void tape_reset(struct tape *t);
void tape_free(struct tape *t);

struct tensor *tape_embed(struct tape *t, struct tensor *table, const int64_t *tokens, int n);
struct tensor *tape_add(struct tape *t, struct tensor *a, struct tensor *b, float k);
/* how != 0: the square weight is taken transposed, as a wrong port does. */
struct tensor *tape_linear(struct tape *t, struct tensor *a, struct tensor *w, struct tensor *bias,
                           int how);
struct tensor *tape_norm(struct tape *t, struct tensor *a, struct tensor *w, struct tensor *bias,
                         float eps);
struct tensor *tape_attend(struct tape *t, struct tensor *qkv, float scale, int masked);
struct tensor *tape_gelu(struct tape *t, struct tensor *a);
struct tensor *tape_round(struct tape *t, struct tensor *a);
/* The mean loss; its gradient is 1. */
float tape_loss(struct tape *t, struct tensor *logits, const int64_t *targets);

/* Modules hold what is computed between these; in: the input, out: the output. */
void tape_enter(struct tape *t, const char *path, const char *class_name, struct tensor *in);
void tape_exit(struct tape *t, struct tensor *out);

/* Gradients of all that was computed, added to those of the parameters. */
void tape_backward(struct tape *t);

#endif
