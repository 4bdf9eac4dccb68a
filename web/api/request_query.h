/* SPDX-License-Identifier: MIT
 *
 * request_query: the parameters of a request, "from=1&to=2&node=a%2Fb", decoded and typed.
 *
 * No parameter names a file: values are numbers within bounds, names that are looked up, or search
 * terms. A statement, for api_sql only, is read-only.
 */
#ifndef WEB_API_REQUEST_QUERY_H
#define WEB_API_REQUEST_QUERY_H

#include "probe/base/str.h"

enum { WEB_QUERY_PAIRS = 32, WEB_QUERY_MAX = 32 << 10 };

struct web_query {
    struct {
        struct ms_str key, value;
    } pair[WEB_QUERY_PAIRS];
    unsigned n;
    struct ms_buf text; /* memory of the pairs */
};

/* Parses the text after '?'. Malformed or too long: MS_E_ARG or MS_E_LIMIT. */
enum ms_rc web_query_parse(struct web_query *q, struct ms_str text, struct ms_err *err) MS_MUST_USE;
void web_query_free(struct web_query *q);

/* Returns the value; "" with p NULL if absent. */
struct ms_str web_query_text(const struct web_query *q, const char *key);
/* Reads an integer within [min, max]; if absent, *out is unchanged. */
enum ms_rc web_query_int(const struct web_query *q, const char *key, int64_t min, int64_t max,
                         int64_t *out, struct ms_err *err) MS_MUST_USE;
/* Reads "1" or "0"; absent means false. */
enum ms_rc web_query_flag(const struct web_query *q, const char *key, bool *out,
                          struct ms_err *err) MS_MUST_USE;
/* Reads integers from 0 to max, separated by commas, at most `most` of them. */
enum ms_rc web_query_list(const struct web_query *q, const char *key, uint32_t max, size_t most,
                          uint32_t *out, size_t *n, struct ms_err *err) MS_MUST_USE;

#endif
