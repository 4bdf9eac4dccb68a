/* SPDX-License-Identifier: MIT
 *
 * request_query: decodes and checks the parameters of a request.
 */
#include "web/api/request_query.h"

#include "viz/model/place.h"

#include <inttypes.h>

static enum ms_rc decode(struct web_query *q, struct ms_str text, struct ms_str *out,
                         struct ms_err *err)
{
    size_t at = q->text.n;
    if (!viz_percent_decode(text, &q->text))
        return ms_fail(err, MS_E_ARG, "the request has a malformed %%XX");
    MS_TRY(ms_buf_check(&q->text, err));
    *out = (struct ms_str){q->text.p + at, (uint32_t)(q->text.n - at)};
    return MS_OK;
}

static enum ms_rc take_pairs(struct web_query *q, struct ms_str rest, struct ms_err *err)
{
    struct ms_str part;
    while (ms_str_split(&rest, '&', &part)) {
        struct ms_str value = part, key;
        if (part.n == 0)
            continue;
        if (q->n == WEB_QUERY_PAIRS)
            return ms_fail(err, MS_E_LIMIT, "the request has more than %d values", WEB_QUERY_PAIRS);
        ms_str_split(&value, '=', &key);
        MS_TRY(decode(q, key, &q->pair[q->n].key, err));
        MS_TRY(decode(q, value.p != NULL ? value : MS_STR(""), &q->pair[q->n].value, err));
        q->n++;
    }
    return MS_OK;
}

enum ms_rc web_query_parse(struct web_query *q, struct ms_str text, struct ms_err *err)
{
    q->n = 0;
    q->text = (struct ms_buf){.max = WEB_QUERY_MAX + 1};
    if (text.n > WEB_QUERY_MAX)
        return ms_fail(err, MS_E_LIMIT, "the request is longer than %d bytes", WEB_QUERY_MAX);
    /* Decoded text is never longer, so with this much room the buffer does not move. */
    if (ms_buf_room(&q->text, text.n + 1u) == NULL)
        return ms_buf_check(&q->text, err);
    enum ms_rc rc = take_pairs(q, text, err);
    if (rc != MS_OK)
        web_query_free(q);
    return rc;
}

void web_query_free(struct web_query *q)
{
    ms_buf_free(&q->text);
    q->n = 0;
}

struct ms_str web_query_text(const struct web_query *q, const char *key)
{
    for (unsigned i = 0; i < q->n; i++) {
        if (ms_str_is(q->pair[i].key, key))
            return q->pair[i].value;
    }
    return MS_STR_NONE;
}

enum ms_rc web_query_int(const struct web_query *q, const char *key, int64_t min, int64_t max,
                         int64_t *out, struct ms_err *err)
{
    struct ms_str s = web_query_text(q, key);
    int64_t v;
    if (s.p == NULL)
        return MS_OK;
    if (!ms_str_i64(s, &v) || v < min || v > max)
        return ms_fail(err, MS_E_ARG, "%s must be a whole number from %" PRId64 " to %" PRId64, key,
                       min, max);
    *out = v;
    return MS_OK;
}

enum ms_rc web_query_flag(const struct web_query *q, const char *key, bool *out, struct ms_err *err)
{
    int64_t v = 0;
    MS_TRY(web_query_int(q, key, 0, 1, &v, err));
    *out = v != 0;
    return MS_OK;
}

enum ms_rc web_query_list(const struct web_query *q, const char *key, uint32_t max, size_t most,
                          uint32_t *out, size_t *n, struct ms_err *err)
{
    struct ms_str rest = web_query_text(q, key), part;
    *n = 0;
    if (rest.n == 0)
        return MS_OK;
    while (ms_str_split(&rest, ',', &part)) {
        uint64_t v;
        if (!ms_str_u64(part, &v) || v > max)
            return ms_fail(err, MS_E_ARG,
                           "%s must be numbers from 0 to %" PRIu32 " with commas between them", key,
                           max);
        if (*n == most)
            return ms_fail(err, MS_E_LIMIT, "%s has more than %zu numbers", key, most);
        out[(*n)++] = (uint32_t)v;
    }
    return MS_OK;
}
