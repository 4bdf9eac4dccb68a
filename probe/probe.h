/* SPDX-License-Identifier: MIT
 *
 * probe: writes a dump from a C or C++ program.
 *
 *     struct probe_conf conf = {.dir = "out/step0/rank0"};
 *     struct probe_writer *w;
 *     if (probe_writer_open(&w, &conf, &err) != MS_OK) ...
 *     probe_record_begin(w, "Functional.linear.0.forward");
 *     probe_section(w, PROBE_SEC_INPUT_ARGS);
 *     probe_put_tensor(w, NULL, &x);
 *     probe_section(w, PROBE_SEC_OUTPUT);
 *     probe_put_tensor(w, NULL, &y);
 *     probe_record_end(w);
 *     ...
 *     probe_writer_close(w, &err);
 *
 * The files are byte for byte those of the official tool. After every flush each file is a complete
 * document, so a killed program leaves a readable dump.
 *
 * Nothing here exits, prints or locks.  A record that cannot be written is left
 * out; the first failure is kept and reported by probe_writer_flush and
 * probe_writer_close.  A writer is used by one thread at a time.
 */
#ifndef PROBE_PROBE_H
#define PROBE_PROBE_H

#include "probe/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The last two tasks are for the dumper (dumper.h) only. */
enum probe_task {
    PROBE_TASK_STATISTICS,
    PROBE_TASK_TENSOR,
    PROBE_TASK_STRUCTURE,
    PROBE_TASK_NAN_CHECK,
    PROBE_TASK_OVERFLOW_CHECK
};
/* What statistics records hold. */
enum probe_summary { PROBE_SUMMARY_STATISTICS, PROBE_SUMMARY_MD5, PROBE_SUMMARY_XOR };
enum probe_level { PROBE_LEVEL_MIX, PROBE_LEVEL_L0, PROBE_LEVEL_L1, PROBE_LEVEL_DEBUG };
enum probe_framework { PROBE_FW_UNKNOWN, PROBE_FW_PYTORCH, PROBE_FW_MINDSPORE, PROBE_FW_MINDTORCH };

/* Settings. Zeros are sensible defaults: statistics at level mix, with PyTorch's names. */
struct probe_conf {
    const char *dir; /* the rank's directory, made when missing */
    enum probe_task task;
    enum probe_summary summary;
    enum probe_level level;
    enum probe_framework framework; /* UNKNOWN: pytorch */
    bool no_extra;                  /* neither construct.json nor stack.json */
    bool all_numbers; /* Mean and Norm also of integers and float64; the official tool has null */
};

struct probe_stream;

/* A tensor in host memory, or in device memory. For device memory, `stream` is the stream that
 * produces the tensor, and `data` the device address or, with OpenCL, the cl_mem. Device memory
 * works with the dumper (dumper.h) only. */
struct probe_tensor_desc {
    const void *data;
    const char *dtype; /* "float32", "bfloat16", "int64", ... */
    const uint64_t *shape;
    const uint64_t *stride; /* in elements; NULL: contiguous */
    uint32_t ndim;
    bool requires_grad;
    struct probe_stream *stream; /* NULL: host memory */
    uint64_t offset;             /* bytes from `data` to the first element */
};

/* Parts of a record, in the order they are listed. */
enum probe_section {
    PROBE_SEC_INPUT_ARGS,   /* a list */
    PROBE_SEC_INPUT_KWARGS, /* named */
    PROBE_SEC_INPUT,        /* a list: of a backward record */
    PROBE_SEC_OUTPUT,       /* a list */
    PROBE_SEC_PARAMETERS,   /* named */
    PROBE_SEC_PGRAD,        /* readers only: a record of parameter gradients has no sections */
    PROBE_SEC_DEBUG,        /* readers only: a value saved by hand has none either */
    PROBE_SECTIONS
};

enum probe_dir { PROBE_DIR_NONE, PROBE_FORWARD, PROBE_BACKWARD };

struct probe_writer;

MS_API enum ms_rc probe_writer_open(struct probe_writer **w, const struct probe_conf *conf,
                                    struct ms_err *err) MS_MUST_USE;
/* Begin, end or drop a record, whose name follows the grammar of the format. Everything put between
 * begin and end is written at end; drop discards it. */
MS_API void probe_record_begin(struct probe_writer *w, const char *name);
MS_API void probe_record_end(struct probe_writer *w);
MS_API void probe_record_drop(struct probe_writer *w);
/* Begins a part of the record. */
MS_API void probe_section(struct probe_writer *w, enum probe_section section);
/* Put a value. key names a value in a named part or dict and is NULL in a list. */
MS_API void probe_put_tensor(struct probe_writer *w, const char *key,
                             const struct probe_tensor_desc *t);
MS_API void probe_put_int(struct probe_writer *w, const char *key, int64_t v);
MS_API void probe_put_float(struct probe_writer *w, const char *key, double v);
MS_API void probe_put_bool(struct probe_writer *w, const char *key, bool v);
MS_API void probe_put_str(struct probe_writer *w, const char *key, const char *v);
MS_API void probe_put_none(struct probe_writer *w, const char *key);
/* Begin and end a list or dict of values; also the gradients of a parameter: list "weight", tensor,
 * end. */
MS_API void probe_list_begin(struct probe_writer *w, const char *key);
MS_API void probe_dict_begin(struct probe_writer *w, const char *key);
MS_API void probe_list_end(struct probe_writer *w);
MS_API void probe_dict_end(struct probe_writer *w);

/* Sets the parent of node `child`; NULL: `child` is a root. Does nothing at level L1, which has no
 * modules. */
MS_API void probe_parent(struct probe_writer *w, const char *child, const char *parent);
/* Sets the call stack of a node, innermost frame first. */
MS_API void probe_stack(struct probe_writer *w, const char *node, const char *const *frames,
                        unsigned n);

/* Writes all complete records to the files. */
MS_API enum ms_rc probe_writer_flush(struct probe_writer *w, struct ms_err *err);
/* Flushes, closes and frees; NULL is fine. */
MS_API enum ms_rc probe_writer_close(struct probe_writer *w, struct ms_err *err);

#ifdef __cplusplus
}
#endif
#endif
