/* SPDX-License-Identifier: MIT
 *
 * segment_file: the directory of the process, its control page, and segment files.
 */
#ifndef MSTX_RT_SEGMENT_FILE_H
#define MSTX_RT_SEGMENT_FILE_H

#include "mstx/rt/state.h"

/* The process directory.  Daemons close every descriptor they do not know and files of theirs get
 * the numbers, so it is looked at before it is used, and opened again by name; -1 with errno. */
int rt_file_dir(void);
/* A file in it, or -1. */
int rt_file_open(const char *name);
/* Make the process directory and its control file; false (and said why) when it cannot be. */
bool rt_file_start(void);
/* Takes away what a start that failed has made: others would wait for the process to answer. */
void rt_file_withdraw(void);
/* What hosts that share a counter have in common. */
void rt_file_boot_id(uint8_t id[16]);
/* Wakes the helper: it sleeps on the bell of the control page. */
void rt_bell_ring(void);

/* A new segment of that many bytes, counted against the limit of the capture: blocks allocated, pages
 * present, header written from rt.proto; NULL with errno.  The file gets its name when it is complete:
 * a kill leaves a valid file or one that readers ignore. */
struct mstx_seg *rt_segment_make(uint32_t ring, uint32_t number, uint32_t tid, size_t bytes);
/* The last record is in it: marks it complete and gives back the blocks behind it. */
void rt_segment_close(struct mstx_seg *seg, uint32_t ring, uint32_t number);
/* A file in two steps: open under a temporary name, or -1; then its real name. */
int rt_file_begin(const char *name, size_t bytes);
bool rt_file_name(const char *name);
/* Blocks for the first `bytes` bytes of a file; 0 or an errno. */
int rt_file_allocate(int fd, size_t bytes);
size_t rt_file_bytes(const struct mstx_seg *seg);
/* Give back the blocks behind head of a file that has `all` bytes; the mapping stays good. How
 * many have blocks now. */
size_t rt_file_trim(const struct mstx_seg *seg, const char *name, size_t all);
/* Copy every segment of this process into `to` (made when missing); 0 or an errno. */
int rt_file_snapshot(const char *to);
/* Stage: move finished segments (all: whatever is there) to the target. */
void rt_file_unstage(bool all);
void rt_file_close(void);
/* In a forked child: the same, but the parent's control page stays in sight. */
void rt_file_forget(void);
/* Does the parent record now? Lets go of its page; `otherwise` without one. */
bool rt_file_ask_parent(bool otherwise);

#endif
