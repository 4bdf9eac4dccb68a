/* SPDX-License-Identifier: MIT
 *
 * mstx: functions of the recorder beyond the mstx interface.  Link libmstx.so, or look the
 * functions up with dlsym(RTLD_DEFAULT, ...), which returns NULL without the recorder.
 */
#ifndef MSTX_MSTX_H
#define MSTX_MSTX_H

#include "mstx/ms_tools_ext_mem.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begins recording into dir (made when missing), unless recording has begun already; NULL: the
 * directory of the environment, else ./mstx-capture. Returns 0, or -1 on failure. */
int mstx_record_start(const char *dir);
/* Pause and resume recording: marks in between cost a few nanoseconds and leave no record. */
void mstx_record_pause(void);
void mstx_record_resume(void);
/* Copies all records so far into dir, which becomes a run directory of its own. Meant for a flight
 * recorder, called as soon as an error is detected. Returns 0, or an errno. */
int mstx_record_snapshot(const char *dir);
/* Returns the directory into which this process records, or "". Valid until the process forks. */
const char *mstx_record_path(void);

/* Set the value of a counter from now on. */
void mstx_counter_int(mstxDomainHandle_t domain, const char *name, int64_t value);
void mstx_counter_real(mstxDomainHandle_t domain, const char *name, double value);

#ifdef __cplusplus
}
#endif
#endif
