/* SPDX-License-Identifier: MIT
 *
 * hyper_params: the hyperparameters that a script or a configuration file gives a training.
 */
#ifndef COMPARE_CONFIG_HYPER_PARAMS_H
#define COMPARE_CONFIG_HYPER_PARAMS_H

#include "compare/config/config_value.h"

/* Reads the options of the launcher's command in a shell script ("torchrun train.py --lr 0.1"): variables
 * NAME_ARGS="..." and $NAME are put in. Adds them to dict by name. */
enum ms_rc cfg_hyper_of_shell(struct ms_plain *dict, struct ms_str text, struct ms_arena *a,
                              struct ms_err *err) MS_MUST_USE;
/* Reads the values of a YAML file by their path of keys, "model.hidden". */
enum ms_rc cfg_hyper_of_yaml(struct ms_plain *dict, const char *name, struct ms_str text,
                             struct ms_arena *a, struct ms_err *err) MS_MUST_USE;
/* Adds what a file of either kind says. A parameter that several files give differently gets all of its
 * values. An ending other than .sh and .yaml fails. */
struct cfg_hyper_files {
    struct ms_plain *all;  /* a dictionary */
    struct ms_plain *yaml; /* of the YAML files so far */
};
enum ms_rc cfg_hyper_of_file(struct cfg_hyper_files *files, const char *path, struct ms_arena *a,
                             struct ms_err *err) MS_MUST_USE;

#endif
