/* SPDX-License-Identifier: MIT
 *
 * tensor_file: the data files beside a dump.
 */
#ifndef COMPARE_MEASURE_TENSOR_FILE_H
#define COMPARE_MEASURE_TENSOR_FILE_H

#include "compare/pair/cmp_rows.h"
#include "probe/tensor/tensor.h"

/* A data file of the dump: in dir, or where the dump says that it was written. */
enum ms_rc cmp__open_tensor(const struct probe_dump *d, const char *dir, struct ms_str name,
                            struct probe_tensor *t, struct ms_err *err);
/* The name of a row's data file; empty: it has none. */
struct ms_str cmp__data_name(const struct cmp__side *s, uint32_t row);
/* How many rows of a target's output were written, where its operator leaves the rest as it was;
 * UINT64_MAX: all. */
uint64_t cmp__used_rows(const struct cmp_rows *c, uint32_t t_row);
/* Shapes are equal but for axes of length 1. */
bool cmp__same_shape(const struct probe_tensor *a, const struct probe_tensor *b);

#endif
