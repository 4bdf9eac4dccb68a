/* SPDX-License-Identifier: MIT
 *
 * step_name: see the header.
 */
#include "mstx/format/step_name.h"

#include <string.h>

static const char *const step_words[] = {"profilerstep", "train_step", "training_step", "trainstep",
                                         "global_step",  "step",       "iteration",     "iter"};

static bool starts_with_word(struct ms_str s, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i < n; i++) {
        if (i >= s.n || (s.p[i] | 0x20) != (word[i] | 0x20))
            return false;
    }
    return true;
}

/* Skips the separators between word and number: "step 7", "step_7", "ProfilerStep#7", "iter: 7". */
static struct ms_str pass_separators(struct ms_str s)
{
    while (s.n != 0 && strchr(" #_:=-", s.p[0]) != NULL && s.p[0] != '\0')
        s = ms_str_sub(s, 1, s.n);
    return s;
}

bool mstx_is_step_name(struct ms_str name, int64_t *number)
{
    *number = -1;
    for (size_t i = 0; i < sizeof step_words / sizeof *step_words; i++) {
        if (!starts_with_word(name, step_words[i]))
            continue;
        struct ms_str rest =
            pass_separators(ms_str_sub(name, (uint32_t)strlen(step_words[i]), name.n));
        uint64_t v;
        if (rest.n == 0)
            return true;
        if (ms_str_u64(rest, &v) && v <= UINT32_MAX) {
            *number = (int64_t)v;
            return true;
        }
    }
    return false;
}
