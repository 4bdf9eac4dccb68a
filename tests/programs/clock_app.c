/* SPDX-License-Identifier: MIT
 *
 * clock_app: writes what the clock of the machine really is as a counter, often, so that a reader can
 * tell how far the times that the recorder gave are from it.
 *
 *     clock_app [ROUNDS]      one each 10 ms
 */
#include "mstx/mstx.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < n; i++) {
        const struct timespec nap = {.tv_nsec = 10000000};
        struct timespec t;
        for (int k = 0; k < 20; k++) { /* one of many is not interrupted in between */
            clock_gettime(CLOCK_MONOTONIC, &t);
            mstx_counter_int(NULL, "true", (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
        }
        nanosleep(&nap, NULL);
    }
    return 0;
}
