/* SPDX-License-Identifier: MIT
 *
 * server: reads requests and sends replies.
 *
 * Every reply carries the same strict headers. A refused request is logged and costs little:
 * requests are short, connections time out, bodies are discarded.
 */
#define MS_LOG_DOMAIN "serve"
#include "web/serve/server.h"

#include "web/api/api.h"
#include "web/api/metrics.h"
#include "web/api/readers.h"
#include "web/api/tables.h"
#include "web/serve/answers.h"
#include "web/serve/limits.h"
#include "web/serve/route.h"

#include "probe/base/clock.h"
#include "probe/base/cpu.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <strings.h>
#include <sys/resource.h>

enum {
    THREADS_MIN = 4,
    THREADS_MAX = 16,
    CONNECTIONS_MAX = 4096,
    IDLE_SECONDS = 15,
    SLOW_SECONDS = 10, /* limit for a request to arrive, shorter than the idle limit */
    HEADER_MEMORY = 64 << 10,
    URI_MAX = WEB_QUERY_MAX + 1024,
    STATEMENTS_MAX = 4, /* concurrent ones; each process may use a core and 256 MiB */
};
static const size_t ANSWERS_BYTES = 64
                                    << 20; /* of one run's 10,000 ranks: cluster 5 MB, lanes 5 MB */

struct web_server {
    struct MHD_Daemon *daemon;
    struct web_guard guard;
    struct viz_session *session;
    struct web_readers *readers;
    struct web_tables *tables;
    struct web_metrics metrics;
    struct web_refusals refusals;
    struct web_visits *visits;
    struct web_slow *slow;
    struct web_answers *answers;
};

/* Answer to a request of the API. */
struct answer {
    const struct web_route *route;
    struct ms_buf bytes;
    struct ms_err err; /* failure; rc selects the status */
    int64_t took_ns;
};

/* A request while it is read, with its URI as received. Its connection is suspended while a slow
 * answer is computed. */
struct request {
    char *uri;
    bool too_long, started, waits;
    size_t body;
    struct web_server *server;
    struct MHD_Connection *connection;
    struct answer answer;
};

/* ---- replies --------------------------------------------------------------------- */

static const char *const fixed_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; worker-src 'self'; frame-src 'self'; frame-ancestors 'self'; base-uri "
     "'none'; "
     "form-action 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"X-Frame-Options", "SAMEORIGIN"},
};

static enum MHD_Result send_reply(struct MHD_Connection *c, unsigned status, struct MHD_Response *r,
                                  const char *type, const char *cache)
{
    if (r == NULL)
        return MHD_NO;
    for (size_t i = 0; i < sizeof fixed_headers / sizeof *fixed_headers; i++)
        MHD_add_response_header(r, fixed_headers[i][0], fixed_headers[i][1]);
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "Cache-Control", cache);
    enum MHD_Result rc = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return rc;
}

/* Sends a reply that may be sent to others too, and drops it afterwards. */
static enum MHD_Result send_shared(struct MHD_Connection *c, struct web_shared *b, const char *type)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer_with_free_callback(b->n, b->bytes, web_shared_drop_bytes);
    if (r == NULL)
        web_shared_drop(b);
    return send_reply(c, MHD_HTTP_OK, r, type, "no-store");
}

/* Sends the buffer and takes ownership of it. */
static enum MHD_Result send_buf(struct MHD_Connection *c, unsigned status, struct ms_buf *b,
                                const char *type)
{
    struct MHD_Response *r =
        b->n != 0 ? MHD_create_response_from_buffer_with_free_callback(b->n, b->p, ms_free)
                  : MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (r == NULL || b->n == 0)
        ms_buf_free(b);
    else
        *b = (struct ms_buf){.max = 1};
    return send_reply(c, status, r, type, "no-store");
}

static enum MHD_Result send_error(struct MHD_Connection *c, unsigned status, const char *text)
{
    struct ms_jwrite w;
    ms_jwrite_init(&w, 0, 1 << 16);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "error", text);
    ms_jwrite_obj_end(&w);
    if (ms_jwrite_finish(&w, NULL) != MS_OK)
        ms_buf_clear(&w.buf);
    struct ms_buf body = w.buf;
    w.buf = (struct ms_buf){.max = 1};
    ms_jwrite_free(&w);
    return send_buf(c, status, &body, "application/json");
}

static enum MHD_Result refuse(struct web_server *s, struct MHD_Connection *c, unsigned status,
                              const char *why, struct ms_str what)
{
    web_refusal(&s->refusals, why, what);
    return send_error(c, status, why);
}

/* ---- files of the page ------------------------------------------------------------ */

static struct ms_str header_of(struct MHD_Connection *c, const char *name)
{
    const char *v = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
    return v != NULL ? ms_str_of(v) : MS_STR_NONE;
}

static enum MHD_Result send_plain(struct MHD_Connection *c, const struct web_asset *a)
{
    struct ms_buf b = {.max = 16 << 20};
    struct ms_err err = {0};
    if (web_asset_inflate(a, &b, &err) != MS_OK) {
        ms_buf_free(&b);
        return send_error(c, MHD_HTTP_INTERNAL_SERVER_ERROR, err.msg);
    }
    return send_buf(c, MHD_HTTP_OK, &b, a->type);
}

static enum MHD_Result send_asset(struct MHD_Connection *c, const struct web_asset *a)
{
    struct ms_str known = header_of(c, MHD_HTTP_HEADER_IF_NONE_MATCH);
    bool is_known = known.n != 0 && ms_str_find_str(known, ms_str_of(a->etag)) >= 0;
    bool gzip = ms_str_find_str(header_of(c, MHD_HTTP_HEADER_ACCEPT_ENCODING), MS_STR("gzip")) >= 0;
    if (!is_known && !gzip)
        return send_plain(c, a);
    struct MHD_Response *r = MHD_create_response_from_buffer(
        is_known ? 0 : a->gz.n, (void *)(uintptr_t)a->gz.p, MHD_RESPMEM_PERSISTENT);
    if (r == NULL)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, a->etag);
    MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    if (!is_known)
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    return send_reply(c, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, r, a->type, "no-cache");
}

/* ---- requests of the API ------------------------------------------------------------ */

static int socket_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != NULL ? info->connect_fd : -1;
}

static enum ms_rc ask(struct web_server *s, const struct web_route *route, int client,
                      struct ms_str text, struct ms_jwrite *w, struct ms_buf *bytes,
                      struct ms_err *err)
{
    struct web_query query;
    struct viz_reader *reader;
    MS_TRY(web_query_parse(&query, text, err));
    enum ms_rc rc = web_readers_take(s->readers, &reader, err);
    if (rc == MS_OK) {
        struct web_call call = {&query, s->session, reader, s->tables,
                                w,      bytes,      client, web_slow_ends(s->slow)};
        if (reader->older != NULL && ms_str_is(web_query_text(&query, "side"), "old")) {
            call.session = s->session->older;
            call.reader = reader->older;
        }
        rc = web_route_run(route, &call, err);
        web_readers_give(s->readers, reader);
        if (route->writes) {
            web_tables_forget(s->tables);
            web_answers_forget(s->answers);
        }
    }
    if (rc == MS_OK && !route->binary)
        rc = ms_jwrite_finish(w, err);
    web_query_free(&query);
    return rc;
}

static void make_answer(struct web_server *s, const struct web_route *route, int client,
                        struct ms_str query, struct answer *a)
{
    struct ms_jwrite w;
    const int64_t start = ms_clock_ns();
    *a = (struct answer){.route = route, .bytes = {.max = WEB_REPLY_MAX}};
    ms_jwrite_init(&w, 0, WEB_REPLY_MAX);
    w.strict = true; /* a browser reads no Infinity */
    enum ms_rc rc = ask(s, route, client, query, &w, &a->bytes, &a->err);
    a->err.rc = rc;
    if (rc == MS_OK && !route->binary) {
        ms_buf_free(&a->bytes);
        a->bytes = w.buf;
        w.buf = (struct ms_buf){.max = 1};
    }
    ms_jwrite_free(&w);
    a->took_ns = ms_clock_ns() - start;
}

/* Sends the answer and takes ownership of its bytes. */
static enum MHD_Result send_answer(struct web_server *s, struct MHD_Connection *c, struct answer *a)
{
    const bool good = a->err.rc == MS_OK;
    const unsigned status = web_status_of(a->err.rc);
    const bool refused = status == MHD_HTTP_BAD_REQUEST || status == MHD_HTTP_CONTENT_TOO_LARGE;
    if (!refused)
        web_metrics_count(&s->metrics, good, a->took_ns, a->bytes.n);
    if (good)
        return send_buf(c, MHD_HTTP_OK, &a->bytes,
                        a->route->binary ? "application/octet-stream" : "application/json");
    ms_buf_free(&a->bytes);
    ms_debug(1, "%s: %s", a->route->path, a->err.msg);
    return refused ? refuse(s, c, status, a->err.msg, ms_str_of(a->route->path))
                   : send_error(c, status, a->err.msg);
}

/* Splits the URI into its path and the query after '?'. */
static struct ms_str split_uri(const struct request *q, struct ms_str *path)
{
    struct ms_str rest = ms_str_of(q->uri);
    ms_str_split(&rest, '?', path);
    return rest.p != NULL ? rest : MS_STR("");
}

static void *answer_slowly(void *arg)
{
    struct request *q = arg;
    struct web_slow *slow = q->server->slow;
    struct ms_str path;
    const struct ms_str query = split_uri(q, &path);
    make_answer(q->server, web_route_find(path), socket_of(q->connection), query, &q->answer);
    MHD_resume_connection(q->connection); /* from here on another thread owns the request */
    web_slow_done(slow);
    return NULL;
}

/* Starts a slow answer. This thread serves the connection, so the resume cannot come before the
 * suspend takes effect. */
static enum MHD_Result begin_slowly(struct web_server *s, struct MHD_Connection *c,
                                    struct request *q)
{
    struct ms_err err = {0};
    q->server = s;
    q->connection = c;
    q->waits = true;
    MHD_suspend_connection(c);
    if (web_slow_begin(s->slow, answer_slowly, q, &err) == MS_OK)
        return MHD_YES;
    struct ms_str path;
    (void)split_uri(q, &path);
    q->answer = (struct answer){.route = web_route_find(path), .err = err};
    MHD_resume_connection(c);
    return MHD_YES;
}

static enum MHD_Result send_metrics(struct web_server *s, struct MHD_Connection *c)
{
    struct ms_err err = {0};
    struct ms_buf b = {.max = WEB_REPLY_MAX};
    struct viz_reader *reader;
    enum ms_rc rc = web_readers_take(s->readers, &reader, &err);
    if (rc == MS_OK) {
        rc = web_metrics_write(&s->metrics, reader, &b, &err);
        web_readers_give(s->readers, reader);
    }
    if (rc == MS_OK)
        return send_buf(c, MHD_HTTP_OK, &b, "text/plain; version=0.0.4; charset=utf-8");
    ms_buf_free(&b);
    return send_error(c, web_status_of(rc), err.msg);
}

/* ---- requests ----------------------------------------------------------------------- */

/* Answers from the kept replies, or keeps the reply when it is known. */
static enum MHD_Result answer_kept(struct web_server *s, struct MHD_Connection *c,
                                   const struct web_route *route, struct ms_str question,
                                   struct ms_str query)
{
    struct answer a = {0};
    uint64_t asked;
    const uint64_t state = web_readers_state(s->readers);
    struct web_shared *reply = web_answers_find(s->answers, question, state, &asked);
    if (reply == NULL) {
        make_answer(s, route, -1, query, &a);
        if (a.err.rc != MS_OK)
            return send_answer(s, c, &a);
        reply = web_answers_keep(s->answers, question, state, asked, ms_buf_slice(&a.bytes));
        if (reply == NULL)
            return send_answer(s, c, &a);
        ms_buf_free(&a.bytes);
    }
    web_metrics_count(&s->metrics, true, a.took_ns, reply->n);
    return send_shared(c, reply, "application/json");
}

static enum MHD_Result dispatch(struct web_server *s, struct MHD_Connection *c, bool is_post,
                                struct request *q, struct ms_str path, struct ms_str query)
{
    struct answer a;
    const struct web_asset *asset = is_post ? NULL : web_asset_find(path);
    const struct web_route *route = web_route_find(path);
    if (asset != NULL)
        return send_asset(c, asset);
    if (!is_post && ms_str_is(path, "/metrics"))
        return send_metrics(s, c);
    if (route == NULL)
        return refuse(s, c, MHD_HTTP_NOT_FOUND, "there is no such page", path);
    if (route->writes != is_post)
        return refuse(s, c, MHD_HTTP_METHOD_NOT_ALLOWED,
                      route->writes ? "this needs POST" : "this needs GET", path);
    if (ms_str_is(path, "/api/about"))
        web_readers_refresh(s->readers);
    if (route->slow)
        return begin_slowly(s, c, q);
    if (route->kept)
        return answer_kept(s, c, route, ms_str_of(q->uri), query);
    make_answer(s, route, -1, query, &a);
    return send_answer(s, c, &a);
}

struct header_count {
    const char *name;
    unsigned n;
    bool is_odd; /* others may read the header in another way */
};

/* A space stands in the name, which others may take for the name without; or the line is folded: of
 * "Origin: x", newline, " y", libmicrohttpd makes the header "Originy" with the value x. */
static bool is_name_odd(const char *name, const char *judged)
{
    const size_t n = strlen(judged);
    return strpbrk(name, " \t") != NULL || (strncasecmp(name, judged, n) == 0 && name[n] != '\0');
}

/* The only coding of a body that libmicrohttpd knows; it reads any other to the end of the connection. */
static bool is_coding_odd(const char *name, const char *value)
{
    return strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0 &&
           (value == NULL || strcasecmp(value, "chunked") != 0);
}

static enum MHD_Result count_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    struct header_count *h = ctx;
    (void)kind;
    h->n += strcasecmp(name, h->name) == 0;
    h->is_odd |= is_name_odd(name, h->name) || is_coding_odd(name, value);
    return MHD_YES;
}

static struct header_count count_of(struct MHD_Connection *c, const char *name)
{
    struct header_count h = {.name = name};
    MHD_get_connection_values(c, MHD_HEADER_KIND, count_header, &h);
    return h;
}

/* Tells whether a proxy in between may have read the request in another way: a header by which
 * requests are refused occurs twice, of which only the first is looked at, or the length of the body
 * is given in two ways, so that a part of the body is another request to one of the two. */
static bool is_ambiguous(struct MHD_Connection *c)
{
    static const char *const names[] = {MHD_HTTP_HEADER_HOST,
                                        "Origin",
                                        "Sec-Fetch-Site",
                                        "Sec-Fetch-Mode",
                                        "X-Msprobe-Token",
                                        MHD_HTTP_HEADER_AUTHORIZATION,
                                        MHD_HTTP_HEADER_CONTENT_LENGTH,
                                        MHD_HTTP_HEADER_TRANSFER_ENCODING};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct header_count h = count_of(c, names[i]);
        if (h.n > 1 || h.is_odd)
            return true;
    }
    return count_of(c, MHD_HTTP_HEADER_CONTENT_LENGTH).n != 0 &&
           count_of(c, MHD_HTTP_HEADER_TRANSFER_ENCODING).n != 0;
}

/* Refuses an ambiguous request. What follows on its connection may be a part of it. */
static enum MHD_Result refuse_ambiguous(struct web_server *s, struct MHD_Connection *c)
{
#define WHY                                                                                        \
    "a header is given twice or on two lines, or the length of the body can be read in two ways"
    static const char body[] = "{\"error\": \"" WHY "\"}";
    struct MHD_Response *r = MHD_create_response_from_buffer(
        sizeof body - 1, (void *)(uintptr_t)body, MHD_RESPMEM_PERSISTENT);
    web_refusal(&s->refusals, WHY, MS_STR_NONE);
#undef WHY
    if (r != NULL)
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    return send_reply(c, MHD_HTTP_BAD_REQUEST, r, "application/json", "no-store");
}

/* Returns the token: from a header of the page's requests, from Authorization, as monitoring
 * programs send it, or from the URI. Not from a cookie: browsers send cookies to every port of a
 * host, also to servers of other users. */
static struct ms_str token_of(struct MHD_Connection *c, struct ms_str query)
{
    const struct ms_str bearer = MS_STR("Bearer ");
    struct ms_str token = header_of(c, "X-Msprobe-Token"), rest = query, part;
    const struct ms_str given = header_of(c, MHD_HTTP_HEADER_AUTHORIZATION);
    if (token.p == NULL && ms_str_starts(given, bearer))
        token = ms_str_sub(given, bearer.n, given.n);
    while (token.p == NULL && rest.p != NULL && ms_str_split(&rest, '&', &part)) {
        if (ms_str_starts(part, MS_STR("token=")))
            token = ms_str_sub(part, (uint32_t)strlen("token="), part.n);
    }
    return token;
}

static enum MHD_Result serve(struct web_server *s, struct MHD_Connection *c, const char *method,
                             struct request *q)
{
    bool is_post = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    struct ms_str path;
    const struct ms_str query = split_uri(q, &path);
    struct web_asked asked = {.host = header_of(c, MHD_HTTP_HEADER_HOST),
                              .origin = header_of(c, "Origin"),
                              .site = header_of(c, "Sec-Fetch-Site"),
                              .mode = header_of(c, "Sec-Fetch-Mode"),
                              .token = token_of(c, query),
                              .page = !is_post && web_asset_find(path) != NULL};
    const char *why = web_guard_refuses(&s->guard, &asked);
    if (why != NULL)
        return refuse(s, c, MHD_HTTP_FORBIDDEN, why, MS_STR_NONE);
    return dispatch(s, c, is_post, q, path, query);
}

static struct web_visit *visit_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void on_connection(void *ctx, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct web_server *s = ctx;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        web_visits_go(s->visits, *context);
    else if (info != NULL)
        *context = web_visits_come(s->visits, info->connect_fd);
}

static void on_end(void *ctx, unsigned n, const char *why)
{
    struct web_server *s = ctx;
    char times[24];
    snprintf(times, sizeof times, "%u", n);
    web_refusal(&s->refusals, why, ms_str_of(times));
}

static bool announces_too_much(struct MHD_Connection *c)
{
    uint64_t n;
    struct ms_str length = header_of(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return length.p != NULL && (!ms_str_u64(length, &n) || n > WEB_BODY_MAX);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    struct web_server *s = ctx;
    struct request *q = *state;
    (void)url;
    (void)version;
    (void)upload;
    if (q == NULL || q->uri == NULL)
        return q != NULL && q->too_long
                   ? refuse(s, c, MHD_HTTP_URI_TOO_LONG, "the address is too long", MS_STR_NONE)
                   : MHD_NO;
    bool known =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    if (!known)
        return refuse(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and POST are answered",
                      ms_str_of(method));
    if (q->waits) /* resumed with the answer */
        return send_answer(s, c, &q->answer);
    if (!q->started) { /* headers only; a body may follow */
        q->started = true;
        if (is_ambiguous(c))
            return refuse_ambiguous(s, c);
        return announces_too_much(c)
                   ? refuse(s, c, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long", MS_STR_NONE)
                   : MHD_YES;
    }
    q->body += *upload_size;
    if (q->body > WEB_BODY_MAX) { /* no reply fits within a body: close */
        web_refusal(&s->refusals, "the body is too long", MS_STR_NONE);
        return MHD_NO;
    }
    if (*upload_size != 0) { /* parameters are in the URI: the body is ignored */
        *upload_size = 0;
        return MHD_YES;
    }
    web_visit_answers(s->visits, visit_of(c), true);
    return serve(s, c, method, q);
}

static void *on_uri(void *ctx, const char *uri, struct MHD_Connection *c)
{
    (void)ctx;
    (void)c;
    struct request *q = ms_calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    q->too_long = strlen(uri) > URI_MAX;
    if (!q->too_long)
        q->uri = ms_str_dup(ms_str_of(uri));
    return q;
}

static void on_done(void *ctx, struct MHD_Connection *c, void **state,
                    enum MHD_RequestTerminationCode why)
{
    struct web_server *s = ctx;
    struct request *q = *state;
    (void)why;
    web_visit_answers(s->visits, visit_of(c), false);
    if (q != NULL) {
        ms_free(q->uri);
        ms_buf_free(&q->answer.bytes);
    }
    ms_free(q);
    *state = NULL;
}

/* Handles a message of the HTTP library: a client that disconnects is ignored; too many clients
 * and invalid requests count as refusals. */
static MS_PRINTF(2, 0) void on_log(void *ctx, const char *fmt, va_list ap)
{
    static const char *const refusals[] = {"limit", "Error processing request", "Content-Length"};
    struct web_server *s = ctx;
    char line[512];
    vsnprintf(line, sizeof line, fmt, ap);
    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (strstr(line, refusals[i]) != NULL) {
            web_refusal(&s->refusals, line, MS_STR_NONE);
            return;
        }
    }
    ms_debug(1, "%s", line);
}

/* ---- starting ----------------------------------------------------------------------- */

static enum ms_rc address_of(const char *host, uint16_t port, struct addrinfo **ai,
                             struct ms_err *err)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    char number[8];
    snprintf(number, sizeof number, "%u", port);
    int rc = getaddrinfo(host, number, &hints, ai);
    return rc == 0 ? MS_OK : ms_fail(err, MS_E_ARG, "%s: %s", host, gai_strerror(rc));
}

static unsigned thread_count(void)
{
    unsigned n = ms_cpu_count();
    return n < THREADS_MIN ? THREADS_MIN : n > THREADS_MAX ? THREADS_MAX : n;
}

/* Returns the limit of connections: half of the descriptors, as files and databases need some
 * too. Raises the soft limit if possible. */
static unsigned connection_count(void)
{
    struct rlimit files;
    unsigned n = CONNECTIONS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 2 * CONNECTIONS_MAX) {
        files.rlim_cur =
            files.rlim_max < 2 * CONNECTIONS_MAX ? files.rlim_max : 2 * CONNECTIONS_MAX;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 2 < n)
        n = (unsigned)(files.rlim_cur / 2);
    return n;
}

static enum ms_rc watch_visits(struct web_server *s, struct ms_err *err)
{
    struct web_visits_conf conf = {.seconds = SLOW_SECONDS,
                                   .idle_seconds = IDLE_SECONDS,
                                   .many = connection_count() / 2,
                                   .on_end = on_end,
                                   .ctx = s};
    return web_visits_new(&s->visits, &conf, err);
}

static enum ms_rc listen_on(struct web_server *s, const struct addrinfo *ai, struct ms_err *err)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                     (ai->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    s->daemon = MHD_start_daemon(
        flags, s->guard.port, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, ai->ai_addr,
        MHD_OPTION_EXTERNAL_LOGGER, on_log, s, MHD_OPTION_URI_LOG_CALLBACK, on_uri, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_done, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_THREAD_POOL_SIZE, thread_count(), MHD_OPTION_CONNECTION_LIMIT,
        connection_count(), MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_MEMORY,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (s->daemon == NULL)
        return ms_fail_sys(err, "cannot listen on port %u of %s", s->guard.port, s->guard.host);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (info != NULL && info->port != 0)
        s->guard.port = info->port;
    return MS_OK;
}

enum ms_rc web_server_start(struct web_server **out, const struct web_server_conf *conf,
                            struct ms_err *err)
{
    struct web_server *s = ms_calloc(1, sizeof *s);
    struct addrinfo *ai = NULL;
    *out = NULL;
    if (s == NULL)
        return ms_no_memory(err);
    s->session = conf->session;
    s->guard.port = conf->port;
    s->guard.only_this_machine = web_is_loopback(conf->host);
    snprintf(s->guard.host, sizeof s->guard.host, "%s", conf->host);
    web_metrics_init(&s->metrics);
    s->refusals.metrics = &s->metrics;
    enum ms_rc rc = MS_OK;
    if (conf->token != NULL)
        snprintf(s->guard.token, sizeof s->guard.token, "%s", conf->token);
    else
        rc = web_guard_token(&s->guard, err);
    if (rc == MS_OK)
        rc = watch_visits(s, err);
    if (rc == MS_OK)
        rc = web_slow_new(&s->slow, STATEMENTS_MAX, err);
    if (rc == MS_OK)
        rc = web_readers_new(&s->readers, conf->session, err);
    if (rc == MS_OK)
        rc = web_answers_new(&s->answers, ANSWERS_BYTES, err);
    s->tables = web_tables_new();
    if (rc == MS_OK && s->tables == NULL)
        rc = ms_no_memory(err);
    if (rc == MS_OK)
        rc = address_of(conf->host, conf->port, &ai, err);
    if (rc == MS_OK)
        rc = listen_on(s, ai, err);
    if (ai != NULL)
        freeaddrinfo(ai);
    if (rc == MS_OK)
        *out = s;
    else
        web_server_stop(s);
    return rc;
}

void web_server_stop(struct web_server *s)
{
    if (s == NULL)
        return;
    if (s->slow != NULL) /* the library waits for suspended connections */
        web_slow_end(s->slow);
    if (s->daemon != NULL)
        MHD_stop_daemon(s->daemon);
    web_slow_free(s->slow);
    web_answers_free(s->answers);
    web_visits_free(s->visits);
    web_readers_free(s->readers);
    web_tables_free(s->tables);
    ms_free(s);
}

const struct web_guard *web_server_guard(const struct web_server *s)
{
    return &s->guard;
}
