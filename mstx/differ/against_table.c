/* SPDX-License-Identifier: MIT
 *
 * against_table: the answer as one table: the causes, then all names, those that changed most first.
 */
#include "mstx/differ/against_words.h"

#include "probe/base/csv.h"

#include <inttypes.h>

static void put_ms(double ns, struct ms_buf *out)
{
    ms_buf_printf(out, "%.4g,", ns / 1e6);
}

static void put_cause(const struct mstx_against *a, const struct mstx_cause *c, struct ms_buf *out)
{
    struct ms_buf text = {.max = MSTX_SENTENCE_MAX};
    ms_csv_put(out,
               c->place != MSTX_ROOT ? mstx__places_text(&a->places, c->place)
                                     : MS_STR("what no range covers"),
               MS_CSV_OWN);
    ms_buf_printf(out, ",cause: %s,", mstx__cause_word(c->kind));
    put_ms(c->cost_ns, out);
    put_ms(c->old_ns, out);
    put_ms(c->new_ns, out);
    ms_buf_puts(out, ",,");
    if (c->pair >= 0)
        ms_buf_printf(out, "%" PRId32, mstx__against_rank(a, (size_t)c->pair));
    ms_buf_puts(out, ",warning,");
    mstx__against_sentence(a, c, &text);
    ms_csv_put(out, ms_buf_slice(&text), MS_CSV_OWN);
    ms_buf_putc(out, '\n');
    ms_buf_free(&text);
}

static void put_name(const struct mstx_against *a, const struct mstx_name_change *c,
                     struct ms_buf *out)
{
    ms_csv_put(out, ms_map_key(&a->places.names, c->name), MS_CSV_OWN);
    ms_buf_puts(out, c->on_device ? ",on a device," : ",,");
    put_ms(c->new_step_ns - c->old_step_ns, out);
    put_ms(c->old_step_ns, out);
    put_ms(c->new_step_ns, out);
    ms_buf_printf(out, "%" PRIu64 ",%" PRIu64 ",,,\n", c->old_count, c->new_count);
}

enum ms_rc mstx_against_table(const struct mstx_against *a, struct ms_buf *out, struct ms_err *err)
{
    mstx_name_changes names = {0};
    if (!mstx__against_names(a, &names))
        return ms_no_memory(err);
    mstx__against_drop_steps(a, &names);
    ms_buf_puts(out,
                "name,what,more ms a step,old ms,new ms,old count,new count,rank,Result,text\n");
    for (size_t i = 0; i < a->causes.list.n; i++)
        put_cause(a, &a->causes.list.p[i], out);
    for (size_t i = 0; i < names.n; i++)
        put_name(a, &names.p[i], out);
    ms_vec_free(&names);
    return ms_buf_check(out, err);
}
