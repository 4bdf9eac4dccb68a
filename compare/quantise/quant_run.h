/* SPDX-License-Identifier: MIT
 *
 * quant_run: the layers of one dump: operators that multiply by a weight or by each other, with the rows
 * of their operands and results.
 *
 * A layer is found by the operator (Functional.linear, conv2d, matmul, ...) and belongs to the module
 * around it; where a dump has modules alone, by the module that has a weight. Its key leaves out the
 * class of the module and the numbers of operators, so that a layer keeps its key when its module is
 * exchanged for one that quantises: "layers.0.fc linear 0".
 *
 * A quantiser is a node that rounds its input and passes it on: a fake-quantise operator or module.
 */
#ifndef COMPARE_QUANTISE_QUANT_RUN_H
#define COMPARE_QUANTISE_QUANT_RUN_H

#include "probe/base/progress.h"
#include "probe/base/vec.h"
#include "probe/dump/dump.h"
#include "probe/dump/find.h"
#include "probe/dump/tree.h"
#include "probe/tensor/tensor.h"

enum quant_kind { QUANT_LINEAR, QUANT_CONV, QUANT_MATMUL };

/* Rows are indices of the dump's rows; MS_MAP_NONE: not recorded. */
struct quant_layer {
    struct ms_str key;
    struct ms_str name; /* "layers.0.fc", or the operator's record outside of modules */
    struct ms_str node; /* name of the record */
    enum quant_kind kind;
    uint32_t x, w, bias, y;
    uint32_t module_x, module_w; /* what the module got and owns, before it quantises */
    uint32_t module_y;
    uint32_t record; /* index of the node, for the arguments of a convolution */
};

struct quantiser {
    struct ms_str name; /* of the module around it, else of the record */
    struct ms_str node;
    bool is_weight;
    uint32_t before, after;
};

struct quant_run {
    struct probe_dump *dump;
    struct probe_tree tree;
    bool has_tree;
    char *dir; /* of the tensor files */
    struct ms_arena *arena;
    MS_VEC(struct quant_layer) layers; /* in order of execution */
    struct ms_map keys;                /* index of `layers` */
    MS_VEC(struct quantiser) quantisers;
    uint32_t result; /* row of the output of the last forward record that is more than one number */
};

/* Tells a dump, a folder of dumps or a dump.json, from a checkpoint. */
bool quant_is_dump(const char *path);
enum ms_rc quant_run_open(struct quant_run *r, const struct probe_place *place,
                          struct ms_err *err) MS_MUST_USE;
void quant_run_close(struct quant_run *r);

/* What is told of a work on the layers of several dumps. */
struct quant_watch {
    struct ms_progress *bar; /* NULL: silent */
    size_t dump, dumps;      /* the current one, and how many there are */
    uint64_t layers;         /* done, of all dumps */
};
/* Shows that `done` of all layers of the current dump are done. */
void quant_watch_layer(struct quant_watch *w, size_t done, size_t all);

/* The elements of a tensor as float32 in C order. */
struct quant_values {
    float *v; /* NULL: not loaded */
    uint64_t count;
    uint32_t ndim;
    uint64_t shape[PROBE_MAX_DIMS];
    enum ms_dtype dtype;
};
/* Reads a row's file. A row without one, and a tensor of no numbers, gives MS_OK and no values. */
enum ms_rc quant_load(const struct quant_run *r, uint32_t row, struct quant_values *v,
                      struct ms_err *err) MS_MUST_USE;
void quant_values_free(struct quant_values *v);
/* Converts elements to float32. */
void quant_to_floats(enum ms_dtype t, const void *p, size_t n, float *out);

/* Reads whole numbers among the arguments of a layer's operator, by place or by name: `at`, or "stride". Returns how
 * many there are, at most `most`. */
unsigned quant_argument(const struct quant_run *r, const struct quant_layer *l, unsigned at,
                        const char *name, int64_t *out, unsigned most);

#endif
