/* SPDX-License-Identifier: MIT
 *
 * socket_rows: findings about slow connections, from the TCP connections that recorders looked at.
 */
#ifndef MSTX_CONCLUDE_SOCKET_ROWS_H
#define MSTX_CONCLUDE_SOCKET_ROWS_H

#include "mstx/conclude/findings.h"

/* Adds a finding for each slow connection between ranks, or of a rank. */
enum ms_rc mstx__find_slow_connections(struct mstx_tl *tl, mstx_findings *to,
                                       struct ms_err *err) MS_MUST_USE;

#endif
