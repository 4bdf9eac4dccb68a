/* SPDX-License-Identifier: MIT
 *
 * config_pack: the configuration of a run as an archive: environment, packages, hyperparameters.
 */
#ifndef COMPARE_CONFIG_CONFIG_PACK_H
#define COMPARE_CONFIG_CONFIG_PACK_H

#include "compare/config/config_value.h"

struct cfg_pack_sum {
    uint64_t variables, hidden, packages, parameters;
};

/* Writes the members env, pip and, of scripts, hyperparameters/hyperparameters_static.json. Packages are
 * those that the `python3` of PATH would import. */
enum ms_rc cfg_pack(const char *path, char *const *scripts, size_t n, struct cfg_pack_sum *sum,
                    struct ms_err *err) MS_MUST_USE;

#endif
