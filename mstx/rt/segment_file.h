/* SPDX-License-Identifier: MIT
 *
 * segment_file: the directory of the process, its control page, and segment files.
 */
#ifndef MSTX_RT_SEGMENT_FILE_H
#define MSTX_RT_SEGMENT_FILE_H

#include "mstx/rt/state.h"

/* Returns a descriptor of the process directory, or -1 with errno. Daemons close descriptors that
 * they do not know, and files that they open later get the same numbers; so the descriptor is
 * verified before each use, and the directory opened again by name if necessary. */
int rt_file_dir(void);
/* Opens a file in the process directory; -1 on failure. */
int rt_file_open(const char *name);
/* Makes the process directory and its control file; false, after a message, on failure. */
bool rt_file_start(void);
/* Removes the files of a start that failed: other processes would wait for an answer of this
 * one. */
void rt_file_withdraw(void);
/* Returns the id that is equal for all processes that share a tick counter. */
void rt_file_boot_id(uint8_t id[16]);
/* Wakes the helper: it sleeps on the bell of the control page. */
void rt_bell_ring(void);

/* Makes a segment of `bytes` bytes, counted against the limit of the capture: blocks allocated,
 * pages present, header written from rt.proto; NULL with errno. The file gets its name when it is
 * complete, so a kill leaves a valid file or one that readers ignore. */
struct mstx_seg *rt_segment_make(uint32_t ring, uint32_t number, uint32_t tid, size_t bytes);
/* Marks a segment complete after its last record and releases the unused blocks. */
void rt_segment_close(struct mstx_seg *seg, uint32_t ring, uint32_t number);
/* Makes a file in two steps: opens it under a temporary name (-1 on failure), then gives it its
 * real name. */
int rt_file_begin(const char *name, size_t bytes);
bool rt_file_name(const char *name);
/* Removes a file that was begun and gets no name; keeps errno. */
void rt_file_give_up(const char *name);
/* Allocates blocks for the first `bytes` bytes of a file; 0 or an errno. */
int rt_file_allocate(int fd, size_t bytes);
size_t rt_file_bytes(const struct mstx_seg *seg);
/* Releases the blocks behind head of a file of `all` bytes; the mapping stays valid. Returns how
 * many bytes have blocks now. */
size_t rt_file_trim(const struct mstx_seg *seg, const char *name, size_t all);
/* Copies every segment of this process into `to` (made when missing); 0 or an errno. */
int rt_file_snapshot(const char *to);
/* Stage: moves finished segments (all: every segment) to the target. */
void rt_file_unstage(bool all);
void rt_file_close(void);
/* Closes the files in a forked child, but keeps the parent's control page for
 * rt_file_ask_parent. */
void rt_file_forget(void);
/* Tells whether the parent records now, and unmaps its control page; `otherwise` without a page. */
bool rt_file_ask_parent(bool otherwise);

#endif
