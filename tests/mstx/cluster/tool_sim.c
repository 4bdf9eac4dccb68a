/* SPDX-License-Identifier: MIT
 *
 * tool_sim: writes a simulated run and says what is true about it.
 *
 *     tool_sim DIR FAULT [AMOUNT [SEED [TP PP DP STEPS [MICRO LAYERS [PER_HOST]]]]]
 *
 * PER_HOST: how many ranks share a host and its clock, 8 unless told otherwise.
 */
#include "tests/gen/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const faults[] = {"clean",     "straggler", "fail_slow", "slow_group",
                                     "slow_pair", "mismatch",  "missing",   "hang"};

int main(int argc, char **argv)
{
    struct sim s;
    int fault = 0;
    while (argc > 2 && fault < 8 && strcmp(faults[fault], argv[2]) != 0)
        fault++;
    if (argc < 3 || fault == 8) {
        fprintf(stderr, "usage: tool_sim DIR FAULT [AMOUNT [SEED [TP PP DP STEPS [MICRO LAYERS "
                        "[PER_HOST]]]]]\nfaults:");
        for (int i = 0; i < 8; i++)
            fprintf(stderr, " %s", faults[i]);
        fprintf(stderr, "\n");
        return 2;
    }
    sim_draw(&s, argc > 4 ? strtoull(argv[4], NULL, 10) : 1, (enum sim_fault)fault,
             argc > 3 ? strtod(argv[3], NULL) : 0.1);
    if (argc > 8) {
        s.tp = (int)strtol(argv[5], NULL, 10);
        s.pp = (int)strtol(argv[6], NULL, 10);
        s.dp = (int)strtol(argv[7], NULL, 10);
        s.steps = (int)strtol(argv[8], NULL, 10);
        s.per_host = 8;
    }
    if (argc > 10) {
        s.micro = (int)strtol(argv[9], NULL, 10);
        s.layers = (int)strtol(argv[10], NULL, 10);
    }
    if (argc > 11)
        s.per_host = (int)strtol(argv[11], NULL, 10);
    sim_write(&s, argv[1]);
    printf("ranks %d tp %d pp %d dp %d steps %d records %llu fault %s rank %d other %d\n",
           s.tp * s.pp * s.dp, s.tp, s.pp, s.dp, s.steps, (unsigned long long)s.records,
           faults[fault], s.rank, s.other);
    return 0;
}
