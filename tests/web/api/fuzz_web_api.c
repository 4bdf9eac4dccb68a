/* SPDX-License-Identifier: MIT
 *
 * fuzz_web_api: the input is a question, "/api/table?q=x&sort=Max", asked of a small
 * comparison or a small trace.  Whatever is asked, the answer is JSON or a refusal
 * that says why.
 */
#include "web/api/api.h"
#include "web/api/tables.h"

#include "probe/base/io.h"
#include "probe/base/jread.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LEAF                                                                                       \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2],\"Max\":%d,\"Min\":1,"   \
    "\"Mean\":1,\"Norm\":1,\"requires_grad\":true}"
static const char DUMP[] =
    "{\"task\":\"statistics\",\"level\":\"mix\",\"framework\":\"pytorch\",\"dump_data_dir\":null,"
    "\"data\":{\"Torch.f.0.forward\":{\"input_args\":[],\"output\":[" LEAF "]},"
    "\"Module.m.M.forward.0\":{\"input_args\":[],\"output\":[" LEAF "]}}}";
static const char CONSTRUCT[] = "{\"Module.m.M.forward.0\":null,"
                                "\"Torch.f.0.forward\":\"Module.m.M.forward.0\"}";
static const char TRACE[] =
    "[{\"name\":\"step 0\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":100,\"dur\":10},"
    "{\"name\":\"work\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":101,\"dur\":4},"
    "{\"name\":\"step 1\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":110,\"dur\":20}]";

static char top[] = "/tmp/msprobe-fuzz-web-XXXXXX";
static struct viz_session session[2];
static struct viz_reader reader[2];
static struct web_tables *tables;

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", top, name);
    FILE *f = fopen(path, "w");
    require(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void put_dump(const char *side, int most)
{
    char path[256], name[64], text[2048];
    snprintf(path, sizeof path, "%s/%s", top, side);
    require(ms_mkdirs(path, NULL) == MS_OK);
    snprintf(text, sizeof text, DUMP, most, most);
    snprintf(name, sizeof name, "%s/dump.json", side);
    put(name, text);
    snprintf(name, sizeof name, "%s/construct.json", side);
    put(name, CONSTRUCT);
}

static void clean_up(void)
{
    static const char *const files[] = {"t/dump.json", "t/construct.json",
                                        "g/dump.json", "g/construct.json",
                                        "run.json",    "run.json.run.db",
                                        "run.db",      "t",
                                        "g",           ""};
    char path[256];
    for (int i = 0; i < 2; i++) {
        viz_reader_close(&reader[i]);
        viz_session_close(&session[i]);
    }
    web_tables_free(tables);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", top, files[i]);
        (void)remove(path);
    }
}

static void open_one(int i, const char *what, const char *golden)
{
    char path[256], other[256];
    snprintf(path, sizeof path, "%s/%s", top, what);
    snprintf(other, sizeof other, "%s/%s", top, golden);
    struct viz_conf conf = {.path = path, .golden = golden[0] != '\0' ? other : NULL};
    require(viz_session_open(&session[i], &conf, NULL) == MS_OK);
    require(viz_reader_open(&reader[i], &session[i], NULL) == MS_OK);
}

static void open_both(void)
{
    require(mkdtemp(top) != NULL);
    put_dump("t", 9);
    put_dump("g", 1);
    put("run.json", TRACE);
    tables = web_tables_new();
    require(tables != NULL);
    open_one(0, "t", "g");
    open_one(1, "run.json", "");
    atexit(clean_up);
}

static void must_be_json(const struct ms_jwrite *w)
{
    struct ms_jread r;
    enum ms_jtok tok;
    ms_jread_init(&r, w->buf.p, w->buf.n, 0);
    while ((tok = ms_jread_next(&r)) > MS_J_END)
        ;
    require(tok == MS_J_END);
}

static void ask(const struct web_route *route, const struct web_query *q, int i)
{
    struct ms_jwrite w;
    struct ms_buf bytes = {.max = WEB_REPLY_MAX};
    struct ms_err err = {0};
    ms_jwrite_init(&w, 0, WEB_REPLY_MAX);
    struct web_call call = {q, &session[i], &reader[i], tables, &w, &bytes, -1, -1};
    enum ms_rc rc = web_route_run(route, &call, &err);
    if (rc != MS_OK)
        require(err.msg[0] != '\0' && web_status_of(rc) >= 400);
    else if (!route->binary && ms_jwrite_finish(&w, &err) == MS_OK)
        must_be_json(&w);
    ms_jwrite_free(&w);
    ms_buf_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_str rest = {(const char *)data, (uint32_t)size}, path;
    struct web_query q;
    if (size == 0 || size > WEB_BODY_MAX)
        return 0;
    if (tables == NULL)
        open_both();
    ms_str_split(&rest, '?', &path);
    const struct web_route *route = web_route_find(path);
    /* What changes the file would make one run depend on another; statements have a guard of their own. */
    if (route == NULL || route->writes || ms_str_is(path, "/api/sql"))
        return 0;
    if (web_query_parse(&q, rest.p != NULL ? rest : MS_STR(""), NULL) != MS_OK)
        return 0;
    for (int i = 0; i < 2; i++)
        ask(route, &q, i);
    web_query_free(&q);
    return 0;
}
