/* SPDX-License-Identifier: MIT
 *
 * slice_kind: what a slice does, told by its domain and name; both viewers colour slices by it.
 */
#ifndef VIZ_MODEL_SLICE_KIND_H
#define VIZ_MODEL_SLICE_KIND_H

#include "probe/base/str.h"

#include <stdbool.h>

enum viz_slice_kind {
    VIZ_SLICE_COMM,    /* communicates */
    VIZ_SLICE_WAIT,    /* waits, or is idle */
    VIZ_SLICE_COPY,    /* moves data within a machine */
    VIZ_SLICE_COMPUTE, /* runs on a stream of a device */
    VIZ_SLICE_MARK,    /* anything else: a mark of the program */
    VIZ_SLICE_KINDS
};

/* on_stream: the lane is a stream of a device. */
enum viz_slice_kind viz_slice_kind_of(struct ms_str domain, struct ms_str name, bool on_stream);
/* Names of the kinds in search terms: comm, wait, copy, compute, mark. False: none of them. */
bool viz_slice_kind_named(struct ms_str text, enum viz_slice_kind *kind);

#endif
