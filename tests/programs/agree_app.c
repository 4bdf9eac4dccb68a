/* SPDX-License-Identifier: MIT
 *
 * agree_app: as many processes as a job has ranks ask through the folder of the run whether all are
 * here, as the hook of MPI does.
 *
 *     agree_app SIZE [MISSING [PATIENCE_MS]]      MISSING: rank that does not ask; -1: none
 *
 * Prints how many said yes and no; what they left is removed as at the end of a job.
 */
#include "mstx/mstx.h"
#include "mstx/rt/clock_agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const int size = argc > 1 ? atoi(argv[1]) : 2, missing = argc > 2 ? atoi(argv[2]) : -1;
    const int64_t patience_ns = (argc > 3 ? atoi(argv[3]) : 60000) * INT64_C(1000000);
    int count[2] = {0, 0}, status;
    mstx_counter_int(NULL, "begin", 1); /* the recorder starts */
    for (int rank = 0; rank < size; rank++) {
        if (rank != missing && fork() == 0) {
            const bool yes = mstx_clock_agree(rank, size, patience_ns);
            if (!yes)
                mstx_clock_forget();
            _exit(yes);
        }
    }
    while (wait(&status) > 0)
        count[WIFEXITED(status) && WEXITSTATUS(status) == 1]++;
    if (count[1] != 0) {
        (void)mstx_clock_agree(0, size,
                               0); /* rank 0 removes the folder of all; the answer is there */
        mstx_clock_forget();
    }
    printf("yes %d no %d\n", count[1], count[0]);
    return 0;
}
