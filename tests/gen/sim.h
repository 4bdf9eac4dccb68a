/* SPDX-License-Identifier: MIT
 *
 * sim: a training run of many ranks that never was, as the segment files its recorders would have
 * left, and what is true about it.
 *
 * Ranks are tp x pp x dp.  A step has micro-batches: each stage receives from the one before, computes
 * its layers with an all-reduce of the tensor group behind each, and an all-to-all of the expert group,
 * ep neighbours of the data group, and sends on; then gradients are all-reduced in the data group bucket
 * by bucket, and one all-reduce of all ranks ends the step.
 * All times are simulated on one true clock and written with the clock of the rank's host.
 */
#ifndef TESTS_GEN_SIM_H
#define TESTS_GEN_SIM_H

#include <stdbool.h>
#include <stdint.h>

enum sim_fault {
    SIM_CLEAN,
    SIM_STRAGGLER,  /* one rank computes longer, by `amount` of a step */
    SIM_FAIL_SLOW,  /* the same from the middle of the run on */
    SIM_SLOW_GROUP, /* transfers in one tensor or data group take 1 / (1 - amount) times as long */
    SIM_SLOW_PAIR,  /* the same between two neighbouring stages */
    SIM_MISMATCH,   /* one rank's gradients have another size in one call */
    SIM_MISSING,    /* one rank left nothing */
    SIM_HANG        /* one rank does not come to the last all-reduce, where all others wait */
};

struct sim {
    int tp, pp, dp, ep, steps, micro, layers, buckets, per_host;
    double jitter;    /* deviation of computing, of 1 */
    double noise;     /* of transfers */
    double imbalance; /* the last stage computes so much longer */
    double clock_ms;  /* hosts' clocks are off by up to this */
    double drift_ppm;
    enum sim_fault fault;
    double amount;
    uint64_t seed;
    /* the truth */
    int rank, other; /* the rank at fault; of a group its first and last rank */
    int from_step;
    uint64_t records;
};

/* A reasonable run of that seed: the shape is drawn too. */
void sim_draw(struct sim *s, uint64_t seed, enum sim_fault fault, double amount);
/* Of 2 to 512 ranks and 5 to 200 steps, with expert groups. */
void sim_draw_wide(struct sim *s, uint64_t seed, enum sim_fault fault, double amount);
/* Writes DIR; exits with a message when it cannot. */
void sim_write(struct sim *s, const char *dir);

#endif
