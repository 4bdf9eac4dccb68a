/* SPDX-License-Identifier: MIT
 *
 * typed: a small JSON file that people write, read key by key into a struct.
 *
 * The pull reader alone knows the file, so this works where no JSON library may
 * be: in another program's process.  Tables say which keys there are and how
 * each is read; messages name the place, the key, what was found and what is
 * allowed:
 *
 *     config.json: line 4, byte 61: statistics.data_mode[1]: expected one of
 *     "all", "forward", ..., found "forwards"; did you mean "forward"?
 */
#ifndef PROBE_BASE_TYPED_H
#define PROBE_BASE_TYPED_H

#include "probe/base/arena.h"
#include "probe/base/jread.h"

struct probe__typed {
    struct ms_jread r;
    const char *name;       /* of the file */
    struct ms_arena *arena; /* texts and lists that are kept */
    struct ms_buf scratch;
    struct ms_buf path; /* of the value being read: "statistics.slice[0].dim" */
};

/* A key and how to read its value: into + offset is where it goes, `with` what the reader needs to
 * know.  tok is the first token of the value and never MS_J_NULL, which stands for an absent key. */
struct probe__key {
    const char *name;
    enum ms_rc (*read)(struct probe__typed *t, enum ms_jtok tok, void *at, const void *with,
                       struct ms_err *err);
    size_t offset;
    const void *with;
};

/* A whole file: one object.  keys ends with a NULL name.  What is kept goes to the arena. */
enum ms_rc probe__typed_read(const char *name, struct ms_str text, struct ms_arena *arena,
                             const struct probe__key *keys, void *into,
                             struct ms_err *err) MS_MUST_USE;

/* A failure that begins with a key, as in "scope[0]: expected", gets the place of that key in the
 * text: of its object, or of the member `section` in that.  false: the key is not there. */
bool probe__typed_locate(struct ms_str text, const char *section, struct ms_err *err);

/* Fail at the value being read. */
enum ms_rc probe__typed_reject(struct probe__typed *t, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
enum ms_rc probe__typed_mismatch(struct probe__typed *t, enum ms_jtok tok, const char *expected,
                                 struct ms_err *err);

/* ---- readers ---------------------------------------------------------- */

#define PROBE__READER(name)                                                                        \
    enum ms_rc name(struct probe__typed *t, enum ms_jtok tok, void *at, const void *with,          \
                    struct ms_err *err)

/* const struct probe__bounds *with */
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
PROBE__READER(probe__ignore);  /* known, and of no concern here */
PROBE__READER(probe__unused);  /* the same with a warning: with says why */
PROBE__READER(probe__refused); /* an error: with says why */

/* A list: `item` is called for each item, its index in the path, and puts it where `ctx` says. */
typedef enum ms_rc (*probe__read_item)(struct probe__typed *t, enum ms_jtok tok, void *ctx,
                                       struct ms_err *err);
enum ms_rc probe__read_list(struct probe__typed *t, enum ms_jtok tok, const char *of,
                            probe__read_item item, void *ctx, struct ms_err *err) MS_MUST_USE;
/* Text of the current string or key, kept in the arena. */
enum ms_rc probe__keep_text(struct probe__typed *t, const char **out,
                            struct ms_err *err) MS_MUST_USE;

#endif
