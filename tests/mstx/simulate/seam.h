/* SPDX-License-Identifier: MIT
 *
 * seam: the world that a simulated program lives in: its clock, its disk, its threads and its death.
 *
 * The tool is linked with --wrap for the calls by which the recorder and the writers of probe/base
 * meet the system (SEAM in the Makefile).  While a schedule runs, each of them first asks the seam,
 * which draws from the seed whether the call fails, is cut short, is interrupted, or is the last
 * thing that the process did.  Without a schedule every call goes through unchanged.
 */
#ifndef TESTS_MSTX_SIMULATE_SEAM_H
#define TESTS_MSTX_SIMULATE_SEAM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_SAID = 1 << 14 };

/* Chances in 1,024 that a call meets the fault. */
struct sim_faults {
    uint32_t open, space, write, read, name, sync, interrupt, shorter, kill, preempt;
};

struct sim {
    uint64_t random;
    bool on;        /* calls of the thread that runs now are looked at */
    bool is_single; /* no thread is to be had: what would be shared is done by the caller */
    struct sim_faults faults;
    int64_t free_bytes; /* of the disk */
    uint64_t calls, faults_met;
    /* The clock: what every reading adds, and how far the wall clock is from the steady one. */
    int64_t steady_ns, wall_offset_ns, reading_ns;
    uint32_t pid, tid;
    char said[SIM_SAID]; /* what the program wrote to stderr */
    size_t said_bytes;
    jmp_buf death; /* where a killed process ends up */
};
extern struct sim sim;

uint64_t sim_random(void);
/* 0 to n - 1; n not 0. */
uint32_t sim_below(uint32_t n);
bool sim_chance(uint32_t of_1024);
/* Anew from a seed: no faults, a disk without end, nothing said. */
void sim_reset(uint64_t seed);
bool sim_has_said(const char *text);

/* The helper: the one thread that the recorder makes runs beside the others as a coroutine; it stops
 * where it would sleep, and at calls drawn from the seed. */
void sim_helper_run(void);
bool sim_helper_is_there(void);
/* The process is gone, and its helper with it. */
void sim_helper_forget(void);

/* From now on SQLite's own calls on the system meet the faults too: it is no part of this program. */
void sim_wrap_sqlite(void);

/* What ends a thread: the destructor of the one key that the recorder makes. */
void sim_thread_ends(void *ring);

#endif
