/* SPDX-License-Identifier: MIT
 *
 * slice_kind: see the header.
 */
#include "viz/model/slice_kind.h"

static bool has_any(struct ms_str name, const char *const *words)
{
    while (*words != NULL && !ms_str_has_folded(name, ms_str_of(*words)))
        words++;
    return *words != NULL;
}

enum viz_slice_kind viz_slice_kind_of(struct ms_str domain, struct ms_str name, bool on_stream)
{
    static const char *const comm[] = {"allreduce", "all_reduce", "allgather", "all_gather",
                                       "reduce",    "broadcast",  "hccl",      "nccl",
                                       "send",      "recv",       "alltoall",  "all_to_all",
                                       "barrier",   "gloo",       NULL};
    static const char *const wait[] = {"wait", "idle", "synchronize", "sleep", NULL};
    static const char *const copy[] = {"memcpy", "memset", "copy", "h2d", "d2h", NULL};
    if (ms_str_is(domain, "communication") || has_any(name, comm))
        return VIZ_SLICE_COMM;
    if (has_any(name, wait))
        return VIZ_SLICE_WAIT;
    if (has_any(name, copy))
        return VIZ_SLICE_COPY;
    return on_stream ? VIZ_SLICE_COMPUTE : VIZ_SLICE_MARK;
}

bool viz_slice_kind_named(struct ms_str text, enum viz_slice_kind *kind)
{
    static const char *const names[VIZ_SLICE_KINDS] = {"comm", "wait", "copy", "compute", "mark"};
    for (int i = 0; i < VIZ_SLICE_KINDS; i++) {
        if (!ms_str_is(text, names[i]))
            continue;
        *kind = (enum viz_slice_kind)i;
        return true;
    }
    return false;
}
