/* SPDX-License-Identifier: MIT
 *
 * store_int: interface that the files over SQLite share.
 */
#ifndef PROBE_BASE_STORE_INT_H
#define PROBE_BASE_STORE_INT_H

#include "probe/base/store.h"

struct sqlite3;
struct sqlite3 *ms_store__handle(struct ms_store *s);

#endif
