/* SPDX-License-Identifier: MIT
 *
 * json_text: JSON strings appended to a buffer, and strings read out of JSON objects.
 */
#ifndef COMPARE_GRAPH_BUILD_JSON_TEXT_H
#define COMPARE_GRAPH_BUILD_JSON_TEXT_H

#include "probe/base/str.h"

/* Appends s as a JSON string, quotes included. */
void graph__put_json(struct ms_buf *out, struct ms_str s);
/* Appends s as the inside of a JSON string, without the quotes around it. */
void graph__put_json_inside(struct ms_buf *out, struct ms_str s);
/* Returns a string or number member of a JSON object as written; empty when there is no such
 * member. */
struct ms_str graph__json_member(struct ms_str json, const char *key);

#endif
