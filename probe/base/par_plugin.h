/* SPDX-License-Identifier: MIT
 *
 * par_plugin: interface of a plugin for one flavour of MPI, exported as the one symbol
 * `ms_par_plugin` of libmsprobe_mpi_FLAVOUR.so.
 */
#ifndef PROBE_BASE_PAR_PLUGIN_H
#define PROBE_BASE_PAR_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

enum { MS_PAR_PLUGIN_VERSION = 2 };
#define MS_PAR_PIECE ((size_t)1 << 30) /* most bytes of a call: counts of MPI are ints */

/* Functions return 0, or a code that `explain` turns into text. */
struct ms_par_plugin {
    uint32_t version;
    const char *name;
    int (*begin)(unsigned *rank, unsigned *size);
    int (*send)(unsigned to, const void *p, size_t n);
    int (*recv)(int from, void *p, size_t n, unsigned *who); /* from: -1 for any; n bytes exactly */
    void (*end)(void);
    void (*explain)(int code, char *text, size_t n);
};

#endif
