/* SPDX-License-Identifier: MIT
 *
 * opt: walks argv once. Values are stored directly in the command's struct at the offset that the
 * option's row names; nothing is allocated.
 *
 * Positional arguments are collected in place: argv is kept as
 *
 *     argv[0] | positional so far | options and their values so far | not read yet
 *
 * and a positional argument found later is rotated to the end of the first
 * part, so that commands see their arguments as one list, in order.
 */
#include "probe/base/opt.h"

#include "probe/base/human.h"
#include "probe/base/log.h"
#include "probe/base/num.h"
#include "probe/base/par.h"
#include "probe/base/screen.h"
#include "probe/base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

struct ms_globals ms_globals;

#define GLOBAL(field) offsetof(struct ms_globals, field)
const struct ms_opt ms_global_opts[] = {
    {"help", "h", MS_OPT_FLAG, GLOBAL(help), .help = "show this help and exit"},
    {"verbose", "v", MS_OPT_FLAG, GLOBAL(verbose), .help = "say on stderr what is being done"},
    {"debug", NULL, MS_OPT_TEXT, GLOBAL(debug), "DOMAIN[:LEVEL]",
     .help = "log a part of the program in detail; level 1 to 3, several with commas, all is all"},
    {"stats", NULL, MS_OPT_FLAG, GLOBAL(stats),
     .help = "print time and memory of each phase on stderr at the end"},
    {"trace_self", NULL, MS_OPT_PATH, GLOBAL(trace_self), "FILE", .dash = MS_DASH_OUTPUT,
     .help = "write the program's own phases as Chrome trace events"},
    {"threads", NULL, MS_OPT_INT, GLOBAL(threads), "N", .min = 0, .max = 1024,
     .help = "work with N threads; 0 is one per processor", .dflt = "0"},
    {"no_color", NULL, MS_OPT_FLAG, GLOBAL(no_color), .help = "print without colours"},
    {0}};

/* ---- the tables ------------------------------------------------------- */

static bool is_global(const struct ms_opt *o)
{
    for (const struct ms_opt *g = ms_global_opts; g->name != NULL; g++) {
        if (g == o)
            return true;
    }
    return false;
}

static bool is_option(const struct ms_opt *o)
{
    return o->kind != MS_OPT_REST && o->kind != MS_OPT_HEAD;
}

static const struct ms_opt *first_row(const struct ms_cmd *cmd)
{
    return cmd->opts != NULL && cmd->opts->name != NULL ? cmd->opts : ms_global_opts;
}

const struct ms_opt *ms_opt_next(const struct ms_cmd *cmd, const struct ms_opt *o)
{
    do {
        if (o == NULL)
            o = first_row(cmd);
        else if (o[1].name != NULL)
            o++;
        else
            o = is_global(o) ? NULL : ms_global_opts;
    } while (o != NULL && !is_option(o));
    return o;
}

#define MS_EACH(o, cmd)                                                                            \
    for (const struct ms_opt *o = ms_opt_next((cmd), NULL); o != NULL; o = ms_opt_next((cmd), o))

const struct ms_opt *ms_opt_rest(const struct ms_cmd *cmd)
{
    for (const struct ms_opt *o = cmd->opts; o != NULL && o->name != NULL; o++) {
        if (o->kind == MS_OPT_REST)
            return o;
    }
    return NULL;
}

/* A short text, cut when too long: one message or one line of help. */
struct line {
    char z[512];
    size_t n;
};

MS_PRINTF(2, 3) static void add(struct line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(l->z + l->n, sizeof l->z - l->n, fmt, ap);
    va_end(ap);
    l->n += n > 0 ? (size_t)n : 0;
    if (l->n > sizeof l->z - 1)
        l->n = sizeof l->z - 1;
}

static void add_choices(struct line *l, const struct ms_opt *o)
{
    for (int i = 0; o->choices[i] != NULL; i++)
        add(l, "%s%s", i != 0 ? ", " : "", o->choices[i]);
}

/* ---- finding an option ------------------------------------------------ */

struct parser {
    const struct ms_cmd *cmd;
    int argc;
    char **argv;
    int at;         /* index of the current argument */
    int nrest;      /* positional arguments so far, in argv[1 .. nrest] */
    bool only_rest; /* "--" has been passed */
    uint64_t seen;  /* bit i: row i of the command's table was given */
    void *args;
    struct ms_err *err;
};

/* How an option was written: "--name" or "-x" without "=value". */
struct spelling {
    struct ms_str name;
    bool is_long;
    char *value; /* behind '=', or NULL */
};

static struct spelling spelling_of(char *arg)
{
    struct spelling s = {.is_long = arg[1] == '-'};
    s.name = ms_str_of(arg + (s.is_long ? 2 : 1));
    int64_t eq = ms_str_find(s.name, '=');
    if (eq >= 0) {
        s.value = arg + (s.is_long ? 2 : 1) + eq + 1;
        s.name.n = (uint32_t)eq;
    }
    return s;
}

enum match { NO_MATCH, BEGINS, EQUALS };

static bool is_dash(char c)
{
    return c == '-' || c == '_';
}

static enum match match(const char *name, struct ms_str typed)
{
    if (name == NULL || typed.n == 0)
        return NO_MATCH;
    for (uint32_t i = 0; i < typed.n; i++) {
        if (name[i] != typed.p[i] && !(is_dash(name[i]) && is_dash(typed.p[i])))
            return NO_MATCH;
    }
    return name[typed.n] == '\0' ? EQUALS : BEGINS;
}

static enum match match_row(const struct ms_opt *o, const struct spelling *s)
{
    if (!s->is_long)
        return o->letters != NULL && ms_str_is(s->name, o->letters) ? EQUALS : NO_MATCH;
    enum match name = match(o->name, s->name);
    enum match alias = match(o->alias, s->name);
    enum match best = name > alias ? name : alias;
    return o->hidden && best == BEGINS ? NO_MATCH : best;
}

static enum ms_rc unknown_option(const struct parser *p, const struct spelling *s)
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", MS_STR_ARG(s->name));
    const char *dashes = s->is_long ? "--" : "-";
    struct ms_near near = {.word = word};
    const char *near_dashes = "";
    MS_EACH (o, p->cmd) {
        if (o->hidden)
            continue;
        ms_near_offer(&near, o->name);
        if (near.best == o->name)
            near_dashes = "--";
        if (s->is_long || o->letters == NULL)
            continue;
        ms_near_offer(&near, o->letters);
        if (near.best == o->letters)
            near_dashes = "-";
    }
    if (near.best == NULL)
        return ms_fail(p->err, MS_E_ARG, "unknown option '%s%s'", dashes, word);
    return ms_fail(p->err, MS_E_ARG, "unknown option '%s%s'; did you mean '%s%s'?", dashes, word,
                   near_dashes, near.best);
}

static enum ms_rc ambiguous_option(const struct parser *p, const struct spelling *s)
{
    struct line list = {0};
    MS_EACH (o, p->cmd) {
        if (match_row(o, s) != NO_MATCH)
            add(&list, "%s--%s", list.n != 0 ? ", " : "", o->name);
    }
    return ms_fail(p->err, MS_E_ARG, "option --%.*s is ambiguous; it could be %s",
                   MS_STR_ARG(s->name), list.z);
}

/* Finds an option by name. A full match takes precedence over a prefix. */
static enum ms_rc find_option(const struct parser *p, const struct spelling *s,
                              const struct ms_opt **found)
{
    unsigned candidates = 0;
    MS_EACH (o, p->cmd) {
        enum match m = match_row(o, s);
        if (m == NO_MATCH)
            continue;
        *found = o;
        if (m == EQUALS)
            return MS_OK;
        candidates++;
    }
    if (candidates == 0)
        return unknown_option(p, s);
    return candidates > 1 ? ambiguous_option(p, s) : MS_OK;
}

/* ---- values ----------------------------------------------------------- */

static void *place_of(const struct parser *p, const struct ms_opt *o)
{
    return (char *)(is_global(o) ? (void *)&ms_globals : p->args) + o->into;
}

/* Tells whether an argument is an option. "-5" and "-.5" are numbers, and "-" is standard input by
 * custom. */
static bool looks_like_option(const char *arg)
{
    if (arg[0] != '-' || arg[1] == '\0')
        return false;
    const char *digit = arg[1] == '.' ? arg + 2 : arg + 1;
    return *digit < '0' || *digit > '9';
}

static bool value_follows(const struct parser *p)
{
    return p->at + 1 < p->argc && !looks_like_option(p->argv[p->at + 1]);
}

static enum ms_rc missing_value(const struct parser *p, const struct ms_opt *o)
{
    ms_fail(p->err, MS_E_ARG, "option --%s needs a value%s%s", o->name,
            o->value != NULL ? ": " : "", o->value != NULL ? o->value : "");
    if (p->at + 1 < p->argc && strcmp(p->argv[p->at + 1], "--") != 0)
        ms_err_hint(p->err, "if '%s' is the value, write --%s=%s", p->argv[p->at + 1], o->name,
                    p->argv[p->at + 1]);
    return MS_E_ARG;
}

static enum ms_rc set_int(const struct parser *p, const struct ms_opt *o, const char *text)
{
    int64_t v;
    bool any = o->min == 0 && o->max == 0;
    if (!ms_str_i64(ms_str_of(text), &v))
        return ms_fail(p->err, MS_E_ARG, "option --%s: '%s' is not a whole number%s", o->name, text,
                       ms_str_all_digits(ms_str_of(text)) ? " of 64 bits" : "");
    if (!any && (v < o->min || v > o->max))
        return ms_fail(p->err, MS_E_ARG, "option --%s: %s is out of range; allowed is %lld to %lld",
                       o->name, text, (long long)o->min, (long long)o->max);
    *(int64_t *)place_of(p, o) = v;
    return MS_OK;
}

static enum ms_rc set_real(const struct parser *p, const struct ms_opt *o, const char *text)
{
    double v;
    if (!ms_num_parse_f64(text, strlen(text), &v))
        return ms_fail(p->err, MS_E_ARG,
                       "option --%s: '%s' is not a number; write it like 0.5 or 1e-3", o->name,
                       text);
    *(double *)place_of(p, o) = v;
    return MS_OK;
}

static enum ms_rc not_a_choice(const struct parser *p, const struct ms_opt *o, const char *text)
{
    struct line list = {0};
    const char *near = ms_nearest(text, o->choices);
    add_choices(&list, o);
    ms_fail(p->err, MS_E_ARG, "%s%s: '%s' is not one of %s",
            o->kind == MS_OPT_REST ? "" : "option --", o->name, text, list.z);
    if (near != NULL)
        ms_err_hint(p->err, "did you mean '%s'?", near);
    return MS_E_ARG;
}

/* Returns the index of text among the choices, or -1. */
static int choice_of(const struct ms_opt *o, const char *text)
{
    for (int i = 0; o->choices[i] != NULL; i++) {
        if (strcmp(o->choices[i], text) == 0)
            return i;
    }
    return -1;
}

static enum ms_rc set_choice(const struct parser *p, const struct ms_opt *o, const char *text)
{
    int i = choice_of(o, text);
    if (i < 0)
        return not_a_choice(p, o, text);
    *(int *)place_of(p, o) = i;
    return MS_OK;
}

static enum ms_rc set_text(const struct parser *p, const struct ms_opt *o, const char *text)
{
    *(const char **)place_of(p, o) = text;
    return MS_OK;
}

enum ms_rc (*ms_opt_input)(const char **path, struct ms_err *err);
enum ms_rc (*ms_opt_output)(const char **path, struct ms_err *err);

/* Paths that "-" was replaced by, of standard input and output. */
static const char *standard_paths[2];

const char *ms_opt_shown(const char *path)
{
    for (size_t i = 0; path != NULL && i < 2; i++) {
        if (standard_paths[i] != NULL && strcmp(path, standard_paths[i]) == 0)
            return "-";
    }
    return path;
}

enum ms_rc ms_opt_take_dash(const char **text, enum ms_dash dash, struct ms_err *err)
{
    const bool is_output = dash == MS_DASH_OUTPUT;
    enum ms_rc (*const take)(const char **, struct ms_err *) =
        is_output ? ms_opt_output : ms_opt_input;
    if (strcmp(*text, "-") != 0 || dash == MS_DASH_WORD || take == NULL)
        return MS_OK;
    if (dash == MS_DASH_FOLDER)
        return ms_fail(err, MS_E_ARG,
                       "'-' is one stream, which cannot stand for a folder; a path named - is ./-");
    if (ms_par_size(ms_globals.par) > 1)
        return ms_fail(err, MS_E_ARG, "mpirun gives '-' to one process alone; name a file");
    MS_TRY(take(text, err));
    standard_paths[is_output] = *text;
    return MS_OK;
}

/* Replaces "-" by the path of what it stands for. */
static enum ms_rc take_dash(const struct parser *p, const struct ms_opt *o, const char **text)
{
    const enum ms_rc rc = ms_opt_take_dash(text, o->dash, p->err);
    const char *dashes = o->kind == MS_OPT_REST ? "" : "option --";
    return rc == MS_OK ? rc : ms_err_wrap(p->err, "%s%s", dashes, o->name);
}

/* Stores a path. An empty path is refused here; a later message "no such file" would show no
 * name. */
static enum ms_rc set_path(const struct parser *p, const struct ms_opt *o, const char *text)
{
    if (*text == '\0' && !o->may_be_empty)
        return ms_fail(p->err, MS_E_ARG, "option --%s: %s is empty", o->name, o->value);
    MS_TRY(take_dash(p, o, &text));
    return set_text(p, o, text);
}

/* Stores a list, whose values are already neighbours in argv. A value behind '=' takes the place of
 * the option itself. */
static enum ms_rc set_list(struct parser *p, const struct ms_opt *o, char *value)
{
    struct ms_opt_list *list = place_of(p, o);
    if (value != NULL) {
        p->argv[p->at] = value;
        *list = (struct ms_opt_list){&p->argv[p->at], 1};
    } else {
        list->items = &p->argv[p->at + 1];
        for (list->n = 0; value_follows(p); list->n++)
            p->at++;
    }
    if (list->n == 0 && !o->may_be_empty)
        return missing_value(p, o);
    if ((o->min != 0 || o->max != 0) && ((int64_t)list->n < o->min || (int64_t)list->n > o->max))
        return ms_fail(p->err, MS_E_ARG, "option --%s: %zu values given; allowed is %lld to %lld",
                       o->name, list->n, (long long)o->min, (long long)o->max);
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->items[i];
        MS_TRY(take_dash(p, o, &text));
        list->items[i] = (char *)(uintptr_t)text;
    }
    return MS_OK;
}

static enum ms_rc set_one(const struct parser *p, const struct ms_opt *o, const char *text)
{
    switch (o->kind) {
    case MS_OPT_INT:
        return set_int(p, o, text);
    case MS_OPT_REAL:
        return set_real(p, o, text);
    case MS_OPT_CHOICE:
        return set_choice(p, o, text);
    case MS_OPT_PATH:
    case MS_OPT_OPTIONAL:
        return set_path(p, o, text);
    default:
        return set_text(p, o, text);
    }
}

static enum ms_rc set_flag(const struct parser *p, const struct ms_opt *o, const char *value)
{
    if (value != NULL)
        return ms_fail(p->err, MS_E_ARG, "option --%s takes no value; '%s' was given", o->name,
                       value);
    *(bool *)place_of(p, o) = true;
    return MS_OK;
}

static enum ms_rc set_value(struct parser *p, const struct ms_opt *o, char *value)
{
    if (o->kind == MS_OPT_FLAG)
        return set_flag(p, o, value);
    if (o->kind == MS_OPT_LIST)
        return set_list(p, o, value);
    if (value == NULL && value_follows(p))
        value = p->argv[++p->at];
    if (value != NULL)
        return set_one(p, o, value);
    return o->kind == MS_OPT_OPTIONAL ? set_text(p, o, "") : missing_value(p, o);
}

/* ---- the walk --------------------------------------------------------- */

/* Returns the bit in `seen` of one of the command's own options. */
static uint64_t bit_of(const struct parser *p, const struct ms_opt *o)
{
    ptrdiff_t row = o - p->cmd->opts;
    assert(row >= 0 && row < 64);
    return UINT64_C(1) << row;
}

static enum ms_rc read_option(struct parser *p, char *arg)
{
    const struct ms_opt *o = NULL;
    struct spelling s = spelling_of(arg);
    MS_TRY(find_option(p, &s, &o));
    assert(o != NULL);
    if (!is_global(o))
        p->seen |= bit_of(p, o);
    return set_value(p, o, s.value);
}

/* Moves the lists read so far by one place, because a positional argument is inserted before them
 * in argv. */
static void shift_lists(const struct parser *p)
{
    MS_EACH (o, p->cmd) {
        if (o->kind == MS_OPT_LIST && (p->seen & bit_of(p, o)) != 0)
            ((struct ms_opt_list *)place_of(p, o))->items++;
    }
}

static enum ms_rc read_positional(struct parser *p, char *arg)
{
    const struct ms_opt *rest = ms_opt_rest(p->cmd);
    if (rest == NULL || (rest->max != 0 && p->nrest >= rest->max))
        return ms_fail(p->err, MS_E_ARG, "unexpected argument '%s'; usage: msprobe %s %s", arg,
                       p->cmd->name, p->cmd->usage);
    if (*arg == '\0')
        return ms_fail(p->err, MS_E_ARG, "%s: an argument is empty", rest->name);
    if (rest->choices != NULL && choice_of(rest, arg) < 0)
        return not_a_choice(p, rest, arg);
    const char *text = arg;
    MS_TRY(take_dash(p, rest, &text));
    arg = (char *)(uintptr_t)text;
    char **to = &p->argv[++p->nrest];
    char **from = &p->argv[p->at];
    *from = arg;
    if (to == from)
        return MS_OK;
    memmove(to + 1, to, (size_t)(from - to) * sizeof *to);
    *to = arg;
    shift_lists(p);
    return MS_OK;
}

static enum ms_rc read_arg(struct parser *p)
{
    char *arg = p->argv[p->at];
    if (p->only_rest || !looks_like_option(arg))
        return read_positional(p, arg);
    if (strcmp(arg, "--") != 0)
        return read_option(p, arg);
    p->only_rest = true;
    return MS_OK;
}

static enum ms_rc check_required(const struct parser *p)
{
    for (const struct ms_opt *o = p->cmd->opts; o != NULL && o->name != NULL; o++) {
        if (!o->required || o->kind == MS_OPT_REST || (p->seen & bit_of(p, o)) != 0)
            continue;
        return ms_fail(p->err, MS_E_ARG, "missing option --%s %s: %s", o->name,
                       o->value != NULL ? o->value : "", o->help);
    }
    return MS_OK;
}

static enum ms_rc finish_rest(const struct parser *p)
{
    const struct ms_opt *rest = ms_opt_rest(p->cmd);
    if (rest == NULL)
        return MS_OK;
    int64_t least = rest->required && rest->min < 1 ? 1 : rest->min;
    if (p->nrest < least)
        return ms_fail(p->err, MS_E_ARG, "missing argument %s: %s", rest->name, rest->help);
    *(struct ms_opt_list *)place_of(p, rest) = (struct ms_opt_list){p->argv + 1, (size_t)p->nrest};
    return MS_OK;
}

static enum ms_rc apply_globals(struct ms_err *err)
{
    if (ms_globals.verbose)
        ms_log_set_level(MS_LOG_INFO);
    if (ms_globals.debug != NULL && ms_log_configure(ms_globals.debug, err) != MS_OK)
        return ms_err_wrap(err, "option --debug");
    /* no-color.org: colour is off when NO_COLOR is set and not empty. */
    const char *no_color = getenv("NO_COLOR");
    ms_globals.no_color |= no_color != NULL && *no_color != '\0';
    return MS_OK;
}

enum ms_rc ms_opt_parse(const struct ms_cmd *cmd, int argc, char **argv, void *args, bool *done,
                        struct ms_err *err)
{
    struct parser p = {.cmd = cmd, .argc = argc, .argv = argv, .args = args, .err = err};
    *done = false;
    for (p.at = 1; p.at < argc; p.at++) {
        MS_TRY(read_arg(&p));
        if (ms_globals.help) {
            ms_opt_help(cmd, stdout);
            *done = true;
            return MS_OK;
        }
    }
    MS_TRY(check_required(&p));
    MS_TRY(finish_rest(&p));
    return apply_globals(err);
}

static enum ms_exit exit_of(enum ms_rc rc)
{
    return rc == MS_E_ARG ? MS_EXIT_USAGE : MS_EXIT_FAIL;
}

/* Prints a message that may quote the name of a stranger's file, and "-" where it names the file that stands for it. */
static void print_safely(FILE *to, const char *msg)
{
    const char *input = standard_paths[0];
    const size_t n = input != NULL ? strlen(input) : 0;
    char before = '\0';
    for (const char *p = msg; *p != '\0'; before = *p++) {
        const bool is_input = n != 0 && strncmp(p, input, n) == 0;
        fputc(is_input ? '-' : ms_is_obeyed(before, *p) ? '?' : *p, to);
        p += is_input ? n - 1 : 0;
    }
}

void ms_cmd_note(const char *command, const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "msprobe %s: ", command);
    print_safely(stderr, text);
    fputc('\n', stderr);
}

const char *const ms_formats[] = {"text", "json", NULL};

bool (*ms_cmd_explain)(const struct ms_cmd *cmd, const struct ms_err *err);

int ms_cmd_fail(const struct ms_cmd *cmd, const struct ms_err *err)
{
    enum ms_exit code = exit_of(err->rc);
    const char *name = cmd != NULL ? cmd->name : "";
    const char *space = cmd != NULL ? " " : "";
    if (code == MS_EXIT_USAGE && ms_par_rank(ms_globals.par) != 0)
        return code;
    if (code == MS_EXIT_FAIL && ms_cmd_explain != NULL && ms_cmd_explain(cmd, err))
        return code;
    fprintf(stderr, "msprobe%s%s: ", space, name);
    print_safely(stderr, err->msg);
    fputc('\n', stderr);
    if (code == MS_EXIT_USAGE)
        fprintf(stderr, "try 'msprobe%s%s --help'\n", space, name);
    return code;
}

int ms_cmd_end(const struct ms_cmd *cmd, enum ms_rc rc, const struct ms_err *err)
{
    if (rc == MS_OK)
        return MS_EXIT_OK;
    return ms_par_rank(ms_globals.par) == 0 ? ms_cmd_fail(cmd, err) : MS_EXIT_FAIL;
}

size_t ms_cmd_listed(size_t n, size_t most)
{
    return most != 0 && most < n ? most : n;
}

void ms_cmd_more(FILE *to, size_t more, const char *what)
{
    char count[MS_HUMAN_MAX];
    if (more != 0)
        fprintf(to, "... and %s more %s; --most 0 lists all\n", ms_human_count(count, more), what);
}

/* ---- help ------------------------------------------------------------- */

enum { LEFT_MAX = 30, WIDTH_MAX = 100 };

/* Fills text to the width of the terminal; each line but the first begins at column `indent`. */
struct filler {
    FILE *to;
    unsigned indent, width, col;
};

static unsigned help_width(FILE *to)
{
    int fd = to == stdout ? STDOUT_FILENO : fileno(to); /* stdout may be a stream of ours */
    const unsigned width = ms_screen_size(fd).columns;
    return width < WIDTH_MAX ? width : WIDTH_MAX;
}

MS_PRINTF(2, 3) static void filler_printf(struct filler *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vfprintf(f->to, fmt, ap);
    va_end(ap);
    f->col += n > 0 ? (unsigned)n : 0;
}

static void go_to_column(struct filler *f, unsigned col)
{
    filler_printf(f, "%*s", (int)(col - f->col), "");
}

static void new_line(struct filler *f)
{
    fputc('\n', f->to);
    f->col = 0;
}

static void put_word(struct filler *f, struct ms_str word)
{
    if (f->col > f->indent && f->col + 1 + word.n >= f->width)
        new_line(f);
    if (f->col < f->indent)
        go_to_column(f, f->indent);
    else if (f->col > f->indent)
        go_to_column(f, f->col + 1);
    filler_printf(f, "%.*s", MS_STR_ARG(word));
}

static void put_words(struct filler *f, struct ms_str text)
{
    struct ms_str word;
    while (ms_str_split(&text, ' ', &word)) {
        if (word.n != 0)
            put_word(f, word);
    }
}

static void put_about(struct filler *f, const char *about)
{
    struct ms_str rest = ms_str_of(about);
    struct ms_str line;
    f->indent = 0;
    while (rest.n != 0 && ms_str_split(&rest, '\n', &line)) {
        bool as_is = line.n != 0 && line.p[0] == ' ';
        if (f->col != 0 && (as_is || line.n == 0))
            new_line(f);
        if (as_is || line.n == 0)
            fprintf(f->to, "%.*s\n", MS_STR_ARG(line));
        else
            put_words(f, line);
    }
    if (f->col != 0)
        new_line(f);
}

static void name_text(struct line *l, const struct ms_opt *o)
{
    const char *value = o->value != NULL ? o->value : "WORD";
    if (o->kind == MS_OPT_REST) {
        add(l, "  %s", o->name);
        return;
    }
    if (o->letters != NULL)
        add(l, "  -%s, --%s", o->letters, o->name);
    else
        add(l, "      --%s", o->name);
    if (o->kind == MS_OPT_OPTIONAL)
        add(l, " [%s]", value);
    else if (o->kind != MS_OPT_FLAG)
        add(l, " %s%s", value, o->kind == MS_OPT_LIST ? "..." : "");
}

/* Writes the allowed values, in parentheses behind the help text. */
static void note_text(struct line *l, const struct ms_opt *o)
{
    if (o->required)
        add(l, "; required");
    if (o->choices != NULL) {
        add(l, "; one of: ");
        add_choices(l, o);
    }
    if (o->dflt != NULL)
        add(l, "; default: %s", o->dflt);
    if (l->n == 0)
        return;
    add(l, ")");
    memcpy(l->z, " (", 2);
}

static unsigned name_width(const struct ms_opt *o)
{
    struct line name = {0};
    name_text(&name, o);
    return (unsigned)name.n;
}

static void put_row(struct filler *f, const struct ms_opt *o)
{
    struct line name = {0};
    struct line note = {0};
    name_text(&name, o);
    note_text(&note, o);
    filler_printf(f, "%s", name.z);
    /* At least two spaces between the columns; after a name that is too long the help begins on a
     * new line. */
    if (f->col + 2 > f->indent)
        new_line(f);
    put_words(f, ms_str_of(o->help));
    put_words(f, ms_str_of(note.z));
    new_line(f);
}

static unsigned left_column(const struct ms_opt *rows)
{
    unsigned widest = 0;
    for (const struct ms_opt *o = rows; o != NULL && o->name != NULL; o++) {
        unsigned n = o->hidden || o->kind == MS_OPT_HEAD ? 0 : name_width(o) + 2;
        if (n > widest && n <= LEFT_MAX)
            widest = n;
    }
    return widest;
}

static void put_rows(struct filler *f, const char *heading, const struct ms_opt *rows)
{
    for (const struct ms_opt *o = rows; o != NULL && o->name != NULL; o++) {
        if (o->kind == MS_OPT_HEAD)
            heading = o->name;
        if (o->hidden || !is_option(o))
            continue;
        if (heading != NULL)
            fprintf(f->to, "\n%s:\n", heading);
        heading = NULL;
        put_row(f, o);
    }
}

void ms_opt_help(const struct ms_cmd *cmd, FILE *to)
{
    struct filler f = {.to = to, .width = help_width(to)};
    fprintf(to, "usage: msprobe %s %s\n\n", cmd->name, cmd->usage);
    put_about(&f, cmd->about);
    unsigned own = left_column(cmd->opts);
    unsigned common = left_column(ms_global_opts);
    f.indent = own > common ? own : common;
    const struct ms_opt *rest = ms_opt_rest(cmd);
    if (rest != NULL) {
        fprintf(to, "\narguments:\n");
        put_row(&f, rest);
    }
    put_rows(&f, "options", cmd->opts);
    put_rows(&f, "options of every command", ms_global_opts);
}
