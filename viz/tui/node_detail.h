/* SPDX-License-Identifier: MIT
 *
 * node_detail: details of one node: figures, items, stack, partners.
 *
 * Items are stored as JSON in which every value is a text. The texts depend on the tool that
 * compared, so they are shown unchanged, target and golden side by side.
 */
#ifndef VIZ_TUI_NODE_DETAIL_H
#define VIZ_TUI_NODE_DETAIL_H

#include "viz/tui/app.h"

#include "compare/graph/view/graph_view.h"

/* Returns the worst figure among a node's items, as "800%" or "cos 0.98"; "" if there is none. */
enum { TUI_FIGURE_MAX = 16 };
void tui_node_figure(struct ms_str input, struct ms_str output, char figure[TUI_FIGURE_MAX]);

/* Letter and look of a node's state. */
char tui_state_letter(const struct graph_row *r);
enum tui_token tui_state_token(const struct graph_row *r);

/* Lists all items of the target, with the values of the same item of the golden side beside
 * them. */
enum ms_rc tui_node_items(struct tui_page *p, const struct graph_detail *target,
                          const struct graph_detail *golden, struct ms_err *err) MS_MUST_USE;
enum ms_rc tui_node_stack(struct tui_page *p, const struct graph_detail *d,
                          struct ms_err *err) MS_MUST_USE;
/* Finds the communication partner on the next rank after `from`, or before it, cyclically, so
 * that repeated calls visit all partners. MS_E_NOTFOUND; name is in scratch. */
enum ms_rc tui_node_link(const struct graph_detail *d, int64_t from, bool back, int64_t *rank,
                         struct ms_str *name, struct ms_buf *scratch,
                         struct ms_err *err) MS_MUST_USE;

#endif
