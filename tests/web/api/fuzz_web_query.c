/* SPDX-License-Identifier: MIT
 *
 * fuzz_web_query: the input is the address of a request, "/api/node?name=x", and
 * behind a line feed the headers Host, Origin and token.  The router finds a route
 * only by its exact path, and what is decoded is never longer than what came.
 */
#include "web/api/api.h"
#include "web/serve/guard.h"
#include "web/serve/route.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_query(struct ms_str text)
{
    static const char *const keys[] = {"from", "tracks", "golden", "name", ""};
    struct web_query q;
    struct ms_err err = {0};
    uint32_t list[16];
    if (web_query_parse(&q, text, &err) != MS_OK) {
        require(err.msg[0] != '\0');
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t v = 3;
        size_t n;
        bool flag;
        if (web_query_int(&q, keys[i], -5, 1000, &v, &err) == MS_OK)
            require(v >= -5 && v <= 1000);
        (void)!web_query_flag(&q, keys[i], &flag, &err);
        if (web_query_list(&q, keys[i], 7, 16, list, &n, &err) == MS_OK) {
            require(n <= 16);
            while (n > 0)
                require(list[--n] <= 7);
        }
        require(web_query_text(&q, keys[i]).n <= text.n);
    }
    web_query_free(&q);
}

static void check_route(struct ms_str path)
{
    const struct web_route *r = web_route_find(path);
    const struct web_asset *a = web_asset_find(path);
    require(r == NULL || a == NULL);
    require(r == NULL || ms_str_is(path, r->path));
    require(a == NULL || ms_str_is(path, a->path));
}

/* Nothing but our own name, origin and token gets a change through. */
static void check_guard(struct ms_str rest)
{
    static const struct web_guard g = {8421, "127.0.0.1", true, "0123456789abcdef0123456789abcdef"};
    struct web_asked a = {.page = false};
    ms_str_split(&rest, '\n', &a.host);
    if (rest.p != NULL)
        ms_str_split(&rest, '\n', &a.origin);
    a.token = rest;
    if (web_guard_refuses(&g, &a) != NULL)
        return;
    require(ms_str_is(a.token, g.token) && ms_str_find_str(a.host, MS_STR("8421")) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_str rest = {(const char *)data, (uint32_t)size}, line, path;
    if (size == 0)
        return 0;
    ms_str_split(&rest, '\n', &line);
    ms_str_split(&line, '?', &path);
    check_route(path);
    if (line.p != NULL)
        check_query(line);
    if (rest.p != NULL)
        check_guard(rest);
    return 0;
}
