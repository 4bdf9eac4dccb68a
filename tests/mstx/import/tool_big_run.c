/* SPDX-License-Identifier: MIT
 *
 * tool_big_run: writes the capture of a training run of many ranks for measurements.
 *
 *     tool_big_run DIRECTORY RANKS EVENTS      events of all ranks together
 */
#include "tests/support/make_capture.h"

static void put_rank(const char *run, int32_t rank, uint64_t events)
{
    enum { THREADS = 2, RECORDS_OF_EVENT = 2 };
    struct maker m;
    maker_begin(&m, run, rank, 1000 + (uint32_t)rank);
    for (uint32_t t = 0; t < THREADS; t++) {
        maker_training(&m, t + 1, 100 + t, events * RECORDS_OF_EVENT / THREADS);
    }
    maker_end(&m);
}

int main(int argc, char **argv)
{
    if (argc != 4 || atoi(argv[2]) < 1) {
        fprintf(stderr, "usage: tool_big_run DIRECTORY RANKS EVENTS\n");
        return 2;
    }
    int32_t ranks = atoi(argv[2]);
    uint64_t events = strtoull(argv[3], NULL, 10);
    for (int32_t r = 0; r < ranks; r++)
        put_rank(argv[1], r, events / (uint64_t)ranks);
    return 0;
}
