/* SPDX-License-Identifier: MIT
 *
 * node_detail: what the terminal shows of one node: its figures, items, stack, partners.
 *
 * Items are stored as JSON in which every value is a text; what the words mean is
 * up to who compared, so they are shown as they are, those of both sides abreast.
 */
#ifndef VIZ_TUI_NODE_DETAIL_H
#define VIZ_TUI_NODE_DETAIL_H

#include "viz/tui/page.h"

#include "compare/graph/view/graph_view.h"

/* The figure that is worst among a node's items, as "800%" or "cos 0.98"; "" when there is none. */
enum { TUI_FIGURE_MAX = 16 };
void tui_node_figure(struct ms_str input, struct ms_str output, char figure[TUI_FIGURE_MAX]);

/* Letter and look of a node's state. */
char tui_state_letter(const struct graph_row *r);
enum tui_token tui_state_token(const struct graph_row *r);

/* All items of the target, and where the golden side has the same item its values beside them. */
enum ms_rc tui_node_items(struct tui_page *p, const struct graph_detail *target,
                          const struct graph_detail *golden, struct ms_err *err) MS_MUST_USE;
enum ms_rc tui_node_stack(struct tui_page *p, const struct graph_detail *d,
                          struct ms_err *err) MS_MUST_USE;
/* The communication partner on the next rank behind `from`, or before it, and round: so one goes
 * through all that took part.  MS_E_NOTFOUND; name lies in scratch. */
enum ms_rc tui_node_link(const struct graph_detail *d, int64_t from, bool back, int64_t *rank,
                         struct ms_str *name, struct ms_buf *scratch,
                         struct ms_err *err) MS_MUST_USE;

#endif
