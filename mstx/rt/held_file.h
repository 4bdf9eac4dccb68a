/* SPDX-License-Identifier: MIT
 *
 * held_file: files that the recorder keeps open in a process that is not its own.
 *
 * Programs expect the lowest descriptor numbers for their own files, close descriptors that they do not
 * know, and open files of their own in their place.  So a file is held at a high number, together with
 * its identity, and that is verified before the number is used.
 */
#ifndef MSTX_RT_HELD_FILE_H
#define MSTX_RT_HELD_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

struct rt_held {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};
#define RT_HELD_NONE                                                                               \
    (struct rt_held)                                                                               \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Moves an open file to a high number, closed on exec, and returns that; where the limit of the process
 * leaves no high number, or fd is -1, returns fd. */
int rt_fd_move_high(int fd);
/* Holds an open file from now on; fd -1: holds none. */
struct rt_held rt_hold(int fd);
/* Tells whether the descriptor still refers to the file that was held. */
bool rt_is_held(const struct rt_held *h);
/* Closes the file, unless the program has closed it already, and forgets it. */
void rt_hold_end(struct rt_held *h);

#endif
