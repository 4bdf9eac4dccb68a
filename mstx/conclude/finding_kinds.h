/* SPDX-License-Identifier: MIT
 *
 * finding_kinds: the messages of findings that a report adds to the conclusions about all ranks
 * (mstx/format/note_kinds.h), and their arguments.  Their sentences are in viz/words.
 *
 * pid, rank and name identify the process of a finding: by its rank if it has one, else by the name
 * of its program.  call, seq, way, peer and comm describe a communication call.
 */
#ifndef MSTX_CONCLUDE_FINDING_KINDS_H
#define MSTX_CONCLUDE_FINDING_KINDS_H

#include "probe/base/message.h"

/* name, arguments */
#define MSTX_FINDING_KINDS(X)                                                                      \
    X(waiter, "rank bursts? first_step? last_step? since_ns? until_ns? longer_ns cost gain_ns "    \
              "longest why? doing? part? second? second_part?")                                    \
    X(stage, "stage? ranks part cost gain_ns")                                                     \
    X(slow_connection, "rank host peer? peer_host? rate? usual_rate? trip_ns? usual_ns? "          \
                       "lost? usual_lost? busy")                                                   \
    X(balance, "ranks steps comm delayed?")                                                        \
    X(drop, "pid rank? name? records")                                                             \
    X(unfinished, "pid rank? name? ranges")                                                        \
    X(open_ranges, "pid rank? name? ranges")                                                       \
    X(in_progress, "rank op seq comm waiting waited_s where?")                                     \
    X(awaited, "rank op seq comm waiting waited_s where?")                                         \
    X(killed, "pid rank? name?")                                                                   \
    X(overhead, "pid rank? name? share")                                                           \
    X(problem, "file? text")                                                                       \
    X(absent, "ranks count more?")                                                                 \
    X(slow_step, "pid rank? name? step dur_ns times others? steps?")                               \
    X(device_late, "pid rank? name? call stream waited_s")                                         \
    X(waits, "pid rank? name? call seq? way? peer? comm? waited_s")                                \
    X(misses_collective, "rank call seq? way? peer? comm? waiting waited_s where?")                \
    X(misses_transfer, "rank call seq? way? peer? comm? waiting waited_s")                         \
    X(advise_data, "pid rank? name? events total_ns gain_ns share steps?")                         \
    X(advise_garbage, "pid rank? name? events total_ns gain_ns share steps?")                      \
    X(advise_sync, "pid rank? name? events total_ns gain_ns share steps?")                         \
    X(advise_brief, "pid rank? name? events total_ns gain_ns share steps?")                        \
    X(advise_host, "pid rank? name? events total_ns gain_ns share steps?")                         \
    X(advise_overlap, "pid rank? name? events total_ns gain_ns share steps?")                      \
    X(advise_packets, "pid rank? name? events total_ns gain_ns share steps?")                      \
    X(sentence, "text")

#define MSTX_FINDING_KIND(name, args)                                                              \
    static const struct ms_message_kind mstx_say_##name = {#name, args};
MSTX_FINDING_KINDS(MSTX_FINDING_KIND)

#endif
