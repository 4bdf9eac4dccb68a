/* SPDX-License-Identifier: MIT
 *
 * partners: how nodes found their partners, as sentences, figures and mapping files.
 */
#ifndef COMPARE_WRITE_PARTNERS_H
#define COMPARE_WRITE_PARTNERS_H

#include "compare/write/out.h"

#include "probe/base/jwrite.h"

/* Counts of target nodes with a partner. */
struct cmp_partners {
    bool aligned; /* false: paired by name or mapping */
    bool by_value;
    size_t nodes, paired, unsure; /* target nodes with rows; unsure: confidence below 0.8 */
};
struct cmp_partners cmp_partners_count(const struct cmp *c);
/* Copy of an alignment's pairs that outlives the comparison; empty without an alignment. */
struct cmp_pair_copy {
    struct ms_str target, golden;
    float confidence;
    uint8_t how; /* enum cmp_align_how */
};
struct cmp_pair_list {
    MS_VEC(struct cmp_pair_copy) list;
    struct ms_arena *arena;
};
enum ms_rc cmp_pair_list_take(struct cmp_pair_list *l, const struct cmp *c,
                              struct ms_err *err) MS_MUST_USE;
/* Writes the pairs as members of a JSON list. */
void cmp_pair_list_json(const struct cmp_pair_list *l, struct ms_jwrite *w);
void cmp_pair_list_free(struct cmp_pair_list *l);
/* Writes one line of text without a line break; nothing when rows are paired by name. */
void cmp_partners_text(const struct cmp_partners *p, struct ms_buf *out);

/* Explains why a node of either side has its partner. An unknown name fails with the most similar
 * name as a hint. */
enum ms_rc cmp_explain(const struct cmp *c, struct ms_str node, struct ms_buf *out,
                       struct ms_err *err) MS_MUST_USE;
/* Writes the alignment as a layer mapping, or as a data mapping of rows. */
enum ms_rc cmp_write_alignment(const struct cmp *c, bool layers, const char *path,
                               struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

#endif
