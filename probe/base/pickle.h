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

#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/str.h"

/* ---- plain values -------------------------------------------------------------------- */

/* Plain values - numbers, texts, lists, dictionaries - as a pickle or JSON holds them.
 *
 * Values live in an arena and point at each other. One value may occur in several places, and a
 * list in a damaged pickle may contain itself, so a function that walks values must limit the
 * depth. */

enum ms_plain_kind {
    MS_PLAIN_NONE,
    MS_PLAIN_BOOL, /* i: 0 or 1 */
    MS_PLAIN_INT,  /* i */
    MS_PLAIN_REAL, /* f */
    MS_PLAIN_TEXT, /* s, which may point into the input */
    /* Kinds with n items: */
    MS_PLAIN_TUPLE,
    MS_PLAIN_LIST,
    MS_PLAIN_DICT,    /* key, value, key, value, .. */
    MS_PLAIN_CALL,    /* a recorded call: the name, and its arguments as a tuple; of an object, then
                         its state and the lists and dictionaries that were put into it */
    MS_PLAIN_OUTSIDE, /* identifier of an object that is stored outside the pickle */
    /* Kinds without items: */
    MS_PLAIN_NAME,  /* i: the number that the pickle's rules give the name */
    MS_PLAIN_CLASS, /* s: "module.name", a name that the rules do not know but keep */
    MS_PLAIN_MARK,  /* used only inside the pickle reader */
};
struct ms_plain {
    enum ms_plain_kind kind;
    uint32_t n, cap; /* items, and the capacity */
    union {
        int64_t i;
        double f;
        struct ms_str s;
        struct ms_plain **item;
    };
};

/* Creates a zeroed value of a kind; NULL when the arena is full. */
struct ms_plain *ms_plain_new(struct ms_arena *a, enum ms_plain_kind kind);
/* Appends an item to a container; false when the arena is full. */
bool ms_plain_add(struct ms_arena *a, struct ms_plain *to, struct ms_plain *item);

/* The readers below treat NULL as an empty value. */
uint32_t ms_plain_len(const struct ms_plain *v);
/* Returns item i, or a value of kind MS_PLAIN_NONE when there are fewer items. */
const struct ms_plain *ms_plain_item(const struct ms_plain *v, uint32_t i);
/* Returns the value under a key; NULL when v is no dictionary or has no such key. */
const struct ms_plain *ms_plain_get(const struct ms_plain *v, const char *key);
/* Return the number or text of a value, or `other` for a value of another kind. */
int64_t ms_plain_int(const struct ms_plain *v, int64_t other);
double ms_plain_real(const struct ms_plain *v, double other);
struct ms_str ms_plain_text(const struct ms_plain *v);

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
    /* Keeps a refused name as MS_PLAIN_CLASS, and objects of it as calls with their state, instead of
     * failing: for a reader that shows a stranger's objects. They are still never made. */
    bool keeps_objects;
    /* Limits: values on the stack, memo entries, containers, items of containers, and bytes of an
     * integer. An integer that needs more than 64 bits is read as MS_PLAIN_NONE. */
    uint32_t open, remembered, objects, items, digits;
};

/* Every operation that the reader implements. */
#define MS_PICKLE_OPS                                                                              \
    "()]}NGJKMXUTBCaelsutcRQhjqr0\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x93\x94\x95"

/* These, and the operations that make and fill objects; for rules that keep objects. */
#define MS_PICKLE_OBJECT_OPS MS_PICKLE_OPS "b12\x81\x8e\x8f\x90\x91\x92\x96"

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
