/* SPDX-License-Identifier: MIT
 *
 * said: the English sentence of a message, for tests that look for its words.
 */
#ifndef TESTS_SUPPORT_SAID_H
#define TESTS_SUPPORT_SAID_H

#include "tests/support/check.h"
#include "viz/words/words.h"

static inline void say_in_english(struct ms_stored_message said, char *out, size_t room)
{
    struct ms_buf b = {.max = 4 * MS_MESSAGE_MAX};
    ck_assert_msg(viz_words_say(VIZ_ENGLISH, said, &b), "%.*s %.*s", MS_STR_ARG(said.kind),
                  MS_STR_ARG(said.args));
    snprintf(out, room, "%s", ms_buf_z(&b));
    ms_buf_free(&b);
}

#endif
