/* SPDX-License-Identifier: MIT
 *
 * addresses: the addresses that a server prints, with its token.
 */
#ifndef WEB_SERVE_ADDRESSES_H
#define WEB_SERVE_ADDRESSES_H

#include "web/serve/guard.h"

enum { WEB_LINKS = 8, WEB_LINK_MAX = 400 };

/* Addresses that open the page, the best first; at least one.  Bound to every address of the machine
 * ("0.0.0.0", "::"), which no browser can open from elsewhere, they are the addresses of its networks,
 * that of the default route first. */
unsigned web_links(const struct web_guard *g, char link[WEB_LINKS][WEB_LINK_MAX]);

#endif
