/* SPDX-License-Identifier: MIT
 *
 * pytext: JSON values as Python prints them.
 */
#ifndef COMPARE_READ_PYTEXT_H
#define COMPARE_READ_PYTEXT_H

#include "probe/base/str.h"

/* Appends str() of a JSON value; scratch holds unescaped text meanwhile. */
void cmp__py_str(struct ms_buf *out, struct ms_str json, struct ms_buf *scratch);
/* Appends repr() of a text. */
void cmp__py_repr_text(struct ms_buf *out, struct ms_str text);

#endif
