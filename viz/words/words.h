/* SPDX-License-Identifier: MIT
 *
 * words: the sentence of a message, in the reader's language.
 *
 * viz/words/sentences.h has one row for each kind of message: English and Chinese side by side. In
 * a template
 *
 *     {name}             is the argument as it is
 *     {name:format}      is a number: count, bytes, time (of ns), error, error1 (with exponent),
 *                        factor, percent or percent0 (of a share), one, two (decimals)
 *     {name?a=x|b=y|z}   is x where the argument is a, y where it is b, else z; "=x" applies to
 *                        an absent argument
 *     [...]              is omitted where an argument named in it is absent
 */
#ifndef VIZ_WORDS_WORDS_H
#define VIZ_WORDS_WORDS_H

#include "probe/base/message.h"

enum viz_language { VIZ_ENGLISH, VIZ_CHINESE, VIZ_LANGUAGES };

/* Returns Chinese for "zh" and names that begin with it, English for all others. */
enum viz_language viz_language_of(struct ms_str name);

/* Appends the sentence; returns false and appends nothing for an unknown kind. */
bool viz_words_say(enum viz_language language, struct ms_stored_message message,
                   struct ms_buf *out);
/* Makes the libraries below viz use the English sentences. Call once, before threads start. */
void viz_words_install(void);

/* Returns a row of the table, for its test; NULL after the last. */
struct viz_sentence {
    const char *kind, *text[VIZ_LANGUAGES];
};
const struct viz_sentence *viz_words_sentence(size_t i);

#endif
