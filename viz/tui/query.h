/* SPDX-License-Identifier: MIT
 *
 * query: what ":sql" asks, and its answer as a page with columns of the width that they need.
 *
 * The question is asked in idle time, when the screen already says so; a key ends it.
 */
#ifndef VIZ_TUI_QUERY_H
#define VIZ_TUI_QUERY_H

#include "viz/tui/app.h"

/* Keeps the question for tui_query_run. */
enum ms_rc tui_query_ask(struct tui_app *a, const char *query, struct ms_err *err);
static inline bool tui_query_waits(const struct tui_app *a)
{
    return a->query[0] != '\0';
}
/* Asks the database of the screen and opens the page of the answer. */
enum ms_rc tui_query_run(struct tui_app *a, struct ms_err *err);

#endif
