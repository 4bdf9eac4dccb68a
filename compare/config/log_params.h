/* SPDX-License-Identifier: MIT
 *
 * log_params: the parameters that a training of verl or slime prints into its log, and two such lists side
 * by side: hyper_params_compare.csv.
 */
#ifndef COMPARE_CONFIG_LOG_PARAMS_H
#define COMPARE_CONFIG_LOG_PARAMS_H

#include "compare/config/config_value.h"

/* Reads the block between "---- arguments ----" and "---- end of arguments ----" of slime. */
enum ms_rc cfg_params_of_slime(const struct ms_plain **v, struct ms_str log, struct ms_arena *a,
                               struct ms_err *err) MS_MUST_USE;
/* Reads the last dictionary {'actor_rollout_ref': ...} of verl: Python's or JSON, over many lines, each behind
 * the same prefix. */
enum ms_rc cfg_params_of_verl(const struct ms_plain **v, struct ms_str log, struct ms_arena *a,
                              struct ms_err *err) MS_MUST_USE;

enum cfg_params_what { CFG_PARAMS_VERL, CFG_PARAMS_SLIME, CFG_PARAMS_VERIFY };
struct cfg_params_sum {
    uint64_t rows, differ;
};
/* Compares two logs, the NPU's first, into DIR/hyper_params_compare.csv; the lists are kept as JSON beside
 * it. VERIFY: checks a log of verl (`second`) against the values that a YAML file wants (`first`, NULL for
 * those known to change results), into DIR/hyper_params_verify.csv. */
enum ms_rc cfg_params_compare(enum cfg_params_what what, const char *first, const char *second,
                              const char *dir, struct cfg_params_sum *sum,
                              struct ms_err *err) MS_MUST_USE;

#endif
