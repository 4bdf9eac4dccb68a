/* SPDX-License-Identifier: MIT
 *
 * addresses: the URLs that a server prints, with its token.
 */
#ifndef WEB_SERVE_ADDRESSES_H
#define WEB_SERVE_ADDRESSES_H

#include "web/serve/guard.h"

enum { WEB_LINKS = 8, WEB_LINK_MAX = 400 };

/* Writes the URLs that open the page, the best first; at least one. For a server bound to all
 * addresses ("0.0.0.0", "::"), which a remote browser cannot open, these are the addresses of
 * the machine's networks, that of the default route first. */
unsigned web_links(const struct web_guard *g, char link[WEB_LINKS][WEB_LINK_MAX]);

#endif
