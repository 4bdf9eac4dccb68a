/* SPDX-License-Identifier: MIT
 *
 * message: something that one part of the program says to another, without its words.
 *
 * A message is a kind and named arguments.  Kinds are declared where messages are made,
 * as a name and the names of the arguments; the sentence of each kind stands in
 * viz/words, in English and in Chinese.  The program hands that table in at its start
 * (ms_message_set_speaker), so that libraries below viz can show a message to people.
 *
 *     static const struct ms_message_kind lost = {"lost", "pid records rank?"};
 *     struct ms_message m;
 *     ms_message_begin(&m, &lost);
 *     ms_message_i64(&m, "pid", 4242);
 *     ms_message_i64(&m, "records", 17);
 *
 * Arguments are kept as one JSON object, which is also how they are stored in databases:
 * {"pid": 4242, "records": 17}.  A message has a fixed size and allocates nothing.
 */
#ifndef PROBE_BASE_MESSAGE_H
#define PROBE_BASE_MESSAGE_H

#include "probe/base/str.h"

/* args: names separated by spaces; a '?' behind a name: the argument may be absent. */
struct ms_message_kind {
    const char *name, *args;
};

enum { MS_MESSAGE_MAX = 1024, MS_MESSAGE_STR_MAX = 240, MS_MESSAGE_ARGS_MAX = 16 };

struct ms_message {
    const struct ms_message_kind *kind; /* NULL: no message */
    uint16_t n;
    char args[MS_MESSAGE_MAX];
};

/* A message as it is stored and read back; kind.n is 0 where there is none. */
struct ms_said {
    struct ms_str kind, args;
};

void ms_message_begin(struct ms_message *m, const struct ms_message_kind *kind);
/* Each argument once, named by the kind.  A text longer than MS_MESSAGE_STR_MAX bytes is cut; a
 * number that JSON does not have becomes the text NaN, inf or -inf. */
void ms_message_i64(struct ms_message *m, const char *name, int64_t v);
void ms_message_f64(struct ms_message *m, const char *name, double v);
void ms_message_str(struct ms_message *m, const char *name, struct ms_str s);
/* Takes a message over as it was stored; false: args is no object within the limits. */
bool ms_message_restore(struct ms_message *m, const struct ms_message_kind *kind,
                        struct ms_str args);
/* Has every argument that its kind does not mark with '?'? */
bool ms_message_is_whole(const struct ms_message *m);
/* Borrowed from m. */
struct ms_said ms_message_said(const struct ms_message *m);

/* Reads arguments back, for whoever makes a sentence of them. */
struct ms_message_arg {
    struct ms_str name, text; /* text: of a string unescaped, of a number as it is written */
    double number;            /* 0 for a string */
    bool is_number;
};
struct ms_message_args {
    struct ms_message_arg list[MS_MESSAGE_ARGS_MAX];
    size_t n;
    char text[MS_MESSAGE_MAX];
};
/* False: it is no JSON object of numbers and strings within the limits above. */
bool ms_message_read(struct ms_message_args *to, struct ms_str args);
/* NULL: absent. */
const struct ms_message_arg *ms_message_find(const struct ms_message_args *in, struct ms_str name);

/* Appends the sentence of a message; false (and nothing appended): its kind is not known. */
typedef bool ms_speak_fn(struct ms_said said, struct ms_buf *out);
/* Once, before threads start. */
void ms_message_set_speaker(ms_speak_fn *fn);
/* Appends the sentence in English, or the kind and the arguments where nobody has its words. */
void ms_message_speak(struct ms_said said, struct ms_buf *out);

#endif
