/* SPDX-License-Identifier: MIT */
#include "probe/base/conf.h"

#include "probe/base/log.h"
#include "probe/base/mem.h"

#include "tests/support/check.h"

#include <fcntl.h>

static struct ms_err err;
static struct ms_conf *conf;
static size_t live_before;

static void set_up(void)
{
    ms_err_clear(&err);
    conf = NULL;
    live_before = ms_mem_live();
}

static void tear_down(void)
{
    ms_conf_close(conf);
    ck_assert_uint_eq(ms_mem_live(), live_before);
}

static enum ms_rc parse(const char *text)
{
    ms_conf_close(conf);
    return ms_conf_parse(&conf, "config.json", ms_str_of(text), &err);
}

static const char sample[] =
    "{\"task\": \"statistics\", \"rank\": [0, 1, \"2-4\", 1.5, 9007199254740994], \"on\": true,"
    " \"off\": false, \"none\": null}";

START_TEST(values_are_found_by_key_and_type)
{
    const char *task = NULL;
    bool on = false;
    bool off = true;
    ck_ok(parse(sample), err);
    const struct ms_conf_value *root = ms_conf_root(conf);
    ck_ok(ms_conf_str(root, "task", &task, &err), err);
    ck_assert_str_eq(task, "statistics");
    ck_ok(ms_conf_bool(root, "on", &on, &err), err);
    ck_ok(ms_conf_bool(root, "off", &off, &err), err);
    ck_assert(on && !off);
}
END_TEST

START_TEST(what_is_absent_or_null_leaves_the_default)
{
    static const char *const keys[] = {"missing", "none"};
    const char *text = "default";
    bool flag = true;
    const struct ms_conf_value *value;
    ck_ok(parse(sample), err);
    const struct ms_conf_value *root = ms_conf_root(conf);
    ck_ok(ms_conf_str(root, keys[_i], &text, &err), err);
    ck_ok(ms_conf_bool(root, keys[_i], &flag, &err), err);
    ck_assert(flag);
    ck_assert_str_eq(text, "default");
    ck_ok(ms_conf_object(root, keys[_i], &value, &err), err);
    ck_assert_ptr_null(value);
    ck_ok(ms_conf_list(root, keys[_i], &value, &err), err);
    ck_assert_ptr_null(value);
}
END_TEST

START_TEST(an_object_gives_its_members_in_the_order_of_the_file)
{
    const struct ms_conf_value *names;
    const char *text = NULL;
    ck_ok(parse("{\"names\": {\"b\": \"one\", \"a\": 2}, \"empty\": {}}"), err);
    ck_ok(ms_conf_object(ms_conf_root(conf), "names", &names, &err), err);
    ck_assert_uint_eq(ms_conf_len(names), 2);
    ck_assert_str_eq(ms_conf_key(names, 0), "b");
    ck_assert(ms_conf_item_str(names, 0, &text));
    ck_assert_str_eq(text, "one");
    ck_assert_str_eq(ms_conf_key(names, 1), "a");
    ck_assert(!ms_conf_item_str(names, 1, &text));
    ck_assert_int_eq(ms_conf_reject(ms_conf_item(names, 1), &err, "is wrong"), MS_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "names.a: is wrong"));
    ck_ok(ms_conf_object(ms_conf_root(conf), "empty", &names, &err), err);
    ck_assert_uint_eq(ms_conf_len(names), 0);
}
END_TEST

START_TEST(a_list_gives_its_items_by_number)
{
    const struct ms_conf_value *list;
    const char *text = NULL;
    int64_t n = -1;
    ck_ok(parse(sample), err);
    ck_ok(ms_conf_list(ms_conf_root(conf), "rank", &list, &err), err);
    ck_assert_uint_eq(ms_conf_len(list), 5);
    ck_assert(ms_conf_item_int(list, 1, &n));
    ck_assert_int_eq(n, 1);
    ck_assert(!ms_conf_item_str(list, 1, &text));
    ck_assert(ms_conf_item_str(list, 2, &text));
    ck_assert_str_eq(text, "2-4");
    ck_assert(!ms_conf_item_int(list, 2, &n));
    ck_assert(!ms_conf_item_int(list, 3, &n));
    ck_assert(!ms_conf_item_int(list, 4, &n));
    ck_assert_int_eq(ms_conf_reject(ms_conf_item(list, 2), &err, "no such rank"), MS_E_FORMAT);
    ck_assert_str_eq(err.msg, "config.json: rank[2]: no such rank");
}
END_TEST

/* One getter each, on a value of the wrong kind. */
static enum ms_rc get(const char *what, const struct ms_conf_value *at, const char *key)
{
    const char *text;
    bool flag;
    const struct ms_conf_value *value;
    if (strcmp(what, "str") == 0)
        return ms_conf_str(at, key, &text, &err);
    if (strcmp(what, "bool") == 0)
        return ms_conf_bool(at, key, &flag, &err);
    if (strcmp(what, "object") == 0)
        return ms_conf_object(at, key, &value, &err);
    return ms_conf_list(at, key, &value, &err);
}

static const struct {
    const char *what, *text, *message;
} wrong[] = {
    {"str", "3", "config.json: a.k: expected a string, found a number"},
    {"str", "[]", "config.json: a.k: expected a string, found a list"},
    {"bool", "\"yes\"", "config.json: a.k: expected true or false, found a string"},
    {"bool", "1", "config.json: a.k: expected true or false, found a number"},
    {"object", "[1]", "config.json: a.k: expected an object, found a list"},
    {"list", "{}", "config.json: a.k: expected a list, found an object"},
};

START_TEST(a_value_of_the_wrong_kind_is_named_with_its_path)
{
    char text[256];
    const struct ms_conf_value *a;
    snprintf(text, sizeof text, "{\"a\": {\"k\": %s}}", wrong[_i].text);
    ck_ok(parse(text), err);
    ck_ok(ms_conf_object(ms_conf_root(conf), "a", &a, &err), err);
    ck_assert_int_eq(get(wrong[_i].what, a, "k"), MS_E_FORMAT);
    ck_assert_str_eq(err.msg, wrong[_i].message);
}
END_TEST

static const struct {
    const char *text, *says;
} malformed[] = {
    {"", "config.json: line 1, byte 0"},
    {"[1]", "expected an object in { } at the top"},
    {"3", "expected an object in { } at the top"},
    {"{\n\"a\": 1,\n\"a\": 2}", "config.json: line 3"},
    {"{\"a\": 1, \"a\": 2}", "key 'a' for the second time in one object"},
    {"{\"a\": 1, \"\\u0061\": 2}", "key 'a' for the second time"},
    {"{\"a\": 01}", "config.json: line 1"},
    {"{\"a\": 5.}", "config.json: line 1"},
    {"{\"a\": NaN}", "expected a number of ordinary size, found NaN"},
    {"{\"a\": -Infinity}", "found -Infinity"},
    {"{\"a\": 1e400}", "found 1e400"},
    {"{\"a\": 1} x", "config.json: line 1"},
    {"{\"a\": 1}{}", "config.json: line 1"},
    {"{\"a\": 1,}", "config.json: line 1"},
    {"{'a': 1}", "config.json: line 1"},
    {"{\"a\": \"\\u0000\"}", "\\u0000 or half of a surrogate pair"},
    {"{\"a\": \"\\ud800\"}", "half of a surrogate pair"},
    {"{\"\\u0000\": 1}", "\\u0000"},
    {"{\"a\": \"tab\there\"}", "config.json: line 1"},
    {"{\"a\": \"\xff\"}", "config.json: line 1"},
    {"{\"a\": // comment\n1}", "config.json: line 1"},
};

START_TEST(text_that_is_not_strict_json_is_refused_with_its_place)
{
    ck_assert_int_eq(parse(malformed[_i].text), MS_E_FORMAT);
    ck_says(err, malformed[_i].says);
    ck_assert_ptr_null(conf);
}
END_TEST

static const char *const accepted[] = {
    "{}",
    " \r\n\t{ } \n",
    "\xEF\xBB\xBF{}",
    "{\"a\": {\"k\": 1}, \"b\": {\"k\": 1}, \"k\": [{\"k\": 1}, {\"k\": 2}]}",
    "{\"\": \"\", \"\xC3\xA9\": \"\\ud83d\\ude00\"}",
};

START_TEST(the_same_key_in_different_objects_and_all_of_unicode_are_fine)
{
    ck_ok(parse(accepted[_i]), err);
}
END_TEST

START_TEST(a_text_beyond_the_limit_is_refused)
{
    size_t n = MS_CONF_MAX + 1;
    char *big = malloc(n);
    ck_assert_ptr_nonnull(big);
    memset(big, ' ', n);
    struct ms_str text = {big, (uint32_t)n};
    ck_assert_int_eq(ms_conf_parse(&conf, "big.json", text, &err), MS_E_LIMIT);
    ck_says(err, "big.json: 8388609 bytes, more than the 8388608 allowed");
    free(big);
}
END_TEST

START_TEST(an_item_that_is_no_object_has_no_keys)
{
    const struct ms_conf_value *list;
    const char *text = NULL;
    ck_ok(parse("{\"a\": [{\"k\": \"v\"}, 7]}"), err);
    ck_ok(ms_conf_list(ms_conf_root(conf), "a", &list, &err), err);
    ck_ok(ms_conf_str(ms_conf_item(list, 0), "k", &text, &err), err);
    ck_assert_str_eq(text, "v");
    ck_assert_int_eq(ms_conf_str(ms_conf_item(list, 1), "k", &text, &err), MS_E_FORMAT);
    ck_assert_str_eq(err.msg, "config.json: a[1]: expected an object, found a number");
    ms_err_clear(&err);
    ck_ok(ms_conf_object(ms_conf_item(list, 0), "none", &list, &err), err);
    ck_assert_ptr_null(list);
}
END_TEST

START_TEST(a_large_list_is_read_in_one_walk)
{
    enum { N = 500000 };
    const struct ms_conf_value *list;
    int64_t sum = 0;
    char *text = malloc(2 * N + 16);
    ck_assert_ptr_nonnull(text);
    size_t n = (size_t)snprintf(text, 16, "{\"a\":[1");
    for (int i = 1; i < N; i++) {
        text[n++] = ',';
        text[n++] = '1';
    }
    memcpy(text + n, "]}", 3);
    ck_ok(parse(text), err);
    ck_ok(ms_conf_list(ms_conf_root(conf), "a", &list, &err), err);
    for (size_t i = 0; i < ms_conf_len(list); i++) {
        int64_t one = 0;
        ck_assert(ms_conf_item_int(list, i, &one));
        sum += one;
    }
    ck_assert_int_eq(sum, N);
    free(text);
}
END_TEST

START_TEST(a_file_is_opened_and_its_path_is_in_the_message)
{
    char dir[64];
    char path[128];
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/config.json", dir);
    ck_assert_int_eq(ms_conf_open(&conf, path, &err), MS_E_NOTFOUND);
    ck_says(err, path);
    ms_err_clear(&err);
    write_file(path, "{\"a\": tru}", 10);
    ck_assert_int_eq(ms_conf_open(&conf, path, &err), MS_E_FORMAT);
    ck_says(err, path);
    ms_err_clear(&err);
    write_file(path, "{\"a\": true}", 11);
    ck_ok(ms_conf_open(&conf, path, &err), err);
    scratch_remove(dir);
}
END_TEST

/* What the function logs, with stderr turned into a file. */
static void warnings(const char *const *known, char *buf, size_t size)
{
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    int saved = dup(STDERR_FILENO);
    dup2(fileno(f), STDERR_FILENO);
    ms_conf_warn_unknown(ms_conf_root(conf), known);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(f);
    buf[fread(buf, 1, size - 1, f)] = '\0';
    fclose(f);
}

START_TEST(unknown_keys_are_warned_of_with_the_nearest_known)
{
    static const char *const known[] = {"task", "dump_path", "rank", NULL};
    char text[1024];
    ck_ok(parse("{\"task\": 1, \"dump_pat\": 2, \"elephant\": 3}"), err);
    warnings(known, text, sizeof text);
    ck_assert_ptr_nonnull(
        strstr(text, "config.json: dump_pat: unknown key, ignored; did you mean 'dump_path'?\n"));
    ck_assert_ptr_nonnull(strstr(text, "config.json: elephant: unknown key, ignored\n"));
    ck_assert_ptr_null(strstr(text, "task"));
}
END_TEST

START_TEST(a_long_path_in_a_message_is_cut)
{
    char text[2048];
    size_t n = 0;
    char key[80];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    for (int i = 0; i < 10; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"%s\":", key);
    n += (size_t)snprintf(text + n, sizeof text - n, "1");
    memset(text + n, '}', 10);
    text[n + 10] = '\0';
    ck_ok(parse(text), err);
    const struct ms_conf_value *at = ms_conf_root(conf);
    for (int i = 0; i < 9; i++)
        ck_ok(ms_conf_object(at, key, &at, &err), err);
    bool flag;
    ck_assert_int_eq(ms_conf_bool(at, key, &flag, &err), MS_E_FORMAT);
    ck_says(err, "expected true or false, found a number");
}
END_TEST

START_TEST(every_allocation_that_fails_is_reported_and_leaves_nothing)
{
    enum ms_rc rc = MS_E_NOMEM;
    uint64_t at = 0;
    while (rc != MS_OK && at < 1000) {
        const struct ms_conf_value *list;
        ms_err_clear(&err);
        ms_mem_fail_at(++at);
        rc = parse(sample);
        if (rc == MS_OK)
            rc = ms_conf_list(ms_conf_root(conf), "rank", &list, &err);
        ms_mem_fail_at(0);
        ck_assert_msg(rc == MS_OK || rc == MS_E_NOMEM, "%s", err.msg);
        ms_conf_close(conf);
        conf = NULL;
        ck_assert_uint_eq(ms_mem_live(), live_before);
    }
    ck_assert_uint_gt(at, 20);
    ck_assert_int_eq(rc, MS_OK);
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

int main(void)
{
    TCase *tc = tcase_create("conf");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, values_are_found_by_key_and_type);
    tcase_add_loop_test(tc, what_is_absent_or_null_leaves_the_default, 0, 2);
    tcase_add_test(tc, an_object_gives_its_members_in_the_order_of_the_file);
    tcase_add_test(tc, a_list_gives_its_items_by_number);
    tcase_add_loop_test(tc, a_value_of_the_wrong_kind_is_named_with_its_path, 0, COUNT(wrong));
    tcase_add_loop_test(tc, text_that_is_not_strict_json_is_refused_with_its_place, 0,
                        COUNT(malformed));
    tcase_add_loop_test(tc, the_same_key_in_different_objects_and_all_of_unicode_are_fine, 0,
                        COUNT(accepted));
    tcase_add_test(tc, a_text_beyond_the_limit_is_refused);
    tcase_add_test(tc, an_item_that_is_no_object_has_no_keys);
    tcase_add_test(tc, a_large_list_is_read_in_one_walk);
    tcase_add_test(tc, a_file_is_opened_and_its_path_is_in_the_message);
    tcase_add_test(tc, unknown_keys_are_warned_of_with_the_nearest_known);
    tcase_add_test(tc, a_long_path_in_a_message_is_cut);
    tcase_add_test(tc, every_allocation_that_fails_is_reported_and_leaves_nothing);
    return run_case("conf", tc);
}
