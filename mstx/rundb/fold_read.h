/* SPDX-License-Identifier: MIT
 *
 * fold_read: reads folded blobs of run.db.  Chunks and packed rows of version 2 are folded: columns that
 * repeat refer to patterns (fold_parts.h), and times are coded as small differences from what the pattern
 * of their call predicts (fold_code.h).
 *
 * A chunk of events:
 *
 *     u8 version (2), varint events
 *     varint structure, varint model, varint leader (a chunk, 0: none)
 *     varint quantum, zigzag time of the first point in quanta
 *     8 columns: shape (row * 65536 + kind * 256 + flags), name, id, arg, size, count, end_tid, args
 *     code of the points after the first
 *
 * The class of a point is its number modulo the points of the structure when that is periodic; else
 * each combination of the point before and the point, both given by name, shape and whether it begins or
 * ends, has the class of its first appearance, at most the last class of the model.  A point is predicted
 * as the point before, or the point of the same number of the leader, plus the centre of its class.
 *
 * Packed rows:
 *
 *     u8 version (2), u8 columns, varint rows
 *     for each column: zigzag least, varint 1 + greatest - least (0: all are NULL), varint bytes
 *     the columns
 *
 * A column:
 *
 *     u8 0 even      zigzag first, zigzag step
 *     u8 1 pattern   varint part, zigzag first, varint turn
 *     u8 2 few       varint values, zigzag difference of each; a column of their numbers
 *     u8 3 numbers   varint model, varint quantum, u8 1: differences from the row before;
 *                    u8 rule, varint of the rule; varint bytes, code
 *     u8 4 nulls     a column of 0 NULL and 1 known; a column of those that are known
 *     u8 5 events    u8 0 starts 1 durations, varint stretches; varint chunk, first event, events of each
 *     u8 6 plain     zigzag differences
 *     u8 7 other     varint column, u8 1: its row before (0 for the first); a column of what is added
 *
 * The class of a number, by rule:
 *
 *     0   its row modulo the number of the rule
 *     1   of the column with this number: 16 * the row before (0 for the first) + the row, if both are
 *         0 to 15, else 0
 *     2   of the column with this number: 1 when the row differs from the one before, else 0
 */
#ifndef MSTX_RUNDB_FOLD_READ_H
#define MSTX_RUNDB_FOLD_READ_H

#include "mstx/format/event.h"
#include "mstx/rundb/fold_parts.h"
#include "mstx/rundb/pack.h"

enum { MSTX_FOLDED = 2 }; /* version of folded blobs */

enum mstx_fold_column {
    MSTX_FOLD_EVEN,
    MSTX_FOLD_PATTERN,
    MSTX_FOLD_FEW,
    MSTX_FOLD_NUMBERS,
    MSTX_FOLD_NULLS,
    MSTX_FOLD_EVENTS,
    MSTX_FOLD_PLAIN,
    MSTX_FOLD_OTHER /* only as a whole column of packed rows; not of a column that is other itself */
};

enum {
    MSTX_FOLD_EVENT_COLUMNS = 8,
    MSTX_FOLD_FEW_MAX = 256,
    MSTX_FOLD_DEEP = 4,
    MSTX_FOLD_LEADERS = 4
};

enum mstx_fold_rule { MSTX_RULE_PERIOD, MSTX_RULE_PAIR, MSTX_RULE_CHANGE };
/* Returns the class of row i by a rule; other: the column that the rule names. */
static inline uint32_t mstx__fold_class(enum mstx_fold_rule rule, uint64_t period,
                                        const int64_t *other, uint32_t i)
{
    if (rule == MSTX_RULE_PERIOD)
        return (uint32_t)(i % period);
    const int64_t before = i != 0 ? other[i - 1] : 0;
    if (rule == MSTX_RULE_CHANGE)
        return other[i] != before;
    return ((uint64_t)before | (uint64_t)other[i]) < 16 ? (uint32_t)(16 * before + other[i]) : 0;
}

struct mstx_fold;
/* Makes a reader for a store, which outlives it. */
enum ms_rc mstx__fold_new(struct mstx_fold **out, struct ms_store *s,
                          struct ms_err *err) MS_MUST_USE;
void mstx__fold_free(struct mstx_fold *f);

static inline bool mstx__is_folded(struct ms_str blob)
{
    return blob.n != 0 && blob.p[0] == MSTX_FOLDED;
}

/* Unpacks a folded chunk into ev[MSTX_CHUNK_MAX]. */
enum ms_rc mstx__fold_events(struct mstx_fold *f, struct ms_str blob, struct mstx_event *ev,
                             uint32_t *n, struct ms_err *err) MS_MUST_USE;
/* As mstx_pack_has_name. */
bool mstx__fold_has_name(struct mstx_fold *f, struct ms_str blob, mstx_name_test test, void *ctx);
/* The reader of folded columns, for packed rows (packed_rows.h). */
struct mstx_folded_columns;
const struct mstx_folded_columns *mstx__fold_columns(const struct mstx_fold *f);

/* For the writer: the times of the points of a folded chunk without a leader, in quanta. */
enum ms_rc mstx__fold_points(struct mstx_fold *f, int64_t chunk, const int64_t **time, uint32_t *n,
                             struct ms_err *err) MS_MUST_USE;

#endif
