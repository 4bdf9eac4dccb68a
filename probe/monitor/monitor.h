/* SPDX-License-Identifier: MIT
 *
 * monitor: figures of a training, step by step, in the csv files of the official monitor.
 *
 *     struct probe_monitor_settings *s;
 *     struct probe_monitor *m;
 *     probe_monitor_settings_parse(&s, "config.json", text, &err)
 *     probe_monitor_open(&m, &(struct probe_monitor_conf){.settings = s, .dir = ..., .base = ...}, &err)
 *     each step:
 *         probe_monitor_put(m, PROBE_MON_GRAD_REDUCED, 0, MS_STR("0:fc.weight"), &tensor, "torch.float32");
 *         probe_monitor_flush(m, PROBE_MON_GRAD_REDUCED, step);    one csv file, or rows more in it
 *         probe_monitor_step_end(m);                               alarms of the step
 *     probe_monitor_close(m);
 *
 * The figures are computed within the call that gives the tensor. A name is "STAGE:NAME", with ":MICRO"
 * behind it for activations and for gradients of each micro step.
 *
 * A series that was not given in a step has no row in that step; the official tool repeats its last figures.
 */
#ifndef PROBE_MONITOR_MONITOR_H
#define PROBE_MONITOR_MONITOR_H

#include "probe/tensor/tensor.h"

/* ---- config.json ------------------------------------------------------ */

enum probe_mon_op {
    PROBE_MON_NORM,
    PROBE_MON_MIN,
    PROBE_MON_MAX,
    PROBE_MON_ZEROS, /* share of the elements below eps in magnitude */
    PROBE_MON_NANS,
    PROBE_MON_ID, /* the value of a tensor without dimensions */
    PROBE_MON_MEAN,
    PROBE_MON_SHAPE,
    PROBE_MON_DTYPE,
    PROBE_MON_OPS
};

struct probe_mon_rule {
    bool is_nan;        /* AnomalyNan, else AnomalyTurbulence */
    bool has_threshold; /* always for a turbulence */
    double threshold;
};

enum { PROBE_MON_RULES = 16 };
enum probe_mon_format { PROBE_MON_CSV, PROBE_MON_TENSORBOARD, PROBE_MON_API };

/* The keys of config.json under their own names. */
struct probe_monitor_settings {
    enum probe_mon_op ops[PROBE_MON_OPS];
    uint32_t nops;
    const char *const *targets; /* names, NULL-terminated; one empty name: all */
    const char *const *attention_hook,
        *const *linear_hook, *const *moe_router_weight_hook,
                                 *const *moe_router_logit_hook; /* l2_targets; NULL: absent */
    const int64_t *module_ranks;
    size_t nranks;
    double eps;
    int64_t ndigits, start_step, collect_times, step_interval, step_count_per_record;
    int format, sa_order; /* sa_order 0: s,b,h,d */
    bool print_struct, all_xy, xy_distribution, forward_only, backward_only, ur_distribution,
        mv_distribution, wg_distribution, param_distribution, mg_direction, stack_info,
        monitor_mbs_grad, recording_l2_features, squash_name, dynamic_on,
        invariants; /* ours: what must hold in every training is watched */
    bool cc_enable, cc_log_only, cc_pre_hook;
    const char *const *cc_codeline;
    struct probe_mon_rule rules[PROBE_MON_RULES];
    uint32_t nrules;
    bool alert_dump;
    const char *const *append_output; /* none, or two times */
};

/* Parses the text of a config.json; messages begin with `name`. A key that is unknown is only warned of. */
enum ms_rc probe_monitor_settings_parse(struct probe_monitor_settings **s, const char *name,
                                        struct ms_str text, struct ms_err *err) MS_MUST_USE;
void probe_monitor_settings_free(struct probe_monitor_settings *s);
const char *probe_monitor_op_name(enum probe_mon_op op);

/* ---- the monitor ------------------------------------------------------ */

enum probe_mon_metric {
    PROBE_MON_ACTV,
    PROBE_MON_ACTV_GRAD,
    PROBE_MON_GRAD_UNREDUCED,
    PROBE_MON_GRAD_REDUCED,
    PROBE_MON_EXP_AVG,
    PROBE_MON_EXP_AVG_SQ,
    PROBE_MON_PARAM_ORIGIN,
    PROBE_MON_PARAM_UPDATED,
    PROBE_MON_OTHER, /* directions of gradients; communication */
    PROBE_MON_METRICS
};
struct probe_monitor;

struct probe_monitor_conf {
    const struct probe_monitor_settings *settings; /* copied as far as needed */
    const char *dir;                               /* folder of the csv files */
    const char *base; /* anomaly_detected/rankN/anomaly.json goes here */
    int64_t rank, pp_stage;
    const int64_t *mates; /* ranks of the process group */
    size_t nmates;
};

enum ms_rc probe_monitor_open(struct probe_monitor **m, const struct probe_monitor_conf *conf,
                              struct ms_err *err) MS_MUST_USE;
void probe_monitor_close(struct probe_monitor *m);

/* Figures of one tensor; what has a NaN there has none. */
struct probe_mon_row {
    enum { PROBE_MON_FLOATS, PROBE_MON_INTS, PROBE_MON_BOOLS, PROBE_MON_NOTHING } kind;
    double figures[PROBE_MON_OPS]; /* of all ops but shape and dtype */
    bool has_id;
    uint32_t ndim;
    uint64_t shape[PROBE_MAX_DIMS];
    char dtype[24];
};
/* Computes the figures that `ops` has bits for. */
void probe_monitor_figures(struct probe_mon_row *row, const struct probe_tensor *t,
                           const char *dtype, uint32_t ops, double eps);

/* Sets this step's figures of a series. t NULL: the value is no tensor. Series of one group are written
 * together; groups in the order of their first series. */
enum ms_rc probe_monitor_put(struct probe_monitor *m, enum probe_mon_metric metric, uint32_t group,
                             struct ms_str name, const struct probe_tensor *t, const char *dtype,
                             struct ms_err *err) MS_MUST_USE;
/* The same in two parts: the figures of a tensor, and what puts them. */
void probe_monitor_row(const struct probe_monitor *m, struct probe_mon_row *row,
                       const struct probe_tensor *t, const char *dtype);
enum ms_rc probe_monitor_put_row(struct probe_monitor *m, enum probe_mon_metric metric,
                                 uint32_t group, struct ms_str name,
                                 const struct probe_mon_row *row, struct ms_err *err) MS_MUST_USE;
/* Counts a call that put nothing: alarms are sorted by the number of their call. */
void probe_monitor_called(struct probe_monitor *m);
/* Calls `visit` for each series that was put since the last flush. */
typedef void (*probe_mon_visit)(void *ctx, struct ms_str name, const struct probe_mon_row *row);
void probe_monitor_each(const struct probe_monitor *m, enum probe_mon_metric metric,
                        probe_mon_visit visit, void *ctx);
/* Appends the rows of a metric to its file of this step and forgets them. with_micro: names end in a micro
 * step, which has a column. is_kept: asks the rules, writes no file. */
enum ms_rc probe_monitor_flush(struct probe_monitor *m, enum probe_mon_metric metric, int64_t step,
                               bool with_micro, bool is_kept, struct ms_err *err) MS_MUST_USE;
/* Drops what was put and not flushed. */
void probe_monitor_drop(struct probe_monitor *m);
/* Writes the alarms of the step to anomaly.json and starts counting calls anew. *alarms: their number. */
enum ms_rc probe_monitor_step_end(struct probe_monitor *m, uint32_t *alarms,
                                  struct ms_err *err) MS_MUST_USE;

#endif
