/* SPDX-License-Identifier: MIT
 *
 * tensor_file: the data files beside a dump.
 */
#ifndef COMPARE_MEASURE_TENSOR_FILE_H
#define COMPARE_MEASURE_TENSOR_FILE_H

#include "compare/pair/cmp_rows.h"
#include "probe/tensor/tensor.h"

/* Opens a data file of the dump, in dir or in the directory that the dump names. */
enum ms_rc cmp__open_tensor(const struct probe_dump *d, const char *dir, struct ms_str name,
                            struct probe_tensor *t, struct ms_err *err);
/* Returns the name of a row's data file; empty when there is none. */
struct ms_str cmp__data_name(const struct cmp__side *s, uint32_t row);
/* Returns the number of rows of a target's output that its operator wrote; UINT64_MAX: all. */
uint64_t cmp__used_rows(const struct cmp_rows *c, uint32_t t_row);
/* Tells whether shapes are equal apart from axes of length 1. */
bool cmp__same_shape(const struct probe_tensor *a, const struct probe_tensor *b);

#endif
