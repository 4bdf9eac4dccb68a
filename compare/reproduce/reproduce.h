/* SPDX-License-Identifier: MIT
 *
 * reproduce: writes one operator of a tensor dump as a program of its own, with its inputs as .npy
 * files, to be sent to whoever owns the operator. The program needs PyTorch, or MindSpore, and numpy.
 *
 *     DIR/reproduce.py
 *     DIR/input.0.npy ...          arguments, as float64
 *     DIR/output.0.npy ...         what was recorded
 *     DIR/exact.output.0.npy ...   what float64 gives, where msprobe can compute it
 */
#ifndef COMPARE_REPRODUCE_REPRODUCE_H
#define COMPARE_REPRODUCE_REPRODUCE_H

#include "compare/blame/blame_side.h"

struct reproduced {
    struct blame_side side; /* what the recorded results are like */
    bool is_minimised;      /* one row of the inputs is enough to show the same */
    uint64_t row, rows;     /* that row */
};

/* Writes the program for a record to a directory, which is made. minimise: only the row of the worst
 * element where the operator treats rows alike. */
enum ms_rc reproduce_write(struct reproduced *out, const struct blame_record *record,
                           const char *dir, bool minimise, size_t limit,
                           struct ms_err *err) MS_MUST_USE;

#endif
