/* SPDX-License-Identifier: MIT
 *
 * socket_use: TCP connections of the process to other addresses, as the kernel measures them.
 */
#ifndef MSTX_RT_SOCKET_USE_H
#define MSTX_RT_SOCKET_USE_H

#include "mstx/rt/state.h"

/* Records the connections that carried data, at most once a second and less often the longer the process runs;
 * `is_last`: in any
 * case, also when recording has just been turned off.  The helper thread calls it, and the one that ends the capture. */
void rt_sockets_look(bool is_last);
/* Begins a capture. */
void rt_sockets_start(void);

#endif
