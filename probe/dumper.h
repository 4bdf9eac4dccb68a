/* SPDX-License-Identifier: MIT
 *
 * dumper: dumps from a training or inference program in C or C++, configured by the config.json
 * that the Python tools read.
 *
 *     struct probe_dumper *d;
 *     if (probe_dumper_load(&d, "config.json", &err) != MS_OK) ...
 *     for (;;) {                                             each step
 *         probe_dumper_start(d);
 *         struct probe_call *fc = probe_module_enter(d, "fc", "Linear");
 *         probe_call_input(fc, &(struct probe_value){PROBE_TENSOR, .tensor = &x});
 *         ...                                                operators inside likewise
 *         probe_call_output(fc, &(struct probe_value){PROBE_TENSOR, .tensor = &y});
 *         probe_call_exit(fc);
 *         probe_dumper_stop(d);
 *         probe_dumper_step(d);
 *     }
 *     probe_dumper_close(d, &err);
 *
 * The low-level writer of probe.h writes given records into one directory. The dumper makes the
 * names, counts the calls, tracks which module contains what, and handles steps, ranks and filters.
 *
 * The program has priority: nothing here exits, and what cannot be dumped is left out with a line
 * in the step's dump_error_info.log. When the disk is full, the dump of the step is given up with
 * one warning, and the program continues. All functions accept a NULL dumper or call and then do
 * nothing, so a program that could not open its dumper needs no checks.
 *
 * Calls may be made from any thread; one call belongs to one thread at a time. One thread opens,
 * starts, steps and closes a dumper. In a forked child the dumper does nothing.
 */
#ifndef PROBE_DUMPER_H
#define PROBE_DUMPER_H

#include "probe/probe.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings --------------------------------------------------------- */

/* Parts of records to keep; if neither of a pair is set, both are kept. */
enum probe_data {
    PROBE_DATA_FORWARD = 1 << 0,
    PROBE_DATA_BACKWARD = 1 << 1,
    PROBE_DATA_INPUT = 1 << 2,
    PROBE_DATA_OUTPUT = 1 << 3
};
/* Operators to keep by how likely they are at fault: all except those that only move data, those
 * with much computation, or all. Applies only to PyTorch's names, and not when `scope` or `list` is
 * given. */
enum probe_risk { PROBE_RISK_FOCUS, PROBE_RISK_CORE, PROBE_RISK_ALL };

/* Steps or ranks `first` to `last`, both included. */
struct probe_range {
    uint32_t first, last;
};
/* Only elements begin to end of dimension `dim`, as in Python: negative numbers count from the end.
 * A tensor with fewer dimensions, or with another size of this dimension, is dumped whole. */
struct probe_slice {
    uint32_t dim;
    bool has_end, has_size;
    int64_t begin, end;
    uint64_t size;
};

/* What to dump. Zeros are sensible defaults: statistics of everything at level mix. Lists end in
 * NULL. */
struct probe_settings {
    const char *dump_path; /* required */
    enum probe_task task;
    enum probe_summary summary;
    enum probe_level level;
    enum probe_framework framework;
    enum probe_risk risk;
    unsigned data_mode;                    /* of enum probe_data; 0: all */
    const struct probe_range *step, *rank; /* none: all */
    size_t nsteps, nranks;
    const char *const *scope;       /* first and last record */
    const char *const *list;        /* records with one of these in their name */
    const char *const *tensor_list; /* records whose elements are dumped, too */
    const struct probe_slice *slice;
    size_t nslices;
    int64_t overflow_nums; /* overflow_check: records before it ends; 0: one, -1: no end */
    bool disabled;         /* dump_enable: false */
    bool is_watched;       /* dump_enable is given: a changed file is read again */
    bool no_extra;         /* neither construct.json nor stack.json */
    bool high_precision;   /* Mean and Norm of narrow types as float32 */
    bool all_numbers;      /* Mean and Norm also of integers and float64 */
    bool module_backward;  /* adapters: backward of modules even where the official tool has none */
    bool strict;           /* scope, construct.json and stack.json as the official tool has them */
    const char *const *op_namespaces; /* adapters: namespaces of torch.ops to record, too */
    bool rank_known; /* use my_rank; else the rank from the launcher's environment */
    uint32_t my_rank;
    size_t memory_max; /* bytes of tensors in flight to the disk; 0: 256 MiB */
};

/* Reads config.json. Defaults are those of the Python tools. Unknown keys give a warning; a wrong
 * value is an error that names the key, what was found and what is allowed. probe_settings_free
 * frees the result and all that it points to. */
MS_API enum ms_rc probe_settings_load(struct probe_settings **s, const char *path,
                                      struct ms_err *err) MS_MUST_USE;
/* Parses text in memory; `name` replaces the path in messages. */
MS_API enum ms_rc probe_settings_parse(struct probe_settings **s, const char *name,
                                       const char *text, size_t n, struct ms_err *err) MS_MUST_USE;
MS_API void probe_settings_free(struct probe_settings *s);

/* ---- the dumper ------------------------------------------------------- */

struct probe_dumper;

/* Opens a dumper. Settings are copied, and checked like those of a file. */
MS_API enum ms_rc probe_dumper_open(struct probe_dumper **d, const struct probe_settings *s,
                                    struct ms_err *err) MS_MUST_USE;
/* Opens a dumper from a config.json. */
MS_API enum ms_rc probe_dumper_load(struct probe_dumper **d, const char *path,
                                    struct ms_err *err) MS_MUST_USE;
/* Finishes the step and frees d, also after a failure, which is returned. */
MS_API enum ms_rc probe_dumper_close(struct probe_dumper *d, struct ms_err *err);

/* Starts collecting, if step and rank are selected. */
MS_API void probe_dumper_start(struct probe_dumper *d);
/* Stops collecting until the next start, and updates the files. */
MS_API void probe_dumper_stop(struct probe_dumper *d);
/* Ends the step: its files are finished and calls are counted from 0 again. */
MS_API void probe_dumper_step(struct probe_dumper *d);
/* Sets the number of the step, for a run that resumes. */
MS_API void probe_dumper_set_step(struct probe_dumper *d, uint32_t step);
/* Sets the rank once it is known: "proc<pid>" is renamed. */
MS_API void probe_dumper_set_rank(struct probe_dumper *d, uint32_t rank);
/* Tells whether a call would be collected now, so that a program can skip preparations. */
MS_API bool probe_dumper_active(const struct probe_dumper *d);

/* ---- values ----------------------------------------------------------- */

enum probe_value_kind {
    PROBE_NONE,
    PROBE_TENSOR,
    PROBE_INT,
    PROBE_FLOAT,
    PROBE_BOOL,
    PROBE_STR,
    PROBE_LIST,
    PROBE_DICT
};
struct probe_value {
    enum probe_value_kind kind;
    union {
        const struct probe_tensor_desc *tensor;
        int64_t i;
        double f;
        bool b;
        const char *s;
        const struct probe_value *items; /* of a list or dict */
    };
    size_t n;        /* items */
    const char *key; /* keyword, parameter or dict entry; NULL where position identifies it */
};

/* ---- tensors of devices ----------------------------------------------- */

enum probe_device {
    PROBE_DEVICE_CPU,    /* of mstx_cpu_stream_new (mstx_device.h); elements in host memory */
    PROBE_DEVICE_OPENCL, /* a cl_command_queue; elements in a cl_mem */
    PROBE_DEVICE_CUDA,   /* a CUstream or cudaStream_t */
    PROBE_DEVICE_ACL     /* an aclrtStream */
};

/* Opens a stream. Tensors that name the stream are copied to the host by it: the copy is queued
 * behind the work that makes them and before work that is queued later, so their memory may be
 * reused at once, and neither the program nor the device waits. A thread of the dumper computes
 * statistics and writes files when copies have arrived; only stop, step and close wait for the last
 * copy. At most memory_max bytes are in flight: beyond that the program waits for the oldest copy,
 * and a larger tensor is copied alone. Call it where the handle's context is current; the library
 * used is the one that the process has loaded. */
MS_API enum ms_rc probe_stream_open(struct probe_stream **s, enum probe_device device, void *handle,
                                    struct ms_err *err) MS_MUST_USE;
/* Closes a stream after its last tensor; copies in flight still arrive. The handle must stay valid
 * until the next stop of the dumpers. NULL is fine. */
MS_API void probe_stream_close(struct probe_stream *s);

/* ---- calls ------------------------------------------------------------ */

struct probe_call;

/* Begins a module's forward: "layers.0.fc" of class "Linear". Calls entered before its exit on the
 * same thread are inside the module. */
MS_API struct probe_call *probe_module_enter(struct probe_dumper *d, const char *path,
                                             const char *class_name);
/* Begins a module's backward; call is the probe_call_number of the forward. */
MS_API struct probe_call *probe_module_enter_backward(struct probe_dumper *d, const char *path,
                                                      const char *class_name, int64_t call);
/* Begins an operator: "Functional", "linear". Operators that it calls itself are not collected. */
MS_API struct probe_call *probe_op_enter(struct probe_dumper *d, const char *prefix,
                                         const char *name);
MS_API struct probe_call *probe_op_enter_backward(struct probe_dumper *d, const char *prefix,
                                                  const char *name, int64_t call);
/* Begins a part of the program that is no module, such as "optimizer", as the parent of the calls
 * inside. */
MS_API struct probe_call *probe_root_enter(struct probe_dumper *d, const char *name);

/* Returns the zero-based number of this call among those of its name in this step; -1 for NULL. */
MS_API int64_t probe_call_number(const struct probe_call *c);
/* Add inputs and outputs. Values are read before these functions return. Inputs with a key come
 * after those without. */
MS_API void probe_call_input(struct probe_call *c, const struct probe_value *v);
MS_API void probe_call_output(struct probe_call *c, const struct probe_value *v);
/* Adds a parameter of a module under its key, after the outputs. */
MS_API void probe_call_parameter(struct probe_call *c, const struct probe_value *v);
/* Detaches an operator that runs in the background: others may be entered on this thread, and its
 * outputs and exit may come later, from any thread. */
MS_API void probe_call_detach(struct probe_call *c);
MS_API void probe_call_exit(struct probe_call *c);
/* Drops a failed call: nothing of it is dumped. */
MS_API void probe_call_drop(struct probe_call *c);

/* Records a whole forward operator. Returns its number. */
MS_API int64_t probe_op(struct probe_dumper *d, const char *prefix, const char *name,
                        const struct probe_value *in, size_t nin, const struct probe_value *out,
                        size_t nout);

/* Records gradients of a module's own parameters, each under its key, in the order they were
 * made. */
MS_API void probe_parameters_grad(struct probe_dumper *d, const char *path, const char *class_name,
                                  const struct probe_value *grads, size_t n);

/* Save any value under a name of the program, at level debug. probe_save_grad saves the gradient of
 * the value that was saved under that name. */
MS_API void probe_save(struct probe_dumper *d, const char *name, const struct probe_value *v);
MS_API void probe_save_grad(struct probe_dumper *d, const char *name, const struct probe_value *v);

#ifdef __cplusplus
}
#endif
#endif
