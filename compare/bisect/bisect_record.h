/* SPDX-License-Identifier: MIT
 *
 * bisect_record: runs a program under `msprobe run --dump`.
 *
 *     DIR/config.json   what is dumped
 *     DIR/log           what the program printed
 *     DIR/step0/rank0   the dump
 */
#ifndef COMPARE_BISECT_BISECT_RECORD_H
#define COMPARE_BISECT_BISECT_RECORD_H

#include "probe/base/err.h"
#include "probe/base/str.h"

struct bisect_record {
    const char *command; /* for a shell */
    const char *dir;     /* made when it is not there */
    int64_t step;
    const struct ms_str *names; /* operators of which tensors are dumped; NULL: statistics of all */
    size_t n;
};

/* Runs the program and waits for it. Fails when it cannot be started, ends with another status than 0, or
 * leaves no dump; the message names the log. */
enum ms_rc bisect_record(const struct bisect_record *r, struct ms_err *err) MS_MUST_USE;

/* Writes the config.json of a recording. */
enum ms_rc bisect_write_config(const struct bisect_record *r, const char *path,
                               struct ms_err *err) MS_MUST_USE;

#endif
