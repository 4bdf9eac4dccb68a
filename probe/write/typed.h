/* SPDX-License-Identifier: MIT
 *
 * typed: reads a small, hand-written JSON file key by key into a struct.
 *
 * The file is read with the pull reader alone, so this works inside another program's process,
 * where no JSON library may be loaded. Tables list the keys and how each is read; messages name the
 * place, the key, what was found and what is allowed:
 *
 *     config.json: line 4, byte 61: statistics.data_mode[1]: expected one of
 *     "all", "forward", ..., found "forwards"; did you mean "forward"?
 */
#ifndef PROBE_WRITE_TYPED_H
#define PROBE_WRITE_TYPED_H

#include "probe/base/arena.h"
#include "probe/base/jread.h"

struct probe__typed {
    struct ms_jread r;
    const char *name;       /* of the file */
    struct ms_arena *arena; /* texts and lists that outlive the reading */
    struct ms_buf scratch;
    struct ms_buf path; /* of the value being read: "statistics.slice[0].dim" */
};

/* A key and how to read its value. The value is stored at into + offset; `with` holds parameters of
 * the reader. tok is the first token of the value and never MS_J_NULL, because null counts as an
 * absent key. */
struct probe__key {
    const char *name;
    enum ms_rc (*read)(struct probe__typed *t, enum ms_jtok tok, void *at, const void *with,
                       struct ms_err *err);
    size_t offset;
    const void *with;
};

/* Reads a whole file, which is one object. keys ends with a NULL name. Texts and lists are kept in
 * the arena. */
enum ms_rc probe__typed_read(const char *name, struct ms_str text, struct ms_arena *arena,
                             const struct probe__key *keys, void *into,
                             struct ms_err *err) MS_MUST_USE;

/* Adds the place in the text to a failure whose message begins with a key, as in "scope[0]:
 * expected". The key is looked up in the text's object, or in its member `section`; false when the
 * key is not there. */
bool probe__typed_locate(struct ms_str text, const char *section, struct ms_err *err);

/* Fails at the current value. */
enum ms_rc probe__typed_reject(struct probe__typed *t, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
enum ms_rc probe__typed_mismatch(struct probe__typed *t, enum ms_jtok tok, const char *expected,
                                 struct ms_err *err);

/* ---- readers ---------------------------------------------------------- */

#define PROBE__READER(name)                                                                        \
    enum ms_rc name(struct probe__typed *t, enum ms_jtok tok, void *at, const void *with,          \
                    struct ms_err *err)

/* `with` of probe__read_int. */
struct probe__bounds {
    int64_t min, max;
};
PROBE__READER(probe__read_int);    /* int64_t */
PROBE__READER(probe__read_bool);   /* bool */
PROBE__READER(probe__read_str);    /* const char * */
PROBE__READER(probe__read_choice); /* int: index into the NULL-terminated const char *const *with */
PROBE__READER(probe__read_object); /* with: its struct probe__key table; offsets count from `at` */
/* const char *const *, NULL-terminated; with: the allowed words, NULL: any */
PROBE__READER(probe__read_words);
PROBE__READER(probe__ignore);  /* a known key that is ignored */
PROBE__READER(probe__unused);  /* ignored with a warning; with: the reason */
PROBE__READER(probe__refused); /* an error; with: the reason */

/* Reads a list: `item` is called for each item, with the item's index in the path, and stores the
 * item through `ctx`. */
typedef enum ms_rc (*probe__read_item)(struct probe__typed *t, enum ms_jtok tok, void *ctx,
                                       struct ms_err *err);
enum ms_rc probe__read_list(struct probe__typed *t, enum ms_jtok tok, const char *of,
                            probe__read_item item, void *ctx, struct ms_err *err) MS_MUST_USE;
/* Copies the current string or key into the arena. */
enum ms_rc probe__keep_text(struct probe__typed *t, const char **out,
                            struct ms_err *err) MS_MUST_USE;

#endif
