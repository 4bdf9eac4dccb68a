/* SPDX-License-Identifier: MIT
 *
 * merge_int: what the parts of merge share.
 */
#ifndef COMPARE_MERGE_INT_H
#define COMPARE_MERGE_INT_H

#include "compare/merge.h"

/* Is it the file of a rank's result?  Then its rank and time. */
bool cmp__merge_name(struct ms_str name, uint64_t *rank, uint64_t *stamp);

/* Take what is asked for out of one file.  The first table that is read settles which figures there
 * are when the configuration does not. */
enum ms_rc cmp__merge_table(struct cmp_merge *m, struct cmp_merge_rank *r, const char *path,
                            const struct cmp_merge_conf *conf, struct ms_err *err);

#endif
