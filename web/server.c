/* SPDX-License-Identifier: MIT
 *
 * server: requests in, replies out.
 *
 * Every reply carries the same strict headers.  What is refused is logged and
 * costs little: requests are short, connections time out, bodies are not read.
 */
#define MS_LOG_DOMAIN "serve"
#include "web/server.h"

#include "web/api.h"
#include "web/asset.h"
#include "web/metrics.h"
#include "web/readers.h"
#include "web/tables.h"

#include "probe/base/clock.h"
#include "probe/base/cpu.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>

enum {
    THREADS_MIN = 4,
    THREADS_MAX = 16,
    CONNECTIONS_MAX = 4096,
    IDLE_SECONDS = 15,
    HEADER_MEMORY = 64 << 10,
    WARNINGS_A_SECOND = 5,
    URI_MAX = WEB_QUERY_MAX + 1024,
};

struct web_server {
    struct MHD_Daemon *daemon;
    struct web_guard guard;
    struct viz_session *session;
    struct web_readers *readers;
    struct web_tables *tables;
    struct web_metrics metrics;
    _Atomic int64_t warned_second;
    _Atomic unsigned warned; /* in that second */
};

/* A request while it is read: its address as it came. */
struct request {
    char *uri;
    bool too_long, started;
    size_t body;
};

/* ---- replies --------------------------------------------------------------------- */

static const char *const fixed_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
     "form-action 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"X-Frame-Options", "DENY"},
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

/* Takes the buffer over. */
static enum MHD_Result send_buf(struct MHD_Connection *c, unsigned status, struct ms_buf *b,
                                const char *type)
{
    struct MHD_Response *r =
        b->n != 0 ? MHD_create_response_from_buffer_with_free_callback(b->n, b->p, ms_free)
                  : MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (r == NULL || b->n == 0)
        ms_buf_free(b);
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

/* ---- files of the page ------------------------------------------------------------ */

static struct ms_str header(struct MHD_Connection *c, const char *name)
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
    struct ms_str known = header(c, MHD_HTTP_HEADER_IF_NONE_MATCH);
    bool is_known = known.n != 0 && ms_str_find_str(known, ms_str_of(a->etag)) >= 0;
    bool gzip = ms_str_find_str(header(c, MHD_HTTP_HEADER_ACCEPT_ENCODING), MS_STR("gzip")) >= 0;
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

/* ---- questions -------------------------------------------------------------------- */

static enum ms_rc answer(struct web_server *s, const struct web_route *route, struct ms_str text,
                         struct ms_jwrite *w, struct ms_buf *bytes, struct ms_err *err)
{
    struct web_query query;
    struct viz_reader *reader;
    MS_TRY(web_query_parse(&query, text, err));
    enum ms_rc rc = web_readers_take(s->readers, &reader, err);
    if (rc == MS_OK) {
        struct web_call call = {&query, s->session, reader, s->tables, w, bytes};
        rc = web_route_run(route, &call, err);
        web_readers_give(s->readers, reader);
        if (route->writes)
            web_tables_forget(s->tables);
    }
    if (rc == MS_OK && !route->binary)
        rc = ms_jwrite_finish(w, err);
    web_query_free(&query);
    return rc;
}

static enum MHD_Result send_answer(struct web_server *s, struct MHD_Connection *c,
                                   const struct web_route *route, struct ms_str query)
{
    struct ms_err err = {0};
    struct ms_buf bytes = {.max = WEB_REPLY_MAX};
    struct ms_jwrite w;
    int64_t start = ms_clock_ns();
    ms_jwrite_init(&w, 0, WEB_REPLY_MAX);
    enum ms_rc rc = answer(s, route, query, &w, &bytes, &err);
    if (rc == MS_OK && !route->binary) {
        ms_buf_free(&bytes);
        bytes = w.buf;
        w.buf = (struct ms_buf){.max = 1};
    }
    ms_jwrite_free(&w);
    web_metrics_count(&s->metrics, rc == MS_OK, ms_clock_ns() - start, bytes.n);
    if (rc == MS_OK)
        return send_buf(c, MHD_HTTP_OK, &bytes,
                        route->binary ? "application/octet-stream" : "application/json");
    ms_buf_free(&bytes);
    ms_debug(1, "%s: %s", route->path, err.msg);
    return send_error(c, web_status_of(rc), err.msg);
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

static enum MHD_Result dispatch(struct web_server *s, struct MHD_Connection *c, bool is_post,
                                struct ms_str path, struct ms_str query)
{
    const struct web_asset *asset = is_post ? NULL : web_asset_find(path);
    const struct web_route *route = web_route_find(path);
    if (asset != NULL)
        return send_asset(c, asset);
    if (!is_post && ms_str_is(path, "/metrics"))
        return send_metrics(s, c);
    if (route == NULL)
        return send_error(c, MHD_HTTP_NOT_FOUND, "there is no such page");
    if (route->writes != is_post)
        return send_error(c, MHD_HTTP_METHOD_NOT_ALLOWED,
                          route->writes ? "this needs POST" : "this needs GET");
    if (ms_str_is(path, "/api/about"))
        web_readers_refresh(s->readers);
    return send_answer(s, c, route, query);
}

/* A flood of refusals must not fill the disk: some of each second are written, the rest is counted. */
static void warn_some(struct web_server *s, const char *why)
{
    int64_t second = ms_clock_ns() / 1000000000;
    if (atomic_exchange(&s->warned_second, second) != second) {
        unsigned left = atomic_exchange(&s->warned, 0);
        if (left > WARNINGS_A_SECOND)
            ms_warn("%u more like these", left - WARNINGS_A_SECOND);
    }
    if (atomic_fetch_add(&s->warned, 1) < WARNINGS_A_SECOND)
        ms_warn("%s", why);
}

static enum MHD_Result refuse(struct web_server *s, struct MHD_Connection *c, unsigned status,
                              const char *why)
{
    char line[160];
    snprintf(line, sizeof line, "refused: %s", why);
    warn_some(s, line);
    web_metrics_refused(&s->metrics);
    return send_error(c, status, why);
}

/* The token is in a header of the page's requests, or in an address that was printed. */
static struct ms_str token_of(struct MHD_Connection *c, struct ms_str query)
{
    struct ms_str token = header(c, "X-Msprobe-Token"), rest = query, part;
    while (token.p == NULL && rest.p != NULL && ms_str_split(&rest, '&', &part)) {
        if (ms_str_starts(part, MS_STR("token=")))
            token = ms_str_sub(part, (uint32_t)strlen("token="), part.n);
    }
    return token;
}

static enum MHD_Result serve(struct web_server *s, struct MHD_Connection *c, const char *method,
                             const struct request *q)
{
    bool is_post = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    struct ms_str rest = ms_str_of(q->uri), path;
    ms_str_split(&rest, '?', &path);
    struct ms_str query = rest.p != NULL ? rest : MS_STR("");
    struct web_asked asked = {.host = header(c, MHD_HTTP_HEADER_HOST),
                              .origin = header(c, "Origin"),
                              .token = token_of(c, query),
                              .writes = is_post,
                              .page = !is_post && web_asset_find(path) != NULL};
    const char *why = web_guard_refuses(&s->guard, &asked);
    if (why != NULL)
        return refuse(s, c, MHD_HTTP_FORBIDDEN, why);
    return dispatch(s, c, is_post, path, query);
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
                   ? refuse(s, c, MHD_HTTP_URI_TOO_LONG, "the address is too long")
                   : MHD_NO;
    bool known =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    if (!known)
        return refuse(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and POST are answered");
    if (!q->started) { /* the headers are here, a body may follow */
        q->started = true;
        return MHD_YES;
    }
    q->body += *upload_size;
    if (q->body > WEB_BODY_MAX)
        return MHD_NO;
    if (*upload_size != 0) { /* values are in the address: a body says nothing to us */
        *upload_size = 0;
        return MHD_YES;
    }
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
    struct request *q = *state;
    (void)ctx;
    (void)c;
    (void)why;
    if (q != NULL)
        ms_free(q->uri);
    ms_free(q);
    *state = NULL;
}

/* What the HTTP library says: clients that go away are nothing, too many of them are. */
static MS_PRINTF(2, 0) void on_log(void *ctx, const char *fmt, va_list ap)
{
    char line[512];
    vsnprintf(line, sizeof line, fmt, ap);
    line[strcspn(line, "\n")] = '\0';
    if (strstr(line, "limit") != NULL)
        warn_some(ctx, line);
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

static unsigned threads(void)
{
    unsigned n = ms_cpu_count();
    return n < THREADS_MIN ? THREADS_MIN : n > THREADS_MAX ? THREADS_MAX : n;
}

/* Files and databases need descriptors as well. */
static unsigned connections(void)
{
    struct rlimit files;
    unsigned n = CONNECTIONS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 2 < n)
        n = (unsigned)(files.rlim_cur / 2);
    return n;
}

static enum ms_rc listen_on(struct web_server *s, const struct addrinfo *ai, struct ms_err *err)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG |
                     (ai->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    s->daemon = MHD_start_daemon(
        flags, s->guard.port, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, ai->ai_addr,
        MHD_OPTION_EXTERNAL_LOGGER, on_log, s, MHD_OPTION_URI_LOG_CALLBACK, on_uri, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_done, NULL, MHD_OPTION_THREAD_POOL_SIZE, threads(),
        MHD_OPTION_CONNECTION_LIMIT, connections(), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_MEMORY,
        MHD_OPTION_END);
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
    enum ms_rc rc = web_guard_token(&s->guard, err);
    if (rc == MS_OK)
        rc = web_readers_new(&s->readers, conf->session, err);
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
    if (s->daemon != NULL)
        MHD_stop_daemon(s->daemon);
    web_readers_free(s->readers);
    web_tables_free(s->tables);
    ms_free(s);
}

const struct web_guard *web_server_guard(const struct web_server *s)
{
    return &s->guard;
}
