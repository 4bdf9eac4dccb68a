/* SPDX-License-Identifier: MIT
 *
 * message: a statement from one part of the program to another, as data without its wording.
 *
 * A message is a kind and named arguments. A kind is declared where its messages are made, as a
 * name and the names of the arguments; the sentence of each kind is in viz/words, in English and in
 * Chinese. The program registers that table at its start (ms_message_set_speaker), so that
 * libraries below viz can show a message to people.
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

/* A kind of message. args: names separated by spaces; '?' behind a name marks an optional
 * argument. */
struct ms_message_kind {
    const char *name, *args;
};

enum { MS_MESSAGE_MAX = 1024, MS_MESSAGE_STR_MAX = 240, MS_MESSAGE_ARGS_MAX = 16 };

struct ms_message {
    const struct ms_message_kind *kind; /* NULL: no message */
    uint16_t n;
    char args[MS_MESSAGE_MAX];
};

/* A message as it is stored and read back; kind.n is 0 when there is none. */
struct ms_stored_message {
    struct ms_str kind, args;
};

void ms_message_begin(struct ms_message *m, const struct ms_message_kind *kind);
/* Add an argument, whose name the kind declares, at most once each. A text longer than
 * MS_MESSAGE_STR_MAX bytes is cut; a number that JSON cannot hold becomes the text NaN, inf or
 * -inf. */
void ms_message_i64(struct ms_message *m, const char *name, int64_t v);
void ms_message_f64(struct ms_message *m, const char *name, double v);
void ms_message_str(struct ms_message *m, const char *name, struct ms_str s);
/* Restores a message from its stored arguments; false when args is no object within the limits. */
bool ms_message_restore(struct ms_message *m, const struct ms_message_kind *kind,
                        struct ms_str args);
/* Tells whether the message has every argument that its kind does not mark with '?'. */
bool ms_message_is_whole(const struct ms_message *m);
/* Returns the stored form of a message, borrowed from m. */
struct ms_stored_message ms_message_stored(const struct ms_message *m);

/* An argument as it is read back, to be put into a sentence. */
struct ms_message_arg {
    struct ms_str name, text; /* text: unescaped if a string, as written if a number */
    double number;            /* 0 for a string */
    bool is_number;
};
struct ms_message_args {
    struct ms_message_arg list[MS_MESSAGE_ARGS_MAX];
    size_t n;
    char text[MS_MESSAGE_MAX];
};
/* Reads arguments back; false when args is no JSON object of numbers and strings within the limits
 * above. */
bool ms_message_read(struct ms_message_args *to, struct ms_str args);
/* Finds an argument by name; NULL when it is absent. */
const struct ms_message_arg *ms_message_find(const struct ms_message_args *in, struct ms_str name);

/* Appends the sentence of a message; returns false and appends nothing when the kind is unknown. */
typedef bool ms_speak_fn(struct ms_stored_message message, struct ms_buf *out);
/* Registers the table of sentences; called once, before threads start. */
void ms_message_set_speaker(ms_speak_fn *fn);
/* Appends the sentence in English; without a registered table, or for an unknown kind, appends the
 * kind and the arguments. */
void ms_message_speak(struct ms_stored_message message, struct ms_buf *out);

#endif
