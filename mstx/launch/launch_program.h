/* SPDX-License-Identifier: MIT
 *
 * launch_program: runs a program with the recorder loaded.  msprobe passes everything to the
 * program by its environment; standard streams, signals and exit status are those of the program.
 */
#ifndef MSTX_LAUNCH_LAUNCH_PROGRAM_H
#define MSTX_LAUNCH_LAUNCH_PROGRAM_H

#include "probe/base/err.h"

#include <stdbool.h>

/* Flavour of MPI whose calls are recorded: detected from the launcher or the program, none, or a
 * given one. */
enum mstx_launch_comm {
    MSTX_COMM_AUTO,
    MSTX_COMM_NONE,
    MSTX_COMM_OPENMPI,
    MSTX_COMM_MPICH,
};

/* Options of a launch. A field that is NULL or 0 leaves the environment as it is. */
struct mstx_launch {
    const char *output;            /* directory of the run */
    const char *include, *exclude; /* domains */
    const char *max_size, *stage, *policy, *device;
    const char *dump, *monitor; /* config.json of each */
    double flight, hang_timeout;
    int comm; /* enum mstx_launch_comm */
    bool nvtx, wait, no_torch, hook_dlsym, invariants, memory;
};

/* Runs the program. *status is its exit status, or that of a shell when the program cannot be
 * started. The process of a rank above 0 becomes the program itself and does not return. */
enum ms_rc mstx_launch_run(const struct mstx_launch *how, char **program, int *status,
                           struct ms_err *err) MS_MUST_USE;

#endif
