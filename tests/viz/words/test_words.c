/* SPDX-License-Identifier: MIT
 *
 * Every kind of message has a sentence in both languages, whose placeholders are arguments of the
 * kind; and sentences are filled as their templates say.
 */
#include "compare/source/suspect_kinds.h"
#include "mstx/conclude/finding_kinds.h"
#include "mstx/format/note_kinds.h"
#include "probe/trend/notable.h"
#include "tests/support/said.h"
#include "viz/model/finding.h"

#define ROW(name, args) {#name, args},
static const struct ms_message_kind kinds[] = {
    MSTX_NOTE_KINDS(ROW) MSTX_FINDING_KINDS(ROW) CMP_SUSPECT_KINDS(ROW) CMP_NOTE_KINDS(ROW)
        CMP_REGION_KINDS(ROW) VIZ_FINDING_KINDS(ROW) PROBE_NOTABLE_KINDS(ROW)};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct viz_sentence *sentence_of_kind(const char *kind)
{
    const struct viz_sentence *s, *found = NULL;
    for (size_t i = 0; (s = viz_words_sentence(i)) != NULL; i++) {
        if (strcmp(s->kind, kind) != 0)
            continue;
        ck_assert_msg(found == NULL, "%s stands twice", kind);
        found = s;
    }
    return found;
}

/* Is it one of the arguments of a kind? */
static bool has_argument(const struct ms_message_kind *k, struct ms_str name)
{
    struct ms_str rest = ms_str_of(k->args), word;
    while (ms_str_split(&rest, ' ', &word)) {
        if (ms_str_eq(word, name) ||
            (word.n == name.n + 1 && word.p[name.n] == '?' && ms_str_starts(word, name)))
            return true;
    }
    return false;
}

static size_t check_placeholders(const struct ms_message_kind *k, const char *text)
{
    size_t open = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '{') {
            struct ms_str name = {c + 1, (uint32_t)strcspn(c + 1, ":?}")};
            ck_assert_msg(has_argument(k, name), "%s has no argument %.*s", k->name,
                          MS_STR_ARG(name));
        }
        open += (size_t)(*c == '{' || *c == '[') - (size_t)(*c == '}' || *c == ']');
    }
    ck_assert_msg(open == 0, "brackets of %s", text);
    return strlen(text);
}

START_TEST(every_kind_has_a_sentence_in_each_language)
{
    for (size_t i = 0; i < KINDS; i++) {
        const struct viz_sentence *s = sentence_of_kind(kinds[i].name);
        ck_assert_msg(s != NULL, "no sentence of %s", kinds[i].name);
        for (int l = 0; l < VIZ_LANGUAGES; l++)
            ck_assert_uint_gt(check_placeholders(&kinds[i], s->text[l]), 0);
    }
}
END_TEST

START_TEST(every_sentence_is_of_a_kind)
{
    const struct viz_sentence *s;
    for (size_t i = 0; (s = viz_words_sentence(i)) != NULL; i++) {
        bool found = false;
        for (size_t k = 0; k < KINDS; k++)
            found |= strcmp(kinds[k].name, s->kind) == 0;
        ck_assert_msg(found, "%s is no kind", s->kind);
    }
}
END_TEST

/* With all arguments, and with none: nothing of a template is left over. */
START_TEST(no_bracket_of_a_template_is_said)
{
    for (size_t i = 0; i < KINDS; i++) {
        for (int full = 0; full < 2; full++) {
            struct ms_message m;
            struct ms_str rest = ms_str_of(kinds[i].args), word;
            ms_message_begin(&m, &kinds[i]);
            while (ms_str_split(&rest, ' ', &word)) {
                char name[32];
                bool is_optional = word.p[word.n - 1] == '?';
                snprintf(name, sizeof name, "%.*s", (int)(word.n - is_optional), word.p);
                if (full || !is_optional)
                    ms_message_i64(&m, name, 3);
            }
            ck_assert_msg(ms_message_is_whole(&m), "%s %s", kinds[i].name, m.args);
            for (int l = 0; l < VIZ_LANGUAGES; l++) {
                struct ms_buf b = {.max = 1 << 16};
                ck_assert(viz_words_say((enum viz_language)l, ms_message_stored(&m), &b));
                ck_assert_msg(strpbrk(ms_buf_z(&b), "{}[]|") == NULL, "%s", ms_buf_z(&b));
                ms_buf_free(&b);
            }
        }
    }
}
END_TEST

static void check_says(enum viz_language l, struct ms_stored_message said, const char *want)
{
    struct ms_buf b = {.max = 4096};
    ck_assert(viz_words_say(l, said, &b));
    ck_assert_str_eq(ms_buf_z(&b), want);
    ms_buf_free(&b);
}

START_TEST(plurals_options_and_numbers_are_of_the_language)
{
    struct ms_message m;
    ms_message_begin(&m, &mstx_say_drop);
    ms_message_i64(&m, "pid", 42);
    ms_message_i64(&m, "records", 1);
    check_says(VIZ_ENGLISH, ms_message_stored(&m),
               "process 42 lost 1 record while recording; figures of it are too low");
    ms_message_begin(&m, &mstx_say_drop);
    ms_message_i64(&m, "pid", 42);
    ms_message_i64(&m, "rank", 3);
    ms_message_i64(&m, "records", 7);
    check_says(VIZ_ENGLISH, ms_message_stored(&m),
               "rank 3 (process 42) lost 7 records while recording; figures of it are too low");
    check_says(VIZ_CHINESE, ms_message_stored(&m), "卡 3（进程 42） 记录时丢失 7 条，其数值偏低");
    ms_message_begin(&m, &mstx_note_straggler);
    ms_message_i64(&m, "rank", 2);
    ms_message_i64(&m, "longer_ns", 1500000);
    ms_message_f64(&m, "share", 0.125);
    check_says(VIZ_ENGLISH, ms_message_stored(&m),
               "rank 2 makes the others wait: it computes 1.50 ms longer a step than its partners, "
               "12.5 % of the step");
    ms_message_i64(&m, "first_step", 4);
    ms_message_i64(&m, "last_step", 9);
    check_says(VIZ_CHINESE, ms_message_stored(&m),
               "卡 2 让其他卡等待（第 4 至 9 步）：每步比同伴多计算 1.50 ms，占每步的 12.5 %");
}
END_TEST

START_TEST(texts_of_arguments_come_back_as_they_were)
{
    struct ms_message m;
    char text[2 * MS_MESSAGE_STR_MAX + 1];
    ms_message_begin(&m, &mstx_say_problem);
    ms_message_str(&m, "file", MS_STR("a \"quoted\"\\ {name} [\n]"));
    ms_message_str(&m, "text", MS_STR("卡"));
    check_says(VIZ_ENGLISH, ms_message_stored(&m), "a \"quoted\"\\ {name} [\n]: 卡");
    ms_message_begin(&m, &mstx_say_problem);
    ms_message_str(&m, "text", MS_STR("a\xff\xe5z"));
    check_says(VIZ_ENGLISH, ms_message_stored(&m), "a\xef\xbf\xbd\xef\xbf\xbdz");
    /* What is too long is cut, and not within a character. */
    memset(text, 'x', sizeof text);
    memcpy(text + MS_MESSAGE_STR_MAX - 1, "卡", 3);
    ms_message_begin(&m, &mstx_say_problem);
    ms_message_str(&m, "text", (struct ms_str){text, sizeof text - 1});
    text[MS_MESSAGE_STR_MAX - 1] = '\0';
    check_says(VIZ_CHINESE, ms_message_stored(&m), text);
    /* What does not fit at all is left out, and what is there stays readable. */
    memset(text, '\x01', sizeof text);
    ms_message_begin(&m, &mstx_say_problem);
    ms_message_str(&m, "text", (struct ms_str){text, MS_MESSAGE_STR_MAX});
    ck_assert_str_eq(m.args, "{}");
    ck_assert(!ms_message_is_whole(&m));
}
END_TEST

START_TEST(what_is_no_message_is_refused)
{
    static const char *const bad[] = {"", "[]", "{", "{\"text\": null}", "{\"text\": {}}", "{} x"};
    struct ms_buf b = {.max = 4096};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert(!viz_words_say(
            VIZ_ENGLISH, (struct ms_stored_message){MS_STR("problem"), ms_str_of(bad[i])}, &b));
    ck_assert(!viz_words_say(VIZ_ENGLISH,
                             (struct ms_stored_message){MS_STR("unheard"), MS_STR("{}")}, &b));
    ck_assert_uint_eq(b.n, 0);
    ms_message_speak((struct ms_stored_message){MS_STR("unheard"), MS_STR("{\"n\": 1}")}, &b);
    ck_assert_str_eq(ms_buf_z(&b), "unheard {\"n\": 1}");
    ms_buf_free(&b);
}
END_TEST

START_TEST(languages_are_told_by_their_name)
{
    ck_assert_int_eq(viz_language_of(MS_STR("zh")), VIZ_CHINESE);
    ck_assert_int_eq(viz_language_of(MS_STR("zh-CN")), VIZ_CHINESE);
    ck_assert_int_eq(viz_language_of(MS_STR("en")), VIZ_ENGLISH);
    ck_assert_int_eq(viz_language_of(MS_STR("")), VIZ_ENGLISH);
}
END_TEST

TEST_MAIN("words", every_kind_has_a_sentence_in_each_language, every_sentence_is_of_a_kind,
          no_bracket_of_a_template_is_said, plurals_options_and_numbers_are_of_the_language,
          texts_of_arguments_come_back_as_they_were, what_is_no_message_is_refused,
          languages_are_told_by_their_name)
