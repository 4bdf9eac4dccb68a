/* SPDX-License-Identifier: MIT
 *
 * pickle: reads and writes Python's pickles without Python.
 *
 * Reading executes nothing. The caller lists the allowed operations and names. A call of an allowed
 * name becomes a value that records the name and the arguments. There is no recursion, and memory
 * is bounded by the limits of the caller and by the bytes read.
 */
#ifndef PROBE_BASE_PICKLE_H
#define PROBE_BASE_PICKLE_H

#include "probe/base/io.h"
#include "probe/base/plain.h"

/* ---- reading ---------------------------------------------------------- */

/* What a call of an allowed name becomes. Numbers from MS_PICKLE_OWN on are the caller's; their
 * calls become MS_PLAIN_CALL. */
enum ms_pickle_name {
    MS_PICKLE_REFUSED,
    MS_PICKLE_NEW_DICT, /* the call, without arguments, becomes an empty dictionary */
    MS_PICKLE_FIRST,    /* the call becomes its first argument: a list with a type name */
    MS_PICKLE_OWN
};

struct ms_pickle_rules {
    const char *of;    /* what is read, for messages: "a tensor" */
    struct ms_str ops; /* allowed operations; '.', the end, always is */
    uint8_t protocol;  /* highest protocol allowed; 2 is the lowest */
    /* Returns the number of a name, or MS_PICKLE_REFUSED. */
    uint32_t (*name_number)(struct ms_str module, struct ms_str name);
    /* Limits: values on the stack, memo entries, containers, items of containers, and bytes of an
     * integer. An integer that needs more than 64 bits is read as MS_PLAIN_NONE. */
    uint32_t open, remembered, objects, items, digits;
};

/* Every operation that the reader implements. */
#define MS_PICKLE_OPS                                                                              \
    "()]}NGJKMXUTBCaelsutcRQhjqr0\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x93\x94\x95"

/* Reads the pickle at p + *at, which ends at p + n at the latest, and sets *at to the byte behind
 * the pickle. On failure *root is the first value on the stack, which tells what kind of object the
 * pickle holds, or NULL. Errors carry the byte offset within p. */
enum ms_rc ms_pickle_read(struct ms_plain **root, const char *p, size_t n, size_t *at,
                          const struct ms_pickle_rules *rules, struct ms_arena *a,
                          struct ms_err *err) MS_MUST_USE;

/* ---- writing ---------------------------------------------------------- */

/* Write protocol 2, which every Python 3 reads. Values follow each other; a dictionary has keys and
 * values in turn. The memo is not used: a text that occurs twice is written twice. */
void ms_pickle_begin(struct ms_out *o);
void ms_pickle_end(struct ms_out *o);
void ms_pickle_dict(struct ms_out *o);
void ms_pickle_dict_end(struct ms_out *o);
void ms_pickle_list(struct ms_out *o);
void ms_pickle_list_end(struct ms_out *o);
void ms_pickle_tuple(struct ms_out *o);
void ms_pickle_tuple_end(struct ms_out *o);
/* Writes a text; bytes that are not UTF-8 become question marks. */
void ms_pickle_str(struct ms_out *o, struct ms_str s);
void ms_pickle_i64(struct ms_out *o, int64_t v);
void ms_pickle_f64(struct ms_out *o, double v);
void ms_pickle_bool(struct ms_out *o, bool v);
void ms_pickle_none(struct ms_out *o);

#endif
