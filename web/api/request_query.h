/* SPDX-License-Identifier: MIT
 *
 * request_query: the values of a request, "from=1&to=2&node=a%2Fb", decoded and typed.
 *
 * Nothing in a request names a file: values are numbers within bounds, names that
 * are looked up, or search terms.  A statement, of api_sql alone, may only look.
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
    struct ms_buf text; /* what the pairs point into */
};

/* Take apart what stands behind the '?'.  Malformed or too much: MS_E_ARG or MS_E_LIMIT. */
enum ms_rc web_query_parse(struct web_query *q, struct ms_str text, struct ms_err *err) MS_MUST_USE;
void web_query_free(struct web_query *q);

/* The value, "" when it is not given; p is NULL then. */
struct ms_str web_query_text(const struct web_query *q, const char *key);
/* A whole number within [min, max]; absent leaves *out alone. */
enum ms_rc web_query_int(const struct web_query *q, const char *key, int64_t min, int64_t max,
                         int64_t *out, struct ms_err *err) MS_MUST_USE;
/* "1" or "0"; absent is false. */
enum ms_rc web_query_flag(const struct web_query *q, const char *key, bool *out,
                          struct ms_err *err) MS_MUST_USE;
/* Whole numbers from 0 to max, separated by commas, at most `most`; returns them in out. */
enum ms_rc web_query_list(const struct web_query *q, const char *key, uint32_t max, size_t most,
                          uint32_t *out, size_t *n, struct ms_err *err) MS_MUST_USE;

#endif
