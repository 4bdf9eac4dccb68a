/* SPDX-License-Identifier: MIT
 *
 * dumper: dumps from a training or inference program in C or C++, chosen by the
 * config.json that the Python tools read.
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
 * The low-level writer of probe.h puts what it is told into one directory; this
 * makes the names, counts the calls, knows which module holds what, and keeps
 * steps, ranks and filters.
 *
 * The program comes first: nothing here exits, and what cannot be dumped is
 * left out with a line in the step's dump_error_info.log.  When the disk is
 * full the step is given up, with one warning, and the program goes on.  All
 * functions take a NULL dumper or call and do nothing then, so a program that
 * could not open its dumper needs no condition anywhere.
 *
 * Calls may be made from any thread; one call belongs to one thread at a time.
 * A dumper is opened, started, stepped and closed by one thread.  In a forked
 * child it does nothing.
 */
#ifndef PROBE_DUMPER_H
#define PROBE_DUMPER_H

#include "probe/probe.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings --------------------------------------------------------- */

/* Parts of records to keep; neither of a pair means both. */
enum probe_data {
    PROBE_DATA_FORWARD = 1 << 0,
    PROBE_DATA_BACKWARD = 1 << 1,
    PROBE_DATA_INPUT = 1 << 2,
    PROBE_DATA_OUTPUT = 1 << 3
};
/* Operators to keep by how likely they are at fault: all but those that only move data, those that
 * compute much, or all.  Only of PyTorch's names, and not where `scope` or `list` is given. */
enum probe_risk { PROBE_RISK_FOCUS, PROBE_RISK_CORE, PROBE_RISK_ALL };

/* Steps or ranks `first` to `last`, both included. */
struct probe_range {
    uint32_t first, last;
};
/* Only elements begin to end of dimension `dim`, as Python counts them: negative from the end.
 * A tensor with fewer dimensions, or another size there, is taken whole. */
struct probe_slice {
    uint32_t dim;
    bool has_end, has_size;
    int64_t begin, end;
    uint64_t size;
};

/* What to dump.  Zeroes are sensible: statistics of everything at level mix.  Lists end in NULL. */
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
    const char *const *tensor_list; /* those to keep the elements of as well */
    const struct probe_slice *slice;
    size_t nslices;
    int64_t overflow_nums; /* overflow_check: records before it ends; 0: one, -1: no end */
    bool disabled;         /* dump_enable: false */
    bool is_watched;       /* dump_enable is there: the file is read again when it has changed */
    bool no_extra;         /* neither construct.json nor stack.json */
    bool high_precision;   /* Mean and Norm of narrow types as float32 */
    bool all_numbers;      /* Mean and Norm also of integers and float64 */
    bool module_backward;  /* adapters: backward of modules also where the official tool has none */
    const char *const *op_namespaces; /* adapters: operators of torch.ops that are recorded, too */
    bool rank_known; /* use my_rank; else the rank that the launcher put into the environment */
    uint32_t my_rank;
    size_t memory_max; /* bytes of tensors on their way to the disk; 0: 256 MiB */
};

/* Read config.json.  Defaults are those of the Python tools.  Unknown keys are warned about; a
 * wrong value is an error that names the key, what was found and what is allowed.  The result, and
 * all that it points to, is freed with probe_settings_free. */
MS_API enum ms_rc probe_settings_load(struct probe_settings **s, const char *path,
                                      struct ms_err *err) MS_MUST_USE;
/* The same for text in memory; name stands for the path in messages. */
MS_API enum ms_rc probe_settings_parse(struct probe_settings **s, const char *name,
                                       const char *text, size_t n, struct ms_err *err) MS_MUST_USE;
MS_API void probe_settings_free(struct probe_settings *s);

/* ---- the dumper ------------------------------------------------------- */

struct probe_dumper;

/* Settings are copied.  They are checked as those of a file are. */
MS_API enum ms_rc probe_dumper_open(struct probe_dumper **d, const struct probe_settings *s,
                                    struct ms_err *err) MS_MUST_USE;
/* Open from a config.json. */
MS_API enum ms_rc probe_dumper_load(struct probe_dumper **d, const char *path,
                                    struct ms_err *err) MS_MUST_USE;
/* Finishes the step and frees d, also after a failure, which is reported. */
MS_API enum ms_rc probe_dumper_close(struct probe_dumper *d, struct ms_err *err);

/* Begin to collect, when step and rank are among those chosen. */
MS_API void probe_dumper_start(struct probe_dumper *d);
/* Collect no more until the next start, and bring the files up to date. */
MS_API void probe_dumper_stop(struct probe_dumper *d);
/* The step is over: its files are finished and calls are counted from 0 again. */
MS_API void probe_dumper_step(struct probe_dumper *d);
/* The number of the step, for a run that resumes. */
MS_API void probe_dumper_set_step(struct probe_dumper *d, uint32_t step);
/* The rank has become known: "proc<pid>" is renamed. */
MS_API void probe_dumper_set_rank(struct probe_dumper *d, uint32_t rank);
/* Would a call be collected now?  Saves a program preparations. */
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
    const char *key; /* keyword, parameter or entry of a dict; NULL where the place says it */
};

/* ---- tensors of devices ----------------------------------------------- */

enum probe_device {
    PROBE_DEVICE_CPU,    /* of mstx_cpu_stream_new (mstx_device.h); elements in host memory */
    PROBE_DEVICE_OPENCL, /* a cl_command_queue; elements in a cl_mem */
    PROBE_DEVICE_CUDA,   /* a CUstream or cudaStream_t */
    PROBE_DEVICE_ACL     /* an aclrtStream */
};

/* Tensors that name this stream are copied out by it: the copy is queued behind the work that makes
 * them and before what is queued later, so their memory may be used again at once, and neither the
 * program nor the device waits.  A thread of the dumper makes figures and files when copies have
 * arrived; only stop, step and close wait for the last of them.  No more than memory_max is on its
 * way: beyond that the program waits for the oldest, and a larger tensor goes alone.
 * Call it where the handle's context is current; the library is one that the process has loaded. */
MS_API enum ms_rc probe_stream_open(struct probe_stream **s, enum probe_device device, void *handle,
                                    struct ms_err *err) MS_MUST_USE;
/* After the last tensor of it; what is on its way arrives all the same.  The handle must stay until
 * the dumpers' next stop.  NULL is fine. */
MS_API void probe_stream_close(struct probe_stream *s);

/* ---- calls ------------------------------------------------------------ */

struct probe_call;

/* A module runs: "layers.0.fc" of class "Linear".  What is entered before its exit on the same
 * thread lies inside it. */
MS_API struct probe_call *probe_module_enter(struct probe_dumper *d, const char *path,
                                             const char *class_name);
/* Its backward; call is what probe_call_number said of the forward. */
MS_API struct probe_call *probe_module_enter_backward(struct probe_dumper *d, const char *path,
                                                      const char *class_name, int64_t call);
/* An operator runs: "Functional", "linear".  Operators that it uses itself are not collected. */
MS_API struct probe_call *probe_op_enter(struct probe_dumper *d, const char *prefix,
                                         const char *name);
MS_API struct probe_call *probe_op_enter_backward(struct probe_dumper *d, const char *prefix,
                                                  const char *name, int64_t call);
/* A part of the program that is no module, such as "optimizer": it holds what is called inside. */
MS_API struct probe_call *probe_root_enter(struct probe_dumper *d, const char *name);

/* Which call of its name in this step this is, from 0; -1 of NULL. */
MS_API int64_t probe_call_number(const struct probe_call *c);
/* Values are looked at during the call.  Inputs with a key come after those without. */
MS_API void probe_call_input(struct probe_call *c, const struct probe_value *v);
MS_API void probe_call_output(struct probe_call *c, const struct probe_value *v);
/* A parameter of a module, under its key; after the outputs. */
MS_API void probe_call_parameter(struct probe_call *c, const struct probe_value *v);
/* The operator goes on in the background: others may be entered on this thread, and the outputs and
 * the exit come later, from any thread. */
MS_API void probe_call_detach(struct probe_call *c);
MS_API void probe_call_exit(struct probe_call *c);
/* The call has failed: nothing of it is dumped. */
MS_API void probe_call_drop(struct probe_call *c);

/* A whole forward operator at once.  Returns its number. */
MS_API int64_t probe_op(struct probe_dumper *d, const char *prefix, const char *name,
                        const struct probe_value *in, size_t nin, const struct probe_value *out,
                        size_t nout);

/* Gradients of a module's own parameters, each under its key, in the order they were made. */
MS_API void probe_parameters_grad(struct probe_dumper *d, const char *path, const char *class_name,
                                  const struct probe_value *grads, size_t n);

/* Level debug: any value under a name of the program's; grad: the gradient of what was saved under
 * that name. */
MS_API void probe_save(struct probe_dumper *d, const char *name, const struct probe_value *v);
MS_API void probe_save_grad(struct probe_dumper *d, const char *name, const struct probe_value *v);

#ifdef __cplusplus
}
#endif
#endif
