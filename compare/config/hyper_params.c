/* SPDX-License-Identifier: MIT
 *
 * hyper_params: shell scripts and YAML, read as the official tool reads them, its oddities included: an
 * option without a value takes the option behind it on the same line as its value.
 */
#include "compare/config/hyper_params.h"

#include "compare/read/yaml_doc.h"
#include "probe/base/io.h"
#include "probe/base/num.h"

#include <math.h>
#include <stdlib.h>

/* ---- shell: text ------------------------------------------------------------------------------ */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

static struct ms_str trim_end(struct ms_str s)
{
    while (s.n != 0 && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Appends the script without comments and empty lines. */
static void put_code(struct ms_buf *out, struct ms_str text)
{
    struct ms_str line;
    while (ms_str_split(&text, '\n', &line)) {
        const int64_t comment = ms_str_find(line, '#');
        if (comment >= 0)
            line = ms_str_sub(line, 0, (uint32_t)comment);
        line = trim_end(line);
        if (line.n == 0)
            continue;
        ms_buf_str(out, line);
        ms_buf_putc(out, '\n');
    }
}

/* Matches a word at `at` and a space behind it; returns the length of both, or 0. */
static uint32_t match_launcher(struct ms_str s, uint32_t at)
{
    static const char *const launchers[] = {"msrun", "torchrun"};
    const struct ms_str rest = ms_str_sub(s, at, s.n);
    for (int i = 0; i < 2; i++) {
        const struct ms_str word = ms_str_of(launchers[i]);
        if (ms_str_starts(rest, word) && rest.n > word.n && is_space(rest.p[word.n]))
            return word.n + 1;
    }
    if (!ms_str_starts(rest, MS_STR("python")))
        return 0;
    const struct ms_str tail = MS_STR(" -m torch.distributed.launch");
    const uint32_t digit = rest.n > 6 && rest.p[6] >= '0' && rest.p[6] <= '9';
    const uint32_t end = 6 + digit + tail.n;
    return ms_str_eq(ms_str_sub(rest, 6 + digit, end), tail) && rest.n > end &&
                   is_space(rest.p[end])
               ? end + 1
               : 0;
}

/* Finds the command of a launcher, up to a pipe. */
static bool find_command(struct ms_str code, struct ms_str *command)
{
    for (uint32_t at = 0; at < code.n; at++) {
        const uint32_t head = match_launcher(code, at);
        if (head == 0)
            continue;
        const struct ms_str rest = ms_str_sub(code, at + head, code.n);
        const int64_t pipe = ms_str_find(rest, '|');
        *command = ms_str_sub(code, at, at + head + (pipe >= 0 ? (uint32_t)pipe : rest.n));
        return true;
    }
    return false;
}

/* ---- shell: variables -------------------------------------------------------------------------- */

/* Matches NAME_ARGS="..." at `at`; returns the end behind it, or 0. */
static uint32_t match_block(struct ms_str s, uint32_t at, struct ms_str *name, struct ms_str *value)
{
    enum { NAME_MAX_LETTERS = 20 };
    const struct ms_str tail = MS_STR("_ARGS=\"");
    uint32_t run = 0;
    while (run < NAME_MAX_LETTERS && at + run < s.n && is_word(s.p[at + run]) &&
           (unsigned char)s.p[at + run] < 0x80)
        run++;
    for (; run != 0; run--) {
        if (!ms_str_starts(ms_str_sub(s, at + run, s.n), tail))
            continue;
        const uint32_t from = at + run + tail.n;
        const int64_t end = ms_str_find(ms_str_sub(s, from, s.n), '"');
        if (end < 0)
            continue;
        *name = ms_str_sub(s, at, from - 2);
        *value = ms_str_sub(s, from, from + (uint32_t)end);
        return from + (uint32_t)end + 1;
    }
    return 0;
}

/* Puts the value in place of every $NAME; line breaks become spaces. */
static void substitute(struct ms_buf *command, struct ms_str name, struct ms_str value)
{
    struct ms_buf to = {.max = command->max};
    struct ms_str rest = ms_buf_slice(command);
    for (uint32_t i = 0; i < rest.n;) {
        const struct ms_str here = ms_str_sub(rest, i, rest.n);
        if (here.p[0] == '$' && ms_str_starts(ms_str_sub(here, 1, here.n), name)) {
            for (uint32_t k = 0; k < value.n; k++)
                ms_buf_putc(&to, value.p[k] == '\n' ? ' ' : value.p[k]);
            i += 1 + name.n;
        } else {
            ms_buf_putc(&to, rest.p[i++]);
        }
    }
    const struct ms_buf old = *command;
    *command = to;
    to = old;
    ms_buf_free(&to);
}

static void substitute_blocks(struct ms_buf *command, struct ms_str code)
{
    for (uint32_t at = 0; at < code.n;) {
        struct ms_str name, value;
        const uint32_t end = match_block(code, at, &name, &value);
        if (end != 0)
            substitute(command, name, value);
        at = end != 0 ? end : at + 1;
    }
}

/* Returns the last value that the script gives a variable, the rest of that line; false without one. */
static bool find_variable(struct ms_str code, struct ms_str name, struct ms_str *value)
{
    bool found = false;
    for (uint32_t at = 0; at + name.n < code.n;) {
        const struct ms_str here = ms_str_sub(code, at, code.n);
        if (!ms_str_starts(here, name) || here.p[name.n] != '=') {
            at++;
            continue;
        }
        uint32_t from = at + name.n + 1;
        while (from < code.n && is_space(code.p[from]))
            from++;
        const int64_t end = ms_str_find(ms_str_sub(code, from, code.n), '\n');
        const struct ms_str line = ms_str_sub(code, from, end >= 0 ? from + (uint32_t)end : code.n);
        at = from + line.n;
        if (line.n == 0)
            continue;
        *value = line;
        found = true;
    }
    return found;
}

static struct ms_str resolve(struct ms_str code, struct ms_str value)
{
    struct ms_str rest = value;
    if (!ms_str_skip(&rest, "$"))
        return value;
    (void)ms_str_skip(&rest, "{");
    uint32_t n = 0;
    while (n < rest.n && is_word(rest.p[n]))
        n++;
    if (n != 0)
        (void)find_variable(code, ms_str_sub(rest, 0, n), &value);
    return value;
}

/* ---- shell: options ----------------------------------------------------------------------------- */

/* Takes "--name" and the value behind it, which begins on the same line. */
static bool next_option(struct ms_str s, uint32_t *at, struct ms_str *name, struct ms_str *value)
{
    for (; *at + 2 < s.n; (*at)++) {
        const uint32_t from = *at + 2;
        uint32_t end = from;
        if (s.p[*at] != '-' || s.p[*at + 1] != '-')
            continue;
        while (end < s.n && (is_word(s.p[end]) || s.p[end] == '-'))
            end++;
        if (end == from)
            continue;
        *name = ms_str_sub(s, from, end);
        uint32_t begin = end;
        while (begin < s.n && is_space(s.p[begin]))
            begin++;
        uint32_t stop = begin;
        while (begin > end && stop < s.n && !is_space(s.p[stop]) && s.p[stop] != '\\')
            stop++;
        *value = ms_str_sub(s, begin, stop);
        *at = stop > begin ? stop : end;
        return true;
    }
    return false;
}

static enum ms_rc read_options(struct ms_plain *dict, struct ms_str command, struct ms_str code,
                               struct ms_arena *a, struct ms_err *err)
{
    struct ms_str name, value;
    for (uint32_t at = 0; next_option(command, &at, &name, &value);) {
        struct ms_plain *v = value.n != 0 ? cfg_text(a, resolve(code, value)) : cfg_bool(a, true);
        MS_TRY(cfg_set(a, dict, name, v, err));
    }
    return MS_OK;
}

enum ms_rc cfg_hyper_of_shell(struct ms_plain *dict, struct ms_str text, struct ms_arena *a,
                              struct ms_err *err)
{
    enum { MOST = 64 << 20 };
    struct ms_buf code = {.max = MOST}, command = {.max = MOST};
    struct ms_str found;
    put_code(&code, text);
    enum ms_rc rc = ms_buf_check(&code, err);
    if (rc == MS_OK && find_command(ms_buf_slice(&code), &found)) {
        ms_buf_str(&command, found);
        substitute_blocks(&command, ms_buf_slice(&code));
        rc = ms_buf_check(&command, err);
        if (rc == MS_OK)
            rc = read_options(dict, ms_buf_slice(&command), ms_buf_slice(&code), a, err);
    }
    ms_buf_free(&code);
    ms_buf_free(&command);
    return rc;
}

/* ---- YAML ------------------------------------------------------------------------------------------ */

struct flattening {
    struct ms_plain *dict;
    struct ms_arena *a;
    yaml_document_t *doc;
    struct ms_buf path;
    struct ms_err *err;
};

static bool is_one_of(struct ms_str s, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (ms_str_is(s, *words))
            return true;
    }
    return false;
}

/* Copies digits without underscores; false when there is another letter. */
static bool plain_digits(struct ms_str s, const char *allowed, char *to, size_t most)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.p[i] == '_')
            continue;
        if (strchr(allowed, s.p[i]) == NULL || s.p[i] == '\0' || n + 1 >= most)
            return false;
        to[n++] = s.p[i];
    }
    to[n] = '\0';
    return n != 0;
}

/* Reads an integer as YAML 1.1 has them: 0x1f, 0b11, 017, 1_000; sexagesimal numbers stay texts. */
static bool read_int(struct ms_str s, int64_t *v)
{
    char digits[80];
    struct ms_str rest = s;
    const bool minus = rest.n != 0 && rest.p[0] == '-';
    if (rest.n != 0 && (minus || rest.p[0] == '+'))
        rest = ms_str_sub(rest, 1, rest.n);
    if (rest.n == 0 || rest.p[0] < '0' || rest.p[0] > '9')
        return false;
    int base = 10;
    const char *allowed = "0123456789";
    if (ms_str_skip(&rest, "0x")) {
        base = 16;
        allowed = "0123456789abcdefABCDEF";
    } else if (ms_str_skip(&rest, "0b")) {
        base = 2;
        allowed = "01";
    } else if (rest.n > 1 && rest.p[0] == '0') {
        base = 8;
        allowed = "01234567";
    }
    char *end;
    if (!plain_digits(rest, allowed, digits, sizeof digits) || strlen(digits) > 18)
        return false;
    *v = strtoll(digits, &end, base);
    *v = minus ? -*v : *v;
    return *end == '\0';
}

/* Reads a float as YAML 1.1 has them: with a point, and with a sign in the exponent; "1e-5" is a text. */
static bool read_real(struct ms_str s, double *v)
{
    static const char *const infinities[] = {".inf",  ".Inf",  ".INF", "+.inf",
                                             "+.Inf", "+.INF", NULL};
    static const char *const minus[] = {"-.inf", "-.Inf", "-.INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    char text[80];
    if (is_one_of(s, infinities) || is_one_of(s, minus) || is_one_of(s, nans)) {
        *v = is_one_of(s, nans) ? (double)NAN : s.p[0] == '-' ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    const int64_t point = ms_str_find(s, '.');
    if (point < 0 || !plain_digits(s, "0123456789.eE+-", text, sizeof text))
        return false;
    for (uint32_t i = 0; i < s.n; i++) {
        const char before = i != 0 ? s.p[i - 1] : '\0';
        if ((s.p[i] == '-' || s.p[i] == '+') && i != 0 && before != 'e' && before != 'E')
            return false;
        if ((before == 'e' || before == 'E') && s.p[i] != '-' && s.p[i] != '+')
            return false;
    }
    char shaped[96]; /* JSON's form has digits on both sides of the point, and no plus */
    const char *t = text + (text[0] == '+');
    const bool bare = t[0] == '.' || (t[0] == '-' && t[1] == '.');
    const char *dot = strchr(t, '.');
    const bool open = dot[1] < '0' || dot[1] > '9';
    const int n =
        snprintf(shaped, sizeof shaped, "%s%s%.*s.%s%s", t[0] == '-' ? "-" : "", bare ? "0" : "",
                 (int)(dot - t - (t[0] == '-')), t + (t[0] == '-'), open ? "0" : "", dot + 1);
    return n > 0 && ms_num_parse_f64(shaped, (size_t)n, v);
}

/* The value of a plain scalar; NULL for null and dates, which the official tool leaves out. */
static enum ms_rc read_scalar(struct flattening *f, const yaml_node_t *node, struct ms_plain **v)
{
    static const char *const yes[] = {"yes",  "Yes", "YES", "true", "True",
                                      "TRUE", "on",  "On",  "ON",   NULL};
    static const char *const no[] = {"no",    "No",  "NO",  "false", "False",
                                     "FALSE", "off", "Off", "OFF",   NULL};
    static const char *const null[] = {"", "~", "null", "Null", "NULL", NULL};
    struct ms_str s;
    int64_t i;
    double real;
    MS_TRY(cmp__yaml_scalar(node, &s, f->err));
    *v = NULL;
    const bool plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (plain && is_one_of(s, null))
        return MS_OK;
    if (plain && (is_one_of(s, yes) || is_one_of(s, no)))
        *v = cfg_bool(f->a, is_one_of(s, yes));
    else if (plain && read_int(s, &i))
        *v = cfg_int(f->a, i);
    else if (plain && read_real(s, &real))
        *v = cfg_real(f->a, real);
    else
        *v = cfg_text(f->a, s);
    return *v != NULL ? MS_OK : ms_arena_fail(f->a, f->err);
}

enum { YAML_DEPTH = 40 };

/* Makes a list of scalars and lists of such; *plain is false when something else is in it. */
static enum ms_rc read_list(struct flattening *f, const yaml_node_t *node, int depth,
                            struct ms_plain **out, bool *plain)
{
    *out = ms_plain_new(f->a, MS_PLAIN_LIST);
    if (*out == NULL)
        return ms_arena_fail(f->a, f->err);
    *plain = depth > 0;
    for (yaml_node_item_t *i = node->data.sequence.items.start;
         *plain && i < node->data.sequence.items.top; i++) {
        yaml_node_t *item = yaml_document_get_node(f->doc, *i);
        struct ms_plain *v = NULL;
        if (item == NULL || item->type == YAML_MAPPING_NODE)
            *plain = false;
        else if (item->type == YAML_SEQUENCE_NODE)
            MS_TRY(read_list(f, item, depth - 1, &v, plain));
        else
            MS_TRY(read_scalar(f, item, &v));
        if (v == NULL)
            *plain = false;
        else if (!ms_plain_add(f->a, *out, v))
            return ms_arena_fail(f->a, f->err);
    }
    return MS_OK;
}

static enum ms_rc flatten(struct flattening *f, const yaml_node_t *node, int depth);

static enum ms_rc flatten_child(struct flattening *f, yaml_node_item_t child, struct ms_str key,
                                int depth)
{
    const size_t before = f->path.n;
    yaml_node_t *node = yaml_document_get_node(f->doc, child);
    if (before != 0)
        ms_buf_putc(&f->path, '.');
    ms_buf_str(&f->path, key);
    MS_TRY(ms_buf_check(&f->path, f->err));
    if (node != NULL)
        MS_TRY(flatten(f, node, depth - 1));
    f->path.n = before;
    return MS_OK;
}

static enum ms_rc flatten_map(struct flattening *f, const yaml_node_t *node, int depth)
{
    for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top;
         p++) {
        const yaml_node_t *key = yaml_document_get_node(f->doc, p->key);
        struct ms_str name;
        if (key == NULL)
            continue;
        MS_TRY(cmp__yaml_scalar(key, &name, f->err));
        MS_TRY(flatten_child(f, p->value, name, depth));
    }
    return MS_OK;
}

static enum ms_rc flatten_list(struct flattening *f, const yaml_node_t *node, int depth)
{
    struct ms_plain *list;
    bool plain;
    MS_TRY(read_list(f, node, depth, &list, &plain));
    if (plain)
        return cfg_set(f->a, f->dict, ms_buf_slice(&f->path), list, f->err);
    unsigned number = 0;
    for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top;
         i++, number++) {
        char name[16];
        snprintf(name, sizeof name, "%u", number);
        MS_TRY(flatten_child(f, *i, ms_str_of(name), depth));
    }
    return MS_OK;
}

static enum ms_rc flatten(struct flattening *f, const yaml_node_t *node, int depth)
{
    struct ms_plain *v;
    if (depth == 0)
        return cmp__yaml_refuse(node, "values that are nested less deep", f->err);
    if (node->type == YAML_MAPPING_NODE)
        return flatten_map(f, node, depth);
    if (node->type == YAML_SEQUENCE_NODE)
        return flatten_list(f, node, depth);
    MS_TRY(read_scalar(f, node, &v));
    return v != NULL ? cfg_set(f->a, f->dict, ms_buf_slice(&f->path), v, f->err) : MS_OK;
}

static enum ms_rc flatten_root(void *into, yaml_document_t *doc, yaml_node_t *root,
                               struct ms_err *err)
{
    struct flattening *f = into;
    f->doc = doc;
    f->err = err;
    return flatten(f, root, YAML_DEPTH);
}

enum ms_rc cfg_hyper_of_yaml(struct ms_plain *dict, const char *name, struct ms_str text,
                             struct ms_arena *a, struct ms_err *err)
{
    struct flattening f = {.dict = dict, .a = a, .path = {.max = 1 << 16}};
    const enum ms_rc rc = cmp__yaml_load(name, text, flatten_root, &f, err);
    ms_buf_free(&f.path);
    return rc;
}

/* ---- files ------------------------------------------------------------------------------------------ */

/* Adds a parameter; a second value makes {"description": "duplicate_value", "values": [first, second]}. */
static enum ms_rc add_param(struct ms_plain *all, struct ms_str key, struct ms_plain *value,
                            struct ms_arena *a, struct ms_err *err)
{
    struct ms_plain *old = cfg_get(all, key);
    if (old == NULL || cfg_value_equal(old, value))
        return cfg_set(a, all, key, value, err);
    struct ms_plain *both = ms_plain_new(a, MS_PLAIN_DICT),
                    *values = ms_plain_new(a, MS_PLAIN_LIST);
    if (both == NULL || values == NULL || !ms_plain_add(a, values, old) ||
        !ms_plain_add(a, values, value))
        return ms_arena_fail(a, err);
    MS_TRY(cfg_set(a, both, MS_STR("description"), cfg_text(a, MS_STR("duplicate_value")), err));
    MS_TRY(cfg_set(a, both, MS_STR("values"), values, err));
    return cfg_set(a, all, key, both, err);
}

static enum ms_rc add_params(struct ms_plain *all, const struct ms_plain *more, struct ms_arena *a,
                             struct ms_err *err)
{
    for (uint32_t i = 0; i + 1 < more->n; i += 2)
        MS_TRY(add_param(all, more->item[i]->s, more->item[i + 1], a, err));
    return MS_OK;
}

enum ms_rc cfg_hyper_of_file(struct cfg_hyper_files *files, const char *path, struct ms_arena *a,
                             struct ms_err *err)
{
    enum { MOST = 64 << 20 };
    struct ms_file f;
    const struct ms_str name = ms_str_of(path);
    const bool shell = ms_str_ends(name, MS_STR(".sh"));
    struct ms_plain *params = shell ? ms_plain_new(a, MS_PLAIN_DICT) : files->yaml;
    if (!shell && !ms_str_ends(name, MS_STR(".yaml")))
        return ms_fail(err, MS_E_ARG, "%s: is neither a .sh nor a .yaml", path);
    if (params == NULL)
        return ms_arena_fail(a, err);
    MS_TRY(ms_file_map(&f, path, MOST, err));
    const struct ms_str text = {f.p, (uint32_t)f.n};
    enum ms_rc rc = shell ? cfg_hyper_of_shell(params, text, a, err)
                          : cfg_hyper_of_yaml(params, path, text, a, err);
    if (rc == MS_OK)
        rc = add_params(files->all, params, a, err);
    else if (shell)
        rc = ms_err_wrap(err, "%s", path);
    ms_file_unmap(&f);
    return rc;
}
