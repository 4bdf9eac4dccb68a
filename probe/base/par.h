/* SPDX-License-Identifier: MIT
 *
 * par: the processes that share a job, as `mpirun -n K msprobe ...` starts them.
 *
 * Started without mpirun there is one process, and nothing of MPI is needed.  With
 * it, the library of the flavour that started us is opened, a plugin beside the
 * program (par_plugin.h); so the program itself depends on no MPI.
 *
 *     struct ms_par *par;
 *     MS_TRY(ms_par_open(&par, err));
 *     for (i = ms_par_rank(par); i < n; i += ms_par_size(par))
 *         ...
 *     ms_par_close(par);
 *
 * Messages between two processes arrive in the order they were sent.  One thread of a
 * process talks to the others, the one that opened.  A failure of a call is one of
 * the connection, after which nothing can be said any more; what goes wrong in the
 * work itself is for the messages to tell.
 */
#ifndef PROBE_BASE_PAR_H
#define PROBE_BASE_PAR_H

#include "probe/base/str.h"

struct ms_par;

enum { MS_PAR_ANY = -1 };

/* Fails when mpirun has started us and the plugin for it is missing: K programs that know nothing of
 * each other would write the same files. */
enum ms_rc ms_par_open(struct ms_par **par, struct ms_err *err) MS_MUST_USE;
/* Waits for the others, who close too.  NULL is fine. */
void ms_par_close(struct ms_par *par);

/* 0 .. size - 1; the first one is who talks to people.  A NULL par is a process alone. */
unsigned ms_par_rank(const struct ms_par *par);
unsigned ms_par_size(const struct ms_par *par);

/* Of any length.  May wait until it is received. */
enum ms_rc ms_par_send(struct ms_par *par, unsigned to, const void *p, size_t n,
                       struct ms_err *err) MS_MUST_USE;
/* The next message of a process, or of MS_PAR_ANY; what was in `into` is gone, its maximum counts. */
enum ms_rc ms_par_recv(struct ms_par *par, int from, struct ms_buf *into, unsigned *who,
                       struct ms_err *err) MS_MUST_USE;
/* The n bytes of process 0 for everyone. */
enum ms_rc ms_par_share(struct ms_par *par, void *p, size_t n, struct ms_err *err) MS_MUST_USE;
/* *all: is `mine` true in every process?  What has to be settled before they rely on each other. */
enum ms_rc ms_par_agree(struct ms_par *par, bool mine, bool *all, struct ms_err *err) MS_MUST_USE;

#endif
