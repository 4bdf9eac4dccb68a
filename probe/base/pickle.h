/* SPDX-License-Identifier: MIT
 *
 * pickle: Python's pickles read without Python, and written.
 *
 * Reading executes nothing.  The caller lists the operations and the names that its pickles may hold; a
 * call of a name becomes a value that says "this would be called with that".  The machine has no recursion,
 * and its memory is bounded by the limits of the caller and by the bytes read.
 */
#ifndef PROBE_BASE_PICKLE_H
#define PROBE_BASE_PICKLE_H

#include "probe/base/io.h"
#include "probe/base/plain.h"

/* ---- reading ---------------------------------------------------------- */

/* What the machine makes of a call of an allowed name; numbers from MS_PICKLE_OWN on are the caller's,
 * and their calls become MS_PLAIN_CALL. */
enum ms_pickle_name {
    MS_PICKLE_REFUSED,
    MS_PICKLE_NEW_DICT, /* called without arguments: an empty dictionary */
    MS_PICKLE_FIRST,    /* its first argument: a name that only gives a list a type */
    MS_PICKLE_OWN
};

struct ms_pickle_rules {
    const char *of;    /* "a tensor": whose pickles these are, for messages */
    struct ms_str ops; /* operations that may occur; '.', the end, always may */
    uint8_t protocol;  /* the highest that may be announced; 2 is the lowest */
    /* The name's number, or MS_PICKLE_REFUSED. */
    uint32_t (*name_number)(struct ms_str module, struct ms_str name);
    /* The most values on the stack, values remembered, containers, items of containers, and bytes of an
     * integer; one that needs more than 64 bits is read as none. */
    uint32_t open, remembered, objects, items, digits;
};

/* Every operation that the machine knows. */
#define MS_PICKLE_OPS                                                                              \
    "()]}NGJKMXUTBCaelsutcRQhjqr0\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x93\x94\x95"

/* Reads the pickle at p + *at, which ends at most at p + n, and leaves *at behind the pickle.  On failure
 * *root is the first value of the stack, which tells what the pickle would have been, or NULL.  Errors
 * carry the byte within p. */
enum ms_rc ms_pickle_read(struct ms_plain **root, const char *p, size_t n, size_t *at,
                          const struct ms_pickle_rules *rules, struct ms_arena *a,
                          struct ms_err *err) MS_MUST_USE;

/* ---- writing ---------------------------------------------------------- */

/* Protocol 2, which every Python 3 reads.  Values stand one behind the other: keys and values of a
 * dictionary in turn.  Nothing is remembered: a text that comes twice is written twice. */
void ms_pickle_begin(struct ms_out *o);
void ms_pickle_end(struct ms_out *o);
void ms_pickle_dict(struct ms_out *o);
void ms_pickle_dict_end(struct ms_out *o);
void ms_pickle_list(struct ms_out *o);
void ms_pickle_list_end(struct ms_out *o);
void ms_pickle_tuple(struct ms_out *o);
void ms_pickle_tuple_end(struct ms_out *o);
/* Bytes that are no UTF-8 become question marks. */
void ms_pickle_str(struct ms_out *o, struct ms_str s);
void ms_pickle_i64(struct ms_out *o, int64_t v);
void ms_pickle_f64(struct ms_out *o, double v);
void ms_pickle_bool(struct ms_out *o, bool v);
void ms_pickle_none(struct ms_out *o);

#endif
