/* SPDX-License-Identifier: MIT
 *
 * Pickles: what is written is read back, each operation takes what it needs and no more, and each
 * limit holds at its last value.
 */
#include "tests/support/check.h"

#include "probe/base/io.h"
#include "probe/base/pickle.h"

static struct ms_arena *arena;
static const struct ms_pickle_rules none = {0};

static uint32_t no_name(struct ms_str module, struct ms_str name)
{
    (void)module;
    return ms_str_is(name, "known") ? 7 : MS_PICKLE_REFUSED;
}

/* Room for what the tests read; each test makes one limit narrow. */
static struct ms_pickle_rules rules(void)
{
    struct ms_pickle_rules r = none;
    r.ops = MS_STR(MS_PICKLE_OPS);
    r.of = "a test";
    r.name_number = no_name;
    r.protocol = 5;
    r.open = r.remembered = r.objects = r.items = 100;
    r.digits = 16;
    return r;
}

static void set_up(void)
{
    arena = ms_arena_new(1 << 20);
}

static void tear_down(void)
{
    ms_arena_free(arena);
}

static enum ms_rc read_with(const struct ms_pickle_rules *r, const char *p, size_t n,
                            struct ms_plain **root, struct ms_err *e)
{
    size_t at = 0;
    ms_err_clear(e);
    return ms_pickle_read(root, p, n, &at, r, arena, e);
}

/* The pickle is read when the limit is `least`, and refused with the words when it is one less. */
#define LIMIT_OF(field, least, words, bytes)                                                       \
    do {                                                                                           \
        struct ms_pickle_rules r = rules();                                                        \
        struct ms_plain *root;                                                                     \
        struct ms_err e = {0};                                                                     \
        r.field = (least);                                                                         \
        ck_ok(read_with(&r, (bytes), sizeof(bytes) - 1, &root, &e), e);                            \
        r.field = (least)-1;                                                                       \
        ck_assert_int_ne(read_with(&r, (bytes), sizeof(bytes) - 1, &root, &e), MS_OK);             \
        ck_says(e, words);                                                                         \
    } while (0)

START_TEST(each_limit_holds_at_its_last_value)
{
    LIMIT_OF(open, 3, "open values", "\x80\x02NNN\x87.");
    LIMIT_OF(objects, 3, "objects", "\x80\x02])\x86.");
    LIMIT_OF(items, 3, "values", "\x80\x02NNN\x87.");
    LIMIT_OF(remembered, 2, "remembered", "\x80\x02Nq\1.");
}
END_TEST

static struct ms_plain *read_ok(const char *p, size_t n)
{
    const struct ms_pickle_rules r = rules();
    struct ms_plain *root;
    struct ms_err e = {0};
    ck_ok(read_with(&r, p, n, &root, &e), e);
    return root;
}
#define READ(bytes) read_ok((bytes), sizeof(bytes) - 1)

static void ck_number(const struct ms_plain *v, int64_t want)
{
    ck_assert_int_eq(v->kind, MS_PLAIN_INT);
    ck_assert_int_eq(v->i, want);
}

START_TEST(whole_numbers_of_every_length_have_their_sign)
{
    ck_number(READ("\x80\x02K\xff."), 255);
    ck_number(READ("\x80\x02M\xff\xff."), 65535);
    ck_number(READ("\x80\x02J\xff\xff\xff\xff."), -1);
    ck_number(READ("\x80\x02\x8a\0."), 0);
    ck_number(READ("\x80\x02\x8a\1\x7f."), 127);
    ck_number(READ("\x80\x02\x8a\1\x80."), -128);
    ck_number(READ("\x80\x02\x8a\2\xff\0."), 255);
    ck_number(READ("\x80\x02\x8a\3\0\0\x80."), -8388608);
    ck_number(READ("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), INT64_MAX);
    ck_number(READ("\x80\x02\x8a\x08\0\0\0\0\0\0\0\x80."), INT64_MIN);
}
END_TEST

START_TEST(containers_hold_what_stands_above_them_in_order)
{
    const struct ms_plain *v = READ("\x80\x02(K\1](K\2K\3eK\4t.");
    ck_assert_int_eq(v->kind, MS_PLAIN_TUPLE);
    ck_assert_uint_eq(ms_plain_len(v), 3);
    ck_number(ms_plain_item(v, 0), 1);
    ck_number(ms_plain_item(v, 2), 4);
    ck_assert_int_eq(ms_plain_item(v, 1)->kind, MS_PLAIN_LIST);
    ck_number(ms_plain_item(ms_plain_item(v, 1), 0), 2);
    ck_number(ms_plain_item(ms_plain_item(v, 1), 1), 3);
    ck_assert_int_eq(ms_plain_item(v, 3)->kind, MS_PLAIN_NONE);
}
END_TEST

START_TEST(a_key_is_found_and_a_value_is_no_key)
{
    const struct ms_plain *v = READ("\x80\x02}(U\1aU\1bU\1cK\5u.");
    ck_assert(ms_str_is(ms_plain_text(ms_plain_get(v, "a")), "b"));
    ck_assert_ptr_null(ms_plain_get(v, "b"));
    ck_assert_int_eq(ms_plain_int(ms_plain_get(v, "c"), -1), 5);
    ck_assert_int_eq(ms_plain_int(ms_plain_get(v, "d"), -1), -1);
    ck_assert_ptr_null(ms_plain_get(ms_plain_get(v, "a"), "a"));
}
END_TEST

START_TEST(a_value_of_another_kind_says_nothing)
{
    const struct ms_plain *number = READ("\x80\x02K\1.");
    ck_assert_uint_eq(ms_plain_text(number).n, 0);
    ck_assert_uint_eq(ms_plain_text(NULL).n, 0);
    ck_assert_uint_eq(ms_plain_len(NULL), 0);
    ck_assert_int_eq(ms_plain_int(READ("\x80\x02N."), 9), 9);
    ck_assert_int_eq(ms_plain_int(NULL, 9), 9);
    ck_assert_double_eq(ms_plain_real(NULL, 0.5), 0.5);
    ck_assert_double_eq(ms_plain_real(READ("\x80\x02G\x3f\xf8\0\0\0\0\0\0."), 0), 1.5);
}
END_TEST

START_TEST(what_is_dropped_is_gone_and_what_is_remembered_comes_back)
{
    const struct ms_pickle_rules r = rules();
    struct ms_plain *root;
    struct ms_err e = {0};
    ck_number(READ("\x80\x02K\1K\x02"
                   "0."),
              1);
    ck_number(READ("\x80\x04K\1\x94"
                   "0h\0."),
              1);
    ck_number(READ("\x80\x04K\1\x94K\2\x94"
                   "00h\1."),
              2);
    ck_assert_int_eq(read_with(&r,
                               "\x80\x02"
                               "0.",
                               4, &root, &e),
                     MS_E_FORMAT);
    ck_says(e, "too few values");
    ck_assert(e.line == 0 && e.off == 2); /* the byte; a pickle has no lines */
}
END_TEST

/* Every kind of value that is written, in one dictionary. */
static void write_all(const char *path)
{
    struct ms_err e = {0};
    struct ms_out *o;
    ck_ok(ms_out_create(&o, path, &e), e);
    ms_pickle_begin(o);
    ms_pickle_dict(o);
    ms_pickle_str(o, MS_STR("numbers"));
    ms_pickle_list(o);
    ms_pickle_i64(o, INT32_MAX);
    ms_pickle_i64(o, (int64_t)INT32_MAX + 1);
    ms_pickle_i64(o, INT32_MIN);
    ms_pickle_i64(o, INT64_MIN);
    ms_pickle_f64(o, -0.25);
    ms_pickle_list_end(o);
    ms_pickle_str(o, MS_STR("truth"));
    ms_pickle_tuple(o);
    ms_pickle_bool(o, true);
    ms_pickle_bool(o, false);
    ms_pickle_none(o);
    ms_pickle_tuple_end(o);
    ms_pickle_str(o, MS_STR("text"));
    ms_pickle_str(o, MS_STR("a\xc3\xa4\xff\xe2\x82z"));
    ms_pickle_dict_end(o);
    ms_pickle_end(o);
    ck_ok(ms_out_commit(o, &e), e);
}

static void ck_written(const struct ms_plain *v)
{
    static const int64_t wanted[] = {INT32_MAX, (int64_t)INT32_MAX + 1, INT32_MIN, INT64_MIN};
    const struct ms_plain *numbers = ms_plain_get(v, "numbers"), *truth = ms_plain_get(v, "truth");
    for (uint32_t i = 0; i < 4; i++)
        ck_number(ms_plain_item(numbers, i), wanted[i]);
    ck_assert_double_eq(ms_plain_real(ms_plain_item(numbers, 4), 0), -0.25);
    ck_assert_int_eq(ms_plain_item(truth, 0)->kind, MS_PLAIN_BOOL);
    ck_assert_int_eq(ms_plain_item(truth, 0)->i, 1);
    ck_assert_int_eq(ms_plain_item(truth, 1)->i, 0);
    ck_assert_int_eq(ms_plain_item(truth, 2)->kind, MS_PLAIN_NONE);
    ck_assert_uint_eq(ms_plain_len(truth), 3);
    ck_assert(ms_str_is(ms_plain_text(ms_plain_get(v, "text")), "a\xc3\xa4???z") ||
              ms_str_is(ms_plain_text(ms_plain_get(v, "text")), "a\xc3\xa4??z"));
}

START_TEST(a_name_is_made_of_two_texts)
{
    const struct ms_pickle_rules r = rules();
    struct ms_plain *root;
    struct ms_err e = {0};
    ck_ok(read_with(&r, "\x80\x04\x8c\1m\x8c\5known\x93.", 14, &root, &e), e);
    ck_assert_int_eq(root->kind, MS_PLAIN_NAME);
    ck_assert_int_eq(read_with(&r, "\x80\x04N\x8c\5known\x93.", 12, &root, &e), MS_E_FORMAT);
    ck_says(e, "a name that is no text");
    ck_assert_int_eq(read_with(&r, "\x80\x04\x8c\1mN\x93.", 8, &root, &e), MS_E_FORMAT);
    ck_says(e, "a name that is no text");
}
END_TEST

START_TEST(what_is_written_is_read_back)
{
    char dir[64], path[100];
    struct ms_file f;
    struct ms_err e = {0};
    snprintf(path, sizeof path, "%s/pickle", scratch_dir(dir));
    write_all(path);
    ck_ok(ms_file_map(&f, path, 1 << 20, &e), e);
    ck_assert(f.n > 2 && memcmp(f.p, "\x80\x02", 2) == 0);
    ck_written(read_ok(f.p, f.n));
    ms_file_unmap(&f);
    scratch_remove(dir);
}
END_TEST

/* Objects are kept as calls: the class, its arguments, then its state and what was put into it. */
START_TEST(objects_are_kept_when_asked_and_never_made)
{
    static const char object[] = "\x80\x02"
                                 "cos\nsystem\n)\x81}X\x01\0\0\0aK\x05sb.";
    static const char filled[] = "\x80\x02"
                                 "cx\nmap\n)RX\x01\0\0\0kK\x01sX\x01\0\0\0jK\x02s.";
    static const char set[] = "\x80\x04\x8f(K\x01K\x02\x90.";
    static const char empty[] = "\x80\x02}b.";
    struct ms_pickle_rules r = rules();
    struct ms_plain *root;
    struct ms_err e = {0};
    r.ops = MS_STR(MS_PICKLE_OBJECT_OPS);
    ck_assert_int_eq(read_with(&r, object, sizeof object - 1, &root, &e), MS_E_UNSUPPORTED);
    r.keeps_objects = true;
    ck_ok(read_with(&r, object, sizeof object - 1, &root, &e), e);
    ck_assert_int_eq(root->kind, MS_PLAIN_CALL);
    ck_assert_uint_eq(root->n, 3);
    ck_assert(ms_str_is(root->item[0]->s, "os.system"));
    ck_assert_int_eq(ms_plain_int(ms_plain_get(root->item[2], "a"), 0), 5);
    ck_ok(read_with(&r, filled, sizeof filled - 1, &root, &e), e);
    ck_assert_uint_eq(root->n, 3);
    ck_assert_int_eq(ms_plain_int(ms_plain_get(root->item[2], "j"), 0), 2);
    ck_ok(read_with(&r, set, sizeof set - 1, &root, &e), e);
    ck_assert_int_eq(root->kind, MS_PLAIN_LIST);
    ck_assert_uint_eq(root->n, 2);
    ck_assert_int_eq(read_with(&r, empty, sizeof empty - 1, &root, &e), MS_E_FORMAT);
}
END_TEST

#define BYTES(z) (z), sizeof(z) - 1
/* Each operation finds exactly what it needs, and is refused with one value less. */
START_TEST(an_operation_needs_what_it_takes_and_no_more)
{
    static const struct {
        const char *bytes; /* after the protocol, up to the stop */
        size_t n;
        enum ms_rc rc;
        const char *words; /* or NULL: the kind of what is read is `kind` */
        enum ms_plain_kind kind;
    } cases[] = {
        {BYTES("cm\nK\n)}\x92."), MS_OK, NULL, MS_PLAIN_CALL},
        {BYTES("cm\nK\n)\x92."), MS_E_FORMAT, "an object of nothing", 0},
        {BYTES("cm\nK\n)\x81."), MS_OK, NULL, MS_PLAIN_CALL},
        {BYTES(")\x81."), MS_E_FORMAT, "an object of nothing", 0},
        {BYTES("cm\nK\n)R."), MS_OK, NULL, MS_PLAIN_CALL},
        {BYTES("N\x85."), MS_OK, NULL, MS_PLAIN_TUPLE},
        {BYTES("NN\x86."), MS_OK, NULL, MS_PLAIN_TUPLE},
        {BYTES("NNN\x87."), MS_OK, NULL, MS_PLAIN_TUPLE},
        {BYTES("\x85."), MS_E_FORMAT, "", 0},
        {BYTES("N\x86."), MS_E_FORMAT, "", 0},
        {BYTES("NN\x87."), MS_E_FORMAT, "", 0},
        {BYTES("]Na."), MS_OK, NULL, MS_PLAIN_LIST},
        {BYTES("]a."), MS_E_FORMAT, "", 0},
        {BYTES("}NNs."), MS_OK, NULL, MS_PLAIN_DICT},
        {BYTES("}Ns."), MS_E_FORMAT, "", 0},
        {BYTES("N2\x86."), MS_OK, NULL, MS_PLAIN_TUPLE},
        {BYTES("2."), MS_E_FORMAT, "", 0},
        {BYTES("0N."), MS_E_FORMAT, "", 0},
        {BYTES("(t."), MS_OK, NULL, MS_PLAIN_TUPLE},
        {BYTES("(l."), MS_OK, NULL, MS_PLAIN_LIST},
        {BYTES("](e."), MS_OK, NULL, MS_PLAIN_LIST},
        {BYTES("}(u."), MS_OK, NULL, MS_PLAIN_DICT},
        {BYTES("N(NN1\x85."), MS_OK, NULL, MS_PLAIN_TUPLE},
        {BYTES("(NN1N."), MS_OK, NULL, MS_PLAIN_NONE},
        {BYTES("t."), MS_E_FORMAT, "", 0},
        {BYTES("N1N."), MS_E_FORMAT, "", 0},
    };
    struct ms_pickle_rules r = rules();
    r.ops = MS_STR(MS_PICKLE_OBJECT_OPS);
    r.keeps_objects = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char bytes[32] = "\x80\x04";
        struct ms_plain *root;
        struct ms_err e = {0};
        memcpy(bytes + 2, cases[i].bytes, cases[i].n);
        const enum ms_rc rc = read_with(&r, bytes, cases[i].n + 2, &root, &e);
        ck_assert_msg(rc == cases[i].rc, "case %zu: %s", i, e.msg);
        if (cases[i].words != NULL)
            ck_says(e, cases[i].words);
        else
            ck_assert_int_eq(root->kind, cases[i].kind);
    }
}
END_TEST

/* Texts and bytes whose length has one, four or eight bytes; each is cut by one byte, too. */
START_TEST(texts_of_every_form_have_their_length)
{
    static const struct {
        const char *bytes;
        size_t n;
    } forms[] = {{BYTES("U\3abc.")},
                 {BYTES("C\3abc.")},
                 {BYTES("\x8c\3"
                        "abc.")},
                 {BYTES("T\3\0\0\0abc.")},
                 {BYTES("B\3\0\0\0abc.")},
                 {BYTES("X\3\0\0\0abc.")},
                 {BYTES("\x8d\3\0\0\0\0\0\0\0abc.")},
                 {BYTES("\x8e\3\0\0\0\0\0\0\0abc.")},
                 {BYTES("\x96\3\0\0\0\0\0\0\0abc.")}};
    struct ms_pickle_rules r = rules();
    r.ops = MS_STR(MS_PICKLE_OBJECT_OPS);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char bytes[32] = "\x80\x04";
        struct ms_plain *root;
        struct ms_err e = {0};
        memcpy(bytes + 2, forms[i].bytes, forms[i].n);
        ck_ok(read_with(&r, bytes, forms[i].n + 2, &root, &e), e);
        ck_assert(ms_str_is(ms_plain_text(root), "abc"));
        for (size_t n = 2; n < forms[i].n + 2; n++)
            ck_assert_int_eq(read_with(&r, bytes, n, &root, &e), MS_E_FORMAT);
    }
}
END_TEST

/* An object with the state {7: 8}, to which 9 was appended, and then 4: 5 was set. */
START_TEST(an_object_keeps_its_state_its_items_and_its_entries_apart)
{
    static const char object[] = "\x80\x02"
                                 "cm\nK\n)\x81}K\x07K\x08sbK\x09"
                                 "aK\x0a"
                                 "aK\x04K\x05s.";
    struct ms_pickle_rules r = rules();
    struct ms_plain *root;
    struct ms_err e = {0};
    r.ops = MS_STR(MS_PICKLE_OBJECT_OPS);
    r.keeps_objects = true;
    ck_ok(read_with(&r, object, sizeof object - 1, &root, &e), e);
    ck_assert_uint_eq(root->n, 5);
    ck_assert(ms_str_is(root->item[0]->s, "m.K"));
    ck_assert_int_eq(root->item[1]->kind, MS_PLAIN_TUPLE);
    ck_assert_int_eq(root->item[2]->kind, MS_PLAIN_DICT);
    ck_assert_uint_eq(ms_plain_len(root->item[2]), 2);
    ck_assert_int_eq(root->item[3]->kind, MS_PLAIN_LIST);
    ck_assert_uint_eq(ms_plain_len(root->item[3]), 2);
    ck_assert_int_eq(ms_plain_int(ms_plain_item(root->item[3], 1), 0), 10);
    ck_assert_int_eq(root->item[4]->kind, MS_PLAIN_DICT);
    ck_assert_int_eq(ms_plain_int(ms_plain_item(root->item[4], 1), 0), 5);
}
END_TEST

/* The arguments of an object are its own, also where they are a list. */
START_TEST(what_is_appended_to_an_object_is_no_argument)
{
    static const char object[] = "\x80\x02"
                                 "cm\nK\n]\x81K\x09"
                                 "a.";
    struct ms_pickle_rules r = rules();
    struct ms_plain *root;
    struct ms_err e = {0};
    r.ops = MS_STR(MS_PICKLE_OBJECT_OPS);
    r.keeps_objects = true;
    ck_ok(read_with(&r, object, sizeof object - 1, &root, &e), e);
    ck_assert_uint_eq(root->n, 3);
    ck_assert_uint_eq(ms_plain_len(root->item[1]), 0);
    ck_assert_uint_eq(ms_plain_len(root->item[2]), 1);
}
END_TEST

/* A name of any length stays as it was when more values follow it. */
START_TEST(names_of_every_length_stay_whole)
{
    struct ms_pickle_rules r = rules();
    r.ops = MS_STR(MS_PICKLE_OBJECT_OPS);
    r.keeps_objects = true;
    for (int n = 1; n <= 40; n++) {
        char bytes[80], name[48];
        struct ms_plain *root;
        struct ms_err e = {0};
        snprintf(name, sizeof name, "%0*d.K", n, 7);
        const int size = snprintf(bytes, sizeof bytes, "\x80\x02(c%0*d\nK\nK\tK\nt.", n, 7);
        ck_ok(read_with(&r, bytes, (size_t)size, &root, &e), e);
        ck_assert(ms_str_is(root->item[0]->s, name));
        ck_assert_int_eq(ms_plain_int(root->item[2], 0), 10);
    }
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "pickle", each_limit_holds_at_its_last_value,
                 whole_numbers_of_every_length_have_their_sign,
                 containers_hold_what_stands_above_them_in_order,
                 a_key_is_found_and_a_value_is_no_key, a_value_of_another_kind_says_nothing,
                 what_is_dropped_is_gone_and_what_is_remembered_comes_back,
                 a_name_is_made_of_two_texts, what_is_written_is_read_back,
                 objects_are_kept_when_asked_and_never_made,
                 an_operation_needs_what_it_takes_and_no_more,
                 texts_of_every_form_have_their_length,
                 what_is_appended_to_an_object_is_no_argument, names_of_every_length_stay_whole,
                 an_object_keeps_its_state_its_items_and_its_entries_apart)
