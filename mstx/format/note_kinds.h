/* SPDX-License-Identifier: MIT
 *
 * note_kinds: kinds of messages that store conclusions about all ranks, with their arguments.
 * Their sentences are in viz/words.
 */
#ifndef MSTX_FORMAT_NOTE_KINDS_H
#define MSTX_FORMAT_NOTE_KINDS_H

#include "probe/base/message.h"

/* name, arguments */
#define MSTX_NOTE_KINDS(X)                                                                         \
    X(straggler, "rank first_step? last_step? longer_ns share")                                    \
    X(slow_link, "src dst bytes ratio alike")                                                      \
    X(slow_group, "ranks first_rank last_rank comm op bytes ratio alike")                          \
    X(mismatch, "rank other_rank seq comm op bytes type other_op other_bytes other_type")          \
    X(not_joined, "rank op seq comm waiting")

#define MSTX_NOTE_KIND(name, args)                                                                 \
    static const struct ms_message_kind mstx_note_##name = {#name, args};
MSTX_NOTE_KINDS(MSTX_NOTE_KIND)

#endif
