/* SPDX-License-Identifier: MIT
 *
 * mstx: what the recorder offers beyond the mstx interface.  Link libmstx.so, or look the
 * functions up with dlsym(RTLD_DEFAULT, ...) and do without when they are absent.
 */
#ifndef MSTX_MSTX_H
#define MSTX_MSTX_H

#include "mstx/ms_tools_ext_mem.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begin recording into dir (made when missing), if nothing is recorded yet; NULL: what the
 * environment says, else ./mstx-capture.  0, or -1 when it cannot be. */
int mstx_record_start(const char *dir);
/* Pause and go on: marks in between cost a few nanoseconds and leave no record. */
void mstx_record_pause(void);
void mstx_record_resume(void);
/* Copy what is recorded so far into dir, which becomes a run directory of its own.  Meant for a
 * flight recorder, on the spot where something went wrong.  0, or an errno. */
int mstx_record_snapshot(const char *dir);
/* Where this process records; "" when it does not.  Valid until the process forks. */
const char *mstx_record_path(void);

/* The value of a counter from now on. */
void mstx_counter_int(mstxDomainHandle_t domain, const char *name, int64_t value);
void mstx_counter_real(mstxDomainHandle_t domain, const char *name, double value);

#ifdef __cplusplus
}
#endif
#endif
