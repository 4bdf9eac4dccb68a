/* SPDX-License-Identifier: MIT */
#include "probe/base/opt.h"

#include "probe/base/log.h"
#include "probe/base/str.h"

#include "tests/support/check.h"

#include <math.h>

struct args {
    const char *path, *out, *word, *mapping;
    bool dry;
    int64_t count;
    double ratio;
    int mode;
    struct ms_opt_list names, rest;
};

static const char *const modes[] = {"statistics", "tensor", "mix", NULL};

static const struct ms_opt opts[] = {
    {"target_path", "tp", MS_OPT_PATH, offsetof(struct args, path), "PATH", .required = true,
     .help = "what to read", .alias = "input"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, out), "DIR", .help = "where to write",
     .dflt = "."},
    {"word", NULL, MS_OPT_TEXT, offsetof(struct args, word), "TEXT", .help = "what to say"},
    {.name = "Tuning", .kind = MS_OPT_HEAD},
    {"layer_mapping", "lm", MS_OPT_OPTIONAL, offsetof(struct args, mapping), "FILE",
     .help = "names of layers"},
    {"dry_run", NULL, MS_OPT_FLAG, offsetof(struct args, dry),
     .help = "only say what would be done"},
    {"count", "n", MS_OPT_INT, offsetof(struct args, count), "N", .min = -5, .max = 100,
     .help = "how many"},
    {"ratio", NULL, MS_OPT_REAL, offsetof(struct args, ratio), "X", .help = "how much"},
    {"mode", "m", MS_OPT_CHOICE, offsetof(struct args, mode), "MODE", .choices = modes,
     .help = "what to look at"},
    {"names", NULL, MS_OPT_LIST, offsetof(struct args, names), "NAME", .max = 3,
     .help = "which ones"},
    {"secret", NULL, MS_OPT_FLAG, offsetof(struct args, dry), .hidden = true, .help = "hidden"},
    {"FILE", NULL, MS_OPT_REST, offsetof(struct args, rest), .max = 4, .help = "more files"},
    {0}};

static const struct ms_cmd cmd = {
    .name = "demo",
    .brief = "a command of this test",
    .opts = opts,
    .usage = "[options] -tp PATH [FILE...]",
    .about = "Shows every kind of option that a table can hold, in a paragraph that is longer "
             "than one line of a terminal.\nThe paragraph goes on.\n\n  msprobe demo -tp x\n",
};

static struct args args;
static struct ms_err err;
static bool done;
static char *argv_copy[32];
static char words_copy[512];

/* Parse words as a shell would split them; arguments stay writable, as in main. */
static enum ms_rc parse(const char *line)
{
    int argc = 0;
    args = (struct args){.out = "default", .count = 7, .mode = -1, .ratio = 2.5};
    ms_globals = (struct ms_globals){0};
    ms_err_clear(&err);
    snprintf(words_copy, sizeof words_copy, "demo %s", line);
    for (char *w = strtok(words_copy, " "); w != NULL; w = strtok(NULL, " "))
        argv_copy[argc++] = w;
    argv_copy[argc] = NULL;
    return ms_opt_parse(&cmd, argc, argv_copy, &args, &done, &err);
}

START_TEST(what_is_not_given_keeps_its_default)
{
    ck_ok(parse("-tp x"), err);
    ck_assert(!done);
    ck_assert_str_eq(args.path, "x");
    ck_assert_str_eq(args.out, "default");
    ck_assert_int_eq(args.count, 7);
    ck_assert_int_eq(args.mode, -1);
    ck_assert_ptr_null(args.mapping);
    ck_assert_uint_eq(args.rest.n, 0);
}
END_TEST

static const char *const spellings[] = {
    "-tp x -o y",
    "-tp=x -o=y",
    "--target_path x --output_path y",
    "--target-path=x --output-path=y",
    "--targ x --out=y",
    "--input x --output_p=y",
    "-o first -tp x -o y",
    "-tp w --inp x -o y",
};

START_TEST(a_path_may_be_spelled)
{
    ck_ok(parse(spellings[_i]), err);
    ck_assert_str_eq(args.path, "x");
    ck_assert_str_eq(args.out, "y");
}
END_TEST

START_TEST(values_are_converted)
{
    ck_ok(parse("-tp x -n -5 --ratio 1e-3 --mode tensor --dry-run"), err);
    ck_assert_int_eq(args.count, -5);
    ck_assert_double_eq(args.ratio, 1e-3);
    ck_assert_int_eq(args.mode, 1);
    ck_assert(args.dry);
    ck_ok(parse("-tp x --ratio -0.5e1 --ratio=-2"), err);
    ck_assert_double_eq(args.ratio, -2);
}
END_TEST

START_TEST(an_optional_value_may_be_left_out)
{
    ck_ok(parse("-tp x -lm"), err);
    ck_assert_str_eq(args.mapping, "");
    ck_ok(parse("-lm -tp x"), err);
    ck_assert_str_eq(args.mapping, "");
    ck_ok(parse("-lm map.yaml -tp x"), err);
    ck_assert_str_eq(args.mapping, "map.yaml");
}
END_TEST

START_TEST(a_value_may_be_empty_or_begin_with_a_dash_behind_an_equals_sign)
{
    ck_ok(parse("-tp x --word= -o=-strange"), err);
    ck_assert_str_eq(args.word, "");
    ck_assert_str_eq(args.out, "-strange");
    ck_ok(parse("-tp -"), err);
    ck_assert_str_eq(args.path, "-");
}
END_TEST

/* Positional arguments stand anywhere, also between the values of lists. */
static const struct {
    const char *line, *rest, *names;
} mixed[] = {
    {"-tp x a b", "a b ", ""},
    {"a -tp x b", "a b ", ""},
    {"a b c d -tp x", "a b c d ", ""},
    {"--names u v -tp x a b", "a b ", "u v "},
    {"a --names u v w -tp x b", "a b ", "u v w "},
    {"--names=u a -tp x b", "a b ", "u "},
    {"--names u v -tp x a --names w -- b", "a b ", "w "},
    {"-tp x -- -a --names", "-a --names ", ""},
    {"-tp x - -3", "- -3 ", ""},
};

static void join(char *buf, size_t size, const struct ms_opt_list *list)
{
    buf[0] = '\0';
    for (size_t i = 0, n = 0; i < list->n; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s ", list->items[i]);
}

START_TEST(lists_and_positional_arguments_keep_their_order)
{
    char text[128];
    ck_ok(parse(mixed[_i].line), err);
    join(text, sizeof text, &args.rest);
    ck_assert_str_eq(text, mixed[_i].rest);
    join(text, sizeof text, &args.names);
    ck_assert_str_eq(text, mixed[_i].names);
    ck_assert_str_eq(args.path, "x");
}
END_TEST

static const struct {
    const char *line, *says;
} wrong[] = {
    {"", "missing option --target_path PATH: what to read"},
    {"-o y", "missing option --target_path"},
    {"-tp x --outptu_path y", "unknown option '--outptu_path'; did you mean '--output_path'?"},
    {"-tp x --zzzz", "unknown option '--zzzz'"},
    {"-tp x -tpp y", "unknown option '-tpp'; did you mean '-tp'?"},
    {"-tp x -dry_run", "did you mean '--dry_run'?"},
    {"-tp x -rati", "did you mean '--ratio'?"},
    {"-tp x -q", "unknown option '-q'"},
    {"-tp x --d", "option --d is ambiguous; it could be --dry_run, --debug"},
    {"-tp x --sec", "unknown option '--sec'"},
    {"-tp x --=3", "unknown option '--'"},
    {"-tp", "option --target_path needs a value: PATH"},
    {"--target_path=", "option --target_path: PATH is empty"},
    {"-tp x --layer_mapping=", "option --layer_mapping: FILE is empty"},
    {"-tp -o y", "if '-o' is the value, write --target_path=-o"},
    {"-tp x -n", "option --count needs a value: N"},
    {"-tp x -n many", "option --count: 'many' is not a whole number"},
    {"-tp x -n 1.5", "'1.5' is not a whole number"},
    {"-tp x -n 99999999999999999999", "is not a whole number of 64 bits"},
    {"-tp x -n 101", "option --count: 101 is out of range; allowed is -5 to 100"},
    {"-tp x -n -6", "out of range"},
    {"-tp x --ratio wide", "option --ratio: 'wide' is not a number"},
    {"-tp x --ratio 0x10", "is not a number"},
    {"-tp x --mode tenso", "'tenso' is not one of statistics, tensor, mix; did you mean 'tensor'?"},
    {"-tp x --mode zzzzzz", "is not one of statistics, tensor, mix"},
    {"-tp x --dry_run=yes", "option --dry_run takes no value; 'yes' was given"},
    {"-tp x --names", "option --names needs a value"},
    {"-tp x --names a b c d", "option --names: 4 values given; allowed is 0 to 3"},
    {"-tp x a b c d e",
     "unexpected argument 'e'; usage: msprobe demo [options] -tp PATH [FILE...]"},
    {"-tp x --threads 1025", "option --threads: 1025 is out of range; allowed is 0 to 1024"},
    {"-tp x --debug jread:9", "option --debug: bad debug level '9'"},
};

START_TEST(a_mistake_is_named)
{
    ck_assert_int_eq(parse(wrong[_i].line), MS_E_ARG);
    ck_says(err, wrong[_i].says);
}
END_TEST

START_TEST(an_empty_argument_is_named)
{
    char name[] = "demo", option[] = "-tp", path[] = "x", nothing[] = "";
    char *argv[] = {name, option, path, nothing, NULL};
    ms_err_clear(&err);
    ck_assert_int_eq(ms_opt_parse(&cmd, 4, argv, &args, &done, &err), MS_E_ARG);
    ck_says(err, "FILE: an argument is empty");
    ms_err_clear(&err);
    argv[2] = nothing;
    ck_assert_int_eq(ms_opt_parse(&cmd, 3, argv, &args, &done, &err), MS_E_ARG);
    ck_says(err, "option --target_path: PATH is empty");
}
END_TEST

START_TEST(a_mistake_without_an_error_to_fill_is_still_a_failure)
{
    char name[] = "demo";
    char option[] = "--nothing";
    char *argv[] = {name, option, NULL};
    ck_assert_int_eq(ms_opt_parse(&cmd, 2, argv, &args, &done, NULL), MS_E_ARG);
}
END_TEST

START_TEST(global_options_work_in_every_command)
{
    ck_ok(parse("-tp x --thr 3 --s --trace_self t.json --no-color -v --debug opt:2"), err);
    ck_assert_int_eq(ms_globals.threads, 3);
    ck_assert(ms_globals.stats && ms_globals.no_color && ms_globals.verbose);
    ck_assert_str_eq(ms_globals.trace_self, "t.json");
    ck_assert_int_eq(ms_log_max, MS_LOG_DEBUG2);
    ms_log_set_level(MS_LOG_WARN);
}
END_TEST

START_TEST(the_environment_may_ask_for_no_colour)
{
    setenv("NO_COLOR", "", 1);
    ck_ok(parse("-tp x"), err);
    ck_assert(!ms_globals.no_color);
    setenv("NO_COLOR", "0", 1);
    ck_ok(parse("-tp x"), err);
    ck_assert(ms_globals.no_color);
    unsetenv("NO_COLOR");
}
END_TEST

START_TEST(help_ends_the_parse_before_anything_is_missing)
{
    char text[8192] = "";
    FILE *saved = stdout;
    stdout = fmemopen(text, sizeof text, "w");
    enum ms_rc rc = parse("--help --nonsense");
    fclose(stdout);
    stdout = saved;
    ck_ok(rc, err);
    ck_assert(done);
    ck_assert_ptr_nonnull(strstr(text, "usage: msprobe demo [options] -tp PATH [FILE...]\n"));
}
END_TEST

static void help_text(char *buf, size_t size, const char *columns)
{
    memset(buf, 0, size);
    setenv("COLUMNS", columns, 1);
    FILE *f = fmemopen(buf, size, "w");
    ck_assert_ptr_nonnull(f);
    ms_opt_help(&cmd, f);
    fclose(f);
}

START_TEST(help_shows_groups_defaults_choices_and_what_is_required)
{
    static const char *const expected[] = {
        "\narguments:\n  FILE ",
        "\noptions:\n  -tp, --target_path PATH",
        "what to read (required)",
        "where to write (default: .)",
        "\nTuning:\n  -lm, --layer_mapping [FILE]",
        "      --names NAME...",
        "(one of: statistics, tensor,",
        "\noptions of every command:\n  -h, --help",
        "\n  msprobe demo -tp x\n\narguments:",
    };
    char text[8192];
    help_text(text, sizeof text, "80");
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        ck_assert_msg(strstr(text, expected[i]) != NULL, "'%s' in:\n%s", expected[i], text);
    ck_assert_ptr_null(strstr(text, "secret"));
    ck_assert_ptr_null(strstr(text, "input"));
}
END_TEST

static const char *const widths[] = {"1", "40", "57", "80", "100", "1000", "none"};

START_TEST(help_fits_the_terminal)
{
    char text[8192];
    help_text(text, sizeof text, widths[_i]);
    unsigned long width = strtoul(widths[_i], NULL, 10);
    width = width == 0 ? 80 : width < 60 ? 60 : width > 100 ? 100 : width;
    for (const char *line = text; *line != '\0';) {
        size_t n = strcspn(line, "\n");
        ck_assert_msg(n <= width, "%zu wide: %.*s", n, (int)n, line);
        ck_assert_msg(n == 0 || line[n - 1] != ' ', "space at the end: %.*s", (int)n, line);
        line += n + (line[n] != '\0');
    }
}
END_TEST

START_TEST(a_usage_mistake_exits_with_2_and_any_other_failure_with_3)
{
    ms_err_clear(&err);
    ms_fail(&err, MS_E_ARG, "x");
    ck_assert_int_eq(ms_cmd_fail(&cmd, &err), MS_EXIT_USAGE);
    ms_err_clear(&err);
    ms_fail(&err, MS_E_FORMAT, "x");
    ck_assert_int_eq(ms_cmd_fail(NULL, &err), MS_EXIT_FAIL);
}
END_TEST

static const struct {
    const char *typed, *near;
} near[] = {
    {"statistics", "statistics"},
    {"Statistics", "statistics"},
    {"statsitics", "statistics"},
    {"stat", "statistics"},
    {"tenso", "tensor"},
    {"tensors", "tensor"},
    {"etnsor", "tensor"},
    {"mxi", "mix"},
    {"fix", "mix"},
    {"m", NULL},
    {"", NULL},
    {"elephant", NULL},
    {"mode-names-that-are-far-longer-than-any-that-is-known", NULL},
};

START_TEST(a_message_gives_no_commands_to_the_terminal)
{
    char said[256] = "";
    FILE *kept = stderr, *to = fmemopen(said, sizeof said, "w");
    ck_assert_ptr_nonnull(to);
    ms_err_clear(&err);
    ms_fail(&err, MS_E_IO, "a\x1b[31m\x07\x7f\xc2\x9b: \xc3\xa9\xc2\xa0\xe2\x82\x9b\tb\nc");
    stderr = to;
    const int code = ms_cmd_fail(NULL, &err);
    stderr = kept;
    fclose(to);
    ck_assert_int_eq(code, MS_EXIT_FAIL);
    ck_assert_str_eq(said, "msprobe: a?[31m??\xc2?: \xc3\xa9\xc2\xa0\xe2\x82\x9b\tb\nc\n");
}
END_TEST

START_TEST(a_note_gives_no_commands_to_the_terminal)
{
    char said[256] = "";
    FILE *kept = stderr, *to = fmemopen(said, sizeof said, "w");
    ck_assert_ptr_nonnull(to);
    stderr = to;
    ms_cmd_note("demo", "%s: %d", "a\x1b[31m\xc2\x9b", 7);
    stderr = kept;
    fclose(to);
    ck_assert_str_eq(said, "msprobe demo: a?[31m\xc2?: 7\n");
}
END_TEST

START_TEST(the_nearest_spelling_is_found_and_nothing_far)
{
    const char *got = ms_nearest(near[_i].typed, modes);
    ck_assert_str_eq(got != NULL ? got : "(none)",
                     near[_i].near != NULL ? near[_i].near : "(none)");
}
END_TEST

static const struct ms_cmd *const list[] = {&cmd, NULL};

static void print_list(char *buf, size_t size,
                       void (*print)(const struct ms_cmd *const *cmds, FILE *to))
{
    memset(buf, 0, size);
    FILE *f = fmemopen(buf, size, "w");
    ck_assert_ptr_nonnull(f);
    print(list, f);
    fclose(f);
}

START_TEST(completion_offers_what_the_table_holds)
{
    char text[16384];
    print_list(text, sizeof text, ms_opt_complete_bash);
    ck_assert_ptr_nonnull(strstr(text, "--mode | -m) options= words='statistics tensor mix' ;;"));
    ck_assert_ptr_nonnull(strstr(text, "--target_path | -tp) options= words= files=y ;;"));
    ck_assert_ptr_null(strstr(text, "secret"));
    print_list(text, sizeof text, ms_opt_complete_zsh);
    ck_assert_ptr_nonnull(strstr(text, "'--mode=[what to look at]:MODE:(statistics tensor mix)'"));
    ck_assert_ptr_nonnull(strstr(text, "'-lm[names of layers]::FILE:_files'"));
    ck_assert_ptr_null(strstr(text, "secret"));
}
END_TEST

START_TEST(the_list_names_every_visible_option)
{
    char text[4096];
    print_list(text, sizeof text, ms_opt_complete_list);
    ck_assert_int_eq(strncmp(text, "demo\ndemo --target_path\ndemo -tp\n", 32), 0);
    ck_assert_ptr_nonnull(strstr(text, "demo --trace_self\n"));
    ck_assert_ptr_null(strstr(text, "secret"));
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

int main(void)
{
    TCase *tc = tcase_create("opt");
    tcase_add_test(tc, what_is_not_given_keeps_its_default);
    tcase_add_loop_test(tc, a_path_may_be_spelled, 0, COUNT(spellings));
    tcase_add_test(tc, values_are_converted);
    tcase_add_test(tc, an_optional_value_may_be_left_out);
    tcase_add_test(tc, a_value_may_be_empty_or_begin_with_a_dash_behind_an_equals_sign);
    tcase_add_loop_test(tc, lists_and_positional_arguments_keep_their_order, 0, COUNT(mixed));
    tcase_add_loop_test(tc, a_mistake_is_named, 0, COUNT(wrong));
    tcase_add_test(tc, an_empty_argument_is_named);
    tcase_add_test(tc, a_mistake_without_an_error_to_fill_is_still_a_failure);
    tcase_add_test(tc, global_options_work_in_every_command);
    tcase_add_test(tc, the_environment_may_ask_for_no_colour);
    tcase_add_test(tc, help_ends_the_parse_before_anything_is_missing);
    tcase_add_test(tc, help_shows_groups_defaults_choices_and_what_is_required);
    tcase_add_loop_test(tc, help_fits_the_terminal, 0, COUNT(widths));
    tcase_add_test(tc, a_usage_mistake_exits_with_2_and_any_other_failure_with_3);
    tcase_add_test(tc, a_message_gives_no_commands_to_the_terminal);
    tcase_add_test(tc, a_note_gives_no_commands_to_the_terminal);
    tcase_add_loop_test(tc, the_nearest_spelling_is_found_and_nothing_far, 0, COUNT(near));
    tcase_add_test(tc, completion_offers_what_the_table_holds);
    tcase_add_test(tc, the_list_names_every_visible_option);
    return run_case("opt", tc);
}
