/* SPDX-License-Identifier: MIT
 *
 * tl_pickle: plain values as Python's pickle has them, protocol 2, which every Python 3 reads.
 *
 * Values stand one behind the other: keys and values of a dictionary in turn.  Nothing is remembered, so
 * a text that comes twice is written twice.
 */
#ifndef MSTX_TL_PICKLE_H
#define MSTX_TL_PICKLE_H

#include "probe/base/io.h"

void mstx__pickle_begin(struct ms_out *o);
void mstx__pickle_end(struct ms_out *o);
void mstx__pickle_dict(struct ms_out *o);
void mstx__pickle_dict_end(struct ms_out *o);
void mstx__pickle_list(struct ms_out *o);
void mstx__pickle_list_end(struct ms_out *o);
void mstx__pickle_tuple(struct ms_out *o);
void mstx__pickle_tuple_end(struct ms_out *o);
/* Bytes that are no UTF-8 become question marks. */
void mstx__pickle_str(struct ms_out *o, struct ms_str s);
void mstx__pickle_i64(struct ms_out *o, int64_t v);
void mstx__pickle_f64(struct ms_out *o, double v);
void mstx__pickle_bool(struct ms_out *o, bool v);
void mstx__pickle_none(struct ms_out *o);

#endif
