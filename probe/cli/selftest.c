/* SPDX-License-Identifier: MIT
 *
 * selftest: checks of an installed copy on the user's machine. Each check takes no input and a few
 * milliseconds. A row in the table at the end adds a check.
 */
#include "probe/cli/cmds.h"

#include "probe/base/arena.h"
#include "probe/base/conf.h"
#include "probe/base/io.h"
#include "probe/base/jprint.h"
#include "probe/base/map.h"
#include "probe/base/num.h"
#include "probe/base/pool.h"
#include "probe/base/store.h"
#include "probe/base/trace.h"

struct ms_selftest {
    const char *name;
    enum ms_rc (*fn)(struct ms_err *err);
};

#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return ms_fail(err, MS_E_INTERNAL, "line %d: %s does not hold", __LINE__, #cond);      \
    } while (0)

/* ---- checks ----------------------------------------------------------- */

static enum ms_rc check_arena(struct ms_err *err)
{
    struct ms_arena *a = ms_arena_new(1 << 20);
    EXPECT(a != NULL);
    bool same = true;
    for (unsigned i = 0; i < 1000 && same; i++) {
        struct ms_str copy = ms_arena_str(a, ms_str_sub(MS_STR("0123456789"), 0, i % 11));
        same = copy.p != NULL && copy.n == i % 11 && copy.p[copy.n] == '\0';
    }
    bool limited = ms_arena_alloc(a, 2 << 20) == NULL;
    ms_arena_free(a);
    EXPECT(same);
    EXPECT(limited);
    return MS_OK;
}

static enum ms_rc check_map(struct ms_err *err)
{
    static char keys[5000][8];
    struct ms_map m = {0};
    bool ok = true;
    for (uint32_t i = 0; i < 5000 && ok; i++) {
        snprintf(keys[i], sizeof keys[i], "k%u", i);
        ok = ms_map_put(&m, ms_str_of(keys[i]), NULL) == i;
    }
    for (uint32_t i = 0; i < 5000 && ok; i++)
        ok = ms_map_get(&m, ms_str_of(keys[i])) == i;
    ms_map_free(&m);
    EXPECT(ok);
    return MS_OK;
}

static enum ms_rc check_numbers(struct ms_err *err)
{
    static const double values[] = {0.1, 1e22, 5e-324, 0x1p-24, 3.4028234663852886e+38, 1e16, -0.0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[MS_NUM_MAX];
        double back = 1;
        EXPECT(ms_num_parse_f64(text, ms_num_f64(text, values[i]), &back));
        EXPECT(memcmp(&back, &values[i], sizeof back) == 0);
    }
    return MS_OK;
}

static enum ms_rc add_one(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    (void)worker;
    (void)err;
    ((unsigned char *)ctx)[item]++;
    return MS_OK;
}

static enum ms_rc check_threads(struct ms_err *err)
{
    unsigned char seen[1000] = {0};
    struct ms_pool *pool;
    MS_TRY(ms_pool_new(&pool, 0, err));
    enum ms_rc rc = ms_pool_run(pool, sizeof seen, add_one, seen, err);
    ms_pool_free(pool);
    MS_TRY(rc);
    for (size_t i = 0; i < sizeof seen; i++)
        EXPECT(seen[i] == 1);
    return MS_OK;
}

static enum ms_rc check_json(struct ms_err *err)
{
    struct ms_conf *conf;
    const char *text = "";
    bool same = false;
    MS_TRY(ms_conf_parse(&conf, "sample", MS_STR("{\"a\": \"\\u00e9\", \"b\": [1]}"), err));
    enum ms_rc rc = ms_conf_str(ms_conf_root(conf), "a", &text, err);
    same = strcmp(text, "\xC3\xA9") == 0;
    ms_conf_close(conf);
    MS_TRY(rc);
    EXPECT(same);
    return MS_OK;
}

static enum ms_rc write_database(const char *path, struct ms_err *err)
{
    struct ms_store *s;
    MS_TRY(ms_store_create(&s, path, err));
    enum ms_rc rc = ms_store_exec(s, "CREATE TABLE t(x); INSERT INTO t VALUES(41), (1)", err);
    if (rc == MS_OK)
        return ms_store_commit(s, err);
    ms_store_close(s);
    return rc;
}

static enum ms_rc read_sum(struct ms_store *s, int64_t *sum, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(s, &st, "SELECT sum(x) FROM t", err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    *sum = rc == MS_OK && more ? ms_stmt_get_i64(st, 0) : -1;
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc write_and_read_database(const char *path, struct ms_err *err)
{
    struct ms_store *s;
    int64_t sum = 0;
    MS_TRY(write_database(path, err));
    MS_TRY(ms_store_open(&s, path, err));
    enum ms_rc rc = read_sum(s, &sum, err);
    ms_store_close(s);
    MS_TRY(rc);
    EXPECT(sum == 42);
    return MS_OK;
}

/* Checks SQLite with a temporary file, and thereby that temporary files can be written. */
static enum ms_rc check_database(struct ms_err *err)
{
    char *folder;
    MS_TRY(ms_tmp_folder(&folder, "selftest", err));
    char *path = ms_path_join(folder, "numbers.db");
    enum ms_rc rc = path != NULL ? write_and_read_database(path, err) : ms_no_memory(err);
    ms_free(path);
    ms_tmp_folder_remove(folder);
    return rc;
}

/* Checks that no two options of one command share a name, as one would hide the other. */
static enum ms_rc check_options(struct ms_err *err)
{
    for (const struct ms_cmd *const *c = cli_commands(); *c != NULL; c++) {
        for (const struct ms_opt *a = ms_opt_next(*c, NULL); a != NULL; a = ms_opt_next(*c, a)) {
            for (const struct ms_opt *b = ms_opt_next(*c, a); b != NULL; b = ms_opt_next(*c, b)) {
                bool letters =
                    a->letters != NULL && b->letters != NULL && strcmp(a->letters, b->letters) == 0;
                if (letters || strcmp(a->name, b->name) == 0)
                    return ms_fail(err, MS_E_INTERNAL, "%s: --%s and --%s collide", (*c)->name,
                                   a->name, b->name);
            }
        }
    }
    return MS_OK;
}

static const struct ms_selftest checks[] = {
    {"arena", check_arena},     {"map", check_map},
    {"numbers", check_numbers}, {"threads", check_threads},
    {"json", check_json},       {"database", check_database},
    {"options", check_options}, {0}};

/* ---- the command ------------------------------------------------------ */

/* w: JSON instead of a line; NULL: none. */
static bool run_check(const struct ms_selftest *check, struct ms_jwrite *w)
{
    struct ms_err err = {0};
    struct ms_span span = ms_span_begin(check->name);
    bool ok = check->fn(&err) == MS_OK;
    ms_span_end(&span);
    if (w != NULL) {
        ms_jwrite_obj(w);
        ms_jwrite_kstr(w, "name", check->name);
        ms_jwrite_kbool(w, "ok", ok);
        ms_jwrite_kstr(w, "why", err.msg);
        ms_jwrite_obj_end(w);
    } else if (ok) {
        printf("ok %s\n", check->name);
    } else {
        printf("not ok %s: %s\n", check->name, err.msg);
    }
    return ok;
}

static enum ms_rc run_as_json(bool *ok, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_key(&w, MS_STR("checks"));
    ms_jwrite_arr(&w);
    for (const struct ms_selftest *c = checks; c->name != NULL; c++)
        *ok = run_check(c, &w) && *ok;
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

struct selftest_args {
    int format;
};

static const struct ms_opt opts[] = {MS_OPT_FORMAT(struct selftest_args, format), {0}};

static int run_selftest(int argc, char **argv)
{
    struct selftest_args args = {0};
    struct ms_err err = {0};
    bool done, ok = true;
    if (ms_opt_parse(&cli_cmd_selftest, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&cli_cmd_selftest, &err);
    if (done)
        return MS_EXIT_OK;
    if (args.format == MS_FORMAT_JSON && run_as_json(&ok, &err) != MS_OK)
        return ms_cmd_fail(&cli_cmd_selftest, &err);
    for (const struct ms_selftest *c = checks; args.format == MS_FORMAT_TEXT && c->name != NULL;
         c++)
        ok = run_check(c, NULL) && ok;
    return ok ? MS_EXIT_OK : MS_EXIT_FAIL;
}

const struct ms_cmd cli_cmd_selftest = {
    .name = "selftest",
    .run = run_selftest,
    .brief = "check that this copy works on this machine",
    .opts = opts,
    .usage = "[options]",
    .about = "Runs small built-in checks of the parts that depend most on the machine and on the "
             "libraries found there, and prints a line for each. The exit status is 3 when one "
             "fails.\n"
             "\n"
             "  msprobe selftest && echo fine\n",
};
