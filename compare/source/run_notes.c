/* SPDX-License-Identifier: MIT
 *
 * run_notes: notes on differences of the runs as a whole, which are not a fault of one
 * operator.
 */
#include "compare/observe/node_facts.h"
#include "compare/source/suspect.h"
#include "compare/source/suspect_kinds.h"

#define KIND(name, args) static const struct ms_message_kind say_##name = {#name, args};
CMP_NOTE_KINDS(KIND)

static bool say_precision(const struct observe__part *p, struct ms_message *m)
{
    if (p->other_share == 0)
        return false;
    ms_message_begin(m, &say_other_precision);
    ms_message_f64(m, "share", p->other_share);
    ms_message_str(m, "type", ms_str_of(ms_dtype_torch((enum ms_dtype)p->other[1])));
    ms_message_str(m, "golden_type", ms_str_of(ms_dtype_torch((enum ms_dtype)p->other[0])));
    if (p->other_noise > 0)
        ms_message_f64(m, "noise", p->other_noise);
    return true;
}

static bool say_start(const struct observe__part *p, struct ms_message *m)
{
    if (!p->other_start)
        return false;
    ms_message_begin(m, &say_other_start);
    ms_message_i64(m, "unlike", p->unlike);
    ms_message_i64(m, "parameters", p->parameters);
    ms_message_f64(m, "limit", OBSERVE__UNLIKE);
    return true;
}

/* Adds at most one note of each kind, for the first rank and step that has it. */
enum ms_rc source__note(struct cmp_source *s, struct ms_err *err)
{
    static bool (*const kinds[])(const struct observe__part *,
                                 struct ms_message *) = {say_precision, say_start};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct ms_message m;
        bool is_said = false;
        for (size_t i = 0; i < s->parts.n && !is_said; i++)
            is_said = kinds[k](s->parts.p[i], &m);
        if (!is_said)
            continue;
        struct ms_stored_message *slot = ms_vec_push(&s->notes);
        if (slot == NULL)
            return ms_no_memory(err);
        MS_TRY(source__keep_message(s, &m, slot, err));
    }
    return MS_OK;
}
