/* SPDX-License-Identifier: MIT
 *
 * par: the processes that share a job, as `mpirun -n K msprobe ...` starts them.
 *
 * Without mpirun there is one process, and MPI is not needed. With mpirun, the plugin for its
 * flavour of MPI is opened, a library beside the program (par_plugin.h); so the program itself does
 * not depend on MPI.
 *
 *     struct ms_par *par;
 *     MS_TRY(ms_par_open(&par, err));
 *     for (i = ms_par_rank(par); i < n; i += ms_par_size(par))
 *         ...
 *     ms_par_close(par);
 *
 * Messages between two processes arrive in the order they were sent. Only the thread that opened
 * may send and receive. A failure of a call is a failure of the connection, after which no further
 * call works. Errors in the work itself have to be sent as messages.
 */
#ifndef PROBE_BASE_PAR_H
#define PROBE_BASE_PAR_H

#include "probe/base/str.h"

struct ms_par;

enum { MS_PAR_ANY = -1 };

/* Fails when mpirun has started this process and the plugin is missing; otherwise K independent
 * processes would write the same files. */
enum ms_rc ms_par_open(struct ms_par **par, struct ms_err *err) MS_MUST_USE;
/* Tells whether an entry of the environment, "NAME=value", is one that mpirun tells the number of
 * processes by. Children that are no processes of the job must not inherit these. */
bool ms_par_is_variable(const char *entry);
/* Waits until all processes have called ms_par_close. NULL is fine. */
void ms_par_close(struct ms_par *par);

/* Rank of this process, 0 .. size - 1, and number of processes. Rank 0 prints for the user. A NULL
 * par is a single process. */
unsigned ms_par_rank(const struct ms_par *par);
unsigned ms_par_size(const struct ms_par *par);

/* Sends a message of any length. May wait until it is received. */
enum ms_rc ms_par_send(struct ms_par *par, unsigned to, const void *p, size_t n,
                       struct ms_err *err) MS_MUST_USE;
/* Receives the next message of a process, or of any with MS_PAR_ANY. The message replaces the
 * contents of `into`; the maximum of `into` limits its length. */
enum ms_rc ms_par_recv(struct ms_par *par, int from, struct ms_buf *into, unsigned *who,
                       struct ms_err *err) MS_MUST_USE;
/* Broadcasts n bytes from process 0 to all processes. */
enum ms_rc ms_par_share(struct ms_par *par, void *p, size_t n, struct ms_err *err) MS_MUST_USE;
/* Sets *all to whether `mine` is true in every process (a logical AND over all processes), for
 * conditions that all must meet before they depend on each other. */
enum ms_rc ms_par_agree(struct ms_par *par, bool mine, bool *all, struct ms_err *err) MS_MUST_USE;

#endif
