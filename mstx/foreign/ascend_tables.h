/* SPDX-License-Identifier: MIT
 *
 * ascend_tables: adds to a database of Ascend's profilers the SQL functions and empty tables that
 * queries rely on.
 */
#ifndef MSTX_FOREIGN_ASCEND_TABLES_H
#define MSTX_FOREIGN_ASCEND_TABLES_H

#include "probe/base/store.h"

/* Adds the SQL functions double_hash(text), the number that HCCL gives to a group,
 * p2p_domain(name), the digits of the group in the name of a send or receive (else NULL), and
 * the statistics of store_func. */
enum ms_rc mstx__ascend_functions(struct ms_store *s, struct ms_err *err) MS_MUST_USE;
/* Adds the functions, and an empty temporary table for each table of the profilers that the
 * database lacks. */
enum ms_rc mstx__ascend_tables(struct ms_store *s, struct ms_err *err) MS_MUST_USE;
/* Tells whether the database itself has a table or view of that name; temporary tables do not
 * count. */
enum ms_rc mstx__has_table(struct ms_store *s, const char *name, bool *has,
                           struct ms_err *err) MS_MUST_USE;

#endif
