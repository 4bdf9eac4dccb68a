/* SPDX-License-Identifier: MIT
 *
 * held: files that stay open in a process that is not their owner's, as those of the recorder and of a dump.
 *
 * Programs expect the lowest descriptor numbers for their own files, close descriptors that they do not
 * know, and open files of their own in their place.  So a file is held at a high number, together with
 * its identity, and that is verified before the number is used.
 */
#ifndef PROBE_BASE_HELD_H
#define PROBE_BASE_HELD_H

#include <stdbool.h>
#include <sys/stat.h>

struct ms_held {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};
#define MS_HELD_NONE                                                                               \
    (struct ms_held)                                                                               \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Moves an open file to a high number, closed on exec, and returns that; where the limit of the process
 * leaves no high number, or fd is -1, returns fd. */
int ms_fd_move_high(int fd);
/* Holds an open file from now on; fd -1: holds none. */
struct ms_held ms_hold(int fd);
/* Holds the file again at another open descriptor; where that is another file, or -1, closes it and
 * returns false. */
bool ms_hold_again(struct ms_held *h, int fd);
/* Tells whether the descriptor still refers to the file that was held. */
bool ms_is_held(const struct ms_held *h);
/* Closes the file, unless the program has closed it already, and forgets it. */
void ms_hold_end(struct ms_held *h);

#endif
