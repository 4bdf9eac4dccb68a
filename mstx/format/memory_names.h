/* SPDX-License-Identifier: MIT
 *
 * memory_names: how the recorder of `msprobe run --memory` marks what it writes.
 */
#ifndef MSTX_FORMAT_MEMORY_NAMES_H
#define MSTX_FORMAT_MEMORY_NAMES_H

/* The domain of its regions. */
#define MSTX_MEMORY_DOMAIN "host memory"
/* Begins the name of a region that is a folded stack, the outermost frame first. */
#define MSTX_MEMORY_STACK "at "

#endif
