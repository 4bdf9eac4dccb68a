/* SPDX-License-Identifier: MIT
 *
 * terms: search terms, and nodes that match them.
 *
 * The longest bare word is searched in the database, which finds names quickly; the other terms are
 * tested here on the result.
 */
#include "viz/model/terms.h"

#include "probe/base/clock.h"
#include "probe/base/jread.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/base/regex.h"
#include "probe/dump/name.h"

#include <ctype.h>

enum {
    WORD_MAX = 4096,
    PAGE = 512,
    TESTED_MAX = 200000, /* rows tested in one call */
};

enum term_kind {
    T_WORD,
    T_REGEX,
    T_CLASS,
    T_STATE,
    T_RANK,
    T_SHAPE,
    T_DTYPE,
    T_KIND,
    T_DOMAIN,
    T_DURATION
};
static const struct {
    const char *key;
    enum term_kind kind;
} keys[] = {{"class", T_CLASS}, {"state", T_STATE}, {"rank", T_RANK},    {"shape", T_SHAPE},
            {"dtype", T_DTYPE}, {"kind", T_KIND},   {"domain", T_DOMAIN}};

struct term {
    enum term_kind kind;
    bool negated;
    char *text;
    regex_t regex;
    unsigned want; /* bit set of states */
    int64_t rank;
    enum viz_slice_kind slice;
    int64_t low_ns, high_ns; /* of a duration, both included */
};

struct viz_terms {
    MS_VEC(struct term) list;
    int64_t limit_ns;
};

/* ---- reading -------------------------------------------------------------------- */

/* Splits the next word off the line; quotes keep words together and are removed. False at the
 * end. */
static bool next_word(struct ms_str *rest, struct ms_buf *word)
{
    uint32_t i = 0;
    char quote = '\0';
    ms_buf_clear(word);
    while (i < rest->n && rest->p[i] == ' ')
        i++;
    bool any = i < rest->n;
    for (; i < rest->n && (quote != '\0' || rest->p[i] != ' '); i++) {
        char c = rest->p[i];
        if (quote != '\0' ? c == quote : c == '"')
            quote = quote != '\0' ? '\0' : c;
        else
            ms_buf_putc(word, c);
    }
    *rest = ms_str_sub(*rest, i, rest->n);
    return any;
}

static unsigned state_of_letter(char c)
{
    switch (tolower((unsigned char)c)) {
    case 'e':
        return GRAPH_WANT_ERROR;
    case 'w':
        return GRAPH_WANT_WARNING;
    case 'p':
    case '.':
        return GRAPH_WANT_PASS;
    case 'u':
    case '-':
        return GRAPH_WANT_UNMATCHED;
    case 'o':
    case '!':
        return GRAPH_WANT_OVERFLOW;
    default:
        return 0;
    }
}

static unsigned state_of_word(struct ms_str s)
{
    static const char *const words[] = {"error", "warning", "pass", "unmatched", "overflow"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (ms_str_is(s, words[i]))
            return state_of_letter(words[i][0]);
    }
    return 0;
}

/* Parses "error", "error,unmatched" or letters: "EW-". */
static enum ms_rc read_states(struct term *t, struct ms_str s, struct ms_err *err)
{
    struct ms_str rest = s, part;
    while (ms_str_split(&rest, ',', &part)) {
        unsigned want = state_of_word(part);
        for (uint32_t i = 0; want == 0 && i < part.n; i++) {
            unsigned one = state_of_letter(part.p[i]);
            if (one == 0) {
                t->want = 0;
                break;
            }
            t->want |= one;
        }
        t->want |= want;
    }
    if (t->want == 0)
        return ms_fail(err, MS_E_ARG,
                       "state:%.*s is no state; use error, warning, pass, unmatched, overflow or "
                       "the letters E W . - !",
                       MS_STR_ARG(s));
    return MS_OK;
}

static enum ms_rc read_regex(struct term *t, struct ms_err *err)
{
    const enum ms_rc rc = ms_regex_compile(&t->regex, t->text, REG_NOSUB | REG_ICASE, err);
    if (rc != MS_OK)
        t->kind = T_WORD; /* nothing to free */
    return rc;
}

/* Normalises shape:8,16 or 8x16 or (8, 16) to the text "[8, 16]". */
static bool read_shape(struct term *t, struct ms_str s)
{
    struct ms_buf b = {.max = WORD_MAX};
    bool in_number = false, any = false;
    ms_buf_putc(&b, '[');
    for (uint32_t i = 0; i < s.n; i++) {
        bool digit = s.p[i] >= '0' && s.p[i] <= '9';
        if (digit && !in_number && any)
            ms_buf_puts(&b, ", ");
        if (digit)
            ms_buf_putc(&b, s.p[i]);
        any |= digit;
        in_number = digit;
    }
    ms_buf_putc(&b, ']');
    ms_free(t->text);
    t->text = ms_str_dup(ms_buf_slice(&b));
    ms_buf_free(&b);
    return t->text != NULL;
}

static const char *dtype_of_alias(const char *s)
{
    static const char *const alias[][2] = {
        {"bf16", "bfloat16"}, {"fp16", "float16"}, {"f16", "float16"},  {"half", "float16"},
        {"fp32", "float32"},  {"f32", "float32"},  {"fp64", "float64"}, {"f64", "float64"}};
    for (size_t i = 0; i < sizeof alias / sizeof *alias; i++) {
        if (strcmp(s, alias[i][0]) == 0)
            return alias[i][1];
    }
    return s;
}

/* Returns the value after "key:"; NULL (p) for a bare word or an expression. */
static struct ms_str split_key(struct ms_str word, enum term_kind *kind)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t n = strlen(keys[i].key);
        if (word.n > n && word.p[n] == ':' && memcmp(word.p, keys[i].key, n) == 0) {
            *kind = keys[i].kind;
            return ms_str_sub(word, (uint32_t)n + 1, word.n);
        }
    }
    if (word.n > 3 && memcmp(word.p, "dur", 3) == 0 && (word.p[3] == '>' || word.p[3] == '<')) {
        *kind = T_DURATION;
        return ms_str_sub(word, 3, word.n);
    }
    *kind = T_WORD;
    return MS_STR_NONE;
}

/* Returns the nanoseconds of "5ms" or "0.5us"; -1: no duration. */
static int64_t duration_of(struct ms_str s)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    uint32_t n = 0;
    double v;
    while (n < s.n && (isdigit((unsigned char)s.p[n]) || s.p[n] == '.'))
        n++;
    if (n == 0 || !ms_num_parse_f64(s.p, n, &v))
        return -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (ms_str_is(ms_str_sub(s, n, s.n), units[i].unit) && v * units[i].ns < 9e18)
            return (int64_t)(v * units[i].ns);
    }
    return -1;
}

/* Parses what follows "dur": >5ms, >=5ms, <5ms or <=5ms. */
static enum ms_rc read_duration(struct term *t, struct ms_str s, struct ms_err *err)
{
    const bool is_equal = s.n > 1 && s.p[1] == '=';
    const int64_t ns = duration_of(ms_str_sub(s, is_equal ? 2 : 1, s.n));
    if (ns < 0)
        return ms_fail(err, MS_E_ARG, "dur%.*s is no duration; write dur>5ms, with ns, us, ms or s",
                       MS_STR_ARG(s));
    t->low_ns = s.p[0] == '>' ? ns + !is_equal : 0;
    t->high_ns = s.p[0] == '<' ? ns - !is_equal : INT64_MAX;
    return MS_OK;
}

static enum ms_rc read_kind(struct term *t, struct ms_str value, struct ms_err *err)
{
    if (viz_slice_kind_named(value, &t->slice))
        return MS_OK;
    return ms_fail(err, MS_E_ARG, "kind:%.*s is no kind; use comm, wait, copy, compute or mark",
                   MS_STR_ARG(value));
}

static enum ms_rc read_value(struct term *t, struct ms_str value, struct ms_err *err)
{
    switch (t->kind) {
    case T_KIND:
        return read_kind(t, value, err);
    case T_DURATION:
        return read_duration(t, value, err);
    case T_REGEX:
        return read_regex(t, err);
    case T_STATE:
        return read_states(t, value, err);
    case T_RANK:
        if (!ms_str_i64(value, &t->rank))
            return ms_fail(err, MS_E_ARG, "rank:%.*s is no number", MS_STR_ARG(value));
        return MS_OK;
    case T_SHAPE:
        return read_shape(t, value) ? MS_OK : ms_no_memory(err);
    default:
        return MS_OK;
    }
}

static enum ms_rc add_term(struct viz_terms *t, struct ms_str word, struct ms_err *err)
{
    bool negated = word.n > 1 && word.p[0] == '-';
    if (negated)
        word = ms_str_sub(word, 1, word.n);
    enum term_kind kind;
    struct ms_str value = split_key(word, &kind);
    if (value.p == NULL)
        value = word;
    if (kind == T_WORD && word.n > 2 && word.p[0] == '/' && word.p[word.n - 1] == '/') {
        kind = T_REGEX;
        value = ms_str_sub(word, 1, word.n - 1);
    }
    struct term *slot = ms_vec_push(&t->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct term){.kind = kind, .negated = negated, .text = ms_str_dup(value)};
    if (slot->text == NULL) {
        slot->kind = T_WORD;
        return ms_no_memory(err);
    }
    if (value.n == 0)
        return ms_fail(err, MS_E_ARG, "'%.*s' says nothing to look for", MS_STR_ARG(word));
    return read_value(slot, value, err);
}

enum ms_rc viz_terms_new(struct viz_terms **out, struct ms_str text, struct ms_err *err)
{
    *out = NULL;
    struct viz_terms *t = ms_calloc(1, sizeof *t);
    struct ms_buf word = {.max = WORD_MAX};
    enum ms_rc rc = t != NULL ? MS_OK : ms_no_memory(err);
    while (rc == MS_OK && next_word(&text, &word)) {
        rc = ms_buf_check(&word, err);
        if (rc == MS_OK && word.n != 0)
            rc = add_term(t, ms_buf_slice(&word), err);
    }
    ms_buf_free(&word);
    if (rc == MS_OK)
        *out = t;
    else
        viz_terms_free(t);
    return rc;
}

void viz_terms_free(struct viz_terms *t)
{
    for (size_t i = 0; t != NULL && i < t->list.n; i++) {
        if (t->list.p[i].kind == T_REGEX)
            regfree(&t->list.p[i].regex);
        ms_free(t->list.p[i].text);
    }
    if (t != NULL)
        ms_vec_free(&t->list);
    ms_free(t);
}

bool viz_terms_empty(const struct viz_terms *t)
{
    return t->list.n == 0;
}

void viz_terms_limit(struct viz_terms *t, int64_t ns)
{
    t->limit_ns = ns;
}

/* ---- testing --------------------------------------------------------------------- */

/* Matches at most s.n bytes: names need not end in a NUL. */
static bool meets_regex(const struct term *t, struct ms_str s)
{
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)s.n};
    return regexec(&t->regex, s.n != 0 ? s.p : "", 1, &range, REG_STARTEND) == 0;
}

bool viz_terms_meet_text(const struct viz_terms *t, struct ms_str text)
{
    for (size_t i = 0; i < t->list.n; i++) {
        const struct term *x = &t->list.p[i];
        if (x->kind == T_WORD && ms_str_has_folded(text, ms_str_of(x->text)) == x->negated)
            return false;
        if (x->kind == T_REGEX && meets_regex(x, text) == x->negated)
            return false;
    }
    return true;
}

static bool meets_slice(const struct term *t, const struct viz_slice *s)
{
    switch (t->kind) {
    case T_RANK:
        return s->rank == t->rank;
    case T_KIND:
        return s->kind == t->slice;
    case T_DOMAIN:
        return ms_str_has_folded(s->domain, ms_str_of(t->text));
    case T_DURATION:
        return s->dur_ns >= t->low_ns && s->dur_ns <= t->high_ns;
    default:
        return !t->negated; /* tested elsewhere */
    }
}

bool viz_terms_meet_slice(const struct viz_terms *t, const struct viz_slice *s)
{
    for (size_t i = 0; i < t->list.n; i++) {
        if (meets_slice(&t->list.p[i], s) == t->list.p[i].negated)
            return false;
    }
    return true;
}

bool viz_terms_meet_lane(const struct viz_terms *t, int64_t rank, struct ms_str domain)
{
    const struct viz_slice s = {.rank = rank, .domain = domain};
    for (size_t i = 0; i < t->list.n; i++) {
        const struct term *x = &t->list.p[i];
        if ((x->kind == T_RANK || x->kind == T_DOMAIN) && meets_slice(x, &s) == x->negated)
            return false;
    }
    return true;
}

bool viz_terms_need_duration(const struct viz_terms *t)
{
    size_t i = 0;
    while (i < t->list.n && t->list.p[i].kind != T_DURATION)
        i++;
    return i < t->list.n;
}

enum ms_rc viz_terms_fit(const struct viz_terms *t, bool of_slices, struct ms_err *err)
{
    for (size_t i = 0; i < t->list.n; i++) {
        const enum term_kind k = t->list.p[i].kind;
        const bool is_slices = k == T_KIND || k == T_DOMAIN || k == T_DURATION;
        const bool is_nodes = k == T_CLASS || k == T_STATE || k == T_SHAPE || k == T_DTYPE;
        if (of_slices ? is_nodes : is_slices)
            return ms_fail(err, MS_E_ARG, "%s",
                           of_slices ? "class, state, shape and dtype are terms of the graph and "
                                       "the table; slices have rank, kind, domain and dur"
                                     : "kind, domain and dur are terms of the timeline; nodes "
                                       "have rank, class, state, shape and dtype");
    }
    return MS_OK;
}

static unsigned states_of(const struct graph_row *row)
{
    unsigned s = row->state != GRAPH_NONE ? 1u << row->state : 0;
    if (row->unmatched)
        s |= GRAPH_WANT_UNMATCHED;
    if (row->overflow.n != 0)
        s |= GRAPH_WANT_OVERFLOW;
    return s;
}

/* Compares with the class of a module or the name of an operator: "Linear", "softmax". */
static bool meets_class(struct ms_str name, struct ms_str want)
{
    struct ms_str path = probe_name_parse(name).path;
    struct ms_str last = probe_name_last(path);
    return last.n == want.n && ms_str_has_folded(last, want);
}

bool viz_terms_by_name(const struct viz_terms *t)
{
    for (size_t i = 0; i < t->list.n; i++) {
        enum term_kind kind = t->list.p[i].kind;
        if (kind != T_WORD && kind != T_REGEX && kind != T_CLASS)
            return false;
    }
    return true;
}

bool viz_terms_meet_name(const struct viz_terms *t, struct ms_str name)
{
    if (!viz_terms_meet_text(t, name))
        return false;
    for (size_t i = 0; i < t->list.n; i++) {
        const struct term *x = &t->list.p[i];
        if (x->kind == T_CLASS && meets_class(name, ms_str_of(x->text)) == x->negated)
            return false;
    }
    return true;
}

static bool meets_row(const struct term *t, const struct graph_row *row)
{
    switch (t->kind) {
    case T_CLASS:
        return meets_class(row->name, ms_str_of(t->text));
    case T_STATE:
        return (states_of(row) & t->want) != 0;
    case T_RANK:
        return row->rank == t->rank;
    default:
        return !t->negated; /* tested elsewhere */
    }
}

/* Tells whether the field of some item contains the text. */
static bool items_meet(struct ms_str json, const char *field, struct ms_str text)
{
    struct ms_jread r;
    bool is_field = false, found = false;
    ms_jread_init(&r, json.n != 0 ? json.p : "", json.n, 0);
    enum ms_jtok tok;
    while (!found && (tok = ms_jread_next(&r)) != MS_J_END && tok != MS_J_ERR) {
        found = tok == MS_J_STR && is_field && ms_str_has_folded(r.text, text);
        is_field = tok == MS_J_KEY && ms_str_is(r.text, field);
    }
    return found;
}

static bool meets_items(const struct term *t, const struct graph_detail *d)
{
    bool shape = t->kind == T_SHAPE;
    const char *field = shape ? "shape" : "dtype";
    struct ms_str text = ms_str_of(shape ? t->text : dtype_of_alias(t->text));
    return items_meet(d->input, field, text) || items_meet(d->output, field, text);
}

static bool needs_items(const struct term *t)
{
    return t->kind == T_SHAPE || t->kind == T_DTYPE;
}

/* ---- searching -------------------------------------------------------------------- */

struct search {
    const struct viz_terms *terms;
    struct graph_view *v;
    struct graph_spot at;
    struct graph_page item; /* of the node being tested */
    bool needs_items;
    int64_t end_ns; /* 0: no limit */
};

static bool is_late(const struct search *s)
{
    return s->end_ns != 0 && ms_clock_ns() >= s->end_ns;
}

static enum ms_rc meets_terms(struct search *s, const struct graph_row *row, bool *yes,
                              struct ms_err *err)
{
    *yes = viz_terms_meet_text(s->terms, row->name);
    for (size_t i = 0; *yes && i < s->terms->list.n; i++) {
        const struct term *t = &s->terms->list.p[i];
        *yes = needs_items(t) || meets_row(t, row) != t->negated;
    }
    if (!*yes || !s->needs_items)
        return MS_OK;
    struct graph_detail d;
    MS_TRY(graph_view_node(s->v, s->at, row->name, &s->item, &d, err));
    for (size_t i = 0; *yes && i < s->terms->list.n; i++) {
        const struct term *t = &s->terms->list.p[i];
        *yes = !needs_items(t) || meets_items(t, &d) != t->negated;
    }
    return MS_OK;
}

struct ms_str viz_terms_word(const struct viz_terms *t)
{
    struct ms_str best = MS_STR("");
    for (size_t i = 0; i < t->list.n; i++) {
        struct ms_str s = ms_str_of(t->list.p[i].text);
        if (t->list.p[i].kind == T_WORD && !t->list.p[i].negated && s.n > best.n)
            best = s;
    }
    return best;
}

/* Returns the states of the first state term that is not negated; 0: none, every row is a
 * candidate. */
static unsigned wanted_states(const struct viz_terms *t)
{
    for (size_t i = 0; i < t->list.n; i++) {
        if (t->list.p[i].kind == T_STATE && !t->list.p[i].negated)
            return t->list.p[i].want;
    }
    return 0;
}

static enum ms_rc find_candidates(const struct search *s, int64_t after, struct graph_page *page,
                                  struct ms_err *err)
{
    struct ms_str word = viz_terms_word(s->terms);
    unsigned want = wanted_states(s->terms);
    if (word.n == 0 && want != 0)
        return graph_view_filter(s->v, s->at, want, after, PAGE, page, err);
    return graph_view_search(s->v, s->at, word, after, PAGE, page, err);
}

static enum ms_rc keep_row(struct graph_page *page, const struct graph_row *row, struct ms_err *err)
{
    struct graph_row *slot = ms_vec_push(&page->rows);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *row;
    struct ms_str *text[] = {&slot->name, &slot->parent, &slot->partner, &slot->overflow};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        *text[i] = ms_arena_str(page->arena, *text[i]);
        if (text[i]->p == NULL)
            return ms_arena_fail(page->arena, err);
    }
    return MS_OK;
}

/* Tests the rows of one page of candidates. */
static enum ms_rc sift_rows(struct search *s, const struct graph_page *from, uint32_t limit,
                            struct graph_page *page, int64_t *reached, struct ms_err *err)
{
    bool yes;
    for (size_t i = 0; i < from->rows.n; i++) {
        MS_TRY(meets_terms(s, &from->rows.p[i], &yes, err));
        if (yes && page->rows.n == limit) {
            page->more = true;
            return MS_OK;
        }
        if (yes)
            MS_TRY(keep_row(page, &from->rows.p[i], err));
        *reached = from->rows.p[i].order;
        page->more = s->needs_items && is_late(s);
        if (page->more)
            return MS_OK;
    }
    if (from->reached > *reached)
        *reached = from->reached;
    return MS_OK;
}

enum ms_rc viz_terms_search(const struct viz_terms *t, struct graph_view *v, struct graph_spot at,
                            int64_t after, uint32_t limit, struct graph_page *page,
                            int64_t *reached, struct ms_err *err)
{
    struct search s = {
        .terms = t, .v = v, .at = at, .end_ns = t->limit_ns != 0 ? ms_clock_ns() + t->limit_ns : 0};
    struct graph_page from = {.more = true};
    enum ms_rc rc = MS_OK;
    size_t tested = 0;
    MS_TRY(viz_terms_fit(t, false, err));
    for (size_t i = 0; i < t->list.n; i++)
        s.needs_items |= needs_items(&t->list.p[i]);
    graph_page_free(page);
    page->arena = ms_arena_new((size_t)1 << 30);
    if (page->arena == NULL)
        return ms_no_memory(err);
    *reached = after;
    while (rc == MS_OK && from.more && !page->more) {
        page->more = tested >= TESTED_MAX || (tested != 0 && is_late(&s));
        if (page->more)
            break;
        rc = find_candidates(&s, *reached, &from, err);
        if (rc == MS_OK)
            rc = sift_rows(&s, &from, limit, page, reached, err);
        tested += from.rows.n + 1;
    }
    graph_page_free(&from);
    graph_page_free(&s.item);
    return rc;
}
