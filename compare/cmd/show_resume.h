/* SPDX-License-Identifier: MIT
 *
 * show_resume: prints whether a resumed run is the continued one.
 */
#ifndef COMPARE_CMD_SHOW_RESUME_H
#define COMPARE_CMD_SHOW_RESUME_H

#include "compare/checkpoint/resume.h"

void resume_show_text(const struct resume_result *r, size_t most);
enum ms_rc resume_show_json(const struct resume_result *r, struct ms_err *err);

#endif
