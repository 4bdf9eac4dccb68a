/* SPDX-License-Identifier: MIT
 *
 * runs_itself: a test program that is "msprobe sql" when it is started as that, because what it tests
 * runs the program itself in a process of its own.
 */
#ifndef TESTS_SUPPORT_RUNS_ITSELF_H
#define TESTS_SUPPORT_RUNS_ITSELF_H

#include "probe/base/opt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct ms_cmd mstx_cmd_sql;

/* The C library of Linux gives constructors the arguments of main. */
__attribute__((constructor)) static void run_command(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "sql") != 0)
        return;
    const int status = mstx_cmd_sql.run(argc - 1, argv + 1);
    fflush(stdout);
    _Exit(status);
}

#endif
