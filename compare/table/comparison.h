/* SPDX-License-Identifier: MIT
 *
 * comparison: the definition of struct cmp of compare.h.
 *
 * Only cmp_open creates a comparison. Later stages read its parts and change none.
 */
#ifndef COMPARE_TABLE_COMPARISON_H
#define COMPARE_TABLE_COMPARISON_H

#include "compare/measure/measured.h"
#include "compare/read/leaf_values.h"

struct cmp__place { /* for a row of the table */
    uint32_t pair;  /* the pair whose verdict is written in this row */
    uint32_t first; /* place of the first verdict of that pair's operator */
};

struct cmp {
    struct cmp_setup set;
    struct cmp_rows rows;
    struct cmp_measured measured;
    MS_VEC(struct cmp__place) places; /* with rules.judges_by_place: by pair */
    struct read__values *values;      /* of golden and target; NULL: not kept */
};

/* Reports that `groups` of c have been written. */
static inline void cmp__report_written(const struct cmp *c, size_t groups)
{
    size_t all = cmp_groups(c);
    const struct cmp_progress p = {.what = "writing",
                                   .share = all != 0 ? (double)groups / (double)all : 1,
                                   .amount = c->rows.groups.p[groups].first};
    cmp__progress(&c->set, &p);
}

/* Tells whether the dtypes of a pair's rows are too different for the rows to be a pair. */
enum ms_rc cmp__is_parted(const struct cmp *c, struct cmp_view *v, uint32_t pair, bool *parted,
                          struct ms_err *err);
/* Tells whether this row shows the stack of the view's operator. */
bool cmp__shows_stack(const struct cmp *c, const struct cmp_view *v, const struct cmp_row *row);

/* Returns the relative distance between both sides of a row, the noise when the target is a second
 * golden run; NaN when not known. */
double cmp__row_noise(const struct cmp *c, const struct cmp_row *row);
/* Fill m->noise from a calibration: from the file of the configuration, or from text. */
enum ms_rc cmp__read_noise(struct cmp_rows *c, struct cmp_measured *m, struct ms_err *err);
enum ms_rc cmp__parse_noise(struct cmp_rows *c, struct cmp_measured *m, const char *name,
                            struct ms_str text, struct ms_err *err);
/* Fills c->measured.noise from the second run, compared with the golden side. */
enum ms_rc cmp__noise_of_run(struct cmp *c, const struct cmp *second, struct ms_err *err);

#endif
